//! The probability of each commit to be the step, and what to read next, in measured mode.
//!
//! The model: readings of kernels without the step scatter about one level, those with it about another.
//! Levels, spreads and the share of boots that stray are unknown. `docs/statistics.md` has the formulas and
//! their error rates.

mod choice;
mod classes;
mod levels;
#[cfg(test)]
mod tests;

use fixedbitset::FixedBitSet;

use crate::{History, Node};
use classes::Classes;
use levels::{Levels, Side};

/// Readings of each end before any other kernel is read.
const FIRST: usize = 3;
/// The share of readings that each side gets so that its level is known.
const REFINING: f64 = 1.0 / 8.0;
/// While the probability that the ends differ is smaller, only the ends are read.
const START: f64 = 0.5;
/// The least probability with which a kernel is on a side.
const SURE: f64 = 0.98;
/// The largest number of kernels for which the search computes what a reading would tell.
const CANDIDATES: usize = 12;
/// The next reading is not predicted for classes below this probability.
const UNLIKELY: f64 = 1e-4;
/// Two steps are reported if they are this many times as likely as one. The inverse bounds the rate of false alarms.
const MISFIT: f64 = 100.0;
/// How many commits are tried as one of two steps.
const STEPS: usize = 4;

/// A range of commits and its readings.
pub struct Noisy<'a> {
    /// The range that is searched.
    pub history: &'a History,
    /// Of each boot that counts, the kernel and the figure. Figures that are not finite are ignored.
    pub readings: &'a [(Node, f64)],
    /// Commits whose kernel cannot be read. Each may be the step.
    pub unreadable: &'a FixedBitSet,
    /// The weight of each commit before any reading, in any unit. If the weights are unusable, all commits are alike.
    pub prior: &'a [f64],
    /// The cost of a reading of a kernel, in any unit.
    pub cost: &'a dyn Fn(Node) -> f64,
    /// The probability at which the search ends.
    pub confidence: f64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Read one more boot of this kernel.
    Read(Node),
    /// One of these commits is the step, the likeliest first. No readable kernel can tell them apart.
    Found(Vec<Node>),
    /// Two steps explain the readings better than one.
    Misfit,
    /// Both ends have the same level.
    NoDifference,
}

/// What the readings say.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The probability of each commit to be the step.
    pub posterior: Vec<f64>,
    /// The probability that the ends differ; one half before any reading.
    pub differs: f64,
    /// What the search does next.
    pub next: Next,
    /// About how many more readings the search needs.
    pub left: usize,
}

impl Weighed {
    /// The smallest set of commits that holds the step with the probability `share`, the likeliest first.
    pub fn likeliest(&self, share: f64) -> Vec<(Node, f64)> {
        smallest(&self.posterior, share)
    }
}

fn smallest(posterior: &[f64], share: f64) -> Vec<(Node, f64)> {
    let mut commits: Vec<(Node, f64)> = posterior.iter().copied().enumerate().skip(1).collect();
    commits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut sum = 0.0;
    let enough = commits.iter().position(|(_, probability)| {
        sum += probability;
        sum >= share
    });
    commits.truncate(enough.map_or(commits.len(), |last| last + 1));
    commits
}

/// What the readings say of the commits.
struct Evidence {
    levels: Levels,
    classes: Classes,
    /// The classes, the likeliest first.
    weights: Vec<Weight>,
    /// The log-likelihood of all readings with one step.
    one_step: f64,
}

/// A class, with its probability before and after the readings, and its readings on each side.
struct Weight {
    class: usize,
    prior: f64,
    probability: f64,
    sides: [Side; 2],
}

