//! Finds the process that holds a lock.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{major, minor};
use rustix::param::clock_ticks_per_second;

/// The longest command line that is quoted, in characters.
const MOST: usize = 200;

/// A process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process ID of the holder.
    pub process: u32,
    /// Its command line, escaped. `None` if it has ended, and a program that it started holds the lock.
    pub command: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = self.process;
        match self.command.as_deref() {
            Some("") => write!(f, "process {process}"),
            Some(command) => write!(f, "process {process} (`{command}`)"),
            None => write!(f, "a program that process {process} started, which has ended itself"),
        }
    }
}

/// The other process that holds a lock for writing on one of these files. `None` if the system does not tell, such as
/// for a process in another container.
pub fn holder(paths: &[PathBuf]) -> Option<Holder> {
    (0..READS).find_map(|_| others(paths, false).into_iter().next())
}

/// How often the kernel's list of locks is read for one. It is read in pieces, and lacks an entry if others go meanwhile.
const READS: u32 = 3;

/// The other processes that wait for a lock for writing on this file, in the order of the kernel's list. Those that
/// the system does not tell are missing, such as processes in another container.
pub fn waiting(path: &Path) -> Vec<Holder> {
    others(&[path.to_owned()], true)
}

/// The other processes that hold a lock for writing on one of these files, or wait for it.
fn others(paths: &[PathBuf], wait: bool) -> Vec<Holder> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let files: Vec<Metadata> = paths.iter().filter_map(|path| fs::metadata(path).ok()).collect();
    let processes = files.iter().flat_map(|file| {
        let all = locks.lines().filter_map(|line| of_file(line, file));
        all.filter(|it| it.waits == wait && it.process != std::process::id())
    });
    let is_open = |process: u32| {
        let open = fs::read_dir(format!("/proc/{process}/fd"));
        // Descriptors of another user's process cannot be read.
        open.map_or(fs::exists(format!("/proc/{process}")).unwrap_or(false), |open| {
            let open = open.flatten().filter_map(|it| fs::metadata(it.path()).ok());
            open.into_iter().any(|it| files.iter().any(|file| is_same(&it, file)))
        })
    };
    let holder = |Entry { process, .. }| Holder {
        process,
        command: is_open(process).then(|| command(process)),
    };
    processes.map(holder).collect()
}

/// An entry of the kernel's list of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    process: u32,
    /// Whether the process waits for the lock.
    waits: bool,
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The entry of a line such as `1: FLOCK  ADVISORY  WRITE 4711 fe:00:5366760 0 EOF` (`proc_locks(5)`) if it is a
/// lock for writing on this file. Lines with `->` are of processes that wait.
fn of_file(line: &str, file: &Metadata) -> Option<Entry> {
    let waits = line.contains("->");
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "->").collect();
    let [_, _, _, "WRITE", process, place, ..] = words[..] else { return None };
    let device = format!("{:02x}:{:02x}", major(file.dev()), minor(file.dev()));
    (place == format!("{device}:{}", file.ino())).then_some(())?;
    Some(Entry { process: process.parse().ok()?, waits })
}

/// The time for which a process has run: the host's uptime (`proc_uptime(5)`) minus the uptime at the process's
/// start, field 22 of `proc_pid_stat(5)`.
pub fn age(process: u32) -> Option<Duration> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let start: f64 = rest.split_whitespace().nth(22 - 3)?.parse().ok()?;
    let age = uptime - start / clock_ticks_per_second() as f64;
    Duration::try_from_secs_f64(age.max(0.0)).ok()
}

/// The command line of a process, escaped and cut; empty if it cannot be read.
fn command(process: u32) -> String {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let mut text = escaped(words.join(" ").trim_end());
    if text.len() > MOST {
        text.truncate(MOST);
        text.push_str("...");
    }
    text
}

/// Text of another process as printable ASCII.
pub fn escaped(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        ' '..='~' => letter.to_string(),
        _ => letter.escape_default().to_string(),
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_the_line_of_a_writer_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let meta = file.as_file().metadata().unwrap();
        let device = format!("{:02x}:{:02x}", major(meta.dev()), minor(meta.dev()));
        let line = |head: &str| format!("{head} 4711 {device}:{} 0 EOF", meta.ino());
        let entry = |waits| Some(Entry { process: 4711, waits });
        assert_eq!(of_file(&line("1: FLOCK  ADVISORY  WRITE"), &meta), entry(false));
        assert_eq!(of_file(&line("2: POSIX  ADVISORY  WRITE"), &meta), entry(false));
        assert_eq!(of_file(&line("1: -> FLOCK  ADVISORY  WRITE"), &meta), entry(true));
        for head in ["1: FLOCK  ADVISORY  READ ", ""] {
            assert_eq!(of_file(&line(head), &meta), None, "{head}");
        }
        assert_eq!(of_file("1: FLOCK ADVISORY WRITE 4711 00:00:1 0 EOF", &meta), None);
    }

    #[test]
    fn a_command_line_is_escaped_and_cut() {
        let words = ["1000000".to_owned(), "\x1b[31mred\n".to_owned(), "x".repeat(999)];
        let script = ["-c", "read line"];
        let mut child = Command::new("sh");
        let child = child.args(script).args(words).stdin(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        // Until the child executes its program, it has the command line of this process.
        let said = loop {
            match command(child.id()) {
                said if said.starts_with("sh ") => break said,
                _ => std::thread::yield_now(),
            }
        };
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(said.starts_with("sh -c read line 1000000 \\u{1b}[31mred\\n xxx"), "{said}");
        assert!(said.ends_with("x...") && said.len() == MOST + 3, "{said}");
    }

    #[test]
    fn a_holder_that_ended_is_not_blamed() {
        let gone = Holder { process: 4711, command: None };
        let said = "a program that process 4711 started, which has ended itself";
        assert_eq!(gone.to_string(), said);
        assert_eq!(Holder { command: Some(String::new()), ..gone }.to_string(), "process 4711");
        assert_eq!(holder(&["/no/such/file".into()]), None);
    }
}
