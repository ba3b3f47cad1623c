//! Which kernel to read next.

use super::levels::Predicted;
use super::{CANDIDATES, Evidence, Node, Noisy, Weight};

/// The kernel whose reading tells most for its cost, and the number of bits that it tells.
pub fn best(
    noisy: &Noisy,
    evidence: &Evidence,
    posterior: &[f64],
    high: &[f64],
) -> Option<(Node, f64)> {
    let Evidence { levels, classes, weights, .. } = evidence;
    let mut candidates: Vec<(Node, f64, f64)> = (0..high.len())
        .filter(|node| noisy.readable(*node))
        .filter_map(|node| {
            let cost = (noisy.cost)(node);
            let about = entropy(high[node]) / cost;
            (about > 0.0 && cost > 0.0 && cost.is_finite()).then_some((node, cost, about))
        })
        .collect();
    candidates.sort_by(|a, b| b.2.total_cmp(&a.2));
    candidates.truncate(CANDIDATES);
    let predictor = levels.predictor();
    let predicted: Vec<[Predicted; 2]> = weights
        .iter()
        .map(|weight| predictor.predict(&weight.sides[0], &weight.sides[1]))
        .collect();
    let mut place = vec![usize::MAX; classes.has.len()];
    weights.iter().enumerate().for_each(|(at, weight)| place[weight.class] = at);
    let told = candidates.into_iter().map(|(node, cost, _)| {
        let mut inside = vec![0.0; weights.len()];
        let ancestors = noisy.history.ancestors(node);
        for (commit, probability) in posterior.iter().enumerate().skip(1) {
            let at = place[classes.of[commit]];
            if at != usize::MAX && ancestors.contains(commit) {
                inside[at] += probability;
            }
        }
        (node, information(weights, &inside, &predicted), cost)
    });
    let best = told.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)).then(b.0.cmp(&a.0)));
    best.map(|(node, told, _)| (node, told))
}

/// The information, in bits, of a yes-or-no answer whose yes has this probability.
fn entropy(probability: f64) -> f64 {
    let term = |it: f64| if it > 0.0 { -it * it.log2() } else { 0.0 };
    term(probability) + term(1.0 - probability)
}

/// How many bits a reading tells about which commit is the step. `inside` is the probability of those commits of each
/// class that the kernel has.
fn information(weights: &[Weight], inside: &[f64], predicted: &[[Predicted; 2]]) -> f64 {
    let mut mixed: Predicted = [0.0; _];
    let mut known = 0.0;
    for ((weight, inside), [low, high]) in weights.iter().zip(inside).zip(predicted) {
        for (mass, predicted) in [(weight.probability - inside, low), (*inside, high)] {
            if mass > 0.0 {
                mixed.iter_mut().zip(predicted).for_each(|(sum, density)| *sum += mass * density);
                known += mass * bits(predicted);
            }
        }
    }
    let sum: f64 = mixed.iter().sum();
    bits(&mixed.map(|density| density / sum)) - known / sum
}

fn bits(distribution: &Predicted) -> f64 {
    distribution.iter().filter(|it| **it > 0.0).map(|it| -it * it.log2()).sum()
}
