//! Reads patches: diffs, mails, mailboxes and directories of them. git splits mailboxes and decodes mails, as
//! it does for `git am`.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::PatchMail;

use super::git::git;
use super::mail;
use crate::compressed::Format;
use crate::error::Doing;
use crate::tool::GIT;
use crate::{Error, input};

/// The largest patch file or mailbox, in bytes.
const MAX_PATCH: u64 = 64 << 20;
/// The most mails of a mailbox.
const MOST_MAILS: usize = 1000;
/// Most characters of a subject that are kept.
const MAX_SUBJECT: usize = 300;
/// The message for a file without patches.
const NO_PATCH: &str = "it has no patch: neither a diff nor a mail with one";
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

/// A mail that a reply can answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Its subject, decoded; the file's name of a patch without mail.
    pub subject: String,
    /// What a reply needs of its headers, if it has an identifier.
    pub mail: Option<PatchMail>,
}

/// Patches, and the mail that they are known by.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    /// In the order in which they are applied.
    pub patches: Vec<Patch>,
    /// The cover letter of the last series, or else the first patch of the last path.
    pub answered: Answered,
}

/// The patches of one file, and the mails that they are known by.
#[derive(Default)]
struct Found {
    patches: Vec<Patch>,
    cover: Option<Answered>,
    first: Option<Answered>,
}

/// Reads patches in the order in which they are applied. Paths keep their order, files of a directory are sorted by
/// name, and mails of a mailbox by their numbers (`[PATCH 2/3]`) if all have one. Fails when a file cannot be read or
/// has no patch.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Patches, Error> {
    let mut all = Patches::default();
    for path in paths {
        let found = if path.is_dir() { of_directory(path)? } else { of_file(path)? };
        if found.patches.is_empty() {
            return Err(wrong(path, NO_PATCH));
        }
        all.patches.extend(found.patches);
        all.answered = found.cover.or(found.first).unwrap_or_default();
    }
    Ok(all)
}

/// The patches of a directory, in the order of the files' names.
fn of_directory(path: &Path) -> Result<Found, Error> {
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
    let mut all = Found::default();
    for file in files {
        let found = of_file(&file)?;
        if found.patches.is_empty() && found.cover.is_none() {
            return Err(wrong(&file, NO_PATCH));
        }
        all.patches.extend(found.patches);
        all.cover = all.cover.or(found.cover);
        all.first = all.first.or(found.first);
    }
    Ok(all)
}

