//! Measures the cost of exactness on this host: one kernel on 4 CPUs and 4 nodes, booted to a workload and through it
//!
//! - in exact mode, bare, with the plugin, with the plugin called at each instruction, with the plugin counting by call
//!   path or accesses, with turns of 1,000 instructions, and with these and transfers of lines, which are not named, or misses in
//!   a model of caches;
//! - under multi-threaded TCG, which measured mode uses where there is no KVM.
//!
//! The contestants take turns, so that a host that gets slower does so for all. Prints medians of wall time and
//! QEMU's CPU time, ratios, and the functions in which the boot executes most instructions. `bench/README.md` has figures.
//!
//! `bench-exact [KERNEL]`: the default is debian:6.1.

mod boot;

use std::collections::BTreeMap;
use std::error::Error;

use flight::Job;
use flight::job::Workload;
use kernels::Cache;
use machine::{Emulator, Plugin, Transfers};
use model::{Accel, Architecture, Bytes, Limits, Machine, MemoryModel, Millis, Sampler, Topology};

use crate::boot::{Bench, BootTimes, Instructions, Times};

/// Boots of each contestant.
const ROUNDS: usize = 3;
/// CPUs and nodes of the machine.
const CPUS: u32 = 4;
const NODES: u32 = 4;
const MEMORY: Bytes = Bytes::mib(1024);
/// The usual number of instructions of a CPU's turn.
const TURN: u32 = 1000;
/// The functions of the boot that are printed.
const FUNCTIONS: usize = 10;
/// The largest number of seconds from the start to the workload.
const TARGET: f64 = 20.0;

/// The ways to boot that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contestant {
    Exact,
    Plugin,
    Each,
    Stacks,
    Accesses,
    Turns,
    Transfers,
    Misses,
    Tcg,
}

const CONTESTANTS: [Contestant; 9] = [
    Contestant::Exact,
    Contestant::Plugin,
    Contestant::Each,
    Contestant::Stacks,
    Contestant::Accesses,
    Contestant::Turns,
    Contestant::Transfers,
    Contestant::Misses,
    Contestant::Tcg,
];

impl Contestant {
    fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Plugin => "exact, plugin",
            Self::Each => "exact, each",
            Self::Stacks => "exact, stacks",
            Self::Accesses => "exact, accesses",
            Self::Turns => "exact, turns",
            Self::Transfers => "exact, transfers",
            Self::Misses => "exact, misses",
            Self::Tcg => "TCG, multi-threaded",
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let spec = std::env::args().nth(1).unwrap_or_else(|| "debian:6.1".to_owned());
    let topology = Topology::even(CPUS, MEMORY, NODES)?;
    let bench = Bench::new(
        Cache::open()?.obtain(&spec, &|line| eprintln!("{line}"))?,
        Emulator::find(Architecture::X86_64)?,
        &job(topology.clone())?,
        topology,
    )?;
    println!(
        "{}, {CPUS} CPUs, {NODES} nodes, {MEMORY}: median of {ROUNDS} boots",
        bench.kernel.release
    );
    let mut boots: [Vec<BootTimes>; 9] = Default::default();
    for _ in 0..ROUNDS {
        for (contestant, boots) in CONTESTANTS.into_iter().zip(&mut boots) {
            boots.push(boot(&bench, contestant)?);
        }
    }
    bench.exact(Some(plugin(&bench)))?;
    let functions = bench.functions_of_boot()?;
    let instructions = boots[1][0].instructions.ok_or("the plugin's profile is not there")?;
    let taken = boots.each_ref().map(|boots| median(boots));
    print_times(&taken, instructions);
    print_ratios(&taken);
    println!("M i/s: millions of guest instructions in a second of CPU time");
    println!("instructions to the workload: {:.0} million", instructions.to_workload as f64 / 1e6);
    let wall = taken[0].to_workload.wall;
    println!("exact, to the workload: {wall:.1} s, to be within {TARGET} s");
    println!("functions with most instructions to the workload:");
    for (name, count) in functions.iter().take(FUNCTIONS) {
        let share = 100.0 * *count as f64 / instructions.to_workload as f64;
        println!("{share:6.1} %  {name}");
    }
    Ok(())
}

