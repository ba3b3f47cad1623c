//! Makes text of any origin safe to print.

use std::borrow::Cow;

/// Whether a terminal, an editor or a mail reader acts on `letter` instead of showing it: a control character other than
/// the end of a line and a tab, a separator of lines, or a mark that has no width or sets the direction of writing
/// (Unicode Standard Annex 9).
fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{feff}' => true,
        letter => letter.is_control(),
    }
}

/// `text` with hidden letters escaped, as in `\u001b`. In a string of JSON or TOML the escape means the same letter,
/// so a document keeps its meaning.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_hidden(letter) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// A text as a cell of CSV that a spreadsheet shows unchanged. Ends of lines and other hidden letters are escaped
/// with a backslash, and so is the backslash. A text that a spreadsheet would take for a formula, or that begins with
/// `'`, gets a `'` in front (<https://owasp.org/www-community/attacks/CSV_Injection>).
pub fn csv_text(text: &str) -> Cow<'_, str> {
    const FORMULA: [char; 9] =
        ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\''];
    let is_special = |letter: char| is_hidden(letter) || matches!(letter, '\n' | '\t' | '\\');
    let is_formula = text.starts_with(FORMULA);
    if !is_formula && !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let quote = if is_formula { "'" } else { "" };
    let escaped =
        text.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r").replace('\t', r"\t");
    Cow::Owned(format!("{quote}{}", visible(&escaped)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped() {
        assert!(matches!(visible("caf\u{e9}\n\t\u{4e2d} \\"), Cow::Borrowed(_)));
        assert_eq!(visible("\u{1b}[2J\r\u{7f}\u{9b}"), r"\u001b[2J\u000d\u007f\u009b");
        assert_eq!(visible("a\u{202e}b\u{2066}\u{200b}\u{feff}"), r"a\u202eb\u2066\u200b\ufeff");
    }

    #[test]
    fn an_escaped_document_keeps_its_meaning() {
        let texts = ["\u{9b}\\\u{7f}\"\u{202e}\u{1b}\n".to_owned()];
        let json = serde_json::to_string(&texts).unwrap();
        assert!(json.contains('\u{9b}'));
        let shown = visible(&json).into_owned();
        assert!(!shown.contains(char::is_control));
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), texts);
    }

    #[test]
    fn cells_of_text_are_no_formulas() {
        for (text, cell) in [
            ("6.1", "6.1"),
            ("", ""),
            ("a=b-c", "a=b-c"),
            ("=1+2", "'=1+2"),
            ("+waste", "'+waste"),
            ("-1.5", "'-1.5"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("'=1", "''=1"),
            ("\t=1\r\n", r"\t=1\r\n"),
            (r"a\n", r"a\\n"),
            ("\u{1b}]0;x\u{7}", r"\u001b]0;x\u0007"),
        ] {
            assert_eq!(csv_text(text), cell);
        }
    }
}
