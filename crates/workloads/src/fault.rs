//! Deliberate faults that test the recorder: the log must have everything that was reported before the fault. They
//! are not for comparing kernels.
//!
//! | command | what it does |
//! | --- | --- |
//! | `fault panic` | crashes the kernel by sysrq (`Documentation/admin-guide/sysrq.rst`, `c`) |
//! | `fault hang` | starves everything else of every CPU by spinning real-time threads |
//! | `fault exit STATUS` | ends with a status |
//! | `fault garbage` | reports bytes that are not a line of the protocol |
//! | `fault sleep SECONDS` | reports a sample every 100 ms |
//!
//! Each command first begins the phase `before`, reports ten samples, and begins the phase `fault`. When that
//! phase is acknowledged, the samples are recorded.

use std::fs;
use std::hint;
use std::path::PathBuf;
use std::process;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use guest::sys::run_first;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::reporter::Reporter;
use super::{Given, Result, While, Workload, refused, value_of, within};

/// The metric of all samples. Its value is the number of samples before.
const METRIC: &str = "Count";

/// The command line: the kind of fault.
pub enum Options {
    Panic,
    Hang,
    Exit(u8),
    Garbage,
    Sleep(u32),
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let (fault, argument) = (given.word()?, given.word()?);
        Ok(match fault.as_str() {
            "panic" => Self::Panic,
            "hang" => Self::Hang,
            "exit" => Self::Exit(value_of("argument", &argument)?),
            "garbage" => Self::Garbage,
            "sleep" => Self::Sleep(within("argument", &argument, 0, 1_000_000)?),
            _ => return Err(refused("fault", fault, "panic, hang, exit, garbage or sleep")),
        })
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("before")?;
        for count in 0..10 {
            reporter.sample(METRIC, f64::from(count))?;
        }
        reporter.phase("fault")?;
        match *self {
            Self::Panic => fs::write("/proc/sysrq-trigger", "c").while_("/proc/sysrq-trigger"),
            Self::Hang => hang(),
            Self::Exit(status) => process::exit(status.into()),
            Self::Garbage => reporter.line("\u{1}\u{fffd} what?".into()),
            Self::Sleep(seconds) => sleep(seconds, reporter),
        }
    }
}

fn sleep(seconds: u32, reporter: &mut Reporter) -> Result<()> {
    for count in 0..seconds * 10 {
        thread::sleep(Duration::from_millis(100));
        reporter.sample(METRIC, f64::from(count + 10))?;
    }
    Ok(())
}

/// Never returns: a thread on every CPU spins with the highest real-time priority.
fn hang() -> Result<()> {
    let throttle = "/proc/sys/kernel/sched_rt_runtime_us";
    fs::write(throttle, "-1").while_(throttle)?;
    for server in servers() {
        // If this file exists, its server would give other threads a twentieth of the time (since 6.12).
        fs::write(&server, "0").while_(server.display().to_string())?;
    }
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let ready = Barrier::new(cpus);
    thread::scope(|scope| {
        for cpu in 0..cpus {
            let ready = &ready;
            scope.spawn(move || spin(cpu, ready));
        }
    });
    Ok(())
}

fn spin(cpu: usize, ready: &Barrier) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Without pinning, the threads would also spread over the CPUs, but later.
    let _ = sched_setaffinity(None::<Pid>, &set);
    if let Err(error) = run_first() {
        eprintln!("fault hang: no real-time priority: {error}");
        process::exit(1);
    }
    // The first spinning thread would otherwise keep the others from starting.
    ready.wait();
    loop {
        hint::spin_loop();
    }
}

/// The `runtime` files of the servers that guard ordinary threads against real-time ones.
fn servers() -> Vec<PathBuf> {
    let Ok(cpus) = fs::read_dir("/sys/kernel/debug/sched/fair_server") else {
        return Vec::new();
    };
    cpus.flatten().map(|cpu| cpu.path().join("runtime")).collect()
}
