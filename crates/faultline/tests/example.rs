//! Checks that the README has the figures that `make demo` printed, and that other pages quote these.

const README: &str = include_str!("../../../README.md");
const PAGES: [(&str, &str); 2] = [
    ("tour.md", include_str!("../../../docs/tour.md")),
    ("reading-a-report.md", include_str!("../../../docs/reading-a-report.md")),
];
/// The beginnings of the lines with figures.
const LINES: [&str; 5] = [
    "Amean instructions-kernel-protect ",
    "Amean instructions-kernel-restore ",
    "regression instructions-kernel-protect ",
    "regression instructions-kernel-restore ",
    "Phase protect: ",
];

/// The lines of a page with figures of the demonstration, without repeated blanks.
fn quoted(page: &str) -> Vec<String> {
    let lines = page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| LINES.iter().any(|first| line.starts_with(first))).collect()
}

#[test]
fn pages_quote_the_demonstration_as_the_readme_has_it() {
    let example = quoted(README);
    assert_eq!(example.len(), LINES.len(), "{example:?}");
    for (page, text) in PAGES {
        let lines = quoted(text);
        assert!(!lines.is_empty(), "{page}");
        for line in lines {
            assert!(example.contains(&line), "{page}: {line}");
        }
    }
}
