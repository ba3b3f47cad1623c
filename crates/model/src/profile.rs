//! The profile of one phase: in exact mode what was executed and accessed, instruction by instruction; in measured
//! mode samples of what was running.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The metric that exact mode adds to every workload, with the labels `total`, `user` and
/// `kernel`, in the unit of the same name.
pub const INSTRUCTIONS: &str = "instructions";
/// The metrics that Faultline fills itself, in any mode. No workload may report them: its samples would be added
/// to what was counted.
pub const RESERVED_METRICS: [&str; 2] = [INSTRUCTIONS, "entries"];
/// The end of the names of rows of instructions outside all phases.
pub const NO_PHASE: &str = "-no-phase";
/// The end of the names of rows of instructions at equal entries.
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

/// Whether rows of a phase would have the names of other rows of Faultline's, such as `instructions-kernel-no-phase`.
pub fn is_reserved_phase(phase: &str) -> bool {
    [NO_PHASE, EQUAL_ENTRIES].iter().any(|end| phase.ends_with(end) || phase == &end[1..])
}

/// Stands for the functions of a program if they are not known.
pub const USER: &str = "[user]";

/// Samples per second and CPU unless an experiment says otherwise. Not 100, so that samples do not run in step
/// with timers.
pub const FREQUENCY: u32 = 99;
/// The most samples per second and CPU.
pub const MAX_FREQUENCY: u32 = 10_000;

/// What a profile has: in exact mode, what is counted besides instructions; in measured mode, whether there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiling {
    /// Loads and stores by CPU and node. About three times the run time.
    pub accesses: bool,
    /// Instructions by call path.
    pub stacks: bool,
    /// Samples of what runs, in measured mode.
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
    /// Whether nothing more is counted.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Samples per second and CPU, if there are to be samples.
    pub fn samples(&self) -> Option<u32> {
        self.sampled.then(|| self.frequency.unwrap_or(FREQUENCY))
    }
}

/// Privilege level of executed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privilege {
    /// The kernel, in the upper half of the address space.
    Kernel,
    /// Programs in user mode.
    User,
    /// Privileged, in the lower half of the address space: firmware, and the kernel's first
    /// instructions on each CPU.
    Firmware,
}

impl Privilege {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::User, Self::Firmware];
}

/// The target of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Memory of a NUMA node.
    Node(u16),
    /// A device's registers.
    Device,
    /// Memory of no node: that of devices, such as the recorder's.
    Elsewhere,
}

/// The profile of one phase. A boot's list has each phase of each iteration once, in order of time. Time
/// between iterations is not profiled.
///
/// A sampled profile has samples where an exact one has instructions. It has one CPU, which stands for all, and
/// neither entries nor accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The workload's name.
    pub workload: String,
    /// Which repetition, from 0.
    pub iteration: u32,
    /// The phase's name; empty before the first.
    pub phase: String,
    /// Instructions of each CPU.
    pub cpus: Vec<Instructions>,
    /// Kernel functions that were executed, sorted by name and module. Their instructions add up to the
    /// kernel's: code that no symbol covers is in functions with names in brackets.
    pub functions: Vec<Function>,
    /// User instructions by process; in a sampled profile, by process and call path.
    pub processes: Vec<Process>,
    /// Loads and stores; none if they were not counted.
    pub accesses: Vec<Accesses>,
    /// Kernel instructions by call path; none if paths were not followed. They add up to the kernel's.
    pub stacks: Vec<Stack>,
    /// How it was sampled; `None` for an exact profile.
    #[serde(default)]
    pub sampled: Option<Sampled>,
}

/// How a profile was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// What triggers samples, by perf's name: `cycles` or `cpu-clock`.
    pub event: String,
    /// Samples per second and CPU.
    pub frequency: u32,
    /// Guest time at which the phase began, in nanoseconds.
    pub begun: u64,
    /// Guest time at which it ended.
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
    /// Samples by place: that of a call path in [`Profile::stacks`]; after these, that of a process in
    /// [`Profile::processes`].
    pub samples: Vec<(u32, u32)>,
}

/// Instructions by privilege.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// By programs in user mode.
    pub user: u64,
    /// By the kernel.
    pub kernel: u64,
    /// By firmware.
    pub firmware: u64,
}

/// A kernel function. Functions of the same name are counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The kernel's symbol, with compiler suffixes such as `.isra.0`.
    pub name: String,
    /// Its module; empty for the kernel itself.
    pub module: String,
    /// Counts of each CPU.
    pub counts: Vec<Count>,
}

/// How often a function was entered, and its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Instructions executed in it, without its callees.
    pub instructions: u64,
    /// Executions of its first instruction.
    pub entries: u64,
}

/// A process: all threads of one thread group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The thread group's id.
    pub id: u32,
    /// The name of the thread that ran.
    pub name: String,
    /// User instructions on each CPU.
    pub instructions: Vec<u64>,
    /// The functions of the program on the call path, outermost first; none if they are not known.
    pub functions: Vec<String>,
}

/// Memory accesses by instructions, without page walks and instruction fetches. A read-modify-write counts
/// as a load and a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// The CPU.
    pub cpu: u32,
    /// The privilege of the instructions.
    pub privilege: Privilege,
    /// The target.
    pub target: Target,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

/// Instructions executed with this call path, over all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The functions, outermost first. The instructions are those of the last one itself.
    pub functions: Vec<String>,
    /// Instructions.
    pub instructions: u64,
}

