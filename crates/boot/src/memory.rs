//! Checks that the host has enough memory for a machine.

use model::{Bytes, Topology};

/// The error for a machine that needs more memory than the host has.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the machine needs {wants} of memory, but this host has only {has} with its swap; nothing was booted"
)]
pub struct TooLarge {
    wants: Bytes,
    has: Bytes,
}

/// Checks that the host's memory and swap are enough for a machine. If the host's memory is
/// unknown, they are taken to be enough.
pub fn check_memory(topology: &Topology) -> Result<(), TooLarge> {
    let wants = topology.memory();
    match machine::host::memory().filter(|has| *has < wants) {
        Some(has) => Err(TooLarge { wants, has: Bytes(has.0 >> 20 << 20) }),
        None => Ok(()),
    }
}
