//! Samples what runs on all CPUs by perf_event_open(2), with its call path in the kernel or in user mode. The kernel
//! writes samples into a ring buffer for each CPU. At the sampler's ticks and at cuts they are counted by path and
//! recorded.
//!
//! Paths consist of functions, not of addresses, so there are not many. An address in the kernel is replaced by the
//! beginning of its function, from `/proc/kallsyms`. After the workloads, only the symbols of these functions are
//! recorded. Addresses in programs are replaced by names ([`Programs`]).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flight::Event;
use flight::event::{MAX_FRAMES, MAX_PATHS, MAX_PROCESSES, MAX_USER_PATHS, Samples, UserPath};
use flight::profile::MAX_DEPTH;
use perf_event::data::Record;
use perf_event::events::{Hardware, Software};
use perf_event::{Builder, ReadFormat, SampleFlag, Sampler};

use super::events::{MoreFiles, SOFTWARE, cpus, why};
use super::programs::Programs;
use super::symbols;
use crate::recorder::Recorder;

/// The space for a sample in a ring buffer, in bytes: a path of about 50 functions.
const SAMPLE: usize = 512;
/// The smallest and the largest ring buffer.
const RING: [usize; 2] = [64 << 10, 1 << 20];
/// The largest number of records that are taken out of a buffer at once. If samples come faster than they are taken,
/// the rest is taken at the next tick.
const RECORDS: usize = 1 << 14;
/// How much time passes before samples are recorded at a tick, in nanoseconds. They are also recorded at cuts.
const SLICE: u64 = 1_000_000_000;
/// Bits of a record's flags that tell where the CPU was, and user mode (`include/uapi/linux/perf_event.h`,
/// `PERF_RECORD_MISC_CPUMODE_MASK`, `PERF_RECORD_MISC_USER`).
const WHERE: u16 = 7;
const USER: u16 = 2;
/// Numbers from this one on separate the parts of a call chain (`PERF_CONTEXT_MAX`). After `PERF_CONTEXT_USER`,
/// functions are in user mode.
const CONTEXTS: u64 = -4095_i64 as u64;
const USER_CONTEXT: u64 = -512_i64 as u64;
/// Code that is farther behind the last symbol belongs to no function.
const MAX_FUNCTION: u64 = 1 << 20;
/// The name of a process that ended before its name was read.
const ENDED: &str = "[ended]";

/// The ring buffers, and the samples that were taken out of them.
pub struct Profiler {
    root: PathBuf,
    rings: Vec<Sampler>,
    /// For each CPU, records of what processes map.
    mappings: Vec<Sampler>,
    event: &'static str,
    frequency: u32,
    due: u64,
    /// The names of processes that are known so far.
    names: HashMap<u32, String>,
    programs: Programs,
    room: usize,
    unrecorded: u64,
    counts: Counts,
}

impl Profiler {
    /// Starts to sample. The error is a sentence for the user.
    pub fn start(
        root: &Path,
        frequency: u32,
        interval: Duration,
        recorder: &Recorder,
    ) -> Result<Self, String> {
        let cpus = cpus(root);
        let _kept = MoreFiles::allow(2 * cpus.len());
        let between = interval.as_secs_f64().max(SLICE as f64 / 1e9);
        let size = (f64::from(frequency) * between) as usize * SAMPLE;
        let size = size.clamp(RING[0], RING[1]);
        let rings = |cycles: bool| -> io::Result<Vec<Sampler>> {
            cpus.iter().map(|cpu| ring(*cpu, frequency, size, cycles)).collect()
        };
        let (event, rings) = match rings(true) {
            Ok(rings) => ("cycles", rings),
            Err(_) => ("cpu-clock", rings(false).map_err(|error| why(&error, SOFTWARE))?),
        };
        let mappings = cpus.iter().map(|cpu| mappings(*cpu)).collect::<io::Result<_>>();
        Ok(Self {
            root: root.into(),
            rings,
            mappings: mappings.map_err(|error| why(&error, SOFTWARE))?,
            event,
            frequency,
            due: 0,
            names: HashMap::new(),
            programs: Programs::new(root),
            room: recorder.capacity() / 4,
            unrecorded: 0,
            counts: Counts { functions: symbols::functions(root), ..Counts::default() },
        })
    }

