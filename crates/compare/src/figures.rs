//! One figure per boot, and the evidence from the figures of two variants.

pub mod growth;
pub mod operations;
pub mod phases;
pub mod steady;
pub mod warmup;

use std::collections::{BTreeMap, BTreeSet};

use stats::{Estimate, Summary};

use crate::verdicts::evidence::{Evidence, Judging, NoEvidence, Variation};
use crate::verdicts::independent::independent;

/// Fewer boots per side get no verdict. Two values of a bimodal distribution are often close together, so
/// their spread looks too small.
pub const MIN_BOOTS: usize = 3;

/// A figure of one variant: one value per boot, with the boot's block of the schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BootFigures {
    /// By block, and ascending within a block, so that nothing depends on the order of boots.
    values: Vec<(u32, f64)>,
    /// The blocks of boots that have values but no figure.
    lacking: Vec<u32>,
}

impl BootFigures {
    /// From blocks and the figures of their boots. `None` is a boot whose values have no such figure.
    pub fn new(figures: impl IntoIterator<Item = (u32, Option<f64>)>) -> Self {
        let figures =
            figures.into_iter().map(|(block, it)| (block, it.filter(|it| it.is_finite())));
        let (known, lacking): (Vec<_>, Vec<_>) = figures.partition(|(_, value)| value.is_some());
        let known = known.into_iter().filter_map(|(block, value)| Some((block, value?)));
        let mut values: Vec<(u32, f64)> = known.collect();
        values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Self { values, lacking: lacking.into_iter().map(|(block, _)| block).collect() }
    }

    /// Blocks with the figures of their boots.
    pub fn by_block(&self) -> impl Iterator<Item = (u32, f64)> {
        self.values.iter().copied()
    }

    /// The blocks of which both sides have figures, ascending.
    pub fn blocks_with(&self, other: &Self) -> Vec<u32> {
        let of = |side: &Self| side.values.iter().map(|(block, _)| *block).collect::<BTreeSet<_>>();
        of(self).intersection(&of(other)).copied().collect()
    }

    /// Both sides, with their figures exchanged in the blocks that `exchange` selects.
    pub fn exchanged(&self, other: &Self, exchange: impl Fn(u32) -> bool) -> [Self; 2] {
        let of = |own: &Self, other: &Self| {
            let stays = |block: u32| !exchange(block);
            let kept = own.values.iter().filter(|(block, _)| stays(*block));
            let gained = other.values.iter().filter(|(block, _)| exchange(*block));
            let mut values: Vec<(u32, f64)> = kept.chain(gained).copied().collect();
            values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            Self { values, lacking: own.lacking.clone() }
        };
        [of(self, other), of(other, self)]
    }

    /// The figures that count.
    fn counted(&self, judging: &Judging) -> Self {
        let Self { mut values, mut lacking } = self.clone();
        values.retain(|(block, _)| judging.counts(*block));
        lacking.retain(|block| judging.counts(*block));
        Self { values, lacking }
    }

    /// Their spread.
    pub(crate) fn variation(&self) -> Option<Variation> {
        let figures: Vec<Vec<f64>> = self.values.iter().map(|(_, value)| vec![*value]).collect();
        Variation::of(&figures)
    }

