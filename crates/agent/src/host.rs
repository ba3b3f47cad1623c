//! The agent on a host: job and recording are files in a directory. It changes nothing of the host: settings are
//! faultline's own work, and mounts, disks, swap and modules do not exist in such a job.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;

use flight::Event;
use flight::job::{JOB_FILE, RECORDER_FILE, WORK_DIRECTORY};
use guest::reason;
use guest::words::Words;
use rustix::mm::{MlockAllFlags, mlockall};

use crate::hello::{hello, tainted};
use crate::job::{self, carry_out};
use crate::recorder::{RecordError, Recorder};
use crate::watch::Watch;
use crate::{orphans, say};

/// Why a session does not start, or has no end in its recording.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("{path}: {}", reason(.error))]
    File { path: String, error: io::Error },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Carries out the job in `directory`, and ends. If standard input ends first, faultline has: the workload is killed.
pub fn main(directory: &Path) -> ! {
    orphans::take();
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        orphans::end()
    });
    match session(directory) {
        Ok(()) => process::exit(0),
        Err(error) => {
            say(&error.to_string());
            process::exit(1)
        }
    }
}

fn session(directory: &Path) -> Result<(), SessionError> {
    let failed =
        |path: &Path, error| SessionError::File { path: path.display().to_string(), error };
    let path = directory.join(RECORDER_FILE);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let words = file.and_then(|file| Words::shared(&file)).map_err(|error| failed(&path, error))?;
    let before = tainted();
    let recorder = Arc::new(Recorder::new(words));
    // As in a guest. An ordinary user may lock little, so it can fail.
    let _ = mlockall(MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    let watch = Arc::new(Watch::new(recorder, Path::new("/")));
    watch.skip_log();
    watch.event(&Event::Hello(hello()))?;
    let work = directory.join(WORK_DIRECTORY);
    let entered = fs::create_dir_all(&work).and_then(|()| std::env::set_current_dir(&work));
    entered.map_err(|error| failed(&work, error))?;
    let job = job::read(&directory.join(JOB_FILE));
    if let Err(error) = job.and_then(|job| carry_out(&job, &watch)) {
        let failure = error.to_string();
        say(&failure);
        watch.event(&Event::Failed(failure))?;
    }
    watch.drain_log();
    // What tainted the kernel earlier is no problem of this session.
    Ok(watch.event(&Event::Bye { tainted: tainted() & !before })?)
}
