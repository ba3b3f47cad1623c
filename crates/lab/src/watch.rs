//! Progress of an experiment while it runs.

use std::time::Duration;

use model::{BootId, Outcome};

/// An event to show to the user.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// A message, such as what is fetched.
    Message(&'a str),
    /// How many boots there are, and how many were done before.
    Plan {
        /// All boots of the experiment.
        boots: usize,
        /// Boots that an earlier run did.
        done: usize,
    },
    /// A boot of the schedule begins.
    Boot {
        /// Its number among all boots, from 1.
        number: usize,
        /// The name of its variant.
        variant: &'a str,
    },
    /// What a boot does now: `booting`, or workload, iteration and phase.
    Doing {
        /// Its number among all boots, from 1.
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
    /// The boot is stored.
    Kept {
        /// Its number among all boots, from 1.
        number: usize,
        /// The name of its variant.
        variant: &'a str,
        /// The outcome of the boot.
        outcome: &'a Outcome,
        /// How long it took.
        wall: Duration,
        /// How long the rest will take at this pace; `None` before the first boot.
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
