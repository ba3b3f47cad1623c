//! Runs the host's programs that this crate needs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::Error;

/// A program of the host.
pub(crate) struct Tool {
    /// Its file name.
    pub name: &'static str,
    /// How to install it.
    pub hint: &'static str,
}

const NO_APT: &str = "Debian's kernels are fetched with apt; on a host without it add a kernel with \
                      `faultline kernel add --image FILE`";

pub(crate) const APT_GET: Tool = Tool { name: "apt-get", hint: NO_APT };
pub(crate) const APT_HELPER: Tool = Tool { name: "/usr/lib/apt/apt-helper", hint: NO_APT };
pub(crate) const APT_CACHE: Tool = Tool { name: "apt-cache", hint: NO_APT };
pub(crate) const DPKG_DEB: Tool = Tool { name: "dpkg-deb", hint: "install the package dpkg" };
pub(crate) const GCC: Tool = Tool { name: "gcc", hint: "install the package gcc" };
pub(crate) const CLANG: Tool =
    Tool { name: "clang", hint: "install the packages clang, lld and llvm" };
pub(crate) const MAKE: Tool = Tool { name: "make", hint: "install the package make" };
pub(crate) const GIT: Tool = Tool { name: "git", hint: "install the package git" };
pub(crate) const DEPMOD: Tool = Tool { name: "depmod", hint: "install the package kmod" };

impl Tool {
    /// A command for the program, without arguments. Ordinary users often lack the directory of `depmod` in
    /// PATH.
    pub fn command(&self) -> Command {
        let mut path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        path.push(":/usr/sbin:/sbin");
        let mut command = Command::new(self.name);
        command.env("PATH", path).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// Runs the program with arguments, and kills it if it takes longer than `limit`. Fails when it is not installed,
    /// fails or takes longer.
    pub fn run_within(
        &self,
        limit: Duration,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<String, Error> {
        let plain = self.command();
        let mut command = Command::new("timeout");
        let seconds = limit.as_secs_f64().to_string();
        command.args(["--foreground", "--signal=KILL", &seconds, self.name]).args(arguments);
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = self.start(command.stdin(Stdio::null()))?;
        match output.status.code() {
            Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Some(127) => Err(Error::NoTool { tool: self.name, hint: self.hint }),
            Some(124 | 137) => {
                let problem = format!("it was killed after {} s, its limit", limit.as_secs());
                Err(Error::Tool { tool: self.name, problem })
            }
            _ => Err(self.failed(&output)),
        }
    }

    /// Runs `command` to its end and returns its output as it is. Fails when the program is not installed or
    /// fails.
    pub fn output(&self, command: &mut Command) -> Result<Vec<u8>, Error> {
        let output = self.start(command)?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(self.failed(&output)),
        }
    }

    fn start(&self, command: &mut Command) -> Result<Output, Error> {
        tracing::debug!("starts {command:?}");
        let output = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoTool { tool: self.name, hint: self.hint },
            _ => Error::Io { doing: "start", path: self.name.into(), source: error },
        })?;
        tracing::debug!("{} ended with {}", self.name, output.status);
        Ok(output)
    }

    /// Runs `command` to its end and returns its output as text. Fails when the program is not installed or
    /// fails.
    pub fn run(&self, command: &mut Command) -> Result<String, Error> {
        self.try_run(command)?.map_err(|failed| self.failed(&failed))
    }

    /// Like [`Tool::run`], but a failure is returned as the output of the program. Fails when the program is
    /// not installed.
    pub fn try_run(&self, command: &mut Command) -> Result<Result<String, Output>, Error> {
        let output = self.start(command)?;
        Ok(match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(output),
        })
    }

    /// The error for a program's failure.
    pub fn failed(&self, output: &Output) -> Error {
        let said = String::from_utf8_lossy(&output.stderr);
        let problem = match complaint(&said) {
            _ if output.status.signal().is_some() => output.status.to_string(),
            complaint if complaint.is_empty() => output.status.to_string(),
            complaint => complaint,
        };
        Error::Tool { tool: self.name, problem }
    }
}

