//! Reads patches: diffs, mails, mailboxes and directories of them. git splits mailboxes and decodes mails, as
//! it does for `git am`.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::git::git;
use crate::compressed::Format;
use crate::error::Doing;
use crate::tool::GIT;
use crate::{Error, input};

/// The largest patch file or mailbox, in bytes.
const MAX_PATCH: u64 = 64 << 20;
/// The most mails of a mailbox.
const MOST_MAILS: usize = 1000;
/// The path that means standard input.
pub const STANDARD_INPUT: &str = "-";
/// The longest name that is made of a subject, in characters.
const LONGEST_NAME: usize = 40;
/// The suffixes of files that are read in a directory of patches.
const ENDINGS: [&str; 6] = ["patch", "diff", "mbox", "mbx", "eml", "gz"];

/// A patch with its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// The subject of its mail, or its file's name.
    pub subject: String,
    /// The text of the diff.
    pub diff: Vec<u8>,
}

/// Reads patches in the order in which they are applied. Paths keep their order, files of a directory are sorted by
/// name, and mails of a mailbox by their numbers (`[PATCH 2/3]`) if all have one. Fails when a file cannot be read or
/// has no patch.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    for path in paths {
        if !path.is_dir() {
            patches.extend(of_file(path)?);
            continue;
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).doing("list", path)? {
            let file = entry.doing("list", path)?.path();
            let ending = file.extension().and_then(|it| it.to_str()).unwrap_or_default();
            if file.is_file() && ENDINGS.contains(&ending) {
                files.push(file);
            }
        }
        if files.is_empty() {
            return Err(wrong(path, "the directory has no file *.patch, *.diff or *.mbox"));
        }
        files.sort();
        for file in files {
            patches.extend(of_file(&file)?);
        }
    }
    Ok(patches)
}

/// A name for patches by the subject of the first one: lower-case words of ASCII with `-` between them.
pub(crate) fn name(patches: &[Patch]) -> String {
    let subject = patches.first().map_or("", |patch| &patch.subject);
    let subject = match subject.strip_prefix("\"[").and_then(|it| it.split_once(']')) {
        Some((_, subject)) => subject,
        None => subject,
    };
    let words = subject.split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut name = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if name.len() + word.len() >= LONGEST_NAME {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_ascii_lowercase());
    }
    if name.is_empty() { "patch".to_owned() } else { name }
}

/// The bytes of a file or of standard input.
fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |error: Error| match error {
        Error::NoKernel { path, problem } => Error::Patch { path, problem },
        other => other,
    };
    if path != Path::new(STANDARD_INPUT) {
        return input::read(path, MAX_PATCH).map_err(unreadable);
    }
    // It can be read only once, and each build and each question about the patches needs it.
    static READ: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let read = READ.get_or_init(|| match io::stdin().is_terminal() {
        true => Err("it is a terminal: pipe a patch or a mailbox into it".to_owned()),
        false => bounded(io::stdin().lock(), MAX_PATCH),
    });
    read.clone().map_err(|problem| wrong(path, &problem))
}

/// All bytes of a pipe. Fails when there are more than `limit`.
fn bounded(from: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    match from.take(limit + 1).read_to_end(&mut bytes) {
        Err(error) => Err(format!("it cannot be read: {error}")),
        Ok(read) if read as u64 > limit => {
            Err(format!("it has more than {limit} bytes, which is the limit"))
        }
        Ok(_) => Ok(bytes),
    }
}

fn of_file(path: &Path) -> Result<Vec<Patch>, Error> {
    let mut bytes = bytes(path)?;
    if let Some(format) = Format::of(&bytes) {
        bytes = format
            .unpack(&bytes, MAX_PATCH as usize)
            .map_err(|error| wrong(path, &format!("cannot be unpacked: {error}")))?;
    }
    let patches = match is_mail(&bytes) {
        true => of_mails(path, &bytes)?,
        false if has_diff(&bytes) => {
            vec![Patch { subject: file_name(path), diff: bytes }]
        }
        false => Vec::new(),
    };
    match patches.is_empty() {
        true => Err(wrong(path, "it has no patch: neither a diff nor a mail with one")),
        false => Ok(patches),
    }
}

