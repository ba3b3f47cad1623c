//! Reads samples that perf wrote: as text, by `perf script` ([`perf_script`]), or as JSON, by `perf data convert`
//! ([`perf_json`]). Each sample counts as one. The path of a sample is its path in the kernel or, if it has none
//! there, its path in the program, as in samples of our own.

mod json;
mod script;

use std::collections::BTreeMap;

use model::{Name, Place, Profile, Sampled, Slice};

pub use json::perf_json;
pub use script::perf_script;

/// The longest text, in bytes. It bounds the time. Memory depends only on the number of different call paths.
pub const MAX_PERF: u64 = 1 << 30;
/// The largest number of functions in all different call paths.
const MAX_FRAMES: usize = 1 << 22;
/// The largest length of all names in different call paths, in bytes.
const MAX_BYTES: usize = 1 << 28;
/// The longest line that is read, in bytes. The rest of a longer one is skipped.
const MAX_LINE: u64 = 1 << 16;
/// The greatest depth of a call path. Of deeper ones the innermost part is kept.
const MAX_DEPTH: usize = 128;
/// The longest name, in characters.
const MAX_NAME: usize = 512;
/// The first address of the kernel's half of the address space.
const KERNEL: u64 = 1 << 63;
/// A function without a symbol, or an event without a name.
const UNKNOWN: &str = "[unknown]";

/// The samples of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerfSamples {
    /// The samples of one event, as the profile of a workload without a name.
    pub profile: Profile,
    /// The release of the kernel that ran; empty if the file does not say it.
    pub release: String,
    /// Samples of other events, which are left out, by the event's name.
    pub others: BTreeMap<String, u64>,
    /// Samples of idle CPUs, which are left out.
    pub idle: u64,
    /// Samples that are left out because there are too many different call paths.
    pub dropped: u64,
    /// Samples without a function. They count as samples of programs, since nothing tells whether the kernel ran.
    pub nowhere: u64,
    /// Lines that belong to no sample: the number of the first, and how many there are.
    pub unread: Option<(usize, usize)>,
    /// Whether Faultline wrote the text from counts of instructions, where a sample stands for a whole call path.
    pub of_counts: bool,
}

struct Sample {
    command: String,
    id: u32,
    nanoseconds: u64,
    /// Whether its first function is one of the kernel; `None` before that is read.
    in_kernel: Option<bool>,
    /// The functions in the kernel, or those in the program, as the first one is; innermost first.
    path: Path,
}

impl Sample {
    fn new(command: &str, id: u32, nanoseconds: u64) -> Self {
        let command = shortened(command);
        Self { command, id, nanoseconds, in_kernel: None, path: Vec::new() }
    }

    /// Adds the next function of the call chain. A user-mode function of an unknown object is left out: without frame
    /// pointers chains end with arbitrary addresses.
    fn add(&mut self, is_kernel: bool, name: &str, object: &str) {
        if !is_kernel && name == UNKNOWN && matches!(object, "" | UNKNOWN) {
            self.in_kernel.get_or_insert(false);
        } else if *self.in_kernel.get_or_insert(is_kernel) == is_kernel
            && self.path.len() < MAX_DEPTH
        {
            self.path.push(shortened(name));
        }
    }
}

/// Functions, the outermost first.
type Path = Vec<String>;

#[derive(Default)]
struct Collector {
    stacks: BTreeMap<Path, u64>,
    processes: BTreeMap<(String, Path), (u32, u64)>,
    frames: usize,
    bytes: usize,
    times: Option<(u64, u64)>,
    idle: u64,
    dropped: u64,
    nowhere: u64,
}

impl Collector {
    fn take(&mut self, sample: Sample) {
        let Sample { command, id, nanoseconds, in_kernel, mut path } = sample;
        let (first, last) = self.times.unwrap_or((nanoseconds, nanoseconds));
        self.times = Some((first.min(nanoseconds), last.max(nanoseconds)));
        if id == 0 && command == "swapper" {
            self.idle += 1;
            return;
        }
        path.reverse();
        if in_kernel == Some(true) {
            if self.stacks.contains_key(&path) || self.reserve(&path) {
                *self.stacks.entry(path).or_default() += 1;
            } else {
                self.dropped += 1;
            }
            return;
        }
        self.nowhere += u64::from(in_kernel.is_none());
        let mut own = (command, path);
        if !self.processes.contains_key(&own) && !self.reserve(&own.1) {
            // If no space is left for its path, the sample counts for its process without a path.
            own.1.clear();
        }
        self.processes.entry(own).or_insert((id, 0)).1 += 1;
    }

    /// Reserves space for the functions of a path; false if a limit is reached.
    fn reserve(&mut self, path: &[String]) -> bool {
        let frames = self.frames + path.len();
        let bytes = self.bytes + path.iter().map(String::len).sum::<usize>();
        let has_room = frames <= MAX_FRAMES && bytes <= MAX_BYTES;
        if has_room {
            (self.frames, self.bytes) = (frames, bytes);
        }
        has_room
    }

    /// The samples, all of one event.
    fn samples(self, event: &str) -> PerfSamples {
        let (begun, ended) = self.times.unwrap_or_default();
        let names = |path: Path| path.into_iter().map(Name::from).collect();
        let paths = self.stacks.into_iter();
        let paths = paths.map(|(path, samples)| (Place::Path(names(path)), samples));
        let process = |((name, path), (id, samples)): ((String, Path), _)| {
            (Place::Process { id, name: name.into(), functions: names(path) }, samples)
        };
        let taken: Vec<_> = paths.chain(self.processes.into_iter().map(process)).collect();
        let counts = taken.iter().map(|(_, samples)| (*samples).try_into().unwrap_or(u32::MAX));
        let slices = vec![Slice { ended, samples: (0..).zip(counts).collect() }];
        let profile = Profile {
            costs: Profile::sampled_costs(taken, |_| Name::default()),
            sampled: Some(Sampled {
                event: shortened(event),
                begun,
                ended,
                dropped: self.dropped,
                slices,
                ..Sampled::default()
            }),
            ..Profile::default()
        };
        let (idle, dropped, nowhere) = (self.idle, self.dropped, self.nowhere);
        PerfSamples { profile, idle, dropped, nowhere, ..PerfSamples::default() }
    }
}

/// A process ID; perf writes -1 for a process that has ended.
fn process(id: i64) -> u32 {
    id.try_into().unwrap_or(u32::MAX)
}

fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

/// Call paths and processes with their samples, as text.
#[cfg(test)]
fn taken(profile: &Profile) -> Vec<String> {
    let rows = profile.costs.rows().filter_map(|row| {
        let path = match row.place {
            Place::Path(functions) => functions.join(";"),
            Place::Process { id, name, functions } => {
                format!("{id} {name} {}", functions.join(";"))
            }
            _ => return None,
        };
        Some(format!("{path}: {}", row.sum(Some(0))))
    });
    rows.collect()
}