/// Whether a program is in PATH.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|place| place.join(program).is_file())
}

/// LLVM's programs of a kernel's build, without suffixes, and the Debian packages that have them.
pub(crate) const LLVM: [(&str, &str); 3] =
    [("clang", "clang"), ("ld.lld", "lld"), ("llvm-nm", "llvm")];

/// The word for `make` that chooses LLVM's programs with this suffix
/// (`Documentation/kbuild/llvm.rst`).
pub(crate) fn llvm(suffix: &str) -> String {
    format!("LLVM={}", if suffix.is_empty() { "1" } else { suffix })
}

/// Messages of failures of the host (no space, no permission, killed). They are the C library's for ENOSPC, EDQUOT,
/// EACCES, EPERM, EROFS, EIO, ENOMEM, EMFILE, ENFILE and EAGAIN (errno(3)), git's for a full disk, the compiler's for
/// lack of memory and for a signal, and ours for a signal.
const OF_HOST: [&str; 13] = [
    "No space left on device",
    "Out of diskspace",
    "Disk quota exceeded",
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Input/output error",
    "Cannot allocate memory",
    "Too many open files",
    "Resource temporarily unavailable",
    "out of memory",
    "Killed",
    "signal: ",
];

/// Whether a message is about the host, not the program's input.
pub(crate) fn is_of_host(complaint: &str) -> bool {
    OF_HOST.iter().any(|words| complaint.contains(words))
}

/// The essential part of the messages: the first of apt's errors, or an error of the host, or the first of a
/// compiler's errors, or else the last lines.
fn complaint(said: &str) -> String {
    let error = said.lines().find_map(|line| line.strip_prefix("E: "));
    let error = error.or_else(|| said.lines().find(|line| is_of_host(line)));
    let error = error.or_else(|| said.lines().find(|line| line.contains(" error: ")));
    let error = error.or_else(|| said.lines().find(|line| line.starts_with("fatal: ")));
    if let Some(error) = error {
        return error.trim().to_owned();
    }
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Tool = Tool { name: "sh", hint: "" };

    #[test]
    fn failures_quote_the_program() {
        let run = |script| SHELL.run(SHELL.command().args(["-c", script]));
        assert_eq!(run("echo out").unwrap(), "out\n");
        let failed = run("echo noise >&2; echo 'E: no such suite' >&2; exit 100").unwrap_err();
        assert_eq!(failed.to_string(), "sh failed: no such suite");
        let failed = run("echo 'x.c:1:2: error: no ;' >&2; echo 'make: *** Error 1' >&2; exit 2");
        assert_eq!(failed.unwrap_err().to_string(), "sh failed: x.c:1:2: error: no ;");
        assert_eq!(run("exit 3").unwrap_err().to_string(), "sh failed: exit status: 3");
        let failed = run("echo noise >&2; kill -KILL $$").unwrap_err().to_string();
        assert!(failed.contains("signal: 9") && is_of_host(&failed), "{failed}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let long = Duration::from_secs(100);
        let run = |limit, script| SHELL.run_within(limit, ["-c", script]);
        assert_eq!(run(long, "echo out").unwrap(), "out\n");
        let failed = run(long, "echo 'E: no' >&2; exit 3").unwrap_err();
        assert_eq!(failed.to_string(), "sh failed: no");
        let killed = run(Duration::from_millis(50), "exec sleep 100").unwrap_err();
        assert_eq!(killed.to_string(), "sh failed: it was killed after 0 s, its limit");
        let none = Tool { name: "no-such-program-here", hint: "install it" };
        let error = none.run_within(long, [""; 0]).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program-here is not installed: install it");
    }

    #[test]
    fn a_missing_program_has_a_hint() {
        let tool = Tool { name: "no-such-program-here", hint: "install it" };
        let error = tool.run(&mut tool.command()).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program-here is not installed: install it");
    }
}
