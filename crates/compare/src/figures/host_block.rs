//! Blocks of the schedule on hosts. Boots of different hosts are never a pair.

use model::Boot;

/// The part of a block of the schedule that one host made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostBlock {
    /// Number of the block in the schedule.
    pub block: u32,
    /// The host ([`model::Host::number`]).
    pub host: u64,
}

impl HostBlock {
    /// The block of a boot on its host.
    pub fn of(boot: &Boot) -> Self {
        Self { block: boot.block, host: boot.facts.provenance.host.number() }
    }
}

impl From<u32> for HostBlock {
    /// A block of an unknown host.
    fn from(block: u32) -> Self {
        Self { block, host: 0 }
    }
}
