//! The search in exact mode, in which only luck blurs a reading.
//!
//! At first one step is assumed, and each reading halves the commits that can be the step, as `git bisect` does. If
//! the range has two kinds of changes, the commit between them is read first. If a reading has neither the level of
//! the good end nor that of the bad end, there are more steps. Then the line of first parents is divided until each
//! part has no change beyond luck or is a single commit. A merge that holds a step is searched in the same way.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use crate::levels::{ExactLevels, Stop};
use crate::{History, Node};

/// Smaller shares of the whole change are not searched for, unless all steps are wanted.
const SHARE: f64 = 0.1;

/// A search in exact mode.
#[derive(Clone, Copy, Debug)]
pub struct Exact<'a> {
    /// The range that is searched.
    pub history: &'a History,
    /// The figures of each commit, one for each seed.
    pub readings: &'a BTreeMap<Node, Vec<f64>>,
    /// Commits that cannot be read: they do not build, or no boot of them completes.
    pub unreadable: &'a FixedBitSet,
    /// Commits that an earlier search booted, with numbers in the order of these boots. They often need no new boots.
    pub kept: &'a BTreeMap<Node, i64>,
    /// The commit that is read first after the ends. The commits after it change another kind of thing.
    pub parting: Option<Node>,
    /// Smaller changes count as none.
    pub least: f64,
    /// The number of seeds of each end.
    pub seeds: usize,
    /// Whether every step beyond luck is searched, not only those with at least a tenth of the change.
    pub all: bool,
}

/// What a search asks for, or its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Read this many seeds of this commit.
    Read(Node, usize),
    /// The ends do not differ beyond luck.
    NoDifference,
    /// Whether these commits differ is not known, even with the most seeds.
    Hidden(Node, Node),
    /// This end cannot be read.
    NoEnd(Node),
    /// The steps, in the order of the history.
    Found(Vec<Step>),
}

/// A commit at which the figure changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The commits that can be the cause: one, or several that cannot be told apart, because some of them cannot be
    /// read, or because they are a merge and its branch, and the branch has another change than the merge.
    pub commits: Vec<Node>,
    /// The last commit that was read before the step.
    pub before: Node,
    /// The first commit that was read after the step.
    pub after: Node,
    /// By how much the figure rises; negative if it falls.
    pub change: f64,
}

/// The commits of which one is the step, if there is only one.
struct Range {
    low: Node,
    high: Node,
    /// These do not include `low`.
    commits: FixedBitSet,
}

/// The side of a step on which a commit lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Low,
    High,
    Neither,
}

