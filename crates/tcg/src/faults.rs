//! Which instructions met a page fault: they were begun, counted and not executed.
//!
//! The handler of page faults is the one in gate 14 of the interrupt table. At its first
//! instruction the CPU has put down an error code and the address of the instruction (Intel SDM,
//! volume 3A, "64-bit mode stack frame").

/// Bytes of a gate in 64-bit mode.
pub const GATE: usize = 16;
/// Bytes of the frame that are looked at: error code, instruction pointer, code segment.
pub const FRAME: usize = 24;
/// The vector of page faults.
const PAGE_FAULT: u64 = 14;
/// Error code of a page fault: the instruction itself could not be fetched, so it never began.
const FETCH: u64 = 1 << 4;
/// Each CPU may have its own table, and the kernel has one for its start.
const MAX_TABLES: usize = 512;

/// The interrupt tables that were ever in use.
#[derive(Debug, Default)]
pub struct InterruptTables(Vec<u64>);

impl InterruptTables {
    /// A CPU loaded the table at this address.
    pub fn loaded(&mut self, address: u64) {
        if !self.0.contains(&address) && self.0.len() < MAX_TABLES {
            self.0.push(address);
        }
    }

    /// True if a table has code at `address` for its page faults. `read` gives a gate's bytes.
    pub fn fault_to(&self, address: u64, read: impl Fn(u64) -> Option<[u8; GATE]>) -> bool {
        let handler = |table: &u64| read(table.wrapping_add(PAGE_FAULT * GATE as u64)).map(handler);
        self.0.iter().any(|table| handler(table) == Some(address))
    }
}

/// The address in a gate (Intel SDM, volume 3A, "64-bit IDT gate descriptors").
fn handler(gate: [u8; GATE]) -> u64 {
    let part = |at: usize| u64::from(u16::from_le_bytes([gate[at], gate[at + 1]]));
    part(0) | part(6) << 16 | part(8) << 32 | part(10) << 48
}

/// An instruction that was begun and not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulted {
    /// Its address.
    pub address: u64,
    /// It is one of user mode.
    pub user: bool,
}

/// Which instruction the frame of a page fault is about; none if it had not begun.
pub fn faulted(frame: [u8; FRAME]) -> Option<Faulted> {
    let mut words = frame.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let (error, address, segment) = (words.next()?, words.next()?, words.next()?);
    (error & FETCH == 0).then_some(Faulted { address, user: segment & 3 == 3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(error: u64, address: u64, segment: u64) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        for (place, word) in bytes.chunks_mut(8).zip([error, address, segment]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_handler_is_found_in_any_table() {
        let mut tables = InterruptTables::default();
        tables.loaded(0x1000);
        tables.loaded(0x2000);
        let address = 0xffff_ffff_81a0_0b40_u64;
        let bytes = address.to_le_bytes();
        let mut gate = [0x8e; GATE];
        gate[0..2].copy_from_slice(&bytes[0..2]);
        gate[6..8].copy_from_slice(&bytes[2..4]);
        gate[8..12].copy_from_slice(&bytes[4..8]);
        let read = |at| (at == 0x20e0).then_some(gate);
        assert!(tables.fault_to(address, read));
        assert!(!tables.fault_to(address + 1, read));
        assert!(!InterruptTables::default().fault_to(address, read));
    }

    #[test]
    fn a_fault_of_the_fetch_had_not_begun() {
        let fault = Some(Faulted { address: 0x40_1000, user: true });
        assert_eq!(faulted(frame(6, 0x40_1000, 0x33)), fault);
        assert_eq!(faulted(frame(0x14, 0x40_1000, 0x33)), None);
        let fault = Some(Faulted { address: 0xffff_ffff_8100_0000, user: false });
        assert_eq!(faulted(frame(2, 0xffff_ffff_8100_0000, 0x10)), fault);
    }
}
