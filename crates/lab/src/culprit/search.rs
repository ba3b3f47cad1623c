//! What a search for a commit is given.

use std::path::PathBuf;
use std::time::Duration;

use kernels::History;
use model::{Build, Experiment, Share, Variant};

/// How sure an answer of measured mode is to be.
pub const CONFIDENCE: Share = Share(0.95);
/// Boots of each end in measured mode.
pub const BOOTS: u32 = 5;

/// Whether an answer can be wanted with this confidence.
pub fn is_confidence(Share(confidence): Share) -> bool {
    (0.5..1.0).contains(&confidence)
}

/// About how many kernels a search of one step tries: the two ends, one for each halving, and one with the culprit
/// reverted.
pub fn kernels(history: &History) -> u32 {
    3 + (history.commits.len() - 1).ilog2()
}

/// A search for the commit at which a workload's figure changed.
#[derive(Clone, Debug)]
pub struct Search {
    /// The git repository.
    pub tree: PathBuf,
    /// The good end: any name of a commit.
    pub good: String,
    /// The bad end.
    pub bad: String,
    /// An older commit, which tells a regression from a return to what was.
    pub reference: Option<String>,
    /// Machine, workload, mode and number of boots of the ends. Its variants are not used.
    pub experiment: Experiment,
    /// Command line, settings and modules of every kernel.
    pub variant: Variant,
    /// Configuration and compiler of every kernel. Its patches are applied where they apply.
    pub build: Build,
    /// The figure.
    pub asked: Asked,
    /// Search every step beyond luck.
    pub all: bool,
    /// Do not search inside merges.
    pub first_parent: bool,
    /// Measured mode: how sure the answer is to be.
    pub confidence: f64,
    /// No further commit is tried after this time.
    pub budget: Option<Duration>,
    /// Whether the culprits are measured afresh and reverted.
    pub prove: bool,
}

/// The figure that the user asked for. Without any, the search chooses it from the ends.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// A row of the tables of metrics.
    pub metric: Option<String>,
    /// A counter.
    pub counter: Option<String>,
    /// Exact mode: a phase.
    pub phase: Option<String>,
    /// Exact mode: a function.
    pub function: Option<String>,
}
