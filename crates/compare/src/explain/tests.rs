mod properties;
mod rename;

use model::{ALL_CPUS, Boot, Cell, Cost, CostTable, INSTRUCTIONS, Place, Privilege, Profile};

use super::*;
use crate::testing::{Executed, boot, chunk, columns, executing, failed, manifest, used, variant};

const WORKLOAD: &str = "autonuma";

/// A complete boot with these profiles.
fn seed(profiles: Vec<Profile>) -> Boot {
    Boot { profiles, ..boot(0) }
}

/// Calls that were followed: their frames, and their own instructions on both sides.
pub fn followed(paths: &[(&str, f64, f64)]) -> Paths {
    let path = |&(frames, base, new): &(&str, f64, f64)| Path {
        frames: frames.split(' ').map(str::to_owned).collect(),
        base,
        new,
    };
    Paths { followed: true, paths: paths.iter().map(path).collect() }
}

/// A seed with one profile.
pub fn executed(executed: &[Executed<'_>]) -> Boot {
    seed(vec![executing(0, "run", executed)])
}

/// Explains boots with seeds from 0. Sides of different length have no seed in common, so that all their boots count.
/// As many seeds are wanted as the longer side has.
pub fn explained(base: &[Boot], new: &[Boot]) -> Explanation {
    let apart = if base.len() == new.len() { 0 } else { 100 };
    let numbered = [(base, 0), (new, apart)].map(|(boots, first)| {
        let boots = boots.iter().zip(first..);
        boots.map(|(boot, boot_index)| Boot { boot_index, ..boot.clone() }).collect::<Vec<_>>()
    });
    wanting(base.len().max(new.len()) as u32, [&numbered[0], &numbered[1]])
}

/// Explains boots; `wanted` is the number of seeds wanted.
fn wanting(wanted: u32, boots: [&[Boot]; 2]) -> Explanation {
    let variants = ["6.1", "6.12"].map(variant);
    let columns = columns(&variants, &boots);
    explain(&columns[0], &columns[1], &used(manifest()), wanted, INSTRUCTIONS)
}

/// The sections of two variants' boots.
pub fn all(base: &[Boot], new: &[Boot]) -> Section {
    explained(base, new).all.unwrap()
}

fn function(name: &str) -> Subject {
    Subject::Function { name: name.into(), module: String::new() }
}

fn found<'a>(section: &'a Section, subject: &Subject) -> &'a Contribution {
    section.contributions.iter().find(|it| it.subject == *subject).unwrap()
}

fn calls<'a>(section: &'a Section, name: &str) -> &'a Calls {
    found(section, &function(name)).calls.as_ref().unwrap()
}

#[test]
fn iterations_of_warm_up_are_left_out() {
    let of = |cold: u64, warm: u64| {
        let profiles = [(0, cold), (1, warm)];
        let executed = |(iteration, cost)| executing(iteration, "run", &[("f", "", 1, cost)]);
        vec![seed(profiles.map(executed).into())]
    };
    let (base, new) = (of(1000, 10), of(5000, 12));
    let variants = ["6.1", "6.12"].map(variant);
    let columns = columns(&variants, &[&base, &new]);
    let warmed = WorkloadUse { warmup: 1, ..used(manifest()) };
    let change = |used: &WorkloadUse| {
        let explanation = explain(&columns[0], &columns[1], used, 1, INSTRUCTIONS);
        explanation.all.unwrap().totals.kernel.change()
    };
    assert_eq!((change(&used(manifest())), change(&warmed)), (4002.0, 2.0));
    let own: f64 = paths(&columns[0], &columns[1], &warmed, (None, INSTRUCTIONS))
        .paths
        .iter()
        .map(|it| it.new)
        .sum();
    assert_eq!(own, 12.0);
}

/// Names of the functions ranked by instructions per entry.
pub fn dearer(section: &Section) -> Vec<String> {
    let ranked = section.per_entry.iter();
    ranked.map(|&place| section.contributions[place].subject.to_string()).collect()
}

