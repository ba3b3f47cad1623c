//! The programs of autonuma-benchmark: processes whose threads zero memory that is all on one node at first.
//! Automatic NUMA balancing then decides where memory and threads go, and so how long the work takes.
//!
//! Each program is a phase. Its work is an amount, not a time. It reports its times, and about once a second
//! the share of memory and of threads on each node, which shows how they converge.
//!
//! Differences from the original (Andrea Arcangeli's numa01.c and numa02.c of 2012): sizes follow the
//! machine; the first node is a parameter, not random, because a random one would be noise between boots;
//! threads store words instead of calling `memset`, so that all C libraries and CPUs do the same work.

mod convergence;
mod process;
mod program;

use std::num::NonZeroU64;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use std::{env, io};

use guest::sys::children_time;

use self::convergence::{Convergence, Placement};
use self::process::Plan;
use self::program::{Program, Work};
use super::reporter::Reporter;
use super::topology::Topology;
use super::{Given, Main, Result, While, Workload, WorkloadError, list, refused};

/// The name under which this workload starts its own processes.
const PROCESS: &str = "autonuma-process";

pub struct Options {
    programs: Vec<Program>,
    work: Work,
    first_node: usize,
    /// The programs that first touch their memory on the first node.
    bound: Vec<Program>,
    interval: NonZeroU64,
    /// The CPUs and the memory of the machine's definition. What kernels report differs, since they reserve different
    /// amounts of memory; the work must not.
    cpus: usize,
    memory: u64,
}

impl Workload for Options {
    const PARTS: &[(&str, Main)] = &[(PROCESS, process::main)];

    fn parse(given: &mut Given) -> Result<Self> {
        let options = Self {
            programs: list("programs", &given.text("programs")?)?,
            work: Work {
                passes: given.value("passes")?,
                scale: given.value("scale")?,
                share: given.value("share")?,
            },
            first_node: given.value("first-node")?,
            bound: list("bound", &given.text("bound")?)?,
            interval: given.value("interval")?,
            cpus: given.value("cpus")?,
            memory: given.value("memory")?,
        };
        options.work.check()?;
        Ok(options)
    }

    /// Runs the programs one after the other.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let topology = Topology::of_this_machine().while_("/sys/devices/system/node")?;
        for &program in &self.programs {
            run(program, self, &topology, reporter)?;
        }
        Ok(())
    }
}

fn run(
    program: Program,
    options: &Options,
    topology: &Topology,
    reporter: &mut Reporter,
) -> Result<()> {
    // On one node the programs would run, but their figures would mean nothing.
    if topology.nodes.len() < 2 {
        let nodes = topology.nodes.len();
        return Err(WorkloadError::Nodes { nodes, program: program.name() });
    }
    let memory = options.memory / topology.nodes.len() as u64;
    let mut plan = program.plan(&options.work, options.cpus, memory);
    plan.interval = options.interval.get();
    if options.bound.contains(&program) {
        check_room(program, &plan, options.first_node, topology)?;
        plan.first_node = Some(options.first_node);
    }
    reporter.phase(program.name())?;
    reporter.note(&format!("{}: {} x {plan}", program.name(), program.processes()))?;
    let (before, start) = (children_time(), Instant::now());
    attend(program, &plan, topology, reporter)?;
    let (elapsed, spent) = (start.elapsed().as_secs_f64(), children_time().since(before));
    reporter.sample("Elapsed", elapsed)?;
    reporter.sample("User", spent.user)?;
    reporter.sample("System", spent.system)?;
    reporter.sample("CPU", 100.0 * spent.total() / elapsed)
}

/// Checks that the memory fits on the first node. Otherwise the OOM killer would end the program.
fn check_room(program: Program, plan: &Plan, node: usize, topology: &Topology) -> Result<()> {
    let Some(has) = topology.memory(node) else {
        return Err(refused("first-node", node, "there is no such node"));
    };
    let wanted = (program.processes() * plan.bytes) as u64;
    if wanted > has / 10 * 9 {
        let (wanted, has, name) = (wanted >> 20, has >> 20, program.name());
        return Err(WorkloadError::Arguments(format!(
            "{name} needs {wanted} MiB on node {node}, which has {has}: use a smaller --share"
        )));
    }
    Ok(())
}

