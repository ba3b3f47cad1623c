//! A kernel's `vmlinux` as code, data and their symbols.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use kernelfiles::kallsyms::{self, Symbols};
use model::Architecture;
use object::Endianness;
use object::elf::{
    EM_X86_64, FileHeader64, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, STT_FILE, STT_FUNC,
    STT_NOTYPE, STT_OBJECT,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use crate::Symbol;
use crate::sources::{Origin, Sources};

/// The lowest address of the kernel, except for sections that begin at 0.
pub(crate) const LOWEST: u64 = 1 << 63;
/// The longest function that is read, in bytes.
const MAX_LENGTH: u64 = 1 << 20;
/// The section of per-CPU data. Until Linux 6.14 its addresses begin at 0
/// (`arch/x86/kernel/vmlinux.lds.S`).
const PER_CPU: &[u8] = b".data..percpu";
/// The kernel's first function in C.
const FIRST: &str = "start_kernel";
/// The section of instructions that the kernel copies over others when it starts. Compilers leave it to the
/// assembler, so it has no functions.
const ALTERNATIVES: &[u8] = b".altinstr_replacement";
/// The section in which the linker merges string literals.
const STRINGS: &[u8] = b".rodata";
/// The shortest text that is recognized, in bytes. An address that happens to look like text is shorter.
const MIN_TEXT: usize = 4;
/// The longest text that is compared.
const MAX_TEXT: usize = 1024;
/// The longest part of a text that is printed.
const MAX_SHOWN: usize = 30;

/// The reason why a kernel's code cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not a readable ELF file.
    #[error("it is no readable ELF file: {0}")]
    Elf(#[from] object::Error),
    /// The kernel is for another architecture, with this number in ELF.
    #[error("it is a kernel for another machine (number {0} in ELF): only x86-64 is compared")]
    Foreign(u16),
    /// There are no symbols by which to find functions.
    #[error("it has no symbol table, and its symbols are not known otherwise")]
    NoSymbols,
    /// The symbols have no code.
    #[error("none of its symbols is in its code: are they of another kernel?")]
    NoCode,
}

/// The code and data of a kernel.
pub struct Image<'a> {
    vmlinux: &'a [u8],
    /// Sections in order of address.
    sections: Vec<Section<'a>>,
    /// All addresses of code and data.
    range: Range<u64>,
    /// Addresses of per-CPU data, if they begin at 0.
    per_cpu: Range<u64>,
    symbols: Symbols,
    /// The ends of functions by their starts, for functions whose size is in the symbol table.
    ends: HashMap<u64, u64>,
    /// Symbols of data in order of address. The plainest name of an address is first.
    data: Vec<Datum<'a>>,
    /// The debug information, which is read on first use.
    sources: OnceCell<Option<Sources>>,
    /// The debug information of objects that were compiled again, for parts of the code.
    added: Vec<Added>,
    arch: Architecture,
}

/// The debug information of a piece of a function in an object.
pub(crate) struct Added {
    /// The piece's addresses in the kernel.
    pub range: Range<u64>,
    /// Its first address in the object.
    pub start: u64,
    pub sources: Rc<Sources>,
}

struct Section<'a> {
    range: Range<u64>,
    /// The section's contents; empty if all bytes are 0 at first.
    bytes: &'a [u8],
    is_code: bool,
    has_strings: bool,
}

struct Datum<'a> {
    range: Range<u64>,
    name: &'a str,
}

/// A symbol of code with its bytes, up to the next symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The symbol's name, with a compiler's suffixes.
    pub symbol: &'a str,
    /// The address of the first byte.
    pub address: u64,
    /// The bytes of the code.
    pub bytes: &'a [u8],
}

