//! Verdicts of exact mode. They rest on the kernel's instructions in each measured phase: on the total or, if luck
//! hides its change, on the instructions at equal entries ([`crate::explain::equal`]). All other rows of a table form
//! a list. [`crate::verdicts::luck`] finds those of them that are beyond luck.

use model::{Better, Boot};
use stats::Estimate;

use super::luck::{Entry, Seeds, estimate, listed, reaches};
use crate::{Basis, Difference, Judging, Row, VariantBoots, Verdict};

/// A row of means, with the values of its seeds.
pub struct SeedRow {
    /// Index of the row in the table.
    pub row: usize,
    /// For each column after the first, the seeds that both the baseline and the column have.
    pub seeds: Vec<[Seeds; 2]>,
    /// The row's role in verdicts.
    pub role: Role,
}

/// The role of a row in verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A verdict rests on it: the kernel's instructions in a phase.
    Total,
    /// A verdict rests on it if luck hides the change of the row with this number: the same instructions at
    /// equal entries.
    Equal(usize),
    /// No verdict rests on it.
    Listed,
}

impl SeedRow {
    /// A row whose columns have these seeds.
    pub fn new(row: usize, seeds: &[Seeds], role: Role) -> Self {
        let pairs = seeds.iter().skip(1).map(|own| Seeds::paired([&seeds[0], own]));
        Self { row, seeds: pairs.collect(), role }
    }

    /// A row on which no verdict rests. `figures` has those of each column's boots.
    pub fn listed<'a, B: Iterator<Item = (&'a Boot, Option<f64>)>>(
        row: usize,
        columns: &[VariantBoots<'_>],
        figures: impl Iterator<Item = B>,
    ) -> Self {
        let seeds = columns.iter().zip(figures).map(|(column, boots)| {
            let figures = boots.map(|(boot, figure)| (boot.boot_index, figure));
            Seeds::new(figures, column.seeds())
        });
        Self::new(row, &seeds.collect::<Vec<_>>(), Role::Listed)
    }
}

/// Compares rows of means with luck, and gives the verdicts.
pub fn judge(rows: &mut [Row], held: &[SeedRow], judging: &Judging) {
    let mut differences: Vec<Vec<Option<Difference>>> = held.iter().map(differences).collect();
    set_joint_floors(held, &mut differences, judging.luck);
    for column in 0..rows.first().map_or(0, |row| row.cells.len().saturating_sub(1)) {
        let list = held.iter().zip(&mut differences).filter(|(it, _)| it.role == Role::Listed);
        let entries = list.filter_map(|(held, differences)| {
            let values = held.seeds[column].each_ref().map(|seeds| seeds.values().to_vec());
            Some(Entry { difference: differences[column].as_mut()?, values, scale: 1.0 })
        });
        listed(entries, false);
    }
    for (held, differences) in held.iter().zip(&differences) {
        for (column, difference) in differences.iter().enumerate() {
            rows[held.row].cells[column + 1].basis = Basis::Exact {
                floor: difference.and_then(|it| it.floor),
                beyond_luck: difference.and_then(|it| it.beyond_luck()),
                same_at_equal_entries: None,
                without_loops: None,
            };
        }
    }
    for (held, own) in held.iter().zip(&differences) {
        match held.role {
            Role::Total => give_verdicts(&mut rows[held.row], own, judging),
            Role::Equal(total) => overrule(rows, held.row, total, own, judging),
            Role::Listed => {}
        }
    }
}

fn differences(held: &SeedRow) -> Vec<Option<Difference>> {
    held.seeds.iter().map(|[base, own]| own.against(base)).collect()
}

