//! Functions that may be one function under two names: executed on one side only, about as often
//! and at about the same cost.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Contribution, Only, Section, Subject};
use crate::Difference;

/// Entries may differ by this share of the larger number.
const ENTRIES: f64 = 0.01;
/// Instructions per entry may differ by this share of the larger number.
const COST: f64 = 0.20;
/// Where a side has more functions of its own than this, the kernels have little in common, and
/// pairs that chance makes outnumber the others.
const MAX_CANDIDATES: usize = 2000;

/// Marks the pairs of `all`, which tells what a side executed at all, there and in each phase.
pub fn mark(all: &mut Section, phases: &mut [Section]) {
    let pairs = pairs(all);
    for section in std::iter::once(all).chain(phases) {
        for it in &mut section.contributions {
            if let Some(calls) = &mut it.calls {
                calls.maybe = pairs.get(&it.subject).cloned();
            }
        }
    }
}

/// A function of one side.
struct Candidate<'a> {
    subject: &'a Subject,
    entries: f64,
    cost: f64,
}

/// Each function of a pair to the other one: of those that are near enough, the nearest to each
/// other.
fn pairs(all: &Section) -> BTreeMap<Subject, Subject> {
    let [base, new] = [Only::Base, Only::New].map(|only| candidates(&all.contributions, only));
    let mut pairs = BTreeMap::new();
    if base.len().max(new.len()) > MAX_CANDIDATES {
        return pairs;
    }
    for one in &base {
        let Some(other) = nearest(one, &new) else { continue };
        let back = nearest(other, &base);
        if back.is_some_and(|back| back.subject == one.subject) {
            pairs.insert(one.subject.clone(), other.subject.clone());
            pairs.insert(other.subject.clone(), one.subject.clone());
        }
    }
    pairs
}

fn candidates(contributions: &[Contribution], only: Only) -> Vec<Candidate<'_>> {
    let candidates = contributions.iter().filter_map(|it| {
        let calls = it.calls.as_ref().filter(|calls| calls.only == Some(only))?;
        let of = |difference: &Difference| match only {
            Only::Base => difference.base,
            Only::New => difference.new,
        };
        let entries = of(&calls.entries);
        let cost = of(&it.instructions) / entries;
        (entries > 0.0).then_some(Candidate { subject: &it.subject, entries, cost })
    });
    candidates.collect()
}

/// The one among `others` that is nearest to `one`, if any is near enough.
fn nearest<'a, 'b>(one: &Candidate<'_>, others: &'b [Candidate<'a>]) -> Option<&'b Candidate<'a>> {
    let near = others.iter().filter(|other| {
        distance(one.entries, other.entries) <= ENTRIES && distance(one.cost, other.cost) <= COST
    });
    near.min_by(|left, right| order(one, left, right))
}

/// One name in two modules comes first, then what is nearest, then what sorts first.
fn order(one: &Candidate<'_>, left: &Candidate<'_>, right: &Candidate<'_>) -> Ordering {
    let far = |other: &Candidate<'_>| {
        distance(one.entries, other.entries) + distance(one.cost, other.cost)
    };
    let renamed = |other: &Candidate<'_>| name(one.subject) != name(other.subject);
    (renamed(left).cmp(&renamed(right)))
        .then(far(left).total_cmp(&far(right)))
        .then_with(|| left.subject.cmp(right.subject))
}

fn name(subject: &Subject) -> Option<&str> {
    match subject {
        Subject::Function { name, .. } => Some(name),
        _ => None,
    }
}

/// The distance of two numbers as a share of the larger one.
fn distance(one: f64, other: f64) -> f64 {
    let larger = one.max(other);
    if larger > 0.0 { (one - other).abs() / larger } else { 0.0 }
}
