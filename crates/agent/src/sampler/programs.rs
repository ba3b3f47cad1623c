//! Names the functions on call paths in user mode, by `/proc/PID/maps` and the symbols of the mapped files. The
//! kernel follows frame pointers. A program without them has only the innermost function.
//!
//! Mappings are read once in each round, after the samples were taken, so they may have changed since. The kernel
//! reports what was mapped. Addresses at which code was replaced since the last round have no names in this round.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flight::event::MAX_PROCESSES;
use flight::profile::MAX_DEPTH;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

/// The largest number of functions whose names are kept, of one file and of all files.
const MAX_SYMBOLS: [usize; 2] = [1 << 17, 1 << 18];
/// The largest number of files whose symbols are read.
const MAX_FILES: usize = 1 << 10;
/// The longest name of a function, in characters.
const MAX_NAME: usize = 256;

/// The programs that were seen, with their symbols.
#[derive(Default)]
pub struct Programs {
    root: PathBuf,
    processes: HashMap<u32, Process>,
    files: HashMap<FileId, Arc<Code>>,
    symbols: usize,
    round: u64,
    /// For each process, where it has mapped code in this round.
    mapped: HashMap<u32, Vec<Range<u64>>>,
    /// Whether the kernel lost reports of what was mapped.
    incomplete: bool,
}

/// The code that a process has mapped.
#[derive(Default)]
struct Process {
    /// The last round in which the mappings were read.
    round: u64,
    now: Vec<Mapping>,
    /// The mappings as they were read before that.
    before: Vec<Mapping>,
}

/// A file's code in the memory of a process.
struct Mapping {
    addresses: Range<u64>,
    /// The offset in the file at which the mapped part begins.
    offset: u64,
    code: Arc<Code>,
}

/// What tells a file from others, and from itself after a change.
#[derive(PartialEq, Eq, Hash)]
struct FileId {
    device: u64,
    inode: u64,
    size: u64,
    /// The time of the last change: seconds since 1970, and nanoseconds.
    changed: (i64, i64),
}

/// The functions of a file.
#[derive(Debug, Default, PartialEq)]
struct Code {
    /// The name of the file in brackets. It stands for code without a symbol.
    name: String,
    /// The parts of the file that are loaded, and their addresses in the file's symbols.
    segments: Vec<(Range<u64>, u64)>,
    /// The address range of each function with its name, ascending.
    functions: Vec<(Range<u64>, String)>,
}

impl Programs {
    /// Programs of processes below `root`, which is `/` except in tests.
    pub fn new(root: &Path) -> Self {
        Self { root: root.into(), ..Self::default() }
    }

    /// Begins a round: mappings are read again when a process needs them.
    pub fn begin_round(&mut self) {
        self.round += 1;
        self.mapped.clear();
        self.incomplete = false;
        if self.processes.len() > MAX_PROCESSES {
            self.processes.clear();
        }
    }

    /// Notes that a process mapped code since the last round, as the kernel reports.
    pub fn mapped(&mut self, process: u32, addresses: Range<u64>) {
        self.mapped.entry(process).or_default().push(addresses);
    }

    /// Notes that the kernel lost reports of what was mapped.
    pub fn incomplete(&mut self) {
        self.incomplete = true;
    }

    /// The names of the functions at these addresses, the innermost first. Ends at the first address that is not code
    /// of the process.
    pub fn names(&mut self, process: u32, chain: impl Iterator<Item = u64>) -> Vec<String> {
        if self.incomplete {
            return Vec::new();
        }
        if self.processes.get(&process).is_none_or(|known| known.round < self.round) {
            self.read(process);
        }
        let Some(known) = self.processes.get(&process) else { return Vec::new() };
        let mapped = self.mapped.get(&process).map_or(&[][..], Vec::as_slice);
        let mut names = Vec::new();
        for address in chain.take(MAX_DEPTH) {
            // A call can be the last instruction of a function. Then its return address is in the next function.
            let address = address.saturating_sub(u64::from(!names.is_empty()));
            let Some(name) = known.name(address, mapped) else { break };
            names.push(name);
        }
        names
    }

    /// Reads what a process has mapped. If the process has ended, the former mappings remain.
    fn read(&mut self, process: u32) {
        let directory = self.root.join(format!("proc/{process}"));
        let text = fs::read_to_string(directory.join("maps")).unwrap_or_default();
        let code = text.lines().filter_map(|line| {
            let Line { addresses, offset, path } = Line::parse(line)?;
            let name = format!("map_files/{:x}-{:x}", addresses.start, addresses.end);
            Some(Mapping { code: self.code(path, &directory.join(name)), addresses, offset })
        });
        let now: Vec<Mapping> = code.collect();
        let known = self.processes.entry(process).or_default();
        known.round = self.round;
        if !now.is_empty() {
            known.before = std::mem::replace(&mut known.now, now);
        }
    }

