//! Names the functions of programs on call paths in user mode: by `/proc/PID/maps` and the symbols of the mapped files.
//! A path that the processor's frame pointers do not give ends early, so that programs without them have the innermost
//! function alone.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flight::event::MAX_PROCESSES;
use flight::profile::MAX_DEPTH;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

/// The most functions of a file, and of all files together, whose names are kept.
const MAX_SYMBOLS: [usize; 2] = [1 << 17, 1 << 18];
/// The most files whose symbols are read.
const MAX_FILES: usize = 1 << 10;
/// The longest name of a function, in characters.
const MAX_NAME: usize = 256;

/// Programs that were seen.
#[derive(Default)]
pub struct Programs {
    root: PathBuf,
    /// The code of each process, and the number of the round in which it was read.
    processes: HashMap<u32, (u64, Vec<Mapping>)>,
    /// By device and inode.
    files: HashMap<String, Arc<Code>>,
    symbols: usize,
    round: u64,
}

/// A file's code in the memory of a process.
#[derive(Clone)]
struct Mapping {
    addresses: Range<u64>,
    /// Where in the file the code begins.
    offset: u64,
    code: Arc<Code>,
}

/// The functions of a file.
#[derive(Debug, Default, PartialEq)]
struct Code {
    /// The name of the file in brackets, for code without a symbol.
    name: String,
    /// Places in the file that are loaded, and their addresses in the file's own terms.
    segments: Vec<(Range<u64>, u64)>,
    /// The functions, ascending.
    functions: Vec<(Range<u64>, String)>,
}

impl Programs {
    /// Programs under this root of a file system.
    pub fn new(root: &Path) -> Self {
        Self { root: root.into(), ..Self::default() }
    }

    /// Begins a round. In each, the mappings of a process are read once at most.
    pub fn begin_round(&mut self) {
        self.round += 1;
        if self.processes.len() > MAX_PROCESSES {
            self.processes.clear();
        }
    }

    /// The process runs another program from now on.
    pub fn forget(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// The names of the functions with these addresses, the innermost first, as far as they are code of the process.
    pub fn names(&mut self, process: u32, chain: impl Iterator<Item = u64>) -> Vec<String> {
        let mut names = Vec::new();
        for address in chain.take(MAX_DEPTH) {
            // A call can be a function's last instruction, so that it returns to the next function.
            let address = address.saturating_sub(u64::from(!names.is_empty()));
            let Some(name) = self.name(process, address) else { break };
            names.push(name);
        }
        names
    }

    fn name(&mut self, process: u32, address: u64) -> Option<String> {
        let known = self.processes.get(&process).and_then(|(_, code)| find(code, address));
        if known.is_some() {
            return known;
        }
        if self.processes.get(&process).is_some_and(|(round, _)| *round == self.round) {
            return None;
        }
        let code = self.mappings(process);
        let name = find(&code, address);
        self.processes.insert(process, (self.round, code));
        name
    }

    /// The code that a process has mapped; nothing if it has ended.
    fn mappings(&mut self, process: u32) -> Vec<Mapping> {
        let directory = self.root.join(format!("proc/{process}"));
        let text = fs::read_to_string(directory.join("maps")).unwrap_or_default();
        let code = text.lines().filter_map(|line| {
            let Line { addresses, offset, file, path } = Line::parse(line)?;
            Some(Mapping { addresses, offset, code: self.code(file, path, &directory) })
        });
        code.collect()
    }

    fn code(&mut self, file: &str, path: &str, process: &Path) -> Arc<Code> {
        let key = if path.starts_with('/') { file } else { path };
        if let Some(known) = self.files.get(key) {
            return known.clone();
        }
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("unknown");
        let room = MAX_SYMBOLS[0].min(MAX_SYMBOLS[1].saturating_sub(self.symbols));
        let inside = path.strip_prefix('/').filter(|_| self.files.len() < MAX_FILES);
        let read = inside.and_then(|inside| {
            let file = File::open(process.join("root").join(inside)).ok()?;
            functions(&ReadCache::new(file), room)
        });
        let (segments, functions) = read.unwrap_or_default();
        self.symbols += functions.len();
        let name = format!("[{}]", name.trim_matches(['[', ']']));
        let code = Arc::new(Code { name, segments, functions });
        if self.files.len() < MAX_FILES {
            self.files.insert(key.to_owned(), code.clone());
        }
        code
    }
}

fn find(code: &[Mapping], address: u64) -> Option<String> {
    let mapping = code.iter().find(|it| it.addresses.contains(&address))?;
    let place = address - mapping.addresses.start + mapping.offset;
    Some(mapping.code.function(place).unwrap_or(&mapping.code.name).to_owned())
}

impl Code {
    /// The function at a place of the file.
    fn function(&self, place: u64) -> Option<&str> {
        let (segment, start) = self.segments.iter().find(|(it, _)| it.contains(&place))?;
        let address = place - segment.start + start;
        let next = self.functions.partition_point(|(function, _)| function.start <= address);
        let (function, name) = self.functions.get(next.checked_sub(1)?)?;
        function.contains(&address).then_some(name)
    }
}

/// A line of `/proc/PID/maps` (proc_pid_maps(5)) with code.
struct Line<'a> {
    addresses: Range<u64>,
    offset: u64,
    /// Device and inode.
    file: &'a str,
    path: &'a str,
}

