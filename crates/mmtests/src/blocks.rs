//! Splits a text of any length into blocks of whole lines, so that only one block is in memory.

use std::io::{self, Read};

/// The size of a block in bytes, unless a line is longer.
const BLOCK: usize = 256 << 10;
/// The longest line in bytes; `/proc/interrupts` of a thousand CPUs has 12 KB.
const MAX_LINE: usize = 1 << 20;

/// The blocks of a text.
pub struct Blocks<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The end of the part of the buffer that was returned.
    given: usize,
    /// The end of the part of the buffer that was filled.
    filled: usize,
    /// How many more bytes may be read.
    left: u64,
    /// Why no more can be read.
    trouble: Option<io::Error>,
}

impl<R: Read> Blocks<R> {
    /// The text of `reader`. At most `limit` bytes of it are read.
    pub fn new(reader: R, limit: u64) -> Self {
        let buffer = vec![0; BLOCK];
        Self { reader, buffer, given: 0, filled: 0, left: limit, trouble: None }
    }

    /// The next lines, of which only the last one of the text may lack its end. `None` at the end of the text. What
    /// could be read before an error is returned first. Fails if the rest can't be read, is too long, or has a line
    /// that is too long.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer[searched..self.filled]) {
                self.given = searched + end + 1;
                return Ok(Some(&self.buffer[..self.given]));
            }
            searched = self.filled;
            if self.filled > MAX_LINE {
                return Err(io::Error::other("a line is too long"));
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            if !self.fill() {
                break;
            }
        }
        self.given = self.filled;
        match self.trouble.take() {
            Some(trouble) if self.filled == 0 => Err(trouble),
            None if self.filled == 0 => Ok(None),
            trouble => {
                self.trouble = trouble;
                Ok(Some(&self.buffer[..self.filled]))
            }
        }
    }

    /// Reads until the buffer is full; false if nothing was read.
    fn fill(&mut self) -> bool {
        let before = self.filled;
        while self.trouble.is_none() && self.filled < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(read) if read as u64 > self.left => {
                    self.trouble = Some(io::Error::other("it is too long"));
                }
                Ok(read) => {
                    self.left -= read as u64;
                    self.filled += read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.trouble = Some(error),
            }
        }
        self.filled > before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that returns only a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.1);
            (&mut self.0).take(length as u64).read(buffer)
        }
    }

    fn blocks(reader: impl Read, limit: u64) -> (Vec<Vec<u8>>, Option<String>) {
        let mut blocks = Blocks::new(reader, limit);
        let mut all = Vec::new();
        loop {
            match blocks.next() {
                Ok(Some(block)) => all.push(block.to_vec()),
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn blocks_end_with_lines() {
        let text = b"nr_free_pages 12345\n".repeat(100_000);
        let (all, trouble) = blocks(&text[..], u64::MAX);
        assert!(all.len() > 3 && trouble.is_none());
        assert!(all.iter().all(|block| block.ends_with(b"\n") && block.len() <= BLOCK));
        assert_eq!(all.concat(), text);
    }

    #[test]
    fn what_is_too_long_is_refused_after_what_is_not() {
        let (all, trouble) = blocks(&vec![b'x'; 3 * MAX_LINE][..], u64::MAX);
        assert_eq!((all.len(), trouble.as_deref()), (0, Some("a line is too long")));
        let text = b"a\n".repeat(BLOCK);
        let (all, trouble) = blocks(&text[..], BLOCK as u64);
        assert_eq!((all.concat().len(), trouble.as_deref()), (BLOCK, Some("it is too long")));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            lines in prop::collection::vec("[a-z]{0,40}", 0..50),
            ending in any::<bool>(),
            step in 1usize..50,
        ) {
            let text = lines.join("\n") + if ending { "\n" } else { "" };
            let (all, trouble) = blocks(Slowly(text.as_bytes(), step), u64::MAX);
            prop_assert_eq!(trouble, None);
            prop_assert_eq!(all.concat(), text.into_bytes());
        }
    }
}