#[test]
fn iterations_add_up_and_seeds_are_averaged() {
    let base = [
        seed(vec![
            executing(0, "run", &[("f", "", 2, 20)]),
            executing(1, "run", &[("f", "", 3, 30)]),
        ]),
        seed(vec![executing(0, "run", &[("f", "", 5, 60)]), executing(1, "run", &[])]),
    ];
    let new = [executed(&[("f", "", 5, 100)]), executed(&[("f", "", 5, 100)])];
    let explanation = explained(&base, &new);
    assert_eq!((explanation.base.seeds, explanation.new.seeds), (2, 2));
    assert_eq!((explanation.denominator, explanation.knows_luck()), (2, true));
    let all = explanation.all.as_ref().unwrap();
    assert_eq!((all.totals.all.base, all.totals.all.new), (55.0, 100.0));
    // 63.657 standard errors of 5: Student's t at 1 % with 1 degree of freedom.
    assert!((all.totals.all.floor.unwrap() - 318.28).abs() < 0.01);
    assert_eq!((all.change, explanation.instructions(all.change)), (90, 45.0));
    let per_entry = calls(all, "f").per_entry.unwrap();
    assert_eq!((per_entry.base, per_entry.new), (11.0, 20.0));
    assert!(per_entry.floor.is_some());
}

/// Luck decides how often one function is entered. Each entry costs 1 % more.
#[test]
fn equal_entries_show_what_luck_hides() {
    let seeds = |cost: u64| {
        [1000, 3000, 2000, 1500, 2500]
            .map(|entries| executed(&[("f", "", entries, entries * cost)]))
    };
    let totals = all(&seeds(100), &seeds(101)).totals;
    assert_eq!(totals.kernel.beyond_luck(), Some(false));
    let hidden = totals.hidden().unwrap();
    assert!((hidden.change() - 2000.0).abs() < 1e-6, "{hidden:?}");
    let same = all(&seeds(100), &seeds(100)).totals;
    assert_eq!((same.hidden(), same.equal.unwrap().change()), (None, 0.0));
    // A total whose change is beyond luck.
    assert_eq!(all(&seeds(100), &seeds(1000)).totals.hidden(), None);
}

#[test]
fn only_seeds_of_both_sides_count() {
    let seed = |boot_index, more: u64| Boot {
        boot_index,
        chunks: vec![chunk(0, "run", &[("pgfault", 100 + more as i64)])],
        ..executed(&[("f", "", 10, 100 + more)])
    };
    let old = [seed(0, 0), seed(1, 1), seed(2, 2), seed(3, 1)];
    let beyond = |new: &[Boot]| {
        let explanation = wanting(4, [&old, new]);
        let all = explanation.all.as_ref().unwrap();
        let difference = calls(all, "f").per_entry.unwrap();
        let beyond = [all.totals.all, all.counters[0].growth, difference];
        assert_eq!(explanation.new.seeds, new.len());
        // With three seeds a side the list is known to have nothing beyond luck.
        assert_eq!(dearer(all).len(), usize::from(explanation.pairs != 3));
        let seeds = (explanation.new.complete, explanation.pairs, explanation.knows_luck());
        (seeds, beyond.map(|it| it.beyond_luck()))
    };
    let new = [seed(0, 90), seed(1, 90), seed(2, 90), seed(3, 90)];
    assert_eq!(beyond(&new), ((true, 4, true), [Some(true); 3]));
    // Lists need four seeds a side, a total two.
    let three = [Some(true), Some(false), Some(false)];
    assert_eq!(beyond(&new[1..]), ((false, 3, true), three));
    assert_eq!(beyond(&new[..1]), ((false, 1, false), [None; 3]));
    assert_eq!(beyond(&[seed(7, 90)]), ((false, 0, false), [None; 3]));
    let twice = [seed(0, 90), seed(2, 90), seed(2, 90), seed(3, 90)];
    assert_eq!(beyond(&twice), ((false, 0, false), [None; 3]));
}

