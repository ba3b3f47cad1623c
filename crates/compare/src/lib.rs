//! Compares boots: tables of metrics, durations and counters with a column for each variant; verdicts on the
//! differences; and notes on everything else in which the columns differ. Pure; printing is left to the
//! reports.
//!
//! Only complete boots count. A figure that a variant lacks is absent, never 0.

mod designs;
mod explain;
mod figures;
mod notes;
mod pairs;
mod tables;
#[cfg(test)]
mod testing;
mod verdicts;

use std::collections::BTreeSet;

use benchmarks::names::Month;
use designs::{steps, sweep};
use figures::steady::Steady;
use model::{
    Architecture, Boot, BootId, Execution, Experiment, Kept, Mode, Outcome, Reading,
    WorkloadReading, WorkloadUse,
};
use notes::consistency;
use serde::Serialize;
use tables::{chosen, counters, duration, events, metrics};

pub use designs::cross_check::{
    Conclusion, CrossCheck, Gain, Instructions, Sources, comparable, cross_check,
};
pub use designs::effects::{Axis, Effect, Effects, Term};
pub use designs::selftest;
pub use designs::split::{BUILT_AS, split_columns};
pub use designs::steps::Step;
pub use designs::sweep::{
    PointComparison, PointFigure, PointVerdict, PointVerdicts, VerdictChange, verdicts_by_point,
};
pub use explain::attribution::{
    Explained, FunctionByKernel, add_paths, add_reasons, add_transfers, explained,
};
pub use explain::counters::counter_growth;
pub use explain::cover::{Coverage, CoverageBuilder, FunctionCoverage, WorkloadCoverage};
pub use explain::lines::{
    CountedFunction, CountedLine, FunctionLines, LineSide, NO_LINE, counted_function,
    function_lines,
};
pub use explain::loops::{are_one_loop, is_copy_loop};
pub use explain::sampled::{
    SampledDifference, SampledFigure, SampledRow, SampledSide, sampled, steady_profiles,
};
pub use explain::signal::Signal;
pub use explain::{
    Asked, ByPages, Callee, Calls, ClassCost, Code, CommonCallee, Compared, Contribution, Counter,
    Divided, Explanation, FieldCost, Headline, Holder, Inner, KernelThread, LINE, Layout,
    LayoutChange, LayoutField, LayoutLine, LayoutMember, LayoutSide, Layouts, LeftOut, Moved,
    NoCost, Only, OwnCost, Parted, Path, Paths, Reason, Section, Side, Split, Subject, Totals,
    check_cost, classes, do_offset, explain, fields, headlines, paths, reasons,
};
pub use figures::BootFigures;
pub use figures::host_block::HostBlock;
pub use figures::operations::{BootSamples, Operation, OrderedSamples};
pub use figures::phases::{ALL_PHASES, NoPhase, with_phases};
pub use figures::steady::Part;
pub use figures::warmup::{Beginnings, Repeated, WarmUp};
pub use notes::consistency::{Counting, Finding, Relation, Severity};
pub use notes::{
    BuildDifference, Complaint, ConfigChange, ConfigDifference, Fact, HostRange, Mixed, Notes,
    PAGE_SIZE, Unmeasured, on_host, thp,
};
pub use pairs::MissingSeed;
pub use tables::chosen::Unmet;
pub use tables::classes::capitalized;
pub use tables::counters::{MISSES, TRANSFERS};
pub use tables::metrics::steady as steady_operations;
pub use tables::oddities::{Odd, Oddity, Peak};
pub use tables::table::{Basis, Cell, Kind, Pool, Row, Spread, Statistic, Table, WithoutLoops};
pub use verdicts::evidence::{Evidence, Judging, Look, NoEvidence, Variation};
pub use verdicts::judge::false_discovery_rates;
pub use verdicts::luck::{Difference, FEWEST_FOR_LISTS, LEVEL, RATE, RESOLUTION, Verdict};

/// A boot as it was kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptBoot<'a> {
    /// Its number in the store.
    pub id: BootId,
    /// Whether it failed and is repeated, now or later.
    pub superseded: bool,
    /// The boot as it was recorded.
    pub boot: &'a Boot,
}