    /// The event that says what is sampled.
    pub fn description(&self) -> Event {
        Event::Sampling { event: self.event.to_owned(), frequency: self.frequency }
    }

    /// Whether the kernel lists its functions.
    pub fn has_names(&self) -> bool {
        !self.counts.functions.is_empty()
    }

    /// Takes the samples of a tick, and records them if that is due.
    pub fn tick(&mut self, recorder: &Recorder, time: u64) {
        self.drain();
        if time >= self.due {
            self.record(recorder, time);
        }
    }

    /// Takes and records the samples of the phase that ends.
    pub fn cut(&mut self, recorder: &Recorder, time: u64) {
        self.drain();
        self.record(recorder, time);
    }

    /// Drops the samples of the work that a cut itself takes.
    pub fn skip(&mut self) {
        for ring in &mut self.rings {
            for _ in 0..RECORDS {
                let Some(record) = ring.next_record() else { break };
                if let Ok(Record::Lost(lost)) = record.parse_record() {
                    self.counts.add_lost(lost.lost);
                }
            }
        }
    }

    /// Sentences about samples that are missing.
    pub fn missing(&self) -> Vec<String> {
        let of = |samples: u64, why: &str| (samples > 0).then(|| format!("{samples} {why}"));
        let Counts { lost, dropped, .. } = self.counts;
        let found = [
            of(lost, "samples are lost, because the kernel's buffers were full"),
            of(dropped, "samples are not counted, because there were too many call paths"),
            of(self.unrecorded, "samples are not recorded, because there were too many"),
        ];
        found.into_iter().flatten().collect()
    }

    /// The beginnings of all functions in the recorded paths.
    pub fn functions(&self) -> BTreeSet<u64> {
        self.counts.paths.keys().flatten().map(|begin| begin.cast_unsigned()).collect()
    }

    fn drain(&mut self) {
        let mut in_user_mode: Vec<(u32, Vec<u64>)> = Vec::new();
        if self.names.len() > MAX_PROCESSES {
            self.names.clear();
        }
        self.programs.begin_round();
        for ring in &mut self.mappings {
            while let Some(record) = ring.next_record() {
                match record.parse_record() {
                    Ok(Record::Mmap(it)) => {
                        self.programs.mapped(it.pid, it.addr..it.addr.saturating_add(it.len));
                    }
                    Ok(Record::Lost(_)) | Err(_) => self.programs.incomplete(),
                    Ok(_) => {}
                }
            }
        }
        for ring in &mut self.rings {
            for _ in 0..RECORDS {
                let Some(record) = ring.next_record() else { break };
                let is_user = record.misc() & WHERE == USER;
                match record.parse_record() {
                    Ok(Record::Sample(sample)) if is_user => {
                        let chain = sample.callchain().unwrap_or_default();
                        in_user_mode.extend(sample.pid().map(|id| (id, chain.to_vec())));
                    }
                    Ok(Record::Sample(sample)) => {
                        let ip = sample.ip().unwrap_or(0);
                        self.counts.add_kernel(ip, sample.callchain().unwrap_or_default());
                    }
                    Ok(Record::Comm(comm)) if comm.pid == comm.tid => {
                        let name = comm.comm_os().to_string_lossy().into_owned();
                        self.names.insert(comm.pid, name);
                    }
                    Ok(Record::Lost(lost)) => self.counts.add_lost(lost.lost),
                    Ok(_) => {}
                    Err(_) => self.counts.add_lost(1),
                }
            }
        }
        for (id, chain) in in_user_mode {
            if let Entry::Vacant(new) = self.names.entry(id)
                && let Some(name) = name(&self.root, id)
            {
                new.insert(name);
            }
            let addresses = chain.into_iter().filter(|address| *address < CONTEXTS);
            let functions = self.programs.names(id, addresses);
            self.counts.add_user(id, self.names.get(&id).map_or(ENDED, String::as_str), &functions);
        }
    }

