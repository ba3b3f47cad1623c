//! Escapes text for HTML.

use maud::{Markup, PreEscaped};

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

/// Escapes a sentence, and marks text between backticks as code.
pub fn sentence(text: &str) -> Markup {
    let mut parts = text.split('`');
    let mut written = html(parts.next().unwrap_or_default());
    while let Some(part) = parts.next() {
        match parts.next() {
            Some(rest) => written.push_str(&format!("<code>{}</code>{}", html(part), html(rest))),
            // An unpaired backtick is printed as it is.
            None => written.push_str(&format!("`{}", html(part))),
        }
    }
    PreEscaped(written)
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
    }
}
