//! The spans of time into which cuts divide a recording.

/// A phase of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseId {
    /// The name of the workload.
    pub workload: String,
    /// The iteration, from 0.
    pub iteration: u32,
    /// The phase's name; empty before the first phase.
    pub phase: String,
}

/// The time between two cuts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The phase; `None` outside iterations.
    pub phase: Option<PhaseId>,
    /// Its begin in guest nanoseconds: the time of a cut, or 0.
    pub begun: u64,
    /// Its end: the time of the next cut. The last span ends where it begins.
    pub ended: u64,
}
