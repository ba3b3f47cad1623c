//! Classes of instructions, what they do to the caches of other CPUs, and what they miss in a model of caches, as costs.

use serde::{Deserialize, Serialize};

use crate::{Architecture, Cost};

/// A class of the kernel's instructions, or what they do to caches. Their number is a cost by function.
/// Its price on a real machine is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Read-modify-writes of memory that no other CPU can divide: those with a `lock` prefix, and `xchg`.
    Locked,
    /// `mfence`, `lfence` and `sfence`.
    Fence,
    /// `invlpg`: a page leaves the TLB of the CPU.
    Invlpg,
    /// `invpcid`: pages or all of an address space leave the TLB of the CPU.
    Invpcid,
    /// Writes of CR3: the CPU gets another page table, or its TLB is flushed.
    Cr3Write,
    /// `wrmsr`, by which a kernel sets timers, among others.
    MsrWrite,
    /// `tlbi` by address, for all CPUs (Arm Architecture Reference Manual, C5.5): a page leaves all TLBs.
    TlbiPage,
    /// `tlbi` by a range of addresses, for all CPUs.
    TlbiRange,
    /// `tlbi` by address space, for all CPUs.
    TlbiAsid,
    /// Any other `tlbi` for all CPUs.
    TlbiAll,
    /// Any `tlbi` for the CPU alone.
    TlbiLocal,
    /// `dsb`: waits for memory accesses, and for `tlbi` on all CPUs.
    Dsb,
    /// `dmb`: orders memory accesses.
    Dmb,
    /// `isb`.
    Isb,
    /// Atomic instructions of the Large System Extensions, such as `ldadd`, `cas` and `swp`.
    Atomic,
    /// Loads that begin an exclusive access, such as `ldxr`. What is repeated is counted again.
    ExclusiveLoad,
    /// Stores that end an exclusive access, such as `stxr`, whether they succeed or not.
    ExclusiveStore,
    /// Writes of TTBR0 and TTBR1: the CPU gets another page table or address space.
    TtbrWrite,
    /// Lines of memory taken from other CPUs, if caches have no limits: accesses to a line that another CPU wrote since,
    /// and stores to a line that others have a copy of.
    Transfer,
    /// Transfers that are stores to a line that the CPU has a copy of too.
    Upgrade,
    /// Transfers to a CPU without a copy whose access touches no byte that others wrote since it had one.
    FalseSharing,
    /// Transfers that take a line from a CPU of another node.
    RemoteTransfer,
    /// Accesses to a line that the CPU has as it needs it, which would be transfers if a line and the other one of its
    /// aligned 128 bytes were one line.
    PairTransfer,
    /// Accesses to lines that the CPU's L1D does not have, in a model of caches.
    L1dMiss,
    /// Those that its L2 does not have either.
    L2Miss,
    /// Those that no cache has that belongs to the CPU's last-level cache either.
    LlcMiss,
    /// Accesses to pages that the first level of the CPU's TLBs does not have, in a model of them.
    DtlbMiss,
    /// Those that the second level does not have either, so that the page tables are walked.
    StlbMiss,
}

impl Class {
    /// All classes, of all architectures.
    pub const ALL: [Self; 28] = [
        Self::Locked,
        Self::Fence,
        Self::Invlpg,
        Self::Invpcid,
        Self::Cr3Write,
        Self::MsrWrite,
        Self::TlbiPage,
        Self::TlbiRange,
        Self::TlbiAsid,
        Self::TlbiAll,
        Self::TlbiLocal,
        Self::Dsb,
        Self::Dmb,
        Self::Isb,
        Self::Atomic,
        Self::ExclusiveLoad,
        Self::ExclusiveStore,
        Self::TtbrWrite,
        Self::Transfer,
        Self::Upgrade,
        Self::FalseSharing,
        Self::RemoteTransfer,
        Self::PairTransfer,
        Self::L1dMiss,
        Self::L2Miss,
        Self::LlcMiss,
        Self::DtlbMiss,
        Self::StlbMiss,
    ];
    /// Misses in a model of caches and TLBs.
    pub const MISSES: [Self; 5] =
        [Self::L1dMiss, Self::L2Miss, Self::LlcMiss, Self::DtlbMiss, Self::StlbMiss];
    /// Transfers, kinds of them, and those of pairs.
    pub const TRANSFERS: [Self; 5] = [
        Self::Transfer,
        Self::Upgrade,
        Self::FalseSharing,
        Self::RemoteTransfer,
        Self::PairTransfer,
    ];