    /// The code of a mapped file. It is opened through `link`, which leads to the file even if that was renamed or
    /// deleted.
    fn code(&mut self, path: &str, link: &Path) -> Arc<Code> {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("unknown");
        let name = format!("[{}]", name.trim_matches(['[', ']']));
        // Opening anything but a regular file could block.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(link);
        let Ok((id, file)) = file.and_then(|file| Ok((regular(&file)?, file))) else {
            return Arc::new(Code { name, ..Code::default() });
        };
        if let Some(known) = self.files.get(&id) {
            return known.clone();
        }
        let room = MAX_SYMBOLS[0].min(MAX_SYMBOLS[1].saturating_sub(self.symbols));
        let room = if self.files.len() < MAX_FILES { room } else { 0 };
        let read = (room > 0).then(|| functions(&ReadCache::new(file), room)).flatten();
        let (segments, functions) = read.unwrap_or_default();
        self.symbols += functions.len();
        let code = Arc::new(Code { name, segments, functions });
        if self.files.len() < MAX_FILES {
            self.files.insert(id, code.clone());
        }
        code
    }
}

/// The identity of a regular file. Fails for anything else.
fn regular(file: &File) -> std::io::Result<FileId> {
    let it = file.metadata()?;
    match it.is_file() {
        true => Ok(FileId {
            device: it.dev(),
            inode: it.ino(),
            size: it.size(),
            changed: (it.mtime(), it.mtime_nsec()),
        }),
        false => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

impl Process {
    /// The function at an address. `None` if there is no code, or if the code was replaced in this round.
    fn name(&self, address: u64, mapped: &[Range<u64>]) -> Option<String> {
        let has = |mapping: &&Mapping| mapping.addresses.contains(&address);
        let mapping = self.now.iter().find(has)?;
        let was_there = self.before.iter().any(|it| has(&it));
        let times = mapped.iter().filter(|it| it.contains(&address)).count();
        if times + usize::from(was_there) > 1 {
            return None;
        }
        let place = address - mapping.addresses.start + mapping.offset;
        Some(mapping.code.function(place).unwrap_or(&mapping.code.name).to_owned())
    }
}

impl Code {
    /// The function at an offset in the file.
    fn function(&self, place: u64) -> Option<&str> {
        let (segment, start) = self.segments.iter().find(|(it, _)| it.contains(&place))?;
        let address = place - segment.start + start;
        let next = self.functions.partition_point(|(function, _)| function.start <= address);
        let (function, name) = self.functions.get(next.checked_sub(1)?)?;
        function.contains(&address).then_some(name)
    }
}

/// A line of `/proc/PID/maps` (proc_pid_maps(5)) about code.
struct Line<'a> {
    addresses: Range<u64>,
    offset: u64,
    path: &'a str,
}

impl<'a> Line<'a> {
    /// Parses `ADDRESS-ADDRESS MODE OFFSET DEVICE INODE PATH`; `None` if it is not about code.
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
            path: path.strip_suffix(" (deleted)").unwrap_or(path),
        })
    }
}

type Functions = (Vec<(Range<u64>, u64)>, Vec<(Range<u64>, String)>);

/// The loaded segments of an ELF file, and its functions unless there are more than `most`. The functions are those
/// of the symbol table or, if there is none, of the dynamic symbol table.
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
        fs::create_dir_all(process.join("map_files")).unwrap();
        fs::write(process.join("map_files/401000-402000"), "no ELF file").unwrap();
        let maps = "00400000-00401000 r--p 00000000 fe:01 12 /a b\n\
                    00401000-00402000 r-xp 00001000 fe:01 12                         /a b (deleted)\n\
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
        // The next round finds what was mapped later.
        fs::write(process.join("maps"), maps.replace("r--p", "r-xp")).unwrap();
        assert_eq!(names(&mut programs, 0x40_0000), [""; 0]);
        programs.begin_round();
        assert_eq!(names(&mut programs, 0x40_0000), ["[a b]"]);
        // A process that has ended still has its code. A process that was never read has none.
        fs::remove_file(process.join("maps")).unwrap();
        programs.begin_round();
        assert_eq!(names(&mut programs, 0x40_1000), ["[a b]"]);
        assert_eq!(programs.names(8, [1].into_iter()), [""; 0]);
    }

    #[test]
    fn code_that_was_replaced_has_no_name_in_this_round() {
        let directory = tempfile::tempdir().unwrap();
        let process = directory.path().join("proc/7");
        fs::create_dir_all(&process).unwrap();
        let maps = "1000-2000 r-xp 0 00:00 0 [a]\n3000-4000 r-xp 0 00:00 0 [b]\n";
        fs::write(process.join("maps"), maps).unwrap();
        let mut programs = Programs::new(directory.path());
        let names = |programs: &mut Programs| {
            [0x1000, 0x3000].map(|at| programs.names(7, [at].into_iter()).concat())
        };
        programs.begin_round();
        // New code is known, unless it replaced other code in the same round.
        programs.mapped(7, 0x1000..0x2000);
        programs.mapped(7, 0x3000..0x3800);
        programs.mapped(7, 0x3000..0x4000);
        programs.mapped(8, 0x1000..0x2000);
        assert_eq!(names(&mut programs), ["[a]", ""]);
        programs.begin_round();
        assert_eq!(names(&mut programs), ["[a]", "[b]"]);
        programs.begin_round();
        programs.mapped(7, 0x1000..0x2000);
        assert_eq!(names(&mut programs), ["", "[b]"]);
        programs.begin_round();
        programs.incomplete();
        assert_eq!(names(&mut programs), ["", ""]);
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &link, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let code = Programs::default().code("/bin/a", &link);
        assert_eq!(code.name, "[a]");
    }
}
