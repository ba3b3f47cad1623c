//! The profile of one phase. In exact mode it has counts of executed instructions and of accesses. In measured mode
//! it has samples of what was running.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::costs::{
    ALL_CPUS, Cell, Cost, CostTable, ENTRIES, INSTRUCTIONS, Name, Place, Privilege, SAMPLES, Target,
};
use crate::memory_model::{self, MemoryModel};

/// The metrics that Faultline fills itself, in any mode. No workload may report them, because its samples would be
/// added to the counts.
pub const RESERVED_METRICS: [&str; 2] = [INSTRUCTIONS, ENTRIES];
/// The suffix of the names of rows of instructions outside all phases.
pub const NO_PHASE: &str = "-no-phase";
/// What is printed, and asked for, in place of the empty name of what is outside all phases.
pub const OUTSIDE_PHASES: &str = "(no phase)";
/// The suffix of the names of rows of instructions at equal entries.
pub const EQUAL_ENTRIES: &str = "-equal-entries";
/// The source of the series of accesses.
pub const ACCESSES_SOURCE: &str = "accesses";
/// Columns of the accesses' series: loads and stores since the phase began (0 in the first row), served by
/// each CPU's own node and by other nodes.
pub const ACCESSES_COLUMNS: [&str; 4] =
    ["user-local", "user-remote", "kernel-local", "kernel-remote"];

/// Whether a metric would have a row that belongs to one of the [`RESERVED_METRICS`], such as `instructions-kernel`.
pub fn is_reserved(metric: &str) -> bool {
    RESERVED_METRICS.iter().any(|reserved| {
        let rest = metric.strip_prefix(reserved);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Whether rows of a phase would have the names of other rows that Faultline makes, such as
/// `instructions-kernel-no-phase`.
pub fn is_reserved_phase(phase: &str) -> bool {
    [NO_PHASE, EQUAL_ENTRIES].iter().any(|end| phase.ends_with(end) || phase == &end[1..])
}

/// The default number of samples per second and CPU. It is not 100, so that samples are not taken in step with
/// timers.
pub const FREQUENCY: u32 = 99;
/// The most samples per second and CPU.
pub const MAX_FREQUENCY: u32 = 10_000;

/// The costs of a profile. In exact mode it says what is counted besides instructions, in measured mode whether there
/// is a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiling {
    /// Loads and stores by CPU and node. Counting them makes a boot take about three times as long.
    pub accesses: bool,
    /// Instructions by call path.
    pub stacks: bool,
    /// Lines of memory that CPUs take from each other, by function and by field.
    #[serde(skip_serializing_if = "is_false")]
    pub transfers: bool,
    /// Misses in a model of caches and TLBs, by function.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "memory_model::asked")]
    pub memory_model: Option<MemoryModel>,
    /// The kernel functions whose executions are kept by instruction, by their names without suffixes of compilers.
    /// All executions are counted in any case, so this does not change a count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// Samples of the running code, in measured mode.
    #[serde(skip_serializing_if = "is_false")]
    pub sampled: bool,
    /// Samples per second and CPU; `None` for [`FREQUENCY`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency: Option<u32>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Profiling {
    /// Whether nothing besides instructions and entries is recorded.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Samples per second and CPU; `None` if there are no samples.
    pub fn samples(&self) -> Option<u32> {
        self.sampled.then(|| self.frequency.unwrap_or(FREQUENCY))
    }
}

/// The profile of one phase. A boot's list has each phase of each iteration once, in order of time. Time
/// between iterations is not profiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The workload's name.
    pub workload: String,
    /// Number of the iteration in the boot, from 0.
    pub iteration: u32,
    /// The phase's name; empty before the first.
    pub phase: String,
    /// The costs. An exact profile has instructions and entries, and loads and stores if they were counted. A sampled
    /// profile has samples of all CPUs together.
    ///
    /// Places are in this order: memory, paths, processes, functions, instructions of functions, privileges. The costs
    /// of functions add up to those of the kernel, and so do the costs of paths if calls were followed. Code that no
    /// symbol covers is in functions with names in brackets. Functions are sorted by name and module, paths by their
    /// functions, instructions by address.
    pub costs: CostTable,
    /// How it was sampled; `None` for an exact profile.
    #[serde(default)]
    pub sampled: Option<Sampled>,
}

/// How a profile was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// The event that triggers samples, by perf's name: `cycles` or `cpu-clock`.
    pub event: String,
    /// Samples per second and CPU.
    pub frequency: u32,
    /// Guest time at which the phase began, in nanoseconds.
    pub begun: u64,
    /// Guest time at which the phase ended, in nanoseconds.
    pub ended: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Samples that the agent had no room for.
    pub dropped: u64,
    /// The samples over time, in order.
    pub slices: Vec<Slice>,
}

