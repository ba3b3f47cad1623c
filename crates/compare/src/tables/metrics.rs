//! The table of a workload's metrics: statistics over all samples of a variant's complete boots,
//! in exact mode over its seeds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    Better, Boot, EQUAL_ENTRIES, INSTRUCTIONS, Manifest, Metric, Mode, Reading, Rows, WorkloadUse,
};

use super::oddities::oddities;
use super::rows::{Figures, statistics};
use crate::designs::effects::{Cross, Sides};
use crate::explain::equal::{at_equal_entries, counted, of_column};
use crate::explain::loops::{by_seed, in_loops, without_loops};
use crate::figures::operations::{BootSamples, Operation, operations};
use crate::figures::warmup::{WarmUp, asked, leave_out};
use crate::verdicts::exact::{Role, SeedRow};
use crate::verdicts::judge::judge;
use crate::verdicts::luck::{Seeds, mean};
use crate::{
    Basis, HostBlock, Judging, Kind, Pool, Row, Statistic, Table, VariantBoots, Variation, Verdict,
};

/// The operations of a workload without their warm-up, and that warm-up.
pub fn steady<'a>(
    used: &'a WorkloadUse,
    columns: &[VariantBoots<'a>],
    mode: Mode,
    judging: &Judging,
) -> (Vec<Operation<'a>>, Vec<WarmUp>) {
    let mut operations = operations(used, columns, mode);
    let mut warm_ups = asked(&operations, used);
    if mode == Mode::Measured {
        warm_ups.extend(leave_out(&mut operations, judging));
    }
    (operations, warm_ups)
}

