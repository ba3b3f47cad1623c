//! Reads archives of cpio in the format "newc" (`Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::io::{self, Read};

use super::target::{Failure, Target, refuse};

/// The magic numbers: without and with a checksum, which packages of rpm do not have.
const MAGICS: [&[u8]; 2] = [b"070701", b"070702"];
/// The magic number of rpm's own format for files of 4 GiB and more.
const LARGE: &[u8] = b"07070X";
/// The name of the last entry.
const TRAILER: &[u8] = b"TRAILER!!!";
/// The longest path (`PATH_MAX`) with its NUL.
const MAX_PATH: usize = 4096;
/// The numbers of a header, 8 hexadecimal digits each.
const NUMBERS: usize = 13;
/// Kinds of files in the mode (inode(7)).
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// Unpacks an archive up to its last entry. Devices, FIFOs and sockets are left out.
pub(super) fn unpack(from: &mut dyn Read, target: &mut Target) -> Result<(), Failure> {
    loop {
        let mut magic = [0; 6];
        from.read_exact(&mut magic)?;
        if magic == LARGE {
            return refuse(
                "its payload has rpm's format for files of 4 GiB and more, which is not known here",
            );
        }
        if !MAGICS.contains(&&magic[..]) {
            return refuse("it is damaged: its payload is not a cpio archive");
        }
        let mut header = [0; 8 * NUMBERS];
        from.read_exact(&mut header)?;
        let Some(numbers) = numbers(&header) else {
            return refuse("it is damaged: a header of its payload is not a number");
        };
        let [inode, mode, _, _, names, _, size, major, minor, _, _, length, _] = numbers;
        let length = length as usize;
        if !(2..=MAX_PATH).contains(&length) {
            return refuse("it is damaged: a file has no name, or one that is too long");
        }
        let mut name = vec![0; length];
        from.read_exact(&mut name)?;
        skip(from, magic.len() + header.len() + length)?;
        if name.pop() != Some(0) || name.contains(&0) {
            return refuse("it is damaged: the name of a file has no end");
        }
        if name == TRAILER {
            return Ok(());
        }
        target.count(size.into())?;
        let mut content = from.take(size.into());
        let (about, number) =
            ((mode, size.into()), (u64::from(major) << 32 | u64::from(minor), inode.into()));
        match mode & KIND {
            DIRECTORY => target.directory(&name)?,
            FILE if names > 1 => target.shared_file(&name, number, about, &mut content)?,
            FILE => drop(target.file(&name, about, &mut content)?),
            LINK if size as usize <= MAX_PATH => {
                let mut to = Vec::new();
                content.read_to_end(&mut to)?;
                target.link(&name, &to)?;
            }
            LINK => return refuse("it is damaged: a link is too long"),
            _ => {}
        }
        io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        skip(from, size as usize)?;
    }
}

/// The numbers of a header.
fn numbers(header: &[u8]) -> Option<[u32; NUMBERS]> {
    let mut numbers = [0; NUMBERS];
    for (number, digits) in numbers.iter_mut().zip(header.chunks_exact(8)) {
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        *number = u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(numbers)
}

/// Skips to the next multiple of 4 after `length` bytes.
fn skip(from: &mut dyn Read, length: usize) -> io::Result<()> {
    from.read_exact(&mut [0; 3][..(4 - length % 4) % 4])
}
