//! From evidence to verdicts in measured mode, corrected for many comparisons.
//!
//! A difference is `same` if two one-sided tests show that it is smaller than the margin in either direction
//! (Schuirmann, "A comparison of the two one-sided tests procedure and the power approach", Journal of
//! Pharmacokinetics and Biopharmaceutics 15, 1987). Otherwise it is a `regression` or an `improvement` if it
//! is significant among all comparisons of the table on which verdicts rest (Holm), or else `undecided`.

use model::Better;
use stats::{Design, benjamini_hochberg, detectable, holm, least_p, required};

use super::independent::counted;
use crate::figures::MIN_BOOTS;
use crate::{Evidence, Judging, Row, Verdict};

/// A change is visible if it would be seen with this probability.
const POWER: f64 = 0.8;

/// Adjusts the comparisons of a table for each other, and gives verdicts on the rows that `judged` selects.
/// These rows are one family. The others are a second one, whose p-values become false discovery rates.
/// Counters that are equal in all boots are not tested: this selection is independent of differences
/// (Bourgon, Gentleman and Huber, "Independent filtering increases detection power for high-throughput
/// experiments", PNAS 107, 2010).
pub(crate) fn judge(rows: &mut [Row], judged: impl Fn(usize) -> bool, judging: &Judging) {
    let (verdicts, others): (Vec<usize>, Vec<usize>) =
        (0..rows.len()).partition(|number| judged(*number));
    let strict = comparisons(rows, &verdicts, |_| true);
    let loose = comparisons(rows, &others, Evidence::moved);
    let alone =
        |evidence: &[Evidence]| -> Vec<f64> { evidence.iter().map(|it| it.p_alone).collect() };
    adjust(rows, &strict, |evidence| holm(&alone(evidence)));
    adjust(rows, &loose, false_discovery_rates);
    let comparisons = strict.len().max(1);
    resolve(rows, &strict, judging.alpha() / comparisons as f64, |_| 0.0);
    let among = judging.alpha() / loose.len().max(1) as f64;
    resolve(rows, &loose, among, |evidence| least_p(evidence.units()));
    for number in verdicts {
        let row = &mut rows[number];
        let Some(better) = row.better else { continue };
        for cell in row.cells.iter_mut().skip(1) {
            if let Some(evidence) = cell.evidence_mut() {
                evidence.needed = needed(evidence, judging, comparisons);
            }
            let verdict = cell.evidence().map(|it| it.verdict(better, judging));
            cell.verdict = Some(verdict.unwrap_or(Verdict::Undecided));
        }
    }
}

/// The row and column of a cell.
type CellIndex = (usize, usize);

/// The cells of these rows whose evidence `kind` selects.
fn comparisons(
    rows: &[Row],
    numbers: &[usize],
    kind: impl Fn(&Evidence) -> bool,
) -> Vec<CellIndex> {
    let mut indices = Vec::new();
    for &row in numbers {
        let columns = rows[row].cells.iter().enumerate();
        let known = columns.filter(|(_, cell)| cell.evidence().is_some_and(&kind));
        indices.extend(known.map(|(column, _)| (row, column)));
    }
    indices
}

fn adjust(rows: &mut [Row], indices: &[CellIndex], method: impl Fn(&[Evidence]) -> Vec<f64>) {
    let known: Vec<Evidence> =
        indices.iter().filter_map(|&(row, column)| rows[row].evidence(column)).collect();
    for (&(row, column), p) in indices.iter().zip(method(&known)) {
        if let Some(evidence) = rows[row].cells[column].evidence_mut() {
            evidence.p = p;
        }
    }
}

/// The false discovery rate at which each of these comparisons would be called different. There are many counters,
/// and they are correlated. They are whole numbers that hardly vary, or have several modes. So a p-value counts as at
/// least the smallest one that this number of boots supports ([`least_p`]). The rates hold, or nearly so, for tests
/// that depend on each other as counters do (Reiner-Benaim, "FDR control by the BH procedure for two-sided correlated
/// tests with implications to gene expression data analysis", Biometrical Journal 49, 2007).
pub fn false_discovery_rates(evidence: &[Evidence]) -> Vec<f64> {
    let p = |it: &Evidence| it.p_alone.max(least_p(it.units()));
    benjamini_hochberg(&evidence.iter().map(p).collect::<Vec<f64>>())
}

