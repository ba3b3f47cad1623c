//! A `vmlinux`, which is an ELF file.

use kernelfiles::kallsyms::{self, Symbols};
use model::Architecture;
use object::Endianness;
use object::elf::{
    EM_AARCH64, EM_X86_64, FileHeader64, Machine, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS,
    STT_FILE, STT_FUNC, STT_NOTYPE, STT_OBJECT,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use super::{Datum, Error, Image, LOWEST, Section};

/// The architectures whose kernels are read.
const MACHINES: [(Machine, Architecture); 2] =
    [(EM_X86_64, Architecture::X86_64), (EM_AARCH64, Architecture::Arm64)];
/// The section of per-CPU data. Until Linux 6.14 its addresses begin at 0
/// (`arch/x86/kernel/vmlinux.lds.S`).
const PER_CPU: &[u8] = b".data..percpu";
/// The section of instructions that the kernel copies over others when it starts. Compilers leave it to the
/// assembler, so it has no functions.
const ALTERNATIVES: &[u8] = b".altinstr_replacement";
/// The section in which the linker merges string literals.
const STRINGS: &[u8] = b".rodata";
/// The beginning of symbols that tell code from data on arm64, but name nothing (ELF for the Arm 64-bit Architecture).
const MAPPING: char = '$';

/// Reads code, data and symbols. Fails when the file is damaged.
pub(super) fn read(vmlinux: &[u8]) -> Result<Image<'_>, Error> {
    let header = FileHeader64::<Endianness>::parse(vmlinux)?;
    let endian = header.endian()?;
    let machine = header.e_machine(endian);
    let known = MACHINES.iter().find(|(number, _)| *number == machine);
    let Some((_, arch)) = known else { return Err(Error::Foreign(machine.0)) };
    let table = header.sections(endian, vmlinux)?;
    let mut sections = Vec::new();
    let mut per_cpu = 0..0;
    for section in table.iter() {
        let (address, size) = (section.sh_addr(endian), section.sh_size(endian));
        let flags = section.sh_flags(endian);
        let range = address..address.saturating_add(size);
        if !flags.contains(SHF_ALLOC) || range.is_empty() {
            continue;
        }
        let name = table.section_name(endian, section)?;
        if address < LOWEST {
            if name == PER_CPU {
                per_cpu = range;
            }
            continue;
        }
        let bytes = match section.sh_type(endian) {
            SHT_NOBITS => &[],
            _ => section.data(endian, vmlinux)?,
        };
        // A section of data can be marked executable because of a few words in it.
        let is_code = flags.contains(SHF_EXECINSTR) && !flags.contains(SHF_WRITE);
        let is_code = is_code && name != ALTERNATIVES;
        sections.push(Section { range, bytes, is_code, has_strings: name == STRINGS });
    }
    let mut image = Image::of(vmlinux, *arch, sections);
    image.per_cpu = per_cpu;
    image.read_symbols(header, endian, vmlinux)?;
    Ok(image)
}

impl<'a> Image<'a> {
    /// Reads the symbol table, if there is one.
    fn read_symbols(
        &mut self,
        header: &FileHeader64<Endianness>,
        endian: Endianness,
        vmlinux: &'a [u8],
    ) -> Result<(), Error> {
        let sections = header.sections(endian, vmlinux)?;
        let table = sections.symbols(endian, vmlinux, object::elf::SHT_SYMTAB)?;
        let mut functions = Vec::new();
        for symbol in table.iter() {
            let (kind, address) = (symbol.st_type(), symbol.st_value(endian));
            let Ok(name) = str::from_utf8(symbol.name(endian, table.strings())?) else { continue };
            if kind == STT_FILE || name.is_empty() || name.starts_with(MAPPING) {
                continue;
            }
            let size = symbol.st_size(endian);
            let range = address..address.saturating_add(size);
            match self.section(address) {
                Some(section) if section.is_code => {
                    if kind == STT_FUNC && size > 0 {
                        let end = self.ends.entry(address).or_default();
                        *end = range.end.max(*end);
                    }
                    if kind == STT_FUNC || kind == STT_NOTYPE {
                        let (name, module) = (name.to_owned(), String::new());
                        functions.push(kallsyms::Symbol { address, name, module });
                    }
                }
                _ if kind == STT_OBJECT && size > 0 => self.data.push(Datum { range, name }),
                _ => {}
            }
        }
        self.symbols = Symbols::of(functions.into_iter());
        let plainness = |name: &str| name.len() - name.trim_start_matches('_').len();
        self.data.sort_by_key(|it| (it.range.start, plainness(it.name), it.name));
        self.data.dedup_by_key(|it| it.range.start);
        Ok(())
    }
}