#[test]
fn a_figure_that_a_seed_lacks_has_no_floor() {
    let seed = |boot_index, more: u64, entries| Boot {
        boot_index,
        chunks: vec![chunk(0, "run", &[("pgfault", 100 + more as i64)])],
        ..executed(&[("f", "", entries, entries * (100 + more)), ("g", "", 1, 1)])
    };
    let mut new = [seed(0, 90, 5), seed(1, 90, 0), seed(2, 90, 5)];
    let lost = model::ProblemKind::SeriesDropped;
    new[1].problems = vec![model::Problem { kind: lost, text: String::new() }];
    let old = [seed(0, 0, 5), seed(1, 0, 5), seed(2, 0, 5)];
    let all = wanting(3, [&old, &new]).all.unwrap();
    let f = calls(&all, "f").per_entry.unwrap();
    assert_eq!((f.change(), f.beyond_luck()), (90.0, None));
    assert_eq!(dearer(&all), [""; 0]);
    let faults = all.counters[0].growth;
    assert_eq!((faults.change(), faults.beyond_luck()), (90.0, None));
    assert_eq!(all.compared, Compared { per_entry: 1, contributions: 2, counters: 0 });
    let all = wanting(3, [&old, &old]).all.unwrap();
    assert_eq!(all.compared, Compared { per_entry: 2, contributions: 2, counters: 1 });
}

#[test]
fn a_function_has_one_figure_per_entry() {
    // Seeds of 10 and of 20 an entry, the second entered nine times as often.
    let base = [executed(&[("f", "", 1, 10)]), executed(&[("f", "", 9, 180)])];
    let new = [executed(&[("f", "", 5, 200)]), executed(&[("f", "", 5, 205)])];
    let all = all(&base, &new);
    let f = calls(&all, "f");
    let cost = f.per_entry.unwrap();
    assert_eq!((cost.base, cost.new), (19.0, 40.5));
    // Two seeds per side are too few for a list.
    assert_eq!(cost.beyond_luck(), Some(false));
    // 21.5 more for each of 5 entries, over 2 seeds.
    assert_eq!(f.split.map(|split| split.by_cost), Some(215));
}

#[test]
fn a_change_is_split_into_cost_and_number() {
    // From 10 entries of 5 to 20 of 8: 3 x 15 by cost, 10 x 6.5 by number.
    let all = all(&[executed(&[("f", "", 10, 50)])], &[executed(&[("f", "", 20, 160)])]);
    assert_eq!(calls(&all, "f").split, Some(Split { by_cost: 45, by_number: 65 }));
    assert_eq!(found(&all, &function("f")).change, 110);
}

#[test]
fn copies_and_parts_are_one_function_entered_by_its_beginning() {
    let base = executed(&[
        ("f", "", 10, 100),
        ("f.isra.0", "", 5, 50),
        ("f.cold", "", 1, 10),
        ("f", "nfs", 1, 1),
        ("g.part.0", "", 4, 40),
    ]);
    let new = executed(&[("f.constprop.0", "", 15, 200), ("g.part.1", "", 8, 88)]);
    let all = all(&[base], &[new]);
    let f = calls(&all, "f");
    assert_eq!((f.entries.base, f.entries.new), (15.0, 15.0));
    assert_eq!(found(&all, &function("f")).instructions.base, 160.0);
    let cost = f.per_entry.unwrap();
    assert_eq!((cost.base, cost.new, f.in_parts), (160.0 / 15.0, 200.0 / 15.0, false));
    let g = calls(&all, "g").per_entry.unwrap();
    assert_eq!((g.base, g.new), (10.0, 11.0));
    let of_module = Subject::Function { name: "f".into(), module: "nfs".into() };
    assert_eq!(found(&all, &of_module).change, -1);
}

#[test]
fn a_beginning_is_not_compared_with_a_part() {
    let base = [executed(&[("f", "", 10, 100)])];
    let new = [executed(&[("f.part.0", "", 10, 300)])];
    let all = all(&base, &new);
    let f = calls(&all, "f");
    assert_eq!((f.per_entry, f.split, f.only, f.in_parts), (None, None, None, true));
    assert_eq!(dearer(&all), [""; 0]);
}

#[test]
fn a_beginning_that_is_inlined_here_and_there_counts_no_entries() {
    // The same work; one kernel inlines the beginning into half of the callers.
    let whole = [executed(&[("f", "", 10, 100)])];
    let halves = [executed(&[("f", "", 5, 50), ("f.part.0", "", 5, 40)])];
    for (base, new) in [(&whole, &halves), (&halves, &whole), (&halves, &halves)] {
        let all = all(base, new);
        let f = calls(&all, "f");
        assert_eq!((f.per_entry, f.split, f.in_parts), (None, None, true));
        assert_eq!(dearer(&all), [""; 0]);
    }
}

