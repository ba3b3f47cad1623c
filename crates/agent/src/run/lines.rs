//! Splits bytes from a pipe into lines, and keeps the end of a program's output.

use flight::protocol::MAX_LINE;

/// Splits bytes into lines.
#[derive(Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Adds bytes and returns the complete lines. A line without an end is returned once it exceeds the largest
    /// length.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.pending.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.pending);
        let mut lines: Vec<Vec<u8>> = all.split(|byte| *byte == b'\n').map(Vec::from).collect();
        self.pending = lines.pop().unwrap_or_default();
        if self.pending.len() > MAX_LINE {
            lines.push(std::mem::take(&mut self.pending));
        }
        lines
    }

    /// Returns the last line if it has no newline.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}

/// The last 2 KiB of a program's output.
#[derive(Default)]
pub struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    const LIMIT: usize = 2 << 10;

    /// Adds bytes and removes the oldest.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.drain(..self.bytes.len().saturating_sub(Self::LIMIT));
    }

    /// The text without white space at its ends.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_line_without_end_is_returned() {
        let mut lines = Lines::default();
        assert!(lines.feed(&[b'x'; MAX_LINE]).is_empty());
        assert_eq!(lines.feed(b"x"), [[b'x'; MAX_LINE + 1]]);
        assert!(lines.rest().is_empty());
    }

    #[test]
    fn the_tail_is_limited() {
        let mut tail = Tail::default();
        tail.feed(&[b'a'; 5000]);
        tail.feed(b"end\n");
        assert_eq!(tail.text().len(), Tail::LIMIT - 1);
        assert!(tail.text().ends_with("aend"));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_cuts(text in "[a\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6)) {
            let mut pieces = Lines::default();
            let (mut got, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                got.extend(pieces.feed(now));
                rest = later;
            }
            got.extend(pieces.feed(rest));
            got.push(pieces.rest());
            let expected: Vec<_> = text.split('\n').map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