impl<'a> From<&'a Kept> for KeptBoot<'a> {
    fn from(Kept { id, superseded, boot }: &'a Kept) -> Self {
        Self { id: *id, superseded: *superseded, boot }
    }
}

impl KeptBoot<'_> {
    /// Whether it occupies its place in the schedule. An interrupted or superseded boot does not: another
    /// boot can take that place.
    fn stands(&self) -> bool {
        !self.superseded && self.boot.outcome != Outcome::Interrupted
    }
}

/// A variant with all its boots, failed ones included.
#[derive(Clone, Debug)]
pub struct VariantBoots<'a> {
    /// The variant that was booted.
    pub variant: &'a model::Variant,
    /// Its boots, in the order they were kept.
    pub boots: Vec<KeptBoot<'a>>,
}

impl<'a> VariantBoots<'a> {
    /// The variant with those of the `kept` boots that are its own.
    pub fn of(variant: &'a model::Variant, kept: &'a [Kept]) -> Self {
        let own = kept.iter().filter(|kept| kept.boot.variant == variant.name);
        Self { variant, boots: own.map(KeptBoot::from).collect() }
    }

    fn name(&self) -> &'a str {
        &self.variant.name
    }

    /// The boots that occupy their places, complete or not.
    pub fn standing(&self) -> impl Iterator<Item = &KeptBoot<'a>> {
        self.boots.iter().filter(|kept| kept.stands())
    }

    /// The boots that count.
    pub fn complete(&self) -> impl Iterator<Item = &'a Boot> {
        self.complete_kept().map(|kept| kept.boot)
    }

    /// The boots that count, with their numbers.
    fn complete_kept(&self) -> impl Iterator<Item = &KeptBoot<'a>> {
        self.standing().filter(|kept| kept.boot.outcome.counts())
    }

    /// The variant without the boots in which `workload` failed while other workloads did not.
    fn of_workload(&self, workload: &str) -> Self {
        let ran = |kept: &&KeptBoot<'_>| {
            !matches!(kept.boot.outcome, Outcome::Partial(_))
                || kept.boot.usage.iter().any(|usage| usage.workload == workload)
        };
        Self { variant: self.variant, boots: self.boots.iter().filter(ran).cloned().collect() }
    }
}

/// An experiment with the boots that it has so far.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// The experiment's definition.
    pub experiment: &'a Experiment,
    /// How its figures are read.
    pub reading: &'a Reading,
    /// Its variants with their boots, in the order of the experiment.
    pub variants: Vec<VariantBoots<'a>>,
}

impl<'a> Results<'a> {
    /// An experiment with these boots.
    pub fn of(experiment: &'a Experiment, reading: &'a Reading, kept: &'a [Kept]) -> Self {
        let variants = experiment.variants.iter().map(|it| VariantBoots::of(it, kept)).collect();
        Self { experiment, reading, variants }
    }

    /// Whether there is something to compare: two variants have complete boots.
    pub fn has_two_sides(&self) -> bool {
        self.variants.iter().filter(|column| column.complete().next().is_some()).count() > 1
    }

    /// The boots of a variant; `None` if there is no such variant.
    pub fn column(&self, variant: &str) -> Option<&VariantBoots<'a>> {
        self.variants.iter().find(|column| column.name() == variant)
    }
}

/// A workload, and how its figures are read.
#[derive(Clone, Copy)]
struct Workload<'a> {
    used: &'a WorkloadUse,
    reading: &'a WorkloadReading,
    /// Whether it has phases with a name that count. Time outside phases then does not, unless the reading says so.
    has_phases: bool,
}

