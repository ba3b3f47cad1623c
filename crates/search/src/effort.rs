//! What a search found kept when it began, and what it has cost since.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lab::{Lab, RunError, are_alike};
use model::{Experiment, Kernel, count};
use store::Archive;

/// The effort of a search.
pub struct Effort {
    /// Names of the kernels in the cache when it began.
    cached: BTreeSet<String>,
    /// The first experiment of each commit that the store had boots of by then, by the short name.
    kept: BTreeMap<String, i64>,
    /// Boots since then, without those of the proof.
    pub booted: usize,
    /// How long builds and boots took.
    pub spent: Duration,
    /// The number of kernels that were built.
    built: u32,
}

impl Effort {
    /// A search of an experiment's workload that begins now.
    ///
    /// # Errors
    /// When the cache or the store cannot be read.
    pub fn of(lab: &Lab, experiment: &Experiment) -> Result<Self, RunError> {
        Ok(Self {
            cached: lab.cache.list(&|_| ())?.into_iter().map(|kernel| kernel.name).collect(),
            kept: kept(&*lab.store, experiment)?,
            booted: 0,
            spent: Duration::ZERO,
            built: 0,
        })
    }

    /// The first experiment that booted a commit, by its short name, if the store had it.
    pub fn kept(&self, commit: &str) -> Option<i64> {
        self.kept.get(commit).copied()
    }

    /// Whether a kernel was in the cache.
    pub fn is_cached(&self, kernel: &Kernel) -> bool {
        self.cached.contains(&kernel.name)
    }

    /// Adds the time of builds and boots of a kernel.
    pub fn add(&mut self, spent: Duration, is_built: bool) {
        self.spent += spent;
        self.built += u32::from(is_built);
    }

    /// Minutes until one of `left` commits is left, if each kernel halves them and takes as long as those that were
    /// built so far; `None` if none was, since a kernel from the cache tells nothing about a build.
    pub fn time_left(&self, left: usize) -> Option<u64> {
        let halvings = left.max(2).next_power_of_two().ilog2();
        let each = self.spent.checked_div(self.built)?;
        Some((each * halvings).as_secs().div_ceil(60))
    }

    /// How much of a search's kernels was there: `3 of 7 kernels in the cache; 9 new boots`.
    pub fn text<'a>(&self, kernels: impl Iterator<Item = &'a Kernel>) -> String {
        let is_cached: Vec<bool> = kernels.map(|kernel| self.is_cached(kernel)).collect();
        let cached = is_cached.iter().filter(|is_cached| **is_cached).count();
        let (all, boots) = (count(is_cached.len(), "kernel"), count(self.booted, "new boot"));
        format!("{cached} of {all} in the cache; {boots}")
    }
}

/// The commits that the store has boots of, by the short name, each with its first experiment. The boots are of this
/// workload on this machine. Their configuration can be another, but often their kernels or boots serve again.
fn kept(store: &dyn Archive, experiment: &Experiment) -> Result<BTreeMap<String, i64>, RunError> {
    let prefix = format!("{}-", experiment.name);
    let mut kept = BTreeMap::new();
    for row in store.experiments()? {
        if let Some(commit) = row.name.strip_prefix(&prefix)
            && row.outcomes.contains_key("complete")
            && are_alike(&store.experiment(row.id)?, experiment)
        {
            kept.entry(commit.to_owned()).or_insert(row.id.0);
        }
    }
    Ok(kept)
}
