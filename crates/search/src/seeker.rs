//! Asks the crate `culprit` which commit to try next, and tries it, until the search has an answer.

use std::collections::BTreeMap;

use boot::code_difference;
use compare::{Signal, VariantBoots, explain};
use culprit::{Contracted, Exact, History, Measured, SearchEnding, exact, level, measured};
use fixedbitset::FixedBitSet;
use kernels::ChangedFile;
use lab::{Progress, RunError, Watch};
use model::{INSTRUCTIONS, Mode};

use crate::trial::Trials;

/// The costs of a reading, relative to each other: a boot; a boot and a build that differs from an
/// earlier one only in C files; a boot and another build, which compiles most files again.
const COSTS: [f64; 3] = [1.0, 2.0, 6.0];

/// The largest number of boots of an end in measured mode that are done to tell the ends apart.
const MOST_BOOTS: u32 = 20;

/// A step that was found, by places in the history.
pub struct FoundStep {
    /// The commits that can be its cause, with their probabilities.
    pub commits: Vec<(usize, f64)>,
    /// The last place before the step and the first place after it that were read.
    pub ends: [usize; 2],
    /// The levels of the figure before and after the step.
    pub levels: [f64; 2],
}

/// What the search does next.
enum Next {
    Try {
        place: usize,
        boots: u32,
        /// The places that can still be the culprit, with their probabilities. Empty if there may
        /// be no culprit or several.
        left: Vec<(usize, f64)>,
    },
    End(SearchEnding),
    Found(Vec<FoundStep>),
}

/// A search in progress.
pub struct Seeker<'a> {
    /// The commits tried so far.
    pub trials: Trials<'a>,
    /// The share of its phase's change that the figure holds; `None` if the phase does not change
    /// beyond luck.
    pub share: Option<f64>,
    /// The steps that were found.
    pub steps: Vec<FoundStep>,
    /// The places that can be the culprit, with their probabilities. Empty if there may be no
    /// culprit or several.
    pub left: Vec<(usize, f64)>,
    /// In measured mode, the probability of each commit to be a step; empty in exact mode.
    pub posterior: Vec<f64>,
    /// The number of commits that change nothing that a build reads.
    pub without_effect: usize,
    /// The files that each commit changes, against each of its parents.
    changes: Vec<Vec<Vec<ChangedFile>>>,
}

impl<'a> Seeker<'a> {
    /// Starts a search without readings. Fails when the changed files of the history cannot be
    /// read.
    pub fn new(trials: Trials<'a>) -> Result<Self, RunError> {
        Ok(Self {
            changes: trials.history.changes()?,
            trials,
            share: Some(1.0),
            steps: Vec::new(),
            left: Vec::new(),
            posterior: Vec::new(),
            without_effect: 0,
        })
    }

    /// Tries commits until there is an answer. Fails when the host fails, or when the ends do not
    /// have the figure that was asked for.
    pub fn seek(&mut self, watch: &mut Watch<'_>) -> Result<SearchEnding, RunError> {
        let boots = self.trials.search.experiment.boots;
        for end in [0, self.trials.bad()] {
            self.trials.boot(end, boots, watch)?;
            if self.trials.problem(end).is_some() {
                return Ok(self.no_end(end));
            }
        }
        let mut signals = self.signals()?.into_iter();
        loop {
            self.read(signals.next().unwrap_or((Signal::kernel(INSTRUCTIONS, None), Some(1.0))));
            let lacks = |end: &usize| self.trials.figures(*end).len() < boots as usize;
            let Some(end) = [0, self.trials.bad()].into_iter().find(lacks) else { break };
            if signals.len() == 0 {
                let figure = self.trials.signal().to_string();
                return Err(RunError::NoFigure { end: self.name(end), figure });
            }
        }
        watch(Progress::Message(&format!("Figure: {}", self.trials.signal())));
        let mut groups = self.groups();
        loop {
            let (place, boots) = match self.next(&groups) {
                Next::Try { place, boots, left } => {
                    if !left.is_empty() {
                        self.trials.left = left.len();
                    }
                    self.left = left;
                    (place, boots)
                }
                Next::End(ending) => return Ok(ending),
                Next::Found(steps) if steps.is_empty() => return Ok(SearchEnding::Drift),
                Next::Found(steps) => {
                    self.steps = steps;
                    return Ok(SearchEnding::Found);
                }
            };
            if self.trials.search.budget.is_some_and(|budget| self.trials.effort.spent >= budget) {
                return Ok(SearchEnding::Budget);
            }
            let before = self.trials.len();
            if let Some(again) = self.trials.again(place, boots) {
                watch(Progress::Message(&again));
            }
            self.trials.boot(place, boots, watch)?;
            if self.trials.len() > before {
                // The build of the new kernel may have read files that no other build read.
                groups = self.groups();
            }
            let has_figures = self.trials.figures(place).len() >= boots as usize;
            if self.trials.problem(place).is_some() || has_figures {
                continue;
            }
            let lacking = self.trials.commit(place);
            let signal = self.trials.signal();
            match signals.next() {
                // For example, the figure is of a function that this kernel does not have.
                Some(other) => {
                    watch(Progress::Message(&format!(
                        "{} has no {signal}: now {}",
                        lacking.short(),
                        other.0
                    )));
                    self.read(other);
                }
                None => self.trials.lacks(place, format!("not every boot has {signal}")),
            }
        }
    }

