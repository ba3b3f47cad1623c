//! Context switches and page faults of the processes of one memory cgroup. The processes are on the CPUs of one node,
//! or of several. In the latter case data that the cgroup shares moves between nodes.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `switch-nodes-1` | pairs of processes, each pair on a CPU of node 0, pass a byte to and fro |
//! | `switch-nodes-2` | as many pairs, on the CPUs of two nodes in turn |
//! | `fault-nodes-1` | processes on CPUs of node 0 map memory, write each base page and unmap it |
//! | `fault-nodes-2` | as many processes, on the CPUs of two nodes in turn |

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

use guest::arch::page;
use guest::words::Words;

use super::cgroup::Memcg;
use super::reporter::Reporter;
use super::tasks::{MOST, Tasks, pin};
use super::topology::Topology;
use super::{Given, Result, While, Workload, list_within, refused, share_of};

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    /// The numbers of nodes on which the processes are.
    spread: Vec<usize>,
    /// The number of processes or pairs. By default it is the number of CPUs of a node.
    tasks: Option<usize>,
    /// The number of bytes that all pairs together pass to and fro in a sample.
    operations: u64,
    /// The memory of all processes together, in percent of the machine's.
    share: f64,
    rounds: u32,
    memory: u64,
}

/// Takes the samples of a test, whose processes or pairs are on these CPUs. Samples have this label.
type Test = fn(&Options, &[usize], &str, &mut Reporter) -> Result<()>;
const TESTS: [(&str, Test); 2] = [("switch", switch), ("fault", fault)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let tasks = given.optional("tasks")?;
        let tasks = tasks.map(|tasks| super::within("tasks", &tasks, 1, MOST)).transpose()?;
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            spread: list_within("spread", &given.text("spread")?, 1, 1024)?,
            tasks,
            operations: given.within("operations", 1, 1_000_000_000)?,
            share: given.percent("share", 70.0, "the memory has to fit")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        match found.pages(found.tasks.unwrap_or(1)) {
            0 => Err(refused("share", found.share, "not a page for each process")),
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let topology = Topology::of_this_machine().while_("/sys/devices/system/node")?;
        let memcg = Memcg::new("memcg")?;
        memcg.join()?;
        for (name, test) in &self.tests {
            for &nodes in &self.spread {
                let cpus = cpus(&topology, nodes, self.tasks)?;
                let label = format!("nodes-{nodes}");
                reporter.phase(&format!("{name}-{label}"))?;
                test(self, &cpus, &label, reporter)?;
            }
        }
        memcg.leave()
    }
}

impl Options {
    /// The number of pages of each of `processes` processes.
    fn pages(&self, processes: usize) -> usize {
        share_of(self.memory, self.share) as usize / processes / page()
    }
}

/// The CPU of each process or pair, from the first `nodes` nodes with CPUs in turn. If `tasks` is not given, there
/// are as many as the first node has CPUs.
fn cpus(topology: &Topology, nodes: usize, tasks: Option<usize>) -> Result<Vec<usize>> {
    let of_nodes: Vec<&[u32]> =
        topology.nodes.iter().map(|node| &node.cpus[..]).filter(|cpus| !cpus.is_empty()).collect();
    let Some(of_nodes) = of_nodes.get(..nodes) else {
        let why = format!("this machine has {} NUMA nodes with CPUs", of_nodes.len());
        return Err(refused("spread", nodes, why));
    };
    let cpu = |task: usize| {
        let of_node = of_nodes[task % nodes];
        of_node[task / nodes % of_node.len()] as usize
    };
    Ok((0..tasks.unwrap_or(of_nodes[0].len())).map(cpu).collect())
}

fn switch(options: &Options, cpus: &[usize], label: &str, reporter: &mut Reporter) -> Result<()> {
    let each = options.operations.div_ceil(cpus.len() as u64);
    let pair = |_| Ok((io::pipe()?, io::pipe()?));
    let pairs: Vec<_> = cpus.iter().map(pair).collect::<io::Result<_>>().while_("a pipe")?;
    let work = |number: usize| {
        let (there, back) = &pairs[number / 2];
        pin(cpus[number / 2]).while_("choosing a CPU")?;
        let passed = match number % 2 {
            0 => pass(each, &there.1, &back.0),
            _ => answer(each, &there.0, &back.1),
        };
        passed.while_("a pipe")
    };
    // Each byte makes its sender wait and its receiver run.
    let switches = (2 * each * cpus.len() as u64) as f64;
    let rates = Tasks::of_processes(2 * cpus.len()).rates(options.rounds, switches, work)?;
    reporter.rates("switch", label, rates)
}

/// Passes a byte and takes it back, `times` times.
fn pass(times: u64, mut there: &PipeWriter, mut back: &PipeReader) -> io::Result<()> {
    (0..times).try_for_each(|_| {
        there.write_all(&[1])?;
        back.read_exact(&mut [0])
    })
}

/// Takes a byte and passes it back, `times` times.
fn answer(times: u64, mut there: &PipeReader, mut back: &PipeWriter) -> io::Result<()> {
    (0..times).try_for_each(|_| {
        there.read_exact(&mut [0])?;
        back.write_all(&[1])
    })
}

fn fault(options: &Options, cpus: &[usize], label: &str, reporter: &mut Reporter) -> Result<()> {
    let pages = options.pages(cpus.len());
    if pages == 0 {
        return Err(refused("share", options.share, "not a page for each process"));
    }
    let work = |number: usize| {
        pin(cpus[number]).while_("choosing a CPU")?;
        touch(pages).while_("touching memory")
    };
    let all = (pages * cpus.len()) as f64;
    let rates = Tasks::of_processes(cpus.len()).rates(options.rounds, all, work)?;
    reporter.rates("fault", label, rates)
}

/// Maps `pages` base pages, writes a word of each and unmaps them.
fn touch(pages: usize) -> io::Result<()> {
    let words = Words::anonymous(pages * page())?;
    words.without_huge_pages()?;
    words.pages().for_each(|word| word.store(1, Relaxed));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::topology::Node;
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("memcg", &[]).unwrap();
        let tests = names(&options.tests);
        assert_eq!((tests, &options.spread[..]), (vec!["switch", "fault"], &[1, 2][..]));
        assert!(options.tasks.is_none() && options.pages(2) > 0);
    }

    #[test]
    fn processes_take_the_cpus_of_nodes_in_turn() {
        let node = |number, cpus: &[u32]| Node { number, cpus: cpus.into(), memory: 0 };
        let nodes = vec![node(0, &[0, 1]), node(1, &[]), node(2, &[2, 3])];
        let topology = Topology { nodes };
        let cpus = |nodes, tasks| cpus(&topology, nodes, tasks);
        assert_eq!(cpus(1, None).unwrap(), [0, 1]);
        assert_eq!(cpus(2, None).unwrap(), [0, 2]);
        assert_eq!(cpus(2, Some(5)).unwrap(), [0, 2, 1, 3, 0]);
        let told = cpus(3, None).unwrap_err().to_string();
        assert_eq!(told, "--spread 3: this machine has 2 NUMA nodes with CPUs");
    }

    #[test]
    fn bytes_go_to_and_fro() {
        let (there, back) = (io::pipe().unwrap(), io::pipe().unwrap());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| answer(3, &there.0, &back.1));
            pass(3, &there.1, &back.0).unwrap();
            other.join().unwrap().unwrap();
        });
        touch(3).unwrap();
    }
}
