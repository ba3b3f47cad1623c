//! The spans of time into which cuts divide a recording.

/// A phase of an iteration of a workload.
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
    /// The phase in which the span lies; `None` outside iterations.
    pub phase: Option<PhaseId>,
    /// The begin of the span in nanoseconds of the guest's clock: the time of a cut, or 0.
    pub begun: u64,
    /// The end of the span in nanoseconds of the guest's clock: the time of the next cut. After the
    /// last cut it is equal to `begun`.
    pub ended: u64,
}