    fn read(&mut self, (signal, share): (Signal, Option<f64>)) {
        self.share = share;
        self.trials.use_signal(signal);
    }

    /// Groups commits with their parents if both give the same kernel. Updates
    /// [`Seeker::without_effect`].
    fn groups(&mut self) -> Contracted {
        let commits = &self.trials.history.commits;
        let parents: Vec<Vec<usize>> = commits.iter().map(|commit| commit.places.clone()).collect();
        let is_without_effect = |commit: usize, parent: usize| {
            // A change of an option changes no files.
            let files = self.changes[commit].get(parent);
            files.is_some_and(|files| !files.iter().any(|change| self.matters(change)))
        };
        let groups = Contracted::new(&parents, is_without_effect);
        let without_effect = commits.len() - groups.groups.len();
        let groups = match self.trials.search.experiment.mode {
            Mode::Exact => groups,
            // The boots of one kernel must count once, not for each commit that gives the kernel.
            // So commits whose kernels turned out to be the same are also in one group.
            Mode::Measured => {
                let whole = History::new(parents.clone());
                let same = self.trials.same(&whole);
                Contracted::new(&parents, |commit, parent| {
                    let before = parents[commit][parent];
                    let is_within = |[first, last]: &[usize; 2]| {
                        whole.has(before, *first) && whole.has(*last, commit)
                    };
                    is_without_effect(commit, parent) || same.iter().any(is_within)
                })
            }
        };
        self.without_effect = without_effect;
        groups
    }

    /// Returns whether a build can read a changed file. True as long as the files that builds read
    /// are not known.
    fn matters(&self, change: &ChangedFile) -> bool {
        let inputs = self.trials.inputs.as_ref().filter(|_| self.trials.kernels() > 0);
        inputs.is_none_or(|inputs| inputs.matter(change))
    }

    /// Returns the ending of a search in which this end has no figure.
    fn no_end(&self, end: usize) -> SearchEnding {
        let problem = self.trials.problem(end).unwrap_or_default();
        SearchEnding::NoEnd(format!("{} {problem}", self.name(end)))
    }

    /// Returns an end as the user named it.
    fn name(&self, end: usize) -> String {
        let [good, bad] = self.trials.search.ends();
        if end == 0 { good } else { bad }
    }

    /// Returns the level of the bad end's code with the good end's configuration; `None` if only
    /// commits or only options change, or if it was not read.
    pub fn code(&mut self) -> Option<f64> {
        let groups = self.groups();
        level(self.trials.figures(self.place(self.parting(&groups)?, &groups)))
    }

    /// Returns the group after which only options change; `None` if there is none.
    fn parting(&self, groups: &Contracted) -> Option<usize> {
        let place = self.trials.range.parting()?;
        groups.groups.iter().position(|own| own.contains(&place))
    }

    fn next(&mut self, groups: &Contracted) -> Next {
        let (readings, unreadable) = self.readings(groups);
        if self.trials.search.experiment.mode == Mode::Exact {
            return self.exact(groups, &readings, &unreadable);
        }
        let (next, posterior) = self.measured(groups, readings, &unreadable);
        self.posterior = vec![0.0; self.trials.history.commits.len()];
        // Only the first commit of a group can be a step. The others change nothing.
        for (group, probability) in groups.groups.iter().zip(posterior) {
            self.posterior[group[0]] = probability;
        }
        next
    }

