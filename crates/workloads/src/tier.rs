//! Two memory tiers: a node with CPUs, and a node with only memory, which the kernel considers slow.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `fill` | a process writes memory of the fast node |
//! | `demote` | the kernel is asked to reclaim that memory (`memory.reclaim`), and moves it to the slow node |
//! | `promote` | a part of it is read again and again at random; the kernel moves what is hot back |
//!
//! The workload enables demotion, and sets NUMA balancing to its mode for memory tiers. Both are restored.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use guest::arch::page;
use guest::clock::boot_time;
use guest::sys::nodes_of;
use guest::words::Words;

use super::cgroup::Memcg;
use super::random::Random;
use super::reporter::Reporter;
use super::setting::Setting;
use super::tasks::pin;
use super::topology::{Node, Topology};
use super::{Given, MIB, Result, While, Workload, WorkloadError, refused, share_of};

/// Where demotion is enabled.
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
/// The mode of NUMA balancing. 2 is that of memory tiers.
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Where the kernel lists its tiers, since Linux 6.1.
const TIERS: &str = "/sys/devices/virtual/memory_tiering";
/// How many accesses are made between two looks at the clock.
const TURN: u32 = 10_000;
/// The size of a word in bytes.
const WORD: usize = size_of::<u64>();

pub struct Options {
    /// The size of the memory, in percent of the machine's.
    share: f64,
    /// How much of it is demoted, in percent.
    demote: f64,
    /// How much of it is hot, in percent.
    hot: f64,
    /// How long hot memory is read, in seconds.
    seconds: f64,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            share: given.percent("share", 100.0, "")?,
            demote: given.percent("demote", 100.0, "")?,
            hot: given.percent("hot", 100.0, "")?,
            seconds: given.above_zero("seconds")?,
            memory: given.value("memory")?,
        };
        match found.pages() * found.hot as usize / 100 {
            0 => Err(refused("share", found.share, "less than a hot page")),
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let topology = Topology::of_this_machine().while_("/sys/devices/system/node")?;
        let (fast, slow) = nodes(&topology)?;
        self.check_room(fast, slow)?;
        check_kernel()?;
        let _demotion = Setting::new(DEMOTION, "1")?;
        let cpu = fast.cpus[0] as usize;
        pin(cpu).while_("choosing a CPU")?;

        reporter.phase("fill")?;
        let memcg = Memcg::new("tier")?;
        memcg.join()?;
        let bytes = self.pages() * page();
        let words = Words::anonymous(bytes).while_("mapping memory")?;
        words.without_huge_pages().while_("MADV_NOHUGEPAGE")?;
        // The memory is on the node of this CPU by preference and not by binding: bound memory is never demoted.
        words.pages().for_each(|word| word.store(1, Relaxed));
        let began = pages_on(slow, &words)?;

        reporter.phase("demote")?;
        let start = Instant::now();
        let all = memcg.reclaim((bytes as f64 * self.demote / 100.0) as u64)?;
        let (elapsed, ended) = (start.elapsed().as_secs_f64(), boot_time());
        reporter.phase("")?;
        let demoted = (pages_on(slow, &words)? - began) * page() as f64 / MIB;
        reporter.timed("Demote", "", demoted / elapsed, ended)?;
        reporter.timed("Demoted", "", demoted, ended)?;
        if !all {
            reporter.note("memory.reclaim demoted less than it was asked for")?;
        }
        self.promote(&words, fast, reporter)?;
        memcg.leave()
    }
}

impl Options {
    fn pages(&self) -> usize {
        share_of(self.memory, self.share) as usize / page()
    }

    /// Checks that the memory fits on the fast node, and that the slow node has space for what is demoted.
    fn check_room(&self, fast: &Node, slow: &Node) -> Result<()> {
        let bytes = (self.pages() * page()) as f64;
        let needs = [(fast, bytes), (slow, bytes * self.demote / 100.0)];
        for (node, bytes) in needs {
            if bytes > 0.8 * node.memory as f64 {
                let has = node.memory >> 20;
                let why = format!("at most 80 % of node {}, which has {has} MiB", node.number);
                return Err(refused("share", self.share, why));
            }
        }
        Ok(())
    }

