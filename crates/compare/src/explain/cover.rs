//! Which workloads execute the functions that differ between two kernels, by stored profiles of exact mode.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use code::{Change, CodeDifference, Piece, Symbol};
use model::{Boot, ENTRIES, Place};
use serde::Serialize;

/// Collects the entries of functions that differ, boot by boot.
#[derive(Debug)]
pub struct CoverageBuilder<'a> {
    difference: &'a CodeDifference,
    places: HashMap<&'a str, usize>,
    workloads: BTreeMap<String, Entered>,
    boots: usize,
}

/// What one workload entered: the entries by the function's index in the difference, from the boot with the most.
#[derive(Debug, Default)]
struct Entered {
    experiment: String,
    functions: BTreeMap<usize, u64>,
}

/// The functions that differ and the workloads that enter them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Number of boots with profiles.
    pub boots: usize,
    /// The workloads that ran in these boots. The first one enters the most functions. Each further one enters the
    /// most functions that none before it enters.
    pub workloads: Vec<WorkloadCoverage>,
    /// The functions that differ. Functions that are entered come first, by descending entries; the others follow in
    /// the order of the difference.
    pub functions: Vec<FunctionCoverage>,
}

/// How many functions that differ one workload enters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkloadCoverage {
    /// The workload's name.
    pub name: String,
    /// The latest experiment in which it ran.
    pub experiment: String,
    /// Number of functions that differ and that it enters.
    pub functions: usize,
    /// Number of these functions that no workload before it enters.
    pub adds: usize,
}

/// A function that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// The function's name, without a compiler's suffixes.
    pub name: String,
    /// How its code differs.
    pub change: Change,
    /// The workloads that enter it, and how often in one boot, the largest number first. A function that
    /// is only jumped into has 0 entries.
    pub entered: Vec<(String, u64)>,
}

impl<'a> CoverageBuilder<'a> {
    /// Starts with no boots.
    pub fn of(difference: &'a CodeDifference) -> Self {
        let functions = difference.functions.iter().enumerate();
        let places = functions.map(|(place, it)| (&*it.name, place)).collect();
        Self { difference, places, workloads: BTreeMap::new(), boots: 0 }
    }

    /// Adds the profiles of a boot of an experiment. Boots that are not complete do not count.
    pub fn add(&mut self, experiment: &str, boot: &Boot) {
        if !boot.outcome.is_complete() || boot.profiles.is_empty() {
            return;
        }
        self.boots += 1;
        let mut own = BTreeMap::<&str, BTreeMap<usize, u64>>::new();
        for profile in &boot.profiles {
            let entered = own.entry(&profile.workload).or_default();
            let entries = profile.costs.number(ENTRIES);
            for row in profile.costs.rows() {
                let Place::Function { name, module } = row.place else { continue };
                let symbol = Symbol::of(name);
                let place = self.places.get(symbol.name).filter(|_| module.is_empty());
                let Some(&place) = place else { continue };
                let count = u64::try_from(row.sum(entries)).unwrap_or(u64::MAX);
                let entries = if symbol.piece == Piece::Cold { 0 } else { count };
                let sum = entered.entry(place).or_default();
                *sum = sum.saturating_add(entries);
            }
        }
        for (workload, functions) in own {
            let known = self.workloads.entry(workload.to_owned()).or_default();
            known.experiment = experiment.to_owned();
            for (place, entries) in functions {
                let most = known.functions.entry(place).or_default();
                *most = entries.max(*most);
            }
        }
    }