/// Sets [`Evidence::visible`] to the change that would be visible at level `alpha`, the strictest level that a
/// comparison may have to meet. It is `None` if `least`, the smallest p-value that counts, is above `alpha`.
fn resolve(rows: &mut [Row], indices: &[CellIndex], alpha: f64, least: impl Fn(&Evidence) -> f64) {
    // Almost all comparisons have the same number of boots, so results are reused.
    let mut known: Vec<(usize, Option<f64>)> = Vec::new();
    for &(row, column) in indices {
        let Some(evidence) = rows[row].cells[column].evidence_mut() else { continue };
        if least(evidence) > alpha {
            continue;
        }
        let units = evidence.freedom.floor() as usize + 1;
        let in_errors = match known.iter().find(|(number, _)| *number == units) {
            Some((_, known)) => *known,
            None => {
                // The standard deviation of which 1 is the standard error.
                let sd = (units as f64).sqrt();
                let in_errors = detectable(Design::Paired, units, sd, alpha, POWER);
                known.push((units, in_errors));
                in_errors
            }
        };
        let visible = in_errors
            .map(|it| it * evidence.error)
            .map(|difference| if evidence.logarithmic { difference.exp_m1() } else { difference });
        evidence.visible = visible.filter(|visible| visible.is_finite());
    }
}

/// Boots per side needed to see a change as large as the margin among this many comparisons.
fn needed(evidence: &Evidence, judging: &Judging, comparisons: usize) -> Option<u32> {
    boots_to_see(evidence, 1.0 + judging.margin, judging.alpha() / comparisons as f64)
}

/// Boots per side needed to see that a figure changed by this factor.
fn boots_to_see(evidence: &Evidence, factor: f64, alpha: f64) -> Option<u32> {
    let &Evidence { error, freedom, boots, paired, logarithmic, .. } = evidence;
    let (design, sd) = match paired {
        true => (Design::Paired, error * (freedom + 1.0).sqrt()),
        false => {
            let [base, new] = counted(boots);
            (Design::Unpaired, error / (base.recip() + new.recip()).sqrt())
        }
    };
    let change = if logarithmic { factor.ln().abs() } else { (factor - 1.0).abs() };
    let boots = required(design, sd, change, alpha, POWER)?;
    u32::try_from(boots.max(MIN_BOOTS)).ok()
}

impl Evidence {
    /// Boots per side needed to see a change as large as the one of these boots in four of five cases, if it were the
    /// only comparison. `None` if it is not larger than the margin, or the number is not known.
    pub fn needed_for_this(&self, judging: &Judging) -> Option<u32> {
        if (self.ratio - 1.0).abs() <= judging.margin {
            return None;
        }
        boots_to_see(self, self.ratio, judging.alpha())
    }

    /// Whether some boots differ in the figure.
    pub fn moved(&self) -> bool {
        self.error > 0.0 || self.ratio != 1.0
    }

    /// The number of figures on a side: blocks, or boots of the side with fewer.
    fn units(&self) -> usize {
        let [base, new] = self.boots;
        if self.paired { self.freedom as usize + 1 } else { base.min(new) }
    }

