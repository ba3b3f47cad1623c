//! What one frame of a profile's file holds.

use serde::{Deserialize, Serialize};

use super::{Accesses, Process, Scope, Totals};

/// The version of the file's format.
pub const VERSION: u16 = 1;
/// Most elements of one record, so that its frame stays far below the largest.
pub const CHUNK: usize = 1 << 16;

/// The payload of a frame.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// First of all: version and scope.
    Start(u16, Scope),
    /// Kernel instructions of a CPU, going on from the record before: the distance from the
    /// address before, or from 0, and the count.
    Kernel(u16, Vec<(u64, u64)>),
    /// The totals of a CPU.
    Totals(u16, Totals),
    /// User instructions of a CPU by process.
    Processes(u16, Vec<(Process, u64)>),
    /// Accesses of a CPU.
    Accesses(u16, Vec<Accesses>),
    /// The phase ends here.
    Cut,
    /// The machine ended.
    End,
}
