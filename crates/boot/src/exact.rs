//! Exact mode: what a boot needs besides the kernel and the initramfs.

use code::Piece;
use kernelfiles::allocators::{is_per_cpu, kmalloc};
use machine::{Exact, Plugin, Transfers};
use model::Experiment;
use plan::schedule::Slot;
use record::memory::Memory;

use crate::guest::Libraries;
use crate::symbols::KernelCode;

/// Returns the inputs that make one boot exact. The seed is the boot index. With `each`, the plugin is called at each
/// instruction.
pub fn inputs(
    libraries: &Libraries,
    experiment: &Experiment,
    code: &KernelCode,
    slot: Slot,
    each: bool,
) -> Exact {
    let Experiment { profile, machine, .. } = experiment;
    let plugin = Plugin {
        path: libraries.plugin.clone(),
        accesses: profile.accesses,
        stacks: profile.stacks,
        each,
        turn: machine.turn,
        switch: code.switch,
        memory_model: profile.memory_model.clone(),
        transfers: profile.transfers.then(|| transfers(experiment, code)),
        functions: code.symbols.beginnings().collect(),
    };
    Exact { seed: slot.boot_index, clock: libraries.clock.clone(), plugin: Some(plugin) }
}

/// Returns what the plugin needs to count transfers of lines.
fn transfers(experiment: &Experiment, code: &KernelCode) -> Transfers {
    let memory = code.memory.as_deref();
    let layout = memory
        .and_then(Memory::layout)
        .map(|it| [it.page, it.head, it.kind, it.slab, it.cache, it.size, it.name]);
    let all = code.symbols.functions().map(|(symbol, _)| (symbol.address, &symbol.name));
    let whole = all.map(|(address, name)| (address, code::Symbol::of(name)));
    let whole: Vec<_> = whole.filter(|(_, it)| it.piece == Piece::Whole).collect();
    let general =
        whole.iter().filter_map(|(address, it)| Some([*address, kmalloc(it.name)?.into()]));
    let per_cpu_allocators = whole.iter().filter(|(_, it)| is_per_cpu(it.name));
    Transfers {
        allocators: general.flatten().collect(),
        per_cpu_allocators: per_cpu_allocators.map(|(address, _)| *address).collect(),
        homes: experiment.machine.topology.homes(),
        layout,
        per_cpu: memory.and_then(Memory::per_cpu),
    }
}