#[test]
fn a_function_is_compared_as_a_whole_if_it_alone_enters_its_parts() {
    let boot = |cost, caller: &str| {
        let mut boot = executed(&[("f", "", 10, cost), ("f.part.0", "", 5, 40)]);
        for path in [&["a", "f"][..], &[caller, "f.part.0"]] {
            let path = Place::Path(path.iter().map(|&name| name.into()).collect());
            boot.profiles[0].costs.push(path, [Cell::new(0, ALL_CPUS, 1)]);
        }
        [boot]
    };
    let whole = all(&boot(100, "f"), &boot(160, "f.isra.0"));
    let f = calls(&whole, "f");
    let cost = f.per_entry.unwrap();
    assert_eq!((cost.base, cost.new, f.in_parts), (14.0, 20.0, false));
    assert_eq!((f.entries.base, f.entries.new), (10.0, 10.0));
    let apart = all(&boot(100, "f"), &boot(160, "a"));
    assert_eq!((calls(&apart, "f").per_entry, calls(&apart, "f").in_parts), (None, true));
}

#[test]
fn instructions_in_no_function_are_an_error_of_the_profile() {
    let boot = |kernel: u64| {
        let mut costs = CostTable::new([Cost::new(INSTRUCTIONS)]);
        costs.push(Place::Function { name: "f".into(), module: "".into() }, [Cell::new(0, 0, 100)]);
        costs.push(Place::All(Privilege::Kernel), [Cell::new(0, 0, kernel)]);
        seed(vec![Profile { costs, ..executing(0, "run", &[]) }])
    };
    let remainder = |base: &[Boot], new: &[Boot]| {
        let all = all(base, new);
        let sum: i128 = all.contributions.iter().map(|it| it.change).sum();
        (all.in_no_function, sum == all.change)
    };
    assert_eq!(remainder(&[boot(100), boot(100)], &[boot(100), boot(100)]), (0, true));
    assert_eq!(remainder(&[boot(100), boot(103)], &[boot(100), boot(101)]), (3, false));
    assert_eq!(remainder(&[boot(100), boot(103)], &[boot(100), boot(95)]), (-5, false));
    // Errors that cancel out in the change are errors.
    assert_eq!(remainder(&[boot(104)], &[boot(104)]), (4, true));
}

#[test]
fn what_only_one_side_executed_is_not_compared_per_entry() {
    let base = [executed(&[("add_page", "", 1000, 50_000), ("kept", "", 1, 10)])];
    let new =
        [executed(&[("page_add", "", 1005, 52_000), ("rare", "", 2, 9), ("kept", "", 1, 10)])];
    let all = all(&base, &new);
    let [old, fresh, rare] = ["add_page", "page_add", "rare"].map(|name| calls(&all, name));
    assert_eq!((old.only, old.per_entry), (Some(Only::Base), None));
    assert_eq!((fresh.only, rare.only), (Some(Only::New), Some(Only::New)));
    assert_eq!(old.maybe, Some(function("page_add")));
    assert_eq!(fresh.maybe, Some(function("add_page")));
    assert_eq!(rare.maybe, None);
}

/// One side entered a function a thousand times less often.
#[test]
fn rare_entries_are_not_compared_with_many() {
    let boot = |entries: u64| [executed(&[("f", "", entries, 20 * entries)])];
    for (entries, is_compared) in [(1000, true), (1001, false)] {
        let calls = calls(&all(&boot(1), &boot(entries)), "f").clone();
        assert_eq!((calls.per_entry.is_some(), calls.split.is_some()), (is_compared, is_compared));
    }
}