/// A name for patches by a subject: lower-case words of ASCII with `-` between them.
pub(crate) fn name(subject: &str) -> String {
    let subject = match subject.strip_prefix('[').and_then(|it| it.split_once(']')) {
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

/// The patches of a file; none if it has a cover letter only, or neither a diff nor a mail with one.
fn of_file(path: &Path) -> Result<Found, Error> {
    let mut bytes = bytes(path)?;
    if let Some(format) = Format::of(&bytes) {
        bytes = format
            .unpack(&bytes, MAX_PATCH as usize)
            .map_err(|error| wrong(path, &format!("cannot be unpacked: {error}")))?;
    }
    Ok(match is_mail(&bytes) {
        true => of_mails(path, &bytes)?,
        false if has_diff(&bytes) => {
            let subject = file_name(path);
            let first = Some(Answered { subject: subject.clone(), mail: None });
            Found { patches: vec![Patch { subject, diff: bytes }], cover: None, first }
        }
        false => Found::default(),
    })
}

fn file_name(path: &Path) -> String {
    shown(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Splits a mailbox, and decodes its mails. Of those without a diff only the cover letter of a series counts.
fn of_mails(path: &Path, bytes: &[u8]) -> Result<Found, Error> {
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
    let (mut patches, mut cover) = (Vec::new(), None);
    for mail in 1..=number {
        let mail = mails.join(format!("{mail:06}"));
        let (message, diff) = (place("message"), place("diff"));
        let mut info = git();
        info.args(["mailinfo", "-k", "--encoding=UTF-8"]).arg(&message).arg(&diff);
        info.stdin(fs::File::open(&mail).doing("read", &mail)?);
        let said = run(&mut info)?;
        let subject = said.lines().find_map(|line| line.strip_prefix("Subject: "));
        let diff = fs::read(&diff).doing("read", &diff)?;
        let named = subject.map_or_else(|| file_name(path), |subject| format!("\"{subject}\""));
        let subject = subject.map_or_else(|| file_name(path), |it| visible(it, MAX_SUBJECT));
        let answered = || -> Result<_, Error> {
            let mail = mail::reply(&fs::read(&mail).doing("read", &mail)?);
            Ok(Answered { subject: subject.clone(), mail })
        };
        if has_diff(&diff) {
            patches.push((Patch { subject: named, diff }, answered()?));
        } else if cover.is_none() && number_of(&named) == Some(0) {
            cover = Some(answered()?);
        }
    }
    let number = |it: &(Patch, Answered)| number_of(&it.0.subject);
    if patches.iter().all(|patch| number(patch).is_some()) {
        patches.sort_by_key(number);
        let numbers: Vec<u32> = patches.iter().filter_map(number).collect();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1) {
            let problem = match pair[0] == pair[1] {
                true => format!("it has two patches with the number {}: keep one version", pair[0]),
                false => format!("patch {} of the series is missing", pair[0] + 1),
            };
            return Err(wrong(path, &problem));
        }
    }
    let (patches, mails): (Vec<Patch>, Vec<Answered>) = patches.into_iter().unzip();
    Ok(Found { patches, cover, first: mails.into_iter().next() })
}

/// A text without control characters, cut to `most` characters.
fn visible(text: &str, most: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(most).collect()
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
        assert!(
            read.patches.iter().all(|patch| String::from_utf8_lossy(&patch.diff).contains(DIFF))
        );
        Ok(read.patches.into_iter().map(|patch| patch.subject).collect())
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
    fn a_series_is_known_by_its_cover_letter_or_first_patch() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(directory.path().join(name), text).unwrap();
            directory.path().join(name)
        };
        let with_id = |subject: &str, id: &str, body: &str| {
            mail(subject, body).replacen(
                "\nSubject",
                &format!("\nMessage-ID: <{id}@x>\nSubject"),
                1,
            )
        };
        let cover = with_id("[PATCH v2 0/2] mm: faster", "0", "no diff");
        let [one, two] = ["1", "2"].map(|it| with_id(&format!("[PATCH v2 {it}/2] {it}"), it, DIFF));
        let answered = |paths: &[PathBuf]| {
            let Answered { subject, mail } = read(paths).unwrap().answered;
            (subject, mail.map(|it| it.message_id))
        };
        let known = |subject: &str, id: &str| (subject.to_owned(), Some(format!("<{id}@x>")));
        let series = file("a.mbox", &[&*two, &cover, &one].concat());
        assert_eq!(answered(&[series]), known("[PATCH v2 0/2] mm: faster", "0"));
        let bare = file("b.mbox", &[two, one].concat());
        assert_eq!(answered(std::slice::from_ref(&bare)), known("[PATCH v2 1/2] 1", "1"));
        let plain = file("c.diff", DIFF);
        assert_eq!(answered(&[bare, plain]), ("c.diff".into(), None));
        // What `git format-patch --cover-letter` writes.
        let made = directory.path().join("made");
        fs::create_dir(&made).unwrap();
        fs::write(made.join("0000-cover-letter.patch"), &cover).unwrap();
        fs::write(made.join("0001-one.patch"), mail("[PATCH v2 1/1] 1", DIFF)).unwrap();
        assert_eq!(answered(&[made]), known("[PATCH v2 0/2] mm: faster", "0"));
        let alone = file("d.mbox", &cover);
        assert!(read(&[alone]).unwrap_err().to_string().ends_with(NO_PATCH));
    }

    #[test]
    fn a_name_has_the_words_of_the_subject() {
        assert_eq!(name("[PATCH v3 2/5] mm/madvise: Don't waste"), "mm-madvise-don-t-waste");
        assert_eq!(name("standard input"), "standard-input");
        assert_eq!(name("[PATCH] \u{e9}\u{202e}"), "patch");
        let long = name(&"word ".repeat(100));
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