    fn record(&mut self, recorder: &Recorder, time: u64) {
        self.due = time + SLICE;
        let Some((event, samples)) = self.counts.take() else { return };
        let length = event.encode().map_or(usize::MAX, |bytes| bytes.len());
        // If a path is not recorded, later records lack it.
        let has_room = self.unrecorded == 0 && length <= self.room;
        if has_room && recorder.event(time, &event).is_ok() {
            self.room -= length;
        } else {
            self.unrecorded += samples;
        }
    }
}

/// Starts to sample on one CPU.
fn ring(cpu: usize, frequency: u32, size: usize, cycles: bool) -> io::Result<Sampler> {
    let mut builder = match cycles {
        true => Builder::new(Hardware::CPU_CYCLES),
        false => Builder::new(Software::CPU_CLOCK),
    };
    builder.any_pid().one_cpu(cpu).include_kernel().sample_frequency(frequency.into());
    // The library cannot read a record that ends with an empty call chain, so another field follows.
    builder.sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::CALLCHAIN | SampleFlag::WEIGHT);
    builder.read_format(ReadFormat::empty()).comm(true);
    // An idle CPU counts no cycles, but its clock continues.
    started(builder.exclude_idle(!cycles), size)
}

/// Starts to record what processes map on one CPU. These records have their own buffer, so that they do not displace
/// samples if many programs start.
fn mappings(cpu: usize) -> io::Result<Sampler> {
    let mut builder = Builder::new(Software::DUMMY);
    started(builder.any_pid().one_cpu(cpu).include_kernel().mmap(true), RING[0])
}

fn started(builder: &Builder<'_>, size: usize) -> io::Result<Sampler> {
    let mut ring = builder.build()?.sampled(size)?;
    ring.as_counter_mut().enable()?;
    Ok(ring)
}

/// The name of a process; `None` if it has ended.
fn name(root: &Path, id: u32) -> Option<String> {
    let name = fs::read_to_string(root.join(format!("proc/{id}/comm"))).ok()?;
    Some(name.trim_end().to_owned())
}

/// Samples by call path and process.
#[derive(Default)]
struct Counts {
    /// The address of each function of the kernel, ascending.
    functions: Vec<u64>,
    /// The number of each path in the kernel.
    paths: HashMap<Vec<i64>, u32>,
    /// The number of functions in all paths in the kernel.
    frames: usize,
    /// The number of each function of a program, by name.
    user_functions: HashMap<String, u32>,
    /// The number of each path in user mode. The key is the process's name and the numbers of the functions.
    user_paths: HashMap<(String, Vec<u32>), u32>,
    /// The number of functions in all paths in user mode.
    user_frames: usize,
    kernel: BTreeMap<u32, u32>,
    user: BTreeMap<u32, u32>,
    /// Paths that have not been recorded yet, without counts.
    new: Samples,
    /// The number of lost samples since the beginning.
    lost: u64,
    dropped: u64,
}

impl Counts {
    /// Adds a sample in the kernel. The call chain begins with the sample's address and continues with return
    /// addresses.
    fn add_kernel(&mut self, ip: u64, chain: &[u64]) {
        let own_chain = chain.iter().copied().take_while(|address| *address != USER_CONTEXT);
        let mut callers = own_chain.filter(|address| *address < CONTEXTS);
        let own = callers.next().unwrap_or(ip);
        // A call can be the last instruction of a function. Then its return address is in the next function.
        let callers = callers.map(|address| address.saturating_sub(1));
        let addresses = std::iter::once(own).chain(callers).take(MAX_DEPTH);
        let mut path: Vec<i64> = addresses.map(|it| self.function(it).cast_signed()).collect();
        path.reverse();
        let number = match self.paths.get(&path) {
            Some(number) => *number,
            None if self.paths.len() >= MAX_PATHS || self.frames + path.len() > MAX_FRAMES => {
                return self.add_dropped();
            }
            None => {
                let number = self.paths.len() as u32;
                self.frames += path.len();
                self.new.paths.push(path.clone());
                self.paths.insert(path, number);
                number
            }
        };
        *self.kernel.entry(number).or_default() += 1;
    }

