//! Decides which commit is tried next, until the search has an answer.

use std::collections::BTreeMap;
use std::time::Instant;

use ::culprit::{Contracted, Ending, Exact, Next, Step};
use compare::{Signal, VariantBoots, explain};
use fixedbitset::FixedBitSet;
use kernels::Change;
use model::Mode;

use super::trial::Trials;
use crate::boot::code::code_difference;
use crate::run::RunError;
use crate::run::watch::{Progress, Watch};

/// A search under way.
pub struct Seeker<'a> {
    /// The commits tried so far.
    pub trials: Trials<'a>,
    /// The figure that tells the kernels apart.
    pub signal: Signal,
    /// The answer: the steps, by places in the history.
    pub steps: Vec<Step>,
    /// Commits that change nothing that a build reads.
    pub without_effect: usize,
    /// The files that each commit changes against each parent.
    changes: Vec<Vec<Vec<Change>>>,
    begun: Instant,
}

impl<'a> Seeker<'a> {
    /// A search that has not tried anything.
    pub fn new(trials: Trials<'a>) -> Result<Self, RunError> {
        Ok(Self {
            changes: trials.history.changes()?,
            trials,
            signal: Signal::Instructions(None),
            steps: Vec::new(),
            without_effect: 0,
            begun: Instant::now(),
        })
    }

    /// Tries commits until there is an answer.
    pub fn seek(&mut self, watch: &mut Watch<'_>) -> Result<Ending, RunError> {
        let boots = self.trials.search.experiment.boots;
        for end in [0, self.trials.bad()] {
            self.trials.boot(end, boots, watch)?;
            if let Some(problem) = self.trials.problem(end) {
                let end = &self.trials.history.commits[end];
                return Ok(Ending::NoEnd(format!("{} {problem}", &end.id[..12])));
            }
        }
        let mut signals = self.signals()?.into_iter();
        self.signal = signals.next().unwrap_or(Signal::Instructions(None));
        watch(Progress::Remark(&format!("Figure: {}", self.signal)));
        loop {
            let groups = self.groups();
            self.without_effect = self.trials.history.commits.len() - groups.groups.len();
            let (node, boots) = match self.next(&groups) {
                Next::Read(node, boots) => (node, boots),
                Next::NoDifference => return Ok(Ending::NoDifference),
                Next::Hidden(..) => return Ok(Ending::Hidden),
                Next::NoEnd(_) => unreachable!("the ends were read"),
                Next::Found(steps) => {
                    self.steps = steps.iter().map(|step| self.in_history(step, &groups)).collect();
                    let is_drift = self.steps.is_empty();
                    return Ok(if is_drift { Ending::Drift } else { Ending::Found });
                }
            };
            if self.trials.search.budget.is_some_and(|budget| self.begun.elapsed() >= budget) {
                return Ok(Ending::Budget);
            }
            let place = self.place(node, &groups);
            self.trials.left = self.left(&groups);
            self.trials.boot(place, boots as u32, watch)?;
            let has_figure = !self.trials.figures(place, &self.signal).is_empty();
            if self.trials.problem(place).is_some() || has_figure {
                continue;
            }
            let lacking = &self.trials.history.commits[place].id[..12];
            match signals.next() {
                // Such as a function that this kernel does not have.
                Some(other) => {
                    watch(Progress::Remark(&format!(
                        "{lacking} has no {}: now {other}",
                        self.signal
                    )));
                    self.signal = other;
                }
                None => self.trials.lacks(place, format!("has no {}", self.signal)),
            }
        }
    }

    /// The commits, those that give the same kernel as one.
    fn groups(&self) -> Contracted {
        let commits = &self.trials.history.commits;
        let parents: Vec<Vec<usize>> = commits.iter().map(|commit| commit.places.clone()).collect();
        let inputs = &self.trials.inputs;
        let matters = |change| inputs.as_ref().is_none_or(|inputs| inputs.matter(change));
        Contracted::new(&parents, |commit, parent| {
            !self.changes[commit][parent].iter().any(matters)
        })
    }

    fn next(&self, groups: &Contracted) -> Next {
        self.with(groups, |search| search.next())
    }

    /// How many commits can still be the culprit.
    fn left(&self, groups: &Contracted) -> usize {
        self.with(groups, |search| search.left())
    }

    /// Asks the search with all figures so far.
    fn with<T>(&self, groups: &Contracted, ask: impl FnOnce(&Exact<'_>) -> T) -> T {
        let mut readings = BTreeMap::new();
        let mut unreadable = FixedBitSet::with_capacity(groups.history.len());
        for node in 0..groups.history.len() {
            let place = self.place(node, groups);
            let figures = self.trials.figures(place, &self.signal);
            if self.trials.problem(place).is_some() {
                unreadable.insert(node);
            } else if !figures.is_empty() {
                readings.insert(node, figures);
            }
        }
        let base = readings.get(&0).map_or(0.0, |figures| figures[0]);
        ask(&Exact {
            history: &groups.history,
            readings: &readings,
            unreadable: &unreadable,
            least: self.signal.least(base),
            seeds: self.trials.search.experiment.boots as usize,
            all: self.trials.search.all,
            first_parent: self.trials.search.first_parent,
        })
    }

    /// The place of the commit that stands for a group: an end, or one that was tried already, or the first.
    fn place(&self, node: usize, groups: &Contracted) -> usize {
        let own = &groups.groups[node];
        if own.contains(&self.trials.bad()) && node > 0 {
            return self.trials.bad();
        }
        let tried = own.iter().find(|place| self.trials.trial(**place).is_some());
        *tried.unwrap_or(&own[0])
    }

    fn in_history(&self, step: &Step, groups: &Contracted) -> Step {
        Step {
            // The others of a group change nothing.
            commits: step.commits.iter().map(|node| groups.groups[*node][0]).collect(),
            before: self.place(step.before, groups),
            after: self.place(step.after, groups),
            change: step.change,
        }
    }

    /// The figures that the user asked for, or those that tell the ends apart best, in order.
    fn signals(&self) -> Result<Vec<Signal>, RunError> {
        let asked = &self.trials.search.asked;
        if let Some(row) = asked.metric.as_ref().or(asked.counter.as_ref()) {
            return self.trials.row(row).map(|signal| vec![signal]);
        }
        if let Some(function) = &asked.function {
            return Ok(vec![Signal::Function(function.clone(), asked.phase.clone())]);
        }
        if self.trials.search.experiment.mode == Mode::Measured {
            return Ok(Signal::of_comparison(&self.trials.comparison()).into_iter().collect());
        }
        let (experiment, kept) = self.trials.ends();
        let used = &experiment.workloads[0];
        let [good, bad] = [0, 1].map(|end| VariantBoots::of(&experiment.variants[end], &kept));
        let mut explanation = explain(&good, &bad, used, experiment.boots);
        let kernels = [0, 1].map(|end| &experiment.variants[end].kernel);
        if let Ok(difference) = code_difference(&self.trials.lab.cache, kernels) {
            explanation.mark_code(&difference);
        }
        Ok(Signal::of_explanation(&explanation, used, asked.phase.as_deref()))
    }
}