impl<'a> Workload<'a> {
    fn name(self) -> &'a str {
        &self.used.manifest.name
    }

    /// The workload of the boots in these columns.
    fn of(
        used: &'a WorkloadUse,
        reading: &'a WorkloadReading,
        columns: &[VariantBoots<'_>],
    ) -> Self {
        let workload = Self { used, reading, has_phases: false };
        let boots = columns.iter().flat_map(VariantBoots::complete);
        let mut chunks = boots.flat_map(|boot| &boot.chunks);
        let is_phase = |chunk: &model::Chunk| {
            chunk.workload == workload.name()
                && !chunk.phase.is_empty()
                && !workload.leaves_out(&chunk.phase)
        };
        Self { has_phases: chunks.any(is_phase), ..workload }
    }

    /// Whether tables of counters leave out this phase.
    fn leaves_out(self, phase: &str) -> bool {
        let is_outside = self.has_phases && phase.is_empty() && self.reading.left_out.is_none();
        is_outside || self.reading.leaves_out(&self.used.manifest, phase)
    }
}

/// The result of comparing variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The architecture of the machine.
    pub arch: Architecture,
    /// The mode in which all boots ran.
    pub mode: Mode,
    /// Boots wanted of each variant; in exact mode each has a seed of its own.
    pub boots: u32,
    /// How differences of measured mode are judged.
    pub judging: Judging,
    /// The variants in the order of the columns. The first is the baseline.
    pub variants: Vec<VariantOutcomes>,
    /// Whether times were measured in a boot that counts and ran under emulation (TCG), where times are not
    /// performance.
    pub emulated: bool,
    /// If boots that count are sessions on a host: how many boots of the host's kernel they were made in.
    pub host_boots: Option<usize>,
    /// Whether a program other than the laboratory's own runs with addresses that the kernel draws.
    pub random_addresses: bool,
    /// The tables, workload by workload.
    pub tables: Vec<Table>,
    /// Rows that the experiment chooses for verdicts of measured mode, but that no complete boot has.
    pub unmet: Vec<Unmet>,
    /// The same variants in the other mode, set by the caller if it has found such an experiment; see
    /// [`cross_check()`].
    pub cross_checks: Vec<CrossCheck>,
    /// The experiments of [`Comparison::cross_checks`], set by the caller.
    pub cross_check_sources: Option<Sources>,
    /// Notes on the columns.
    pub notes: Notes,
    /// The patches of a series, each against the step before it.
    pub steps: Vec<Step>,
    /// The points of a sweep, which then has no tables of its own.
    pub points: Vec<PointComparison>,
    /// What the user noted on the experiments, set by the caller.
    pub user_notes: Vec<UserNote>,
    /// The month whose mmtests names the rows have, set by the caller; `None` where they have our own names.
    pub names: Option<Month>,
}

/// The user's own note on an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserNote {
    /// The experiment's number, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<i64>,
    /// The text of the note.
    pub text: String,
}

/// A variant and the outcomes of its boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariantOutcomes {
    /// The variant's name.
    pub name: String,
    /// Number of boots that count, which are the complete ones.
    pub complete: usize,
    /// In exact mode, the number of seeds that are complete in this variant and in the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// In exact mode, the seeds that this variant lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingSeed>,
    /// The boots that failed.
    pub failed: Vec<FailedBoot>,
    /// The boots that were interrupted, or failed and are repeated.
    pub set_aside: Vec<SetAside>,
}

/// A boot that did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedBoot {
    /// The boot's number in the store.
    pub boot: BootId,
    /// Its outcome and the reason, in words.
    pub outcome: String,
    /// Whether only some of its workloads failed, and the others count.
    pub partial: bool,
}

/// A boot that does not count, and does not occupy its place in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// The boot's number.
    pub boot: BootId,
    /// Its outcome and the reason, in words.
    pub outcome: String,
    /// Whether another boot has taken its place.
    pub done_again: bool,
}

/// A verdict on a column of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowVerdict<'a> {
    /// The table of the row.
    pub table: &'a Table,
    /// The row of means that the verdict is on.
    pub row: &'a Row,
    /// The verdict.
    pub verdict: Verdict,
}

impl Comparison {
    /// Whether a table of counters covers whole phases only because series between the ends of phases were not read.
    pub fn lacks_series(&self) -> bool {
        let lacks = |table: &Table| table.part == Some(Part::Unsampled);
        self.tables.iter().any(lacks) || self.points.iter().any(|it| it.comparison.lacks_series())
    }

