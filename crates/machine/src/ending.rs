//! How a machine ended.

use std::fmt;
use std::time::Duration;

use model::Millis;

/// How a machine ended, seen from outside. Its recording is in its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub how: How,
    /// From the start of QEMU to its end.
    pub wall: Duration,
    /// Other anomalies, as text: the guest was stopped at the end, QEMU survived its kill.
    pub remarks: Vec<String>,
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
    /// QEMU ended, but not through the guest: its exit status, and its last messages.
    Died(String),
    /// QEMU crashed (an assertion, a wild pointer), or somebody killed it. Exit status and last messages.
    Crashed(String),
}

/// A time limit, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// From the start of QEMU to the agent's first frame.
    Boot(Millis),
    /// From there to the agent's last frame.
    Run(Millis),
    /// From there to the end of QEMU.
    Shutdown(Millis),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot(limit) => write!(f, "the agent was not up {limit} after the start"),
            Self::Run(limit) => write!(f, "the job was not done {limit} after the agent was up"),
            Self::Shutdown(limit) => {
                write!(f, "the machine was not off {limit} after the job was done")
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
            Self::Died(how) | Self::Crashed(how) => f.write_str(how),
        }
    }
}
