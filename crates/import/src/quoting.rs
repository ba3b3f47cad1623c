//! Finds who wrote a line: quote marks, and the lines that name authors.

/// Greatest depth of quoting that is counted.
const MAX_DEPTH: usize = 32;
const MAX_NAME: usize = 100;
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
];

const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The depth of quoting of a line, and its text.
pub fn unquote(line: &str) -> (usize, &str) {
    let mut depth = 0;
    let mut rest = line;
    while let Some(after) = rest.strip_prefix('>').or_else(|| rest.strip_prefix(" >")) {
        if depth == 0 && !line.starts_with('>') {
            break;
        }
        depth += 1;
        rest = after;
    }
    match depth {
        0 => (0, line),
        _ => (depth.min(MAX_DEPTH), rest.strip_prefix(' ').unwrap_or(rest)),
    }
}

/// The author of the text quoted below a line such as `On DATE, NAME <MAIL> wrote:`. The beginning of the sentence
/// may be on the line before.
pub fn quoted_author(line: &str, before: &str) -> Option<String> {
    let said = |line: &'_ str| -> Option<String> {
        let ending = ["wrote:", "writes:", "said:"];
        let line = line.trim();
        ending.iter().find_map(|word| line.strip_suffix(word)).map(str::to_owned)
    };
    let mut text = said(line)?;
    let opens = |text: &str| text.starts_with("On ") || text.starts_with("* ");
    if !opens(&text) && opens(before.trim_start()) {
        text = format!("{} {text}", before.trim());
    }
    let text = text.trim();
    if let Some(name) = text.strip_prefix("* ") {
        return name_of(name);
    }
    let Some(dated) = text.strip_prefix("On ") else {
        // Without a date, only a short line is a person's name.
        return (text.split_whitespace().count() <= 5).then(|| name_of(text))?;
    };
    let dated = dated.split('<').next().unwrap_or_default().trim();
    let parts: Vec<&str> = dated.split(", ").collect();
    let dateless = |part: &&&str| {
        !part.contains(|letter: char| letter.is_ascii_digit()) && !WEEKDAYS.contains(&part.trim())
    };
    match parts.iter().rev().take_while(dateless).count() {
        0 => after_date(parts.last()?),
        // The family name may come first: `Example, Ada`.
        name => name_of(&parts[parts.len() - name..].join(", ")),
    }
}

/// The name after a date in `2015 at 8:36 AM Ada Example`.
fn after_date(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_date = |word: &&str| {
        word.contains(|letter: char| letter.is_ascii_digit()) || matches!(*word, "AM" | "PM")
    };
    let date = words.iter().rposition(is_date).map_or(0, |place| place + 1);
    name_of(&words[date..].join(" "))
}

/// The author of the text below a line that heads a message on a web page: patchwork's `NAME March 7, 2015,
/// 3:20 p.m. UTC | #1`, GitLab's `NAME authored`.
pub fn page_author(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(name) = line.strip_suffix(" authored") {
        return (name.split_whitespace().count() <= 5).then(|| name_of(name))?;
    }
    let utc = line.find(" UTC")?;
    let rest = &line[utc + " UTC".len()..];
    if !rest.is_empty() && !rest.starts_with(" | #") {
        return None;
    }
    let words: Vec<&str> = line[..utc].split_whitespace().collect();
    let month = words.iter().position(|word| MONTHS.contains(word))?;
    let day = words.get(month + 1)?;
    day.ends_with(',').then(|| name_of(&words[..month].join(" ")))?
}

/// The name in `NAME <MAIL>`, or the address where there is no name.
pub fn name_of(text: &str) -> Option<String> {
    let text = text.trim();
    let (name, mail) = phrase(text).unwrap_or_else(|| {
        let (name, mail) = text.split_once('<').unwrap_or((text, ""));
        (name.trim().trim_matches('"').to_owned(), mail)
    });
    let name = name.trim();
    let name = if name.is_empty() { mail.trim_end_matches('>') } else { name };
    let fits = !name.is_empty() && name.len() <= MAX_NAME;
    fits.then(|| name.to_owned())
}

/// The words before `<`, without the quotes and backslashes of quoted strings (RFC 5322), and what follows
/// `<`. `None` if a quoted string does not end.
fn phrase(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut quoted = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' if quoted => name.push(letters.next()?),
            '<' if !quoted => return Some((name, letters.as_str())),
            other => name.push(other),
        }
    }
    (!quoted).then_some((name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_quoting_are_counted_and_taken_off() {
        assert_eq!(unquote("> > Min  x"), (2, "Min  x"));
        assert_eq!(unquote(">>>> x"), (4, "x"));
        assert_eq!(unquote(">   x"), (1, "  x"));
        assert_eq!(unquote(">"), (1, ""));
        assert_eq!(unquote(" > x"), (0, " > x"));
        assert_eq!(unquote("a > b"), (0, "a > b"));
        assert_eq!(unquote(&">".repeat(100)).0, MAX_DEPTH);
    }

    #[test]
    fn attributions_name_the_quoted() {
        for line in [
            "On Wed 27-02-19 04:24:51, Ada Example wrote:",
            "On Sat, Mar 7, 2015 at 8:36 AM, Ada Example <ada@example.org> wrote:",
            "On Sat, Mar 7, 2015 at 8:36 AM Ada Example <ada@example.org> wrote:",
            "On Fri, Jul 01, 2016 at 09:01:08PM +0100, Ada Example wrote:",
            "* Ada Example <ada@example.org> wrote:",
            "Ada Example <ada@example.org> writes:",
        ] {
            assert_eq!(quoted_author(line, "").as_deref(), Some("Ada Example"), "{line}");
        }
        let before = "On Sun, Mar 8, 2015 at 11:35 AM, Ada Example";
        let author = quoted_author("<ada@example.org> wrote:", before);
        assert_eq!(author.as_deref(), Some("Ada Example"));
        let last_first = quoted_author("On 19 Oct 2023, at 2:09, Example, Ada wrote:", "");
        assert_eq!(last_first.as_deref(), Some("Example, Ada"));
        assert_eq!(quoted_author("and that is what the person before me once wrote:", ""), None);
        assert_eq!(quoted_author("Results:", ""), None);
    }

    #[test]
    fn names_may_be_quoted_strings() {
        for (text, name) in [
            ("Ada Example <a@b.c>", "Ada Example"),
            (r#""Example, Ada" <a@b.c>"#, "Example, Ada"),
            (r#""<script>alert(1)</script>" <a@b.c>"#, "<script>alert(1)</script>"),
            (r#""Ada \"A<B\" \\ Example" X. <a@b.c>"#, r#"Ada "A<B" \ Example X."#),
            (r#"""<a@b.c>"#, "a@b.c"),
            (r#""Ada <a@b.c>"#, "Ada"),
            ("a@b.c", "a@b.c"),
        ] {
            assert_eq!(name_of(text).as_deref(), Some(name), "{text}");
        }
        assert_eq!(name_of(r#""""#), None);
    }

    #[test]
    fn pages_name_the_authors_of_messages() {
        let author = |line| page_author(line);
        let ada = Some("Ada Example".to_owned());
        assert_eq!(author("Ada Example March 7, 2015, 3:20 p.m. UTC"), ada);
        assert_eq!(author("Ada Example March 7, 2015, 4:36 p.m. UTC | #1"), ada);
        assert_eq!(author("    Ada Example authored"), ada);
        assert_eq!(author("measured in March at 3:20 UTC"), None);
    }
}
