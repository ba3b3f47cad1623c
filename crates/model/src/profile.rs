//! The exact profile: what was executed and accessed in one phase, instruction by instruction.

use serde::{Deserialize, Serialize};

/// The metric that exact mode adds to every workload, with the labels `total`, `user` and
/// `kernel`, in the unit of the same name.
pub const INSTRUCTIONS: &str = "instructions";
/// The source of the series of accesses.
pub const ACCESSES_SOURCE: &str = "accesses";
/// Columns of the accesses' series: loads and stores since the phase began (0 in the first row), served by
/// each CPU's own node and by other nodes.
pub const ACCESSES_COLUMNS: [&str; 4] =
    ["user-local", "user-remote", "kernel-local", "kernel-remote"];

/// What exact mode counts besides instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiling {
    /// Loads and stores by CPU and node. About three times the run time.
    pub accesses: bool,
    /// Instructions by call path.
    pub stacks: bool,
}

impl Profiling {
    /// Whether nothing more is counted.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
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
    /// User instructions by process.
    pub processes: Vec<Process>,
    /// Loads and stores; none if they were not counted.
    pub accesses: Vec<Accesses>,
    /// Kernel instructions by call path; none if paths were not followed. They add up to the kernel's.
    pub stacks: Vec<Stack>,
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
