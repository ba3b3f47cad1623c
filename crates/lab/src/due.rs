//! Finds the boots of a schedule that are not done.

use std::collections::HashSet;

use model::Experiment;
use plan::schedule::{Slot, schedule};

use crate::failures::{Failed, GivenUp};

/// The boots of an experiment that are still to be done.
pub struct Plan {
    /// The number of boots in the schedule, done or not, with those of later runs.
    pub boots: usize,
    /// The number of boots that later runs do.
    pub later: usize,
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
    /// boot index. This run does the first `now` boots of each variant, later runs the others.
    pub fn of(experiment: &Experiment, now: u32, done: &[(String, u32)]) -> Self {
        let slots = schedule(experiment.variants.len(), experiment.boots);
        let done: HashSet<(&str, u32)> = done.iter().map(|(name, it)| (&**name, *it)).collect();
        let is_done = |slot: &Slot| {
            let name = &*experiment.variants[slot.variant].name;
            done.contains(&(name, slot.boot_index))
        };
        let boots = slots.len();
        let open = (1..).zip(slots).filter(|(_, slot)| !is_done(slot));
        let open = open.map(|(number, slot)| Due { number, slot });
        let (due, later): (Vec<Due>, Vec<Due>) = open.partition(|it| it.slot.boot_index < now);
        Self { boots, later: later.len(), due }
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

#[cfg(test)]
mod tests {
    use model::Variant;

    use super::*;

    #[test]
    fn boots_of_later_runs_are_counted_and_not_due() {
        let named = |name: &str| Variant { name: name.into(), ..Variant::default() };
        let experiment = Experiment {
            variants: ["a", "b"].map(named).into(),
            boots: 5,
            ..Experiment::default()
        };
        let done = [("a".to_owned(), 0), ("b".to_owned(), 0), ("b".to_owned(), 4)];
        let first = Plan::of(&experiment, 3, &done);
        assert_eq!((first.boots, first.due.len(), first.later), (10, 4, 3));
        let all = Plan::of(&experiment, 5, &done);
        assert_eq!((all.boots, all.due.len(), all.later), (10, 7, 0));
        assert_eq!(first.due, all.due[..4]);
    }
}