/// Sets the floors of the differences on which verdicts rest, jointly (Holm): luck alone lifts any of these
/// differences above its floor in at most the share `level` of tables.
fn set_joint_floors(held: &[SeedRow], differences: &mut [Vec<Option<Difference>>], level: f64) {
    let mut known: Vec<(&mut Difference, Estimate)> = Vec::new();
    for (held, differences) in held.iter().zip(differences) {
        if held.role == Role::Listed {
            continue;
        }
        for (seeds, difference) in held.seeds.iter().zip(differences) {
            let Some(difference) = difference.as_mut().filter(|it| it.floor.is_some()) else {
                continue;
            };
            let [base, own] = seeds.each_ref().map(Seeds::values);
            known.extend(estimate(base, own).map(|it| (difference, it)));
        }
    }
    let estimates: Vec<Estimate> = known.iter().map(|it| it.1).collect();
    for ((difference, _), reach) in known.into_iter().zip(reaches(&estimates, level)) {
        difference.floor = Some(reach);
        *difference = difference.of_total();
    }
}

/// Gives the verdicts on a row, column by column.
fn give_verdicts(row: &mut Row, differences: &[Option<Difference>], judging: &Judging) {
    for (cell, difference) in row.cells.iter_mut().skip(1).zip(differences) {
        cell.verdict = Some(Verdict::of(Better::Lower, difference.as_ref(), judging.margin));
    }
}