impl Noisy<'_> {
    /// Weighs the readings. The result depends on the inputs alone.
    ///
    /// # Panics
    /// When the history has no commit after the good end.
    pub fn weigh(&self) -> Weighed {
        assert!(self.history.len() > 1, "a range has a commit after its good end");
        let (read, values) = self.by_kernel();
        let prior = self.sound_prior();
        if read.is_empty() {
            let left = self.estimate(&prior, 0.5);
            let next = self.end([0, 0]).map_or_else(|| self.stuck(&prior), Next::Read);
            return Weighed { posterior: prior, differs: 0.5, next, left };
        }
        let evidence = Evidence::new(self.history, &read, &values, &prior);
        let posterior = evidence.posterior(&prior);
        // One level and two levels are equally likely before the readings.
        let differs = 1.0 / (1.0 + (evidence.levels.one_level() - evidence.one_step).exp());
        let (next, bits) = self.next(&read, &values, evidence, &posterior, differs);
        let left = if let Next::Read(_) = next { self.estimate(&posterior, bits) } else { 0 };
        Weighed { posterior, differs, next, left }
    }

    /// What the search does next, and about how many bits a reading tells.
    fn next(
        &self,
        read: &[Node],
        values: &[Vec<f64>],
        mut evidence: Evidence,
        posterior: &[f64],
        differs: f64,
    ) -> (Next, f64) {
        let count =
            |end| read.iter().position(|node| *node == end).map_or(0, |at| values[at].len());
        let counts = [0, self.history.bad()].map(count);
        if counts.iter().any(|count| *count < FIRST)
            && let Some(end) = self.end(counts)
        {
            return (Next::Read(end), 0.3);
        }
        let mut figures = values.iter().flatten();
        let first = figures.next();
        if figures.all(|figure| Some(figure) == first) || differs < 1.0 - self.confidence {
            return (Next::NoDifference, 0.0);
        }
        if evidence.misfit() {
            return (Next::Misfit, 0.0);
        }
        if differs >= self.confidence
            && let Some(found) = self.found(&evidence, posterior)
        {
            return (Next::Found(found), 0.0);
        }
        let high = self.probabilities_high(posterior);
        evidence.weights.retain(|weight| weight.probability > UNLIKELY);
        let best = choice::best(self, &evidence, posterior, &high);
        let refine = refining(read, values, &high, differs).and_then(|counts| self.end(counts));
        let bits = best.map_or(0.5, |best| best.1);
        // If no kernel tells commits apart, only the ends remain to be told apart.
        let doubt = || (differs < self.confidence).then(|| self.end(counts)).flatten();
        match refine.or(best.map(|best| best.0)).or_else(doubt) {
            Some(node) => (Next::Read(node), bits),
            None => (self.stuck(posterior), bits),
        }
    }

    /// The kernels that were read, in the order of the history, and their figures.
    fn by_kernel(&self) -> (Vec<Node>, Vec<Vec<f64>>) {
        let mut of_node = vec![Vec::new(); self.history.len()];
        for (node, figure) in self.readings {
            if figure.is_finite() && figure.abs() < 1e150 && *node < of_node.len() {
                of_node[*node].push(*figure);
            }
        }
        of_node.into_iter().enumerate().filter(|(_, figures)| !figures.is_empty()).unzip()
    }

    /// Weights that sum to 1. The good end has none.
    fn sound_prior(&self) -> Vec<f64> {
        let sound = |weight: &f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
        let mut prior: Vec<f64> = self.prior.iter().map(sound).collect();
        prior.resize(self.history.len(), 0.0);
        prior[0] = 0.0;
        let most = prior.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            prior.iter_mut().for_each(|weight| *weight /= most);
        } else {
            prior[1..].fill(1.0);
        }
        let sum: f64 = prior.iter().sum();
        prior.iter_mut().for_each(|weight| *weight /= sum);
        prior
    }

    fn readable(&self, node: Node) -> bool {
        !self.unreadable.contains(node)
    }

    /// The end with fewer readings, if it is readable.
    fn end(&self, counts: [usize; 2]) -> Option<Node> {
        let end = if counts[0] <= counts[1] { 0 } else { self.history.bad() };
        self.readable(end).then_some(end)
    }

    /// The answer if nothing can be read.
    fn stuck(&self, posterior: &[f64]) -> Next {
        let found = smallest(posterior, self.confidence);
        Next::Found(found.into_iter().map(|(node, _)| node).collect())
    }

    /// The probability of each kernel to have the step.
    fn probabilities_high(&self, posterior: &[f64]) -> Vec<f64> {
        let mut high = vec![0.0; posterior.len()];
        for node in 1..posterior.len() {
            let parents = self.history.parents(node);
            let own: f64 = match parents {
                [_] => posterior[node],
                _ => {
                    let own = self.history.between(parents[0], node);
                    own.ones().map(|commit| posterior[commit]).sum()
                }
            };
            high[node] = high[parents[0]] + own;
        }
        high
    }

    /// The commits that no readable kernel tells apart, if their probabilities together reach the confidence.
    fn found(&self, evidence: &Evidence, posterior: &[f64]) -> Option<Vec<Node>> {
        let Evidence { classes, weights, .. } = evidence;
        let class = weights.first().filter(|first| first.probability >= self.confidence)?.class;
        let mut left: Vec<Node> =
            (1..posterior.len()).filter(|commit| classes.of[*commit] == class).collect();
        left.sort_by(|a, b| posterior[*b].total_cmp(&posterior[*a]));
        let mut skipped = 0.0;
        while let Some(first) = left.first().copied()
            && skipped <= 1.0 - self.confidence
        {
            let mut alike = FixedBitSet::with_capacity(posterior.len());
            alike.extend(left.iter().copied());
            for node in (0..posterior.len()).filter(|node| self.readable(*node)) {
                match self.history.has(node, first) {
                    true => alike.intersect_with(self.history.ancestors(node)),
                    false => alike.difference_with(self.history.ancestors(node)),
                }
            }
            let mass: f64 = alike.ones().map(|commit| posterior[commit]).sum();
            if mass >= self.confidence {
                let mut sum = 0.0;
                let enough = |commit: &Node| {
                    let more = sum < self.confidence;
                    sum += posterior[*commit];
                    more
                };
                left.retain(|commit| alike.contains(*commit));
                return Some(left.into_iter().take_while(enough).collect());
            }
            skipped += mass;
            left.retain(|commit| !alike.contains(*commit));
        }
        None
    }

    /// About how many readings remain if each tells `bits` bits.
    fn estimate(&self, posterior: &[f64], bits: f64) -> usize {
        let entropy: f64 = posterior.iter().filter(|it| **it > 0.0).map(|it| -it * it.log2()).sum();
        (entropy / bits.max(0.01)).ceil() as usize
    }
}