    /// The verdict on a figure with direction `better`.
    pub fn verdict(&self, better: Better, judging: &Judging) -> Verdict {
        let alpha = judging.alpha();
        if self.p_same < alpha {
            return if judging.may_find_same() { Verdict::Same } else { Verdict::Undecided };
        }
        match (self.p < alpha, (self.ratio > 1.0) == (better == Better::Higher)) {
            (false, _) => Verdict::Undecided,
            (true, true) => Verdict::Improvement,
            (true, false) => Verdict::Regression,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Statistic;
    use crate::figures::BootFigures;
    use crate::testing::{blocks_from, deviations};

    const JUDGING: Judging =
        Judging { margin: 0.01, confidence: 0.95, luck: 0.01, look: None, warm_up_counts: false };

    /// A row of a time, its columns having these figures in blocks from 0 on.
    fn row(columns: &[&[f64]]) -> Row {
        let figures: Vec<_> = columns.iter().map(|values| blocks_from(0, values)).collect();
        let values = columns.iter().map(|values| values.first().copied()).collect();
        let row = Row::new("Elapsed", "s", Some(Better::Lower), Statistic::Amean, values, 2);
        row.against_boots(&figures, &JUDGING)
    }

    fn judged(mut rows: Vec<Row>, judging: &Judging) -> Vec<Row> {
        judge(&mut rows, |_| true, judging);
        rows
    }

    fn verdict(base: &[f64], new: &[f64]) -> Verdict {
        judged(vec![row(&[base, new])], &JUDGING)[0].verdict(1).unwrap()
    }

    const STEADY: [f64; 5] = [100.0, 100.2, 99.9, 100.1, 99.8];

    fn scaled(by: f64) -> Vec<f64> {
        // Not all by the same, so that a little doubt is left.
        let odd = [1.0, 1.001, 0.999, 1.0005, 0.9995];
        STEADY.iter().zip(odd).map(|(x, odd)| x * by * odd).collect()
    }

    #[test]
    fn a_difference_is_judged_by_margin_and_direction() {
        assert_eq!(verdict(&STEADY, &scaled(1.0)), Verdict::Same);
        assert_eq!(verdict(&STEADY, &scaled(1.03)), Verdict::Regression);
        assert_eq!(verdict(&STEADY, &scaled(0.97)), Verdict::Improvement);
        let rate = Row { better: Some(Better::Higher), ..row(&[&STEADY, &scaled(1.03)]) };
        let rows = judged(vec![rate], &JUDGING);
        let verdicts = [0, 1].map(|column| rows[0].verdict(column));
        assert_eq!(verdicts, [None, Some(Verdict::Improvement)]);
    }

    /// However certain the difference is: 0.5 % is below a margin of 1 %, and above one of 0.2 %.
    #[test]
    fn a_certain_difference_within_the_margin_is_same() {
        let row = row(&[&STEADY, &scaled(1.005)]);
        assert!(row.evidence(1).unwrap().p_alone < 0.001);
        let verdict = |margin| {
            let judging = Judging { margin, ..JUDGING };
            let row = self::row(&[&STEADY, &scaled(1.005)]);
            let figures = [&STEADY[..], &scaled(1.005)].map(|values| blocks_from(0, values));
            judged(vec![row.against_boots(&figures, &judging)], &judging)[0].verdict(1)
        };
        assert_eq!(verdict(0.01), Some(Verdict::Same));
        assert_eq!(verdict(0.002), Some(Verdict::Regression));
    }

    #[test]
    fn noise_is_undecided_and_says_how_many_boots_are_needed() {
        let base = [100.0, 110.0, 95.0, 104.0];
        let new = [103.0, 101.0, 99.0, 108.0];
        let rows = judged(vec![row(&[&base, &new])], &JUDGING);
        assert_eq!(rows[0].verdict(1), Some(Verdict::Undecided));
        let Evidence { visible, needed, boots, .. } = rows[0].evidence(1).unwrap();
        assert_eq!(boots, [4, 4]);
        // By `stats::power`, this number of boots sees 1 %, and 4 boots see what is called visible.
        let sd = rows[0].evidence(1).unwrap().error * 2.0;
        let power = |n: usize, effect: f64| {
            stats::power(Design::Paired, n, sd, effect.ln_1p(), 0.05).unwrap()
        };
        assert!((power(4, visible.unwrap()) - POWER).abs() < 1e-6);
        let needed = needed.unwrap() as usize;
        assert!(power(needed, 0.01) >= POWER && power(needed - 1, 0.01) < POWER);
    }

    #[test]
    fn a_large_change_takes_fewer_boots_than_the_margin() {
        let figures = |values: [f64; 3]| BootFigures::new((0..).zip(values.map(Some)));
        let new = figures([150.0, 250.0, 200.0]);
        let evidence = new.against(&figures([100.0, 103.0, 98.0]), &JUDGING).unwrap();
        let this = evidence.needed_for_this(&JUDGING).unwrap();
        assert!(this < 20 && super::needed(&evidence, &JUDGING, 1).unwrap() > 1000, "{this}");
        let same = figures([100.1, 103.0, 98.1]).against(&figures([100.0, 103.0, 98.0]), &JUDGING);
        assert_eq!(same.unwrap().needed_for_this(&JUDGING), None);
    }

    /// Both sides scatter by 1 %, whatever their numbers of boots, so that as many more are needed.
    #[test]
    fn boots_needed_do_not_depend_on_which_side_has_more() {
        let needed = |base: &[f64], new: &[f64]| {
            let of = |logs: &[f64], first: u32| {
                BootFigures::new((first..).zip(logs.iter().map(|log| Some(log.exp()))))
            };
            let evidence = of(base, 0).against(&of(new, 100), &JUDGING).unwrap();
            super::needed(&evidence, &JUDGING, 1).unwrap() as usize
        };
        let (three, five) = ([-0.01, 0.0, 0.01], [-0.01, -0.01, 0.0, 0.01, 0.01]);
        let expected = stats::required(Design::Unpaired, 0.01, 0.01_f64.ln_1p(), 0.05, POWER);
        for (base, new) in [(&three[..], &three[..]), (&three, &five), (&five, &three)] {
            assert_eq!(Some(needed(base, new)), expected);
        }
    }

    #[test]
    fn fewer_than_three_boots_decide_nothing() {
        for (base, new) in [(0, 0), (1, 1), (2, 2), (0, 5), (5, 2), (1, 5)] {
            let (base, new) = (vec![1.0; base], vec![9.0; new]);
            let rows = judged(vec![row(&[&base, &new])], &JUDGING);
            assert_eq!(
                [0, 1].map(|column| rows[0].verdict(column)),
                [None, Some(Verdict::Undecided)]
            );
            assert_eq!(
                rows[0].no_evidence(1),
                Some(crate::NoEvidence::Boots([base.len(), new.len()]))
            );
        }
    }

    /// SciPy's p-value of this row alone is 0.0368; Holm's of eight such rows is 8 times that.
    #[test]
    fn many_comparisons_need_stronger_evidence() {
        let base = [100.0, 110.0, 95.0, 104.0];
        let new = [108.0, 113.0, 103.0, 107.0];
        let one = || row(&[&base, &new]);
        let alone = judged(vec![one()], &JUDGING);
        assert_eq!(alone[0].verdict(1), Some(Verdict::Regression));
        let among = judged((0..8).map(|_| one()).collect(), &JUDGING);
        assert_eq!(among[0].verdict(1), Some(Verdict::Undecided));
        let [alone, among] = [&alone[0], &among[0]].map(|row| row.evidence(1).unwrap());
        assert!((among.p / alone.p - 8.0).abs() < 1e-9 && among.p_alone == alone.p_alone);
        assert!(among.visible > alone.visible && among.needed > alone.needed);
        let mut others: Vec<Row> = (0..8).map(|_| one()).collect();
        judge(&mut others, |_| false, &JUDGING);
        // All eight being discoveries, none is a false one for being among the others.
        assert_eq!(others[0].evidence(1).unwrap().p, alone.p_alone);
        assert_eq!((others[0].verdict(1), others[0].evidence(1).unwrap().needed), (None, None));
    }

    /// Counters as in boots of one kernel: three counters see an event of 35 pages that happens or not, and a
    /// fourth has one of two adjacent values. Alone they look nearly certain, but 3 boots prove nothing.
    #[test]
    fn a_few_boots_in_two_modes_are_no_discovery() {
        let judged = |boots: usize| {
            let side =
                |values: [f64; 2]| -> Vec<f64> { (0..boots).map(|it| values[it % 2]).collect() };
            let pair = |one, other| row(&[&side(one), &side(other)]);
            let mut rows = vec![
                pair([39209.0, 39211.0], [39245.0, 39247.0]),
                pair([39415.0, 39415.0], [39454.0, 39455.0]),
                pair([39435.0, 39436.0], [39472.0, 39474.0]),
                pair([7.0, 7.0], [8.0, 8.0]),
            ];
            rows.extend((0..8).map(|_| pair([100.0, 110.0], [108.0, 101.0])));
            judge(&mut rows, |_| false, &JUDGING);
            rows.iter().map(|row| row.evidence(1).unwrap()).collect::<Vec<Evidence>>()
        };
        let three = judged(3);
        assert!(three[..4].iter().all(|it| it.p_alone < 0.001 && it.p > 0.09), "{three:?}");
        // No one of them alone could have been seen, however far apart.
        assert!(three.iter().all(|it| it.visible.is_none()));
        // 4 / 12 of 5 % is more than 5 boots can tell.
        let five = judged(5);
        assert!(five[..4].iter().all(|it| it.p < 0.01));
        assert!(five[4..].iter().all(|it| it.visible.is_some()));
    }

    #[test]
    fn unchanged_counters_do_not_weaken_other_evidence() {
        let moving = || row(&[&[100.0, 110.0, 95.0, 104.0], &[108.0, 113.0, 103.0, 107.0]]);
        let still = || row(&[&[0.0; 4], &[0.0; 4]]);
        let mut rows = vec![moving(), still(), still(), still()];
        judge(&mut rows, |_| false, &JUDGING);
        let [moving, still] = [0, 1].map(|number| rows[number].evidence(1).unwrap());
        assert_eq!((moving.p, still.p, still.visible), (moving.p_alone, 1.0, None));
    }

    /// Boots in blocks that differ by 2 %, as they are compared before any table: between equal ones
    /// differences are significant in 5 % of cases, intervals hold the truth in 95 %, and 80 % see a
    /// change as large as the one called visible, all give or take 4 standard errors.
    #[test]
    fn false_alarms_and_power_are_as_stated() {
        const TRIALS: usize = 10_000;
        let mut deviations = deviations();
        for boots in [3, 6] {
            let mut compared = |change: f64| -> Vec<(Verdict, Evidence)> {
                let mut side = |change: f64| {
                    let boot = |block| {
                        let luck = 0.02 * deviations.next().unwrap();
                        (block, Some(100.0 * change * luck.exp()))
                    };
                    BootFigures::new((0..boots).map(boot))
                };
                let compared = |_| {
                    let evidence = side(1.0).against(&side(change), &JUDGING).unwrap();
                    (evidence.verdict(Better::Lower, &JUDGING), evidence)
                };
                (0..TRIALS).map(compared).collect()
            };
            let near = |count: usize, expected: f64| {
                let share = count as f64 / TRIALS as f64;
                let error = (expected * (1.0 - expected) / TRIALS as f64).sqrt();
                assert!((share - expected).abs() < 4.0 * error, "{share}, not {expected}");
            };
            let alike = compared(1.0);
            let alarms = alike.iter().filter(|(_, it)| it.p < 0.05).count();
            near(alarms, 0.05);
            near(alike.iter().filter(|(_, it)| it.low <= 1.0 && 1.0 <= it.high).count(), 0.95);
            let changes = [Verdict::Regression, Verdict::Improvement];
            assert!(alike.iter().filter(|(it, _)| changes.contains(it)).count() <= alarms);
            let sd = 0.02 * 2.0_f64.sqrt();
            let visible = detectable(Design::Paired, boots as usize, sd, 0.05, POWER).unwrap();
            near(compared(visible.exp()).iter().filter(|(_, it)| it.p < 0.05).count(), POWER);
        }
    }

    proptest! {
        /// Whatever was measured, a kernel does not differ from itself.
        #[test]
        fn the_same_boots_are_never_a_change(
            values in prop::collection::vec(any::<f64>(), 0..8),
            margin in 1e-6..0.9_f64,
        ) {
            let judging = Judging { margin, ..JUDGING };
            let boots = BootFigures::new((0..).zip(values.iter().copied().map(Some)));
            if let Ok(evidence) = boots.against(&boots, &judging) {
                prop_assert_eq!(evidence.verdict(Better::Lower, &judging), Verdict::Same);
            }
        }
    }
}
