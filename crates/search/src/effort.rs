//! Measures the effort of a search: what the cache and the store had when it began, and what it has
//! cost since.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lab::{Lab, RunError, are_alike};
use model::{Experiment, Kernel, count};
use store::Archive;

/// The effort of a search so far.
pub struct Effort {
    /// The names of the kernels that were in the cache when the search began.
    cached: BTreeSet<String>,
    /// The commits that the store had complete boots of when the search began, by short hash, each
    /// with its first experiment.
    kept: BTreeMap<String, i64>,
    /// The number of boots since then, without those of the proof and of the reference.
    pub booted: usize,
    /// The time of builds and boots since then.
    pub spent: Duration,
    /// The number of kernels that were built.
    built: u32,
}

impl Effort {
    /// Starts to measure a search of an experiment's workload.
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

    /// Returns the number of the first experiment that booted a commit, given by its short hash;
    /// `None` if the store had none when the search began.
    pub fn kept(&self, commit: &str) -> Option<i64> {
        self.kept.get(commit).copied()
    }

    /// Returns whether a kernel was in the cache when the search began.
    pub fn is_cached(&self, kernel: &Kernel) -> bool {
        self.cached.contains(&kernel.name)
    }

    /// Adds the time that the build and boots of a kernel took. `is_built` is false if the kernel
    /// came from the cache.
    pub fn add(&mut self, spent: Duration, is_built: bool) {
        self.spent += spent;
        self.built += u32::from(is_built);
    }

    /// Estimates the minutes until one of `left` commits remains. It assumes that each kernel
    /// halves the number of commits and takes as long as the kernels that were built so far. `None`
    /// if none was built, because a kernel from the cache says nothing about builds.
    pub fn time_left(&self, left: usize) -> Option<u64> {
        let halvings = left.max(2).next_power_of_two().ilog2();
        let each = self.spent.checked_div(self.built)?;
        Some((each * halvings).as_secs().div_ceil(60))
    }

    /// Describes the effort, such as `3 of 7 kernels in the cache; 9 new boots`.
    pub fn text<'a>(&self, kernels: impl Iterator<Item = &'a Kernel>) -> String {
        let is_cached: Vec<bool> = kernels.map(|kernel| self.is_cached(kernel)).collect();
        let cached = is_cached.iter().filter(|is_cached| **is_cached).count();
        let (all, boots) = (count(is_cached.len(), "kernel"), count(self.booted, "new boot"));
        format!("{cached} of {all} in the cache; {boots}")
    }
}

/// Finds the commits that the store has complete boots of, by short hash, each with its first
/// experiment. Experiments count if they ran the same workload on a machine with the same topology.
/// The configuration of their kernels can differ, but often their kernels or boots serve again.
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
