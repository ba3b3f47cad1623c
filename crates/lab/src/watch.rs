//! Progress of an experiment while it runs.

use std::time::Duration;

use model::{BootId, Outcome};

use crate::replay::Replayed;

/// Something that happened, for people to see.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// A remark: what is fetched, which emulation is used.
    Remark(&'a str),
    /// How many boots there are, and how many of them were done before.
    Plan {
        /// All boots of the experiment.
        boots: usize,
        /// Boots that an earlier run did.
        done: usize,
    },
    /// A boot begins.
    Boot {
        /// Its number among all boots, from 1.
        number: usize,
        /// The variant.
        variant: &'a str,
    },
    /// What a boot does now: `booting`, or workload, iteration and phase.
    Doing {
        /// Its number among all boots, from 1.
        number: usize,
        /// What it does.
        what: &'a str,
    },
    /// What the replay of a boot does now.
    Replaying {
        /// The boot that is kept.
        boot: BootId,
        /// What it does.
        what: &'a str,
    },
    /// A boot was replayed.
    Replayed(&'a Replayed),
    /// The boot is kept in the store.
    Kept {
        /// Its number among all boots, from 1.
        number: usize,
        /// The variant.
        variant: &'a str,
        /// How it ended.
        outcome: &'a Outcome,
        /// How long it took.
        wall: Duration,
        /// How long the rest will take if it goes on like this; none before the first boot.
        left: Option<Duration>,
    },
}

/// The receiver of progress.
pub type Watch<'a> = dyn FnMut(Progress<'_>) + 'a;
