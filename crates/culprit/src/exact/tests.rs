use super::*;

/// A range with known steps. Each commit's figure is 1000 and the steps of all its ancestors.
struct World {
    history: History,
    steps: Vec<(Node, f64)>,
    unreadable: Vec<Node>,
    kept: Vec<Node>,
    /// Half the spread of the seeds.
    luck: f64,
    parting: Option<Node>,
}

impl World {
    fn new(history: History, steps: &[(Node, f64)]) -> Self {
        let (unreadable, kept) = (Vec::new(), Vec::new());
        Self { history, steps: steps.to_vec(), unreadable, kept, luck: 0.0, parting: None }
    }

    fn figure(&self, node: Node, seed: usize) -> f64 {
        let steps = self.steps.iter().filter(|step| self.history.has(node, step.0));
        let luck = ((node * 7919 + seed * 104_729) % 1000) as f64 / 500.0 - 1.0;
        1000.0 + steps.map(|step| step.1).sum::<f64>() + self.luck * luck
    }

    /// The answer, and how many commits were read.
    fn search(&self, all: bool) -> (Next, usize) {
        let mut unreadable = FixedBitSet::with_capacity(self.history.len());
        unreadable.extend(self.unreadable.iter().copied());
        let kept = self.kept.iter().copied().zip(1..).collect();
        let mut readings = BTreeMap::new();
        loop {
            let search = Exact {
                history: &self.history,
                readings: &readings,
                unreadable: &unreadable,
                kept: &kept,
                parting: self.parting,
                least: 0.5,
                seeds: 3,
                all,
            };
            match search.next() {
                Next::Read(node, seeds) => {
                    let before = readings.get(&node).map_or(0, Vec::len);
                    assert!(before < seeds && !unreadable.contains(node));
                    readings.insert(node, (0..seeds).map(|seed| self.figure(node, seed)).collect());
                }
                answer => return (answer, readings.len()),
            }
        }
    }