/// The table of a workload's `operations`, statistic by statistic in the usual order of the kernel's lists.
/// Operations come in the order of the manifest's metrics, and within a metric in the order in which they were first
/// seen; `warm_ups` are left out of them.
pub fn table(
    used: &WorkloadUse,
    reading: &Reading,
    columns: &[VariantBoots<'_>],
    operations: &[Operation<'_>],
    warm_ups: Vec<WarmUp>,
    mode: Mode,
    judging: &Judging,
) -> Table {
    let workload = &used.manifest;
    let seeds: Vec<_> = columns.iter().map(VariantBoots::seeds).collect();
    let seeds = (mode == Mode::Exact).then_some(&seeds[..]);
    let source = |operation| RowSource::of(operation, workload, seeds);
    let sources: Vec<RowSource> = operations.iter().map(source).collect();
    let decimals = decimals(&sources);
    let lines = lines(&sources, mode);
    let row = |&(source, statistic): &(&RowSource<'_>, Statistic)| {
        source.row(statistic, decimals[&source.operation.rank], judging)
    };
    let mut rows: Vec<Row> = lines.iter().map(row).collect();
    let own = reading.workload(used);
    let is_judged = |number: usize| {
        let (source, statistic): (&RowSource<'_>, Statistic) = lines[number];
        let Operation { metric, name, .. } = source.operation;
        let is_primary =
            if seeds.is_some() { source.is_judged } else { own.is_primary(workload, metric, name) };
        statistic.is_mean() && is_primary
    };
    match mode {
        Mode::Measured => judge(&mut rows, is_judged, judging),
        Mode::Exact => judge_by_luck(used, columns, &lines, &mut rows, judging),
    }
    let effects = Cross::of(columns, reading).map(|cross| {
        let judged = (0..lines.len()).filter(|number| is_judged(*number));
        let figures = judged.map(|number| match &lines[number].0.seeds {
            None => (number, Sides::Boots(lines[number].0.operation.figures())),
            Some(seeds) => {
                let phase = lines[number].0.operation.phase;
                let loops = columns.iter().map(|it| by_seed(&of_column(used, it, phase)));
                let without = seeds.iter().zip(loops).map(|(all, loops)| all.less(&loops));
                (number, Sides::Seeds(seeds, without.collect()))
            }
        });
        let better = |number: usize| rows[number].better.unwrap_or(Better::Lower);
        cross.effects(figures, better, judging)
    });
    rows.retain(|row| {
        row.statistic != Statistic::Equal || row.values().any(|value| value.is_some())
    });
    Table {
        workload: workload.name.clone(),
        kind: Kind::Metrics,
        pooled: columns.iter().map(|column| pool(used, column)).collect(),
        units: units(operations),
        warm_ups,
        oddities: match mode {
            Mode::Measured => oddities(operations, columns),
            Mode::Exact => Vec::new(),
        },
        effects,
        rows,
        ..Table::default()
    }
}

/// Gives the verdicts of exact mode, and fills the rows of equal entries and of luck.
fn judge_by_luck(
    used: &WorkloadUse,
    columns: &[VariantBoots<'_>],
    lines: &[(&RowSource<'_>, Statistic)],
    rows: &mut [Row],
    judging: &Judging,
) {
    let mean_of = |source: &RowSource<'_>| {
        lines.iter().position(|(other, it)| other.key() == source.key() && it.is_mean())
    };
    let mut held = Vec::new();
    let mut loops = Vec::new();
    for (number, (source, statistic)) in lines.iter().enumerate() {
        match (statistic, mean_of(source)) {
            (Statistic::Equal, Some(total)) => {
                let phase = source.operation.phase;
                let others = columns.iter().skip(1);
                let pairs: Vec<_> =
                    others.map(|column| counted(used, [&columns[0], column], phase)).collect();
                loops.extend((1..).zip(&pairs).map(|(column, it)| (total, column, in_loops(it))));
                let seeds = pairs.iter().map(at_equal_entries).collect::<Option<Vec<_>>>();
                let Some(seeds) = seeds else { continue };
                held.push(SeedRow { row: number, seeds, role: Role::Equal(total) });
            }
            (statistic, _) if statistic.is_mean() => {
                let role = if source.is_judged { Role::Total } else { Role::Listed };
                let seeds = source.seeds.as_deref().unwrap_or_default();
                let own = SeedRow::new(number, seeds, role);
                if *statistic == Statistic::Amean {
                    set_bases(&mut rows[number], seeds, &own.seeds);
                }
                held.push(own);
            }
            _ => {}
        }
    }
    crate::verdicts::exact::judge(rows, &held, judging);
    for held in &held {
        if let Role::Equal(_) = held.role {
            fill_equal(&mut rows[held.row], &held.seeds);
        }
    }
    for (total, column, loops) in loops {
        let without = without_loops(&rows[total], column, loops, judging.margin);
        let is_decided = rows[total].verdict(column).is_some_and(|it| it != Verdict::Undecided);
        if let Basis::Exact { without_loops, .. } = &mut rows[total].cells[column].basis {
            *without_loops = without.filter(|_| is_decided);
        }
    }
    for (number, (source, statistic)) in lines.iter().enumerate() {
        if let (Statistic::Luck, Some(mean)) = (statistic, mean_of(source)) {
            let floors: Vec<_> = (0..columns.len()).map(|it| rows[mean].floor(it)).collect();
            for (cell, floor) in rows[number].cells.iter_mut().zip(floors) {
                cell.value = floor;
            }
        }
    }
}

/// Sets what the columns of a row of means are compared with, where they lack seeds of the baseline.
fn set_bases(row: &mut Row, all: &[Seeds], pairs: &[[Seeds; 2]]) {
    let whole = all.first().map_or(0, |base| base.values().len());
    for (cell, [base, _]) in row.cells.iter_mut().skip(1).zip(pairs) {
        cell.base = mean(base.values()).filter(|_| base.values().len() < whole);
    }
    row.take_gains();
}

/// Fills a row of equal entries. The baseline has a different figure against each variant, because the figures of a
/// pair use the mean entries of that pair. The baseline's cell is the mean of these figures. The other cells and
/// floors keep their ratio to the baseline's figure of their pair.
fn fill_equal(row: &mut Row, pairs: &[[Seeds; 2]]) {
    let differences: Vec<_> = pairs.iter().map(|[base, own]| own.against(base)).collect();
    let bases: Vec<f64> = differences.iter().flatten().map(|it| it.base).collect();
    let base = mean(&bases);
    row.cells[0].value = base;
    for (column, difference) in (1..).zip(&differences) {
        let scaled = |figure: f64| {
            let (base, own) = (base?, difference.as_ref()?.base);
            Some(if own > 0.0 { figure * (base / own) } else { figure })
        };
        let cell = &mut row.cells[column];
        cell.value = difference.and_then(|it| scaled(it.new));
        if let Basis::Exact { floor, .. } = &mut cell.basis {
            *floor = floor.and_then(scaled);
        }
    }
    row.take_gains();
}

/// The printed lines, statistic by statistic: first metrics with [`Rows::Usual`], then brief ones, which have only a
/// mean, then distributions, then luck.
fn lines<'a>(sources: &'a [RowSource<'a>], mode: Mode) -> Vec<(&'a RowSource<'a>, Statistic)> {
    let mut lines = Vec::new();
    for rows in [Rows::Usual, Rows::Brief, Rows::Mean, Rows::Distribution] {
        let sources = sources.iter().filter(|source| source.operation.metric.rows == rows);
        let sources: Vec<_> =
            sources.map(|source| (source, statistics(&source.operation.metric))).collect();
        let count = sources.iter().map(|(_, statistics)| statistics.len()).max().unwrap_or(0);
        for number in 0..count {
            let of_number = |(source, statistics): &(&'a RowSource<'a>, Vec<Statistic>)| {
                Some((*source, *statistics.get(number)?))
            };
            lines.extend(sources.iter().filter_map(of_number));
        }
    }
    // Rows of equal entries follow the last mean.
    let means = lines.iter().rposition(|(_, statistic)| statistic.is_mean());
    let judged =
        sources.iter().filter(|source| source.is_judged).map(|source| (source, Statistic::Equal));
    let place = means.map_or(0, |place| place + 1);
    lines.splice(place..place, judged);
    if mode == Mode::Exact {
        lines.extend(sources.iter().map(|source| (source, Statistic::Luck)));
    }
    lines
}

/// The unit of each metric that has one.
fn units(operations: &[Operation<'_>]) -> Vec<(String, String)> {
    let metrics = operations.chunk_by(|a, b| a.metric == b.metric);
    let metrics = metrics.map(|operations| &operations[0].metric);
    metrics
        .filter(|metric| !metric.unit.is_empty())
        .map(|metric| (metric.name.clone(), metric.unit.clone()))
        .collect()
}

fn pool(used: &WorkloadUse, column: &VariantBoots<'_>) -> Pool {
    let iterations = |boot: &Boot| {
        let samples = boot.samples.iter();
        let of_workload = samples.filter(|sample| sample.workload == used.manifest.name);
        let of_workload = of_workload.filter(|sample| used.counts(sample.iteration));
        let numbers: BTreeSet<u32> = of_workload.map(|sample| sample.iteration).collect();
        numbers.len()
    };
    let iterations = column.complete().map(iterations).filter(|&count| count > 0);
    Pool { iterations: iterations.collect(), warmup: used.warmup }
}

/// The label of the kernel's instructions.
const KERNEL: &str = "kernel";
/// Decimals of a percentage of any metric.
const PERCENT_DECIMALS: usize = 2;

/// The source of the rows of an operation.
struct RowSource<'a> {
    operation: &'a Operation<'a>,
    /// In exact mode, the seeds of each column.
    seeds: Option<Vec<Seeds>>,
    /// Whether a verdict of exact mode rests on it: the kernel's instructions of a measured phase.
    is_judged: bool,
    /// The values behind each column's statistics.
    figures: Vec<Option<Figures>>,
}

impl<'a> RowSource<'a> {
    /// Metric, label and phase: no two operations of a table share all three.
    fn key(&self) -> [&str; 3] {
        [&self.operation.metric.name, self.operation.label, self.operation.phase]
    }

    /// `seeds` are those of each column, in exact mode.
    fn of(
        operation: &'a Operation<'a>,
        workload: &Manifest,
        seeds: Option<&[BTreeSet<u32>]>,
    ) -> Self {
        let Metric { mean, better, .. } = operation.metric;
        let is_judged = seeds.is_some()
            && operation.metric.name == INSTRUCTIONS
            && operation.label == KERNEL
            && !operation.in_no_phase
            && !workload.prepares(operation.phase);
        let columns = operation.columns.iter();
        match seeds {
            None => {
                let samples = columns
                    .map(|boots| boots.iter().flat_map(|boot| &boot.counted.values).copied());
                let figures = samples.map(|samples| Figures::of(samples, better)).collect();
                Self { operation, seeds: None, is_judged, figures }
            }
            Some(seeds) => {
                let seeds = columns.zip(seeds).map(|(boots, seeds)| {
                    let figures = boots.iter().map(|it| (it.boot.boot_index, it.mean(mean)));
                    Seeds::new(figures, seeds.iter().copied())
                });
                let seeds: Vec<Seeds> = seeds.collect();
                let values = seeds.iter().map(|seeds| seeds.values().to_vec());
                let figures = values.map(|values| Figures::of(values, better)).collect();
                Self { operation, seeds: Some(seeds), is_judged, figures }
            }
        }
    }

    fn row(&self, statistic: Statistic, decimals: usize, judging: &Judging) -> Row {
        let Metric { unit, better, decimals: wanted, .. } = &self.operation.metric;
        let figures = self.figures.iter();
        let values = figures.map(|figures| figures.as_ref()?.value(statistic)).collect();
        let better = match statistic {
            // Less spread is better, whatever the direction of the metric.
            Statistic::Stddev | Statistic::CoeffVar | Statistic::HStddev | Statistic::HCoeffVar => {
                better.map(|_| Better::Lower)
            }
            Statistic::Luck => None,
            _ => *better,
        };
        let (unit, decimals) = match statistic {
            Statistic::CoeffVar | Statistic::HCoeffVar => {
                ("%", wanted.map_or(PERCENT_DECIMALS, usize::from))
            }
            _ => (&**unit, decimals),
        };
        let name = match statistic {
            Statistic::Equal => Cow::from(format!("{}{EQUAL_ENTRIES}", self.operation.name)),
            _ => Cow::from(&self.operation.name),
        };
        let row = Row::new(&name, unit, better, statistic, values, decimals);
        if !statistic.is_mean() {
            return row;
        }
        match &self.seeds {
            Some(_) => row,
            None => {
                let groups = |boots: &Vec<BootSamples<'_>>| {
                    let host = |it: &BootSamples<'_>| HostBlock::of(it.boot).host;
                    let values = boots.iter().map(|it| (host(it), it.counted.values.clone()));
                    Variation::within_hosts(values)
                };
                row.against_boots(&self.operation.figures(), judging)
                    .with_variation(self.operation.columns.iter().map(groups))
            }
        }
    }
}

/// Decimals for each metric, by rank. A metric can ask for a number. Otherwise it is 2, as is usual, or more if its
/// smallest mean would have fewer than two significant digits. Instructions have none.
fn decimals(sources: &[RowSource<'_>]) -> BTreeMap<usize, usize> {
    let rank = |source: &RowSource<'_>| source.operation.rank;
    let metrics = sources.chunk_by(|a, b| rank(a) == rank(b));
    let decimals = metrics.map(|sources| {
        let figures = sources.iter().flat_map(|source| &source.figures).flatten();
        let means = figures.map(|figures| figures.amean().abs());
        let metric = &sources[0].operation.metric;
        let decimals = match (metric.decimals, metric.unit.as_str()) {
            (Some(wanted), _) => usize::from(wanted),
            (None, INSTRUCTIONS) => 0,
            _ => needed(means.filter(|&mean| mean > 0.0).fold(f64::INFINITY, f64::min)),
        };
        (rank(&sources[0]), decimals)
    });
    decimals.collect()
}

fn needed(least: f64) -> usize {
    match least {
        0.1.. => 2,
        0.001.. => 4,
        0.00001.. => 6,
        _ => 9,
    }
}

#[cfg(test)]
mod tests;
