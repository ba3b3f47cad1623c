//! Reads a text of any length mail by mail, so that at most one mail is in memory.

use std::io::{self, BufRead, Read};

use crate::encoding::decoded;
use crate::mail::is_mailbox_mark;

/// A mail of a mailbox, or a whole text that is not a mailbox.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub bytes: Vec<u8>,
    /// How many lines of the text come before it.
    pub before: usize,
}

/// The mails of a text.
pub struct Mailbox<R> {
    source: R,
    /// Most bytes of a mail.
    most: usize,
    /// The beginning of the next mail, which has been read: its first line.
    next: Piece,
}

impl<R: BufRead> Mailbox<R> {
    /// The mails of `source`. Each may have `most` bytes.
    pub fn new(source: R, most: usize) -> Self {
        Self { source, most, next: Piece::default() }
    }

    /// Reads the next mail; `None` at the end of the text.
    fn read(&mut self) -> io::Result<Option<Piece>> {
        let mut piece = std::mem::take(&mut self.next);
        let mut lines = usize::from(!piece.bytes.is_empty());
        loop {
            let start = piece.bytes.len();
            // One byte more than the limit tells whether the limit is exceeded.
            let room = self.most.saturating_add(1).saturating_sub(start) as u64;
            self.source.by_ref().take(room).read_until(b'\n', &mut piece.bytes)?;
            if piece.bytes.len() > self.most {
                let (line, most) = (piece.before + 1, self.most >> 20);
                let what = format!("the mail that begins on line {line} is larger than {most} MiB");
                return Err(io::Error::other(what + ": split it"));
            }
            let line = &piece.bytes[start..];
            if line.is_empty() {
                return Ok(Some(piece).filter(|piece| !piece.bytes.is_empty()));
            }
            let is_mark = line.starts_with(b"From ") && is_mailbox_mark(decoded(line).trim_end());
            if is_mark && start > 0 {
                self.next = Piece { bytes: line.to_vec(), before: piece.before + lines };
                piece.bytes.truncate(start);
                return Ok(Some(piece));
            }
            lines += 1;
        }
    }
}

impl<R: BufRead> Iterator for Mailbox<R> {
    type Item = io::Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"before\nFrom a Sat Mar  7 15:20:00 2015\r\nSubject: x\n\nFrom here on\n\
        From b Sat Mar  7 15:20:00 2015\nno end";

    fn mails(most: usize) -> Vec<io::Result<Piece>> {
        Mailbox::new(TWO, most).collect()
    }

    #[test]
    fn a_mailbox_is_split_into_mails() {
        let found: Vec<Piece> = mails(1 << 20).into_iter().map(Result::unwrap).collect();
        assert_eq!(found.iter().map(|it| it.before).collect::<Vec<_>>(), [0, 1, 5]);
        assert_eq!(found[0].bytes, b"before\n");
        assert!(found[1].bytes.ends_with(b"\n\nFrom here on\n"));
        assert_eq!(found.iter().flat_map(|it| it.bytes.clone()).collect::<Vec<_>>(), TWO);
        assert!(Mailbox::new(&b""[..], 1).next().is_none());
    }

    #[test]
    fn a_mail_that_is_too_large_is_named() {
        let error = mails(40).remove(1).unwrap_err().to_string();
        assert_eq!(error, "the mail that begins on line 2 is larger than 0 MiB: split it");
    }
}
