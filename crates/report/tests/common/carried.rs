//! The mail contains every sentence that the text has besides figures.

use compare::{Comparison, Kind, Results, Table};
use model::{Mode, Reading};
use report::Recipe;

/// Checks that the mail of a comparison has each note of the text, and each sentence below its tables.
pub fn assert_mail_says_it(comparison: &Comparison) {
    let experiment = super::experiment(comparison.mode, comparison.boots);
    let results =
        Results { experiment: &experiment, reading: Reading::USUAL, variants: Vec::new() };
    let recipe = Recipe { version: "0.1.0", files: &[] };
    let mail = report::mail(comparison, &results, &[], &recipe);
    let said = bare(&mail);
    for sentence in sentences(comparison) {
        assert!(said.contains(&bare(&sentence)), "not in the mail: {sentence}\n{mail}");
    }
}

/// Returns the text, after the checks that every text must pass.
pub fn printed(comparison: &Comparison) -> String {
    let text = report::text(comparison);
    assert_mail_says_it(comparison);
    super::assert_plain(&text);
    text
}

/// Removes all spaces. Text and mail break lines at different places, and a mail also breaks long words.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns the lines of the text that are not part of a grid of figures.
fn sentences(comparison: &Comparison) -> Vec<String> {
    let text = report::text(comparison);
    let parts: Vec<&str> = text.split("\n\n").collect();
    let (last, parts) = parts.split_last().unwrap();
    let mut parts = parts.iter();
    let mut sentences = Vec::new();
    if !comparison.notes.states.is_empty() {
        sentences.extend(notes(parts.next().unwrap()));
    }
    if comparison.mode == Mode::Exact {
        sentences.extend(notes(parts.next().unwrap()));
    }
    if comparison.tables.is_empty() {
        sentences.push(parts.next().unwrap().to_string());
    }
    for (table, part) in comparison.tables.iter().zip(&mut parts) {
        sentences.extend(below(table, part));
    }
    sentences.extend(notes(last));
    sentences
}

/// Returns the lines below the last row of figures.
fn below(table: &Table, part: &str) -> Vec<String> {
    let is_figure = |word: &str| {
        word.trim_start_matches(['-', '[', '?']).starts_with(|it: char| it.is_ascii_digit())
    };
    let is_row = |line: &&str| {
        table.rows.iter().any(|row| {
            let metric = report::escape(&row.metric);
            let label = match table.kind {
                Kind::Metrics => line.strip_prefix(&*row.statistic.name()).map(str::trim_start),
                Kind::Duration | Kind::Counters | Kind::Events => Some(*line),
            };
            let figures = label.and_then(|label| label.strip_prefix(&*metric));
            let first = figures.and_then(|it| it.split_whitespace().next());
            first.is_some_and(|first| first == "-" || is_figure(first))
        })
    };
    let lines: Vec<&str> = part.lines().collect();
    let last = lines.iter().rposition(is_row).map_or(0, |last| last + 1);
    // The text marks figures, while the mail has sentences instead.
    let lines = lines[last..].iter().filter(|line| !line.starts_with("[Brackets]: beyond"));
    lines.map(|line| line.replace("Rows in [brackets]", "These rows")).collect()
}

/// Returns the texts of notes, without topics and names. Verdicts and origins of kernels are left out: the
/// mail has lines for the verdicts, and prints origins with the commands that get the kernels.
fn notes(part: &str) -> Vec<String> {
    let mut topic = "";
    let mut said = Vec::new();
    for line in part.lines().skip(1) {
        if let Some(new) = line.strip_prefix("  ").filter(|new| !new.starts_with(' ')) {
            topic = new.split("  ").next().unwrap_or_default();
        }
        if !["verdicts", "origin"].contains(&topic) {
            said.extend(line.split("  ").last().map(str::to_owned));
        }
    }
    said
}
