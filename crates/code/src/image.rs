//! A kernel's file as code, data and their symbols.

mod elf;
mod flat;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use kernelfiles::kallsyms::Symbols;
use model::Architecture;

use crate::Symbol;
use crate::sources::{Origin, Sources};

/// The lowest address of the kernel, except for sections that begin at 0.
pub(crate) const LOWEST: u64 = 1 << 63;
/// The longest function that is read, in bytes.
const MAX_LENGTH: u64 = 1 << 20;
/// The kernel's first function in C.
const FIRST: &str = "start_kernel";
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
    #[error(
        "it is a kernel for another machine (number {0} in ELF): only x86-64 and arm64 are compared"
    )]
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
    file: &'a [u8],
    arch: Architecture,
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
            Self::Code("", _) => None,
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
    /// Reads a `vmlinux`, or an `Image` of arm64. If it has no symbol table, `symbols` are its functions, and names of
    /// data are not known. Fails when the file is damaged, or its functions are not known.
    pub fn read(file: &'a [u8], symbols: &Symbols) -> Result<Self, Error> {
        let mut image = match flat::is_image(file) {
            true => flat::read(file, symbols),
            false => elf::read(file)?,
        };
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

    /// A kernel of these sections without symbols.
    fn of(file: &'a [u8], arch: Architecture, mut sections: Vec<Section<'a>>) -> Self {
        sections.sort_by_key(|section| section.range.start);
        let end = sections.iter().map(|section| section.range.end).max().unwrap_or(0);
        let start = sections.first().map_or(end, |section| section.range.start);
        Self {
            file,
            arch,
            sections,
            range: start..end,
            per_cpu: 0..0,
            symbols: Symbols::default(),
            ends: HashMap::new(),
            data: Vec::new(),
            sources: OnceCell::new(),
            added: Vec::new(),
        }
    }

    /// The names of its functions, without suffixes of the compiler.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions().into_keys()
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
        let read = || Sources::read(self.file, self.first());
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

    /// The name of the code or data at an address as a listing prints it; `None` if it has none. Code moved out of a
    /// function has the name of its symbol, because a jump there is none to the function.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let place = self.place(address)?;
        let moved = self
            .symbols
            .find(address)
            .filter(|it| Symbol::of(&it.name).piece == crate::Piece::Cold);
        match (&place, moved) {
            (Place::Code(_, at), Some(symbol)) => Place::Code(&symbol.name, *at).name(),
            _ => place.name(),
        }
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