impl Evidence {
    fn new(history: &History, read: &[Node], values: &[Vec<f64>], prior: &[f64]) -> Self {
        let classes = Classes::new(history, read);
        let mut of_class = vec![0.0; classes.has.len()];
        for (class, prior) in classes.of.iter().zip(prior) {
            of_class[*class] += prior;
        }
        let levels = Levels::new(values);
        let sides = levels.sides(&classes.has);
        let log = |[low, high]: &[Side; 2]| levels.together(low, high, None);
        let logs: Vec<f64> = sides.iter().map(log).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let of_class = of_class.into_iter().zip(logs).zip(sides).enumerate();
        let mut weights: Vec<Weight> = of_class
            .map(|(class, ((prior, log), sides))| Weight {
                class,
                prior,
                probability: prior * (log - top).exp(),
                sides,
            })
            .collect();
        let sum: f64 = weights.iter().map(|weight| weight.probability).sum();
        weights.iter_mut().for_each(|weight| weight.probability /= sum);
        weights.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        Self { levels, classes, weights, one_step: top + sum.ln() }
    }

    /// The probability of each commit to be the step.
    fn posterior(&self, prior: &[f64]) -> Vec<f64> {
        let mut factors = vec![0.0; self.weights.len()];
        for weight in self.weights.iter().filter(|weight| weight.prior > 0.0) {
            factors[weight.class] = weight.probability / weight.prior;
        }
        prior.iter().zip(&self.classes.of).map(|(prior, class)| prior * factors[*class]).collect()
    }

    /// Whether two steps explain the readings much better than one. One of the two is a likely single step. This
    /// restriction can only make the evidence for two steps smaller.
    fn misfit(&self) -> bool {
        let has = |weight: &Weight| &self.classes.has[weight.class];
        let within = |a: &Weight, b: &Weight| has(a).iter().zip(has(b)).all(|(a, b)| !a || *b);
        let mut ratio = 0.0;
        for (number, first) in self.weights.iter().take(STEPS).enumerate() {
            // Each pair is tried once.
            for (other, second) in self.weights.iter().enumerate().skip(number) {
                let (early, late) = match (within(second, first), within(first, second)) {
                    (true, _) => (first, second),
                    (_, true) => (second, first),
                    // Steps on two branches are left out. This also makes the evidence smaller.
                    _ => continue,
                };
                let between = self.levels.between(&early.sides[1], &late.sides[1]);
                let [low, high] = [&early.sides[0], &late.sides[1]];
                let two = self.levels.together(low, high, Some(&between));
                let orders = if number == other { 1.0 } else { 2.0 };
                ratio += orders * first.prior * second.prior * (two - self.one_step).exp();
            }
        }
        ratio > MISFIT
    }
}

/// How often each side was read, if one was read too seldom to know its level.
fn refining(read: &[Node], values: &[Vec<f64>], high: &[f64], differs: f64) -> Option<[usize; 2]> {
    let mut counts = [0; 2];
    let mut all = 0;
    for (node, values) in read.iter().zip(values) {
        all += values.len();
        if high[*node] < 1.0 - SURE {
            counts[0] += values.len();
        } else if high[*node] > SURE {
            counts[1] += values.len();
        }
    }
    let few = counts.iter().any(|count| (*count as f64) < REFINING * all as f64);
    (few || differs < START).then_some(counts)
}
