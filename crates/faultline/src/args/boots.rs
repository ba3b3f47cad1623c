//! Options for the machine, the mode and the number of boots.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use model::{Accel, Architecture, Bytes, FileSystem, MemoryModel, Millis, Mode, Profiling, Share};

/// The machine of an experiment without a file.
#[derive(Debug, Args)]
pub struct MachineArgs {
    /// Architecture of machine and kernels [default: as the kernels' names say, or x86_64]
    #[arg(long, value_enum)]
    pub arch: Option<ArchArg>,
    /// CPUs [default: 4]
    #[arg(long)]
    pub cpus: Option<u32>,
    /// Memory of all nodes together, such as 512M or 2G [default: 2G]
    #[arg(long)]
    pub memory: Option<Bytes>,
    /// NUMA nodes; CPUs and memory are divided evenly among them [default: 2]
    #[arg(long)]
    pub nodes: Option<u32>,
    /// KVM or emulation [default: auto]
    #[arg(long, value_enum)]
    pub accel: Option<AccelArg>,
    /// A disk with a file system, for workloads that need one, such as 4G or 4G,xfs [default: none; ext4]
    #[arg(long, value_name = "SIZE[,FILESYSTEM]")]
    pub disk: Option<DiskArg>,
}

impl MachineArgs {
    /// The same options with a VM's defaults.
    pub fn of_vm(&self) -> Self {
        Self {
            cpus: self.cpus.or(Some(4)),
            memory: self.memory.or(Some(Bytes::mib(2048))),
            nodes: self.nodes.or(Some(2)),
            accel: self.accel.or(Some(AccelArg::Auto)),
            ..*self
        }
    }
}

/// Where an experiment without a file runs, and what its variants differ in besides the kernel.
#[derive(Clone, Debug, Args)]
pub struct PlaceArgs {
    /// Where to run: in VMs, or as sessions on this host, on the kernel that it runs: docs/real-machines.md
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = OnArg::Vm)]
    pub on: OnArg,
    /// A sysctl and its values, such as vm.swappiness=10,60. Each value makes variants; may be repeated
    #[arg(long, value_name = "NAME=VALUE,...", value_parser = setting)]
    pub sysctl: Vec<(String, SettingArg)>,
    /// A file below /sys and its values, such as /sys/kernel/mm/transparent_hugepage/enabled=always,never; may be
    /// repeated
    #[arg(long, value_name = "PATH=VALUE,...", value_parser = setting)]
    pub sysfs: Vec<(String, SettingArg)>,
}

/// The values of a setting.
pub type SettingArg = Vec<String>;

impl PlaceArgs {
    /// Whether it is this host.
    pub fn is_host(&self) -> bool {
        self.on == OnArg::Host
    }
}

