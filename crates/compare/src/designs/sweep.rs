//! Sweeps: variants compared at each point, and how verdicts run along the points.

use model::EQUAL_ENTRIES;
use serde::Serialize;

use crate::{
    Comparison, Judging, Results, Row, RowVerdict, Statistic, Table, VariantBoots, Verdict,
    baseline_first, compare, described,
};

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct PointComparison {
    /// The point's name, such as `memory=1G`.
    pub name: String,
    /// The comparison of the variants at this point. It uses no boots of other points.
    pub comparison: Comparison,
}

/// The verdict on a figure at one point.
#[derive(Clone, Copy, Debug)]
pub struct PointFigure<'a> {
    /// The point that the verdict is of.
    pub point: &'a PointComparison,
    /// The verdict at the point. `None` if the point has no verdict on this figure.
    pub found: Option<PointVerdict<'a>>,
}

/// A verdict at a point.
#[derive(Clone, Copy, Debug)]
pub struct PointVerdict<'a> {
    /// The table that has the row.
    pub table: &'a Table,
    /// The row on which the verdict rests.
    pub row: &'a Row,
    /// Index of the variant's column.
    pub column: usize,
    /// The verdict on that column.
    pub verdict: Verdict,
}

/// A figure of a variant against the baseline's, along the points of a sweep.
#[derive(Clone, Debug)]
pub struct PointVerdicts<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The row's name. A verdict may be on the figure itself, or on the figure at equal entries.
    pub metric: &'a str,
    /// The variant's name.
    pub variant: &'a str,
    /// One entry per point, in the order of the sweep.
    pub points: Vec<PointFigure<'a>>,
}

/// Two successive decided points whose verdicts differ. There may be undecided points between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictChange<'a> {
    /// The name of the first point.
    pub after: &'a str,
    /// The verdict at that point.
    pub from: Verdict,
    /// The name of the second point.
    pub at: &'a str,
    /// The verdict at that point.
    pub to: Verdict,
}

/// Compares the variants of each point of a sweep. `baseline` is the index of a variant within each point. The
/// verdicts at all points share the rates of false ones (Bonferroni).
pub(crate) fn points(
    results: &Results<'_>,
    baseline: usize,
    judging: &Judging,
) -> Vec<PointComparison> {
    let names = results.experiment.points();
    let judging = judging.shared_by(names.len());
    let point = |name: String| {
        let experiment = results.experiment.at_point(&name)?;
        let is_there = |column: &&VariantBoots<'_>| {
            column.variant.point.as_ref().is_some_and(|point| point.name() == name)
        };
        let columns = results.variants.iter().filter(is_there);
        let columns = experiment.variants.iter().zip(columns);
        let variants = columns
            .map(|(variant, column)| VariantBoots { variant, boots: column.boots.clone() })
            .collect();
        let results = Results { experiment: &experiment, reading: results.reading, variants };
        Some(PointComparison { comparison: compare(&results, baseline, &judging), name })
    };
    names.into_iter().filter_map(point).collect()
}

/// A sweep as a whole: the boots of each variant at all points, and the notes on them. It has no tables, because
/// figures of different points are not comparable.
pub(crate) fn together(
    results: &Results<'_>,
    (baseline, first): (usize, &str),
    points: Vec<PointComparison>,
    judging: &Judging,
) -> Comparison {
    let experiment = results.experiment.at_point(first).unwrap_or_default();
    let columns = experiment.variants.iter().map(|variant| {
        let is_it = |column: &&VariantBoots<'_>| {
            column.variant.point.as_ref().is_some_and(|point| point.variant == variant.name)
        };
        let own = results.variants.iter().filter(is_it);
        VariantBoots { variant, boots: own.flat_map(|it| it.boots.clone()).collect() }
    });
    let columns = baseline_first(&columns.collect::<Vec<_>>(), baseline);
    let boots = experiment.boots.saturating_mul(points.len() as u32);
    let mut whole = Comparison { boots, ..described(&experiment, &columns, judging) };
    // Seeds are paired at each point.
    whole.variants.iter_mut().for_each(|it| (it.pairs, it.missing) = (None, Vec::new()));
    for fact in whole.notes.facts.iter_mut().filter(|fact| fact.name == "machine") {
        for (column, value) in fact.values.iter_mut().enumerate() {
            *value = at_all(&points, fact.name, column);
        }
    }
    Comparison { points, ..whole }
}

/// The different values that a fact has over all points.
fn at_all(points: &[PointComparison], fact: &str, column: usize) -> Option<String> {
    let mut values: Vec<&str> = Vec::new();
    for own in points.iter().flat_map(|point| &point.comparison.notes.facts) {
        let value = own.values.get(column).and_then(|value| value.as_deref());
        values.extend(value.filter(|value| own.name == fact && !values.contains(value)));
    }
    (!values.is_empty()).then(|| values.join("; "))
}

