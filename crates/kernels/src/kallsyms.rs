//! Reads the kernel's symbols from its image, without booting it: the tables from which it makes `/proc/kallsyms`
//! (`scripts/kallsyms.c`, `kernel/kallsyms.c`).
//!
//! | table | contents |
//! | --- | --- |
//! | `kallsyms_num_syms` | the number of symbols, in 4 bytes |
//! | `kallsyms_names` | for each symbol its length, in 1 byte or 2, and the numbers of its tokens, in a byte each |
//! | `kallsyms_markers` | the offset of each 256th name, in 4 bytes |
//! | `kallsyms_token_table` | 256 texts, each ended by 0 |
//! | `kallsyms_token_index` | the offset of each token, in 2 bytes |
//! | `kallsyms_offsets` | for each symbol its place, in 4 bytes |
//! | `kallsyms_relative_base` | the address to which places are relative, in 8 bytes; newer kernels have none |
//!
//! An `Image` of arm64 is no ELF file. It has the base as the addend of a relocation, and 0 in its place.
//!
//! Each table begins at a multiple of 8 bytes, in newer kernels of 4. Their order depends on the version. A stripped
//! image has no names for them, so they are found by their contents, and only tables that agree with each other are taken.

use std::fmt::Write;
use std::ops::Range;

use kernelfiles::kallsyms::is_end;
use memchr::memmem;
use model::Kernel;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::error::Error;
use crate::input;

/// Numbers of symbols; that of any kernel is among them.
const SYMBOLS: Range<usize> = 1000..1 << 20;
const TOKENS: usize = 256;
/// The largest length of a token, and of a symbol's name (`KSYM_NAME_LEN`) with its type.
const MAX_TOKEN: usize = 128;
const MAX_NAME: usize = 513;
/// Every 256th name has a marker.
const MARKED: usize = 256;
/// The tokens of digits stand for themselves.
const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";
/// The kinds of symbols of code (nm(1)).
const CODE: [&str; 4] = ["T", "t", "W", "w"];
/// The first address of the kernel's half of the address space.
const KERNEL: u64 = 1 << 63;
/// What a relocation of arm64 by the kernel's place has between its own place and its addend (`R_AARCH64_RELATIVE`).
const RELATIVE: [u8; 8] = 1027_u64.to_le_bytes();
/// The address of an arm64 kernel is a multiple of this (`KIMAGE_VADDR`), and the kernel is smaller.
const ALIGNED: u64 = 128 << 20;

/// The largest `vmlinux`, in bytes.
const MAX_IMAGE: u64 = 1 << 30;

/// The symbols of a kernel's code in the form of `/proc/kallsyms`, without those of modules and without those that a
/// running kernel adds. `None` if it has no `vmlinux`, or that has no tables that are understood. Fails when its file
/// cannot be read.
pub fn symbols(kernel: &Kernel) -> Result<Option<String>, Error> {
    let Some(path) = &kernel.vmlinux else { return Ok(None) };
    Ok(symbols_in(&input::read(path, MAX_IMAGE)?))
}

/// The symbols in a `vmlinux`, or an `Image` of arm64.
pub fn symbols_in(image: &[u8]) -> Option<String> {
    [8, 4].into_iter().find_map(|unit| Image { bytes: image, unit }.symbols())
}

/// An image whose tables begin at multiples of `unit` bytes.
#[derive(Clone, Copy)]
struct Image<'a> {
    bytes: &'a [u8],
    unit: usize,
}

impl<'a> Image<'a> {
    fn symbols(self) -> Option<String> {
        let mut digits = memmem::find_iter(self.bytes, DIGITS);
        let (start, tokens) = digits.find_map(|at| self.tokens(at))?;
        let length = tokens.iter().map(|it| it.len() + 1).sum::<usize>();
        let after = self.aligned(start + length) + 2 * TOKENS;
        let (first, names) = self.names(start, &tokens)?;
        let before = first.checked_sub(self.unit + 8 + self.aligned(4 * names.len()));
        let mut places = [before, Some(after)].into_iter().flatten();
        let addresses = places.find_map(|at| self.addresses(at, names.len()))?;
        let mut text = String::new();
        for (address, name) in addresses.iter().zip(&names) {
            let (kind, name) = name.split_at_checked(1)?;
            if CODE.contains(&kind) || is_end(name) {
                writeln!(text, "{address:016x} {kind} {name}").ok()?;
            }
        }
        Some(text)
    }