    /// The evidence for `new` against this baseline, as if it were the only comparison.
    ///
    /// Figures above 0 are compared by their logarithms, others by their differences. Boots are paired by
    /// block (Student's t on the differences of blocks) if at least 3 blocks have both sides, and hold most
    /// boots of the side with fewer: drift from block to block then cancels. Boots in blocks without the
    /// other side are then ignored, however many they are, because they would bring in the difference
    /// between blocks. Otherwise both sides are taken as independent ([`independent`]).
    ///
    /// The choice depends on the blocks alone: taking the smaller of both p-values would give false alarms
    /// in 6 to 10 % of cases where blocks do not differ (`bench/README.md`). The error says why there is no
    /// evidence: too few boots, or figures that can't be compared.
    pub fn against(&self, new: &Self, judging: &Judging) -> Result<Evidence, NoEvidence> {
        let [base, new] = &[self, new].map(|side| side.counted(judging));
        if !(base.lacking.is_empty() && new.lacking.is_empty()) {
            return Err(NoEvidence::Figure);
        }
        let all = [base.values.len(), new.values.len()];
        let mut values = base.values.iter().chain(&new.values).map(|(_, value)| *value);
        let scale = match values.all(|value| value > 0.0) {
            true => Scale::Logarithms,
            false => Scale::Shares(base.mean().ok_or(NoEvidence::Boots(all))?),
        };
        let [base_blocks, new_blocks] = [base, new].map(|side| side.blocks(scale));
        let common: Vec<(&Block, &Block)> = base_blocks
            .iter()
            .filter_map(|(block, base)| Some((base, new_blocks.get(block)?)))
            .collect();
        let together = common
            .iter()
            .fold([0, 0], |[base, new], (one, other)| [base + one.boots, new + other.boots]);
        let paired = common.len() >= MIN_BOOTS && 2 * common.len() > all[0].min(all[1]);
        let estimate = if paired {
            let steps: Vec<f64> = common.iter().map(|(base, new)| new.mean - base.mean).collect();
            Estimate::of_mean(&steps)
        } else if all.iter().all(|&boots| boots >= MIN_BOOTS) {
            let [base, new] = [base, new].map(|side| side.scaled(scale));
            independent(&base, &new)
        } else {
            return Err(NoEvidence::Boots(all));
        };
        let boots = if paired { together } else { all };
        scale.evidence(estimate.ok_or(NoEvidence::Figure)?, boots, paired, judging)
    }

    /// The evidence for a sum of several variants' logarithms, each multiplied by its weight: each block in
    /// which all of them have a figure gives one sum, on whose mean Student's t is used. `None` for fewer
    /// than 3 such blocks, and for figures that are not above 0.
    pub(crate) fn contrast(sides: &[(f64, &Self)], judging: &Judging) -> Option<Evidence> {
        let sides = sides.iter().filter(|(weight, _)| *weight != 0.0);
        let sides: Vec<(f64, Self)> =
            sides.map(|(weight, side)| (*weight, side.counted(judging))).collect();
        let has_logarithms =
            |side: &Self| side.lacking.is_empty() && side.values.iter().all(|(_, it)| *it > 0.0);
        if !sides.iter().all(|(_, side)| has_logarithms(side)) {
            return None;
        }
        let blocks: Vec<_> =
            sides.iter().map(|(weight, it)| (weight, it.blocks(Scale::Logarithms))).collect();
        let sum = |block: &u32| {
            blocks
                .iter()
                .map(|(weight, it)| Some(*weight * it.get(block)?.mean))
                .sum::<Option<f64>>()
        };
        let sums: Vec<f64> = blocks.first()?.1.keys().filter_map(sum).collect();
        if sums.len() < MIN_BOOTS {
            return None;
        }
        let estimate = Estimate::of_mean(&sums)?;
        Scale::Logarithms.evidence(estimate, [sums.len(); 2], true, judging).ok()
    }

    fn mean(&self) -> Option<f64> {
        let values: Vec<f64> = self.values.iter().map(|(_, value)| *value).collect();
        Some(Summary::of(&values)?.amean)
    }

    fn scaled(&self, scale: Scale) -> Vec<f64> {
        self.values.iter().map(|(_, value)| scale.of(*value)).collect()
    }

    fn blocks(&self, scale: Scale) -> BTreeMap<u32, Block> {
        let blocks = self.values.chunk_by(|a, b| a.0 == b.0);
        let block = |boots: &[(u32, f64)]| {
            let sum: f64 = boots.iter().map(|(_, value)| scale.of(*value)).sum();
            (boots[0].0, Block { mean: sum / boots.len() as f64, boots: boots.len() })
        };
        blocks.map(block).collect()
    }
}

/// The boots of one variant in a block: their mean figure, scaled, and their number.
struct Block {
    mean: f64,
    boots: usize,
}