    /// The classes of instructions of an architecture.
    pub fn of(arch: Architecture) -> &'static [Self] {
        let (x86_64, others) = const { Self::ALL.split_at(Self::TlbiPage as usize) };
        let (arm64, _) = others.split_at(Self::Transfer as usize - Self::TlbiPage as usize);
        match arch {
            Architecture::X86_64 => x86_64,
            Architecture::Arm64 => arm64,
        }
    }

    /// Whether it is one of [`Class::TRANSFERS`].
    pub fn is_transfer(self) -> bool {
        Self::TRANSFERS.contains(&self)
    }

    /// Whether it is one of [`Class::MISSES`].
    pub fn is_miss(self) -> bool {
        Self::MISSES.contains(&self)
    }

    /// The class whose cost has this name.
    pub fn named(cost: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == cost)
    }

    /// The name of its cost.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Fence => "fences",
            Self::Invlpg => "invlpg",
            Self::Invpcid => "invpcid",
            Self::Cr3Write => "cr3-writes",
            Self::MsrWrite => "msr-writes",
            Self::TlbiPage => "tlbi-page",
            Self::TlbiRange => "tlbi-range",
            Self::TlbiAsid => "tlbi-asid",
            Self::TlbiAll => "tlbi-all",
            Self::TlbiLocal => "tlbi-local",
            Self::Dsb => "dsb",
            Self::Dmb => "dmb",
            Self::Isb => "isb",
            Self::Atomic => "atomics",
            Self::ExclusiveLoad => "exclusive-loads",
            Self::ExclusiveStore => "exclusive-stores",
            Self::TtbrWrite => "ttbr-writes",
            Self::Transfer => "transfers",
            Self::Upgrade => "upgrades",
            Self::FalseSharing => "false-sharing",
            Self::RemoteTransfer => "remote-transfers",
            Self::PairTransfer => "pair-transfers",
            Self::L1dMiss => "l1d-misses",
            Self::L2Miss => "l2-misses",
            Self::LlcMiss => "llc-misses",
            Self::DtlbMiss => "dtlb-misses",
            Self::StlbMiss => "stlb-misses",
        }
    }

    /// The cost of its instructions.
    pub fn cost(self) -> Cost {
        let unit = match self {
            Self::Locked => "locked instructions",
            Self::Fence => "fences",
            Self::Invlpg => "INVLPG",
            Self::Invpcid => "INVPCID",
            Self::Cr3Write => "writes of CR3",
            Self::MsrWrite => "writes of MSRs",
            Self::TlbiPage => "TLBI of a page",
            Self::TlbiRange => "TLBI of a range",
            Self::TlbiAsid => "TLBI of an address space",
            Self::TlbiAll => "TLBI of all",
            Self::TlbiLocal => "local TLBI",
            Self::Dsb => "DSB",
            Self::Dmb => "DMB",
            Self::Isb => "ISB",
            Self::Atomic => "LSE atomics",
            Self::ExclusiveLoad => "exclusive loads",
            Self::ExclusiveStore => "exclusive stores",
            Self::TtbrWrite => "writes of TTBR",
            Self::Transfer => "transfers of lines",
            Self::Upgrade => "upgrades of lines",
            Self::FalseSharing => "transfers by false sharing",
            Self::RemoteTransfer => "transfers between nodes",
            Self::PairTransfer => "transfers of pairs of lines",
            Self::L1dMiss => "L1D misses",
            Self::L2Miss => "L2 misses",
            Self::LlcMiss => "LLC misses",
            Self::DtlbMiss => "DTLB misses",
            Self::StlbMiss => "STLB misses",
        };
        Cost { unit: unit.to_owned(), ..Cost::new(self.name()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact_cost::{Counted, table_with_classes};

    #[test]
    fn each_class_has_a_cost_in_the_table_of_its_architecture() {
        let numbers: Vec<usize> = Class::ALL.iter().map(|class| *class as usize).collect();
        assert_eq!(numbers, (0..Class::ALL.len()).collect::<Vec<_>>());
        let all: Vec<Class> =
            Architecture::ALL.iter().flat_map(|it| Class::of(*it)).copied().collect();
        assert_eq!([&all[..], &Class::TRANSFERS, &Class::MISSES].concat(), Class::ALL);
        let kinds = [(false, false), (true, false), (false, true)];
        for (arch, (transfers, misses)) in
            Architecture::ALL.iter().flat_map(|arch| kinds.map(|kind| (*arch, kind)))
        {
            let table =
                table_with_classes(arch, Counted { transfers, misses, ..Counted::default() });
            for class in Class::ALL {
                let expected = Class::of(arch).contains(&class)
                    || transfers && class.is_transfer()
                    || misses && class.is_miss();
                assert_eq!(table.number(class.name()).is_some(), expected, "{class:?}");
                assert_eq!(Class::named(class.name()), Some(class));
            }
        }
    }
}