    fn aligned(self, offset: usize) -> usize {
        offset.next_multiple_of(self.unit)
    }

    /// The token table in which the tokens of digits are at `digits`, and where it begins. The index after it must agree.
    fn tokens(self, digits: usize) -> Option<(usize, Vec<&'a [u8]>)> {
        let mut start = digits;
        for _ in 0..b'0' {
            let mut before = self.bytes[..start.checked_sub(1)?].iter().rev().take(MAX_TOKEN);
            start -= before.position(|byte| *byte == 0)? + 1;
        }
        let (mut at, mut tokens, mut index) = (start, Vec::new(), Vec::new());
        for _ in 0..TOKENS {
            let rest = self.bytes.get(at..)?;
            let length = rest.iter().take(MAX_TOKEN).position(|byte| *byte == 0)?;
            index.extend(u16::try_from(at - start).ok()?.to_le_bytes());
            tokens.push(&rest[..length]);
            at += length + 1;
        }
        let agrees = self.bytes.get(self.aligned(at)..)?.starts_with(&index);
        agrees.then_some((start, tokens))
    }

    /// The names before the token table, and where they begin. The markers after them must agree.
    fn names(self, tokens_at: usize, tokens: &[&[u8]]) -> Option<(usize, Vec<String>)> {
        let mut starts = (self.unit..tokens_at).step_by(self.unit).rev();
        starts.find_map(|start| self.names_at(start, tokens_at, tokens).map(|it| (start, it)))
    }

    fn names_at(self, start: usize, end: usize, tokens: &[&[u8]]) -> Option<Vec<String>> {
        let number = self.bytes[start - self.unit..start].split_first_chunk();
        let number = number.filter(|(_, padding)| padding.iter().all(|byte| *byte == 0));
        let number = u32::from_le_bytes(*number?.0) as usize;
        if !SYMBOLS.contains(&number) {
            return None;
        }
        let (mut names, mut markers) = (Vec::new(), Vec::new());
        let mut rest = &self.bytes[start..end];
        for place in 0..number {
            if place % MARKED == 0 {
                let offset = end - start - rest.len();
                markers.extend(u32::try_from(offset).ok()?.to_le_bytes());
            }
            let length;
            (length, rest) = length_of_name(rest)?;
            let numbers;
            (numbers, rest) = rest.split_at_checked(length)?;
            let name = numbers.iter().flat_map(|number| tokens[usize::from(*number)]);
            let name = String::from_utf8(name.copied().collect()).ok()?;
            let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
            let is_name = begins && name.len() <= MAX_NAME && !name.contains(is_no_part);
            names.push(name);
            if !is_name {
                return None;
            }
        }
        let markers_at = self.aligned(end - rest.len());
        self.bytes.get(markers_at..)?.starts_with(&markers).then_some(names)
    }