    fn exact(
        &self,
        groups: &Contracted,
        readings: &BTreeMap<usize, Vec<f64>>,
        unreadable: &FixedBitSet,
    ) -> Next {
        let place = |node| self.place(node, groups);
        let base = readings.get(&0).map_or(0.0, |figures| figures[0]);
        let kept = |node| {
            let number = self.trials.effort.kept(self.trials.commit(place(node)).short())?;
            Some((node, number))
        };
        let search = Exact {
            history: &groups.history,
            least: self.trials.signal().least(base),
            readings,
            unreadable,
            kept: &(0..groups.history.len()).filter_map(kept).collect(),
            parting: self.parting(groups),
            seeds: self.trials.search.experiment.boots as usize,
            all: self.trials.search.all,
        };
        match search.next() {
            exact::Next::Read(node, boots) => {
                let left = of_groups(groups, &alike(&search.left().unwrap_or_default()));
                Next::Try { place: place(node), boots: boots as u32, left }
            }
            exact::Next::NoDifference => Next::End(SearchEnding::NoDifference),
            exact::Next::Hidden(..) => Next::End(SearchEnding::Hidden),
            exact::Next::NoEnd(node) => Next::End(self.no_end(place(node))),
            exact::Next::Found(steps) => {
                Next::Found(steps.iter().map(|step| self.of_step(step, groups)).collect())
            }
        }
    }

    /// Decides what comes next in measured mode, and returns the probability of each group to be a
    /// step.
    fn measured(
        &self,
        groups: &Contracted,
        readings: BTreeMap<usize, Vec<f64>>,
        unreadable: &FixedBitSet,
    ) -> (Next, Vec<f64>) {
        let place = |node| self.place(node, groups);
        let has_problem = |end: &usize| self.trials.problem(*end).is_some();
        if let Some(end) = [0, self.trials.bad()].into_iter().find(has_problem) {
            return (Next::End(self.no_end(end)), Vec::new());
        }
        let each = |(node, figures): (usize, Vec<f64>)| {
            figures.into_iter().map(move |figure| (node, figure)).collect::<Vec<_>>()
        };
        let costs = self.costs(groups);
        let is_unread = |node: &usize| !readings.contains_key(node) && !unreadable.contains(*node);
        let parting = self.parting(groups).filter(is_unread);
        let search = Measured {
            history: &groups.history,
            readings: &readings.into_iter().flat_map(each).collect::<Vec<_>>(),
            unreadable,
            cost: &|node| costs[node],
            confidence: self.trials.search.confidence,
        };
        let differ = self.trials.change().and_then(|change| change.beyond_luck()) == Some(true);
        let (next, posterior) = search.next();
        let next = match next {
            measured::Next::Found(steps) if steps.is_empty() => {
                Next::End(SearchEnding::NoDifference)
            }
            // This applies only as long as nothing but the ends was read. Later, a stray boot of an
            // end must not end the search; the model allows for it.
            _ if !differ && self.trials.len() == 2 => self.more_of_ends(),
            measured::Next::Read { node, left } => {
                let more = self.trials.figures(place(node)).len() as u32 + 1;
                let (node, boots) = match parting {
                    Some(node) => (node, self.trials.search.experiment.boots),
                    None => (node, more),
                };
                Next::Try { place: place(node), boots, left: of_groups(groups, &left) }
            }
            measured::Next::Found(steps) => {
                let found = |step: measured::Likely| FoundStep {
                    commits: of_groups(groups, &step.commits),
                    ends: step.ends.map(place),
                    levels: step.levels,
                };
                Next::Found(steps.into_iter().map(found).collect())
            }
        };
        (next, posterior)
    }

    /// Asks for further boots of the end that has fewer. If both have [`MOST_BOOTS`], the search
    /// ends without a difference.
    fn more_of_ends(&self) -> Next {
        let bad = self.trials.bad();
        let boots = |end: usize| self.trials.figures(end).len() as u32;
        let fewer = if boots(0) <= boots(bad) { 0 } else { bad };
        match boots(fewer) {
            MOST_BOOTS.. => Next::End(SearchEnding::NoDifference),
            number => {
                let boots = (2 * number).min(MOST_BOOTS);
                Next::Try { place: fewer, boots, left: self.left.clone() }
            }
        }
    }

    /// Returns the figures of each group, and the groups that cannot be read.
    fn readings(&self, groups: &Contracted) -> (BTreeMap<usize, Vec<f64>>, FixedBitSet) {
        let mut readings = BTreeMap::new();
        let mut unreadable = FixedBitSet::with_capacity(groups.history.len());
        for node in 0..groups.history.len() {
            let place = self.place(node, groups);
            let figures = self.trials.figures(place);
            if self.trials.problem(place).is_some() {
                unreadable.insert(node);
            } else if !figures.is_empty() {
                readings.insert(node, figures.to_vec());
            }
        }
        (readings, unreadable)
    }

