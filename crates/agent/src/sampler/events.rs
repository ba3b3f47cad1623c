//! Counts events by perf_event_open(2), on all CPUs for all processes, and prints them as a text of the form
//! that `kernelfiles::events` reads.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use guest::reason;
use model::{CpuSet, PerfEvent};
use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Types of events (`include/uapi/linux/perf_event.h`, `enum perf_type_id`).
const HARDWARE: u32 = 0;
pub const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const CACHE: u32 = 3;
/// The directory of tracepoints in tracefs.
const TRACEFS: &str = "sys/kernel/tracing/events";
/// The number of file descriptors that the agent needs for other purposes.
const OTHER_FILES: u64 = 1024;

/// The events that are open on all CPUs.
#[derive(Default)]
pub struct Events {
    open: Vec<OneEvent>,
    lost: u64,
}

struct OneEvent {
    name: String,
    /// One counter for each CPU, with the number of the CPU.
    counters: Vec<(usize, Counter)>,
}

impl Events {
    /// Opens the events `names`. Also returns a sentence for each event that cannot be counted.
    pub fn open(root: &Path, names: &[String]) -> (Self, Vec<String>) {
        let mut events = Self::default();
        let mut problems = Vec::new();
        let cpus = cpus(root);
        let _kept = MoreFiles::allow(names.len() * cpus.len());
        for name in names {
            match open(root, name, &cpus) {
                Ok(counters) => events.open.push(OneEvent { name: name.clone(), counters }),
                Err(why) => problems.push(format!("{name} is not counted: {why}")),
            }
        }
        (events, problems)
    }

    /// Whether no event is counted.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How often an event could not be read. The sample then has no value of it.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes all events to the start of `text`, which grows as needed, and returns the length.
    pub fn print(&mut self, text: &mut Vec<u8>) -> usize {
        let room = text.len();
        text.clear();
        for OneEvent { name, counters } in &mut self.open {
            let readings = counters.iter_mut().map(|(cpu, counter)| Ok((*cpu, read(counter)?)));
            self.lost += u64::from(!add(text, name, readings));
        }
        let length = text.len();
        text.resize(room.max(length), 0);
        length
    }
}

/// The CPUs that are online.
pub fn cpus(root: &Path) -> Vec<usize> {
    let online = fs::read_to_string(root.join("sys/devices/system/cpu/online"));
    let cpus = online.ok().and_then(|text| text.trim().parse::<CpuSet>().ok());
    cpus.map_or(vec![0], |cpus| cpus.0.iter().map(|cpu| *cpu as usize).collect())
}

/// Adds a line for each CPU. If the event cannot be read on one CPU, adds nothing and returns false.
fn add(
    text: &mut Vec<u8>,
    name: &str,
    readings: impl Iterator<Item = io::Result<(usize, Reading)>>,
) -> bool {
    let begin = text.len();
    let lines = readings.map(|reading| {
        let (cpu, [value, enabled, running]) = reading?;
        writeln!(text, "{name} {cpu} {value} {enabled} {running}")
    });
    let all = lines.collect::<io::Result<()>>().is_ok();
    if !all {
        text.truncate(begin);
    }
    all
}

/// The value of an event on a CPU, and the nanoseconds in which it was enabled and in which it was counted.
type Reading = [u64; 3];

fn read(counter: &mut Counter) -> io::Result<Reading> {
    let read = counter.read_full()?;
    let nanoseconds = |time: Option<Duration>| {
        let time = time.and_then(|time| u64::try_from(time.as_nanos()).ok());
        time.ok_or(ErrorKind::InvalidData)
    };
    let [enabled, running] = [read.time_enabled(), read.time_running()].map(nanoseconds);
    Ok([read.count(), enabled?, running?])
}

