//! The progress of an experiment while it runs.

use std::time::Duration;

use model::{BootId, Outcome};

/// An event to show to the user.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// A message, such as what is fetched.
    Message(&'a str),
    /// The schedule of the run.
    Plan {
        /// The number of boots in the schedule.
        boots: usize,
        /// The number of boots that need not be done, because they are done already.
        done: usize,
        /// Whether the run may end earlier.
        at_most: bool,
        /// How long the boots that are left take, by similar boots in the store; `None` if it has none.
        time: Option<Duration>,
    },
    /// A boot of the schedule begins.
    Boot {
        /// The boot's number in the schedule, from 1.
        number: usize,
        /// The name of its variant.
        variant: &'a str,
    },
    /// What a boot does now: `booting`, or workload, iteration and phase.
    Doing {
        /// The boot's number in the schedule, from 1.
        number: usize,
        /// What the boot does now.
        what: &'a str,
    },
    /// What the replay of a boot does now.
    Replaying {
        /// The number of the stored boot.
        boot: BootId,
        /// What its repetition does now.
        what: &'a str,
    },
    /// A boot was replayed.
    Replayed(&'a Replayed),
    /// A boot was stored.
    Kept {
        /// The boot's number in the schedule, from 1.
        number: usize,
        /// The name of its variant.
        variant: &'a str,
        /// The outcome of the boot.
        outcome: &'a Outcome,
        /// The time from the start of the boot to its end, with its verification.
        wall: Duration,
        /// The estimated time until the schedule is done; `None` if nothing is left, or a look may
        /// end the run.
        left: Option<Duration>,
    },
}

/// The receiver of progress.
pub type Watch<'a> = dyn FnMut(Progress<'_>) + 'a;

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The number of the stored boot.
    pub boot: BootId,
    /// The first difference to it; `None` if there is none.
    pub difference: Option<String>,
}
