//! Splits a search in measured mode into two halves if the readings do not fit one step.

use fixedbitset::FixedBitSet;

use crate::posterior::{self, Noisy, Weighed};
use crate::{History, Node, level};

/// A kernel is on a side of a step with at least this probability.
const SURE: f64 = 0.98;

/// A search in measured mode.
pub struct Measured<'a> {
    /// The range that is searched.
    pub history: &'a History,
    /// The commit of each boot and its figure.
    pub readings: &'a [(Node, f64)],
    /// Commits whose kernel cannot be read.
    pub unreadable: &'a FixedBitSet,
    /// The cost of a reading of a commit, in any unit.
    pub cost: &'a dyn Fn(Node) -> f64,
    /// The probability that an answer must have.
    pub confidence: f64,
}

/// What a search asks for, or its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// One more boot of a commit.
    Read {
        /// The commit to boot.
        node: Node,
        /// The commits that hold the step with the wanted probability if there is only one step, the likeliest first.
        left: Vec<(Node, f64)>,
    },
    /// The steps, in the order of the history; none if there is none.
    Found(Vec<Likely>),
}

/// A change of the figure, at a commit that is likely.
#[derive(Clone, Debug, PartialEq)]
pub struct Likely {
    /// The commits that hold the step with the wanted probability, the likeliest first, each with its probability.
    pub commits: Vec<(Node, f64)>,
    /// The ends of the part of the history in which it was searched.
    pub ends: [Node; 2],
    /// The mean figure of the commits that surely lack it, and of those that surely have it.
    pub levels: [f64; 2],
}

/// A part of the history, with its readings weighed.
struct Part {
    weighed: Weighed,
    history: History,
    /// The node in the whole history of each node of the part.
    nodes: Vec<Node>,
}

impl Part {
    fn ends(&self) -> [Node; 2] {
        [self.nodes[0], self.nodes[self.history.bad()]]
    }
}

