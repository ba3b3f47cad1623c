//! Quotes QEMU's own messages, which can be long and can have any content.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most bytes of messages that are quoted, half of them from the beginning.
pub const QUOTED: usize = 1024;

/// The messages in a file, quoted like others. Fails when it cannot be read.
pub fn quote_file(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let part = |start: u64, most: usize| -> io::Result<String> {
        let mut bytes = vec![0; most];
        let read = file.read_at(&mut bytes, start)?;
        Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
    };
    match length <= QUOTED as u64 {
        true => Ok(line(&part(0, QUOTED)?)),
        false => {
            let half = QUOTED / 2;
            Ok(ends(&part(0, half)?, &part(length - half as u64, half)?))
        }
    }
}

/// Messages as one line without control characters. Of long messages only the beginning and the end are quoted.
pub fn quote(text: &str) -> String {
    if text.len() <= QUOTED {
        return line(text);
    }
    let bytes = text.as_bytes();
    let parts = [&bytes[..QUOTED / 2], &bytes[bytes.len() - QUOTED / 2..]];
    let [begin, end] = parts.map(String::from_utf8_lossy);
    ends(&begin, &end)
}

fn ends(begin: &str, end: &str) -> String {
    format!("{} [...] {}", line(begin), line(end))
}

fn line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_quoted_from_both_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("qemu.log");
        let in_file = |text: &str| {
            std::fs::write(&path, text).unwrap();
            quote_file(&path).unwrap()
        };
        let short = "a\u{1b}[2J\n\n  b\r\n";
        assert_eq!(quote(short), "a [2J; b");
        assert_eq!(in_file(short), "a [2J; b");
        let long = format!("first\n{}last\n", "m\u{e9}\n".repeat(1 << 20));
        for quoted in [quote(&long), in_file(&long)] {
            assert!(quoted.starts_with("first; m") && quoted.ends_with("; last"), "{quoted}");
            assert!(quoted.contains(" [...] ") && quoted.len() < 2 * QUOTED, "{quoted}");
        }
    }
}
