//! What a search for a commit is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::{Build, Experiment, Reading, Share, Variant};

use crate::request::Request;

/// How sure an answer of measured mode is to be.
pub const CONFIDENCE: Share = Share(0.95);
/// Boots of each end in measured mode.
pub const BOOTS: u32 = 5;

/// Whether an answer can be wanted with this confidence.
pub fn is_confidence(Share(confidence): Share) -> bool {
    (0.5..1.0).contains(&confidence)
}

/// What the experiments of a search for a workload's figure are called, before the name of the commit.
pub fn name(workload: &str) -> String {
    format!("culprit-{workload}")
}

/// A search for the commit at which a workload's figure changed.
#[derive(Clone, Debug)]
pub struct Search {
    /// The git repository that has both ends.
    pub tree: PathBuf,
    /// The good end: any name of a commit.
    pub good: String,
    /// The bad end: any name of a commit.
    pub bad: String,
    /// An older commit, which shows whether the bad end only returns to its level.
    pub reference: Option<String>,
    /// Machine, workload, mode and number of boots of the ends. Its variants are not used.
    pub experiment: Experiment,
    /// How the figures of its workload are read.
    pub reading: Reading,
    /// Command line, settings and modules of every kernel.
    pub variant: Variant,
    /// Configuration and compiler of every kernel. Its patches are applied where they apply.
    pub build: Build,
    /// The configuration of the bad end. That of the good end and of the commits between is that of `build`.
    pub bad_config: Option<String>,
    /// The figure whose change is searched.
    pub asked: Asked,
    /// Search every step beyond luck.
    pub all: bool,
    /// Do not search inside merges.
    pub first_parent: bool,
    /// Measured mode: how sure the answer is to be.
    pub confidence: f64,
    /// No further commit is tried when new kernels and boots have taken this long.
    pub budget: Option<Duration>,
    /// Whether the culprits are measured again and reverted.
    pub prove: bool,
}

impl Search {
    /// Whether the ends have different configurations.
    pub fn has_options(&self) -> bool {
        self.build.config != self.bad_config
    }

    /// An experiment like the search's that boots these variants, whose kernels were built. `what` follows the name.
    pub fn request(&self, what: &str, variants: Vec<Variant>, boots: u32) -> Request {
        let name = format!("{}-{what}", self.experiment.name);
        let experiment = Experiment { name, variants, boots, ..self.experiment.clone() };
        Request { experiment, reading: self.reading.clone(), builds: BTreeMap::new() }
    }

    /// How a commit is built.
    pub fn build(&self) -> Build {
        let mut build = self.build.clone();
        if self.has_options() {
            // It puts the configuration into the image, so that no two options would give the same.
            build.set.insert("CONFIG_IKCONFIG".into(), "n".into());
        }
        build
    }

    /// The ends as they were named, with the configurations if these differ.
    pub fn ends(&self) -> [String; 2] {
        let [good, bad] = [&self.good, &self.bad];
        let [own, other] = self.configs();
        match self.has_options() {
            true => [format!("{good} with {own}"), format!("{bad} with {other}")],
            false => [good.clone(), bad.clone()],
        }
    }

    /// What the configurations of the ends are called.
    pub fn configs(&self) -> [&str; 2] {
        [&self.build.config, &self.bad_config]
            .map(|config| config.as_deref().unwrap_or("the small configuration"))
    }
}

/// The figure that the user asked for. Without any, the search chooses it from the ends.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// A row of the tables of metrics.
    pub metric: Option<String>,
    /// A row of the tables of counters.
    pub counter: Option<String>,
    /// Exact mode: a phase.
    pub phase: Option<String>,
    /// Exact mode: a function.
    pub function: Option<String>,
    /// Exact mode: the name of the cost; `None` for instructions.
    pub cost: Option<String>,
}