/// The samples between two times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Guest time at its end, in nanoseconds. It begins where the previous one ends.
    pub ended: u64,
    /// Samples by place, a call path or a process, as an index into [`CostTable::places`].
    pub samples: Vec<(u32, u32)>,
}

/// A cost by privilege.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The cost of programs in user mode.
    pub user: u64,
    /// The cost of the kernel.
    pub kernel: u64,
    /// The cost of firmware.
    pub firmware: u64,
}

impl Totals {
    /// The cost of all privileges.
    pub fn total(&self) -> u64 {
        self.user.saturating_add(self.kernel).saturating_add(self.firmware)
    }
}

/// The accesses of one privilege to one target.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRow<'a> {
    /// The privilege of the instructions that access it.
    pub privilege: Privilege,
    /// The memory.
    pub target: Target,
    /// The loads and stores by CPU.
    pub cells: &'a [Cell],
}

impl Profile {
    /// The name of the cost that says how long something ran: instructions, or samples in a sampled profile.
    pub fn main_cost(&self) -> &'static str {
        if self.sampled.is_some() { SAMPLES } else { INSTRUCTIONS }
    }

    /// The main cost of all CPUs together.
    pub fn totals(&self) -> Totals {
        let sum = |privilege| {
            let sum = self.costs.sum(self.main_cost(), |place| *place == Place::All(privilege));
            u64::try_from(sum).unwrap_or(u64::MAX)
        };
        Totals {
            user: sum(Privilege::User),
            kernel: sum(Privilege::Kernel),
            firmware: sum(Privilege::Firmware),
        }
    }

    /// The memory that was accessed; empty if loads and stores were not counted.
    pub fn memory(&self) -> impl Iterator<Item = MemoryRow<'_>> {
        self.costs.rows().map_while(|row| match row.place {
            Place::Memory(privilege, target) => {
                Some(MemoryRow { privilege: *privilege, target: *target, cells: row.cells })
            }
            _ => None,
        })
    }

    /// The part of a sampled profile from a time on. Slices that begin earlier are left out. The numbers of lost
    /// samples remain those of the phase. `None` for an exact profile.
    pub fn since(&self, time: u64) -> Option<Self> {
        let sampled = self.sampled.as_ref()?;
        let begins = std::iter::once(sampled.begun).chain(sampled.slices.iter().map(|it| it.ended));
        let later = sampled.slices.iter().zip(begins).filter(|(_, begun)| *begun >= time);
        let begun = later.clone().map(|(_, begun)| begun).next().unwrap_or(sampled.ended);
        let slices: Vec<Slice> = later.map(|(slice, _)| slice.clone()).collect();
        let mut samples = vec![0_u64; self.costs.places().len()];
        for (place, taken) in slices.iter().flat_map(|slice| &slice.samples) {
            if let Some(sum) = samples.get_mut(*place as usize) {
                *sum = sum.saturating_add((*taken).into());
            }
        }
        let is_sampled = |place: &&Place| matches!(place, Place::Path(_) | Place::Process { .. });
        let places = self.costs.places().iter().take_while(is_sampled).cloned().zip(samples);
        let module = |name: &str| {
            self.costs.places().iter().find_map(|place| match place {
                Place::Function { name: own, module } if **own == *name => Some(module.clone()),
                _ => None,
            })
        };
        Some(Self {
            costs: Self::sampled_costs(places, |name| module(name).unwrap_or_default()),
            sampled: Some(Sampled { begun, slices, ..sampled.clone() }),
            ..self.clone()
        })
    }

    /// The costs of a sampled profile from the samples of its call paths and then its processes. `module` gives the
    /// module of a function.
    pub fn sampled_costs(
        samples: impl IntoIterator<Item = (Place, u64)>,
        module: impl Fn(&str) -> Name,
    ) -> CostTable {
        let mut table = CostTable::new([Cost::new(SAMPLES)]);
        let mut functions = BTreeMap::<Name, u64>::new();
        let (mut user, mut kernel) = (0_u64, 0_u64);
        for (place, samples) in samples {
            match &place {
                Place::Path(path) => {
                    kernel = kernel.saturating_add(samples);
                    let own = path.last().cloned().unwrap_or_default();
                    let sum = functions.entry(own).or_default();
                    *sum = sum.saturating_add(samples);
                }
                _ => user = user.saturating_add(samples),
            }
            table.push(place, [Cell::new(0, ALL_CPUS, samples)]);
        }
        for (name, samples) in functions {
            let module = module(&name);
            table.push(Place::Function { name, module }, [Cell::new(0, ALL_CPUS, samples)]);
        }
        table.push(Place::All(Privilege::User), [Cell::new(0, ALL_CPUS, user)]);
        table.push(Place::All(Privilege::Kernel), [Cell::new(0, ALL_CPUS, kernel)]);
        table
    }
}