    /// The coverage by all boots that were added.
    pub fn coverage(mut self) -> Coverage {
        let functions = self.difference.functions.iter().enumerate();
        let mut functions: Vec<FunctionCoverage> = functions
            .map(|(place, it)| {
                let of = |(name, entered): (&String, &Entered)| {
                    Some((name.clone(), *entered.functions.get(&place)?))
                };
                let mut entered: Vec<_> = self.workloads.iter().filter_map(of).collect();
                entered.sort_by_key(|(_, entries)| Reverse(*entries));
                FunctionCoverage { name: it.name.clone(), change: it.change, entered }
            })
            .collect();
        functions.sort_by_key(|it| Reverse(it.entered.first().map(|(_, entries)| *entries)));
        let mut workloads = Vec::new();
        let mut covered = vec![false; functions.len()];
        let new = |it: &Entered, covered: &[bool]| {
            it.functions.keys().filter(|place| !covered[**place]).count()
        };
        loop {
            let best = self.workloads.iter().max_by_key(|(name, it)| {
                (new(it, &covered), it.functions.len(), Reverse((*name).clone()))
            });
            let Some(name) = best.map(|(name, _)| name.clone()) else { break };
            let Some(it) = self.workloads.remove(&name) else { break };
            let (adds, functions) = (new(&it, &covered), it.functions.len());
            it.functions.keys().for_each(|place| covered[*place] = true);
            workloads.push(WorkloadCoverage { name, experiment: it.experiment, functions, adds });
        }
        Coverage { boots: self.boots, workloads, functions }
    }
}

#[cfg(test)]
mod tests {
    use code::{Function, Instrumentation, Size};
    use model::{Cell, Cost, CostTable, INSTRUCTIONS, Outcome, Profile};

    use super::*;

    fn difference(names: &[&str]) -> CodeDifference {
        let function = |name: &&str| Function {
            name: (*name).into(),
            change: Change::Changed,
            base: Size::default(),
            new: Size::default(),
            removed: 0,
            added: 0,
            inlined: None,
            instrumentation: Instrumentation::default(),
        };
        CodeDifference {
            functions: names.iter().map(function).collect(),
            ..CodeDifference::default()
        }
    }

    /// A boot in which workloads enter functions: workload, symbol, module, entries.
    fn boot(entered: &[(&str, &str, &str, u64)]) -> Boot {
        let profile = |&(workload, name, module, entries): &(&str, &str, &str, u64)| {
            let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
            let function = Place::Function { name: name.into(), module: module.into() };
            costs.push(function, [Cell::new(0, 0, 9), Cell::new(1, 0, entries)]);
            Profile { workload: workload.into(), costs, ..Profile::default() }
        };
        let profiles = entered.iter().map(profile).collect();
        Boot { outcome: Outcome::Complete, profiles, ..Boot::default() }
    }

    #[test]
    fn workloads_are_ranked_by_what_they_add() {
        let difference = difference(&["a", "b", "c", "d", "none"]);
        let mut covering = CoverageBuilder::of(&difference);
        covering.add(
            "one",
            &boot(&[
                ("large", "a", "", 5),
                ("large", "a.part.0", "", 1),
                ("large", "b.isra.0", "", 2),
                ("large", "c.cold", "", 7),
                ("small", "d", "", 1),
                ("near", "a", "", 50),
                ("near", "b", "", 1),
                ("near", "none", "ext4", 9),
                ("near", "other", "", 9),
            ]),
        );
        covering.add("two", &boot(&[("large", "a", "", 9)]));
        let failed = Boot { outcome: Outcome::Failed("x".into()), ..boot(&[("x", "none", "", 1)]) };
        covering.add("three", &failed);
        let coverage = covering.coverage();
        assert_eq!(coverage.boots, 2);
        let of =
            |it: &WorkloadCoverage| (it.name.clone(), it.experiment.clone(), it.functions, it.adds);
        let covers = |name: &str, experiment: &str, functions, adds| {
            (name.to_owned(), experiment.to_owned(), functions, adds)
        };
        assert_eq!(
            coverage.workloads.iter().map(of).collect::<Vec<_>>(),
            [
                covers("large", "two", 3, 3),
                covers("small", "one", 1, 1),
                covers("near", "one", 2, 0)
            ]
        );
        let entered = |name: &str| {
            let it = coverage.functions.iter().find(|it| it.name == name).unwrap();
            it.entered.iter().map(|(name, entries)| (&**name, *entries)).collect::<Vec<_>>()
        };
        assert_eq!(entered("a"), [("near", 50), ("large", 9)]);
        assert_eq!(entered("b"), [("large", 2), ("near", 1)]);
        assert_eq!(entered("c"), [("large", 0)]);
        assert_eq!(entered("none"), []);
        let order: Vec<_> = coverage.functions.iter().map(|it| &*it.name).collect();
        assert_eq!(order, ["a", "b", "d", "c", "none"]);
    }
}
