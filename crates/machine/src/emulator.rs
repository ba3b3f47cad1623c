//! Finds QEMU on this host, reads its version, and checks that it has what a machine needs.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use model::Architecture;

use crate::Error;
use crate::arch::{Platform, platform};
use crate::process::Process;
use crate::words::{QUOTED, quote};

/// The oldest version with all options used here.
const OLDEST_MAJOR: u32 = 7;
/// The time limit for an answer of QEMU, such as its version, also on a busy host.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// The longest answer, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;
/// QEMU's message about a device that it was built without (`system/qdev-monitor.c`).
const UNKNOWN_DEVICE: &str = "is not a valid device model name";

/// A QEMU that can run machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    path: PathBuf,
    arch: Architecture,
    version: String,
    major: u32,
}

impl Emulator {
    /// The QEMU for an architecture in the search path. Fails when there is none, it is too old, or it lacks the
    /// device for memory shared with the host.
    pub fn find(arch: Architecture) -> Result<Self, Error> {
        Self::at(Path::new(platform(arch).program), arch)
    }

    /// The QEMU for an architecture at `path`, or with this name in the search path. Fails as [`Emulator::find`] does.
    pub fn at(path: &Path, arch: Architecture) -> Result<Self, Error> {
        Self::within(ANSWER_LIMIT, path, arch)
    }

    /// [`Emulator::at`] with a time limit for each answer of QEMU.
    fn within(limit: Duration, path: &Path, arch: Architecture) -> Result<Self, Error> {
        let fails = |why| Error::EmulatorFails { path: path.to_owned(), why };
        let answer = ask(path, &["--version"], limit).map_err(|error| match error {
            Error::Emulator { path, error } if error.kind() == io::ErrorKind::NotFound => {
                Error::NoEmulator { path, platform: platform(arch) }
            }
            other => other,
        })?;
        let line = quote(answer.output.lines().next().unwrap_or_default());
        let (version, major) = match (version(&line), answer.succeeded) {
            (Some(known), true) => known,
            (_, false) => return Err(fails(answer.failure())),
            (None, true) => return Err(Error::NoVersion { path: path.to_owned(), said: line }),
        };
        if major < OLDEST_MAJOR {
            let (path, [package, _]) = (path.to_owned(), platform(arch).packages);
            return Err(Error::OldEmulator { path, version, package });
        }
        let answer = ask(path, &["-device", "ivshmem-plain,help"], limit)?;
        match answer.succeeded {
            true => {}
            false if answer.messages.contains(UNKNOWN_DEVICE) => {
                let (path, words) = (path.to_owned(), quote(&answer.messages));
                return Err(Error::NoIvshmem { path, words });
            }
            false => return Err(fails(answer.failure())),
        }
        Ok(Self { path: path.to_owned(), arch, version, major })
    }

    /// Its own version string, such as `QEMU 10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The architecture of its guests.
    pub fn arch(&self) -> Architecture {
        self.arch
    }

    /// The platform of its guests.
    pub(crate) fn platform(&self) -> &'static Platform {
        platform(self.arch)
    }

    /// The major version.
    pub(crate) fn major(&self) -> u32 {
        self.major
    }

    /// The path of the program.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An emulator of x86-64 that is not checked.
    #[cfg(test)]
    pub(crate) fn unchecked(path: &Path, major: u32) -> Self {
        let (path, version) = (path.to_owned(), format!("QEMU {major}.0.0"));
        Self { path, arch: Architecture::X86_64, version, major }
    }

    /// The same for another architecture.
    #[cfg(test)]
    pub(crate) fn for_arch(self, arch: Architecture) -> Self {
        Self { arch, ..self }
    }
}

/// QEMU's answer to a question.
struct Answer {
    /// The command, for messages.
    command: String,
    status: ExitStatus,
    succeeded: bool,
    /// Its standard output and error.
    output: String,
    messages: String,
}

impl Answer {
    /// The exit status and the messages, as text.
    fn failure(&self) -> String {
        let words = quote(&self.messages);
        let colon = if words.is_empty() { "" } else { ": " };
        format!("`{}` ended with {}{colon}{words}", self.command, self.status)
    }
}

