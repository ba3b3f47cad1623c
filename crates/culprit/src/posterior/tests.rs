use proptest::prelude::*;

use super::*;

/// A range in which every kernel can be read at the same cost.
struct Range {
    history: History,
    unreadable: FixedBitSet,
}

impl Range {
    fn new(history: History) -> Self {
        let unreadable = FixedBitSet::with_capacity(history.len());
        Self { history, unreadable }
    }

    fn linear(commits: usize) -> Self {
        Self::new(History::linear(commits))
    }

    fn weigh(&self, readings: &[(Node, f64)]) -> Weighed {
        self.weigh_at(readings, &|_| 1.0)
    }

    fn weigh_at(&self, readings: &[(Node, f64)], cost: &dyn Fn(Node) -> f64) -> Weighed {
        let Self { history, unreadable } = self;
        Noisy { history, readings, unreadable, prior: &[], cost, confidence: 0.95 }.weigh()
    }

    /// Reads until the search ends. Kernels with `commit` read about `shift` higher.
    fn search(&self, commit: Node, shift: f64, seed: u64) -> (Next, usize) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut readings = Vec::new();
        loop {
            match self.weigh(&readings).next {
                Next::Read(node) => {
                    let level = if self.history.has(node, commit) { shift } else { 0.0 };
                    let sum: f64 = (0..12).map(|_| random.f64()).sum();
                    readings.push((node, 50.0 + level + sum - 6.0));
                }
                next => return (next, readings.len()),
            }
        }
    }
}

/// Figures as readings of `node`.
fn of(node: Node, figures: &[f64]) -> Vec<(Node, f64)> {
    figures.iter().map(|figure| (node, *figure)).collect()
}

const LOW: [f64; 8] = [9.7, 10.4, 10.1, 9.2, 10.9, 9.8, 10.3, 9.6];
const HIGH: [f64; 8] = [12.1, 11.4, 12.9, 12.2, 11.7, 12.6, 11.9, 12.3];

/// SciPy 1.17.1, with `y` the figures of each commit, flat levels and a flat logarithm of a common spread:
/// `l = [quad(lambda s: side(a, s) * side(b, s) / s, .1, 5)[0] for a, b in splits]; l / sum(l)`, where
/// `side = lambda v, s: quad(lambda m: exp(norm.logpdf(v, m, s).sum()), 5, 17)[0]` and `a`, `b` are the
/// figures before and from each commit. Ours also allows for unequal spreads and for boots that stray.
#[test]
fn the_posterior_agrees_with_scipy() {
    let expected = [0.00079, 0.00079, 0.65199, 0.34395, 0.00123, 0.00123];
    let mut readings = of(0, &LOW);
    readings.extend(of(2, &[10.6, 9.9]));
    readings.extend([(3, 11.2), (4, 12.4)]);
    readings.extend(of(6, &HIGH));
    let found = Range::linear(6).weigh(&readings).posterior;
    assert_eq!(found[0], 0.0);
    for (found, expected) in found[1..].iter().zip(expected) {
        assert!((found - expected).abs() < 0.05, "{found}, not {expected}");
    }
    // No reading tells apart commits between two neighbouring kernels that were read.
    assert_eq!(found[1], found[2]);
    assert_eq!(found[5], found[6]);
}

#[test]
fn both_ends_are_read_first() {
    let range = Range::linear(8);
    assert_eq!(range.weigh(&[]).next, Next::Read(0));
    assert_eq!(range.weigh(&[(0, 1.0)]).next, Next::Read(8));
    assert_eq!(range.weigh(&[(0, 1.0), (8, 2.0)]).next, Next::Read(0));
}

#[test]
fn the_answer_depends_on_the_readings_alone() {
    let range = Range::linear(40);
    let mut readings = of(0, &LOW);
    readings.extend(of(40, &HIGH));
    readings.extend([(20, 10.2), (30, 12.0), (25, 11.0)]);
    assert_eq!(range.weigh(&readings), range.weigh(&readings));
    readings.rotate_left(11);
    let turned = range.weigh(&readings);
    readings.rotate_right(11);
    assert_eq!(range.weigh(&readings).next, turned.next);
}

