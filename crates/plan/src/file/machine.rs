//! Checks the machine of an experiment file: its topology, disks and limits.

use std::ops::Range;
use std::path::Path;

use model::{
    Accel, Architecture, Bytes, Limits, Machine, MachineKind, Millis, Mode, Node, Topology,
    TopologyError, TopologyKey, WorkloadUse,
};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::disks::{self, DiskForm};
use super::mode::check_accel;
use super::swap::{self, SwapForm};
use super::{Checked, fault, some_time, usual_limits};

/// The table `[machine]`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MachineForm {
    /// Whether it is a VM or this host.
    pub kind: Option<Spanned<MachineKind>>,
    /// The architecture of the machine and its kernels.
    pub arch: Option<Spanned<ArchForm>>,
    /// CPUs of all nodes together.
    pub cpus: Option<Spanned<u32>>,
    /// Memory of all nodes together.
    pub memory: Option<Spanned<Bytes>>,
    /// NUMA nodes, among which CPUs and memory are divided evenly.
    pub nodes: Option<Spanned<u32>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) node: Vec<Spanned<Node>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    /// The disks, which each boot gets anew.
    pub disk: Vec<Spanned<DiskForm>>,
    pub(super) swap: Option<Spanned<SwapForm>>,
    /// Whether KVM or emulation executes measured boots.
    pub accel: Option<Spanned<Accel>>,
    /// When a CPU's turn ends in exact mode.
    pub(super) turn: Option<Spanned<TurnForm>>,
    pub(super) limits: Option<LimitsForm>,
}

/// One architecture, or several that each get an experiment.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected \"x86_64\", \"arm64\", or a list of both")]
pub enum ArchForm {
    /// One.
    One(Architecture),
    /// Several.
    Several(Vec<Architecture>),
}

impl MachineForm {
    /// Whether it is this host.
    pub(super) fn is_host(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| !kind.get_ref().is_vm())
    }

    /// The architecture, if it is named and is one.
    pub(super) fn arch(&self) -> Option<Architecture> {
        match self.arch.as_ref()?.get_ref() {
            ArchForm::One(arch) => Some(*arch),
            ArchForm::Several(_) => None,
        }
    }
}

/// When a CPU's turn ends: after a number of instructions, or when QEMU ends it.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a number of instructions from 100 to 1000000, or \"qemu\"")]
pub enum TurnForm {
    /// A number of instructions.
    Instructions(u32),
    /// The word for QEMU's turns.
    Word(QemuWord),
}

/// The word for turns that QEMU ends.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QemuWord {
    /// The word `qemu`: a turn lasts until the guest's next timer.
    Qemu,
}

/// The usual number of instructions of a turn. Shorter turns change the number of transfers of cache lines by less than
/// a tenth, and cost much more.
pub const USUAL_TURN: u32 = 1000;

