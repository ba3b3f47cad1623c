//! Reads the kernel's log from `/dev/kmsg` without waiting. The console has the same lines, but can be slow or
//! silent.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::io::Errno;

/// The longest record in bytes (`include/linux/printk.h`, `PRINTK_MESSAGE_MAX` and its prefix).
const MAX_RECORD: usize = 8192;
/// The longest piece of lines, in bytes.
pub const MAX_PIECE: usize = 64 << 10;
/// The longest line in bytes.
const MAX_LINE: usize = MAX_PIECE / 2;

/// A reader of the kernel's log. The default reader has no lines.
#[derive(Default)]
pub struct KernelLog {
    file: Option<File>,
    room: usize,
}

impl KernelLog {
    /// Reads at most `room` bytes of lines from `/dev/kmsg`, because a kernel that never stops logging must not
    /// displace the samples. Without the device, or permission to read it, there are no lines.
    pub fn open(room: usize) -> Self {
        let device = Path::new("/dev/kmsg");
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(device);
        Self { file: file.ok(), room }
    }

    /// Reads new lines of the log only (`Documentation/ABI/testing/dev-kmsg`, seeking).
    pub fn from_now(room: usize) -> Self {
        let mut log = Self::open(room);
        log.file = log.file.filter(|mut file| file.seek(SeekFrom::End(0)).is_ok());
        log
    }

    /// Passes all new lines to `sink`, in pieces of at most [`MAX_PIECE`] bytes.
    pub fn drain(&mut self, mut sink: impl FnMut(String)) {
        let mut piece = String::new();
        while let Some(line) = self.next_line() {
            if piece.len() + line.len() >= MAX_PIECE {
                sink(std::mem::take(&mut piece));
            }
            piece.push_str(&line);
            piece.push('\n');
        }
        if !piece.is_empty() {
            sink(piece);
        }
    }

    /// The next line; `None` if there is no new line, or no room for more.
    fn next_line(&mut self) -> Option<String> {
        let mut record = [0; MAX_RECORD];
        loop {
            let line = match self.file.as_mut()?.read(&mut record) {
                Ok(0) => return None,
                Ok(length) => line(&record[..length]),
                // Lines were overwritten before they were read. The next read continues after them.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {
                    Some("(lines of the kernel's log were lost here)".into())
                }
                Err(_) => return None,
            };
            let Some(line) = line else { continue };
            let Some(room) = self.room.checked_sub(line.len() + 1) else {
                self.file = None;
                return Some("(the rest of the kernel's log is only on the console)".into());
            };
            self.room = room;
            return Some(line);
        }
    }
}

/// Turns a record into `[seconds] text`. A record is `level,sequence,microseconds,flags;text`, then lines
/// that begin with a space and name the device (`Documentation/ABI/testing/dev-kmsg`). `None` for anything
/// else.
fn line(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (prefix, text) = record.split_once(';')?;
    let microseconds: u64 = prefix.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next().unwrap_or_default();
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    Some(format!("[{seconds:5}.{fraction:06}] {}", crate::cut(text, MAX_LINE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_line_like_on_the_console() {
        let record = b"6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=net\n";
        assert_eq!(line(record).unwrap(), "[    5.140900] NET: Registered protocol family 10");
        assert_eq!(line(b"4,1,123456000007,c,caller=T1;x;y\n").unwrap(), "[123456.000007] x;y");
        assert_eq!(line(b"4,1,0,-;\n").unwrap(), "[    0.000000] ");
        assert_eq!(line(b"4,1,0,-;\xff\n").unwrap(), "[    0.000000] \u{fffd}");
    }

    #[test]
    fn invalid_records_are_ignored() {
        for record in [&b""[..], b"text", b"4,1;x", b"4,1,x,-;y"] {
            assert_eq!(line(record), None);
        }
    }

    #[test]
    fn the_log_is_limited_with_a_message() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"4,1,0,-;x\n").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut log = KernelLog { file: Some(file), room: 3 };
        let mut pieces = Vec::new();
        log.drain(|piece| pieces.push(piece));
        assert_eq!(pieces, ["(the rest of the kernel's log is only on the console)\n"]);
        log.drain(|piece| panic!("{piece}"));
    }
}
