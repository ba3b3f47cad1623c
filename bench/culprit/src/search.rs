//! Searches in simulated ranges: ours, and the search of `git bisect run`.

use culprit::posterior::Next;
use culprit::{Measured, Node, Noisy, measured};
use fastrand::Rng;

use crate::world::World;

/// The end of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A step is among the commits that it named.
    Right,
    Wrong,
    Misfit,
    NoDifference,
    /// It needed more readings than are allowed.
    Budget,
}

pub struct Search {
    pub outcome: Outcome,
    pub readings: usize,
    /// The probability of the commits that it named.
    pub stated: f64,
    /// Whether the commit to which it first gave a probability of 93 to 97 % was a step.
    pub near: Option<bool>,
    pub minutes: f64,
}

/// The limits and the knowledge of a search.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Readings of each end that do not count.
    pub free: usize,
    /// The most readings.
    pub most: usize,
    /// Minutes of a build if a boot takes one, and whether the search knows them.
    pub build: f64,
    pub knows: bool,
}

const CONFIDENCE: f64 = 0.95;

pub fn search(world: &World, rules: Rules, rng: &mut Rng) -> Search {
    let bad = world.history.bad();
    let mut readings: Vec<(Node, f64)> = Vec::new();
    for _ in 0..rules.free {
        readings.extend([0, bad].map(|end| (end, world.read(end, rng))));
    }
    let prior = vec![1.0; world.history.len()];
    let mut built = vec![false; world.history.len()];
    let mut found =
        Search { outcome: Outcome::Budget, readings: 0, stated: 0.0, near: None, minutes: 0.0 };
    while found.readings < rules.most {
        let cost = |node: Node| 1.0 + if built[node] || !rules.knows { 0.0 } else { rules.build };
        let weighed = Noisy {
            history: world.history,
            readings: &readings,
            unreadable: &world.unreadable,
            prior: &prior,
            cost: &cost,
            confidence: CONFIDENCE,
        }
        .weigh();
        let [(likeliest, probability)] = weighed.likeliest(0.0)[..] else { return found };
        if found.near.is_none() && (0.93..=0.97).contains(&probability) {
            found.near = Some(world.is_step(likeliest));
        }
        match weighed.next {
            Next::Read(node) => {
                readings.push((node, world.read(node, rng)));
                found.minutes += 1.0 + if built[node] { 0.0 } else { rules.build };
                built[node] = true;
                found.readings += 1;
            }
            Next::Found(commits) => {
                found.stated = commits.iter().map(|commit| weighed.posterior[*commit]).sum();
                let right = commits.iter().any(|commit| world.is_step(*commit));
                found.outcome = if right { Outcome::Right } else { Outcome::Wrong };
                return found;
            }
            Next::Misfit => {
                found.outcome = Outcome::Misfit;
                return found;
            }
            Next::NoDifference => {
                found.outcome = Outcome::NoDifference;
                return found;
            }
        }
    }
    found
}

/// The answer of a search that divides the range where one step does not fit.
pub struct Steps {
    pub readings: usize,
    /// The number of steps that it named, and the number of these that were steps.
    pub named: usize,
    pub right: usize,
    /// The number of the range's steps that it named.
    pub found: usize,
    /// Whether it ended within the allowed readings.
    pub ended: bool,
}

pub fn all_steps(world: &World, rules: Rules, rng: &mut Rng) -> Steps {
    let mut readings: Vec<(Node, f64)> = Vec::new();
    while readings.len() < rules.most {
        let search = Measured {
            history: world.history,
            readings: &readings,
            unreadable: &world.unreadable,
            cost: &|_| 1.0,
            confidence: CONFIDENCE,
        };
        match search.next().0 {
            measured::Next::Read { node, .. } => readings.push((node, world.read(node, rng))),
            measured::Next::Found(steps) => {
                let named: Vec<Vec<Node>> = steps
                    .iter()
                    .map(|step| step.commits.iter().map(|(commit, _)| *commit).collect())
                    .collect();
                let is_right = |set: &&Vec<Node>| set.iter().any(|commit| world.is_step(*commit));
                let is_found =
                    |(step, _): &&(Node, f64)| named.iter().any(|set| set.contains(step));
                return Steps {
                    readings: readings.len(),
                    named: named.len(),
                    right: named.iter().filter(is_right).count(),
                    found: world.steps.iter().filter(is_found).count(),
                    ended: true,
                };
            }
        }
    }
    Steps { readings: readings.len(), named: 0, right: 0, found: 0, ended: false }
}

/// `git bisect run` with a script that reads a kernel `each` times and compares the mean with the middle
/// between both levels, which it knows.
pub fn git_bisect(world: &World, each: usize, rng: &mut Rng) -> Search {
    let history = world.history;
    let middle = 100.0 + world.steps.iter().map(|step| step.1).sum::<f64>() / 2.0;
    let mut suspects = history.ancestors(history.bad()).clone();
    suspects.remove(0);
    let mut readings = 0;
    let mut skipped = world.unreadable.clone();
    loop {
        let count = suspects.count_ones(..);
        // git takes the commit that halves the suspects best.
        let halves = |node: &Node| {
            let inside = history.ancestors(*node).intersection_count(&suspects);
            inside.min(count - inside)
        };
        let next = suspects
            .ones()
            .filter(|node| !skipped.contains(*node))
            .map(|node| (halves(&node), node))
            .max();
        let Some((1.., node)) = next else { break };
        let sum: f64 = (0..each).map(|_| world.read(node, rng)).sum();
        readings += each;
        if sum / each as f64 > middle {
            suspects.intersect_with(history.ancestors(node));
        } else {
            suspects.difference_with(history.ancestors(node));
        }
        skipped.insert(node);
    }
    let right = suspects.ones().any(|commit| world.is_step(commit));
    Search {
        outcome: if right { Outcome::Right } else { Outcome::Wrong },
        readings,
        stated: 1.0,
        near: None,
        minutes: 0.0,
    }
}