impl Exact<'_> {
    /// The commits that can still be the step after the readings so far. `None` if the readings do not fit one step.
    pub fn left(&self) -> Option<Vec<Node>> {
        let mut range = self.range();
        if range.commits.count_ones(..) > 1 {
            // This narrows the range until a reading is missing.
            if let Ok(None) = self.single(&mut range) {
                return None;
            }
        }
        Some(range.commits.ones().collect())
    }

    /// What to read next, or the answer.
    pub fn next(&self) -> Next {
        match self.search() {
            Ok(next) => next,
            Err(Stop::Read(node, seeds)) => Next::Read(node, seeds),
            Err(Stop::Hidden(one, other)) => Next::Hidden(one, other),
        }
    }

    fn search(&self) -> Result<Next, Stop> {
        let (low, high) = (0, self.history.bad());
        for end in [low, high] {
            if self.unreadable.contains(end) {
                return Ok(Next::NoEnd(end));
            }
            if self.readings.get(&end).is_none_or(|values| values.len() < self.seeds) {
                return Err(Stop::Read(end, self.seeds));
            }
        }
        if !self.levels().differ(low, high)? {
            if self.levels().change(low, high)?.abs() <= self.least {
                return Ok(Next::NoDifference);
            }
            return match self.levels().more(low, high) {
                Stop::Hidden(..) => Ok(Next::NoDifference),
                more => Err(more),
            };
        }
        let mut steps = Vec::new();
        let single = if self.all { None } else { self.single(&mut self.range())? };
        match single {
            Some(step) => steps.push(step),
            None => self.divide(&self.range(), &mut steps)?,
        }
        Ok(Next::Found(steps))
    }

    fn range(&self) -> Range {
        let (low, high) = (0, self.history.bad());
        Range { low, high, commits: self.history.between(low, high) }
    }

    fn levels(&self) -> ExactLevels<'_> {
        ExactLevels { readings: self.readings, least: self.least, ends: self.seeds }
    }

    /// Assumes one step, and halves the commits that can be it. `None` if a reading does not fit one step.
    fn single(&self, range: &mut Range) -> Result<Option<Step>, Stop> {
        let ends = [range.low, range.high];
        let mut parting = self.parting(|node| range.commits.contains(node) && node != range.high);
        while range.commits.count_ones(..) > 1 {
            let next = parting.take().or_else(|| self.halving(&range.commits));
            let Some(node) = next else { break };
            let own = self.history.ancestors(node);
            match self.side(node, ends)? {
                At::Low => {
                    range.commits.difference_with(own);
                    range.low = node;
                }
                At::High => {
                    range.commits.intersect_with(own);
                    range.high = node;
                }
                At::Neither => return Ok(None),
            }
        }
        let commits: Vec<Node> = range.commits.ones().collect();
        if let [commit] = commits[..] {
            return self.verified(commit, ends, range);
        }
        let change = self.levels().change(range.low, range.high)?;
        Ok(Some(Step { commits, before: range.low, after: range.high, change }))
    }

    /// The commit between two kinds of changes, if it can be read and fulfils `is_wanted`.
    fn parting(&self, is_wanted: impl Fn(Node) -> bool) -> Option<Node> {
        self.parting.filter(|node| !self.unreadable.contains(*node) && is_wanted(*node))
    }

    /// The step at a commit, if the commit and its parent have the levels of the ends. `None` if the change is
    /// another one.
    fn verified(&self, commit: Node, ends: [Node; 2], range: &Range) -> Result<Option<Step>, Stop> {
        let is_read = |node: Node| !self.unreadable.contains(node);
        let parents = self.history.parents(commit);
        let mut before = range.low;
        for parent in parents.iter().copied().filter(|node| is_read(*node)) {
            if self.side(parent, ends)? != At::Low {
                return Ok(None);
            }
            before = parent;
        }
        if is_read(parents[0]) {
            before = parents[0];
        }
        let after = if is_read(commit) { commit } else { range.high };
        if self.side(after, ends)? != At::High {
            return Ok(None);
        }
        let change = self.levels().change(before, after)?;
        Ok(Some(Step { commits: vec![commit], before, after, change }))
    }

    /// The commit whose reading halves `commits` best. A commit that was read or kept is preferred, if it surely
    /// rules out at least half as many. Of the kept ones the first is taken: an interrupted search finds its own
    /// boots there, and takes the same way again.
    fn halving(&self, commits: &FixedBitSet) -> Option<Node> {
        let all = commits.count_ones(..);
        let share = |node: Node| {
            let own = self.history.ancestors(node).intersection_count(commits);
            own.min(all - own)
        };
        let nodes = commits.ones().filter(|node| !self.unreadable.contains(*node));
        let ranked = nodes.map(|node| (share(node), node)).filter(|it| it.0 > 0);
        let ranked: Vec<(usize, Node)> = ranked.collect();
        let most = ranked.iter().map(|it| it.0).max()?;
        let rank = |(share, node): &(usize, Node)| {
            let has_enough = 2 * share >= most;
            let is_read = has_enough && self.readings.contains_key(node);
            let kept = self.kept.get(node).filter(|_| has_enough);
            (is_read, kept.map(|number| Reverse(*number)), *share, Reverse(*node))
        };
        ranked.into_iter().max_by_key(rank).map(|it| it.1)
    }

    /// The end of a step whose level a commit has.
    fn side(&self, node: Node, [low, high]: [Node; 2]) -> Result<At, Stop> {
        if node == low || node == high {
            return Ok(if node == low { At::Low } else { At::High });
        }
        let levels = self.levels();
        // If other commits of the range change the figure a little, the side is still clear.
        let slack = 0.05 * levels.change(low, high)?.abs();
        let is_near =
            |end| Ok(levels.change(end, node)?.abs() <= levels.floor(end, node)?.max(slack));
        match (is_near(low)?, is_near(high)?) {
            (true, false) => Ok(At::Low),
            (false, true) => Ok(At::High),
            (false, false) => Ok(At::Neither),
            (true, true) => Err(levels.more(node, low)),
        }
    }

    /// Finds the steps along the first parents of a range.
    fn divide(&self, range: &Range, steps: &mut Vec<Step>) -> Result<(), Stop> {
        let mut line = self.history.line(range.high, &range.commits);
        // The first commit of the line is outside the range. Its level is that of `range.low`, unless it forked before.
        line[0] = range.low;
        self.divide_line(&line, steps)
    }

    fn divide_line(&self, line: &[Node], steps: &mut Vec<Step>) -> Result<(), Stop> {
        let (low, high) = (line[0], line[line.len() - 1]);
        let levels = self.levels();
        let change = levels.change(low, high)?;
        let whole = levels.change(0, self.history.bad())?;
        if !self.all && change.abs() < SHARE * whole.abs() {
            return Ok(());
        }
        if !levels.differ(low, high)? {
            // More seeds are read only where they can reveal a step of interest.
            if levels.floor(low, high)? > SHARE * whole.abs() {
                return Err(levels.more(low, high));
            }
            return Ok(());
        }
        let inside = 1..line.len() - 1;
        let parting = self.parting(|node| line[inside.clone()].contains(&node));
        let middle = match parting {
            Some(node) => line.iter().position(|it| *it == node),
            None => inside
                .filter(|place| !self.unreadable.contains(line[*place]))
                .min_by_key(|place| place.abs_diff(line.len() / 2)),
        };
        match middle {
            Some(middle) => {
                self.divide_line(&line[..=middle], steps)?;
                self.divide_line(&line[middle..], steps)
            }
            None => self.edge(line, change, steps),
        }
    }

    /// The step between two commits of a line, between which no commit is readable.
    fn edge(&self, line: &[Node], change: f64, steps: &mut Vec<Step>) -> Result<(), Stop> {
        let (before, after) = (line[0], line[line.len() - 1]);
        if let ([_, merge], [parent, tip]) = (line, self.history.parents(after))
            && let Some(inner) = self.branch(*merge, [*parent, *tip], change)?
        {
            steps.extend(inner);
            return Ok(());
        }
        let commits = self.history.between(before, after);
        let commits = match (line.len(), self.history.parents(after).len()) {
            (2, 1) => vec![after],
            _ => commits.ones().collect(),
        };
        steps.push(Step { commits, before, after, change });
        Ok(())
    }

    /// Finds the steps in the branch that a merge brought, or the merge itself if neither side has the change. `None`
    /// if the change of the branch is not that of the merge.
    fn branch(
        &self,
        merge: Node,
        [parent, tip]: [Node; 2],
        change: f64,
    ) -> Result<Option<Vec<Step>>, Stop> {
        if self.unreadable.contains(tip) {
            return Ok(None);
        }
        let mut common = self.history.ancestors(parent).clone();
        common.intersect_with(self.history.ancestors(tip));
        let fork = common.maximum().unwrap_or(0);
        let mut commits = self.history.between(parent, merge);
        commits.remove(merge);
        if self.unreadable.contains(fork) || commits.is_clear() {
            return Ok(None);
        }
        let levels = self.levels();
        if !levels.differ(fork, tip)? {
            return Ok(Some(vec![Step {
                commits: vec![merge],
                before: parent,
                after: merge,
                change,
            }]));
        }
        let missing = (levels.change(fork, tip)? - change).abs();
        if missing > 2.0 * levels.floor(fork, tip)?.max(0.05 * change.abs()) {
            return Ok(None);
        }
        let mut range = Range { low: fork, high: tip, commits: commits.clone() };
        if let Some(step) = self.single(&mut range)? {
            return Ok(Some(vec![step]));
        }
        let mut steps = Vec::new();
        self.divide(&Range { low: fork, high: tip, commits }, &mut steps)?;
        Ok(Some(steps))
    }
}

#[cfg(test)]
mod tests;