    /// The verdicts on a column, in the order of the tables.
    pub fn verdicts(&self, column: usize) -> impl Iterator<Item = RowVerdict<'_>> {
        self.tables.iter().flat_map(move |table| {
            let rows = table.rows.iter();
            rows.filter_map(move |row| {
                Some(RowVerdict { table, row, verdict: row.verdict(column)? })
            })
        })
    }

    /// Whether the tables are of more than one workload.
    pub fn has_several_workloads(&self) -> bool {
        self.tables.windows(2).any(|pair| pair[0].workload != pair[1].workload)
    }
}

/// Compares the variants of an experiment, and each step of a series with the step before it. The variant with index
/// `baseline` becomes the first column; gains and verdicts compare the others with it. The others keep their order. A
/// sweep is compared point by point, and never across points.
pub fn compare(results: &Results<'_>, baseline: usize, judging: &Judging) -> Comparison {
    let points = sweep::points(results, baseline, judging);
    if let Some(first) = results.experiment.points().first() {
        return sweep::together(results, (baseline, first), points, judging);
    }
    let steps = steps::steps(results, judging);
    Comparison { steps, ..compare_columns(results, baseline, judging) }
}

fn compare_columns(results: &Results<'_>, baseline: usize, judging: &Judging) -> Comparison {
    let Results { experiment, reading, variants } = results;
    let columns = baseline_first(variants, baseline);
    let topology = &experiment.machine.topology;
    let events = &experiment.sampler.events;
    let mode = experiment.mode;
    let tables = experiment.workloads.iter().flat_map(|used| {
        let columns: Vec<_> =
            columns.iter().map(|column| column.of_workload(&used.manifest.name)).collect();
        let columns = if mode == Mode::Exact { pairs::paired(&columns) } else { columns };
        let (operations, warm_ups) = metrics::steady(used, &columns, mode, judging);
        let steady = Steady::of(used, &operations, &warm_ups);
        let warmup = used.warmup.saturating_add(steady.iterations);
        let beyond = &WorkloadUse { warmup, ..used.clone() };
        let workload = Workload::of(beyond, reading.workload(used), &columns);
        [
            Table {
                part: (steady.within && steady.single).then_some(Part::Whole),
                ..metrics::table(used, reading, &columns, &operations, warm_ups, mode, judging)
            },
            duration::table(beyond, &columns, &steady, mode, judging),
            counters::table(workload, &columns, topology, &steady, mode, judging),
            events::table((used, workload), events, &columns, &steady, mode, judging),
        ]
    });
    let tables: Vec<Table> = tables.filter(|table| !table.rows.is_empty()).collect();
    let is_known = columns.iter().any(|column| column.complete().next().is_some());
    let unmet = match experiment.mode {
        Mode::Measured if is_known => chosen::unmet(experiment, reading, &tables),
        _ => Vec::new(),
    };
    Comparison { tables, unmet, ..described(experiment, &columns, judging) }
}

