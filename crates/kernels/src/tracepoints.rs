//! Lists the tracepoints of a kernel that perf can count, from its `vmlinux`.
//!
//! The kernel has a `struct trace_event_call` for each tracepoint (`include/linux/trace_events.h`). No symbols are
//! needed to find these structures. Each begins with an empty list head. A pointer to the class follows, which begins
//! with a pointer to the system's name; then a pointer to the tracepoint, which begins with a pointer to the
//! tracepoint's name. Further on is a pointer to the format for printing, which begins with a quotation mark. The
//! offset of this pointer depends on the version, but is the same for all tracepoints of a kernel. Tracepoints of
//! system calls get their format only when the kernel starts. Tracepoints of modules are not found.

use std::collections::BTreeMap;

use model::Kernel;
use object::Endianness;
use object::elf::{FileHeader64, PF_W, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::error::Error;
use crate::input;

/// The lowest address of the kernel, which is in the upper half of the address space.
const LOWEST: u64 = 1 << 63;
/// The largest `vmlinux`, in bytes.
const MAX_IMAGE: u64 = 1 << 30;
/// The longest name of a system or a tracepoint.
const MAX_NAME: usize = 64;
/// The possible offsets of the pointer to the format for printing.
const FORMATS: std::ops::Range<usize> = 48..112;
/// The system of tracepoints of system calls.
const SYSTEM_CALLS: &str = "syscalls";
/// The prefix of ftrace's own records, which have the same form but cannot be counted.
const OF_FTRACE: &str = "ftrace:";
/// The fewest tracepoints of a kernel that has any. Fewer matches are other data.
const FEWEST: usize = 16;
const WORD: usize = 8;

/// The tracepoints of a kernel as `system:name`, sorted; empty if it has none. `None` if it has no `vmlinux`, so
/// that they are not known. Fails when its file cannot be read.
pub fn tracepoints(kernel: &Kernel) -> Result<Option<Vec<String>>, Error> {
    // Of other architectures only the image is there, which is no ELF file.
    if !kernel.arch.is_usual() {
        return Ok(None);
    }
    let Some(path) = &kernel.vmlinux else { return Ok(None) };
    Ok(Some(listed(&input::read(path, MAX_IMAGE)?)))
}

/// The tracepoints in a `vmlinux`.
fn listed(vmlinux: &[u8]) -> Vec<String> {
    let memory = Memory::of(vmlinux).unwrap_or_default();
    let mut found: BTreeMap<Option<usize>, Vec<String>> = BTreeMap::new();
    for (_, bytes, _) in memory.segments.iter().filter(|(_, _, is_data)| *is_data) {
        for call in (0..bytes.len()).step_by(WORD).map(|place| &bytes[place..]) {
            if let Some((format, name)) = memory.tracepoint(call) {
                found.entry(format).or_default().push(name);
            }
        }
    }
    let of_system_calls = found.remove(&None).unwrap_or_default();
    let mut names = found.into_values().max_by_key(Vec::len).unwrap_or_default();
    if names.len() < FEWEST {
        return Vec::new();
    }
    names.extend(of_system_calls);
    names.retain(|name| !name.starts_with(OF_FTRACE));
    names.sort_unstable();
    names.dedup();
    names
}

/// The kernel's memory as its file describes it.
#[derive(Default)]
struct Memory<'a> {
    /// Addresses and contents, in order of address, and whether they can be written.
    segments: Vec<(u64, &'a [u8], bool)>,
}

impl<'a> Memory<'a> {
    fn of(vmlinux: &'a [u8]) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(vmlinux)?;
        let endian = header.endian()?;
        let mut segments = Vec::new();
        for segment in header.program_headers(endian, vmlinux)? {
            if segment.p_type(endian) == PT_LOAD && segment.p_vaddr(endian) >= LOWEST {
                let bytes = segment.data(endian, vmlinux).unwrap_or_default();
                let is_data = segment.p_flags(endian).contains(PF_W);
                segments.push((segment.p_vaddr(endian), bytes, is_data));
            }
        }
        segments.sort_by_key(|(start, ..)| *start);
        Ok(Self { segments })
    }

    /// The bytes from `address` to the end of its segment.
    fn at(&self, address: u64) -> Option<&'a [u8]> {
        let next = self.segments.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, _) = self.segments[next.checked_sub(1)?];
        bytes.get(usize::try_from(address - start).ok()?..)
    }

    /// The target of a pointer at `address`.
    fn behind(&self, address: u64) -> Option<u64> {
        word(self.at(address)?, 0).filter(|it| *it >= LOWEST)
    }

    fn name(&self, address: u64) -> Option<&'a str> {
        let bytes = self.at(address)?;
        let bytes = &bytes[..bytes.len().min(MAX_NAME)];
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let is_name = end > 0 && bytes[..end].iter().all(is_plain);
        str::from_utf8(&bytes[..end]).ok().filter(|_| is_name)
    }

    /// If `call` begins with such a structure: the offset of its format, if it has one, and its name.
    fn tracepoint(&self, call: &[u8]) -> Option<(Option<usize>, String)> {
        let [0, 0, class, tracepoint] = [0, 1, 2, 3].map(|it| word(call, it * WORD).unwrap_or(1))
        else {
            return None;
        };
        if class < LOWEST || tracepoint < LOWEST {
            return None;
        }
        let system = self.name(self.behind(class)?)?;
        // An event of a system call has a pointer to its name in place of the tracepoint.
        let named = self.behind(tracepoint).and_then(|name| self.name(name));
        let name = named.or_else(|| self.name(tracepoint))?;
        let listed = format!("{system}:{name}");
        if system == SYSTEM_CALLS && name.starts_with("sys_") {
            return Some((None, listed));
        }
        let is_format = |offset: &usize| {
            let format = word(call, *offset).and_then(|address| self.at(address));
            format.is_some_and(|format| format.first() == Some(&b'"'))
        };
        FORMATS.step_by(WORD).find(is_format).map(|format| (Some(format), listed))
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..)?.first_chunk::<WORD>()?;
    Some(u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: u64 = 0xffff_ffff_8200_0000;
    const HEADERS: usize = 64 + 56;

    /// A `vmlinux` with one segment that holds tracepoints `sys:event_N`, each with its format at the offset.
    fn vmlinux(formats: &[usize]) -> Vec<u8> {
        let mut data = b"sys\0\"format\0".to_vec();
        data.resize(16, 0);
        let put = |data: &mut Vec<u8>, words: &[u64]| {
            let address = BASE + data.len() as u64;
            words.iter().for_each(|it| data.extend(it.to_le_bytes()));
            address
        };
        let class = put(&mut data, &[BASE]);
        for (number, format) in formats.iter().enumerate() {
            let mut name = format!("event_{number}").into_bytes();
            name.resize(16, 0);
            let named = BASE + data.len() as u64;
            data.extend(name);
            let tracepoint = put(&mut data, &[named]);
            let mut call = [0; 16];
            (call[2], call[3], call[format / WORD]) = (class, tracepoint, BASE + 4);
            put(&mut data, &call);
        }
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(HEADERS, 0);
        file[16..20].copy_from_slice(&[2, 0, 62, 0]);
        file[32] = 64;
        file[52..58].copy_from_slice(&[64, 0, 56, 0, 1, 0]);
        file[64..72].copy_from_slice(&[1, 0, 0, 0, 6, 0, 0, 0]);
        file[72] = HEADERS as u8;
        file[80..88].copy_from_slice(&BASE.to_le_bytes());
        file[96..104].copy_from_slice(&(data.len() as u64).to_le_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn tracepoints_are_found_by_their_form() {
        let found = listed(&vmlinux(&[80; 20]));
        assert_eq!(found.len(), 20);
        assert!(found.contains(&"sys:event_7".to_owned()), "{found:?}");
        // A structure with a format at another offset is not a tracepoint.
        let mut formats = [80; 21];
        formats[3] = 56;
        assert!(!listed(&vmlinux(&formats)).contains(&"sys:event_3".to_owned()));
        assert_eq!(listed(&vmlinux(&[80; 3])), Vec::<String>::new());
        assert_eq!(listed(b"no ELF file"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn damaged_images_are_survived(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut file = vmlinux(&[64; 17]);
            for (place, byte) in damage {
                let place = place.index(file.len());
                file[place] = byte;
            }
            file.truncate(cut.index(file.len()) + 1);
            listed(&file);
        }
    }
}