#[test]
fn functions_are_ranked_by_their_cost_at_equal_work() {
    let seed = |wobble: u64, more: u64| {
        executed(&[
            ("planted", "", 1000 + wobble, (1000 + wobble) * (100 + more)),
            ("rarely_dearer", "", 1, 500 + 300 * more),
            ("lucky", "", 1000, 50_000 + 9000 * wobble + more),
            ("busier", "", 1000 * (1 + more), 30_000 * (1 + more)),
            // As many instructions in other pieces.
            ("pieces", "", 4000 * (1 + more), 40_000 + more),
        ])
    };
    let base = [0, 1, 2, 3, 4].map(|wobble| seed(wobble, 0));
    let new = [1, 2, 3, 4, 0].map(|wobble| seed(wobble, 40));
    let all = all(&base, &new);
    assert_eq!(dearer(&all), ["planted", "rarely_dearer", "pieces"]);
    assert_eq!(all.contributions[0].subject, function("busier"));
}

#[test]
fn one_seed_a_side_is_ranked_without_a_floor() {
    let base = [executed(&[("f", "", 10, 100), ("g", "", 10, 100)])];
    let new = [executed(&[("f", "", 10, 110), ("g", "", 10, 90)])];
    let explanation = explained(&base, &new);
    assert!(!explanation.knows_luck());
    let all = explanation.all.unwrap();
    assert_eq!(dearer(&all), ["f", "g"]);
    assert_eq!(calls(&all, "f").per_entry.unwrap().beyond_luck(), None);
}

#[test]
fn equal_costs_are_no_difference_whatever_the_number_of_seeds() {
    // 1 / 10 is no float: three of them, summed and divided by 3, are not one of them.
    let seed = || executed(&[("f", "", 10, 1)]);
    let all = all(&[seed(), seed(), seed()], &[seed(), seed()]);
    assert_eq!(dearer(&all), [""; 0]);
}

#[test]
fn phases_come_in_their_order_and_add_up() {
    let profiles = |more: u64| {
        vec![
            executing(0, "", &[("f", "", 1, 1)]),
            executing(0, "steady", &[("f", "", 5, 50 + more)]),
            executing(0, "fill", &[("g", "", 1, 7)]),
            executing(1, "steady", &[("f", "", 5, 50)]),
        ]
    };
    let mut new = profiles(10);
    new.push(executing(1, "late", &[("f", "", 1, 3)]));
    let explanation = explained(&[seed(profiles(0))], &[seed(new)]);
    let names = explanation.phases.iter().map(|section| section.phase.as_deref().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["", "steady", "fill", "late"]);
    let changes: Vec<_> = explanation.phases.iter().map(|section| section.change).collect();
    assert_eq!(changes, [0, 10, 0, 3]);
    assert_eq!(explanation.section(None).unwrap().change, 13);
    assert_eq!(explanation.section(Some("steady")).unwrap().totals.kernel.new, 110.0);
    assert_eq!(explanation.section(Some("none")), None);
}

#[test]
fn only_complete_boots_with_a_profile_of_the_workload_count() {
    let mut other = executed(&[("f", "", 1, 1)]);
    other.profiles[0].workload = "other".into();
    let bad = Boot { profiles: executed(&[("f", "", 1, 1)]).profiles, ..failed(0, "no answer") };
    let good = [executed(&[("f", "", 1, 1)])];
    let explanation = explained(&good, &[other, bad, boot(0)]);
    assert_eq!((explanation.base.seeds, explanation.new.seeds), (1, 0));
    assert_eq!((explanation.all, explanation.phases), (None, vec![]));
}

