//! The result of a search, for reports.

use std::fmt;

use serde::Serialize;
use stats::{Mode, modes};

use crate::level;

/// A commit of the range, or the change of an option after all commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its hash, 40 hexadecimal digits. The name of an option begins with `CONFIG_`.
    pub id: String,
    /// The first line of the commit message. For an option, its old and new value: `n -> y`.
    pub subject: String,
    /// Its index in the range: 0 is the good end.
    pub place: usize,
}

impl Commit {
    /// Whether this is the change of an option.
    pub fn is_option(&self) -> bool {
        is_option(&self.id)
    }

    /// The hash as kernel changelogs abbreviate it.
    pub fn short(&self) -> &str {
        short(&self.id)
    }
}

/// A hash as kernel changelogs abbreviate it: 12 digits. The name of an option is not shortened.
pub fn short(id: &str) -> &str {
    if is_option(id) { id } else { id.get(..12).unwrap_or(id) }
}

fn is_option(id: &str) -> bool {
    id.starts_with("CONFIG_")
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_option() {
            true => write!(f, "{}: {}", self.id, self.subject),
            false => write!(f, "{} (\"{}\")", self.short(), self.subject),
        }
    }
}

/// A commit that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// The commit that was tried.
    pub commit: Commit,
    /// The figures of its boots, in order.
    pub figures: Vec<f64>,
    /// Half the width of the interval of their mean: of 99.9 % in exact mode, of 95 % in measured mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<f64>,
    /// Why there are no figures: the commit does not build, or no boot of it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many commits could still be the culprit when this one was chosen, if there is only one culprit.
    pub left: usize,
    /// The commit whose kernel has the same code and data, and whose boots count for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

impl Tried {
    /// The mean of the figures.
    pub fn level(&self) -> Option<f64> {
        level(&self.figures)
    }

    /// The groups in which the figures lie; empty if there is only one.
    pub fn groups(&self) -> Vec<Mode> {
        let found = modes(&self.figures).filter(|found| found.count() > 1);
        found.map_or(Vec::new(), |found| found.modes)
    }
}

/// A commit or an option at which the figure changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// The commits that can be the cause, with their probabilities. In exact mode a single commit has 1.
    pub commits: Vec<(Commit, f64)>,
    /// The hashes of the parents, if only one commit can be the cause.
    pub parents: Vec<String>,
    /// The last commit that was tried before the step.
    pub before: Commit,
    /// The first commit that was tried after the step.
    pub after: Commit,
    /// The levels before and after the step.
    pub levels: [f64; 2],
    /// For an option, the others that changed with it, each as `CONFIG_HZ: 250 -> 1000`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// The date and the author, if only one commit can be the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The proof, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl Culprit {
    /// By how much the figure rises; negative if it falls.
    pub fn change(&self) -> f64 {
        self.levels[1] - self.levels[0]
    }

    /// The commit, if only one can be the cause.
    pub fn only(&self) -> Option<&Commit> {
        match &self.commits[..] {
            [(commit, _)] => Some(commit),
            _ => None,
        }
    }
}

/// The culprit and its parent measured again, and the culprit reverted on the bad end. The parent of an option is the
/// option that was changed before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The number of the experiment in the store.
    pub experiment: i64,
    /// The hash of the culprit's parent.
    pub parent: String,
    /// The change from parent to culprit.
    pub step: Option<LevelChange>,
    /// The change from the bad end to the bad end without the culprit, or why that has no figure.
    pub reverted: Result<LevelChange, String>,
    /// In measured mode, the change of the kernel's instructions from parent to culprit, or why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Result<LevelChange, String>>,
    /// If the instructions do not change, the change from parent to culprit with all functions aligned alike, or why
    /// that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aligned: Option<Result<LevelChange, String>>,
    /// The functions whose code the culprit changes, or why they are not known.
    pub functions: Result<Vec<String>, String>,
}

impl Proof {
    /// The share of the step that remains with all functions aligned alike: 1 if it does not differ from the whole
    /// step beyond noise; 0 if it differs from the whole step, and not from zero. `None` if the boots do not tell.
    pub fn remains(&self) -> Option<f64> {
        let (step, aligned) = (self.step?, self.aligned.as_ref()?.as_ref().ok()?);
        let is_whole =
            (step.change() - aligned.change()).abs() <= step.floor?.hypot(aligned.floor?);
        let share = aligned.change() / step.change();
        match (aligned.is_beyond() && share > 0.0, is_whole) {
            (true, true) => Some(1.0),
            (true, false) => Some(share),
            (false, true) => None,
            (false, false) => Some(0.0),
        }
    }

    /// Whether the step occurred again, and is not only caused by where functions lie.
    pub fn confirms(&self) -> bool {
        self.step.is_some_and(|step| step.is_beyond()) && self.remains() != Some(0.0)
    }
}

/// A difference between two kernels, each with several boots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelChange {
    /// The levels of the first and of the second kernel.
    pub levels: [f64; 2],
    /// The largest difference that luck or noise is likely to cause; `None` if it is not known.
    pub floor: Option<f64>,
}