    fn found(&self, all: bool) -> Vec<(Vec<Node>, f64)> {
        match self.search(all).0 {
            Next::Found(steps) => {
                steps.into_iter().map(|step| (step.commits, step.change)).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn each_single_step_is_found_with_about_log2_readings() {
    for culprit in 1..=64 {
        let world = World::new(History::linear(64), &[(culprit, 50.0)]);
        let (answer, read) = world.search(false);
        let step =
            Step { commits: vec![culprit], before: culprit - 1, after: culprit, change: 50.0 };
        assert_eq!(answer, Next::Found(vec![step]));
        assert!(read <= 8, "{read} for {culprit}");
    }
}

#[test]
fn commits_that_an_earlier_search_read_are_preferred() {
    let mut world = World::new(History::linear(64), &[(50, 50.0)]);
    let found = world.search(false);
    assert_eq!(found.1, 8);
    // Commit 3 is too near to the good end to be worth a reading.
    world.kept = vec![3];
    assert_eq!(world.search(false), found);
    // The search reads 40 and 50, then 45, which is new, and 49.
    world.kept = vec![40, 50, 49];
    assert_eq!(world.search(false), (found.0.clone(), 6));
    // Commit 20 is read before 42 in both cases, as before the interruption.
    for kept in [vec![20], vec![20, 42]] {
        world.kept = kept;
        assert_eq!(world.search(false), (found.0.clone(), 9));
    }
}

#[test]
fn luck_is_overcome_with_more_seeds() {
    for culprit in 1..=32 {
        let mut world = World::new(History::linear(32), &[(culprit, 50.0)]);
        world.luck = 10.0;
        let found = world.found(false);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, [culprit]);
        assert!((found[0].1 - 50.0).abs() < 20.0, "{found:?}");
    }
}

#[test]
fn several_steps_and_offsetting_ones_are_found() {
    let found = |steps: &[(Node, f64)], all| World::new(History::linear(64), steps).found(all);
    let two = [(10, 30.0), (40, 20.0)];
    assert_eq!(found(&two, false), [(vec![10], 30.0), (vec![40], 20.0)]);
    let offsetting = [(20, 200.0), (41, -150.0)];
    assert_eq!(found(&offsetting, false), [(vec![20], 200.0), (vec![41], -150.0)]);
    let small = [(10, 100.0), (50, 4.0)];
    assert_eq!(found(&small, false), [(vec![10], 100.0)]);
    assert_eq!(found(&small, true), [(vec![10], 100.0), (vec![50], 4.0)]);
}

#[test]
fn a_drift_has_no_culprit_unless_all_steps_are_wanted() {
    let steps: Vec<(Node, f64)> = (1..=40).map(|node| (node, 2.0)).collect();
    let world = World::new(History::linear(40), &steps);
    assert_eq!(world.found(false), []);
    assert_eq!(world.found(true).len(), 40);
}

#[test]
fn equal_ends_have_no_culprit() {
    let world = World::new(History::linear(64), &[(20, 200.0), (41, -200.0)]);
    assert_eq!(world.search(false), (Next::NoDifference, 2));
    let mut noisy = World::new(History::linear(64), &[(20, 1.0)]);
    noisy.luck = 100.0;
    assert_eq!(noisy.search(false).0, Next::NoDifference);
}

#[test]
fn commits_that_cannot_be_read_stay_possible() {
    let mut world = World::new(History::linear(64), &[(30, 50.0)]);
    world.unreadable = vec![29, 30, 31];
    assert_eq!(world.found(false), [(vec![29, 30, 31, 32], 50.0)]);
    assert_eq!(world.found(true), [(vec![29, 30, 31, 32], 50.0)]);
    // A step outside the stretch is found nevertheless.
    world.steps = vec![(33, 50.0)];
    assert_eq!(world.found(false), [(vec![33], 50.0)]);
    world.unreadable = vec![0];
    assert_eq!(world.search(false).0, Next::NoEnd(0));
}

/// A mainline of merges. Each merge brings a branch of some commits.
fn merges(number: usize, commits: usize) -> History {
    let mut parents = vec![vec![]];
    let mut mainline = 0;
    for _ in 0..number {
        let mut tip = mainline;
        for _ in 0..commits {
            parents.push(vec![tip]);
            tip = parents.len() - 1;
        }
        parents.push(vec![mainline]);
        parents.push(vec![parents.len() - 1, tip]);
        mainline = parents.len() - 1;
    }
    History::new(parents)
}

#[test]
fn culprits_in_branches_and_merges_are_found() {
    let history = merges(8, 6);
    for culprit in 1..history.len() {
        let world = World::new(history.clone(), &[(culprit, 50.0)]);
        let (answer, read) = world.search(false);
        let Next::Found(steps) = answer else { panic!("{culprit}: {answer:?}") };
        assert_eq!(steps[0].commits, [culprit]);
        assert!(read <= 10, "{read} for {culprit}");
        assert_eq!(world.found(true)[0].0, [culprit]);
        // One step is in a branch, one on the mainline.
        let both = World::new(history.clone(), &[(culprit, 50.0), (history.bad() - 1, 70.0)]);
        let mut named: Vec<_> = both.found(false).into_iter().flat_map(|it| it.0).collect();
        named.sort_unstable();
        named.dedup();
        let mut expected = vec![culprit, history.bad() - 1];
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(named, expected);
    }
}

#[test]
fn the_commit_that_parts_two_kinds_of_changes_is_read_first() {
    let parted = |steps: &[(Node, f64)]| {
        let mut world = World::new(History::linear(1000), steps);
        world.parting = Some(992);
        world
    };
    // Eight commits are left after the first reading.
    let world = parted(&[(995, 50.0)]);
    assert_eq!((world.found(false), world.search(false).1), (vec![(vec![995], 50.0)], 6));
    assert_eq!(parted(&[(10, 50.0)]).found(false), [(vec![10], 50.0)]);
    // Both kinds of changes have a share.
    let mut both = parted(&[(10, 30.0), (995, 20.0)]);
    assert_eq!(both.found(false), [(vec![10], 30.0), (vec![995], 20.0)]);
    both.unreadable = vec![992];
    assert_eq!(both.found(false), [(vec![10], 30.0), (vec![995], 20.0)]);
}

#[test]
fn a_merge_whose_sides_conflict_is_named_itself() {
    // 0 - 1 - 3, 0 - 2 - 3: only the merge has the change.
    let history = History::new(vec![vec![], vec![0], vec![0], vec![1, 2], vec![3]]);
    let world = World::new(history, &[(3, 50.0)]);
    assert_eq!(world.found(false), [(vec![3], 50.0)]);
    assert_eq!(world.found(true), [(vec![3], 50.0)]);
}
