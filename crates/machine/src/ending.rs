//! The end of a machine, as the host sees it.

use std::fmt;
use std::time::Duration;

use model::Millis;

/// The end of a machine, as the host observed it. The recording is in the machine's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The kind of end.
    pub how: How,
    /// The time from the start of QEMU to its end.
    pub wall: Duration,
    /// Other anomalies as text: the guest was stopped at the end, or QEMU survived SIGKILL.
    pub remarks: Vec<String>,
    /// How much CPU time QEMU had or waited for, if a limit expired.
    pub time: Option<String>,
}

/// Why a machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The guest powered the machine off.
    PoweredOff,
    /// The guest reset the machine, as it does after a panic.
    Reset,
    /// A limit expired, and QEMU was killed.
    TimedOut(Limit),
    /// All CPUs of an exact machine wait for an interrupt, and no timer is set that could raise one. QEMU was
    /// killed.
    Halted,
    /// The host is to blame, for this reason: it did not let an exact machine run for very long, or left another
    /// machine so little CPU time that a limit expired. QEMU was killed.
    Stalled(String),
    /// QEMU ended without a cause in the guest. The text has its exit status and last messages.
    Died(String),
    /// QEMU crashed (an assertion, a wild pointer) or was killed. The text has its exit status and last messages.
    Crashed(String),
}

/// A time limit, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// From the start of QEMU to the agent's first frame.
    Boot(Time),
    /// From the agent's first frame to its last one.
    Run(Time),
    /// From the agent's last frame to the end of QEMU.
    Shutdown(Time),
}

/// A length of time by one of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Time of the host.
    Wall(Millis),
    /// CPU time of QEMU, all its threads together.
    Cpu(Millis),
}

impl Time {
    /// The length in milliseconds, whatever the clock.
    pub fn length(self) -> Duration {
        let (Self::Wall(time) | Self::Cpu(time)) = self;
        Duration::from_millis(time.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wall(time) => time.fmt(f),
            Self::Cpu(time) => write!(f, "{time} of CPU time"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot(limit) => write!(f, "the agent did not start within {limit}"),
            Self::Run(limit) => {
                write!(f, "the job was not complete {limit} after the agent started")
            }
            Self::Shutdown(limit) => {
                write!(f, "the machine did not power off within {limit} after the job")
            }
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoweredOff => f.write_str("powered off"),
            Self::Reset => f.write_str("reset itself"),
            Self::TimedOut(limit) => limit.fmt(f),
            Self::Halted => f.write_str("all CPUs of the guest are halted, and no timer is set"),
            Self::Stalled(how) | Self::Died(how) | Self::Crashed(how) => f.write_str(how),
        }
    }
}
