//! Mapped memory as atomic words, which threads and the host can access concurrently.

#![expect(unsafe_code, reason = "typed access to mappings, and madvise and mprotect on them")]

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{MprotectFlags, mprotect};

use crate::arch::{huge, page};

/// A mapping as 64-bit words.
pub struct Words(MmapRaw);

impl Words {
    /// Maps a file for reading and writing, shared with everyone who maps it. The file is a recorder's PCI resource,
    /// or on a disk. Fails when the file is empty or cannot be mapped.
    pub fn shared(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < 8 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "nothing to map"));
        }
        Ok(Self(MmapRaw::map_raw(file)?))
    }

    /// Maps a file for reading and writing. Writes stay in this process. Fails when the file is empty or cannot be
    /// mapped.
    pub fn private(file: &File) -> io::Result<Self> {
        // SAFETY: all access is by atomics, so the file's writers race with no reference to plain memory.
        Ok(Self(unsafe { MmapOptions::new().map_copy(file) }?.into()))
    }

    /// Maps private zeroed memory, not yet backed by pages. Fails when the kernel does not have that much
    /// address space.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        Ok(Self(MmapOptions::new().len(bytes).map_anon()?.into()))
    }

    /// The first word of each base page. Access to it touches the page.
    pub fn pages(&self) -> impl Iterator<Item = &AtomicU64> {
        self.iter().step_by(page() / size_of::<AtomicU64>())
    }

    /// Makes the kernel reclaim the pages, as it would when short of memory (madvise(2), `MADV_PAGEOUT`,
    /// since Linux 5.4). Fails when the kernel does not support it.
    pub fn page_out(&self) -> io::Result<()> {
        self.advise(0..self.0.len(), libc::MADV_PAGEOUT)
    }

    /// Advises the kernel on some bytes, whole pages (madvise(2)). Fails when the kernel rejects it.
    pub fn advise(&self, bytes: Range<usize>, advice: c_int) -> io::Result<()> {
        assert!(bytes.start.is_multiple_of(page()) && bytes.end <= self.0.len());
        // SAFETY: the pages are within the mapping, which lives as long as `self`. Advice may replace what is in
        // them; all access is by atomics, for which any bit pattern is a value.
        let result = unsafe {
            let start = self.0.as_mut_ptr().add(bytes.start);
            libc::madvise(start.cast(), bytes.len(), advice)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Makes the kernel use base pages only (madvise(2), `MADV_NOHUGEPAGE`). Succeeds on a kernel without huge pages.
    pub fn without_huge_pages(&self) -> io::Result<()> {
        match self.advise(0..self.0.len(), libc::MADV_NOHUGEPAGE) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    /// Maps anonymous memory that has `bytes` bytes beginning at the boundary of a huge page. Also returns the range
    /// of these bytes. The memory around them gets no huge pages, because the stack of a thread beside it would share
    /// them.
    pub fn huge(bytes: usize) -> io::Result<(Self, Range<usize>)> {
        let words = Self::anonymous(bytes + huge())?;
        let address = words.0.as_mut_ptr().addr();
        let start = address.next_multiple_of(huge()) - address;
        for beside in [0..start, start + bytes..bytes + huge()] {
            words.advise(beside, libc::MADV_NOHUGEPAGE)?;
        }
        Ok((words, start..start + bytes))
    }

    /// Changes the protection of the pages (mprotect(2)). A write to read-only pages ends the process by a
    /// signal. Fails when the kernel rejects it.
    pub fn protect(&self, flags: MprotectFlags) -> io::Result<()> {
        // SAFETY: this is the whole mapping, which lives as long as `self`; no byte of it changes, and
        // nothing else is in its pages.
        Ok(unsafe { mprotect(self.0.as_mut_ptr().cast(), self.0.len(), flags) }?)
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        let words = self.0.len() / size_of::<AtomicU64>();
        // SAFETY: the mapping is page-aligned, readable and writable, `words` fit in it, and it
        // lives as long as `self`. All access in this process is by these atomics; whoever shares
        // a file's mapping is another process. Any bit pattern is a word.
        unsafe { std::slice::from_raw_parts(self.0.as_mut_ptr().cast(), words) }
    }
}

/// A mapping as 32-bit words, not yet backed by pages.
pub struct HalfWords(MmapRaw);

impl HalfWords {
    /// Maps this number of bytes of private zeroed memory. Fails when the kernel does not have that much address
    /// space.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        Ok(Self(MmapOptions::new().len(bytes).map_anon()?.into()))
    }

    /// Maps a file for reading and writing, shared with everyone who maps it. Fails when it cannot be mapped.
    pub fn shared(file: &File) -> io::Result<Self> {
        Ok(Self(MmapRaw::map_raw(file)?))
    }
}

impl Deref for HalfWords {
    type Target = [AtomicU32];

    fn deref(&self) -> &[AtomicU32] {
        let words = self.0.len() / size_of::<AtomicU32>();
        // SAFETY: as for `Words`.
        unsafe { std::slice::from_raw_parts(self.0.as_mut_ptr().cast(), words) }
    }
}
