//! Scripts: their interpreters, and the words that may be commands.

use std::path::Path;

/// Shells whose scripts name the commands that they call.
const SHELLS: [&str; 7] = ["ash", "bash", "busybox", "dash", "ksh", "sh", "zsh"];
/// The longest first line, as for the kernel (`BINPRM_BUF_SIZE`, `include/uapi/linux/binfmts.h`).
const LONGEST: usize = 256;
/// The largest number of words that are looked up.
const MAX_WORDS: usize = 20_000;

/// The first line of a script.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// The path of its interpreter.
    pub interpreter: String,
    /// The name that `env` looks up, if that is the interpreter.
    pub name: Option<String>,
}

impl Script {
    /// Of a file's bytes; `None` if it is not a script.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let line = bytes.strip_prefix(b"#!")?;
        let line = line[..line.len().min(LONGEST)].split(|byte| *byte == b'\n').next()?;
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split_whitespace();
        let interpreter = words.next()?.to_owned();
        // Options of env(1), and variables that it sets.
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='));
        let name = name.filter(|_| interpreter.ends_with("/env")).map(str::to_owned);
        Some(Self { interpreter, name })
    }

    /// Whether its interpreter is a shell.
    pub fn is_of_shell(&self) -> bool {
        is_shell(Path::new(self.name.as_ref().unwrap_or(&self.interpreter)))
    }
}

/// Whether a program is a shell, by its name.
pub fn is_shell(program: &Path) -> bool {
    program.file_name().and_then(|name| name.to_str()).is_some_and(|name| SHELLS.contains(&name))
}

/// The words of a shell script that may be commands, sorted, each once. Comments that have a line of their own are
/// left out.
pub fn words(script: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(script);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let part = |letter: char| !(letter.is_ascii_alphanumeric() || "_-+./[".contains(letter));
    let words = lines.flat_map(|line| line.split(part)).filter(|word| is_word(word));
    let mut words: Vec<String> = words.take(MAX_WORDS).map(str::to_owned).collect();
    words.sort();
    words.dedup();
    words
}

fn is_word(word: &str) -> bool {
    let begins_well =
        word.starts_with(|letter: char| letter.is_ascii_alphanumeric() || "./[_".contains(letter));
    begins_well && word.len() <= LONGEST && ![".", "..", "/"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_interpreter() {
        let read = |line: &str| {
            let script = Script::of(line.as_bytes())?;
            Some((script.is_of_shell(), script.interpreter, script.name))
        };
        let plain = |shell, path: &str| Some((shell, path.to_owned(), None));
        assert_eq!(read("#!/bin/sh\necho"), plain(true, "/bin/sh"));
        assert_eq!(read("#! /bin/bash -e"), plain(true, "/bin/bash"));
        assert_eq!(read("#!/usr/bin/python3 -u\n"), plain(false, "/usr/bin/python3"));
        let env =
            |shell, name: &str| Some((shell, "/usr/bin/env".to_owned(), Some(name.to_owned())));
        assert_eq!(read("#!/usr/bin/env python3"), env(false, "python3"));
        assert_eq!(read("#!/usr/bin/env -S A=1 bash -e"), env(true, "bash"));
        for other in ["", "#!", "#!  \n/bin/sh", "echo", " #!/bin/sh"] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(Script::of(b"#!/bin/\xff\n"), None);
    }

    #[test]
    fn words_of_a_script_may_be_commands() {
        let script = b"#!/bin/sh\n  # grep in a comment\nfor i in $(seq 3); do ./helper.sh \"$i\"|sort -n; done\n\
                       [ -e /bin/x ] && x=`wc -l <a.txt`\n";
        let words = words(script);
        for word in ["seq", "./helper.sh", "sort", "[", "/bin/x", "wc", "a.txt"] {
            assert!(words.iter().any(|it| it == word), "{word}: {words:?}");
        }
        assert!(!words.iter().any(|it| it == "grep" || it.starts_with('-')), "{words:?}");
    }
}