#[test]
fn counters_beyond_luck_come_first() {
    let seed = |grown: &[(&str, i64)]| Boot {
        chunks: vec![chunk(0, "run", grown), chunk(1, "run", grown)],
        ..executed(&[])
    };
    let grown = |faults, scans, wobble, fresh: &[(&'static str, i64)]| {
        let mut grown = vec![("pgfault", faults), ("pgscan", scans), ("wobbly", wobble)];
        grown.extend(fresh);
        seed(&grown)
    };
    let base = [0, 50, 10, 30].map(|wobble| grown(100 + wobble / 25, 10, wobble, &[("same", 4)]));
    let mut new = [10, 20, 5, 40].map(|wobble| grown(200, 40, wobble, &[("same", 4)]));
    new[3] = grown(200, 40, 40, &[("added", 1)]);
    let section = all(&base, &new);
    let counters = section.counters.iter();
    let counters: Vec<_> = counters.map(|it| (&*it.name, it.growth.beyond_luck())).collect();
    let expected = [("pgscan", Some(true)), ("pgfault", Some(true)), ("wobbly", Some(false))];
    assert_eq!(counters, expected);
    let scans = section.counters[0].growth;
    assert_eq!((scans.base, scans.new), (20.0, 80.0));
}

#[test]
fn a_kernels_cost_is_divided_by_what_made_it_execute() {
    let boot = |[clone, fault, idle]: [u64; 3], seed| {
        let mut boot = executed(&[("f", "", 1, 1)]);
        let costs = &mut boot.profiles[0].costs;
        for (functions, cost) in [
            (&["do_syscall_64", "__x64_sys_clone", "kernel_clone"][..], clone),
            (&["do_syscall_64", "__x64_sys_clone"], 7),
            (&["asm_exc_page_fault", "exc_page_fault"], fault),
            (&["do_idle"], idle),
        ] {
            let path = functions.iter().map(|&name| name.into()).collect();
            costs.push(Place::Path(path), [Cell::new(0, ALL_CPUS, cost)]);
        }
        Boot { boot_index: seed, ..boot }
    };
    let base: Vec<Boot> = (0..4).map(|seed| boot([100, 50, 5], seed)).collect();
    let new: Vec<Boot> = (0..4).map(|seed| boot([300, 40, 5], seed)).collect();
    let variants = ["6.1", "6.12"].map(variant);
    let of = |new: &[Boot]| {
        let columns = columns(&variants, &[&base, new]);
        reasons(&columns[0], &columns[1], &used(manifest()), (None, INSTRUCTIONS))
    };
    let found = of(&new).unwrap();
    let figures = found.iter().map(|it| (&*it.name, it.cost.base, it.cost.new));
    let expected = [
        ("system call clone", 107.0, 307.0),
        ("exception page_fault", 50.0, 40.0),
        ("other", 5.0, 5.0),
    ];
    assert_eq!(figures.collect::<Vec<_>>(), expected);
    assert_eq!(found[0].cost.beyond_luck(), Some(true));
    assert_eq!(of(&[executed(&[("f", "", 1, 1)])]), None, "calls were not followed");
}

#[test]
fn paths_of_parts_are_those_of_their_functions() {
    let boot = |symbols: &[&str], instructions| {
        let mut boot = executed(&[("f", "", 1, 1)]);
        let owned = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        let process = |id, functions: &[&str]| Place::Process {
            id,
            name: "numa01".into(),
            functions: owned(functions),
        };
        let costs = &mut boot.profiles[0].costs;
        if !symbols.is_empty() {
            costs.push(Place::Path(owned(symbols)), [Cell::new(0, ALL_CPUS, instructions)]);
        }
        costs.push(process(7, &["main"]), [Cell::new(0, 0, 5)]);
        costs.push(process(8, &[]), [Cell::new(0, 0, 6)]);
        boot
    };
    let base = [boot(&["a", "f.isra.0"], 10), boot(&["a", "f", "f.cold"], 20)];
    let new = [boot(&["a", "f"], 18)];
    let variants = ["6.1", "6.12"].map(variant);
    let of = |base: &[Boot], new: &[Boot]| {
        let columns = columns(&variants, &[base, new]);
        paths(&columns[0], &columns[1], &used(manifest()), (None, INSTRUCTIONS))
    };
    let path = |frames: &[&str], base, new| Path {
        frames: frames.iter().map(|&frame| frame.to_owned()).collect(),
        base,
        new,
    };
    let followed = of(&base, &new);
    assert!(followed.followed);
    let user = [path(&["numa01", "[user]"], 6.0, 6.0), path(&["numa01", "main"], 5.0, 5.0)];
    assert_eq!(followed.paths[0], path(&["kernel", "a", "f"], 15.0, 18.0));
    assert_eq!(followed.paths[1..], user);

    let flat = of(&base, &[boot(&[], 0)]);
    assert!(!flat.followed);
    let user = path(&["numa01", "[user]"], 11.0, 11.0);
    assert_eq!(flat.paths, [path(&["kernel", "f"], 1.0, 1.0), user]);
}