/// Runs QEMU for a short answer. Fails when there is no answer in time, or one that is too long.
fn ask(path: &Path, arguments: &[&str], limit: Duration) -> Result<Answer, Error> {
    let fails = |why| Error::EmulatorFails { path: path.to_owned(), why };
    let cannot = |error: io::Error| Error::Emulator { path: path.to_owned(), error };
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::unbound(command).map_err(cannot)?;
    let (sender, answers) = mpsc::channel();
    for (place, pipe) in process.outputs().into_iter().flatten().enumerate() {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.take(LONGEST_ANSWER + 1).read_to_end(&mut bytes);
            // After the limit there is no receiver, so an error is ignored.
            let _ = sender.send((place, read.map(|_| bytes)));
        });
    }
    let command = arguments.join(" ");
    let end = Instant::now() + limit;
    let late = || {
        let seconds = limit.as_secs_f64();
        fails(format!("`{command}` gave no answer within {seconds} s"))
    };
    let mut texts = [String::new(), String::new()];
    for _ in 0..texts.len() {
        let left = end.saturating_duration_since(Instant::now());
        let (place, bytes) = answers.recv_timeout(left).map_err(|_| late())?;
        let bytes = bytes.map_err(cannot)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if bytes.len() as u64 > LONGEST_ANSWER {
            let begin = quote(text.get(..QUOTED / 4).unwrap_or_default());
            let why = format!("`{command}` printed more than {LONGEST_ANSWER} bytes: {begin}...");
            return Err(fails(why));
        }
        texts[place] = text;
    }
    let status = process.end_by(end).ok_or_else(late)?;
    let [output, messages] = texts;
    Ok(Answer { command, status, succeeded: status.success(), output, messages })
}

/// Version and its first number from `QEMU emulator version 10.0.2 (Debian ...)`.
fn version(line: &str) -> Option<(String, u32)> {
    let version = line.strip_prefix("QEMU emulator version ")?;
    let major = version.split('.').next()?.parse().ok()?;
    Some((format!("QEMU {version}"), major))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::testing::script;
    use crate::run::testing::HANG;

    #[test]
    fn versions_are_read() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)";
        let expected = "QEMU 10.0.2 (Debian 1:10.0.2+ds-2)".to_owned();
        assert_eq!(version(debian), Some((expected, 10)));
        assert_eq!(version("GNU bash, version 5.2"), None);
        assert_eq!(version("QEMU emulator version x"), None);
    }

    #[test]
    fn a_missing_emulator_is_an_error_with_a_hint() {
        let error = |arch| Emulator::at(Path::new("/none/qemu"), arch).unwrap_err().to_string();
        let hint = "(Debian, Ubuntu: apt-get install qemu-system-x86; Fedora: dnf install qemu-system-x86)";
        assert!(error(Architecture::X86_64).ends_with(hint));
        let arm64 = "/none/qemu was not found: install QEMU for arm64 (`make arm64`, or Debian, Ubuntu: apt-get install \
                     qemu-system-arm; Fedora: dnf install qemu-system-aarch64)";
        assert_eq!(error(Architecture::Arm64), arm64);
    }

    #[test]
    fn an_unsuitable_emulator_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let good = "[ $1 = --version ] && echo 'QEMU emulator version 9.1.0' && exit 0";
        let no_device = "echo \"qemu: -device ivshmem-plain: 'ivshmem-plain' is not a valid device model name\" >&2";
        let cases = [
            ("echo 'QEMU emulator version 6.2.0'".to_owned(), "version 7.0 or newer"),
            ("echo 'bash 5.2'".to_owned(), "is not QEMU: `--version` printed `bash 5.2`"),
            (
                format!("{good}\n{no_device}; exit 1"),
                "RHEL and its derivatives build QEMU without it",
            ),
            (
                format!("{good}\necho 'could not load module \u{1b}[2J' >&2; exit 1"),
                "failed: `-device ivshmem-plain,help` ended with exit status: 1: could not load module  [2J",
            ),
            ("kill -KILL $$".to_owned(), "failed: `--version` ended with signal: 9"),
            (
                "echo 'libfdt.so.1: cannot open' >&2; exit 127".to_owned(),
                "exit status: 127: libfdt.so.1: cannot open",
            ),
            ("exec yes".to_owned(), "`--version` printed more than 1048576 bytes: y; y; y"),
            ("exec yes >&2".to_owned(), "`--version` printed more than 1048576 bytes: y; y; y"),
        ];
        for (body, complaint) in cases {
            let path = script(directory.path(), &body);
            let error = Emulator::at(&path, Architecture::X86_64).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
            assert!(!error.contains(char::is_control) && error.len() < 2000, "{error}");
            assert_eq!(error.contains("RHEL"), body.contains("valid device"), "{error}");
        }
    }

    #[test]
    fn an_emulator_that_hangs_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(300);
        for body in [HANG, "sleep 1000000 & exit 0", "exec >&- 2>&-; exec sleep 1000000"] {
            let path = script(directory.path(), body);
            let error = Emulator::within(limit, &path, Architecture::X86_64).unwrap_err();
            let told = "failed: `--version` gave no answer within 0.3 s";
            assert!(error.to_string().ends_with(told), "{error}");
        }
    }
}