    /// Reads hot pages, which are a part of all pages, for some time.
    fn promote(&self, words: &Words, fast: &Node, reporter: &mut Reporter) -> Result<()> {
        let _balancing = Setting::new(BALANCING, "2")?;
        // The first pages were written first, so they are demoted first.
        let hot = words.len() * self.hot as usize / 100;
        let hot = &words[..hot / (page() / WORD) * (page() / WORD)];
        let count = || -> Result<f64> {
            let pages = hot.iter().step_by(page() / WORD);
            let nodes = nodes_of(pages).while_("move_pages")?;
            Ok(nodes.iter().filter(|node| **node == fast.number as i32).count() as f64)
        };
        let before = count()?;
        reporter.phase("promote")?;
        let (mut random, mut accesses) = (Random(0), 0.0);
        let (start, long) = (Instant::now(), Duration::from_secs_f64(self.seconds));
        while start.elapsed() < long {
            for _ in 0..TURN {
                hot[random.below(hot.len() as u64) as usize].load(Relaxed);
            }
            accesses += f64::from(TURN);
        }
        let (elapsed, ended) = (start.elapsed().as_secs_f64(), boot_time());
        reporter.phase("")?;
        reporter.timed("Accesses", "", accesses / elapsed, ended)?;
        reporter.timed("Promoted", "", (count()? - before) * page() as f64 / MIB, ended)
    }
}

/// The first node with CPUs, and the first one with only memory.
fn nodes(topology: &Topology) -> Result<(&Node, &Node)> {
    let first = |has_cpus: bool| {
        let mut nodes = topology.nodes.iter();
        nodes.find(|node| node.memory > 0 && node.cpus.is_empty() != has_cpus)
    };
    first(true).zip(first(false)).ok_or_else(|| {
        let why = "this machine has no node with memory alone: add a [[machine.node]] without cpus";
        WorkloadError::Arguments(why.into())
    })
}

/// Checks that the kernel has demotion, promotion, and more than one tier.
fn check_kernel() -> Result<()> {
    let unsupported = |why| Err(WorkloadError::Unsupported(why));
    if !Path::new(DEMOTION).exists() {
        return unsupported(
            "this kernel has no demotion to slow memory, which came with Linux 5.15 (CONFIG_MIGRATION)",
        );
    }
    if !Path::new(BALANCING).exists() {
        return unsupported("this kernel has no NUMA balancing (CONFIG_NUMA_BALANCING)");
    }
    let tiers = fs::read_dir(TIERS).map(|all| tiers(all.flatten().map(|entry| entry.file_name())));
    if tiers.is_ok_and(|tiers| tiers < 2) {
        return unsupported(
            "this kernel has all nodes in one memory tier: it does not read from ACPI which memory is slow, as Linux 6.12 does",
        );
    }
    Ok(())
}

/// The number of names that are those of tiers, such as `memory_tier4`.
fn tiers(names: impl Iterator<Item = OsString>) -> usize {
    names.filter(|name| name.to_string_lossy().starts_with("memory_tier")).count()
}

/// The number of pages on a node.
fn pages_on(node: &Node, words: &Words) -> Result<f64> {
    let nodes = nodes_of(words.pages()).while_("move_pages")?;
    Ok(nodes.iter().filter(|found| **found == node.number as i32).count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("tier", &[]).unwrap();
        assert!(options.pages() > 0 && options.seconds > 0.0);
        assert!(options.hot < options.demote);
    }

    #[test]
    fn a_node_with_memory_alone_is_slow() {
        let node =
            |number, cpus: &[u32], mib: u64| Node { number, cpus: cpus.into(), memory: mib << 20 };
        let all = vec![node(0, &[0], 512), node(1, &[1], 512), node(2, &[], 256)];
        let topology = Topology { nodes: all };
        let (fast, slow) = nodes(&topology).unwrap();
        assert_eq!((fast.number, slow.number), (0, 2));
        let told = nodes(&Topology { nodes: topology.nodes[..2].to_vec() }).unwrap_err();
        assert!(told.to_string().starts_with("this machine has no node with memory alone"));
        let options = options::<Options>("tier", &[("share", "40")]).unwrap();
        let told = options.check_room(fast, slow).unwrap_err().to_string();
        assert_eq!(told, "--share 40: at most 80 % of node 0, which has 512 MiB");
    }
}
