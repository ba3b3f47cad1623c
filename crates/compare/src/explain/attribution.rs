//! The functions that hold the changes of a comparison, in exact mode.

use std::mem;

use code::CodeDifference;
use model::{Class, INSTRUCTIONS, WorkloadUse};
use serde::Serialize;

use crate::{
    Comparison, Explanation, Headline, Holder, Layouts, Paths, Results, RowVerdict, VariantBoots,
    Verdict, explain, fields, headlines, paths, reasons, split_columns,
};

/// The attribution of a variant's changes in the phases of a workload.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explained {
    /// The workload's name.
    pub workload: String,
    /// The variant's name.
    pub variant: String,
    /// Whether the workload is a program without a manifest of its own, whose start is measured with it.
    #[serde(skip)]
    pub plain: bool,
    /// One headline per phase that the workload measures.
    pub headlines: Vec<Headline>,
    /// What the functions of the headlines cost in all kernels of a split; empty without a split.
    #[serde(skip)]
    pub by_kernel: Vec<FunctionByKernel>,
    /// The functions to which the change belongs.
    #[serde(skip)]
    pub explanation: Explanation,
    /// The kernel's transfers of lines, their fields and layouts; `None` until [`add_transfers`] adds them, and if they were
    /// not counted.
    #[serde(skip)]
    pub transfers: Option<Explanation>,
    /// The call paths of the measured phases; empty until [`add_paths`] adds them.
    #[serde(skip)]
    pub paths: Paths,
}

impl Explained {
    /// Marks functions by the difference between the code of the two kernels, like [`Explanation::with_code`].
    pub fn add_code(&mut self, difference: Result<CodeDifference, String>) {
        self.explanation = mem::take(&mut self.explanation).with_code(difference);
        for it in &mut self.headlines {
            if let Some(section) = self.explanation.section(Some(&it.phase)) {
                it.add_code(section);
            }
        }
    }
}

/// What a function that a headline names costs in each kernel of a split.
#[derive(Clone, Debug)]
pub struct FunctionByKernel {
    /// The phase of the headline.
    pub phase: String,
    /// The function.
    pub holder: Holder,
    /// The names of the variants, and the mean of the instructions in each. Those that were built for the split stand
    /// between the kernels that are compared.
    pub kernels: Vec<(String, f64)>,
}

/// The functions that hold the changes beyond luck, for each workload and variant with such a change in `comparison`,
/// also within the margin. With `unchanged`, also what others executed, without headlines. `comparison` must be of these
/// results. Empty in measured mode.
pub fn explained(
    comparison: &Comparison,
    results: &Results<'_>,
    unchanged: bool,
) -> Vec<Explained> {
    let mut all = Vec::new();
    if comparison.mode.is_measured() {
        return all;
    }
    let boots = |column: usize| results.column(&comparison.variants[column].name);
    for column in 1..comparison.variants.len() {
        let (Some(base), Some(new)) = (boots(0), boots(column)) else { continue };
        for used in &results.experiment.workloads {
            let workload = &used.manifest.name;
            let is_change = |it: &RowVerdict<'_>| match it.verdict {
                Verdict::Regression | Verdict::Improvement => true,
                Verdict::Same | Verdict::Undecided => it.row.beyond_luck(column) == Some(true),
            };
            let verdicts = comparison.verdicts(column);
            let own: Vec<_> = verdicts.filter(|it| it.table.workload == *workload).collect();
            if own.is_empty() || !(unchanged || own.iter().any(is_change)) {
                continue;
            }
            let explanation = explain(base, new, used, results.experiment.boots, INSTRUCTIONS);
            let mut headlines = headlines(&explanation, used, |phase| {
                paths(base, new, used, (Some(phase), INSTRUCTIONS))
            });
            headlines.retain(|it| it.kernel.beyond_luck() == Some(true));
            let built = split_columns(comparison).filter(|_| column == 1);
            let built = built.into_iter().flatten().filter_map(boots).collect::<Vec<_>>();
            let by_kernel = by_kernel(&headlines, [base, new], &built, used);
            let (workload, variant) = (workload.clone(), new.variant.name.clone());
            let (plain, paths, transfers) = (used.manifest.plain, Paths::default(), None);
            all.push(Explained {
                workload,
                variant,
                plain,
                headlines,
                by_kernel,
                explanation,
                transfers,
                paths,
            });
        }
    }
    all
}

