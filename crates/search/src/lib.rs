//! Searches for the commit or the option at which a figure changed. The search has no state of its
//! own: each decision follows from the history and the figures so far, and kernels and boots are
//! kept. So the same command continues an interrupted search.

mod boots;
mod cost;
mod effort;
mod options;
mod proof;
mod range;
mod seeker;
mod trial;
mod variants;

use std::cmp::Reverse;

use culprit::{Commit, Culprit, Findings, SearchEnding};
use lab::{Lab, Progress, RunError, Watch};
use model::Mode;
use plan::Search;

use seeker::{FoundStep, Seeker};
use trial::Trials;

pub use cost::cost;
pub use range::Range;

/// The largest number of culprits that are proven. Those with the largest changes are chosen.
const PROVEN: usize = 3;

/// Searches for the commits or options between the good end and the bad end at which the figure
/// changes.
///
/// # Errors
/// When the host fails, or the search asks for a figure that the ends do not have. A kernel that
/// does not build or boot is not an error.
pub fn find(
    lab: &mut Lab,
    search: &Search,
    range: &Range,
    watch: &mut Watch<'_>,
) -> Result<Findings, RunError> {
    let _lock = lab.lock(watch)?;
    let (between, kernels) = (range.between(search), range.kernels(search.prove));
    let plan = format!("{between}: about {kernels} kernels to try");
    watch(Progress::Message(&plan));
    watch(Progress::Message(&cost(search, range, Some(&*lab.store), &lab.cache)?));
    let mut seeker = Seeker::new(Trials::new(lab, search, range)?)?;
    let ending = seeker.seek(watch)?;
    let code = seeker.code();
    let Seeker { mut trials, share, steps, left, posterior, without_effect, .. } = seeker;
    watch(Progress::Message(&trials.effort()));
    let mut culprits = Vec::new();
    for FoundStep { commits, ends: [before, after], levels } in steps {
        let (mut author, mut parents, mut with) = (None, Vec::new(), Vec::new());
        match commits[..] {
            [(only, _)] if only > range.commits => {
                let own = trials.commit(only).id;
                let changed = range.changed(search, only, &trials.lab.cache, watch)?.into_iter();
                with = changed.filter(|it| it.option != own).map(|it| it.to_string()).collect();
            }
            [(only, _)] => {
                author = Some(trials.author(only)?);
                parents.clone_from(&range.history.commits[only].parents);
            }
            _ => {}
        }
        culprits.push(Culprit {
            commits: named(&trials, commits),
            parents,
            before: trials.commit(before),
            after: trials.commit(after),
            levels,
            with,
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
        names: search.ends(),
        ends: [0, trials.bad()].map(|place| trials.commit(place)),
        workload: search.experiment.workloads[0].manifest.name.clone(),
        arch: search.experiment.machine.arch.name(),
        exact: search.experiment.mode == Mode::Exact,
        signal: trials.signal().to_string(),
        share,
        phase: trials.phase(),
        emulated: trials.is_emulated(),
        commits: range.commits,
        options: range.options(),
        code,
        // Without a step, the probabilities have no meaning.
        posterior: match ending {
            SearchEnding::Found | SearchEnding::Budget => posterior,
            _ => Vec::new(),
        },
        without_effect,
        kernels: trials.kernels(),
        boots: trials.boots(),
        tried: trials.tried(),
        floor: trials.change().and_then(|change| change.floor),
        left: if ending == SearchEnding::Budget { named(&trials, left) } else { Vec::new() },
        ending,
        culprits,
        reference,
    })
}

/// Returns commits by their places, with their probabilities.
fn named(trials: &Trials<'_>, places: Vec<(usize, f64)>) -> Vec<(Commit, f64)> {
    places.into_iter().map(|(place, share)| (trials.commit(place), share)).collect()
}
