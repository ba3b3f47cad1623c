//! Carries out a job.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flight::Event;
use flight::job::{Job, Workload};
use guest::{reason, settings};

use crate::leftovers::Survey;
use crate::recorder::RecordError;
use crate::run::RunError;
use crate::vm::{disks, modules, mounts, swap, userspace};
use crate::watch::Watch;
use crate::{chance, run, say, states, symbols};

/// Why the job ended early.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the job {} cannot be read ({})", .0.display(), reason(.1))]
    Read(PathBuf, io::Error),
    #[error("the job is from another version of faultline: {0}")]
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

/// Reads a job.
pub fn read(path: &Path) -> Result<Job, JobError> {
    let text = fs::read(path).map_err(|error| JobError::Read(path.to_owned(), error))?;
    serde_json::from_slice(&text).map_err(JobError::Parse)
}

/// Carries out the job on a machine that is set up for it: starts the sampler, runs the workloads, records
/// symbols.
pub fn carry_out(job: &Job, watch: &Arc<Watch>) -> Result<(), JobError> {
    for setting in &job.settings {
        settings::apply(Path::new("/"), setting)?;
    }
    if !job.sampler.events.is_empty() && !job.on_host {
        mounts::mount_tracefs();
    }
    watch.open(&job.sampler, job.frequency)?;
    watch.drain_log();
    if !job.on_host {
        show_warnings();
    }
    let interval = Duration::from_millis(job.sampler.interval.0);
    watch.tick_every(interval).map_err(JobError::Sampler)?;
    run_workloads(job, watch)?;
    watch.report_lost()?;
    if job.symbols {
        symbols::record(watch, None)?;
    } else if let Some(functions) = watch.stop_profile() {
        symbols::record(watch, Some(&functions))?;
    }
    Ok(())
}

/// Runs the workloads. In a guest, each starts from the state that the first one found, as far as the changes of the
/// others can be undone. Notes say what is left. On a host, other programs change that state too, so nothing is undone.
fn run_workloads(job: &Job, watch: &Watch) -> Result<(), JobError> {
    let run = (0..).zip(&job.workloads).filter(|(_, workload)| workload.iterations > 0);
    let mut run = run.peekable();
    let mut survey = None;
    while let Some((index, workload)) = run.next() {
        let states = states::states(Path::new("/"));
        watch.event(&Event::Found { workload: index, states })?;
        let is_last = run.peek().is_none() || job.on_host;
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

/// Adds a hint if the error is one of a full disk.
pub fn of_room(error: JobError, job: &Job) -> JobError {
    let swap = job.swap.as_ref();
    let disks = job.disks.iter().filter(|disk| !swap.is_some_and(|swap| swap::is_on(swap, disk)));
    match disks::remedy(disks, &error.to_string()) {
        Some(remedy) => JobError::Full { error: Box::new(error), remedy },
        None => error,
    }
}

/// Makes the kernel print its warnings on the console, in case the recorder cannot record them
/// (`Documentation/admin-guide/sysctl/kernel.rst`, printk). During the boot `quiet` suppressed them.
fn show_warnings() {
    let _ = fs::write("/proc/sys/kernel/printk", "7");
}
