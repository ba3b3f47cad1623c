//! Exact mode: what a boot needs besides the kernel and the initramfs.

use machine::{Exact, Plugin};
use model::Experiment;
use plan::schedule::Slot;

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
        functions: code.symbols.beginnings().collect(),
    };
    Exact { seed: slot.boot_index, clock: libraries.clock.clone(), plugin: Some(plugin) }
}
