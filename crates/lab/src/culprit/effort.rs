//! What a search found kept when it began, and what it has cost since.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Experiment, Kernel, count};
use store::Store;

use crate::run::{Lab, RunError, are_alike};

/// The effort of a search.
pub struct Effort {
    /// Names of the kernels in the cache when it began.
    cached: BTreeSet<String>,
    /// Short names of the commits of which the store had boots by then.
    kept: BTreeSet<String>,
    /// Boots since then, without those of the proof.
    pub booted: usize,
    /// How long kernels took that were not in the cache or were booted.
    pub spent: Duration,
    /// Their number.
    kernels: u32,
}

impl Effort {
    /// A search of an experiment's workload that begins now.
    ///
    /// # Errors
    /// When the cache or the store cannot be read.
    pub fn of(lab: &Lab, experiment: &Experiment) -> Result<Self, RunError> {
        Ok(Self {
            cached: lab.cache.list(&|_| ())?.into_iter().map(|kernel| kernel.name).collect(),
            kept: kept(&lab.store, experiment)?,
            booted: 0,
            spent: Duration::ZERO,
            kernels: 0,
        })
    }

    /// Whether boots of a commit, by its short name, were in the store.
    pub fn is_kept(&self, commit: &str) -> bool {
        self.kept.contains(commit)
    }

    /// Whether a kernel was in the cache.
    pub fn is_cached(&self, kernel: &Kernel) -> bool {
        self.cached.contains(&kernel.name)
    }

    /// Adds the time of a kernel that was built or booted.
    pub fn add(&mut self, spent: Duration) {
        self.spent += spent;
        self.kernels += 1;
    }

    /// Minutes until one of `left` commits is left, at the pace of the kernels so far, if each halves them.
    pub fn time_left(&self, left: usize) -> Option<u64> {
        let halvings = left.max(2).next_power_of_two().ilog2();
        let each = self.spent.checked_div(self.kernels)?;
        Some((each * halvings).as_secs().div_ceil(60))
    }

    /// How much of a search's kernels was there: `3 of 7 kernels were in the cache; 9 new boots`.
    pub fn text<'a>(&self, kernels: impl Iterator<Item = &'a Kernel>) -> String {
        let is_cached: Vec<bool> = kernels.map(|kernel| self.is_cached(kernel)).collect();
        let cached = is_cached.iter().filter(|is_cached| **is_cached).count();
        let (all, boots) = (count(is_cached.len(), "kernel"), count(self.booted, "new boot"));
        format!("{cached} of {all} were in the cache; {boots}")
    }
}

/// Short names of the commits of which the store has boots of this workload on this machine.
fn kept(store: &Store, experiment: &Experiment) -> Result<BTreeSet<String>, RunError> {
    let prefix = format!("{}-", experiment.name);
    let mut kept = BTreeSet::new();
    for row in store.experiments()? {
        if let Some(commit) = row.name.strip_prefix(&prefix)
            && row.outcomes.contains_key("complete")
            && are_alike(&store.experiment(row.id)?, experiment)
        {
            kept.insert(commit.to_owned());
        }
    }
    Ok(kept)
}