impl Sampled {
    /// The length of the phase in seconds.
    pub fn seconds(&self) -> f64 {
        self.ended.saturating_sub(self.begun) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_profile_is_cut_where_a_slice_begins() {
        let slice = |ended, samples: &[(u32, u32)]| Slice { ended, samples: samples.into() };
        let path = |path: &[&str]| Place::Path(path.iter().map(|&name| name.into()).collect());
        let process = Place::Process { id: 7, name: "p".into(), functions: Vec::new() };
        let samples = [(path(&["a", "f"]), 5), (path(&["g"]), 4), (process, 3)];
        let module = |name: &str| if name == "g" { "m".into() } else { "".into() };
        let whole = Profile {
            costs: Profile::sampled_costs(samples, module),
            sampled: Some(Sampled {
                begun: 100,
                ended: 400,
                slices: vec![
                    slice(200, &[(0, 2), (1, 4)]),
                    slice(300, &[(0, 3), (2, 1)]),
                    slice(400, &[(2, 2)]),
                ],
                ..Sampled::default()
            }),
            ..Profile::default()
        };
        assert_eq!(whole.totals(), Totals { user: 3, kernel: 9, firmware: 0 });
        let g = Place::Function { name: "g".into(), module: "m".into() };
        assert!(whole.costs.places().contains(&g));
        assert_eq!(whole.since(100).as_ref(), Some(&whole));
        // A slice that begins before the time is left out.
        let part = whole.since(150).unwrap();
        let own = part.costs.rows().filter(|it| matches!(it.place, Place::Function { .. }));
        let own: Vec<u128> = own.map(|it| it.sum(Some(0))).collect();
        assert_eq!((own, part.totals().user), (vec![3, 0], 3));
        assert_eq!(part.sampled.unwrap().seconds(), 200e-9);
        let nothing = whole.since(301).unwrap();
        assert_eq!(nothing.totals().total(), 0);
        assert_eq!(nothing.sampled.unwrap().seconds(), 0.0);
        assert_eq!(Profile::default().since(0), None);
    }
}
