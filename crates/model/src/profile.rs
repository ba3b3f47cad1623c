//! The exact profile: what was executed and accessed in one phase, instruction by instruction.

use serde::{Deserialize, Serialize};

/// The metric that exact mode adds to every workload, with the labels `total`, `user` and
/// `kernel`, in the unit of the same name.
pub const INSTRUCTIONS: &str = "instructions";
/// The source of the series of accesses.
pub const ACCESSES_SOURCE: &str = "accesses";
/// Its columns: loads and stores since the phase began, 0 in its first row, by what each CPU's own
/// node served and what others did.
pub const ACCESSES_COLUMNS: [&str; 4] =
    ["user-local", "user-remote", "kernel-local", "kernel-remote"];

/// What to count in exact mode beside instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiling {
    /// Loads and stores by CPU and node. About three times the run time.
    pub accesses: bool,
    /// Instructions by call path.
    pub stacks: bool,
}

impl Profiling {
    /// Whether nothing is asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who executes.
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

/// What an access goes to.
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

/// The profile of one phase. In a boot's list each phase of each iteration comes once, in order of
/// time; what lies between iterations has no place in it.
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
    /// Kernel functions that were executed, in order of name and module. Their instructions add up
    /// to those of the kernel: what no symbol covers is in functions named in brackets.
    pub functions: Vec<Function>,
    /// How much of the user instructions was which process.
    pub processes: Vec<Process>,
    /// Loads and stores; none if they were not counted.
    pub accesses: Vec<Accesses>,
    /// Kernel instructions by call path; none if paths were not followed. They add up to those of
    /// the kernel.
    pub stacks: Vec<Stack>,
}

/// Instructions by who executed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// By programs in user mode.
    pub user: u64,
    /// By the kernel.
    pub kernel: u64,
    /// By firmware.
    pub firmware: u64,
}

/// A kernel function, with the counts of all functions of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its symbol, as the kernel has it: compilers' suffixes such as `.isra.0` included.
    pub name: String,
    /// Its module; empty for the kernel itself.
    pub module: String,
    /// Counts of each CPU.
    pub counts: Vec<Count>,
}

/// How often a function was entered, and what that cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Instructions executed in it, without those of functions that it called.
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

/// Accesses to memory as instructions make them: not those of page walks, and not the fetching of
/// instructions. One that reads, changes and writes is a load and a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// The CPU.
    pub cpu: u32,
    /// Who made them.
    pub privilege: Privilege,
    /// To what.
    pub target: Target,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

/// Instructions executed with this path of calls, on all CPUs together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The functions, the outermost first; the instructions are the last one's own.
    pub functions: Vec<String>,
    /// Instructions.
    pub instructions: u64,
}

impl Instructions {
    /// By whomever.
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
