//! Makes text from any source fit for a terminal and a mail: printable ASCII of limited length.

use model::grouped;

/// The width of lines of text, in columns. Long words may exceed it.
pub const WIDTH: usize = 100;
/// Most characters that are printed of a text from a guest or a file.
pub const MAX_TEXT: usize = 300;

/// Returns the first `most` of several names or sentences. If there are more, their number is the last
/// element: `3 more`.
pub fn few(most: usize, named: impl IntoIterator<Item: ToString>) -> Vec<String> {
    let mut named: Vec<String> = named.into_iter().map(|it| it.to_string()).collect();
    if let Some(more @ 1..) = named.len().checked_sub(most) {
        named.truncate(most);
        named.push(format!("{} more", grouped(&more.to_string())));
    }
    named
}

/// Escapes everything in `text` but printable ASCII, so that a guest or a file cannot move the cursor, end
/// a line or imitate other characters.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            ' '..='~' => escaped.push(letter),
            _ => escaped.extend(letter.escape_default()),
        }
    }
    escaped
}

/// Escapes `text`, and cuts it if it is longer than `MAX_TEXT`.
pub fn excerpt(text: &str) -> String {
    cut(text, MAX_TEXT)
}

/// Escapes `text`, and cuts it to `most` characters. A cut text ends with `...` in addition.
pub fn cut(text: &str, most: usize) -> String {
    let mut cut = escape(text);
    if cut.len() > most {
        cut.truncate(most);
        cut.push_str("...");
    }
    cut
}

/// Quotes a word for a shell, in printable ASCII.
pub fn shell_word(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-:+~/@".contains(byte);
    let as_is = || word.iter().copied().map(char::from).collect::<String>();
    let escaped = |byte: &u8| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    let is_option = word.first().is_none_or(|first| b"-~".contains(first));
    if !is_option && word.iter().all(is_plain) {
        as_is()
    } else if word.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        format!("'{}'", as_is().replace('\'', "'\\''"))
    } else {
        format!("$'{}'", word.iter().map(escaped).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_ascii_is_left() {
        assert_eq!(escape("a-b_c ~"), "a-b_c ~");
        assert_eq!(escape("\x1b[2J\r\n\0"), "\\u{1b}[2J\\r\\n\\u{0}");
        assert_eq!(escape("caf\u{e9} \u{202e}x"), "caf\\u{e9} \\u{202e}x");
    }

    #[test]
    fn long_texts_are_cut() {
        let excerpt = excerpt(&"\u{e9}".repeat(1000));
        assert_eq!(excerpt.len(), MAX_TEXT + 3);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, quoted) in [
            (&b"a/b.db"[..], "a/b.db"),
            (b"a b", "'a b'"),
            (b"it's", "'it'\\''s'"),
            (b"", "''"),
            (b"-x", "'-x'"),
            (b"a\n\xff", "$'a\\x0a\\xff'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