impl From<Option<u32>> for TurnForm {
    fn from(turn: Option<u32>) -> Self {
        turn.map_or(Self::Word(QemuWord::Qemu), Self::Instructions)
    }
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsForm {
    pub boot: Option<Spanned<Millis>>,
    pub run: Option<Spanned<Millis>>,
    pub shutdown: Option<Spanned<Millis>>,
}

impl LimitsForm {
    /// Fills in defaults. A run may take the sum of its workloads' time limits.
    pub fn complete(self, workloads: &[WorkloadUse]) -> Checked<Limits> {
        let usual = usual_limits(workloads);
        Ok(Limits {
            boot: some_time(self.boot, usual.boot)?,
            run: some_time(self.run, usual.run)?,
            shutdown: some_time(self.shutdown, usual.shutdown)?,
        })
    }
}

/// Checks the machine, except for its limits.
pub fn check(machine: Spanned<MachineForm>, mode: Mode) -> Checked<Machine> {
    let span = machine.span();
    let form = machine.into_inner();
    if let Some(kind) = form.kind.as_ref().filter(|_| form.is_host()) {
        return check_host(&form, kind.span(), mode);
    }
    check_arm64(&form)?;
    let arch = form.arch().unwrap_or_default();
    let topology = match (&form.cpus, &form.memory) {
        _ if !form.node.is_empty() => listed_nodes(&form)?,
        (Some(cpus), Some(memory)) => {
            let nodes = form.nodes.as_ref().map_or(1, |nodes| *nodes.get_ref());
            Topology::even(*cpus.get_ref(), *memory.get_ref(), nodes)
                .or_else(|error| impossible(&error, &form, span))?
        }
        _ => {
            let hint = "set cpus, memory and nodes, or list each [[machine.node]]";
            return fault(span, "the machine's topology is missing", hint);
        }
    };
    let disks = disks::check(form.disk, mode, topology.memory())?;
    let swap = form.swap.map(|form| swap::check(form, &disks)).transpose()?;
    let accel = match &form.accel {
        Some(accel) => check_accel(mode, accel)?,
        None => Accel::default(),
    };
    let turn = check_turn(mode, form.turn.as_ref())?;
    Ok(Machine { arch, disks, swap, accel, turn, ..Machine::new(topology) })
}

/// Checks that a host has only what it can have. Its topology is read.
fn check_host(form: &MachineForm, place: Range<usize>, mode: Mode) -> Checked<Machine> {
    if mode == Mode::Exact {
        let hint = "leave mode out to compare times on this host, or the kind to count instructions in a VM";
        return fault(place, "exact mode needs a VM, whose emulator counts instructions", hint);
    }
    let given = [
        ("arch", form.arch.as_ref().map(Spanned::span)),
        ("cpus", form.cpus.as_ref().map(Spanned::span)),
        ("memory", form.memory.as_ref().map(Spanned::span)),
        ("nodes", form.nodes.as_ref().map(Spanned::span)),
        ("node", form.node.first().map(Spanned::span)),
        ("disk", form.disk.first().map(Spanned::span)),
        ("swap", form.swap.as_ref().map(Spanned::span)),
        ("accel", form.accel.as_ref().map(Spanned::span)),
        ("turn", form.turn.as_ref().map(Spanned::span)),
    ];
    for (key, given) in given {
        if let Some(given) = given {
            let hint = "leave it out: the host is used as it is";
            return fault(given, format!("{key} is for VMs, and this machine is a host"), hint);
        }
    }
    let topology = machine::host::topology(Path::new("/"));
    Ok(Machine { kind: MachineKind::Host, ..Machine::new(topology) })
}

/// Checks when a CPU's turn ends.
fn check_turn(mode: Mode, turn: Option<&Spanned<TurnForm>>) -> Checked<Option<u32>> {
    let Some(turn) = turn else { return Ok((mode == Mode::Exact).then_some(USUAL_TURN)) };
    if mode != Mode::Exact {
        let hint = "leave it out, or add mode = \"exact\"";
        return fault(turn.span(), "turn is only for exact mode", hint);
    }
    match *turn.get_ref() {
        TurnForm::Word(QemuWord::Qemu) => Ok(None),
        TurnForm::Instructions(turn @ 100..=1_000_000) => Ok(Some(turn)),
        TurnForm::Instructions(other) => {
            let hint = "use a number of instructions from 100 to 1000000, or \"qemu\"";
            fault(turn.span(), format!("a turn of {other} instructions"), hint)
        }
    }
}

/// Checks that a machine for arm64 has only what works there.
fn check_arm64(machine: &MachineForm) -> Checked<()> {
    if machine.arch() != Some(Architecture::Arm64) {
        return Ok(());
    }
    if let Some(accel) = machine.accel.as_ref().filter(|it| *it.get_ref() == Accel::Kvm) {
        let hint = "leave it out: machines for arm64 are always emulated";
        return fault(accel.span(), "KVM does not run arm64 machines", hint);
    }
    if let Some(disk) = machine.disk.first() {
        let hint = "leave it out, or use x86_64";
        return fault(disk.span(), "machines for arm64 have no disks yet", hint);
    }
    if let Some(node) = machine.node.iter().find(|node| node.get_ref().cpus.0.is_empty()) {
        let hint = "give each node a CPU: slow memory needs ACPI, which these machines do not have";
        return fault(node.span(), "a node of an arm64 machine has no CPUs", hint);
    }
    Ok(())
}

/// The topology of a machine whose nodes are listed.
fn listed_nodes(form: &MachineForm) -> Checked<Topology> {
    let even = [
        form.cpus.as_ref().map(Spanned::span),
        form.memory.as_ref().map(Spanned::span),
        form.nodes.as_ref().map(Spanned::span),
    ];
    if let Some(span) = even.into_iter().flatten().next() {
        let hint = "set either cpus, memory and nodes, or list each [[machine.node]]";
        return fault(span, "the machine's topology is given twice", hint);
    }
    let nodes = form.node.iter().map(|node| node.get_ref().clone()).collect();
    let topology = Topology { nodes };
    match topology.check() {
        Ok(()) => Ok(topology),
        Err(error) => impossible(&error, form, form.node[0].span()),
    }
}

/// Reports an impossible topology at the key that causes it, or at `otherwise`.
fn impossible<T>(error: &TopologyError, form: &MachineForm, otherwise: Range<usize>) -> Checked<T> {
    let place = match error.key {
        TopologyKey::Node(number, _) => form.node.get(number).map(Spanned::span),
        TopologyKey::Cpus => form.cpus.as_ref().map(Spanned::span),
        TopologyKey::Nodes => form.nodes.as_ref().map(Spanned::span),
        TopologyKey::Memory => None,
    };
    let place = place.or(form.memory.as_ref().map(Spanned::span));
    fault(place.unwrap_or(otherwise), format!("{}: {}", error.key, error.problem), &error.hint)
}
