//! The agent as PID 1 of a virtual machine: it mounts what the kernel does not, maps the recorder, sets the machine
//! up for the job, records the end of the job and powers off.
//!
//! The OOM killer never kills PID 1 (`mm/oom_kill.c`, `oom_unkillable_task`). So the agent sets no score for itself,
//! which its children would inherit.

mod device;
pub mod disks;
pub mod modules;
pub mod mounts;
mod root;
mod shell;
pub mod swap;
pub mod userspace;

use std::panic;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use flight::Event;
use flight::job::{JOB_PATH, Job};
use guest::clock::boot_time;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::system::{RebootCommand, reboot};

use crate::hello::{hello, tainted};
use crate::job::{self, JobError, carry_out, of_room};
use crate::recorder::{RecordError, Recorder};
use crate::say;
use crate::watch::Watch;

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

/// Runs the job, then powers the machine off. Only PID 1 may call it.
pub fn main() -> ! {
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
    // A sampler that waits for its own pages would be late when memory is short. On a machine that is too small to
    // lock the pages, the agent works without. Later mappings are locked page by page, as they are touched. Otherwise
    // the kernel would fill each of them at once, such as the stack that starts a program, and count that as the
    // program's.
    let _ = mlockall(MlockAllFlags::CURRENT);
    let _ = mlockall(MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    let watch = Arc::new(Watch::new(recorder, Path::new("/")));
    watch.event(&Event::Hello(hello()))?;
    let done = job::read(Path::new(JOB_PATH)).and_then(|job| {
        let done = set_up(&job).and_then(|()| carry_out(&job, &watch));
        let shell = || if job.shell { shell::run().map_err(JobError::Shell) } else { Ok(()) };
        let done = done.and_then(|()| shell()).map_err(|error| of_room(error, &job));
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

/// Gives the machine modules, disks, swap and user space.
fn set_up(job: &Job) -> Result<(), JobError> {
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
    Ok(())
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

fn power_off() -> ! {
    rustix::fs::sync();
    let error = reboot(RebootCommand::PowerOff);
    say(&format!("the machine cannot be powered off: {error:?}"));
    loop {
        thread::park();
    }
}
