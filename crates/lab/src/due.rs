//! Finds the boots of a schedule that are not done.

use std::collections::HashSet;

use model::Experiment;
use plan::schedule::{Slot, schedule};

use crate::failures::{Failed, GivenUp};

/// The boots of an experiment that are still to be done.
pub struct Plan {
    /// The number of boots in the schedule, done or not.
    pub boots: usize,
    /// The boots that are not done, in the order of the schedule.
    pub due: Vec<Due>,
}

/// A boot that is in the schedule and not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The boot's number in the schedule, from 1.
    pub number: usize,
    /// The boot's variant, boot index and block.
    pub slot: Slot,
}

impl Plan {
    /// Makes the schedule of an experiment, without the boots in `done`, each given as variant and
    /// boot index.
    pub fn of(experiment: &Experiment, done: &[(String, u32)]) -> Self {
        let slots = schedule(experiment.variants.len(), experiment.boots);
        let done: HashSet<(&str, u32)> = done.iter().map(|(name, it)| (&**name, *it)).collect();
        let is_done = |slot: &Slot| {
            let name = &*experiment.variants[slot.variant].name;
            done.contains(&(name, slot.boot_index))
        };
        let boots = slots.len();
        let due = (1..).zip(slots).filter(|(_, slot)| !is_done(slot));
        Self { boots, due: due.map(|(number, slot)| Due { number, slot }).collect() }
    }

    /// Leaves out the boots of variants that had a failed boot. Returns the variants for which
    /// boots were left out.
    pub fn give_up(&mut self, failed: Vec<Failed>) -> Vec<GivenUp> {
        let given_up = failed.into_iter().filter_map(|failed| {
            let all = self.due.len();
            self.due.retain(|due| due.slot.variant != failed.variant);
            failed.without(all - self.due.len())
        });
        given_up.collect()
    }
}
