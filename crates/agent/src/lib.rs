//! The agent: PID 1 of the guest. It maps the recorder, sets the kernel up for the job, runs the workloads,
//! records the end of the job and powers off. Any failure is recorded and ends the job.
//!
//! The OOM killer never kills PID 1 (`mm/oom_kill.c`, `oom_unkillable_task`), so the agent sets no score,
//! which children would inherit.

mod chance;
mod hello;
mod leftovers;
mod marker;
pub mod recorder;
mod run;
pub mod sampler;
mod settings;
mod states;
mod symbols;
mod vm;
mod watch;

use std::fs;
use std::io::{self, Write};
use std::panic;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flight::Event;
use flight::job::{JOB_PATH, Job, Workload};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::system::{RebootCommand, reboot};

use crate::recorder::{RecordError, Recorder};
use crate::run::RunError;
use crate::watch::Watch;
use guest::clock::boot_time;
use guest::reason;
use leftovers::Survey;
use vm::{device, disks, modules, mounts, root, shell, swap, userspace};

/// Why the agent cannot start. This is printed on the console only.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Root(#[from] root::RootError),
    #[error(transparent)]
    Mount(#[from] mounts::MountError),
    #[error(transparent)]
    Device(#[from] device::DeviceError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Why the job ended early.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("the job {JOB_PATH} cannot be read ({})", reason(.0))]
    Read(io::Error),
    #[error("the job {JOB_PATH} is from another version of faultline: {0}")]
    Parse(serde_json::Error),
    #[error(transparent)]
    Module(#[from] modules::ModuleError),
    #[error(transparent)]
    Disk(#[from] disks::DiskError),
    #[error(transparent)]
    Userspace(#[from] userspace::UserspaceError),
    #[error(transparent)]
    Swap(#[from] swap::SwapError),
    #[error(transparent)]
    Setting(#[from] settings::SettingError),
    #[error("workload {name}, iteration {iteration}: {error}")]
    Workload { name: String, iteration: u32, error: RunError },
    #[error("the sampler cannot be started ({})", reason(.0))]
    Sampler(io::Error),
    #[error("there is no shell ({})", reason(.0))]
    Shell(io::Error),
    #[error("{error}; {remedy}")]
    Full { error: Box<JobError>, remedy: String },
    #[error(transparent)]
    Symbols(#[from] symbols::SymbolsError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Runs the job, then powers the machine off. Does nothing unless it is PID 1, so it never powers off a
/// machine on which it is started by hand.
pub fn main() -> ! {
    if process::id() != 1 {
        say("this program must run as PID 1 of a guest");
        process::exit(1);
    }
    if let Err(error) = live() {
        say(&error.to_string());
    }
    power_off()
}

fn live() -> Result<(), StartError> {
    root::enter()?;
    mounts::mount_all()?;
    let recorder = Arc::new(Recorder::new(device::map(Path::new("/sys"))?));
    record_panics(recorder.clone());
    // A sampler that waits for its own pages would be late when memory is short. If the machine is too small
    // to lock them, the agent works without.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let watch = Arc::new(Watch::new(recorder, Path::new("/")));
    watch.event(&Event::Hello(hello::hello()))?;
    let done = read_job().and_then(|job| {
        let done = carry_out(&job, &watch).map_err(|error| of_room(error, &job));
        let left = userspace::leave(&job).map_err(JobError::from);
        // An active swap file prevents its disk from being unmounted.
        let ended = job.swap.as_ref().map_or(Ok(()), swap::end).map_err(JobError::from);
        let unmounted = disks::unmount_all(&job.disks).map_err(JobError::from);
        done.and(left).and(ended).and(unmounted)
    });
    if let Err(error) = done {
        let failure = error.to_string();
        say(&failure);
        watch.event(&Event::Failed(failure))?;
    }
    watch.drain_log();
    Ok(watch.event(&Event::Bye { tainted: tainted() })?)
}

/// Adds a hint if a full disk caused the error.
fn of_room(error: JobError, job: &Job) -> JobError {
    let swap = job.swap.as_ref();
    let disks = job.disks.iter().filter(|disk| !swap.is_some_and(|swap| swap::is_on(swap, disk)));
    match disks::remedy(disks, &error.to_string()) {
        Some(remedy) => JobError::Full { error: Box::new(error), remedy },
        None => error,
    }
}

fn read_job() -> Result<Job, JobError> {
    let text = fs::read(JOB_PATH).map_err(JobError::Read)?;
    serde_json::from_slice(&text).map_err(JobError::Parse)
}

fn carry_out(job: &Job, watch: &Arc<Watch>) -> Result<(), JobError> {
    for module in &job.modules {
        modules::load(module)?;
    }
    for disk in &job.disks {
        disks::set_up(disk)?;
    }
    if let Some(swap) = &job.swap {
        swap::set_up(swap)?;
    }
    if let Some(image) = &job.userspace {
        disks::set_up(image)?;
        userspace::enter(job)?;
    }
    for setting in &job.settings {
        settings::apply(Path::new("/"), setting)?;
    }
    if !job.sampler.events.is_empty() {
        mounts::mount_tracefs();
    }
    watch.open(&job.sampler, job.frequency)?;
    watch.drain_log();
    show_warnings();
    let interval = Duration::from_millis(job.sampler.interval.0);
    watch.tick_every(interval).map_err(JobError::Sampler)?;
    run_workloads(job, watch)?;
    watch.report_lost()?;
    if job.symbols {
        symbols::record(watch, None)?;
    } else if let Some(functions) = watch.stop_profile() {
        symbols::record(watch, Some(&functions))?;
    }
    if job.shell {
        shell::run().map_err(JobError::Shell)?;
    }
    Ok(())
}

/// Runs the workloads. Each starts from the state that the first one found, as far as what the others left can be
/// undone. The rest is noted.
fn run_workloads(job: &Job, watch: &Watch) -> Result<(), JobError> {
    let run = (0..).zip(&job.workloads).filter(|(_, workload)| workload.iterations > 0);
    let mut run = run.peekable();
    let mut survey = None;
    while let Some((index, workload)) = run.next() {
        let states = states::states(Path::new("/"));
        watch.event(&Event::Found { workload: index, states })?;
        let is_last = run.peek().is_none();
        if !is_last {
            survey.get_or_insert_with(Survey::take);
        }
        run_workload(job, watch, index, workload)?;
        if let Some(survey) = survey.as_mut().filter(|_| !is_last) {
            for left in survey.restore(&workload.name) {
                watch.event(&Event::Left(left))?;
            }
        }
    }
    Ok(())
}

/// Runs all iterations of a workload. A failure ends that workload, but not the job.
fn run_workload(job: &Job, watch: &Watch, index: u16, workload: &Workload) -> Result<(), JobError> {
    for iteration in 0..workload.iterations {
        let _kept = job.seed.map(|seed| chance::draw(seed, index, iteration));
        let exact = job.seed.is_some();
        let Err(error) = run::run(watch, index, workload, iteration, exact) else { continue };
        let is_of_workload = error.is_of_workload();
        let error = JobError::Workload { name: workload.name.clone(), iteration, error };
        if !is_of_workload {
            return Err(error);
        }
        let failure = of_room(error, job).to_string();
        say(&failure);
        return Ok(watch.cut(&Event::WorkloadFailed(failure))?);
    }
    Ok(())
}

/// Makes the kernel print its warnings on the console, in case the recorder cannot record them
/// (`Documentation/admin-guide/sysctl/kernel.rst`, printk). `quiet` kept them off during the boot.
fn show_warnings() {
    let _ = fs::write("/proc/sys/kernel/printk", "7");
}

fn tainted() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/tainted").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Records a panic of the agent itself as the job's failure.
fn record_panics(recorder: Arc<Recorder>) {
    panic::set_hook(Box::new(move |info| {
        let failure = format!("the agent panicked, which is a bug in faultline: {info}");
        say(&failure);
        recorder.last_words(boot_time(), &failure, tainted());
        power_off()
    }));
}

/// Prints on the console.
fn say(text: &str) {
    // Without a console the message is lost.
    let _ = writeln!(io::stderr(), "faultline: {text}");
}

fn power_off() -> ! {
    rustix::fs::sync();
    let error = reboot(RebootCommand::PowerOff);
    say(&format!("the machine cannot be powered off: {error:?}"));
    loop {
        thread::park();
    }
}