/// The code or data at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place<'a> {
    /// Code: the function's name without suffixes of the compiler, and the distance from its symbol.
    Code(&'a str, u64),
    /// Data: its symbol and the distance from it, if a symbol covers it.
    Data(Option<(&'a str, u64)>),
    /// A string literal.
    Text(&'a [u8]),
    /// Per-CPU data: its symbol and the distance from it, if a symbol covers it.
    PerCpu(Option<(&'a str, u64)>),
}

impl Place<'_> {
    /// Its name, as `objdump` prints it, or its text; `None` if it has none.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Code(name, at)
            | Self::Data(Some((name, at)))
            | Self::PerCpu(Some((name, at))) => {
                Some(if *at == 0 { (*name).to_owned() } else { format!("{name}+{at:#x}") })
            }
            Self::Text(text) => {
                Some(format!("\"{}\"", text[..text.len().min(MAX_SHOWN)].escape_ascii()))
            }
            Self::Data(None) | Self::PerCpu(None) => None,
        }
    }
}

impl<'a> Image<'a> {
    /// Reads a `vmlinux`. If it has no symbol table, `symbols` are its functions, and names of data are not
    /// known. Fails when the file is damaged, or its functions are not known.
    pub fn read(vmlinux: &'a [u8], symbols: &Symbols) -> Result<Self, Error> {
        let header = FileHeader64::<Endianness>::parse(vmlinux)?;
        let endian = header.endian()?;
        let machine = header.e_machine(endian);
        if machine != EM_X86_64 {
            return Err(Error::Foreign(machine.0));
        }
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
        sections.sort_by_key(|section| section.range.start);
        let end = sections.iter().map(|section| section.range.end).max().unwrap_or(0);
        let start = sections.first().map_or(end, |section| section.range.start);
        let range = start..end;
        let (ends, data) = (HashMap::new(), Vec::new());
        let (symbols_of_file, sources) = (Symbols::default(), OnceCell::new());
        let mut image = Self {
            vmlinux,
            sections,
            range,
            per_cpu,
            symbols: symbols_of_file,
            ends,
            data,
            sources,
            added: Vec::new(),
            arch: Architecture::X86_64,
        };
        image.read_symbols(header, endian, vmlinux)?;
        if image.symbols.is_empty() {
            image.symbols = symbols.clone();
        }
        if image.symbols.is_empty() {
            return Err(Error::NoSymbols);
        }
        if image.pieces().next().is_none() {
            return Err(Error::NoCode);
        }
        Ok(image)
    }

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
            if kind == STT_FILE || name.is_empty() {
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

    /// The architecture that the kernel is for.
    pub fn arch(&self) -> Architecture {
        self.arch
    }

    fn section(&self, address: u64) -> Option<&Section<'a>> {
        let next = self.sections.partition_point(|section| section.range.start <= address);
        let section = &self.sections[next.checked_sub(1)?];
        section.range.contains(&address).then_some(section)
    }

    /// Takes lines for a part of the code.
    pub(crate) fn add(&mut self, added: Added) {
        self.added.push(added);
    }

    /// The place in the source that the instruction at an address comes from; `None` if there is no debug information of
    /// it.
    pub(crate) fn origin(&self, address: u64) -> Option<Origin> {
        match self.added.iter().find(|it| it.range.contains(&address)) {
            Some(it) => Some(it.sources.origin(address - it.range.start + it.start)),
            None => self.sources().map(|it| it.origin(address)),
        }
    }

    /// Whether the function has debug information.
    pub fn has_lines(&self, function: &str) -> bool {
        let pieces = self.pieces_of(function).into_iter();
        let mut origins = pieces.filter_map(|it| self.origin(it.address));
        origins.any(|it| it.line.is_some())
    }

    /// The places in the source that instructions come from, if the kernel has debug information.
    fn sources(&self) -> Option<&Sources> {
        let read = || Sources::read(self.vmlinux, self.first());
        self.sources.get_or_init(read).as_ref()
    }

    /// The address of the kernel's first function in C.
    pub(crate) fn first(&self) -> Option<u64> {
        let mut functions = self.symbols.functions();
        functions.find(|(symbol, _)| symbol.name == FIRST).map(|(symbol, _)| symbol.address)
    }

    /// All symbols of code with their bytes.
    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.symbols.functions().filter_map(|(symbol, next)| {
            let section = self.section(symbol.address).filter(|section| section.is_code)?;
            let start = symbol.address - section.range.start;
            let longest = symbol.address.saturating_add(MAX_LENGTH);
            let own = self.ends.get(&symbol.address).copied().unwrap_or(longest);
            let end = next.min(section.range.end).min(own).min(longest);
            let bytes = section.bytes.get(start as usize..(end - section.range.start) as usize)?;
            Some(Piece { symbol: &symbol.name, address: symbol.address, bytes })
        })
    }

    /// The functions by their names without suffixes of the compiler. One name may have several pieces:
    /// copies, cold parts, and static functions of several files.
    pub(crate) fn functions(&self) -> BTreeMap<&str, Vec<Piece<'_>>> {
        let mut functions = BTreeMap::<_, Vec<_>>::new();
        for piece in self.pieces() {
            functions.entry(Symbol::of(piece.symbol).name).or_default().push(piece);
        }
        functions
    }

    /// The pieces of one function, as in [`Image::functions`].
    pub(crate) fn pieces_of(&self, function: &str) -> Vec<Piece<'_>> {
        self.pieces().filter(|piece| Symbol::of(piece.symbol).name == function).collect()
    }

    /// The code or data at an address; `None` if there is none.
    pub(crate) fn place(&self, address: u64) -> Option<Place<'_>> {
        if !self.range.contains(&address) {
            return None;
        }
        let Some(section) = self.section(address) else { return Some(Place::Data(None)) };
        if section.is_code {
            let symbol = self.symbols.find(address);
            return Some(match symbol {
                Some(symbol) => {
                    Place::Code(Symbol::of(&symbol.name).name, address - symbol.address)
                }
                None => Place::Code("", 0),
            });
        }
        if let Some(datum) = self.datum(address) {
            return Some(Place::Data(Some(datum)));
        }
        let text = || {
            let bytes = section.bytes.get((address - section.range.start) as usize..)?;
            text(bytes)
        };
        let text = if section.has_strings { text() } else { None };
        Some(text.map_or(Place::Data(None), Place::Text))
    }

    /// The per-CPU data at an address that begins at 0; `None` if it is no such address.
    pub(crate) fn per_cpu(&self, address: u64) -> Option<Place<'_>> {
        self.per_cpu.contains(&address).then(|| Place::PerCpu(self.datum(address)))
    }

    /// The end of the per-CPU data; 0 if there is none.
    pub(crate) fn per_cpu_end(&self) -> u64 {
        self.per_cpu.end
    }

    fn datum(&self, address: u64) -> Option<(&'a str, u64)> {
        let next = self.data.partition_point(|it| it.range.start <= address);
        let datum = &self.data[next.checked_sub(1)?];
        let inside = datum.range.contains(&address);
        inside.then(|| (without_number(datum.name), address - datum.range.start))
    }
}

/// The name of a static variable in its source. The compiler appends a number if the variable is inside a function.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((rest, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => name,
    }
}

/// The text at the start of `bytes` up to its NUL; `None` if it is not text.
fn text(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
    let end = bytes.iter().position(|&byte| byte == 0)?;
    // Messages begin with the byte 1 and their level (`include/linux/kern_levels.h`).
    let is_text = |&byte: &u8| byte == 1 || byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    (end >= MIN_TEXT && bytes[..end].iter().all(is_text)).then(|| &bytes[..end])
}