fn open(root: &Path, name: &str, cpus: &[usize]) -> Result<Vec<(usize, Counter)>, String> {
    let (kind, config) = match PerfEvent::parse(name).ok_or("perf has no such event")? {
        PerfEvent::Tracepoint { system, name } => (TRACEPOINT, tracepoint(root, system, name)?),
        PerfEvent::Software(number) => (SOFTWARE, number),
        PerfEvent::Hardware(number) => (HARDWARE, number),
        PerfEvent::Cache(number) => (CACHE, number),
    };
    let open = |&cpu: &usize| {
        let mut builder = Builder::new(Software::DUMMY);
        builder.attrs_mut().type_ = kind;
        builder.attrs_mut().config = config;
        builder.any_pid().one_cpu(cpu).include_kernel().include_hv().enabled(true);
        builder.read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
        Ok((cpu, builder.build()?))
    };
    cpus.iter().map(open).collect::<io::Result<_>>().map_err(|error| why(&error, kind))
}

/// Why an event cannot be opened.
pub fn why(error: &io::Error, kind: u32) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel has no perf events (CONFIG_PERF_EVENTS)".into(),
        Some(libc::EACCES | libc::EPERM) => "the kernel does not permit it".into(),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV)
            if [HARDWARE, CACHE].contains(&kind) =>
        {
            "the machine has no hardware counter for it".into()
        }
        Some(libc::ENOENT | libc::EINVAL) if kind == SOFTWARE => {
            "the kernel has no such event".into()
        }
        _ => reason(error),
    }
}

/// The number by which perf knows a tracepoint.
fn tracepoint(root: &Path, system: &str, name: &str) -> Result<u64, String> {
    let events = root.join(TRACEFS);
    let event = events.join(system).join(name);
    match fs::read_to_string(event.join("id")) {
        Ok(id) => id.trim().parse().map_err(|_| format!("its id `{}` is no number", id.trim())),
        Err(_) if !events.is_dir() => Err("the kernel has no tracefs with events \
             (CONFIG_ENABLE_DEFAULT_TRACERS or another tracer)"
            .into()),
        Err(_) if !event.is_dir() => Err("the kernel has no such tracepoint".into()),
        Err(_) => Err("the kernel has no perf events (CONFIG_PERF_EVENTS)".into()),
    }
}

/// Raises the limit of open files until it is dropped. The limit matters only while files are opened.
pub struct MoreFiles(Rlimit);

impl MoreFiles {
    /// Raises the limit enough for `more` events.
    pub fn allow(more: usize) -> Self {
        let before = getrlimit(Resource::Nofile);
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let files = (open + more) as u64 + OTHER_FILES;
        let more = |limit: Option<u64>| limit.map(|limit| limit.max(files));
        let raised = Rlimit { current: more(before.current), maximum: more(before.maximum) };
        // If this fails, opening events reports it.
        let _ = setrlimit(Resource::Nofile, raised);
        Self(before)
    }
}

impl Drop for MoreFiles {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

#[cfg(test)]
mod tests {
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware};

    use super::*;