fn setting(text: &str) -> Result<(String, SettingArg), String> {
    let expected = "expected a setting and its values, such as vm.swappiness=10,60";
    let (name, values) = text.split_once('=').ok_or(expected)?;
    let values: Vec<String> = values.split(',').map(|it| it.trim().to_owned()).collect();
    match name.trim().is_empty() || values.iter().any(String::is_empty) {
        true => Err(expected.to_owned()),
        false => Ok((name.trim().to_owned(), values)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnArg {
    /// VMs
    Vm,
    /// This host, without a VM
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskArg {
    pub size: Bytes,
    pub filesystem: FileSystem,
}

impl FromStr for DiskArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, filesystem) = text.split_once(',').unwrap_or((text, FileSystem::Ext4.name()));
        let size = size.parse().map_err(|error| format!("{error}"))?;
        let known = || FileSystem::ALL.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
        let filesystem = FileSystem::of_name(filesystem);
        Ok(Self { size, filesystem: filesystem.ok_or_else(|| format!("use one of {}", known()))? })
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AccelArg {
    /// KVM if a guest boots under it, otherwise emulation
    Auto,
    /// KVM
    Kvm,
    /// Emulation by QEMU's TCG
    Tcg,
}

impl From<AccelArg> for Accel {
    fn from(accel: AccelArg) -> Self {
        match accel {
            AccelArg::Auto => Self::Auto,
            AccelArg::Kvm => Self::Kvm,
            AccelArg::Tcg => Self::Tcg,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ArchArg {
    /// x86-64
    #[value(name = "x86_64")]
    X86,
    /// 64-bit Arm, emulated: docs/arm64.md
    Arm64,
    /// One after the other, for `run` and `try`: an experiment for each
    Both,
}

impl ArchArg {
    /// The architecture; `None` for both.
    pub fn one(self) -> Option<Architecture> {
        match self {
            Self::X86 => Some(Architecture::X86_64),
            Self::Arm64 => Some(Architecture::Arm64),
            Self::Both => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootsArg {
    Number(u32),
    Auto,
}

impl FromStr for BootsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(number)) if number > 0 => Ok(Self::Number(number)),
            _ => Err("expected a number of boots, 1 or more, or auto".into()),
        }
    }
}

/// The share that a percentage stands for: `5` or `5%`.
pub fn percent(text: &str) -> Result<Share, String> {
    let number = text.trim().trim_end_matches('%');
    let share: Option<Share> = format!("{number}%").parse().ok();
    let share = share.filter(|share| (0.0..1.0).contains(&share.0));
    share.ok_or_else(|| "expected a percentage from 0 to below 100, such as 0.5 or 0.5%".to_owned())
}

/// When `--boots auto` ends.
#[derive(Debug, Args)]
pub struct SequentialArgs {
    /// With --boots auto: at most this many boots of each kernel [default: 32]
    #[arg(long, value_name = "BOOTS")]
    pub at_most: Option<u32>,
    /// With --boots auto: differences up to this many percent count as none [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<Share>,
    /// With --boots auto: start no further block of boots when this much time has passed, such as 2h [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Millis>,
}

/// What happens while another run uses the store.
#[derive(Clone, Copy, Debug, Args)]
pub struct TurnArgs {
    /// Fail while another run uses the store [default: wait until it ends]
    #[arg(long)]
    pub no_wait: bool,
}

/// Options of exact mode.
#[derive(Debug, Args)]
pub struct ExactArgs {
    /// Compare by time or by instructions [default: the file's mode, or measured]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Exact mode: seeds of each kernel, one boot each [default: the file's, or 5]
    #[arg(long)]
    pub seeds: Option<u32>,
    /// Exact mode: what to count besides instructions. Measured mode: `sampled`
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,...")]
    pub profile: Vec<ProfileArg>,
    /// Exact mode: count what misses in a model of caches and TLBs: skylake-2s, sapphire-2s, milan-2s, or a file with
    /// sizes: docs/memory-model.md
    #[arg(long, value_name = "NAME|FILE", value_parser = plan::memory_model::find)]
    pub memory_model: Option<MemoryModel>,
    /// Exact mode: with --profile lines, the kernel functions of which to keep executions by instruction, for
    /// `explain --lines`; with --again also `changed`: those that ran and whose code differs, at most 20
    #[arg(long, value_delimiter = ',', value_name = "FUNCTION,...")]
    pub lines: Vec<String>,
    /// Exact mode: number of parallel boots [default: as many as CPUs and free memory allow]
    #[arg(long, value_name = "BOOTS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Exact mode: do each boot twice, with both values of --count, and check that the results are identical
    #[arg(long)]
    pub verify: bool,
    /// Exact mode: whether to call the counting plugin once for a block of instructions, or at each one. The counts are
    /// the same [default: blocks]
    #[arg(long, value_enum)]
    pub count: Option<CountArg>,
    /// Exact mode: boot the other seeds of a kernel too after one has failed. Most failures are the same with each
    /// seed
    #[arg(long)]
    pub keep_going: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountArg {
    /// Once for a block
    Blocks,
    /// At each instruction: slower, for checks
    Each,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Time
    Measured,
    /// Instructions
    Exact,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Measured => Self::Measured,
            ModeArg::Exact => Self::Exact,
        }
    }
}

/// Stands for all functions whose code differs.
pub const CHANGED: &str = "changed";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// Loads and stores by CPU and node
    Accesses,
    /// Instructions by call path
    Stacks,
    /// Lines of memory that CPUs take from each other, by function and by field
    Transfers,
    /// Executions by instruction of the functions in --lines
    Lines,
    /// Measured mode: samples of what runs, with call paths in the kernel
    Sampled,
}

impl ExactArgs {
    /// What the profile is to have besides what `described` says.
    pub fn profiling(&self, described: Profiling) -> Profiling {
        let mut lines = described.lines;
        lines.extend(self.lines.iter().cloned());
        Profiling {
            lines,
            accesses: described.accesses || self.profile.contains(&ProfileArg::Accesses),
            stacks: described.stacks || self.profile.contains(&ProfileArg::Stacks),
            memory_model: self.memory_model.clone().or(described.memory_model),
            transfers: described.transfers || self.profile.contains(&ProfileArg::Transfers),
            sampled: described.sampled || self.profile.contains(&ProfileArg::Sampled),
            ..described
        }
    }
}
