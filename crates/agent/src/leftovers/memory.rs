//! Memory that is in use and cannot be reclaimed, by what uses it.

use std::fs;

/// Amounts of memory in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    total: u64,
    /// Memory that is neither free nor a cache that can be dropped.
    used: u64,
    /// Files on tmpfs and shared memory, except what is in swap.
    shared: u64,
    /// The pool of huge pages.
    pool: u64,
    /// Slabs that cannot be reclaimed.
    slab: u64,
    /// Pages in swap.
    swapped: u64,
}

/// Growth by less is not noted, because the kernel's own structures grow with use: 4 MiB, and a 64th of the memory.
const LEAST: u64 = 4 << 10;
const LEAST_SHARE: u64 = 64;

impl Memory {
    /// Reads the state of this machine.
    pub fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let page = rustix::param::page_size() as u64 >> 10;
        let lists = pages_on_lists(&text("/proc/zoneinfo")) * page;
        Self::parse(&text("/proc/meminfo"), lists)
    }

    /// Reads `/proc/meminfo` (proc_meminfo(5)). `lists` is what is on the free lists of CPUs, which `MemFree` does
    /// not include.
    fn parse(text: &str, lists: u64) -> Self {
        let find = |name: &str| {
            let value = |line: &str| {
                line.strip_prefix(name)?.strip_prefix(':')?.split_whitespace().next()?.parse().ok()
            };
            text.lines().find_map(value).unwrap_or(0_u64)
        };
        let shared = find("Shmem");
        let cache = (find("Buffers") + find("Cached")).saturating_sub(shared);
        let free = find("MemFree") + lists + cache + find("SReclaimable");
        Self {
            total: find("MemTotal"),
            used: find("MemTotal").saturating_sub(free),
            shared,
            pool: find("HugePages_Total") * find("Hugepagesize"),
            slab: find("SUnreclaim"),
            swapped: find("SwapTotal").saturating_sub(find("SwapFree")),
        }
    }

    /// How much more memory is in use than before; `None` if the difference is small.
    pub fn since(&self, before: &Self) -> Option<String> {
        let more = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let grown = more(|it| it.used) + more(|it| it.swapped);
        if grown < LEAST.max(self.total / LEAST_SHARE) {
            return None;
        }
        let parts = [
            ("in files on tmpfs or shared memory", more(|it| it.shared)),
            ("in the pool of huge pages", more(|it| it.pool)),
            ("in slabs", more(|it| it.slab)),
            ("in swap", more(|it| it.swapped)),
        ];
        let parts = parts.into_iter().filter(|(_, size)| *size >= 1 << 10);
        let parts: Vec<String> =
            parts.map(|(what, size)| format!("{} MiB {what}", size >> 10)).collect();
        let of_these = if parts.is_empty() { "" } else { ", of these " };
        Some(format!("{} MiB of memory in use{of_these}{}", grown >> 10, parts.join(", ")))
    }
}

/// The free pages on the lists of CPUs, from `/proc/zoneinfo` (`mm/vmstat.c`, `zoneinfo_show_print`).
fn pages_on_lists(text: &str) -> u64 {
    let count = |line: &str| line.trim_start().strip_prefix("count:")?.trim().parse::<u64>().ok();
    text.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "MemTotal:         481296 kB
MemFree:          400000 kB
MemAvailable:     430000 kB
Buffers:            1000 kB
Cached:            22000 kB
SwapCached:            0 kB
SwapTotal:             0 kB
SwapFree:              0 kB
Shmem:              8000 kB
SReclaimable:       6000 kB
SUnreclaim:         9000 kB
HugePages_Total:       0
Hugepagesize:       2048 kB
";

    #[test]
    fn pages_on_lists_of_cpus_are_free() {
        let zones = "Node 0, zone      DMA\n  pages free     3840\n  pagesets\n    cpu: 0\n              count: 12\n\
                     \x20             high:  14\n    cpu: 1\n              count:    3000\n";
        assert_eq!(pages_on_lists(zones), 3012);
        let memory = Memory::parse(BEFORE, 0);
        assert_eq!(Memory::parse(BEFORE, 12_048).used, memory.used - 12_048);
    }

    #[test]
    fn caches_are_not_in_use() {
        let memory = Memory::parse(BEFORE, 0);
        assert_eq!((memory.used, memory.shared, memory.slab), (60_296, 8000, 9000));
        let cached = BEFORE.replace("400000", "100000").replace("22000", "322000");
        assert_eq!(Memory::parse(&cached, 0), memory);
        assert_eq!(Memory::parse(&cached, 0).since(&memory), None);
        assert_eq!(Memory::parse("", 0), Memory::default());
    }

    #[test]
    fn what_is_left_is_named() {
        let before = Memory::parse(BEFORE, 0);
        let file = BEFORE
            .replace("400000", "100000")
            .replace("22000", "322000")
            .replace("  8000", "308000");
        let told = Memory::parse(&file, 0).since(&before).unwrap();
        assert_eq!(
            told,
            "292 MiB of memory in use, of these 292 MiB in files on tmpfs or shared memory"
        );
        let pool = BEFORE.replace("400000", "379520").replace("Total:       0", "Total:      10");
        let told = Memory::parse(&pool, 0).since(&before).unwrap();
        assert_eq!(told, "20 MiB of memory in use, of these 20 MiB in the pool of huge pages");
        let little = BEFORE.replace("400000", "393000");
        assert_eq!(Memory::parse(&little, 0).since(&before), None);
    }
}
