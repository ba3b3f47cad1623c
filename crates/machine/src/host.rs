//! Reads the host's load and the CPU time stolen by its own hypervisor while a machine runs, and describes the host.

mod check;
mod describe;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use guest::reason;
use model::{Bytes, HostLoad};

pub use check::{Line, abilities, facts};
pub use describe::{describe, running_kernel, throttled, topology};

/// Memory available to programs without swapping: `MemAvailable` of `/proc/meminfo` (`proc_meminfo(5)`).
/// `None` if the host does not report it.
pub fn unused_memory() -> Option<Bytes> {
    line(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// All memory of the host, including swap. `None` if the host does not report it.
pub fn memory() -> Option<Bytes> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let [memory, swap] = ["MemTotal:", "SwapTotal:"].map(|name| line(&meminfo, name));
    Some(Bytes(memory?.0.saturating_add(swap?.0)))
}

/// The memory of each node in MiB, from bytes: `12053, 12052 MiB`.
fn memory_text(nodes: &[u64]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|bytes| (bytes >> 20).to_string()).collect();
    if nodes.is_empty() { "not known".to_owned() } else { format!("{} MiB", nodes.join(", ")) }
}

/// Why this process may not count events of all CPUs: that needs the capability `CAP_PERFMON` or `CAP_SYS_ADMIN`, or a
/// setting (`Documentation/admin-guide/sysctl/kernel.rst`, `perf_event_paranoid`). `None` if it may.
pub fn no_events(root: &Path) -> Option<String> {
    const CAPABLE: u64 = 1 << 38 | 1 << 21;
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let status = read("proc/self/status");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    let paranoid = read("proc/sys/kernel/perf_event_paranoid").trim().parse::<i32>();
    match (capabilities.unwrap_or(0) & CAPABLE, paranoid) {
        (_, Err(_)) => Some("its kernel has no perf events".to_owned()),
        (0, Ok(paranoid)) if paranoid > 0 => Some(format!(
            "this user may not count them, because kernel.perf_event_paranoid is {paranoid}: run as root, or set it to 0"
        )),
        _ => None,
    }
}

/// Why a tracepoint cannot be counted: perf reads its number in tracefs (`Documentation/trace/events.rst`). `None` if it
/// can.
pub fn no_tracepoint(root: &Path, system: &str, name: &str) -> Option<String> {
    let events = root.join("sys/kernel/tracing/events");
    if let Err(error) = fs::read_dir(&events) {
        let what = match error.kind() {
            io::ErrorKind::PermissionDenied => "this user may not read it: run as root",
            _ => "it is not mounted: `mount -t tracefs nodev /sys/kernel/tracing` as root",
        };
        return Some(format!("tracepoints are named in /sys/kernel/tracing, and {what}"));
    }
    match fs::read_to_string(events.join(system).join(name).join("id")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("this kernel has no tracepoint {system}:{name}"))
        }
        Err(error) => Some(format!("{system}:{name} cannot be read: {}", reason(&error))),
        Ok(_) => None,
    }
}

/// The value of a line of `/proc/meminfo`, whose unit is KiB.
fn line(meminfo: &str, name: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib.saturating_mul(1024)))
}

/// The host's counters at one time. A counter that cannot be read is 0.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    load: f64,
    cpu: CpuTime,
}

/// CPU time of all CPUs since the host's boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTime {
    all: u64,
    stolen: u64,
}

impl Reading {
    /// Reads the counters now.
    pub fn take() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            at: Instant::now(),
            load: load(&read("/proc/loadavg")),
            cpu: cpu_time(&read("/proc/stat")),
        }
    }

    /// The host's load from this reading until now.
    pub fn until_now(&self) -> HostLoad {
        let now = Self::take();
        HostLoad {
            load_before: self.load,
            load_after: now.load,
            steal: steal(self.cpu, now.cpu),
            wall: now.at.duration_since(self.at).as_secs_f64(),
        }
    }
}

/// The average over one minute: the first word of `/proc/loadavg` (`proc_loadavg(5)`).
fn load(loadavg: &str) -> f64 {
    let first = loadavg.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The `cpu` line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. The following guest
/// time is included in user and nice (`proc_stat(5)`).
fn cpu_time(stat: &str) -> CpuTime {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> = line
        .unwrap_or_default()
        .split_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    CpuTime { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or_default() }
}

/// The stolen share of the time between two readings, 0 to 1.
fn steal(before: CpuTime, after: CpuTime) -> f64 {
    let all = after.all.saturating_sub(before.all);
    let stolen = after.stolen.saturating_sub(before.stolen);
    if all == 0 { 0.0 } else { stolen as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let meminfo = "MemTotal:       24598788 kB\nMemAvailable:      2048 kB\nHugetlb: 0 kB\n";
        assert_eq!(line(meminfo, "MemAvailable:"), Some(Bytes::mib(2)));
        assert_eq!(line("MemAvailable: many kB\n", "MemAvailable:"), None);
        assert_eq!(load("1.25 0.80 0.40 2/345 6789\n"), 1.25);
        let stat = "cpu  10 1 20 100 5 0 4 60 7 0\ncpu0 5 0 10 50 2 0 2 30 3 0\n";
        assert_eq!(cpu_time(stat), CpuTime { all: 200, stolen: 60 });
        assert_eq!(load(""), 0.0);
        assert_eq!(cpu_time("intr 1\n"), CpuTime::default());
    }

    #[test]
    fn stolen_time_is_a_share() {
        let (before, after) = (CpuTime { all: 100, stolen: 10 }, CpuTime { all: 300, stolen: 60 });
        assert_eq!(steal(before, after), 0.25);
        assert_eq!(steal(before, before), 0.0);
    }

    #[test]
    fn this_host_is_read() {
        let load = Reading::take().until_now();
        assert!((0.0..=1.0).contains(&load.steal) && load.wall >= 0.0);
    }
}
