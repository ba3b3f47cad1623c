//! Two lines of aligned 128 bytes as one line. Many processors fetch the other line of such a pair too.

/// The bytes of a pair of lines.
pub const PAIR: u64 = 128;

/// The state of a pair.
#[derive(Clone, Copy, Default)]
pub struct Pair {
    /// The CPUs that have a copy, one for each bit.
    pub copies: u64,
    /// Whether a CPU wrote it.
    is_written: bool,
}

impl Pair {
    /// A CPU, which is this bit of the copies, loads from the pair or stores to it. Returns whether it takes it from others.
    pub fn access(&mut self, own: u64, stores: bool) -> bool {
        let takes = match self.copies & own != 0 {
            true => stores && self.copies != own,
            false => self.is_written,
        };
        match stores {
            true => *self = Self { copies: own, is_written: true },
            false => self.copies |= own,
        }
        takes
    }
}
