//! The times of a program with all its children.

use std::error::Error;
use std::fs;
use std::io;
use std::ops::{Add, AddAssign, Div};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// User and system time.
    pub cpu: f64,
    /// Wall time from start to end.
    pub wall: f64,
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, wall: self.wall + other.wall }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Div<f64> for Spent {
    type Output = Self;

    fn div(self, number: f64) -> Self {
        Self { cpu: self.cpu / number, wall: self.wall / number }
    }
}

/// Runs `command` to its end; its output is discarded.
pub fn measure(command: &mut Command) -> Result<Spent, Box<dyn Error>> {
    let (start, before) = (Instant::now(), children()?);
    let output = command.stdin(Stdio::null()).output()?;
    let spent = Spent { cpu: children()? - before, wall: start.elapsed().as_secs_f64() };
    if output.status.success() && !output.stdout.is_empty() {
        return Ok(spent);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}, said `{}`", output.status, said.trim()).into())
}

/// CPU seconds of all children that have ended, and of theirs (`proc_pid_stat(5)`, `cutime` and
/// `cstime`).
fn children() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<_, _>>().map_err(io::Error::other)?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