/// Starts the processes, reports the placement of their memory and threads, and waits for their end.
fn attend(
    program: Program,
    plan: &Plan,
    topology: &Topology,
    reporter: &mut Reporter,
) -> Result<()> {
    let (sender, placements) = mpsc::channel();
    let mut processes = Vec::new();
    for number in 0..program.processes() {
        let mut process = start(plan).while_("starting a process")?;
        if let Some(output) = process.stdout.take() {
            let sender = sender.clone();
            thread::spawn(move || forward(number, output, &sender));
        }
        processes.push(process);
    }
    drop(sender);
    let mut convergence = Convergence::of(program.processes(), topology);
    for (process, placement) in placements {
        for (series, share) in convergence.update(process, placement) {
            reporter.series(&series, share)?;
        }
    }
    for (number, mut process) in processes.into_iter().enumerate() {
        let status = process.wait().while_("waiting for a process")?;
        if !status.success() {
            let name = program.name();
            return Err(WorkloadError::Child(format!("process {number} of {name}: {status}")));
        }
    }
    Ok(())
}

fn start(plan: &Plan) -> io::Result<Child> {
    let plan = serde_json::to_string(plan)?;
    Command::new(env::current_exe()?).args([PROCESS, &plan]).stdout(Stdio::piped()).spawn()
}

/// Forwards a process's reports until it ends.
fn forward(process: usize, output: ChildStdout, sender: &mpsc::Sender<(usize, Option<Placement>)>) {
    let placements = serde_json::Deserializer::from_reader(output).into_iter();
    for placement in placements.map_while(Result::ok) {
        if sender.send((process, Some(placement))).is_err() {
            return;
        }
    }
    // The receiver is closed only if the workload has failed.
    let _ = sender.send((process, None));
}

#[cfg(test)]
mod tests {
    use super::super::topology::Node;
    use super::*;
    use crate::tests::options;

    const GIB: u64 = 1 << 30;

    fn topology() -> Topology {
        let node = |number, memory| Node { number, cpus: vec![], memory };
        Topology { nodes: vec![node(0, GIB - (60 << 20)), node(1, GIB)] }
    }

    #[test]
    fn the_manifest_gives_options_that_fit_its_machine() {
        let options: Options = options("autonuma", &[]).unwrap();
        assert_eq!(options.programs, Program::ALL);
        assert_eq!((options.cpus, options.memory), (4, 2 * GIB));
        let plan = Program::Numa01.plan(&options.work, 4, GIB);
        assert!(check_room(Program::Numa01, &plan, 0, &topology()).is_ok());
    }

    #[test]
    fn invalid_options_are_named() {
        let told = |option: &str, value: &str| {
            options::<Options>("autonuma", &[(option, value)]).err().unwrap().to_string()
        };
        assert!(told("programs", "NUMA3").starts_with("--programs NUMA3: not one of NUMA01,"));
        assert!(told("share", "50").contains("both processes have to fit"));
        let plan = Program::Numa01.plan(&Work { share: 45.0, ..Work::default() }, 4, 2 * GIB);
        let room = |node| check_room(Program::Numa01, &plan, node, &topology()).unwrap_err();
        assert!(room(0).to_string().contains("use a smaller --share"));
        assert_eq!(room(2).to_string(), "--first-node 2: there is no such node");
    }

    #[test]
    fn one_node_is_an_error() {
        let topology = Topology { nodes: topology().nodes[..1].into() };
        let options = options("autonuma", &[]).unwrap();
        let mut reporter = Reporter::from_environment().unwrap();
        let error = run(Program::Numa02, &options, &topology, &mut reporter).unwrap_err();
        assert_eq!(error.to_string(), "this machine has 1 NUMA node, but NUMA02 needs 2 or more");
    }
}