    /// The addresses of `number` symbols whose places are at `at`. They must be in order.
    fn addresses(self, at: usize, number: usize) -> Option<Vec<u64>> {
        let places = self.bytes.get(at..at + 4 * number)?.as_chunks().0.iter();
        let places: Vec<i32> = places.map(|it| i32::from_le_bytes(*it)).collect();
        let base = self.base(at + self.aligned(4 * number));
        let all = |way: &dyn Fn(usize, i32) -> u64| {
            let addresses = places.iter().enumerate().map(|(number, place)| way(number, *place));
            let addresses: Vec<u64> = addresses.collect();
            let ends = addresses.last().is_some_and(|last| *last >= KERNEL);
            (ends && addresses.is_sorted()).then_some(addresses)
        };
        // With variables of CPUs at 0 (before Linux 6.15), places below 0 are relative, and others are addresses.
        let absolute = base.and_then(|base| {
            all(&|_, place| match place {
                0.. => place.unsigned_abs().into(),
                _ => base.wrapping_add(u64::from(place.unsigned_abs()) - 1),
            })
        });
        let relative = || {
            let base = base?;
            all(&|_, place| base.wrapping_add(place.cast_unsigned().into()))
        };
        // Without a base, a place is relative to its own address.
        let to_own = || {
            let own = self.address_of(at)?;
            all(&|number, place| {
                own.wrapping_add(4 * number as u64).wrapping_add_signed(place.into())
            })
        };
        absolute.or_else(relative).or_else(to_own)
    }

    /// The base of addresses that is at this offset, or that a relocation puts there.
    fn base(self, at: usize) -> Option<u64> {
        let word = |at: usize| Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?));
        let relocated = |info: usize| {
            let (place, base) = (word(info.checked_sub(8)?)?, word(info + 8)?);
            let image = place.wrapping_sub(at as u64);
            let is_here = image >= KERNEL && image.is_multiple_of(ALIGNED);
            (is_here && (image..image + ALIGNED).contains(&base)).then_some(base)
        };
        let stored = word(at).filter(|base| *base >= KERNEL);
        stored.or_else(|| memmem::find_iter(self.bytes, &RELATIVE).find_map(relocated))
    }

    /// The address at which the byte at this offset is loaded.
    fn address_of(self, offset: usize) -> Option<u64> {
        let header = FileHeader64::<Endianness>::parse(self.bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, self.bytes).ok()?.iter();
        let mut places = segments.map(|it| (it.file_range(endian), it.p_vaddr(endian)));
        places.find_map(|((start, length), address)| {
            let within = (offset as u64).checked_sub(start).filter(|within| *within < length)?;
            address.checked_add(within)
        })
    }
}

/// The number of tokens of the next name, and what follows. A number of 128 or more has two bytes of 7 bits (since
/// Linux 6.1).
fn length_of_name(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (low, rest) = bytes.split_first()?;
    match low {
        0 => None,
        short @ ..128 => Some((usize::from(*short), rest)),
        low => {
            let (high, rest) = rest.split_first()?;
            Some((usize::from(low & 0x7f) | usize::from(*high) << 7, rest))
        }
    }
}