#[test]
fn clear_steps_are_found() {
    for seed in 0..8 {
        let (found, readings) = Range::linear(64).search(41, 6.0, seed);
        assert_eq!(found, Next::Found(vec![41]));
        assert!(readings < 24, "{readings} readings");
    }
}

#[test]
fn steps_on_branches_are_found() {
    // 0 - 1 ----------- 6 - 7
    //      \- 2 - 3    /
    //       \- 4 - 5 -/ (all three merged)
    let parents = vec![vec![], vec![0], vec![1], vec![2], vec![1], vec![4], vec![1, 3, 5], vec![6]];
    let range = Range::new(History::new(parents));
    for commit in 1..=7 {
        assert_eq!(range.search(commit, 8.0, 1).0, Next::Found(vec![commit]));
    }
}

#[test]
fn commits_that_cannot_be_read_stay_possible() {
    let mut range = Range::linear(16);
    range.unreadable.insert_range(5..8);
    let (found, _) = range.search(6, 8.0, 3);
    // Only kernels 4 and 8 can be read.
    assert_eq!(found, Next::Found(vec![5, 6, 7, 8]));
    let (found, _) = range.search(9, 8.0, 3);
    assert_eq!(found, Next::Found(vec![9]));
}

#[test]
fn a_single_commit_is_the_step_only_if_the_ends_differ() {
    let range = Range::linear(1);
    let mut readings = of(0, &[1.0, 1.4, 2.1]);
    readings.extend(of(1, &[2.3, 2.6, 3.2]));
    let weighed = range.weigh(&readings);
    assert!((0.5..0.95).contains(&weighed.differs), "{}", weighed.differs);
    assert_eq!(weighed.next, Next::Read(0));
    assert_eq!(range.search(1, 5.0, 1).0, Next::Found(vec![1]));
}

#[test]
fn weights_decide_between_commits_that_cannot_be_read() {
    let mut range = Range::linear(16);
    range.unreadable.insert(5);
    let mut readings = of(4, &LOW);
    readings.extend(of(0, &LOW));
    readings.extend(of(6, &HIGH));
    readings.extend(of(16, &HIGH));
    let mut prior = vec![1.0; 17];
    prior[5] = 99.0;
    let Range { history, unreadable } = &range;
    let noisy = Noisy {
        history,
        readings: &readings,
        unreadable,
        prior: &prior,
        cost: &|_| 1.0,
        confidence: 0.95,
    };
    assert_eq!(noisy.weigh().next, Next::Found(vec![5]));
}

#[test]
fn cheap_kernels_are_preferred() {
    let range = Range::linear(64);
    let mut readings = of(0, &LOW);
    readings.extend(of(64, &HIGH.map(|figure| figure + 4.0)));
    assert_eq!(range.weigh(&readings).next, Next::Read(32));
    let built = |node| if node == 24 { 1.0 } else { 10.0 };
    assert_eq!(range.weigh_at(&readings, &built).next, Next::Read(24));
}

#[test]
fn equal_ends_have_no_difference() {
    let range = Range::linear(64);
    let equal = |figure, count| {
        let mut readings = of(0, &vec![figure; count]);
        readings.extend(of(64, &vec![figure; count]));
        readings
    };
    assert_eq!(range.weigh(&equal(7.0, 4)).next, Next::NoDifference);
    let mut readings = Vec::new();
    for _ in 0..5 {
        readings.extend(of(0, &LOW));
        readings.extend(of(64, &LOW));
    }
    let weighed = range.weigh(&readings);
    assert_eq!(weighed.next, Next::NoDifference);
    assert!(weighed.differs < 0.05);
}

