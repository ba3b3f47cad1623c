//! Where a difference of exact mode went: the change of the instructions executed, by phase, by
//! kernel function and process, and by counter, each against its luck floor.
//!
//! A complete boot is a seed and gives one value of each figure: the sum over its iterations.
//! Means are over the seeds. Contributions are integers over one denominator, so that they add up
//! to the change of the total without an error of rounding.

mod contribution;
mod counters;
mod paths;
mod rename;
mod section;
mod symbol;
mod tally;
#[cfg(test)]
mod tests;

use model::{Boot, Profile};

use crate::VariantBoots;
pub use contribution::{Calls, Contribution, Only, Split, Subject};
pub use paths::{Path, Paths, paths};
pub use section::{Counter, Section, Totals};
use tally::Tally;

/// Where the difference between two variants went, for one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The workload's name.
    pub workload: String,
    /// The baseline.
    pub base: Side,
    /// The other variant.
    pub new: Side,
    /// What [`Section::change`], [`Contribution::change`] and [`Split`] are counted in: one
    /// instruction is so many of their units. The least common multiple of the numbers of seeds,
    /// for a mean over n seeds is a whole number of nths.
    pub denominator: i128,
    /// All phases together. None if a side has no complete boot with a profile of the workload.
    pub all: Option<Section>,
    /// Each phase, in order of first appearance.
    pub phases: Vec<Section>,
}

/// One of the two variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The variant's name.
    pub name: String,
    /// Number of complete boots with a profile of the workload: those that count.
    pub seeds: usize,
}

impl Explanation {
    /// The section of `phase`, or that of all phases together.
    pub fn section(&self, phase: Option<&str>) -> Option<&Section> {
        match phase {
            None => self.all.as_ref(),
            Some(phase) => {
                self.phases.iter().find(|section| section.phase.as_deref() == Some(phase))
            }
        }
    }

    /// Whether a variant has two seeds, so that something is known of luck.
    pub fn knows_luck(&self) -> bool {
        self.base.seeds > 1 || self.new.seeds > 1
    }

    /// A numerator over [`Explanation::denominator`] as a number of instructions.
    pub fn instructions(&self, numerator: i128) -> f64 {
        numerator as f64 / self.denominator.max(1) as f64
    }
}

/// Explains the difference between two variants by `workload`.
pub fn explain(base: &VariantBoots<'_>, new: &VariantBoots<'_>, workload: &str) -> Explanation {
    let seeds = [seeds(base, workload), seeds(new, workload)];
    let side = |variant: &VariantBoots<'_>, seeds: &[&Boot]| Side {
        name: variant.name().to_owned(),
        seeds: seeds.len(),
    };
    let section = |phase: Option<&str>| {
        let tallies = seeds.each_ref().map(|boots| tallies(boots, workload, phase));
        let counters = seeds.each_ref().map(|boots| counters::growth(boots, workload, phase));
        section::section(phase, &tallies, &counters)
    };
    let mut all = section(None);
    let mut phases: Vec<Section> = phase_names(&seeds, workload)
        .into_iter()
        .filter_map(|phase| section(Some(phase)))
        .collect();
    if let Some(all) = &mut all {
        rename::mark(all, &mut phases);
    }
    Explanation {
        workload: workload.to_owned(),
        base: side(base, &seeds[0]),
        new: side(new, &seeds[1]),
        denominator: contribution::denominator(seeds[0].len(), seeds[1].len()),
        all,
        phases,
    }
}

/// The complete boots that have a profile of `workload`.
fn seeds<'a>(variant: &VariantBoots<'a>, workload: &str) -> Vec<&'a Boot> {
    let has_profile = |boot: &&Boot| profiles(boot, workload, None).next().is_some();
    variant.complete().filter(has_profile).collect()
}

/// The profiles of `workload` in one phase, or in all of them.
fn profiles<'a>(
    boot: &'a Boot,
    workload: &str,
    phase: Option<&str>,
) -> impl Iterator<Item = &'a Profile> {
    boot.profiles.iter().filter(move |profile| {
        profile.workload == workload && phase.is_none_or(|phase| profile.phase == phase)
    })
}

/// One tally a seed.
fn tallies<'a>(boots: &[&'a Boot], workload: &str, phase: Option<&str>) -> Vec<Tally<'a>> {
    boots.iter().map(|boot| Tally::of(profiles(boot, workload, phase))).collect()
}

/// Names of phases in order of first appearance.
fn phase_names<'a>(sides: &[Vec<&'a Boot>; 2], workload: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for boot in sides.iter().flatten() {
        for profile in profiles(boot, workload, None) {
            if !names.contains(&&*profile.phase) {
                names.push(&profile.phase);
            }
        }
    }
    names
}
