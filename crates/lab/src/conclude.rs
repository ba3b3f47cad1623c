//! From what a boot left behind in its directory to a [`Boot`] that can be kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kernelfiles::klog;
use machine::{Ending, How};
use model::{Boot, BootFacts, HostLoad, Outcome, Problem, ProblemKind};
use serde::{Deserialize, Serialize};

use crate::collect::{Recording, collect};

/// What is known of a boot before it begins. Kept beside its recording, so that a boot whose host
/// died can be told what it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The variant's name.
    pub variant: String,
    /// Which boot of this variant.
    pub replicate: u32,
    /// Which block of the schedule.
    pub block: u32,
    /// When it began, seconds since 1970.
    pub started: u64,
    /// The names of the job's workloads, and how often each is to run.
    pub workloads: Vec<(String, u32)>,
    /// Facts of the kernel; those of the guest are added from its recording.
    pub facts: BootFacts,
}

/// More of a console than this is not kept: its start and its end are.
const MAX_CONSOLE: usize = 4 << 20;

impl Head {
    /// Where a boot's directory keeps its head.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join("boot.json")
    }

    /// Writes the head into a boot's directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        fs::write(Self::path(directory), serde_json::to_vec(self)?)
    }

    /// Reads the head from a boot's directory.
    ///
    /// # Errors
    /// When it is not there or damaged.
    pub fn read(directory: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(Self::path(directory))?)?)
    }
}

/// Makes a boot of its recording. `ending` is none when nobody saw the machine end.
///
/// # Errors
/// When the recording or the console cannot be read.
pub fn conclude(
    head: Head,
    directory: &Path,
    ending: Option<&Ending>,
    host: HostLoad,
) -> io::Result<Boot> {
    let names: Vec<String> = head.workloads.iter().map(|(name, _)| name.clone()).collect();
    let recording = collect(&machine::read_log(directory)?, &names);
    let console = read_console(&directory.join(machine::CONSOLE_FILE))?;
    let outcome = outcome(&head, &recording, &console, ending);
    let problems = problems(&recording, &console);
    Ok(Boot {
        variant: head.variant,
        replicate: head.replicate,
        block: head.block,
        started: head.started,
        outcome,
        facts: facts(head.facts, &recording),
        host,
        problems,
        notes: notes(recording.notes, ending),
        samples: recording.samples,
        usage: recording.usage,
        chunks: recording.chunks,
        console: format!("{}\n=== console ===\n{console}", recording.log),
    })
}

fn facts(kernel: BootFacts, recording: &Recording) -> BootFacts {
    let Some(hello) = recording.hello.clone() else {
        return kernel;
    };
    BootFacts {
        release: hello.release,
        version: hello.version,
        banner: hello.banner,
        cmdline: hello.cmdline,
        preemption: hello.preemption,
        cpus: hello.cpus,
        nodes: hello.nodes,
        memory: hello.memory,
        page_size: hello.page_size,
        ..kernel
    }
}

/// How the boot ended. What the guest said of itself comes first, then what its kernel said on
/// the console, then what was seen from outside.
fn outcome(head: &Head, recording: &Recording, console: &str, ending: Option<&Ending>) -> Outcome {
    if let Some(reason) = &recording.failed {
        return Outcome::Failed(reason.clone());
    }
    if recording.bye.is_some() {
        return match missing(head, recording) {
            Some(what) => Outcome::Failed(what),
            None => Outcome::Complete,
        };
    }
    let panic = klog::panic_line(console).or_else(|| klog::panic_line(&recording.log));
    if let Some(line) = panic {
        return Outcome::Panicked(line.to_owned());
    }
    match ending.map(|ending| &ending.how) {
        None => Outcome::Interrupted,
        Some(How::TimedOut(limit)) => Outcome::TimedOut(limit.to_string()),
        Some(How::PoweredOff | How::Reset) => {
            Outcome::Died("the guest ended before its job was done".into())
        }
        Some(How::Died(how)) => Outcome::Died(how.clone()),
    }
}

/// What the workloads remarked, and what was odd about the machine.
fn notes(mut notes: Vec<String>, ending: Option<&Ending>) -> Vec<String> {
    notes.extend(ending.into_iter().flat_map(|ending| ending.remarks.iter().cloned()));
    notes
}

/// What of the job the recording does not show, though the agent said it was done.
fn missing(head: &Head, recording: &Recording) -> Option<String> {
    head.workloads.iter().find_map(|(name, iterations)| {
        let ended = recording.usage.iter().filter(|usage| usage.workload == *name).count();
        (ended < *iterations as usize)
            .then(|| format!("the recording holds {ended} of {iterations} iterations of {name}"))
    })
}

/// The kernel's complaints: those in its log, and those that only the console shows because the
/// agent could not record any more.
fn problems(recording: &Recording, console: &str) -> Vec<Problem> {
    let mut problems = klog::problems(&recording.log);
    for problem in klog::problems(console) {
        if !problems.iter().any(|known| known.text == problem.text) {
            problems.push(problem);
        }
    }
    if let Some(text) = recording.bye.and_then(klog::taint) {
        problems.push(Problem { kind: ProblemKind::Taint, text });
    }
    if recording.series_dropped {
        let text = "the recorder was full: series end early, samples are whole".to_owned();
        problems.push(Problem { kind: ProblemKind::SeriesDropped, text });
    }
    problems
}

/// The console as text; of a very long one the start and the end.
fn read_console(path: &Path) -> io::Result<String> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    if bytes.len() <= MAX_CONSOLE {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let (start, end) = (&bytes[..MAX_CONSOLE / 2], &bytes[bytes.len() - MAX_CONSOLE / 2..]);
    Ok(format!("{}\n...\n{}", String::from_utf8_lossy(start), String::from_utf8_lossy(end)))
}
