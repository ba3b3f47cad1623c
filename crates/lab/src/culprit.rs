//! Searches the commit at which a figure changed. The search has no state of its own: each decision follows
//! from the history and the figures so far, and kernels and boots are kept. So the same command continues an
//! interrupted search.

mod cost;
mod proof;
pub mod search;
mod seeker;
mod trial;

use std::cmp::Reverse;

use ::culprit::{Culprit, Findings};
use kernels::History;
use model::Mode;

use crate::run::watch::{Progress, Watch};
use crate::run::{Lab, RunError, lock};
pub use cost::cost;
use search::Search;
use seeker::{Found, Seeker};
use trial::Trials;

/// Culprits that are proven, the largest first.
const PROVEN: usize = 3;

impl Lab {
    /// Searches the commit in the history from the good to the bad end.
    ///
    /// # Errors
    /// When the host fails. A kernel that does not build or boot is no error.
    pub fn culprit(
        &mut self,
        search: &Search,
        history: &History,
        watch: &mut Watch<'_>,
    ) -> Result<Findings, RunError> {
        let _lock = lock(&self.scratch)?;
        let commits = history.commits.len() - 1;
        let [good, bad] = [&search.good, &search.bad];
        let about = search::kernels(history);
        let plan = format!("{commits} commits from {good} to {bad}: about {about} kernels to try");
        watch(Progress::Remark(&plan));
        watch(Progress::Remark(&cost(search, about, Some(&self.store), &self.cache)?));
        let mut seeker = Seeker::new(Trials::new(self, search, history))?;
        let ending = seeker.seek(watch)?;
        let Seeker { mut trials, share, steps, posterior, without_effect, .. } = seeker;
        let mut culprits = Vec::new();
        for Found { commits, ends: [before, after], levels } in steps {
            let (author, parents) = match commits[..] {
                [(only, _)] => (Some(trials.author(only)?), history.commits[only].parents.clone()),
                _ => (None, Vec::new()),
            };
            let named = commits.into_iter().map(|(place, share)| (trials.commit(place), share));
            culprits.push(Culprit {
                commits: named.collect(),
                parents,
                before: trials.commit(before),
                after: trials.commit(after),
                levels,
                author,
                proof: None,
            });
        }
        if search.prove {
            let mut largest: Vec<&mut Culprit> = culprits.iter_mut().collect();
            largest.sort_by_key(|culprit| Reverse(culprit.change().abs().to_bits()));
            for culprit in largest.into_iter().take(PROVEN) {
                if let Some(place) = culprit.only().map(|commit| commit.place) {
                    culprit.proof = proof::prove(&mut trials, place, culprit.levels, watch)?;
                }
            }
        }
        let reference = match &search.reference {
            None => None,
            Some(name) => Some((name.clone(), trials.reference(name, watch)?)),
        };
        Ok(Findings {
            tree: search.tree.display().to_string(),
            names: [good.clone(), bad.clone()],
            ends: [0, commits].map(|place| trials.commit(place)),
            workload: search.experiment.workloads[0].manifest.name.clone(),
            exact: search.experiment.mode == Mode::Exact,
            signal: trials.signal().to_string(),
            share,
            commits,
            posterior,
            without_effect,
            kernels: trials.kernels(),
            boots: trials.boots(),
            tried: trials.tried(),
            floor: trials.change().and_then(|change| change.floor),
            ending,
            culprits,
            reference,
        })
    }
}
