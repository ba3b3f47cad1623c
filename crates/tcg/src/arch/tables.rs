//! The interrupt tables, which say where the handlers are.

use super::architecture::Architecture;
use crate::machine::Machine;

/// The largest number of tables. Each CPU may have its own, and the kernel uses another one while it starts.
const MAX_TABLES: usize = 512;

/// All interrupt tables that were loaded.
#[derive(Debug, Default)]
pub struct InterruptTables(Vec<u64>);

impl InterruptTables {
    /// Records that a CPU loaded the table at this address.
    pub fn loaded(&mut self, address: u64) {
        if !self.0.contains(&address) && self.0.len() < MAX_TABLES {
            self.0.push(address);
        }
    }

    /// The vector whose handler in any table is at `address`.
    pub fn vector<A: Architecture>(&self, address: u64, machine: &impl Machine) -> Option<u8> {
        self.0.iter().find_map(|table| A::vector(*table, address, machine))
    }
}
