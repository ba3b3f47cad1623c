//! Exact mode: what one boot needs besides the kernel and the initramfs.

use machine::{Exact, Plugin};
use model::Profiling;
use plan::schedule::Slot;

use crate::guest::Libraries;
use crate::symbols::KernelCode;

/// The inputs that make one boot exact. Its seed is its boot index.
pub fn inputs(libraries: &Libraries, profile: Profiling, code: &KernelCode, slot: Slot) -> Exact {
    let plugin = Plugin {
        path: libraries.plugin.clone(),
        accesses: profile.accesses,
        stacks: profile.stacks,
        switch: code.switch,
        functions: code.symbols.beginnings().collect(),
    };
    Exact { seed: slot.boot_index, clock: libraries.clock.clone(), plugin: Some(plugin) }
}
