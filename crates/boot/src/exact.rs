//! Exact mode: what a boot needs besides the kernel and the initramfs.

use code::Piece;
use kernelfiles::allocators::{is_kmalloc, is_per_cpu};
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
    let functions = |is_wanted: fn(&str) -> bool| -> Vec<u64> {
        let all = code.symbols.functions().map(|(symbol, _)| (symbol.address, &symbol.name));
        let parts = all.map(|(address, name)| (address, code::Symbol::of(name)));
        let wanted = parts.filter(|(_, it)| it.piece == Piece::Whole && is_wanted(it.name));
        wanted.map(|(address, _)| address).collect()
    };
    Transfers {
        allocators: functions(is_kmalloc),
        per_cpu_allocators: functions(is_per_cpu),
        homes: experiment.machine.topology.homes(),
        layout,
        per_cpu: memory.and_then(Memory::per_cpu),
    }
}
