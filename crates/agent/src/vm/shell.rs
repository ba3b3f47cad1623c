//! Runs an interactive shell on the console.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::process::Command;

use flight::job::SHELL_PATH;

use guest::arch::CONSOLE;

/// Runs a shell on the serial console and waits for its end. The shell has busybox's tools. Fails when there
/// is no shell in the guest, or no console.
pub fn run() -> io::Result<()> {
    let names = Command::new(SHELL_PATH).args(["--install", "-s", "/bin"]).status()?;
    if !names.success() {
        return Err(io::Error::other("busybox cannot create the links to its tools in /bin"));
    }
    let console = OpenOptions::new().read(true).write(true).open(console()?)?;
    // A new session with the console as its terminal, so that ^C reaches the programs in it.
    Command::new(SHELL_PATH)
        .args(["setsid", "-c", SHELL_PATH, "sh", "-i"])
        .stdin(console.try_clone()?)
        .stdout(console.try_clone()?)
        .stderr(console)
        .status()
        .map(drop)
}

/// The device behind `/dev/console`: the last one that the kernel lists. `/dev/console` itself cannot be a
/// session's terminal.
fn console() -> io::Result<std::path::PathBuf> {
    let active = fs::read_to_string("/sys/class/tty/console/active")?;
    let name = active.split_whitespace().last().unwrap_or(CONSOLE);
    Ok(Path::new("/dev").join(name))
}