fn boot(bench: &Bench, contestant: Contestant) -> Result<BootTimes, Box<dyn Error>> {
    let plugin = plugin(bench);
    let plugin = match contestant {
        Contestant::Exact => return bench.exact(None),
        Contestant::Tcg => return bench.tcg(),
        Contestant::Plugin => plugin,
        Contestant::Each => Plugin { each: true, ..plugin },
        Contestant::Stacks => Plugin { stacks: true, ..plugin },
        Contestant::Accesses => Plugin { accesses: true, ..plugin },
        Contestant::Turns => Plugin { turn: Some(TURN), ..plugin },
        Contestant::Transfers => {
            let homes = bench.topology.homes();
            let transfers = Some(Transfers { homes, ..Transfers::default() });
            Plugin { turn: Some(TURN), transfers, ..plugin }
        }
        Contestant::Misses => {
            Plugin { turn: Some(TURN), memory_model: MemoryModel::named("skylake-2s"), ..plugin }
        }
    };
    bench.exact(Some(plugin))
}

/// The plugin as it counts instructions alone.
fn plugin(bench: &Bench) -> Plugin {
    Plugin {
        path: bench.library("libtcg.so"),
        accesses: false,
        stacks: false,
        each: false,
        turn: None,
        memory_model: None,
        transfers: None,
        functions: bench.symbols.beginnings().collect(),
        switch: None,
    }
}

/// A workload that does a fixed amount of work.
fn job(topology: Topology) -> Result<Job, Box<dyn Error>> {
    let mut manifest = plan::workloads::named("autonuma")?;
    let values = [("programs", "NUMA02"), ("scale", "0.5")];
    let values: BTreeMap<_, _> =
        values.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    plan::workloads::set_parameters(&mut manifest, values)?;
    let limits = Limits::default();
    let machine = Machine { accel: Accel::Tcg, limits, ..Machine::new(topology) };
    let workload = Workload {
        name: manifest.name.clone(),
        command: plan::workloads::command(&manifest, &machine, None)?,
        iterations: 1,
        timeout: Millis(3_600_000),
        metrics: true,
        userspace: false,
        plain: manifest.plain,
        directory: manifest.directory.clone(),
    };
    Ok(Job { workloads: vec![workload], sampler: Sampler::default(), ..Job::default() })
}

fn print_times(taken: &[BootTimes; 9], instructions: Instructions) {
    println!("{:<20} {:>26} {:>27}", "", "to the workload", "from there to power-off");
    let columns = format!("{:>8} {:>8} {:>8}", "wall s", "CPU s", "M i/s");
    println!("{:<20} {columns} {columns}", "");
    for (contestant, taken) in CONTESTANTS.iter().zip(taken) {
        let exact = *contestant != Contestant::Tcg;
        let cells = |times: Times, count: u64| {
            let rate = count as f64 / 1e6 / times.cpu;
            let rate = if exact { format!("{rate:.0}") } else { "-".to_owned() };
            format!("{:8.1} {:8.1} {rate:>8}", times.wall, times.cpu)
        };
        let to = cells(taken.to_workload, instructions.to_workload);
        let from = cells(taken.from_workload, instructions.from_workload);
        println!("{:<20} {to} {from}", contestant.name());
    }
}

fn print_ratios(taken: &[BootTimes; 9]) {
    let [exact, plugin, each, stacks, accesses, turns, transfers, misses, tcg] = taken;
    let pairs = [
        ("exact / TCG", exact, tcg),
        ("plugin / exact", plugin, exact),
        ("each / exact", each, exact),
        ("stacks / plugin", stacks, plugin),
        ("accesses / exact", accesses, exact),
        ("turns / plugin", turns, plugin),
        ("transfers / turns", transfers, turns),
        ("misses / turns", misses, turns),
    ];
    for (name, of, to) in pairs {
        let cells = |of: Times, to: Times| {
            format!("{:8.2} {:8.2} {:8}", of.wall / to.wall, of.cpu / to.cpu, "")
        };
        let to_workload = cells(of.to_workload, to.to_workload);
        let from_workload = cells(of.from_workload, to.from_workload);
        println!("{}", format!("{name:<20} {to_workload} {from_workload}").trim_end());
    }
}

/// The median of each figure.
fn median(boots: &[BootTimes]) -> BootTimes {
    let of = |figure: fn(&BootTimes) -> f64| {
        let mut figures: Vec<f64> = boots.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    BootTimes {
        to_workload: Times { wall: of(|it| it.to_workload.wall), cpu: of(|it| it.to_workload.cpu) },
        from_workload: Times {
            wall: of(|it| it.from_workload.wall),
            cpu: of(|it| it.from_workload.cpu),
        },
        instructions: None,
    }
}
