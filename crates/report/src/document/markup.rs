//! Text and figures for HTML.

use maud::{Markup, PreEscaped};

use super::medium::tied;

/// Escapes `text` for an element or a quoted attribute.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Escapes a sentence, and marks text between backticks as code. A number and its unit stay on one line, but
/// not in code, which can be copied.
pub fn sentence(text: &str) -> Markup {
    let words = |part: &str| html(&tied(part));
    let mut parts = text.split('`');
    let mut written = words(parts.next().unwrap_or_default());
    while let Some(part) = parts.next() {
        match parts.next() {
            Some(rest) => written.push_str(&format!("<code>{}</code>{}", html(part), words(rest))),
            // An unpaired backtick is printed as it is.
            None => written.push_str(&format!("`{}", html(part))),
        }
    }
    PreEscaped(written)
}

/// Digits before the point are grouped if there are more than this.
const WHOLE_DIGITS: usize = 4;
/// The number of digits in a group.
const GROUP: usize = 3;

/// Formats a printed figure for a page: groups of three digits, separated by narrow spaces, and a minus
/// sign in place of a hyphen. Text that is no figure is returned unchanged.
pub fn figure(text: &str) -> String {
    let (sign, rest) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => ("\u{2212}", rest),
        (_, Some(rest)) => ("+", rest),
        _ => ("", text),
    };
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (whole, rest) = rest.split_at(digits);
    if whole.is_empty() || whole.len() <= WHOLE_DIGITS {
        // A lone dash means that there is no figure.
        let is_figure = !whole.is_empty();
        return if is_figure { format!("{sign}{whole}{rest}") } else { text.to_owned() };
    }
    let mut parted = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (digits - place) % GROUP == 0 {
            parted.push('\u{202f}');
        }
        parted.push(digit);
    }
    parted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_backticks_is_code() {
        let of = |text| sentence(text).into_string();
        assert_eq!(of("a `b<` c `d`"), "a <code>b&lt;</code> c <code>d</code>");
        assert_eq!(of("`a` b` <"), "<code>a</code> b` &lt;");
        assert_eq!(of(""), "");
        assert_eq!(of("5 s `--for 5 s` 1 %"), "5\u{a0}s <code>--for 5 s</code> 1\u{a0}%");
    }

    #[test]
    fn digits_are_grouped() {
        let figures = ["1327681769", "-12345.678901", "9999", "-0.14", "-", "1.5e300", "[12345]"];
        let parted = figures.map(|text| figure(text).replace('\u{202f}', "_"));
        let expected = [
            "1_327_681_769", "\u{2212}12_345.678901", "9999", "\u{2212}0.14", "-", "1.5e300",
            "[12345]",
        ];
        assert_eq!(parted, expected);
    }
}