/// The scale on which figures are compared.
#[derive(Clone, Copy)]
enum Scale {
    /// Logarithms; all figures are above 0.
    Logarithms,
    /// The figures themselves; their differences are shares of this, the baseline's mean.
    Shares(f64),
}

impl Scale {
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Logarithms => value.ln(),
            Self::Shares(_) => value,
        }
    }

    /// The ratio that a difference on this scale stands for.
    fn ratio(self, difference: f64) -> f64 {
        match self {
            Self::Logarithms => difference.exp(),
            Self::Shares(_) if difference == 0.0 => 1.0,
            Self::Shares(whole) => 1.0 + difference / whole,
        }
    }

    /// How far a share reaches down and up on this scale.
    fn bounds(self, share: f64) -> [f64; 2] {
        match self {
            Self::Logarithms => [(-share).ln_1p(), share.ln_1p()],
            Self::Shares(whole) => [-share * whole, share * whole],
        }
    }

    fn evidence(
        self,
        estimate: Estimate,
        boots: [usize; 2],
        paired: bool,
        judging: &Judging,
    ) -> Result<Evidence, NoEvidence> {
        let whole = match self {
            Self::Logarithms => 1.0,
            Self::Shares(whole) => whole,
        };
        if whole < 0.0 {
            return Err(NoEvidence::Share);
        }
        let (low, high) = estimate.interval(judging.confidence);
        let [least, most] = self.bounds(judging.margin);
        let p = estimate.p_apart(0.0);
        let no_doubt = estimate.se == 0.0;
        Ok(Evidence {
            ratio: self.ratio(estimate.value),
            low: self.ratio(low),
            high: self.ratio(high),
            p,
            p_alone: p,
            p_same: match no_doubt && estimate.value == 0.0 {
                true => 0.0,
                false => estimate.p_above(least).max(estimate.p_below(most)),
            },
            boots,
            paired,
            visible: None,
            needed: None,
            logarithmic: matches!(self, Self::Logarithms),
            error: if no_doubt { 0.0 } else { estimate.se / whole },
            freedom: estimate.df,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Look;
    use crate::testing::{blocks_from, near};

    /// Boots of blocks from 0 on.
    fn blocks(values: &[f64]) -> BootFigures {
        blocks_from(0, values)
    }

    const JUDGING: Judging =
        Judging { margin: 0.03, confidence: 0.95, luck: 0.01, look: None, warm_up_counts: false };
    const BASE: [f64; 5] = [62.44, 64.0, 61.9, 63.3, 62.7];

    /// NumPy 2.4.6 and SciPy 1.17.1: `d = numpy.log(new) - numpy.log(base)`, `numpy.exp` of its mean
    /// and of both ends of `r.confidence_interval(0.95)` with `r = scipy.stats.ttest_1samp(d, 0)`,
    /// `r.pvalue`, and the larger p-value of `ttest_1samp(d, numpy.log(0.97),
    /// alternative="greater")` and `ttest_1samp(d, numpy.log(1.03), alternative="less")`.
    #[test]
    fn blocks_are_compared_as_scipy_does_it() {
        let new = blocks(&[60.1, 62.2, 60.5, 61.9, 61.2]);
        let found = blocks(&BASE).against(&new, &JUDGING).unwrap();
        assert_eq!((found.paired, found.boots, found.freedom), (true, [5, 5], 4.0));
        let Evidence { ratio, low, high, p_alone, p_same, .. } = found;
        let expected = [
            0.9731314463934888, 0.9652025225175995, 0.9811255046141015, 0.0007616146699008762,
            0.1677434949192007,
        ];
        near(&[ratio, low, high, p_alone, p_same], &expected);
    }

    /// As above, of `d = new - base`, the bounds added to 1 as shares of `numpy.mean(base)`.
    #[test]
    fn figures_of_zero_are_compared_by_their_differences() {
        let (base, new) = (blocks(&[0.0, 3.0, 1.0, 2.0]), blocks(&[5.0, 9.0, 4.0, 7.0]));
        let Evidence { ratio, low, high, p_alone, .. } = base.against(&new, &JUDGING).unwrap();
        let expected =
            [4.166666666666666, 2.831836516442716, 5.501496816890617, 0.00481823046819855];
        near(&[ratio, low, high, p_alone], &expected);
    }

    /// NumPy and SciPy: the degrees of freedom as in [`independent`], the p-value
    /// `2 * scipy.stats.t.sf(abs(t), df)`, the bounds with `scipy.stats.t.ppf(0.975, df)`.
    #[test]
    fn boots_that_share_no_block_are_independent() {
        let new = blocks_from(10, &[60.1, 66.2, 55.5, 59.0]);
        let found = blocks(&BASE[..4]).against(&new, &JUDGING).unwrap();
        assert!(!found.paired);
        let Evidence { ratio, low, high, p_alone, freedom, .. } = found;
        let expected = [
            0.9550696782197304, 0.8547010744059869, 1.0672246912625971, 0.2958042316124652,
            3.40580893743087,
        ];
        near(&[ratio, low, high, p_alone, freedom], &expected);
    }

    #[test]
    fn a_few_blocks_in_common_do_not_make_pairs_of_many_boots() {
        let of = |blocks: &[u32]| {
            let figures = blocks.iter().map(|block| (*block, Some(1.0 + f64::from(*block % 3))));
            BootFigures::new(figures)
        };
        let boots = |base: &[u32], new: &[u32]| {
            let found = of(base).against(&of(new), &JUDGING)?;
            Ok((found.paired, found.boots))
        };
        assert_eq!(boots(&[0, 1, 2, 3], &[0, 1, 2, 7]), Ok((true, [3, 3])));
        assert_eq!(boots(&[0, 1, 2, 3, 4, 5], &[0, 1, 2]), Ok((true, [3, 3])));
        assert_eq!(boots(&[0, 1, 2, 3, 4], &[1, 2, 3, 7, 8]), Ok((true, [3, 3])));
        assert_eq!(boots(&[0, 1, 2, 3, 4, 5], &[0, 1, 2, 7, 8, 9]), Ok((false, [6, 6])));
        assert_eq!(boots(&[0, 0, 0], &[0, 0, 0]), Ok((false, [3, 3])));
        assert_eq!(boots(&[0, 0, 1, 2], &[0, 1, 2]), Ok((true, [4, 3])));
        assert_eq!(boots(&[0, 1], &[0, 1]), Err(NoEvidence::Boots([2, 2])));
        assert_eq!(boots(&[], &[0, 1, 2, 3]), Err(NoEvidence::Boots([0, 4])));
        assert_eq!(boots(&[0, 1, 2], &[]), Err(NoEvidence::Boots([3, 0])));
    }

    #[test]
    fn a_boot_without_a_figure_is_not_passed_over() {
        let gap = BootFigures::new((0..5).map(|block| (block, (block > 0).then_some(2.0))));
        let odd = blocks(&[1.0, 2.0, f64::NAN, 3.0]);
        for lacking in [gap, odd] {
            assert_eq!(blocks(&BASE).against(&lacking, &JUDGING), Err(NoEvidence::Figure));
            assert_eq!(lacking.against(&blocks(&BASE), &JUDGING), Err(NoEvidence::Figure));
        }
    }

    #[test]
    fn a_negative_mean_has_no_shares() {
        let (below, zero) = (blocks(&[-1.0, -2.0, -3.0]), blocks(&[0.0; 3]));
        assert_eq!(below.against(&zero, &JUDGING), Err(NoEvidence::Share));
        let found = zero.against(&blocks(&[4.0, 5.0, 6.0]), &JUDGING).unwrap();
        assert_eq!([found.ratio, found.low, found.high], [f64::INFINITY; 3]);
        assert!(found.p_alone < 0.02 && found.p_same > 0.9);
        let same = zero.against(&zero, &JUDGING).unwrap();
        assert_eq!((same.ratio, same.low, same.high, same.p_alone), (1.0, 1.0, 1.0, 1.0));
        assert_eq!(same.p_same, 0.0);
    }

    #[test]
    fn boots_after_the_current_look_do_not_count() {
        let at =
            |boots| Judging { look: Some(Look { number: 1, of: 7, boots, next: 9 }), ..JUDGING };
        let base = blocks(&[62.44, 64.0, 61.9, 63.3, f64::NAN, 9.0]);
        let new = blocks(&[60.1, 62.2, 60.5, 61.9, 1.0, 7.0]);
        let found = base.against(&new, &at(4)).unwrap();
        let alone = [&base, &new].map(|side| blocks(&[0, 1, 2, 3].map(|it| side.values[it].1)));
        assert_eq!(found, alone[0].against(&alone[1], &JUDGING).unwrap());
        assert_eq!(base.against(&new, &at(6)), Err(NoEvidence::Figure));
        assert_eq!(base.against(&new, &at(0)), Err(NoEvidence::Boots([0, 0])));
    }

    #[test]
    fn drift_from_block_to_block_cancels() {
        let drifting = |scale: f64| {
            let values: Vec<f64> = (0..4).map(|block| scale * 1.3_f64.powi(block)).collect();
            blocks(&values)
        };
        let found = drifting(10.0).against(&drifting(10.2), &JUDGING).unwrap();
        assert!(found.paired && found.p_alone < 1e-9 && found.high - found.low < 1e-9);
    }

    /// Boots of blocks that lack the other side do not count either, because a drift would look like a
    /// change.
    #[test]
    fn boots_without_a_counterpart_change_nothing_where_there_are_pairs() {
        let (base, new) = ([62.44, 64.0, 61.9], [60.1, 62.2, 60.5, 80.0, 85.0, 90.0, 95.0]);
        let pairs = blocks(&base).against(&blocks(&new[..3]), &JUDGING).unwrap();
        for boots in 4..=new.len() {
            let of = |left: &[f64], right: &[f64]| blocks(left).against(&blocks(right), &JUDGING);
            assert_eq!(of(&base, &new[..boots]).unwrap(), pairs);
            assert_eq!(of(&new[..boots], &base).unwrap().p_alone, pairs.p_alone);
        }
    }

    proptest! {
        /// Whatever the figures, p-values are probabilities and bounds enclose the ratio.
        #[test]
        fn no_figures_break_it(
            base in prop::collection::vec((0..6u32, any::<Option<f64>>()), 0..9),
            new in prop::collection::vec((0..6u32, any::<Option<f64>>()), 0..9),
        ) {
            let sides = [base, new].map(BootFigures::new);
            if let Ok(found) = sides[0].against(&sides[1], &JUDGING) {
                let Evidence { ratio, low, high, p_alone, p_same, boots, .. } = found;
                prop_assert!(low <= ratio && ratio <= high, "{:?}", found);
                prop_assert!((0.0..=1.0).contains(&p_alone) && (0.0..=1.0).contains(&p_same));
                prop_assert!(boots.iter().all(|boots| *boots >= MIN_BOOTS));
            }
        }

        #[test]
        fn the_order_of_boots_changes_nothing(
            (boots, moved) in prop::collection::vec((0..4u32, -1.0..9.0_f64), 3..9)
                .prop_flat_map(|boots| (Just(boots.clone()), Just(boots).prop_shuffle())),
        ) {
            let of = |boots: &[(u32, f64)]| {
                BootFigures::new(boots.iter().map(|(block, value)| (*block, Some(*value))))
            };
            let base = blocks(&BASE);
            let [found, again] = [&boots, &moved].map(|it| base.against(&of(it), &JUDGING));
            prop_assert_eq!(found, again);
            // Against itself there is no difference.
            if let Ok(found) = of(&boots).against(&of(&moved), &JUDGING) {
                prop_assert_eq!((found.ratio, found.p_alone), (1.0, 1.0));
            }
        }
    }
}
