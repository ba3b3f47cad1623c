//! Reads from the store which functions of the kernel an experiment executed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use code::Symbol;
use model::Place;
use store::{Archive, Detail, ExperimentId};

/// Returns the functions that the complete boots of an experiment of exact mode executed, by their names without suffixes
/// of the compiler. Fails when the store cannot be read.
pub fn executed(store: &dyn Archive, id: ExperimentId) -> Result<BTreeSet<String>, store::Error> {
    let mut executed = BTreeSet::new();
    store.each_boot(id, Detail::Profiles(&[]), &mut |kept| {
        let profiles = kept.boot.profiles.iter().filter(|_| kept.boot.outcome.counts());
        for place in profiles.flat_map(|profile| profile.costs.places()) {
            if let Place::Function { name, .. } = place {
                let name = Symbol::of(name).name;
                if !executed.contains(name) {
                    executed.insert(name.to_owned());
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(executed)
}
