//! Attribution of a difference of exact mode: the change of the instructions executed, by phase, by kernel
//! function and process, and by counter, each against its luck floor.
//!
//! A complete boot is a seed and gives one value of each figure: the sum over its iterations. Means are over
//! the seeds. Contributions are integers over one denominator, so they add up to the change of the total
//! without rounding error.

mod asked;
pub mod attribution;
mod calls;
mod cause;
mod classes;
mod common;
mod contribution;
mod cost;
pub(crate) mod counters;
pub mod cover;
pub mod equal;
mod fields;
mod headline;
mod held;
mod holder;
mod joined;
mod layout;
pub mod lines;
pub mod loops;
mod moved;
mod offset;
mod pages;
mod paths;
mod reasons;
mod rename;
pub mod sampled;
mod section;
mod sides;
pub mod signal;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::{Architecture, Boot, Class, Cost, Profile, WorkloadUse};
use serde::Serialize;

use crate::notes::{self, BuildDifference, Fact};
use crate::{Difference, VariantBoots, pairs};
pub use asked::Asked;
pub use cause::Code;
pub use classes::{ClassCost, classes};
pub use common::CommonCallee;
pub use contribution::{Calls, Contribution, Only, Split, Subject};
pub use cost::{NoCost, check_cost};
pub use fields::{FieldCost, fields};
pub use headline::{Headline, headlines};
pub use held::{Callee, Divided, Holder, Inner, KernelThread};
pub use layout::{
    LINE, Layout, LayoutChange, LayoutField, LayoutLine, LayoutMember, LayoutSide, Layouts, Parted,
};
use lines::FunctionLines;
pub use moved::Moved;
pub use offset::{OwnCost, do_offset};
pub use pages::ByPages;
pub use paths::{Path, Paths, paths};
pub use reasons::{Reason, reasons};
pub use section::{Compared, Counter, LeftOut, Section, Totals};
use sides::Sides;
pub(crate) use tally::{Executed, Identity, Tally};

/// Attribution of the difference between two variants, for one workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The architecture of the kernels.
    pub arch: Architecture,
    /// The workload's name.
    pub workload: String,
    /// The cost that is attributed.
    pub cost: Cost,
    /// The variant that is compared with.
    pub base: Side,
    /// The variant that is compared with the baseline.
    pub new: Side,
    /// Number of seeds wanted per side.
    pub wanted: u32,
    /// Number of seeds that are complete on both sides. Only these count, if there are any.
    pub pairs: usize,
    /// The denominator of [`Section::change`], [`Contribution::change`] and [`Split`]: units per
    /// instruction. It is the least common multiple of the numbers of seeds, because a mean over n seeds is
    /// a whole number of nths.
    pub denominator: i128,
    /// All phases together. `None` if a side has no complete boot with a profile of the workload.
    pub all: Option<Section>,
    /// The measured phases together. `None` if no phase only prepares, or every phase does.
    pub measured: Option<Section>,
    /// Each phase, in order of first appearance.
    pub phases: Vec<Section>,
    /// Whether both sides are boots of one variant, so that luck alone makes them differ.
    pub of_one_variant: bool,
    /// Whether both sides booted the same kernel, so that their functions are the same.
    pub one_kernel: bool,
    /// Names of the phases that only prepare and get no verdict.
    pub preparation: Vec<String>,
    /// Why it is not known how the code of functions differs; `None` if it is known, or if code was not compared.
    pub unmarked: Option<String>,
    /// Why it is not known which lines differ in a kernel that could have lines.
    pub unlined: Vec<String>,
    /// What functions executed, line by line, if boots kept that.
    pub lines: Vec<FunctionLines>,
    /// How the kernels were built differently; `None` if no difference is known.
    pub build: Option<BuildDifference>,
    /// States of memory management in which the kernels differ.
    pub states: Vec<Fact>,
    /// The size of a base page in bytes on both sides; `None` if it is the same, or not known.
    pub pages: Option<[u64; 2]>,
    /// The kernel's cost by what made it execute, if that was asked for.
    pub reasons: Option<Vec<Reason>>,
    /// The kernel's instructions by class, if the cost is instructions and classes were counted.
    pub classes: Vec<ClassCost>,
    /// The kernel's transfers of lines by field, if the cost is one of transfers.
    pub fields: Vec<FieldCost>,
    /// The layouts of the types of these fields, if they are known, the largest change first.
    pub layouts: Vec<LayoutChange>,
    /// The kernel's instructions in the same phases, if the cost is transfers of lines.
    pub instructions: Option<Difference>,
    /// Why no layout is known; `None` if they are, or if they were not asked for.
    pub no_layouts: Option<String>,
}

