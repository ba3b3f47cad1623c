//! Leaves out measured boots that could not be compared in pairs. Only boots of one host form
//! pairs, so a block that another host began is not completed on this host.

use std::collections::{BTreeMap, BTreeSet};

use model::{Host, Kept, Mode, count};
use store::{Archive, Detail, ExperimentId};

use crate::due::Plan;

/// Boots that a run leaves out because another host began their blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of boots.
    pub boots: usize,
    /// The line that says so. `None` if there are none.
    pub why: Option<String>,
}

/// Does what [`leave_out`] does, with the stored boots of an experiment. In exact mode nothing is
/// left out, because boots of all hosts are comparable. Fails when the store cannot be read.
pub fn leave_out_kept(
    plan: &mut Plan,
    host: &Host,
    (store, id): (&dyn Archive, ExperimentId),
    (mode, done): (Mode, &[(String, u32)]),
) -> Result<LeftOut, store::Error> {
    if mode == Mode::Exact || plan.due.is_empty() || done.is_empty() {
        return Ok(LeftOut::default());
    }
    Ok(leave_out(plan, host, &store.boots(id, Detail::Summary)?, done))
}

/// Removes due boots whose block has a done boot of another host. `done` are the boots that are not
/// repeated, as variant and boot index.
fn leave_out(plan: &mut Plan, host: &Host, kept: &[Kept], done: &[(String, u32)]) -> LeftOut {
    let done: BTreeSet<(&str, u32)> = done.iter().map(|(name, it)| (&**name, *it)).collect();
    let mut others: BTreeMap<u32, String> = BTreeMap::new();
    for Kept { boot, .. } in kept.iter().filter(|kept| !kept.superseded) {
        let made_on = &boot.facts.provenance.host;
        if done.contains(&(&*boot.variant, boot.boot_index)) && made_on.number() != host.number() {
            others.insert(boot.block, made_on.label());
        }
    }
    let all = plan.due.len();
    let left: BTreeSet<String> =
        plan.due.iter().filter_map(|due| others.get(&due.slot.block).cloned()).collect();
    plan.due.retain(|due| !others.contains_key(&due.slot.block));
    let boots = all - plan.due.len();
    let hosts = left.into_iter().collect::<Vec<_>>().join(", ");
    let why = (boots > 0).then(|| {
        format!(
            "{} left out, of blocks that another host began ({hosts}): only boots of one host form pairs; more `boots` \
             make further blocks",
            count(boots, "boot")
        )
    });
    LeftOut { boots, why }
}

#[cfg(test)]
mod tests {
    use model::{Boot, BootId, Experiment, Variant};

    use super::*;

    fn host(digit: &str) -> Host {
        Host { id: digit.repeat(64), cpu: "EPYC".into(), ..Host::default() }
    }

    /// Returns the blocks of the boots that are due on this host, and the message. Of the five
    /// blocks, host 1 did the first two and half of the third; host 2 did half of the fourth.
    fn due(here: &Host) -> (Vec<u32>, Option<String>) {
        let variants = ["a", "b"].map(|name| Variant { name: name.into(), ..Variant::default() });
        let experiment =
            Experiment { variants: variants.into(), boots: 5, ..Experiment::default() };
        let boots = [
            ("a", 0, "1"),
            ("b", 0, "1"),
            ("b", 1, "1"),
            ("a", 1, "1"),
            ("a", 2, "1"),
            ("b", 3, "2"),
        ];
        let kept = boots.map(|(variant, block, digit)| {
            let mut boot =
                Boot { variant: variant.into(), boot_index: block, block, ..Boot::default() };
            boot.facts.provenance.host = host(digit);
            Kept { id: BootId(i64::from(block)), superseded: false, boot }
        });
        let done = boots.map(|(variant, block, _)| (variant.to_owned(), block));
        let mut plan = Plan::of(&experiment, experiment.boots, &done);
        let said = leave_out(&mut plan, here, &kept, &done);
        assert_eq!(said.boots + plan.due.len(), 4);
        (plan.due.iter().map(|due| due.slot.block).collect(), said.why)
    }

    #[test]
    fn a_block_of_another_host_is_not_completed() {
        let said = |other: &str| {
            Some(format!(
                "1 boot left out, of blocks that another host began (EPYC ({other})): only boots of one host form \
                 pairs; more `boots` make further blocks"
            ))
        };
        assert_eq!(due(&host("2")), (vec![3, 4, 4], said("11111111")));
        assert_eq!(due(&host("1")), (vec![2, 4, 4], said("22222222")));
        let (blocks, said) = due(&Host::default());
        assert_eq!(blocks, [4, 4]);
        assert!(said.unwrap().contains("(EPYC (11111111), EPYC (22222222))"));
    }
}