impl<'a> Line<'a> {
    /// `ADDRESS-ADDRESS MODE OFFSET DEVICE INODE PATH`; `None` if it is no code.
    fn parse(line: &'a str) -> Option<Self> {
        let (addresses, rest) = line.split_once(' ')?;
        let (mode, rest) = rest.split_once(' ')?;
        let (offset, rest) = rest.split_once(' ')?;
        let device = rest.find(' ')?;
        let inode = rest[device + 1..].find(' ').map_or(rest.len(), |place| device + 1 + place);
        let (start, end) = addresses.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let path = rest[inode..].trim();
        mode.contains('x').then_some(Self {
            addresses: number(start)?..number(end)?,
            offset: number(offset)?,
            file: &rest[..inode],
            path: path.strip_suffix(" (deleted)").unwrap_or(path),
        })
    }
}

type Functions = (Vec<(Range<u64>, u64)>, Vec<(Range<u64>, String)>);

/// The loaded segments of an ELF file, and its functions unless they are more than `most`: those of its symbol table,
/// or else of its dynamic one.
fn functions<'a>(file: impl ReadRef<'a>, most: usize) -> Option<Functions> {
    let file = object::File::parse(file).ok()?;
    let segments = file.segments().map(|segment| {
        let (start, length) = segment.file_range();
        (start..start.saturating_add(length), segment.address())
    });
    let of = |symbol: object::Symbol<'a, '_, _>| {
        let range = symbol.address()..symbol.address().checked_add(symbol.size())?;
        let is_function = symbol.kind() == SymbolKind::Text && !range.is_empty();
        let name = symbol.name().ok().filter(|name| is_function && !name.is_empty())?;
        Some((range, name.chars().take(MAX_NAME).collect::<String>()))
    };
    let table = || file.symbols().filter_map(of).take(most + 1);
    let mut functions: Vec<(Range<u64>, String)> = table().collect();
    if functions.is_empty() {
        functions = file.dynamic_symbols().filter_map(of).take(most + 1).collect();
    }
    if functions.len() > most {
        functions.clear();
    }
    functions.sort_by_key(|(range, _)| (range.start, range.end));
    functions.dedup_by_key(|(range, _)| range.start);
    Some((segments.collect(), functions))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[inline(never)]
    fn known_function(number: &AtomicU64) -> u64 {
        number.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    #[test]
    fn functions_of_the_own_program_have_names() {
        let mut programs = Programs::new(Path::new("/"));
        programs.begin_round();
        let own = known_function as *const () as u64;
        let chain = [own + 1, own + 1, 8, own];
        let names = programs.names(std::process::id(), chain.into_iter());
        assert_eq!(names.len(), 2);
        assert!(names.iter().all(|name| name.contains("known_function")), "{names:?}");
        // A return address belongs to the call before it.
        let names = programs.names(std::process::id(), [own, own].into_iter());
        assert!(names[0].contains("known_function"), "{names:?}");
        assert_ne!(names.get(1), names.first());
    }

    #[test]
    fn code_without_symbols_has_the_name_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let process = directory.path().join("proc/7");
        fs::create_dir_all(process.join("root")).unwrap();
        fs::write(process.join("root/a b"), "no ELF file").unwrap();
        let maps = "00400000-00401000 r--p 00000000 fe:01 12 /a b\n\
                    00401000-00402000 r-xp 00001000 fe:01 12                         /a b\n\
                    7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
                    7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                  [vdso]\n";
        fs::write(process.join("maps"), maps).unwrap();
        let mut programs = Programs::new(directory.path());
        programs.begin_round();
        let names = |programs: &mut Programs, address| programs.names(7, [address].into_iter());
        assert_eq!(names(&mut programs, 0x40_1000), ["[a b]"]);
        assert_eq!(names(&mut programs, 0x7f00_0000_0004), ["[unknown]"]);
        assert_eq!(names(&mut programs, 0x7ffc_0000_0fff), ["[vdso]"]);
        assert_eq!(names(&mut programs, 0x40_0000), [""; 0]);
        // What is mapped later is found in the next round.
        fs::write(process.join("maps"), maps.replace("r--p", "r-xp")).unwrap();
        assert_eq!(names(&mut programs, 0x40_0000), [""; 0]);
        programs.begin_round();
        assert_eq!(names(&mut programs, 0x40_0000), ["[a b]"]);
        // A process that has ended.
        assert_eq!(programs.names(8, [1].into_iter()), [""; 0]);
    }
}