/// A comparison without tables: the outcomes of the columns' boots, and the notes on them.
fn described(
    experiment: &Experiment,
    columns: &[VariantBoots<'_>],
    judging: &Judging,
) -> Comparison {
    let workloads = || experiment.workloads.iter().map(|used| &*used.manifest.name);
    Comparison {
        arch: experiment.machine.arch,
        mode: experiment.mode,
        boots: experiment.boots,
        judging: *judging,
        variants: columns.iter().map(|column| variant(experiment, &columns[0], column)).collect(),
        emulated: experiment.mode.is_measured()
            && columns
                .iter()
                .flat_map(VariantBoots::complete)
                .any(|boot| boot.facts.provenance.execution == Some(Execution::Tcg)),
        host_boots: host_boots(columns),
        random_addresses: experiment.workloads.iter().any(has_random_addresses),
        tables: Vec::new(),
        unmet: Vec::new(),
        cross_checks: Vec::new(),
        cross_check_sources: None,
        steps: Vec::new(),
        points: Vec::new(),
        notes: Notes {
            findings: workloads().flat_map(|it| consistency::findings(it, columns)).collect(),
            counting: consistency::counting(columns),
            ..notes::notes(columns)
        },
        user_notes: Vec::new(),
        names: None,
    }
}

/// Whether the program of a workload runs with addresses that the kernel draws (`randomize_va_space`). The laboratory's
/// own programs fix theirs, as `setarch -R` does for others.
fn has_random_addresses(used: &WorkloadUse) -> bool {
    let command = &used.manifest.command;
    let is_own = command.first().is_some_and(|program| program.starts_with("/faultline/"));
    !is_own && !command.iter().any(|word| word.contains("setarch"))
}

/// The number of boots of hosts' kernels in which sessions were made; `None` if no boot that counts is a session.
fn host_boots(columns: &[VariantBoots<'_>]) -> Option<usize> {
    let boots = columns.iter().flat_map(VariantBoots::complete);
    let made = boots.map(|boot| &boot.facts.provenance);
    let sessions = made.filter(|it| it.execution == Some(Execution::Native));
    // Imported boots are of a host too, but do not say of which boot of it.
    let known = sessions.filter(|it| !it.host.boot_id.is_empty());
    let kernels: BTreeSet<&str> = known.map(|it| &*it.host.boot_id).collect();
    (!kernels.is_empty()).then_some(kernels.len())
}

/// Returns the first `most` columns of a comparison, with the figures and verdicts that they have beside the others,
/// and the boots of these columns.
pub fn first_columns<'a>(
    comparison: &Comparison,
    results: &Results<'a>,
    most: usize,
) -> (Comparison, Results<'a>) {
    let variants: Vec<VariantOutcomes> = comparison.variants.iter().take(most).cloned().collect();
    let columns = variants.iter().filter_map(|it| results.column(&it.name).cloned());
    let columns: Vec<VariantBoots<'a>> = columns.collect();
    let Comparison { emulated, host_boots, notes, .. } =
        described(results.experiment, &columns, &comparison.judging);
    let is_one = |name: &str| variants.iter().any(|it| it.name == name);
    let mut tables = comparison.tables.clone();
    for table in &mut tables {
        table.rows.iter_mut().for_each(|row| row.cells.truncate(most));
        table.pooled.truncate(most);
        table.oddities.retain(|it| is_one(&it.variant));
    }
    let first = Comparison { variants, emulated, host_boots, notes, tables, ..comparison.clone() };
    (first, Results { variants: columns, ..results.clone() })
}

/// The variants with the baseline, whose index is `baseline`, before the others.
pub fn baseline_first<'a>(variants: &[VariantBoots<'a>], baseline: usize) -> Vec<VariantBoots<'a>> {
    let mut columns = variants.to_vec();
    if let Some(up_to_baseline) = columns.get_mut(..=baseline) {
        up_to_baseline.rotate_right(1);
    }
    columns
}

fn variant(
    experiment: &Experiment,
    baseline: &VariantBoots<'_>,
    column: &VariantBoots<'_>,
) -> VariantOutcomes {
    let exact = (experiment.mode == Mode::Exact).then_some(experiment.boots);
    let failed = column.standing().filter(|kept| !kept.boot.outcome.is_complete());
    let aside = column.boots.iter().filter(|kept| !kept.stands());
    VariantOutcomes {
        name: column.name().to_owned(),
        complete: column.complete().count(),
        pairs: exact.map(|_| column.seeds().intersection(&baseline.seeds()).count()),
        missing: exact.map_or(Vec::new(), |wanted| column.missing(wanted)),
        failed: failed
            .map(|kept| FailedBoot {
                boot: kept.id,
                outcome: kept.boot.outcome.to_string(),
                partial: kept.boot.outcome.counts(),
            })
            .collect(),
        set_aside: aside
            .map(|kept| SetAside {
                boot: kept.id,
                outcome: kept.boot.outcome.to_string(),
                done_again: column
                    .standing()
                    .any(|other| other.boot.boot_index == kept.boot.boot_index),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