/// The figures on which verdicts rest at any point, in the order of the tables.
pub fn verdicts_by_point(points: &[PointComparison]) -> Vec<PointVerdicts<'_>> {
    let mut all: Vec<PointVerdicts<'_>> = Vec::new();
    for judged in points.iter().flat_map(judged) {
        let PointVerdicts { workload, metric, variant, .. } = judged;
        let is_known = |it: &PointVerdicts<'_>| {
            (it.workload, it.metric, it.variant) == (workload, metric, variant)
        };
        if !all.iter().any(is_known) {
            let figures = points.iter().map(|point| {
                let mut found = point.verdicts(workload, metric, variant);
                PointFigure { point, found: found.next() }
            });
            all.push(PointVerdicts { points: figures.collect(), ..judged });
        }
    }
    all
}

/// What the verdicts at a point are on, without the figures.
fn judged(point: &PointComparison) -> impl Iterator<Item = PointVerdicts<'_>> {
    let columns = point.comparison.variants.iter().enumerate().skip(1);
    columns.flat_map(move |(column, variant)| {
        let verdicts = point.comparison.verdicts(column);
        verdicts.map(move |it| PointVerdicts {
            workload: &it.table.workload,
            metric: metric(it.row),
            variant: &variant.name,
            points: Vec::new(),
        })
    })
}

/// The figure of a row. A verdict may be on it at equal entries at some points only.
fn metric(row: &Row) -> &str {
    match row.statistic {
        Statistic::Equal => row.metric.strip_suffix(EQUAL_ENTRIES).unwrap_or(&row.metric),
        _ => &row.metric,
    }
}

impl PointComparison {
    fn verdicts<'a>(
        &'a self,
        workload: &'a str,
        metric: &'a str,
        variant: &'a str,
    ) -> impl Iterator<Item = PointVerdict<'a>> {
        let column = self.comparison.variants.iter().position(|it| it.name == variant);
        let verdicts = column.into_iter().flat_map(move |column| {
            let verdicts = self.comparison.verdicts(column);
            verdicts.map(move |it| {
                let RowVerdict { table, row, verdict } = it;
                PointVerdict { table, row, column, verdict }
            })
        });
        verdicts.filter(move |it| it.table.workload == workload && self::metric(it.row) == metric)
    }
}

impl<'a> PointVerdicts<'a> {
    /// The pairs of successive decided points between which the verdict changes.
    pub fn changes(&self) -> Vec<VerdictChange<'a>> {
        let decided = self.points.iter().filter_map(|figure| {
            let found = figure.found.filter(|it| it.verdict != Verdict::Undecided)?;
            Some((&*figure.point.name, found.verdict))
        });
        let decided: Vec<(&str, Verdict)> = decided.collect();
        let pairs = decided.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        let change = |pair: &[(&'a str, Verdict)]| {
            let [(after, from), (at, to)] = [pair[0], pair[1]];
            VerdictChange { after, from, at, to }
        };
        pairs.map(change).collect()
    }

    /// Names of the points without a decision.
    pub fn undecided(&self) -> impl Iterator<Item = &'a str> {
        let is_undecided = |figure: &&PointFigure<'a>| {
            figure.found.is_none_or(|it| it.verdict == Verdict::Undecided)
        };
        self.points.iter().filter(is_undecided).map(|figure| &*figure.point.name)
    }
}

#[cfg(test)]
mod tests {
    use model::{Boot, Experiment, Mode, Point, PointChange, Reading, Variant};

    use super::*;
    use crate::testing::{boot, columns, experiment, manifest, near, sample, topology, variant};

    /// Boots of both variants at each point, with these times.
    fn sweep(times: &[[[f64; 4]; 2]]) -> (Experiment, Vec<Vec<Boot>>) {
        let mut sweep = experiment(Mode::Measured, 4, vec![manifest()]);
        let mut boots = Vec::new();
        for (value, sides) in times.iter().enumerate() {
            for (name, times) in ["old", "new"].into_iter().zip(sides) {
                let point = Point {
                    variant: name.into(),
                    key: "memory".into(),
                    value: value.to_string(),
                    change: PointChange::Topology(topology()),
                };
                let name = format!("{name} {}", point.name());
                sweep.variants.push(Variant { point: Some(point), ..variant(&name) });
                let own = (0..).zip(times).map(|(block, time)| Boot {
                    block,
                    samples: vec![sample("Elapsed", "", 0, *time)],
                    ..boot(block)
                });
                boots.push(own.collect());
            }
        }
        (sweep, boots)
    }

