//! One process of a program: its threads, and the placement of its memory and threads over time.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use guest::arch::huge;
use guest::sys::{bind_memory, nodes_of};
use guest::words::Words;
use rustix::thread::sched_getcpu;
use serde::{Deserialize, Serialize};

use super::super::topology::Topology;
use super::super::{Result, While, WorkloadError};
use super::convergence::{Placement, count};

/// Work is counted in steps of this many bytes. After each step, a thread reports its CPU.
pub const STEP: usize = 2 << 20;
/// Number of pages whose nodes are looked up.
const SAMPLE: usize = 512;
/// The CPU of a thread that has not reported one.
const NOWHERE: usize = usize::MAX;
/// The operation that errors name.
const LOOKING: &str = "looking where memory and threads are";

/// The plan of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The number of threads.
    pub threads: usize,
    /// The size of the memory in bytes: a multiple of [`STEP`] for each thread.
    pub bytes: usize,
    /// Whether every thread zeroes all memory. Otherwise each zeroes its own slice.
    pub whole: bool,
    /// The number of steps that each thread zeroes.
    pub steps: u64,
    /// The node on which every thread first touches all memory; `None` if the work itself touches it first.
    pub first_node: Option<usize>,
    /// The time between two observations of memory and threads, in milliseconds.
    pub interval: u64,
}

/// Carries out the plan on the command line, and prints a [`Placement`] as JSON at each interval
/// and at the end.
pub fn main(mut arguments: lexopt::Parser) -> Result<()> {
    let plan = arguments.value()?.to_string_lossy().into_owned();
    let plan: Plan = serde_json::from_str(&plan)
        .map_err(|error| WorkloadError::Arguments(format!("{plan} is not a plan: {error}")))?;
    let topology = Topology::of_this_machine().while_("/sys/devices/system/node")?;
    let memory = Words::anonymous(plan.bytes + huge()).while_("memory")?;
    let memory = aligned(&memory, plan.bytes);
    carry_out(&plan, memory, |cpus| {
        let placement = placement(memory, cpus, &topology)?;
        serde_json::to_writer(io::stdout(), &placement)?;
        writeln!(io::stdout())
    })
}

/// The part of `words` that begins at a huge page. The kernel merges adjacent mappings, so a stack next to it could
/// share a huge page with the memory, on any node.
fn aligned(words: &[AtomicU64], bytes: usize) -> &[AtomicU64] {
    let start = words.as_ptr().align_offset(huge());
    &words[start..start + bytes / size_of::<AtomicU64>()]
}

/// Runs the threads. Calls `look` with their CPUs at each interval and at the end.
///
/// The main thread, which is otherwise idle, calls it. Once in an interval it wakes up and asks the kernel for the
/// nodes of a few hundred pages.
fn carry_out(
    plan: &Plan,
    memory: &[AtomicU64],
    look: impl Fn(&[AtomicUsize]) -> io::Result<()>,
) -> Result<()> {
    let cpus: Vec<AtomicUsize> = (0..plan.threads).map(|_| AtomicUsize::new(NOWHERE)).collect();
    let slices = memory.chunks(memory.len() / plan.threads);
    // Each thread holds a sender until it ends, but sends nothing.
    let (alive, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for (slice, cpu) in slices.zip(&cpus) {
            let alive = alive.clone();
            workers.push(scope.spawn(move || {
                let _alive = alive;
                work(plan, memory, slice, cpu)
            }));
        }
        drop(alive);
        let interval = Duration::from_millis(plan.interval);
        while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            look(&cpus).while_(LOOKING)?;
        }
        look(&cpus).while_(LOOKING)?;
        for worker in workers {
            let worked = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            worked.while_("touching memory on its first node")?;
        }
        Ok(())
    })
}

/// The work of one thread.
fn work(
    plan: &Plan,
    memory: &[AtomicU64],
    slice: &[AtomicU64],
    cpu: &AtomicUsize,
) -> io::Result<()> {
    if plan.first_node.is_some() {
        bind_memory(plan.first_node)?;
        zero(memory);
        bind_memory(None)?;
    }
    let region = if plan.whole { memory } else { slice };
    let steps = region.chunks(STEP / size_of::<AtomicU64>()).cycle();
    for (step, _) in steps.zip(0..plan.steps) {
        zero(step);
        cpu.store(sched_getcpu(), Relaxed);
    }
    Ok(())
}

/// Stores to each word. Words are atomic because threads zero the same ones. On x86 these are plain stores,
/// and unlike those of `memset` always of 8 bytes.
fn zero(words: &[AtomicU64]) {
    for word in words {
        word.store(0, Relaxed);
    }
}

fn placement(
    memory: &[AtomicU64],
    cpus: &[AtomicUsize],
    topology: &Topology,
) -> io::Result<Placement> {
    let mut placement = Placement::of(topology);
    let distance = (memory.len() / SAMPLE).max(1);
    for node in nodes_of(memory.iter().step_by(distance))? {
        count(&mut placement.pages, usize::try_from(node).ok());
    }
    for cpu in cpus {
        count(&mut placement.threads, topology.node_of(cpu.load(Relaxed)));
    }
    Ok(placement)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn plan(whole: bool) -> Plan {
        Plan { threads: 2, bytes: 4 * STEP, whole, steps: 5, first_node: None, interval: 1 }
    }

    /// Runs a plan over memory full of ones, and returns the share of zeros afterwards.
    fn zeroed(plan: &Plan) -> f64 {
        let memory = Words::anonymous(plan.bytes).unwrap();
        memory.iter().for_each(|word| word.store(1, Relaxed));
        carry_out(plan, &memory, |_| Ok(())).unwrap();
        let zeros = memory.iter().filter(|word| word.load(Relaxed) == 0).count();
        zeros as f64 / memory.len() as f64
    }

    #[test]
    fn threads_zero_all_the_memory() {
        assert_eq!(zeroed(&plan(true)), 1.0);
        assert_eq!(zeroed(&plan(false)), 1.0);
    }

    #[test]
    fn threads_do_the_planned_steps() {
        assert_eq!(zeroed(&Plan { steps: 1, ..plan(true) }), 0.25);
        assert_eq!(zeroed(&Plan { steps: 1, ..plan(false) }), 0.5);
    }

    #[test]
    fn the_last_look_sees_every_thread() {
        let memory = Words::anonymous(4 * STEP).unwrap();
        let seen = Mutex::new(Vec::new());
        let look = |cpus: &[AtomicUsize]| {
            *seen.lock().unwrap() = cpus.iter().map(|cpu| cpu.load(Relaxed)).collect();
            Ok(())
        };
        carry_out(&plan(false), &memory, look).unwrap();
        assert!(seen.lock().unwrap().iter().all(|cpu| *cpu != NOWHERE));
    }

    #[test]
    fn touched_memory_is_on_a_node() {
        let Ok(topology) = Topology::of_this_machine() else {
            return;
        };
        let memory = Words::anonymous(4 * STEP).unwrap();
        zero(&memory);
        let Ok(placement) = placement(&memory, &[AtomicUsize::new(NOWHERE)], &topology) else {
            return;
        };
        assert_eq!(placement.pages.iter().sum::<u32>(), SAMPLE as u32);
        assert_eq!(placement.threads.iter().sum::<u32>(), 0);
    }
}
