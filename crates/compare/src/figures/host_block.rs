//! Blocks of the schedule on hosts. Boots of different hosts are never a pair.

use model::Boot;

/// A block of the schedule, as far as one host made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostBlock {
    /// The block of the schedule.
    pub block: u32,
    /// The host ([`model::Host::number`]).
    pub host: u64,
}

impl HostBlock {
    /// The block of a boot.
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