    fn compared(times: &[[[f64; 4]; 2]], baseline: usize) -> Comparison {
        let (experiment, boots) = sweep(times);
        let boots: Vec<&[Boot]> = boots.iter().map(Vec::as_slice).collect();
        let variants = columns(&experiment.variants, &boots);
        compare(
            &Results { experiment: &experiment, reading: Reading::USUAL, variants },
            baseline,
            &Judging::default(),
        )
    }

    const OLD: [f64; 4] = [100.0, 100.1, 99.9, 100.2];

    fn times(by: f64) -> [[f64; 4]; 2] {
        let odd = [1.0, 1.001, 0.999, 1.0005];
        [OLD, [0, 1, 2, 3].map(|boot| OLD[boot] * by * odd[boot])]
    }

    /// A machine that is three times as slow at one point is no regression.
    #[test]
    fn points_are_never_compared_with_each_other() {
        let slow = times(1.0).map(|side| side.map(|time| 3.0 * time));
        let comparison = compared(&[times(1.0), slow], 0);
        assert!(comparison.tables.is_empty());
        assert_eq!(comparison.points.len(), 2);
        for along in verdicts_by_point(&comparison.points) {
            let verdicts = along.points.iter().map(|figure| figure.found.unwrap().verdict);
            assert_eq!(verdicts.collect::<Vec<_>>(), [Verdict::Same, Verdict::Same]);
            assert!(along.changes().is_empty());
        }
        let names = comparison.points.iter().map(|point| {
            let variants = point.comparison.variants.iter().map(|it| &*it.name);
            variants.collect::<Vec<_>>()
        });
        assert_eq!(names.collect::<Vec<_>>(), [["old", "new"], ["old", "new"]]);
        let names: Vec<_> = comparison.variants.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["old", "new"]);
        assert_eq!(comparison.variants.iter().map(|it| it.complete).max(), Some(8));
    }

    #[test]
    fn the_machines_of_all_points_are_noted() {
        let (experiment, mut boots) = sweep(&[times(1.0), times(1.0)]);
        for (number, boot) in boots
            .iter_mut()
            .enumerate()
            .flat_map(|(number, boots)| boots.iter_mut().map(move |boot| (number, boot)))
        {
            boot.facts.cpus = if number < 2 { 1 } else { 4 };
        }
        let boots: Vec<&[Boot]> = boots.iter().map(Vec::as_slice).collect();
        let variants = columns(&experiment.variants, &boots);
        let results = Results { experiment: &experiment, reading: Reading::USUAL, variants };
        let notes = compare(&results, 0, &Judging::default()).notes;
        let machine = notes.facts.iter().find(|fact| fact.name == "machine").unwrap();
        assert_eq!(machine.values, vec![Some("1 CPU; 4 CPUs".to_owned()); 2]);
    }

    #[test]
    fn changes_pass_over_undecided_points() {
        let unclear = [OLD, [90.0, 115.0, 99.0, 107.0]];
        let comparison = compared(&[times(1.0), unclear, times(1.05), times(0.9)], 0);
        let all = verdicts_by_point(&comparison.points);
        let [elapsed] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (elapsed.workload, elapsed.metric, elapsed.variant),
            ("autonuma", "Elapsed", "new")
        );
        assert_eq!(elapsed.undecided().collect::<Vec<_>>(), ["memory=1"]);
        let changes = elapsed.changes();
        let [first, second] = changes[..] else { panic!("{changes:?}") };
        let same = (first.after, first.from, first.at, first.to);
        assert_eq!(same, ("memory=0", Verdict::Same, "memory=2", Verdict::Regression));
        assert_eq!((second.after, second.to), ("memory=2", Verdict::Improvement));
        // With the other baseline.
        let comparison = compared(&[times(1.0), times(1.05)], 1);
        let all = verdicts_by_point(&comparison.points);
        assert_eq!(all[0].variant, "old");
        assert_eq!(all[0].changes()[0].to, Verdict::Improvement);
    }

    /// SciPy 1.17.1: `ttest_1samp` of the logarithms of the ratios, `confidence_interval(1 - 0.05 / 4)`.
    #[test]
    fn all_points_share_the_rate_of_false_verdicts() {
        let comparison = compared(&[times(1.05), times(1.0), times(1.0), times(1.0)], 0);
        let judging = comparison.points[0].comparison.judging;
        assert!((judging.confidence - 0.9875).abs() < 1e-12);
        assert!((judging.luck - 0.0025).abs() < 1e-12);
        let PointVerdict { row, column, .. } =
            verdicts_by_point(&comparison.points)[0].points[0].found.unwrap();
        let evidence = row.evidence(column).unwrap();
        near(&[evidence.low, evidence.high], &[1.047716122115574, 1.0525513694881419]);
    }
}