/// The change of a phase in the cost of the search. A function has a share of this change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// What is counted, such as `kernel instructions in phase touch`.
    pub signal: String,
    /// The change from the good end to the bad end.
    pub change: LevelChange,
}

impl LevelChange {
    /// By how much the figure rises; negative if it falls.
    pub fn change(&self) -> f64 {
        self.levels[1] - self.levels[0]
    }

    /// Whether the change is larger than luck or noise is likely to cause.
    pub fn is_beyond(&self) -> bool {
        self.floor.is_some_and(|floor| self.change().abs() > floor)
    }
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "ending", content = "detail")]
pub enum SearchEnding {
    /// At least one step was found.
    Found,
    /// The ends differ, but no step has a tenth of the change: the figure drifts.
    Drift,
    /// The ends do not differ beyond luck or noise.
    NoDifference,
    /// Whether two commits differ is not known, even with the most boots.
    Hidden,
    /// An end cannot be measured; the text says why.
    NoEnd(String),
    /// The budget is used up.
    Budget,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// The repository, as the user named it.
    pub tree: String,
    /// The ends, as the user named them.
    pub names: [String; 2],
    /// The good end and the bad end.
    pub ends: [Commit; 2],
    /// The workload whose figure was measured.
    pub workload: String,
    /// The name of the architecture of the kernels.
    pub arch: &'static str,
    /// Whether instructions were counted.
    pub exact: bool,
    /// The figure that was measured, in words.
    pub signal: String,
    /// The function's share of the change of its phase; 1 for other figures. `None` if the phase does not change
    /// beyond luck.
    pub share: Option<f64>,
    /// If the figure is that of a function: how the kernel's instructions change in its phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether times of emulated machines were measured. They are not performance.
    pub emulated: bool,
    /// The number of commits in the range.
    pub commits: usize,
    /// The number of changed options after them, on the code of the bad end.
    pub options: usize,
    /// The level of the bad end's code with the good end's configuration, if code and configuration both differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<f64>,
    /// How many commits change no file that the build of such a kernel reads.
    pub without_effect: usize,
    /// The commits that were tried, in the order of the search.
    pub tried: Vec<Tried>,
    /// In measured mode, the probability of each place in the range to be a step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub posterior: Vec<f64>,
    /// How many kernels were built or taken from the cache.
    pub kernels: usize,
    /// How many boots count.
    pub boots: usize,
    /// How the search ended.
    pub ending: SearchEnding,
    /// The largest difference between the ends that luck or noise is likely to cause.
    pub floor: Option<f64>,
    /// The steps, in the order of the history.
    pub culprits: Vec<Culprit>,
    /// If the budget is used up: the commits that can be the step if there is only one, with their probabilities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(Commit, f64)>,
    /// The name and the level of an older kernel. It shows whether the bad end only returns to an old level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<(String, Option<f64>)>,
}

impl Findings {
    /// The number of commits and changed options between the ends.
    pub fn changes(&self) -> usize {
        self.commits + self.options
    }

    /// The levels of the good end and of the bad end.
    pub fn levels(&self) -> Option<[f64; 2]> {
        let [good, bad] = self.ends.each_ref().map(|end| {
            let tried = self.tried.iter().find(|tried| tried.commit.id == end.id)?;
            tried.level()
        });
        Some([good?, bad?])
    }

    /// The part of the whole change that no step explains.
    pub fn rest(&self) -> Option<f64> {
        let [good, bad] = self.levels()?;
        Some(bad - good - self.culprits.iter().map(Culprit::change).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_step_that_remains_needs_boots_that_tell() {
        let remains = |[step, floor]: [f64; 2], [aligned, of_aligned]: [f64; 2]| {
            let change =
                |change, floor| LevelChange { levels: [100.0, 100.0 + change], floor: Some(floor) };
            let proof = Proof {
                experiment: 1,
                parent: String::new(),
                step: Some(change(step, floor)),
                reverted: Err(String::new()),
                instructions: None,
                aligned: Some(Ok(change(aligned, of_aligned))),
                functions: Ok(Vec::new()),
            };
            (proof.remains(), proof.confirms())
        };
        assert_eq!(remains([6.0, 0.5], [6.2, 0.5]), (Some(1.0), true));
        assert_eq!(remains([6.0, 0.5], [3.0, 0.5]), (Some(0.5), true));
        assert_eq!(remains([6.0, 0.5], [0.2, 0.5]), (Some(0.0), false));
        assert_eq!(remains([-6.0, 0.5], [0.2, 0.5]), (Some(0.0), false));
        // A change in the other direction is not that step.
        assert_eq!(remains([3.0, 0.5], [-1.0, 0.8]), (Some(0.0), false));
        // What remains can be zero or the whole step.
        assert_eq!(remains([2.0, 1.3], [1.7, 1.8]), (None, true));
    }
}