/// Gives verdicts on the row of equal entries where luck hides the change of the total, and the change at
/// equal entries is beyond luck and the margin, and compatible with the total. If that change is within the margin,
/// the total keeps its verdict, and a note of it.
fn overrule(
    rows: &mut [Row],
    equal: usize,
    total: usize,
    differences: &[Option<Difference>],
    judging: &Judging,
) {
    for (column, difference) in (1..).zip(differences) {
        let [base, new] = [rows[total].base(column), rows[total].value(column)];
        let (Some(difference), Some(base), Some(new)) = (difference, base, new) else { continue };
        let all = Difference { base, new, floor: rows[total].floor(column) };
        let verdict = Verdict::of(Better::Lower, Some(difference), judging.margin);
        let is_same = rows[total].cells[column].verdict == Some(Verdict::Same);
        match verdict {
            _ if !all.hides(difference) => {}
            Verdict::Regression | Verdict::Improvement => {
                rows[equal].cells[column].verdict = Some(verdict);
                rows[total].cells[column].verdict = None;
            }
            Verdict::Same if !is_same => {
                let share = difference.change() / difference.base.abs();
                if let Basis::Exact { same_at_equal_entries, .. } =
                    &mut rows[total].cells[column].basis
                {
                    *same_at_equal_entries = Some(share).filter(|share| share.is_finite());
                }
            }
            Verdict::Same | Verdict::Undecided => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statistic;
    use crate::testing::{deviations, seeds};
    use crate::verdicts::luck::LEVEL;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn row(statistic: Statistic, [base, new]: [&[f64]; 2]) -> Row {
        let values = [base, new].map(|values| Some(mean(values))).into();
        Row::new("instructions", "", Some(Better::Lower), statistic, values, 0)
    }

    /// Verdicts on a total and the same at equal entries.
    fn verdicts(total: [&[f64]; 2], equal: [&[f64]; 2]) -> [Option<Verdict>; 2] {
        judged(total, equal).each_ref().map(|row| row.verdict(1))
    }

    /// A total and the same at equal entries, with their verdicts.
    fn judged(total: [&[f64]; 2], equal: [&[f64]; 2]) -> [Row; 2] {
        let mut rows = [row(Statistic::Amean, total), row(Statistic::Equal, equal)];
        let held = [
            SeedRow::new(0, &total.map(seeds), Role::Total),
            SeedRow { row: 1, seeds: vec![equal.map(seeds)], role: Role::Equal(0) },
        ];
        judge(&mut rows, &held, &Judging::default());
        rows
    }

    const LUCKY: [f64; 5] = [100.0, 120.0, 90.0, 105.0, 85.0];
    const SAME: [f64; 5] = [104.0, 118.0, 88.0, 107.0, 86.0];

    #[test]
    fn equal_entries_decide_if_luck_hides_the_total() {
        use Verdict::{Regression, Same, Undecided};
        let steady = [100.0, 100.1, 99.9, 100.0, 100.05];
        let dearer = steady.map(|it| it + 2.0);
        assert_eq!(verdicts([&LUCKY, &SAME], [&steady, &steady]), [Some(Undecided), None]);
        assert_eq!(verdicts([&LUCKY, &SAME], [&steady, &dearer]), [None, Some(Regression)]);
        // Within the margin.
        let little = steady.map(|it| it + 0.9);
        assert_eq!(verdicts([&LUCKY, &SAME], [&steady, &little]), [Some(Undecided), None]);
        let share =
            |equal: &[f64]| judged([&LUCKY, &SAME], [&steady, equal])[0].same_at_equal_entries(1);
        let small = share(&steady.map(|it| it + 0.2)).unwrap();
        assert!((small - 0.002).abs() < 1e-5, "{small}");
        assert_eq!([share(&dearer), share(&steady.map(|it| it + 60.0))], [None, None]);
        // More than the total allows.
        let far = steady.map(|it| it + 60.0);
        assert_eq!(verdicts([&LUCKY, &SAME], [&steady, &far]), [Some(Undecided), None]);
        // Certain, and below what seeds can tell.
        let least = steady.map(|it| it + 0.05);
        let judging = Judging { margin: 0.0, ..Judging::default() };
        let mut rows = vec![row(Statistic::Amean, [&[100.0; 5], &[100.05; 5]])];
        let held = [SeedRow::new(0, &[seeds(&[100.0; 5]), seeds(&[100.05; 5])], Role::Total)];
        judge(&mut rows, &held, &judging);
        assert_eq!((rows[0].verdict(1), rows[0].floor(1)), (Some(Same), Some(0.1)));
        assert_eq!(verdicts([&LUCKY, &SAME], [&steady, &least]), [Some(Undecided), None]);
        // A total beyond luck gets the verdict itself.
        assert_eq!(verdicts([&steady, &dearer], [&steady, &dearer]), [Some(Regression), None]);
    }

    /// Tables of 8 figures that do not differ get any verdict in at most 1 %, give or take 4 standard errors. The same
    /// holds if each boot fails with a probability of 20 %, whatever it counts.
    #[test]
    fn verdicts_by_luck_alone_are_as_rare_as_stated() {
        const TABLES: usize = 10_000;
        /// 20 % of deviations exceed this.
        const LIMIT: f64 = 0.84;
        let mut deviations = deviations();
        let judging = Judging { margin: 0.0, ..Judging::default() };
        let mut share = |some_fail: bool| {
            let found = (0..TABLES).filter(|_| {
                let failed: Vec<u32> =
                    (0..10).filter(|_| some_fail && deviations.next().unwrap() > LIMIT).collect();
                let mut rows = Vec::new();
                let mut held = Vec::new();
                for number in 0..8 {
                    let own = [0, 5].map(|first| {
                        let boots = (0..5).filter(|seed| !failed.contains(&(seed + first)));
                        let figure = |seed| (seed, Some(1e3 + 50.0 * deviations.next().unwrap()));
                        Seeds::new(boots.map(figure), [])
                    });
                    let [base, new] = Seeds::paired(own.each_ref());
                    rows.push(row(Statistic::Amean, [base.values(), new.values()]));
                    held.push(SeedRow::new(number, &own, Role::Total));
                }
                judge(&mut rows, &held, &judging);
                let found = rows.iter().filter_map(|row| row.verdict(1));
                found.into_iter().any(|it| it != Verdict::Undecided)
            });
            found.count() as f64 / TABLES as f64
        };
        for share in [false, true].map(&mut share) {
            assert!(share < LEVEL + 4.0 * (LEVEL / TABLES as f64).sqrt(), "{share}");
            assert!(share > 0.0);
        }
    }
}