/// One of the two variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The variant's name.
    pub name: String,
    /// Number of seeds that count: those that are complete on both sides, with a profile of the workload.
    pub seeds: usize,
    /// Whether all wanted seeds count.
    pub complete: bool,
}

impl Explanation {
    /// The section of `phase`; without a phase, the section of the measured phases together.
    pub fn section(&self, phase: Option<&str>) -> Option<&Section> {
        match phase {
            None => self.measured.as_ref().or(self.all.as_ref()),
            Some(phase) => {
                self.phases.iter().find(|section| section.phase.as_deref() == Some(phase))
            }
        }
    }

    /// Whether at least two seeds are complete on both sides, so that luck floors are known.
    pub fn knows_luck(&self) -> bool {
        self.pairs > 1
    }

    /// A numerator over [`Explanation::denominator`] as a number of instructions.
    pub fn instructions(&self, numerator: i128) -> f64 {
        numerator as f64 / self.denominator.max(1) as f64
    }
}

/// Attributes the difference between two variants in one workload, over the iterations that count. Each variant
/// should have `wanted` seeds, numbered from 0. Only the seeds that are complete on both sides count. If there are
/// none, the seeds of each side count, and nothing is beyond luck.
pub fn explain(
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
    used: &WorkloadUse,
    wanted: u32,
    cost: &str,
) -> Explanation {
    let kernels = [base, new].map(|side| &side.variant.kernel);
    let one_kernel = kernels[0].digest.is_some() && kernels[0] == kernels[1];
    let both = [base.clone(), new.clone()];
    let (build, states) = (notes::builds(&both).pop(), notes::states_of(&both));
    let pages = notes::pages(&both);
    let seeds = seeds([base, new], used);
    let arch = classes::architecture(seeds.iter().flatten().copied());
    let side = |place: usize, variant: &VariantBoots<'_>| Side {
        name: variant.name().to_owned(),
        seeds: seeds[place].len(),
        complete: is_complete(&seeds[place], wanted),
    };
    let (base, new) = (side(0, base), side(1, new));
    let sides = Sides::of(seeds);
    let pairs = if sides.complete { sides.seeds[0].len() } else { 0 };
    let section = |span: Span<'_>| {
        let tallies = sides.map(|boot| Tally::of(profiles(boot, used, span), cost));
        let counters = sides.map(|boot| counters::growth(boot, used, span));
        let mut section = section::section(span.phase(), &tallies, &counters)?;
        // Few functions have instructions of a class, and one that was inlined takes its own with it.
        if Class::named(cost).is_some() {
            section.totals.equal = None;
        }
        Some(section)
    };
    let mut all = section(Span::All);
    let names = phase_names(&sides, used).into_iter();
    let mut phases: Vec<Section> = names.filter_map(|phase| section(Span::Phase(phase))).collect();
    let is_judged = |section: &Section| {
        section.phase.as_ref().is_some_and(|phase| Span::Measured.has(phase, used))
    };
    section::set_joint_floors(phases.iter_mut().filter(|it| is_judged(it)));
    let mut measured = match Span::measured(sides.iter().copied(), used) {
        Span::Measured => section(Span::Measured),
        _ => None,
    };
    let mut judged = phases.iter().filter(|it| is_judged(it));
    if let (Some(measured), Some(only), None) = (&mut measured, judged.next(), judged.next()) {
        measured.totals = only.totals;
    }
    if let Some(all) = &mut all {
        rename::mark(all, measured.iter_mut().chain(&mut phases));
    }
    let workload = used.manifest.name.clone();
    let denominator = sides.denominator();
    let names = phases.iter().filter_map(|section| section.phase.clone());
    let preparation = names.filter(|phase| used.manifest.prepares(phase)).collect();
    let known = sides.iter().flat_map(|boot| profiles(boot, used, Span::All));
    let mut known = known.flat_map(|profile| profile.costs.costs());
    let cost = known.find(|it| it.name == cost).cloned().unwrap_or_else(|| Cost::new(cost));
    Explanation {
        arch,
        workload,
        cost,
        base,
        new,
        wanted,
        pairs,
        denominator,
        all,
        measured,
        phases,
        of_one_variant: false,
        one_kernel,
        preparation,
        unmarked: None,
        unlined: Vec::new(),
        lines: Vec::new(),
        build,
        states,
        pages,
        reasons: None,
        classes: Vec::new(),
        fields: Vec::new(),
        layouts: Vec::new(),
        instructions: None,
        no_layouts: None,
    }
}