impl Measured<'_> {
    /// What to read next, or the answer; and the probability of each commit to be a step.
    pub fn next(&self) -> (Next, Vec<f64>) {
        let whole = self.weighed(0, self.history.bad());
        let left = whole.weighed.likeliest(self.confidence);
        let mut posterior = vec![0.0; self.history.len()];
        let next = match self.steps(&whole, &mut posterior) {
            Ok(steps) => Next::Found(steps),
            Err(node) => Next::Read { node, left },
        };
        (next, posterior)
    }

    /// The steps in a part, or the commit to read. Sets the probabilities of the part's commits, unless it has no
    /// step or is divided: the probabilities for one step do not hold then.
    fn steps(&self, part: &Part, posterior: &mut [f64]) -> Result<Vec<Likely>, Node> {
        let middle = match part.weighed.next {
            posterior::Next::NoDifference => return Ok(Vec::new()),
            posterior::Next::Misfit => {
                let [low, high] = part.ends();
                self.middle(low, high).map(|middle| [low, middle, high])
            }
            _ => None,
        };
        if let Some([low, middle, high]) = middle {
            let mut steps = self.steps(&self.weighed(low, middle), posterior)?;
            steps.extend(self.steps(&self.weighed(middle, high), posterior)?);
            return Ok(steps);
        }
        for (node, probability) in part.nodes.iter().zip(&part.weighed.posterior).skip(1) {
            posterior[*node] = *probability;
        }
        match part.weighed.next {
            posterior::Next::Read(node) => Err(part.nodes[node]),
            _ => Ok(vec![self.likely(part)]),
        }
    }

    /// Weighs the readings between two commits.
    fn weighed(&self, low: Node, high: Node) -> Part {
        let (history, nodes) = self.history.part(low, high);
        let mut unreadable = FixedBitSet::with_capacity(nodes.len());
        // A branch that forked before `low` lacks steps before `low`. Its levels are not those of the part.
        let is_lost =
            |it: &usize| self.unreadable.contains(nodes[*it]) || !self.history.has(nodes[*it], low);
        unreadable.extend((0..nodes.len()).filter(is_lost));
        let place = |(node, figure): &(Node, f64)| {
            let place = nodes.iter().position(|it| it == node)?;
            (!unreadable.contains(place)).then_some((place, *figure))
        };
        let readings: Vec<(Node, f64)> = self.readings.iter().filter_map(place).collect();
        let noisy = Noisy {
            history: &history,
            readings: &readings,
            unreadable: &unreadable,
            prior: &[],
            cost: &|node| (self.cost)(nodes[node]),
            confidence: self.confidence,
        };
        Part { weighed: noisy.weigh(), history, nodes }
    }

    fn likely(&self, part: &Part) -> Likely {
        let Part { weighed, history, nodes } = part;
        let mut sides = [Vec::new(), Vec::new()];
        for (node, figure) in self.readings {
            let Some(place) = nodes.iter().position(|it| it == node) else { continue };
            let has = history.ancestors(place).ones().map(|commit| weighed.posterior[commit]);
            match has.sum::<f64>() {
                SURE.. => sides[1].push(*figure),
                share if share <= 1.0 - SURE => sides[0].push(*figure),
                _ => {}
            }
        }
        let commits = weighed.likeliest(self.confidence).into_iter();
        Likely {
            commits: commits.map(|(commit, share)| (nodes[commit], share)).collect(),
            ends: part.ends(),
            levels: sides.map(|side| level(&side).unwrap_or(f64::NAN)),
        }
    }

    /// The readable commit in the middle of the line of first parents.
    fn middle(&self, low: Node, high: Node) -> Option<Node> {
        let line = self.history.line(high, &self.history.between(low, high));
        let inside = &line[1..line.len() - 1];
        let places = (0..inside.len()).filter(|place| !self.unreadable.contains(inside[*place]));
        places.min_by_key(|place| place.abs_diff(inside.len() / 2)).map(|place| inside[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a range in which each commit's boots scatter about 100 plus its steps, with a standard deviation of
    /// 1.
    fn search(commits: usize, steps: &[(Node, f64)]) -> (Vec<Likely>, Vec<f64>, usize) {
        search_in(&History::linear(commits), steps, &[])
    }

    /// Reads the commits in `read` before the search chooses any.
    fn search_in(
        history: &History,
        steps: &[(Node, f64)],
        read: &[Node],
    ) -> (Vec<Likely>, Vec<f64>, usize) {
        let unreadable = FixedBitSet::with_capacity(history.len());
        let mut random = fastrand::Rng::with_seed(7);
        let mut readings: Vec<(Node, f64)> = Vec::new();
        let mut figure = |node: Node| {
            // The sum of twelve uniform deviates less six is nearly normal.
            let noise: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let steps = steps.iter().filter(|(step, _)| history.has(node, *step));
            100.0 + steps.map(|step| step.1).sum::<f64>() + noise
        };
        readings.extend(read.iter().map(|node| (*node, figure(*node))));
        loop {
            let measured = Measured {
                history,
                readings: &readings,
                unreadable: &unreadable,
                cost: &|_| 1.0,
                confidence: 0.95,
            };
            match measured.next() {
                (Next::Found(found), posterior) => return (found, posterior, readings.len()),
                (Next::Read { node, .. }, _) => readings.push((node, figure(node))),
            }
            assert!(readings.len() < 400, "{steps:?}");
        }
    }

    #[test]
    fn one_step_is_found_with_its_levels() {
        let (found, posterior, read) = search(64, &[(20, 4.0)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].commits[0], (20, posterior[20]));
        assert!((posterior.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(found[0].commits[0].1 > 0.9 && read < 60, "{read} {found:?}");
        assert!((found[0].levels[1] - found[0].levels[0] - 4.0).abs() < 1.0, "{found:?}");
    }

    /// The commits of the branch lack the steps that precede the half on the line.
    #[test]
    fn a_branch_that_forked_before_a_half_is_no_step_in_it() {
        // 0 - 1 - ... - 20 - 51 - ... - 60
        //  \- 21 - ... - 50 -/
        let mut parents: Vec<Vec<Node>> =
            (0..=60).map(|node: usize| node.checked_sub(1).into_iter().collect()).collect();
        (parents[21], parents[51]) = (vec![0], vec![20, 50]);
        let (found, posterior, read) = search_in(
            &History::new(parents),
            &[(3, 6.0), (8, 6.0)],
            &[0, 60, 30, 40, 50].repeat(6),
        );
        let commits: Vec<Node> = found.iter().map(|step| step.commits[0].0).collect();
        assert_eq!(commits, [3, 8], "{read} {found:?}");
        assert!(posterior[21..].iter().sum::<f64>() < 0.05);
    }

    #[test]
    fn two_steps_are_searched_in_halves() {
        let (found, posterior, read) = search(64, &[(10, 6.0), (50, 6.0)]);
        let commits: Vec<Node> = found.iter().map(|step| step.commits[0].0).collect();
        assert_eq!(commits, [10, 50], "{read} {found:?}");
        // Each half has one step.
        assert!((posterior.iter().sum::<f64>() - 2.0).abs() < 1e-9);
        assert!(posterior[10] > 0.9 && posterior[50] > 0.9);
    }
}