    /// Adds a sample in user mode, with the names of its functions, the innermost first.
    fn add_user(&mut self, id: u32, name: &str, functions: &[String]) {
        // If no space is left for its path, the sample counts for its process without a path.
        let path = self.user_path(id, name, functions).or_else(|| self.user_path(id, name, &[]));
        match path {
            Some(number) => *self.user.entry(number).or_default() += 1,
            None => self.add_dropped(),
        }
    }

    /// The number of a path in user mode; `None` if no space is left for it.
    fn user_path(&mut self, id: u32, name: &str, functions: &[String]) -> Option<u32> {
        let numbers = functions.iter().rev().map(|name| self.user_function(name));
        let path = (name.to_owned(), numbers.collect::<Option<Vec<u32>>>()?);
        if let Some(number) = self.user_paths.get(&path) {
            return Some(*number);
        }
        // The last numbers are kept for processes without a path.
        let most = MAX_USER_PATHS - if functions.is_empty() { 0 } else { MAX_PROCESSES };
        if self.user_paths.len() >= most || self.user_frames + functions.len() > MAX_FRAMES {
            return None;
        }
        let number = self.user_paths.len() as u32;
        self.user_frames += functions.len();
        let (name, functions) = path.clone();
        self.new.processes.push(UserPath { id, name, functions });
        self.user_paths.insert(path, number);
        Some(number)
    }

    /// The number of a function in a program; `None` if no space is left for it.
    fn user_function(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.user_functions.get(name) {
            return Some(*number);
        }
        let number = self.user_functions.len();
        (number < MAX_USER_PATHS).then(|| {
            self.new.functions.push(name.to_owned());
            self.user_functions.insert(name.to_owned(), number as u32);
            number as u32
        })
    }

    fn add_lost(&mut self, samples: u64) {
        self.lost += samples;
        self.new.lost += samples;
    }

    fn add_dropped(&mut self) {
        self.dropped += 1;
        self.new.dropped += 1;
    }

    /// The beginning of the function that contains this address; 0 if there is none.
    fn function(&self, address: u64) -> u64 {
        let next = self.functions.partition_point(|begin| *begin <= address);
        let begin = next.checked_sub(1).and_then(|place| self.functions.get(place));
        begin.copied().filter(|begin| address - begin < MAX_FUNCTION).unwrap_or(0)
    }