/// Whether `boots` have every seed.
fn is_complete(boots: &[&Boot], wanted: u32) -> bool {
    (0..wanted).all(|seed| boots.iter().any(|boot| boot.boot_index == seed))
}

/// The boots of both sides that count and have a profile of the workload, in the order of their seeds.
fn seeds<'a>(sides: [&VariantBoots<'a>; 2], used: &WorkloadUse) -> [Vec<&'a Boot>; 2] {
    let has_profile = |boot: &&Boot| profiles(boot, used, Span::All).next().is_some();
    pairs::sides(sides, &used.manifest.name).map(|side| {
        let mut boots: Vec<&Boot> = side.complete().filter(has_profile).collect();
        boots.sort_by_key(|boot| boot.boot_index);
        boots
    })
}

/// The phases that figures are summed over.
#[derive(Clone, Copy)]
pub(crate) enum Span<'a> {
    All,
    Measured,
    Phase(&'a str),
}

impl<'a> Span<'a> {
    /// A phase, or without one the measured phases of the boots of both sides.
    pub(crate) fn of(
        phase: Option<&'a str>,
        sides: &[Vec<&'a Boot>; 2],
        used: &WorkloadUse,
    ) -> Self {
        let measured = || Self::measured(sides.iter().flatten().copied(), used);
        phase.map_or_else(measured, Self::Phase)
    }

    /// The measured phases of these boots: those that a program announces, without those that only prepare. All phases
    /// where none is measured, or every one is.
    pub(crate) fn measured(boots: impl Iterator<Item = &'a Boot>, used: &WorkloadUse) -> Self {
        let all = boots.flat_map(|boot| profiles(boot, used, Self::All));
        let is_measured =
            all.map(|it| Self::Measured.has(&it.phase, used)).collect::<BTreeSet<_>>();
        if is_measured.len() > 1 { Self::Measured } else { Self::All }
    }

    fn has(self, phase: &str, used: &WorkloadUse) -> bool {
        match self {
            Self::All => true,
            Self::Measured => !phase.is_empty() && !used.manifest.prepares(phase),
            Self::Phase(only) => phase == only,
        }
    }

    /// The phase, if the span is a single one.
    fn phase(self) -> Option<&'a str> {
        match self {
            Self::Phase(only) => Some(only),
            Self::All | Self::Measured => None,
        }
    }
}

/// The profiles of a workload in some phases, of the iterations that count.
pub(crate) fn profiles<'a>(
    boot: &'a Boot,
    used: &WorkloadUse,
    span: Span<'_>,
) -> impl Iterator<Item = &'a Profile> {
    boot.profiles.iter().filter(move |profile| {
        profile.workload == used.manifest.name
            && used.counts(profile.iteration)
            && span.has(&profile.phase, used)
    })
}

/// Names of phases in order of first appearance.
fn phase_names<'a>(sides: &Sides<&'a Boot>, used: &WorkloadUse) -> Vec<&'a str> {
    let mut names = Vec::new();
    for boot in sides.iter() {
        for profile in profiles(boot, used, Span::All) {
            if !names.contains(&&*profile.phase) {
                names.push(&profile.phase);
            }
        }
    }
    names
}