fn is_no_part(letter: char) -> bool {
    !letter.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where a made-up image is loaded.
    const LOADED: u64 = 0xffff_ffff_8800_0000;
    const FUNCTIONS: usize = 1500;

    /// How a version of Linux writes the tables.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Form {
        /// Places are before the names, and those of variables of CPUs are addresses.
        Old,
        /// Places are after the tokens, and relative to the first symbol.
        Relative,
        /// Likewise, but a relocation has the address of the first symbol, and the image is no ELF file.
        Relocated,
        /// Places are after the tokens, and relative to themselves.
        Own,
    }

    /// A variable, and functions in order. One has a name of more than 127 letters.
    fn symbols() -> Vec<(u64, String)> {
        let functions = (0..FUNCTIONS).map(|number| {
            let long = if number == 700 { "x".repeat(150) } else { String::new() };
            (LOADED + 16 * (number as u64 / 2), format!("tf{number}{long}"))
        });
        functions.chain([(LOADED + 0x10_0000, "Dvariable".to_owned())]).collect()
    }

    fn align(bytes: &mut Vec<u8>, unit: usize) {
        bytes.resize(bytes.len().next_multiple_of(unit), 0);
    }

    fn places(bytes: &mut Vec<u8>, form: Form, symbols: &[(u64, String)], unit: usize) {
        let at = bytes.len() as u64;
        for ((address, _), number) in symbols.iter().zip(0..) {
            let place = match form {
                _ if *address < KERNEL => *address as i32,
                Form::Old => -1 - (address - LOADED) as i32,
                Form::Relative | Form::Relocated => (address - LOADED) as i32,
                Form::Own => address.wrapping_sub(LOADED + at + 4 * number) as i32,
            };
            bytes.extend(place.to_le_bytes());
        }
        align(bytes, unit);
        let base = bytes.len() as u64;
        match form {
            Form::Old | Form::Relative => bytes.extend(LOADED.to_le_bytes()),
            Form::Relocated => {
                let entry = [0, LOADED + base, u64::from_le_bytes(RELATIVE), LOADED];
                bytes.extend(entry.map(u64::to_le_bytes).concat());
            }
            Form::Own => {}
        }
    }

    /// An ELF file with one segment, and the tables in it.
    fn image(form: Form) -> Vec<u8> {
        let unit = if form == Form::Own { 4 } else { 8 };
        let mut symbols = symbols();
        if form == Form::Old {
            symbols.insert(0, (0x1000, "Aof_a_cpu".to_owned()));
        }
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(128, 0);
        bytes.extend([7; 100]);
        align(&mut bytes, unit);
        if form == Form::Old {
            places(&mut bytes, form, &symbols, unit);
        }
        bytes.extend((symbols.len() as u32).to_le_bytes());
        align(&mut bytes, unit);
        let (start, mut markers) = (bytes.len(), Vec::new());
        for (number, (_, name)) in symbols.iter().enumerate() {
            if number % MARKED == 0 {
                markers.extend(((bytes.len() - start) as u32).to_le_bytes());
            }
            match name.len() {
                short @ ..128 => bytes.push(short as u8),
                long => bytes.extend([long as u8 | 0x80, (long >> 7) as u8]),
            }
            bytes.extend(name.as_bytes());
        }
        align(&mut bytes, unit);
        bytes.extend(markers);
        align(&mut bytes, unit);
        let (start, mut index) = (bytes.len(), Vec::new());
        for token in 0..=u8::MAX {
            index.extend(((bytes.len() - start) as u16).to_le_bytes());
            match token.is_ascii_graphic() {
                true => bytes.push(token),
                false => bytes.extend(b"unused"),
            }
            bytes.push(0);
        }
        align(&mut bytes, unit);
        bytes.extend(index);
        if form != Form::Old {
            places(&mut bytes, form, &symbols, unit);
        }
        if form == Form::Relocated {
            bytes[..4].fill(0);
            return bytes;
        }
        let size = bytes.len() as u64;
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(32, &64_u64.to_le_bytes()); // e_phoff
        put(52, &[64, 0, 56, 0, 1, 0]); // e_ehsize, e_phentsize, e_phnum
        put(64, &1_u32.to_le_bytes()); // PT_LOAD
        put(80, &LOADED.to_le_bytes()); // p_vaddr
        put(96, &size.to_le_bytes()); // p_filesz
        bytes
    }

    #[test]
    fn symbols_of_each_form_are_listed() {
        let expected: String = symbols()
            .iter()
            .filter(|(_, name)| name.starts_with('t'))
            .map(|(address, name)| format!("{address:016x} t {}\n", &name[1..]))
            .collect();
        for form in [Form::Old, Form::Relative, Form::Relocated, Form::Own] {
            assert!(symbols_in(&image(form)) == Some(expected.clone()), "{form:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Tables that do not agree are not taken. A damaged name or address may go unnoticed: images have checksums.
        #[test]
        fn damaged_images_are_harmless(cut in 0..30_000_usize, at in 0..30_000_usize, bits in any::<u8>()) {
            for form in [Form::Old, Form::Own] {
                let whole = image(form);
                let mut damaged = whole.clone();
                let at = at % damaged.len();
                damaged[at] ^= bits;
                if let Some(text) = symbols_in(&damaged) {
                    prop_assert!(text.lines().count() <= FUNCTIONS);
                }
                let cut = cut % whole.len();
                prop_assert!(form == Form::Own || symbols_in(&whole[..cut]).is_none());
                let _ = symbols_in(&whole[..cut]);
            }
        }
    }
}
