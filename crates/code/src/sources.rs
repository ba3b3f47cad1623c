//! Finds the places in the source that instructions come from, by a kernel's debug information (DWARF).

use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use addr2line::Context;
use gimli::{Dwarf, EndianRcSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection};

/// The largest section that is read, in bytes.
const LIMIT: u64 = 1 << 32;
/// The file that has the kernel's first function in C.
const FIRST: &str = "init/main.c";

/// The place in the source that an instruction comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// File and line, such as `mm/memory.c:512`.
    pub line: Option<String>,
    /// The innermost inlined function that it is part of.
    pub inlined: Option<String>,
}

/// Whether a `vmlinux` has a section with debug information.
pub fn has_debug_information(vmlinux: &[u8]) -> bool {
    let file = object::File::parse(vmlinux);
    file.is_ok_and(|file| file.section_by_name(SectionId::DebugInfo.name()).is_some())
}

/// The debug information of a kernel.
pub(crate) struct Sources {
    context: Context<EndianRcSlice<RunTimeEndian>>,
    /// The directory of the source.
    root: PathBuf,
}

impl Sources {
    /// Reads the debug information; `None` if there is none, or it is damaged. `first` is the address of the
    /// function `start_kernel`, whose file tells the directory of the source.
    pub fn read(vmlinux: &[u8], first: Option<u64>) -> Option<Self> {
        let file = object::File::parse(vmlinux).ok()?;
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        file.section_by_name(SectionId::DebugInfo.name())?;
        let section = |id: SectionId| {
            let section = file.section_by_name(id.name());
            let bytes: Rc<[u8]> = match section {
                Some(section) => {
                    let packed = section.compressed_data()?;
                    if packed.uncompressed_size > LIMIT {
                        return Ok(EndianRcSlice::new(Rc::new([]), endian));
                    }
                    packed.decompress()?.into()
                }
                None => Rc::new([]),
            };
            Ok::<_, object::Error>(EndianRcSlice::new(bytes, endian))
        };
        let dwarf = Dwarf::load(section).ok()?;
        let root = root(&dwarf).unwrap_or_default();
        let context = Context::from_dwarf(dwarf).ok()?;
        let mut sources = Self { context, root };
        let first = first.and_then(|address| sources.file(address));
        if let Some(root) = first.as_deref().and_then(|path| path.to_str()?.strip_suffix(FIRST)) {
            sources.root = root.into();
        }
        Some(sources)
    }

    /// The place in the source that the instruction at an address comes from.
    pub fn origin(&self, address: u64) -> Origin {
        let mut origin = Origin::default();
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return origin;
        };
        let Ok(Some(frame)) = frames.next() else { return origin };
        origin.line = frame.location.and_then(|it| {
            let path = straight(it.file?);
            let path = path.strip_prefix(&self.root).unwrap_or(&path);
            Some(format!("{}:{}", path.display(), it.line?))
        });
        // A further frame is the function that the first one is inlined into.
        if let Ok(Some(_)) = frames.next() {
            let name = frame.function.and_then(|it| Some(it.raw_name().ok()?.into_owned()));
            origin.inlined = name;
        }
        origin
    }

    fn file(&self, address: u64) -> Option<PathBuf> {
        Some(straight(self.context.find_location(address).ok()??.file?))
    }
}

/// The directory of the source, by the first file that was compiled: the compiler ran in that directory or below, and
/// got a path relative to where it ran.
fn root(dwarf: &Dwarf<EndianRcSlice<RunTimeEndian>>) -> Option<PathBuf> {
    let unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
    let text = |bytes: EndianRcSlice<RunTimeEndian>| String::from_utf8(bytes.to_vec()).ok();
    let directory = text(unit.comp_dir.clone()?)?;
    let file = text(unit.name.clone()?)?;
    let above: PathBuf = Path::new(&file)
        .components()
        .take_while(|part| matches!(part, Component::ParentDir | Component::CurDir))
        .collect();
    let is_relative = Path::new(&file).is_relative();
    is_relative.then(|| straight(&Path::new(&directory).join(above).to_string_lossy()))
}

/// A path without `.` and `..`.
fn straight(path: &str) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if straight.file_name().is_some() => {
                straight.pop();
            }
            part => straight.push(part),
        }
    }
    straight
}
