//! One boot, and its times.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use boot::Guest;
use flight::job::{self, Job};
use flight::{Event, profile};
use guest::sys::children_time;
use kernelfiles::kallsyms::Symbols;
use kernels::initramfs::Archive;
use machine::{Emulator, Engine, Exact, How, PROFILE_FILE, Plugin, Vm};
use model::{Bytes, Kernel, Limits, Privilege, Topology};
use tempfile::TempDir;

/// The kernel, the emulator and the files of all boots.
pub struct Bench {
    /// The kernel.
    pub kernel: Kernel,
    /// Its symbols; empty if its image does not list them.
    pub symbols: Symbols,
    emulator: Emulator,
    pub topology: Topology,
    /// The directory of the initramfs and the machine's files.
    directory: TempDir,
}

/// The times and counts of one boot.
#[derive(Clone, Copy)]
pub struct BootTimes {
    /// Times from QEMU's start to the start of the workload.
    pub to_workload: Times,
    /// Times from the start of the workload to QEMU's end.
    pub from_workload: Times,
    /// The instructions that the plugin counted; `None` without the plugin.
    pub instructions: Option<Instructions>,
}

/// Seconds of wall time and of QEMU's CPU time.
#[derive(Clone, Copy)]
pub struct Times {
    /// Wall time in seconds.
    pub wall: f64,
    /// CPU time of all of QEMU's threads.
    pub cpu: f64,
}

/// Numbers of guest instructions.
#[derive(Clone, Copy)]
pub struct Instructions {
    /// Instructions before the workload.
    pub to_workload: u64,
    /// Instructions from the start of the workload on.
    pub from_workload: u64,
}

impl Bench {
    /// Puts the job into an initramfs.
    pub fn new(
        kernel: Kernel,
        emulator: Emulator,
        job: &Job,
        topology: Topology,
    ) -> Result<Self, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("initramfs.cpio"), initramfs(&Guest::find()?, job)?)?;
        let symbols = Symbols::parse(&kernels::symbols(&kernel)?.unwrap_or_default());
        Ok(Self { kernel, symbols, emulator, topology, directory })
    }

    /// A library beside this program, where `make` puts them.
    pub fn library(&self, name: &str) -> PathBuf {
        let program = std::env::current_exe().unwrap_or_default();
        program.parent().unwrap_or(Path::new("")).join(name)
    }

    /// Boots in exact mode.
    pub fn exact(&self, plugin: Option<Plugin>) -> Result<BootTimes, Box<dyn Error>> {
        let clock = self.library("libstillclock.so");
        self.boot(Engine::Exact(&Exact { seed: 1, clock, plugin }))
    }

    /// Boots under emulation with a thread for each CPU.
    pub fn tcg(&self) -> Result<BootTimes, Box<dyn Error>> {
        self.boot(Engine::Tcg)
    }

    /// The functions in which the last boot with the plugin executed most kernel instructions before the workload, with
    /// their own instructions, the largest number first.
    pub fn functions_of_boot(&self) -> Result<Vec<(String, u64)>, Box<dyn Error>> {
        let profile = profile::read(&fs::read(self.directory.path().join(PROFILE_FILE))?)?;
        let mut by_name = BTreeMap::<&str, u64>::new();
        let cpus = profile.slices.first().into_iter().flat_map(|boot| &boot.cpus);
        for executed in cpus.flat_map(|cpu| &cpu.kernel) {
            let name = self.symbols.find(executed.address).map_or("unknown", |it| &it.name);
            *by_name.entry(name).or_default() += executed.count;
        }
        let mut all: Vec<(String, u64)> =
            by_name.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        all.sort_by_key(|(_, count)| Reverse(*count));
        Ok(all)
    }

    fn boot(&self, engine: Engine<'_>) -> Result<BootTimes, Box<dyn Error>> {
        let directory = self.directory.path();
        let vm = Vm {
            emulator: &self.emulator,
            engine,
            topology: &self.topology,
            disks: &[],
            userspace: None,
            image: self.kernel.vmlinux.as_ref().unwrap_or(&self.kernel.image),
            initramfs: &directory.join("initramfs.cpio"),
            cmdline: "",
            directory,
            recorder: Bytes::mib(64),
            limits: &Limits::default(),
        };
        let (started, before) = (Instant::now(), children_time());
        let (mut begun, mut failure) = (None, None);
        let ending = machine::run(&vm, &mut |event| match event {
            Event::Begin { .. } => {
                begun = cpu_time_of_child()
                    .map(|cpu| Times { wall: started.elapsed().as_secs_f64(), cpu });
            }
            Event::Failed(why) => failure = Some(why.clone()),
            _ => {}
        })?;
        if let Some(why) = failure {
            return Err(why.into());
        }
        if ending.how != How::PoweredOff {
            return Err(ending.how.to_string().into());
        }
        let to_workload = begun.ok_or("the workload's begin went by unseen")?;
        let from_workload = Times {
            wall: ending.wall.as_secs_f64() - to_workload.wall,
            cpu: children_time().since(before).total() - to_workload.cpu,
        };
        Ok(BootTimes { to_workload, from_workload, instructions: instructions(directory)? })
    }
}

/// The instructions that the plugin counted; `None` without the plugin.
fn instructions(directory: &Path) -> Result<Option<Instructions>, Box<dyn Error>> {
    let path = directory.join(PROFILE_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let profile = profile::read(&fs::read(path)?)?;
    let counts = profile.slices.iter().map(|slice| {
        Privilege::ALL.map(|privilege| slice.instructions(privilege)).iter().sum::<u64>()
    });
    let counts: Vec<u64> = counts.collect();
    let (to, from) = counts.split_first().ok_or("the profile is empty")?;
    Ok(Some(Instructions { to_workload: *to, from_workload: from.iter().sum() }))
}

/// CPU seconds of the one process that this thread has started and that still runs: QEMU
/// (`proc_pid_stat(5)`, `utime` and `stime`).
fn cpu_time_of_child() -> Option<f64> {
    let children = fs::read_to_string("/proc/thread-self/children").ok()?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", children.trim())).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<_, _>>().ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn initramfs(guest: &Guest, job: &Job) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut archive = Archive::new();
    for directory in ["/dev", "/proc", "/sys", "/tmp"] {
        archive.directory(directory);
    }
    archive.console();
    archive.program(job::AGENT_PATH, &fs::read(&guest.agent)?);
    archive.program(job::WORKLOADS_PATH, &fs::read(&guest.workloads)?);
    archive.file(job::JOB_PATH, &serde_json::to_vec_pretty(job)?);
    Ok(archive.finish())
}
