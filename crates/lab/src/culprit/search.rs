//! What a search for a commit is given.

use std::path::PathBuf;
use std::time::Duration;

use model::{Build, Experiment, Variant};

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