fn file_name(path: &Path) -> String {
    shown(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Splits a mailbox, and decodes its mails. Mails without a diff, such as cover letters, are left out.
fn of_mails(path: &Path, bytes: &[u8]) -> Result<Vec<Patch>, Error> {
    let work = tempfile::tempdir().doing("write into", Path::new("the temporary directory"))?;
    let place = |name: &str| work.path().join(name);
    let (mailbox, mails) = (place("mailbox"), place("mails"));
    fs::write(&mailbox, bytes).doing("write", &mailbox)?;
    fs::create_dir(&mails).doing("create", &mails)?;
    let mut split = git();
    split
        .args(["mailsplit", "-b", "-d6"])
        .arg(format!("-o{}", mails.display()))
        .arg("--")
        .arg(&mailbox);
    let run = |command: &mut std::process::Command| {
        GIT.try_run(command.current_dir(work.path()))?.map_err(|failed| {
            wrong(path, &format!("git cannot read its mails: {}", GIT.failed(&failed)))
        })
    };
    let number: usize = run(&mut split)?.trim().parse().unwrap_or(0);
    if number > MOST_MAILS {
        return Err(wrong(path, &format!("it has {number} mails, but the limit is {MOST_MAILS}")));
    }
    let mut patches = Vec::new();
    for mail in 1..=number {
        let mail = mails.join(format!("{mail:06}"));
        let (message, diff) = (place("message"), place("diff"));
        let mut info = git();
        info.args(["mailinfo", "-k", "--encoding=UTF-8"]).arg(&message).arg(&diff);
        info.stdin(fs::File::open(&mail).doing("read", &mail)?);
        let said = run(&mut info)?;
        let subject = said.lines().find_map(|line| line.strip_prefix("Subject: "));
        let diff = fs::read(&diff).doing("read", &diff)?;
        if has_diff(&diff) {
            let subject = subject.map(|subject| format!("\"{subject}\""));
            patches.push(Patch { subject: subject.unwrap_or_else(|| file_name(path)), diff });
        }
    }
    if patches.iter().all(|patch| number_of(&patch.subject).is_some()) {
        patches.sort_by_key(|patch| number_of(&patch.subject));
        let numbers: Vec<u32> = patches.iter().filter_map(|it| number_of(&it.subject)).collect();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1) {
            let problem = match pair[0] == pair[1] {
                true => format!("it has two patches with the number {}: keep one version", pair[0]),
                false => format!("patch {} of the series is missing", pair[0] + 1),
            };
            return Err(wrong(path, &problem));
        }
    }
    Ok(patches)
}

/// Whether a file is a mail or a mailbox. A mailbox begins with `From `. A mail begins with headers, among them
/// `From:` or `Subject:`.
fn is_mail(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"From ") {
        return true;
    }
    let head = bytes.split(|&byte| byte == b'\n').take(200);
    let mut headers =
        head.take_while(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"--- "));
    headers.any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with(b"from:") || line.starts_with(b"subject:")
    })
}

fn has_diff(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    lines.any(|line| line.starts_with(b"diff --git ") || line.starts_with(b"+++ "))
}

/// The number of a patch in its series: 2 in `[PATCH v3 2/7] mm: ...`.
fn number_of(subject: &str) -> Option<u32> {
    let (prefix, _) = subject.strip_prefix("\"[")?.split_once(']')?;
    let (number, _) = prefix.split_whitespace().next_back()?.split_once('/')?;
    number.parse().ok()
}

/// The path as messages have it.
fn shown(path: &Path) -> &Path {
    if path == Path::new(STANDARD_INPUT) { Path::new("standard input") } else { path }
}

fn wrong(path: &Path, problem: &str) -> Error {
    Error::Patch { path: shown(path).to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";

    fn mail(subject: &str, body: &str) -> String {
        format!(
            "From 0 Mon Sep 17 00:00:00 2001\nFrom: A B <a@b>\nSubject: {subject}\n\ntext\n---\n{body}\n\n"
        )
    }

    fn subjects(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let read = read(&[directory.path().to_owned()]).map_err(|error| error.to_string())?;
        assert!(read.iter().all(|patch| String::from_utf8_lossy(&patch.diff).contains(DIFF)));
        Ok(read.into_iter().map(|patch| patch.subject).collect())
    }

    #[test]
    fn patches_of_mailboxes_are_in_the_order_of_the_series() {
        let series = [
            mail("[PATCH 0/2] cover", "no diff"),
            mail("[PATCH 2/2] second", DIFF),
            mail("Re: [PATCH 1/2] first", "> --- a/x"),
            mail("[PATCH 1/2] first", DIFF),
        ];
        let found = subjects(&[("b.mbox", &series.concat()), ("a.diff", DIFF), ("README", "")]);
        assert_eq!(found.unwrap(), ["a.diff", "\"[PATCH 1/2] first\"", "\"[PATCH 2/2] second\""]);
    }

    #[test]
    fn a_name_has_the_words_of_the_subject() {
        let named = |subject: &str| name(&[Patch { subject: subject.into(), diff: vec![] }]);
        assert_eq!(named("\"[PATCH v3 2/5] mm/madvise: Don't waste\""), "mm-madvise-don-t-waste");
        assert_eq!(named("standard input"), "standard-input");
        assert_eq!(named("\"[PATCH] \u{e9}\u{202e}\""), "patch");
        let long = named(&"word ".repeat(100));
        assert!(long.len() <= LONGEST_NAME && long.ends_with("word"), "{long}");
    }

    #[test]
    fn a_pipe_has_a_limit() {
        assert_eq!(bounded(&b"abc"[..], 3), Ok(b"abc".to_vec()));
        assert!(bounded(&b"abcd"[..], 3).unwrap_err().contains("more than 3 bytes"));
    }

    #[test]
    fn files_without_a_patch_are_errors() {
        assert!(subjects(&[("README", "")]).unwrap_err().ends_with("*.diff or *.mbox"));
        for text in ["", "garbage\0", "From: a\n\nno diff", "From x\n"] {
            let error = subjects(&[("a.patch", text)]).unwrap_err();
            assert!(error.contains("a.patch: "), "{error}");
        }
    }
}
