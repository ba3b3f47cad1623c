//! The stages of a benchmark's run. Each is a phase: those before the timer of the specification, the timed one, and
//! the verification.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use guest::sys::{CpuTime, own_time};

use super::super::Result;
use super::super::reporter::Reporter;
use super::team::Member;

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Arrays are touched first and filled.
    Fill,
    /// The timed work is done once, or a part of it.
    WarmUp,
    /// The work that the specification times.
    Steady,
    /// The result is verified.
    Verify,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fill => "fill",
            Self::WarmUp => "warm-up",
            Self::Steady => "steady",
            Self::Verify => "verify",
        })
    }
}

/// The times of the timed stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTimes {
    /// Elapsed time in seconds.
    pub elapsed: f64,
    /// CPU time of all threads together.
    pub cpu: CpuTime,
}

/// Goes from stage to stage.
pub struct Stages<'a>(Mutex<Progress<'a>>);

struct Progress<'a> {
    /// The benchmark and its class, such as `ep.S`.
    name: String,
    reporter: &'a mut Reporter,
    /// The first failure to report.
    result: Result<()>,
    started: Option<(Instant, CpuTime)>,
    taken: StageTimes,
}

impl<'a> Stages<'a> {
    /// The stages of the benchmark `name`.
    pub fn new(name: &str, reporter: &'a mut Reporter) -> Self {
        let (result, taken) = (Ok(()), StageTimes::default());
        Self(Mutex::new(Progress { name: name.to_owned(), reporter, result, started: None, taken }))
    }

    /// Begins a stage once all members have arrived. Between stages no thread works.
    pub fn begin(&self, member: &Member<'_>, stage: Stage) {
        member.alone(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).begin(stage));
    }

    /// The times of the timed stage. Fails when the phases could not be reported.
    pub fn end(self) -> Result<StageTimes> {
        let progress = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.result?;
        progress.reporter.phase("")?;
        Ok(progress.taken)
    }
}

impl Progress<'_> {
    fn begin(&mut self, stage: Stage) {
        if let Some((start, before)) = self.started.take() {
            let elapsed = start.elapsed().as_secs_f64();
            self.taken = StageTimes { elapsed, cpu: own_time().since(before) };
        }
        if self.result.is_ok() {
            self.result = self.reporter.phase(&format!("{}-{stage}", self.name));
        }
        if stage == Stage::Steady {
            self.started = Some((Instant::now(), own_time()));
        }
    }
}
