//! Functions that may be one function under two names: executed on one side only, about as often, at a
//! similar cost, and with similar names. Counts alone are not evidence: many functions are entered once per
//! page or once per system call.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::loops::are_one_loop;
use super::{Contribution, Only, Section, Subject};
use crate::Difference;

/// Largest difference in entries, as a share of the larger number.
const ENTRIES: f64 = 0.01;
/// Largest difference in instructions per entry, as a share of the larger number.
const COST: f64 = 0.40;
/// Fewest words that two names must share, unless they consist of the same words.
const SHARED: usize = 2;
/// Most words of a name that are compared.
const MAX_WORDS: usize = 8;
/// The suffix of an allocator without the hook that profiles its callers.
const PROFILED: &str = "_noprof";
/// Most one-sided functions that are compared. With more, the kernels have little in common, and pairs by chance
/// outnumber true ones.
const MAX_CANDIDATES: usize = 2000;

/// Marks the pairs of functions in `all` and in its `parts`. `all` decides which functions only one side executed.
pub fn mark<'a>(all: &'a mut Section, parts: impl Iterator<Item = &'a mut Section>) {
    let pairs = pairs(all);
    for section in std::iter::once(all).chain(parts) {
        for it in &mut section.contributions {
            if let Some(calls) = &mut it.calls {
                calls.maybe = pairs.get(&it.subject).cloned();
            }
        }
    }
}

/// A function that only one side executed.
struct Candidate<'a> {
    subject: &'a Subject,
    name: &'a str,
    words: Vec<&'a str>,
    entries: f64,
    cost: f64,
}

/// Maps each function of a pair to the other one. The functions of a pair are nearest to each other, and near enough.
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
        let Subject::Function { name, .. } = &it.subject else { return None };
        let calls = it.calls.as_ref().filter(|calls| calls.only == Some(only))?;
        let of = |difference: &Difference| match only {
            Only::Base => difference.base,
            Only::New => difference.new,
        };
        let entries = of(&calls.entries);
        let cost = of(&it.instructions) / entries;
        let words = words(name);
        (entries > 0.0).then_some(Candidate { subject: &it.subject, name, words, entries, cost })
    });
    candidates.collect()
}

/// Of `others`, the function that is most likely `one` under another name; `None` if none is near enough with a
/// similar name.
fn nearest<'a, 'b>(one: &Candidate<'_>, others: &'b [Candidate<'a>]) -> Option<&'b Candidate<'a>> {
    let near = others.iter().filter(|other| {
        let is_as_often = distance(one.entries, other.entries) <= ENTRIES
            && distance(one.cost, other.cost) <= COST;
        (is_as_often && are_alike(one, other)) || is_profiled(one.name, other.name)
    });
    near.min_by(|left, right| order(one, left, right))
}

/// Whether one name is the other with the suffix that allocators have since Linux 6.10, so that their callers can be
/// profiled (include/linux/alloc_tag.h). Such a pair needs no other evidence.
pub fn is_profiled(one: &str, other: &str) -> bool {
    one.strip_suffix(PROFILED) == Some(other) || other.strip_suffix(PROFILED) == Some(one)
}

/// Whether two names are the same (in two modules), have the same words, share most of their words, or are of loops that
/// do the same.
fn are_alike(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    are_enough(shared_words(one, other), one.words.len().max(other.words.len()))
        || are_one_loop(one.name, other.name)
}

/// Whether two names share all words but one of the longer name.
pub fn are_names_alike(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(words);
    let longer = one.len().max(other.len());
    let shared = shared(&one, &other);
    are_enough(shared, longer) && shared + 1 >= longer
}

/// Whether two names share as many words as a rename keeps at least.
pub fn share_words(one: &str, other: &str) -> bool {
    shared(&words(one), &words(other)) >= SHARED
}

fn are_enough(shared: usize, longer: usize) -> bool {
    shared >= longer.max(1) || (shared >= SHARED && 2 * shared > longer)
}

fn words(name: &str) -> Vec<&str> {
    name.split('_').filter(|word| !word.is_empty()).take(MAX_WORDS).collect()
}

fn shared(one: &[&str], other: &[&str]) -> usize {
    one.iter().filter(|word| other.contains(word)).count()
}

/// Orders candidates for `one`: most shared words first, then nearest, then by name.
fn order(one: &Candidate<'_>, left: &Candidate<'_>, right: &Candidate<'_>) -> Ordering {
    let far = |other: &Candidate<'_>| {
        distance(one.entries, other.entries) + distance(one.cost, other.cost)
    };
    (shared_words(one, right).cmp(&shared_words(one, left)))
        .then(far(left).total_cmp(&far(right)))
        .then_with(|| left.subject.cmp(right.subject))
}

/// The number of words that two names share; the largest number if the names are the same (in two modules), or but for
/// [`PROFILED`].
fn shared_words(one: &Candidate<'_>, other: &Candidate<'_>) -> usize {
    if one.name == other.name || is_profiled(one.name, other.name) {
        return usize::MAX;
    }
    shared(&one.words, &other.words)
}

/// The distance of two numbers as a share of the larger one.
fn distance(one: f64, other: f64) -> f64 {
    let larger = one.max(other);
    if larger > 0.0 { (one - other).abs() / larger } else { 0.0 }
}