/// What the functions of the headlines cost on both sides, and in the kernels `built` for a split between them.
fn by_kernel(
    headlines: &[Headline],
    [base, new]: [&VariantBoots<'_>; 2],
    built: &[&VariantBoots<'_>],
    used: &WorkloadUse,
) -> Vec<FunctionByKernel> {
    if built.is_empty() {
        return Vec::new();
    }
    let of_phase = |it: &Headline| {
        let phase = Some(&*it.phase);
        let in_built =
            built.iter().map(|own| (*own, paths(base, own, used, (phase, INSTRUCTIONS))));
        let in_built: Vec<_> = in_built.filter(|(_, paths)| paths.followed).collect();
        let costs = it.holders().map(|holder| {
            let name = |of: &VariantBoots<'_>| of.variant.name.clone();
            let of_built =
                in_built.iter().map(|(own, paths)| (name(own), holder.instructions_in(paths)[1]));
            let [first, last] = holder.instructions;
            let kernels = [(name(base), first)].into_iter().chain(of_built);
            let kernels = kernels.chain([(name(new), last)]).collect();
            FunctionByKernel { phase: it.phase.clone(), holder: holder.clone(), kernels }
        });
        costs.collect::<Vec<_>>()
    };
    headlines.iter().flat_map(of_phase).collect()
}

/// Adds the call paths of the measured phases, which graphs draw. `comparison` and `results` must be those that were
/// explained.
pub fn add_paths(all: &mut [Explained], comparison: &Comparison, results: &Results<'_>) {
    for (it, [base, new], used) in boots_of(all, comparison, results) {
        it.paths = paths(base, new, used, (None, INSTRUCTIONS));
    }
}

/// Adds the kernel's instructions by what made it execute, in the measured phases together, where calls were followed.
/// `comparison` and `results` must be those that were explained.
pub fn add_reasons(all: &mut [Explained], comparison: &Comparison, results: &Results<'_>) {
    for (it, [base, new], used) in boots_of(all, comparison, results) {
        it.explanation.reasons = reasons(base, new, used, (None, INSTRUCTIONS));
    }
}

/// Adds the kernel's transfers of lines, in the measured phases together, if they were counted. `layouts` gives the layouts
/// of types in the kernels of both sides, like [`Explanation::with_layouts`]. `comparison` and `results` must be those that
/// were explained.
pub fn add_transfers(
    all: &mut [Explained],
    comparison: &Comparison,
    results: &Results<'_>,
    layouts: impl Fn([&VariantBoots<'_>; 2], &[String]) -> Layouts,
) {
    if !results.experiment.profile.transfers {
        return;
    }
    let cost = Class::Transfer.name();
    for (it, [base, new], used) in boots_of(all, comparison, results) {
        let mut explanation = explain(base, new, used, results.experiment.boots, cost);
        explanation.fields = fields(base, new, used, (None, cost));
        it.transfers = Some(explanation.with_layouts(|types| layouts([base, new], types)));
    }
}

/// Each change that was explained, with the boots of both sides and the workload.
fn boots_of<'a, 'b>(
    all: &'a mut [Explained],
    comparison: &Comparison,
    results: &'a Results<'b>,
) -> impl Iterator<Item = (&'a mut Explained, [&'a VariantBoots<'b>; 2], &'a WorkloadUse)> {
    let base = comparison.variants.first().and_then(|it| results.column(&it.name));
    all.iter_mut().filter_map(move |it| {
        let mut workloads = results.experiment.workloads.iter();
        let used = workloads.find(|used| used.manifest.name == it.workload)?;
        let new = results.column(&it.variant)?;
        Some((it, [base?, new], used))
    })
}