    /// The samples since the last call, as an event, and their number; `None` if there are none.
    fn take(&mut self) -> Option<(Event, u64)> {
        let new = mem::take(&mut self.new);
        let [kernel, user] = [&mut self.kernel, &mut self.user]
            .map(|counts| mem::take(counts).into_iter().collect::<Vec<_>>());
        let samples = kernel.iter().chain(&user).map(|(_, samples)| u64::from(*samples)).sum();
        let samples_and_lost = samples + new.lost + new.dropped;
        let event = Event::Samples(Samples { kernel, user, ..new });
        (samples_and_lost > 0).then_some((event, samples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::Log;

    const KERNEL: u64 = -128_i64 as u64;
    const BASE: u64 = 0xffff_ffff_8100_0000;

    fn counts() -> Counts {
        let functions = vec![BASE, BASE + 0x100, BASE + 0x200];
        Counts { functions, ..Counts::default() }
    }

    fn taken(counts: &mut Counts) -> Samples {
        match counts.take() {
            Some((Event::Samples(samples), _)) => samples,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn samples_are_counted_by_functions_on_the_path() {
        let mut counts = counts();
        // The last instruction of the caller is a call, so its return address is the beginning of the next function.
        counts.add_kernel(BASE + 0x110, &[KERNEL, BASE + 0x110, BASE + 0x100]);
        counts.add_kernel(
            BASE + 0x120,
            &[KERNEL, BASE + 0x120, BASE + 0x80, USER_CONTEXT, 0x40_1000],
        );
        counts.add_kernel(BASE + 0x200, &[]);
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        counts.add_user(7, "numa01", &names(&["touch", "main"]));
        counts.add_user(8, "numa01", &names(&["touch", "main"]));
        counts.add_user(8, "numa01", &names(&["main"]));
        counts.add_user(9, "sh", &[]);
        counts.add_lost(3);
        let [first, second, third] = [0, 0x100, 0x200].map(|at| (BASE + at).cast_signed());
        assert_eq!(
            taken(&mut counts),
            Samples {
                paths: vec![vec![first, second], vec![third]],
                functions: names(&["main", "touch"]),
                processes: vec![
                    UserPath { id: 7, name: "numa01".into(), functions: vec![0, 1] },
                    UserPath { id: 8, name: "numa01".into(), functions: vec![0] },
                    UserPath { id: 9, name: "sh".into(), functions: vec![] },
                ],
                kernel: vec![(0, 2), (1, 1)],
                user: vec![(0, 2), (1, 1), (2, 1)],
                lost: 3,
                dropped: 0,
            }
        );
        assert!(counts.take().is_none());
        // Paths are listed only once.
        counts.add_kernel(BASE + 0x210, &[]);
        let again = Samples { kernel: vec![(1, 1)], ..Samples::default() };
        assert_eq!(taken(&mut counts), again);
    }

    #[test]
    fn an_address_without_a_function_is_zero() {
        let counts = counts();
        assert_eq!(counts.function(BASE + 0x1ff), BASE + 0x100);
        assert_eq!(counts.function(BASE - 1), 0);
        assert_eq!(counts.function(BASE + 0x200 + MAX_FUNCTION), 0);
        assert_eq!(Counts::default().function(BASE), 0);
    }

    #[test]
    fn paths_over_the_limit_are_counted_as_dropped() {
        let mut counts = counts();
        counts.frames = MAX_FRAMES - 1;
        counts.add_kernel(BASE, &[]);
        counts.add_kernel(BASE + 0x100, &[]);
        counts.add_kernel(BASE, &[]);
        let samples = taken(&mut counts);
        assert_eq!((samples.kernel, samples.dropped, counts.dropped), (vec![(0, 2)], 1, 1));
    }

    #[test]
    fn without_room_for_paths_processes_count_as_a_whole() {
        let mut counts = counts();
        let with_paths = MAX_USER_PATHS - MAX_PROCESSES;
        for number in 0..=with_paths {
            counts.add_user(7, "a", &[number.to_string()]);
        }
        for number in 1..=MAX_PROCESSES {
            counts.add_user(7, &number.to_string(), &[]);
        }
        let samples = taken(&mut counts);
        assert_eq!(samples.processes.len(), MAX_USER_PATHS);
        let whole = UserPath { id: 7, name: "a".into(), functions: vec![] };
        assert_eq!((&samples.processes[with_paths], samples.dropped), (&whole, 1));
    }

    #[test]
    fn samples_without_room_in_the_recorder_are_counted() {
        let log = Log::new(64 << 10);
        let mut profiler = Profiler {
            root: "/".into(),
            rings: Vec::new(),
            mappings: Vec::new(),
            event: "cpu-clock",
            frequency: 99,
            due: 0,
            names: HashMap::new(),
            programs: Programs::default(),
            room: 60,
            unrecorded: 0,
            counts: counts(),
        };
        for at in [0, 0x100, 0x200] {
            profiler.counts.add_kernel(BASE + at, &[BASE + at; 4]);
            profiler.cut(&log.recorder, at);
        }
        assert_eq!(log.events().len(), 2);
        assert_eq!(profiler.missing(), ["1 samples are not recorded, because there were too many"]);
    }
}