#[test]
fn two_steps_do_not_fit_one() {
    let range = Range::linear(64);
    let shifted = |by: f64| LOW.map(|figure| figure + by);
    let mut readings = of(0, &LOW);
    readings.extend(of(64, &shifted(8.0)));
    readings.extend(of(20, &shifted(0.0)));
    for node in [30, 35, 40] {
        readings.extend(of(node, &shifted(4.0)[..2]));
    }
    readings.extend(of(50, &shifted(8.0)[..2]));
    assert_eq!(range.weigh(&readings).next, Next::Misfit);
}

#[test]
fn the_unit_of_the_readings_does_not_matter() {
    let readings = |unit: f64| {
        let of_node = |node, figures: [f64; 8]| of(node, &figures.map(|figure| figure * unit));
        [of_node(0, LOW), of_node(5, LOW), of_node(8, HIGH)].concat()
    };
    let range = Range::linear(8);
    let weighed = range.weigh(&readings(1.0));
    // Powers of two scale without rounding.
    for power in [-900, -400, 400] {
        assert_eq!(range.weigh(&readings(2f64.powi(power))), weighed);
    }
    let subnormal = range.weigh(&readings(2f64.powi(-1040)));
    assert_eq!(subnormal.next, weighed.next);
    assert!((subnormal.posterior.iter().sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn the_likeliest_commits_hold_the_share() {
    let mut readings = of(0, &LOW);
    readings.extend(of(3, &LOW));
    readings.extend(of(6, &HIGH));
    readings.extend(of(8, &HIGH));
    let weighed = Range::linear(8).weigh(&readings);
    let likeliest = weighed.likeliest(0.9);
    assert_eq!(likeliest.iter().map(|it| it.0).collect::<Vec<_>>(), [4, 5, 6]);
    assert!(likeliest.iter().map(|it| it.1).sum::<f64>() > 0.9);
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -3.0..3.0,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, 1.0, f64::NAN, f64::INFINITY, 1e300, -1e140, 1e-300]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_readings_are_weighed(
        commits in 1usize..20,
        readings in prop::collection::vec((0usize..24, figure()), 0..12),
        ends in prop::collection::vec((figure(), figure()), 0..6),
        unreadable in prop::collection::vec(0usize..30, 0..8),
        prior in prop::collection::vec(figure(), 0..24),
        costs in prop::collection::vec(figure(), 20),
    ) {
        let history = History::linear(commits);
        let ends = ends.into_iter().flat_map(|(low, high)| [(0, low), (commits, high)]);
        let readings: Vec<(Node, f64)> = readings.into_iter().chain(ends).collect();
        let mut cannot = FixedBitSet::with_capacity(30);
        cannot.extend(unreadable);
        let weighed = Noisy {
            history: &history,
            readings: &readings,
            unreadable: &cannot,
            prior: &prior,
            cost: &|node| costs[node.min(19)],
            confidence: 0.95,
        }
        .weigh();
        prop_assert!((weighed.posterior.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        prop_assert!((0.0..=1.0).contains(&weighed.differs));
        if let Next::Read(node) = weighed.next {
            prop_assert!(node <= commits && !cannot.contains(node));
        }
    }
}

/// Half of the boots with the step 7 read 6 higher. One such boot of commit 9 is among five, and four of twelve boots
/// after it read as those without the step.
#[test]
fn a_step_of_half_of_the_boots_is_not_named_too_early() {
    let mut readings = of(0, &[99.6, 100.8, 99.2, 100.3, 101.0, 99.9, 100.1, 98.9]);
    readings.extend(of(6, &[99.8]));
    readings.extend(of(9, &[101.0, 107.9, 101.1, 99.7, 99.6]));
    readings.extend(of(10, &[108.1, 99.4, 106.1, 107.1]));
    readings.extend(of(12, &[106.2, 106.6, 100.7, 100.5, 99.7, 106.6, 107.0, 105.6]));
    let found = Range::linear(12).weigh(&readings);
    assert!(found.posterior[10] < 0.9, "{:?}", found.posterior);
    assert!(matches!(found.next, Next::Read(_)), "{:?}", found.next);
}
