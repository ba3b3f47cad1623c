//! An `Image` of arm64 (`Documentation/arch/arm64/booting.rst`). It has no table of sections. Symbols tell where code
//! ends (`arch/arm64/kernel/vmlinux.lds.S`).

use std::ops::Range;

use kernelfiles::kallsyms::Symbols;
use model::Architecture;

use super::{Image, LOWEST, Section};

const MAGIC: (usize, &[u8]) = (0x38, b"ARM\x64");
/// The offset of the image from an address that is a multiple of `ALIGNED`, and its size in memory.
const OFFSET: usize = 0x08;
const SIZE: usize = 0x10;
/// The kernel begins at a multiple of this (`KIMAGE_VADDR`), and is smaller.
const ALIGNED: u64 = 128 << 20;
/// The end of the code.
const END: &str = "_etext";
/// The end of the code that runs only at the start. The first of these that is listed is nearest to it.
const ENDS: [&str; 4] = ["__exittext_end", "_einittext", "__init_end", "_end"];

pub(super) fn is_image(file: &[u8]) -> bool {
    file.get(MAGIC.0..).is_some_and(|rest| rest.starts_with(MAGIC.1))
}

/// Reads code and data. Without symbols there are none.
pub(super) fn read<'a>(file: &'a [u8], symbols: &Symbols) -> Image<'a> {
    let arch = Architecture::Arm64;
    let addresses = || symbols.functions().map(|(symbol, _)| symbol.address);
    let Some(first) = addresses().find(|it| *it >= LOWEST) else {
        return Image::of(file, arch, Vec::new());
    };
    let number = |at: usize| file.get(at..)?.first_chunk().map(|it| u64::from_le_bytes(*it));
    let [offset, size] = [OFFSET, SIZE].map(|at| number(at).unwrap_or(0).min(ALIGNED));
    let base = first - first % ALIGNED + offset;
    let end = base.saturating_add(size.max(file.len() as u64));
    let within = |address: u64| address.clamp(base, end);
    let text = within(symbols.address(END).unwrap_or(end));
    let init = within(addresses().find(|it| *it > text).unwrap_or(end));
    let code = within(ENDS.iter().find_map(|it| symbols.address(it)).unwrap_or(end)).max(init);
    let section = |range: Range<u64>, is_code: bool, has_strings: bool| {
        let [start, end] = [range.start, range.end].map(|it| (it - base) as usize);
        let bytes = file.get(start..end.min(file.len())).unwrap_or_default();
        Section { range, bytes, is_code, has_strings }
    };
    let sections = [
        section(base..text, true, false),
        section(text..init, false, true),
        section(init..code, true, false),
        section(code..end, false, false),
    ];
    let sections = sections.into_iter().filter(|it| !it.range.is_empty());
    Image::of(file, arch, sections.collect())
}