    fn problems(files: &[&str], name: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "none\n").unwrap();
        }
        Events::open(root.path(), &[name.into()]).1
    }

    #[test]
    fn an_event_that_one_cpu_does_not_tell_has_no_line() {
        let mut text = b"cycles 0 1 2 2\n".to_vec();
        let lost = || Err(io::Error::from(ErrorKind::UnexpectedEof));
        assert!(!add(&mut text, "cs", [Ok((0, [1, 2, 2])), lost()].into_iter()));
        assert!(add(&mut text, "faults", [Ok((0, [7, 9, 9])), Ok((1, [8, 9, 3]))].into_iter()));
        let expected = "cycles 0 1 2 2\nfaults 0 7 9 9\nfaults 1 8 9 3\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn what_is_missing_is_said() {
        let tlb = "sys/kernel/tracing/events/tlb/tlb_flush/";
        assert_eq!(
            problems(&[], "tlb:tlb_flush"),
            ["tlb:tlb_flush is not counted: the kernel has no tracefs with events \
              (CONFIG_ENABLE_DEFAULT_TRACERS or another tracer)"]
        );
        assert_eq!(
            problems(&[&format!("{tlb}format")], "tlb:tlb_flsh"),
            ["tlb:tlb_flsh is not counted: the kernel has no such tracepoint"]
        );
        assert_eq!(
            problems(&[&format!("{tlb}format")], "tlb:tlb_flush"),
            ["tlb:tlb_flush is not counted: the kernel has no perf events (CONFIG_PERF_EVENTS)"]
        );
        assert_eq!(
            problems(&[&format!("{tlb}id")], "tlb:tlb_flush"),
            ["tlb:tlb_flush is not counted: its id `none` is no number"]
        );
    }

    #[test]
    fn the_reason_of_an_error_depends_on_the_event() {
        let of = |errno, kind| why(&io::Error::from_raw_os_error(errno), kind);
        assert_eq!(of(libc::ENOENT, HARDWARE), "the machine has no hardware counter for it");
        assert_eq!(of(libc::EOPNOTSUPP, CACHE), "the machine has no hardware counter for it");
        assert_eq!(of(libc::EINVAL, SOFTWARE), "the kernel has no such event");
        assert_eq!(
            of(libc::ENOSYS, TRACEPOINT),
            "the kernel has no perf events (CONFIG_PERF_EVENTS)"
        );
        assert_eq!(of(libc::EACCES, TRACEPOINT), "the kernel does not permit it");
    }

    /// Our names have the numbers of the kernel's header, from which the numbers of this library are generated.
    #[test]
    fn numbers_are_those_of_the_kernel() {
        let encoded = |builder: Builder<'_>| (builder.attrs().type_, builder.attrs().config);
        let of = |name: &str| match PerfEvent::parse(name) {
            Some(PerfEvent::Software(number)) => (SOFTWARE, number),
            Some(PerfEvent::Hardware(number)) => (HARDWARE, number),
            Some(PerfEvent::Cache(number)) => (CACHE, number),
            other => panic!("{name}: {other:?}"),
        };
        let cache =
            |which, operation, result| encoded(Builder::new(Cache { which, operation, result }));
        for (name, event) in [
            ("cpu-clock", Software::CPU_CLOCK),
            ("task-clock", Software::TASK_CLOCK),
            ("page-faults", Software::PAGE_FAULTS),
            ("context-switches", Software::CONTEXT_SWITCHES),
            ("cpu-migrations", Software::CPU_MIGRATIONS),
            ("minor-faults", Software::PAGE_FAULTS_MIN),
            ("major-faults", Software::PAGE_FAULTS_MAJ),
            ("alignment-faults", Software::ALIGNMENT_FAULTS),
            ("emulation-faults", Software::EMULATION_FAULTS),
            ("cgroup-switches", Software::CGROUP_SWITCHES),
        ] {
            assert_eq!(of(name), encoded(Builder::new(event)), "{name}");
        }
        for (name, event) in [
            ("cycles", Hardware::CPU_CYCLES),
            ("instructions", Hardware::INSTRUCTIONS),
            ("cache-references", Hardware::CACHE_REFERENCES),
            ("cache-misses", Hardware::CACHE_MISSES),
            ("branches", Hardware::BRANCH_INSTRUCTIONS),
            ("branch-misses", Hardware::BRANCH_MISSES),
            ("bus-cycles", Hardware::BUS_CYCLES),
            ("stalled-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
            ("stalled-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
            ("ref-cycles", Hardware::REF_CPU_CYCLES),
        ] {
            assert_eq!(of(name), encoded(Builder::new(event)), "{name}");
        }
        for (place, which) in [
            ("L1-dcache", CacheId::L1D),
            ("L1-icache", CacheId::L1I),
            ("LLC", CacheId::LL),
            ("dTLB", CacheId::DTLB),
            ("iTLB", CacheId::ITLB),
            ("branch", CacheId::BPU),
            ("node", CacheId::NODE),
        ] {
            for (what, operation, result) in [
                ("loads", CacheOp::READ, CacheResult::ACCESS),
                ("load-misses", CacheOp::READ, CacheResult::MISS),
                ("stores", CacheOp::WRITE, CacheResult::ACCESS),
                ("store-misses", CacheOp::WRITE, CacheResult::MISS),
                ("prefetches", CacheOp::PREFETCH, CacheResult::ACCESS),
                ("prefetch-misses", CacheOp::PREFETCH, CacheResult::MISS),
            ] {
                let name = format!("{place}-{what}");
                assert_eq!(of(&name), cache(which, operation, result), "{name}");
            }
        }
    }
}