    /// Returns the place of the commit that represents a group: the bad end, or a commit that was
    /// tried already, or the first commit.
    fn place(&self, node: usize, groups: &Contracted) -> usize {
        let own = &groups.groups[node];
        if own.contains(&self.trials.bad()) && node > 0 {
            return self.trials.bad();
        }
        let tried = own.iter().find(|place| self.trials.trial(**place).is_some());
        *tried.unwrap_or(&own[0])
    }

    /// Returns the cost of a reading of each group, as in [`COSTS`].
    fn costs(&self, groups: &Contracted) -> Vec<f64> {
        let history = &groups.history;
        let nodes = 0..history.len();
        let is_built = |node: &usize| self.trials.trial(self.place(*node, groups)).is_some();
        let built: Vec<usize> = nodes.clone().filter(is_built).collect();
        let is_shared = |change: &ChangedFile| !change.path.ends_with(".c") && self.matters(change);
        let is_wide = |node: &usize| {
            let place = groups.groups[*node][0];
            // The changes of a merge are those of the commits that it merges.
            let is_merge = self.trials.history.commits[place].places.len() > 1;
            match self.changes.get(place).and_then(|of_parents| of_parents.first()) {
                Some(files) => !is_merge && files.iter().any(is_shared),
                // A change of an option, except at the good end.
                None => place > 0,
            }
        };
        let wide: FixedBitSet = nodes.clone().filter(is_wide).collect();
        let is_near = |one: usize, other: usize| {
            let mut apart = history.ancestors(one).clone();
            apart.symmetric_difference_with(history.ancestors(other));
            apart.is_disjoint(&wide)
        };
        let cost = |node: usize| match is_built(&node) {
            true => COSTS[0],
            false if built.iter().any(|other| is_near(node, *other)) => COSTS[1],
            false => COSTS[2],
        };
        nodes.map(cost).collect()
    }

    fn of_step(&self, step: &exact::Step, groups: &Contracted) -> FoundStep {
        let ends = [step.before, step.after].map(|node| self.place(node, groups));
        FoundStep {
            commits: of_groups(groups, &alike(&step.commits)),
            ends,
            levels: ends.map(|end| self.trials.level(end)),
        }
    }

    /// Returns the figures to search by, the best first, each with its share of its phase's change:
    /// the figure that the user asked for, otherwise those that tell the ends apart best. Fails
    /// when the good end lacks the row or the cost that was asked for.
    fn signals(&self) -> Result<Vec<(Signal, Option<f64>)>, RunError> {
        let asked = &self.trials.search.asked;
        if let Some(row) = asked.metric.as_ref().or(asked.counter.as_ref()) {
            return self.trials.row(row).map(|signal| vec![(signal, Some(1.0))]);
        }
        if self.trials.search.experiment.mode == Mode::Measured {
            let row = Signal::of_comparison(&self.trials.comparison());
            return Ok(row.into_iter().map(|signal| (signal, Some(1.0))).collect());
        }
        let (cost, phase) = (self.trials.cost()?, asked.phase.clone());
        if let Some(name) = &asked.function {
            let (cost, name) = (cost.to_owned(), name.clone());
            return Ok(vec![(Signal::Function { cost, name, phase }, Some(1.0))]);
        }
        if phase.is_some() {
            return Ok(vec![(Signal::kernel(cost, phase), Some(1.0))]);
        }
        let (experiment, kept) = self.trials.ends();
        let used = &experiment.workloads[0];
        let [good, bad] = [0, 1].map(|end| VariantBoots::of(&experiment.variants[end], &kept));
        let kernels = [0, 1].map(|end| &experiment.variants[end].kernel);
        let code = code_difference(&self.trials.lab.cache, kernels);
        let explanation = explain(&good, &bad, used, experiment.boots, cost).with_code(code);
        let mut signals = Signal::of_explanation(&explanation, used);
        if self.trials.search.all {
            // One function cannot show all steps of a phase.
            signals.retain(|(signal, _)| matches!(signal, Signal::Kernel { .. }));
        }
        Ok(signals)
    }
}

/// Returns the places of groups: each is the place of the group's first commit, because the others
/// change nothing.
fn of_groups(groups: &Contracted, nodes: &[(usize, f64)]) -> Vec<(usize, f64)> {
    nodes.iter().map(|(node, share)| (groups.groups[*node][0], *share)).collect()
}

/// Gives all nodes the same probability.
fn alike(nodes: &[usize]) -> Vec<(usize, f64)> {
    nodes.iter().map(|node| (*node, 1.0 / nodes.len() as f64)).collect()
}
