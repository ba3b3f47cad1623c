//! The result of a search, for reports.

use std::fmt;

use serde::Serialize;
use stats::{Mode, modes};

use crate::level;

/// A commit of the range, or the change of an option after all commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its name, 40 hexadecimal digits. That of an option begins with `CONFIG_`.
    pub id: String,
    /// The first line of its message. Of an option what it had and has: `n -> y`.
    pub subject: String,
    /// Its place in the range: 0 is the good end.
    pub place: usize,
}

impl Commit {
    /// Whether it is the change of an option.
    pub fn is_option(&self) -> bool {
        is_option(&self.id)
    }

    /// The name as kernel changelogs abbreviate it.
    pub fn short(&self) -> &str {
        short(&self.id)
    }
}

/// The name of a commit as kernel changelogs abbreviate it: 12 digits. That of an option is whole.
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
    /// The commit.
    pub commit: Commit,
    /// The figures of its boots, in order.
    pub figures: Vec<f64>,
    /// Half the width of the interval of their mean: by luck 99.9 %, by noise 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<f64>,
    /// Why it has none: it does not build, or no boot of it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many commits could still be the culprit when it was chosen, if there is only one.
    pub left: usize,
    /// The commit whose kernel has the same code and data, and whose boots count for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

impl Tried {
    /// The mean of its figures.
    pub fn level(&self) -> Option<f64> {
        level(&self.figures)
    }

    /// The groups in which its figures lie; empty if there is only one.
    pub fn groups(&self) -> Vec<Mode> {
        let found = modes(&self.figures).filter(|found| found.count() > 1);
        found.map_or(Vec::new(), |found| found.modes)
    }
}

/// A step of the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// The commits that can be its cause, with their probabilities: 1 in exact mode if there is one.
    pub commits: Vec<(Commit, f64)>,
    /// The names of the parents of the only commit.
    pub parents: Vec<String>,
    /// The last commit tried before it.
    pub before: Commit,
    /// The first commit tried after it.
    pub after: Commit,
    /// The levels there.
    pub levels: [f64; 2],
    /// Of the change of an option: the others that changed with it, each as `CONFIG_HZ: 250 -> 1000`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// The date and the author of the only commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The proof, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl Culprit {
    /// By how much the figure rises.
    pub fn change(&self) -> f64 {
        self.levels[1] - self.levels[0]
    }

    /// The only commit that can be the cause.
    pub fn only(&self) -> Option<&Commit> {
        match &self.commits[..] {
            [(commit, _)] => Some(commit),
            _ => None,
        }
    }
}

/// The culprit and its parent measured again, and the culprit reverted on the bad end. The parent of an option's
/// change is the change before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The number of the experiment in the store.
    pub experiment: i64,
    /// The parent's name.
    pub parent: String,
    /// The change from parent to culprit.
    pub step: Option<LevelChange>,
    /// The change from the bad end to the bad end without the culprit; the error is why that has no figure.
    pub reverted: Result<LevelChange, String>,
    /// In measured mode, the change of the kernel's instructions from parent to culprit; the error is why they are
    /// not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Result<LevelChange, String>>,
    /// If those do not change, the change from parent to culprit with all functions aligned alike; the error is
    /// why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aligned: Option<Result<LevelChange, String>>,
    /// The functions whose code the culprit changes; the error is why they are not known.
    pub functions: Result<Vec<String>, String>,
}

impl Proof {
    /// The share of the step that remains with all functions aligned alike: 1 if it does not differ from the whole
    /// step beyond noise, 0 if it differs from it and not from nothing. `None` if the boots do not tell.
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

    /// Whether the step was there again, and is not only the place of functions.
    pub fn confirms(&self) -> bool {
        self.step.is_some_and(|step| step.is_beyond()) && self.remains() != Some(0.0)
    }
}

/// A difference between two kernels, each with several boots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelChange {
    /// The levels.
    pub levels: [f64; 2],
    /// The largest difference that luck or noise is likely to cause; `None` if it is not known.
    pub floor: Option<f64>,
}

/// The change of the kernel's instructions in a phase, of which a function has a share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// What is counted, such as `kernel instructions in phase touch`.
    pub signal: String,
    /// From the good end to the bad end.
    pub change: LevelChange,
}

impl LevelChange {
    /// By how much the figure rises.
    pub fn change(&self) -> f64 {
        self.levels[1] - self.levels[0]
    }

    /// Whether that is more than luck or noise causes.
    pub fn is_beyond(&self) -> bool {
        self.floor.is_some_and(|floor| self.change().abs() > floor)
    }
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "ending", content = "detail")]
pub enum SearchEnding {
    /// With steps.
    Found,
    /// The ends differ, but no step has a tenth of the change: it drifts.
    Drift,
    /// The ends do not differ beyond luck or noise.
    NoDifference,
    /// Even the most boots do not tell whether two commits differ.
    Hidden,
    /// An end cannot be measured, and why.
    NoEnd(String),
    /// The budget is used up.
    Budget,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// The repository, as it was named.
    pub tree: String,
    /// The ends, as they were named.
    pub names: [String; 2],
    /// The good end and the bad end.
    pub ends: [Commit; 2],
    /// The workload.
    pub workload: String,
    /// Whether instructions were counted.
    pub exact: bool,
    /// What was measured.
    pub signal: String,
    /// The share of the change of its phase that a function holds; 1 for other figures. `None` if the phase does not
    /// change beyond luck.
    pub share: Option<f64>,
    /// If the figure is that of a function: the kernel's instructions in its phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether times of emulated machines were measured, which are not performance.
    pub emulated: bool,
    /// Commits in the range.
    pub commits: usize,
    /// Changes of options after them, on the code of the bad end.
    pub options: usize,
    /// The level of the bad end's code with the good end's configuration, if both differ between the ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<f64>,
    /// How many commits change nothing that a build of such a kernel reads.
    pub without_effect: usize,
    /// The commits that were tried, in this order.
    pub tried: Vec<Tried>,
    /// In measured mode, the probability of each place in the range to be a step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub posterior: Vec<f64>,
    /// Kernels built or taken from the cache.
    pub kernels: usize,
    /// Boots that count.
    pub boots: usize,
    /// How the search ended.
    pub ending: SearchEnding,
    /// The largest difference between the ends that luck or noise is likely to cause.
    pub floor: Option<f64>,
    /// The steps, in the order of the history.
    pub culprits: Vec<Culprit>,
    /// If the budget is used up: the commits that can be the step, if there is only one, with their probabilities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(Commit, f64)>,
    /// An older kernel, which shows whether the bad end only returns to its level: its name and level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<(String, Option<f64>)>,
}

impl Findings {
    /// Number of commits and changes of options between the ends.
    pub fn changes(&self) -> usize {
        self.commits + self.options
    }

    /// The levels of the two ends.
    pub fn levels(&self) -> Option<[f64; 2]> {
        let [good, bad] = self.ends.each_ref().map(|end| {
            let tried = self.tried.iter().find(|tried| tried.commit.id == end.id)?;
            tried.level()
        });
        Some([good?, bad?])
    }

    /// The part of the whole change that no step has.
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
        // The other way round is not that step.
        assert_eq!(remains([3.0, 0.5], [-1.0, 0.8]), (Some(0.0), false));
        // What remains can be nothing or the whole step.
        assert_eq!(remains([2.0, 1.3], [1.7, 1.8]), (None, true));
    }
}
