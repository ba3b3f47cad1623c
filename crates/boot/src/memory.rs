//! Checks that the host has room for a machine.

use model::{Bytes, Topology};

/// The machine needs more memory than the host has.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the machine needs {wants} of memory, but this host has only {has} with its swap; nothing was booted"
)]
pub struct TooLarge {
    wants: Bytes,
    has: Bytes,
}

/// Checks that the host has the memory of a machine. Fails when it has less.
pub fn check_memory(topology: &Topology) -> Result<(), TooLarge> {
    let wants = topology.memory();
    match machine::host::memory().filter(|has| *has < wants) {
        Some(has) => Err(TooLarge { wants, has: Bytes(has.0 >> 20 << 20) }),
        None => Ok(()),
    }
}
