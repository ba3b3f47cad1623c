//! The content of one frame of a profile's file.

use serde::{Deserialize, Serialize};

use super::{Accesses, Class, Misses, Object, Process, Scope, Tick, Totals, Transfers};

/// The version of the file's format.
pub const VERSION: u16 = 9;
/// The largest number of elements of one record, so that its frame is far below the limit.
pub const CHUNK: usize = 1 << 16;

/// The payload of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// The first record: version and scope.
    Start(u16, Scope),
    /// Kernel instructions of a CPU, continued from the previous record: the distance from the previous
    /// address, or from 0, and the count.
    Kernel(u16, Vec<(u64, u64)>),
    /// The totals of a CPU.
    Totals(u16, Totals),
    /// User instructions of a CPU by process.
    Processes(u16, Vec<(Process, u64)>),
    /// Accesses of a CPU.
    Accesses(u16, Vec<Accesses>),
    /// The slice ends.
    Cut,
    /// The machine ended normally.
    End,
    /// Accesses from the slice's start to a tick.
    Tick(Tick),
    /// New nodes, continued from the previous records.
    Nodes(Vec<NodeStep>),
    /// Kernel instructions by path, continued from the previous record.
    Stacks(Vec<StackStep>),
    /// The first process other than the agent that executed a mark or a tick. There is at most one such record.
    Intruder(Process),
    /// New classes of kernel instructions, or none where there was one.
    Classes(Vec<ClassStep>),
    /// New slab caches, as in a profile.
    Caches(Vec<String>),
    /// Transfers of lines to a CPU, continued from the previous record.
    Transfers(u16, Vec<TransferStep>),
    /// What a CPU missed in the model of caches and TLBs, continued from the previous record.
    Misses(u16, Vec<MissStep>),
}

/// What one instruction missed: the distance from the previous one's address, or from 0.
pub type MissStep = (i64, Misses);

/// Transfers by one instruction in one object: the distance from the previous instruction's address, or from 0.
pub type TransferStep = (i64, Object, Transfers);

/// The class of an instruction: the distance from the previous address, or from 0, and the class.
pub type ClassStep = (i64, Option<Class>);

/// A node: its parent's number plus 1, or 0, and the distance from the previous node's address, or from 0.
pub type NodeStep = (u32, i64);

/// A count by path: the difference of the node's number plus 1, or 0, from the previous one; the distance
/// from the previous address, or from 0; and the count.
pub type StackStep = (u32, i64, u64);

/// Distance from the address `before`, which is set to `address`.
pub fn distance(before: &mut u64, address: u64) -> i64 {
    address.wrapping_sub(std::mem::replace(before, address)).cast_signed()
}

/// The address at `distance` from `before`, which is set to it.
pub fn address(before: &mut u64, distance: i64) -> u64 {
    *before = before.wrapping_add_signed(distance);
    *before
}