impl Instructions {
    /// Of any privilege.
    pub fn total(&self) -> u64 {
        self.user.saturating_add(self.kernel).saturating_add(self.firmware)
    }
}

impl Profile {
    /// Instructions of all CPUs together.
    pub fn instructions(&self) -> Instructions {
        self.cpus.iter().fold(Instructions::default(), |sum, cpu| Instructions {
            user: sum.user.saturating_add(cpu.user),
            kernel: sum.kernel.saturating_add(cpu.kernel),
            firmware: sum.firmware.saturating_add(cpu.firmware),
        })
    }

    /// The part of a sampled profile from a time on: slices that begin before it are left out, with what was lost in
    /// the phase. `None` for an exact profile.
    pub fn since(&self, time: u64) -> Option<Self> {
        let sampled = self.sampled.as_ref()?;
        let begins = std::iter::once(sampled.begun).chain(sampled.slices.iter().map(|it| it.ended));
        let later = sampled.slices.iter().zip(begins).filter(|(_, begun)| *begun >= time);
        let begun = later.clone().map(|(_, begun)| begun).next().unwrap_or(sampled.ended);
        let slices: Vec<Slice> = later.map(|(slice, _)| slice.clone()).collect();
        let mut part = self.clone();
        part.stacks.iter_mut().for_each(|it| it.instructions = 0);
        part.processes.iter_mut().for_each(|it| it.instructions = vec![0]);
        for (place, samples) in slices.iter().flat_map(|slice| &slice.samples) {
            let (place, samples) = (*place as usize, u64::from(*samples));
            let process = place.checked_sub(part.stacks.len());
            if let Some(stack) = part.stacks.get_mut(place) {
                stack.instructions = stack.instructions.saturating_add(samples);
            } else if let Some(it) = process.and_then(|place| part.processes.get_mut(place)) {
                it.instructions[0] = it.instructions[0].saturating_add(samples);
            }
        }
        part.sampled = Some(Sampled { begun, slices, ..sampled.clone() });
        let module = |name: &str| {
            let known = self.functions.iter().find(|function| function.name == name);
            known.map_or(String::new(), |function| function.module.clone())
        };
        part.sum_up(module);
        Some(part)
    }

    /// Sets functions and CPUs of a sampled profile from its call paths and processes. `module` is that of a function.
    pub fn sum_up(&mut self, module: impl Fn(&str) -> String) {
        let mut functions = BTreeMap::<&str, u64>::new();
        for stack in &self.stacks {
            let own = stack.functions.last().map_or("", String::as_str);
            let sum = functions.entry(own).or_default();
            *sum = sum.saturating_add(stack.instructions);
        }
        let add = |sum: u64, it: &u64| sum.saturating_add(*it);
        let user = self.processes.iter().flat_map(|it| &it.instructions).fold(0, add);
        let kernel = functions.values().fold(0, add);
        let functions = functions.into_iter().map(|(name, instructions)| Function {
            name: name.to_owned(),
            module: module(name),
            counts: vec![Count { instructions, entries: 0 }],
        });
        self.functions = functions.collect();
        self.cpus = vec![Instructions { user, kernel, firmware: 0 }];
    }
}

impl Sampled {
    /// Its time in seconds.
    pub fn seconds(&self) -> f64 {
        self.ended.saturating_sub(self.begun) as f64 / 1e9
    }
}

impl Process {
    /// The frames of its call path, the outermost first: its functions, or [`USER`] if they are not known.
    pub fn frames(&self) -> impl Iterator<Item = &str> {
        let unknown = self.functions.is_empty().then_some(USER);
        self.functions.iter().map(String::as_str).chain(unknown)
    }
}

impl Function {
    /// Counts of all CPUs together.
    pub fn total(&self) -> Count {
        self.counts.iter().fold(Count::default(), |sum, count| Count {
            instructions: sum.instructions.saturating_add(count.instructions),
            entries: sum.entries.saturating_add(count.entries),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str], instructions: u64) -> Stack {
        Stack { functions: functions.iter().map(|&name| name.to_owned()).collect(), instructions }
    }

    #[test]
    fn a_sampled_profile_is_cut_where_a_slice_begins() {
        let slice = |ended, samples: &[(u32, u32)]| Slice { ended, samples: samples.into() };
        let mut whole = Profile {
            stacks: vec![stack(&["a", "f"], 5), stack(&["g"], 4)],
            processes: vec![Process {
                id: 7,
                name: "p".into(),
                instructions: vec![3],
                ..Process::default()
            }],
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
        whole.sum_up(|name| if name == "g" { "m".into() } else { String::new() });
        assert_eq!(whole.instructions(), Instructions { user: 3, kernel: 9, firmware: 0 });
        assert_eq!(whole.functions[1].module, "m");
        assert_eq!(whole.since(100).as_ref(), Some(&whole));
        // A slice that begins before the time is left out.
        let part = whole.since(150).unwrap();
        let own: Vec<_> = part.functions.iter().map(|it| it.total().instructions).collect();
        assert_eq!((own, part.instructions().user), (vec![3, 0], 3));
        assert_eq!(part.sampled.unwrap().seconds(), 200e-9);
        let nothing = whole.since(301).unwrap();
        assert_eq!(nothing.instructions().total(), 0);
        assert_eq!(nothing.sampled.unwrap().seconds(), 0.0);
        assert_eq!(Profile::default().since(0), None);
    }
}
