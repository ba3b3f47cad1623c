use proptest::prelude::*;

use super::*;
use crate::Look;
use crate::testing::{blocks_from, deviations, near};

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

/// The same as for blocks with `d = new - base`. The bounds are 1 plus shares of `numpy.mean(base)`.
#[test]
fn figures_of_zero_are_compared_by_their_differences() {
    let (base, new) = (blocks(&[0.0, 3.0, 1.0, 2.0]), blocks(&[5.0, 9.0, 4.0, 7.0]));
    let Evidence { ratio, low, high, p_alone, .. } = base.against(&new, &JUDGING).unwrap();
    let expected = [4.166666666666666, 2.831836516442716, 5.501496816890617, 0.00481823046819855];
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

/// Boots of these blocks, each with its host.
fn on_hosts(boots: &[(u32, u64, f64)]) -> BootFigures {
    let place = |(block, host, value): &(u32, u64, f64)| {
        (HostBlock { block: *block, host: *host }, Some(*value))
    };
    BootFigures::new(boots.iter().map(place))
}

/// Python 3.11, `statistics.mean` and `statistics.variance` of the logarithms' differences on each host, with
/// weights 3/7 and 4/7, Satterthwaite's degrees of freedom, and Student's density summed by Simpson's rule.
#[test]
fn boots_of_two_hosts_are_compared_on_each() {
    let base = [
        (0, 1, 62.44),
        (1, 1, 64.0),
        (2, 1, 61.9),
        (3, 2, 31.0),
        (4, 2, 30.6),
        (5, 2, 31.2),
        (6, 2, 30.8),
    ];
    let new = [
        (0, 1, 60.1),
        (1, 1, 62.2),
        (2, 1, 60.5),
        (3, 2, 30.4),
        (4, 2, 30.5),
        (5, 2, 30.3),
        (6, 2, 30.6),
    ];
    let found = on_hosts(&base).against(&on_hosts(&new), &JUDGING).unwrap();
    assert_eq!((found.paired, found.boots), (true, [7, 7]));
    let Evidence { ratio, low, high, p_alone, error, freedom, .. } = found;
    let expected = [
        0.9790505342140225, 0.9688701565119785, 0.9893378819671717, 0.0040759653687365395,
        0.003932632128827683, 4.504884045840993,
    ];
    near(&[ratio, low, high, p_alone, error, freedom], &expected);
}

#[test]
fn boots_of_different_hosts_are_no_pairs() {
    let of = |host: u64| [0, 1, 2, 3].map(|block| (block, host, BASE[block as usize]));
    let against = |base: &[_], new: &[_]| on_hosts(base).against(&on_hosts(new), &JUDGING);
    assert!(against(&of(1), &of(1)).unwrap().paired);
    assert_eq!(against(&of(1), &of(2)), Err(NoEvidence::Hosts));
    // Boots of an unknown host may be of any host.
    assert_eq!(against(&of(0), &of(2)), Err(NoEvidence::Hosts));
    assert!(against(&of(0), &of(0)).unwrap().paired);
    // A block that two hosts share is no pair: three are left.
    let mut moved = of(1);
    moved[3].1 = 2;
    let found = against(&of(1), &moved).unwrap();
    assert_eq!((found.paired, found.boots), (true, [3, 3]));
    moved[2].1 = 2;
    assert_eq!(against(&of(1), &moved), Err(NoEvidence::Hosts));
}

/// One host is half as fast as the other and scatters three times as much. Without a change, at most 5 % of the
/// comparisons claim one, within four standard errors. If all boots counted as boots of one host, a change of 5 %
/// would never be seen.
#[test]
fn hosts_share_no_variance() {
    const TRIALS: usize = 1_500;
    let mut deviations = deviations();
    let (mut claimed, mut seen) = (0, 0);
    for _ in 0..TRIALS {
        let mut side = |change: f64, first: u32| {
            let boot = |block: u32| {
                let (host, level, sd) = if block < 4 { (1, 10.0, 0.01) } else { (2, 20.0, 0.03) };
                let z: f64 = deviations.next().unwrap();
                (first + block, host, level * change * (sd * z).exp())
            };
            on_hosts(&(0..8).map(boot).collect::<Vec<_>>())
        };
        let (base, same, slower) = (side(1.0, 0), side(1.0, 0), side(1.05, 0));
        let apart = side(1.0, 100);
        let is_claimed = |new: &BootFigures| base.against(new, &JUDGING).unwrap().p_alone < 0.05;
        claimed += [&same, &apart].iter().filter(|it| is_claimed(it)).count();
        seen += usize::from(is_claimed(&slower));
    }
    let all = 2.0 * TRIALS as f64;
    assert!((claimed as f64 / all) < 0.05 + 4.0 * (0.05 * 0.95 / all).sqrt(), "{claimed}");
    assert!(seen > TRIALS / 2, "{seen}");
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
    let at = |boots| Judging { look: Some(Look { number: 1, of: 7, boots, next: 9 }), ..JUDGING };
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
