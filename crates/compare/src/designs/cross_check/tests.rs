use model::{Execution, Manifest, Reading, Setting, Topology, Variant};

use super::*;
use crate::testing::{
    boot, chunk, columns, deviations, experiment, manifest, sample, used, variant,
};
use crate::with_phases;

/// One boot per block, with the time of each operation.
fn measured(values: &[(&str, &[f64])]) -> Vec<Boot> {
    let blocks = values.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let mut boots: Vec<Boot> =
        (0..blocks as u32).map(|block| Boot { block, ..boot(block) }).collect();
    for (metric, values) in values {
        for (boot, value) in boots.iter_mut().zip(*values) {
            boot.samples.push(sample(metric, "", 0, *value));
        }
    }
    boots
}

/// One boot per seed, with these instructions in user mode and in the kernel, and guest time in proportion.
fn exact(instructions: &[[f64; 2]]) -> Vec<Boot> {
    let boots = instructions.iter().zip(0..).map(|([user, kernel], seed)| {
        let mut boot = boot(seed);
        let counts = [("total", user + kernel), ("user", *user), ("kernel", *kernel)];
        boot.samples.extend(counts.map(|(label, count)| sample(INSTRUCTIONS, label, 0, count)));
        boot.samples.push(sample("Elapsed", "", 0, 2e-9 * (user + kernel)));
        boot
    });
    boots.collect()
}

fn together(times: [&[Boot]; 2], counts: [&[Boot]; 2]) -> Vec<CrossCheck> {
    let variants = ["old", "new"].map(variant);
    let time = experiment(Mode::Measured, 3, vec![manifest()]);
    let count = experiment(Mode::Exact, 2, vec![manifest()]);
    let time = Results {
        experiment: &time,
        reading: Reading::USUAL,
        variants: columns(&variants, &times),
    };
    let count = Results {
        experiment: &count,
        reading: Reading::USUAL,
        variants: columns(&variants, &counts),
    };
    cross_check(&time, &count, "old", &Judging::of(&time))
}

/// Boots in blocks, of 40 times around `level` each. The first three are longer by `more`.
fn warming(level: f64, more: f64, seed: usize) -> Vec<Boot> {
    let mut deviations = deviations().skip(1000 * seed);
    let of = |block: u32| {
        let mut boot = Boot { block, ..boot(block) };
        for at in 0..40 {
            let start = if at < 3 { more } else { 0.0 };
            let value = level + start + deviations.next().unwrap();
            boot.samples.push(sample("Elapsed", "", 0, value));
        }
        boot
    };
    (0..4).map(of).collect()
}

/// The gains of the second variant, and of others after it, against the first.
fn gains(times: &[&[Boot]], judging: &Judging) -> Vec<f64> {
    let variants = ["a", "b", "c"].map(variant);
    let time = experiment(Mode::Measured, 4, vec![manifest()]);
    let count = experiment(Mode::Exact, 2, vec![manifest()]);
    let time =
        Results { experiment: &time, reading: Reading::USUAL, variants: columns(&variants, times) };
    let count = Results {
        experiment: &count,
        reading: Reading::USUAL,
        variants: columns(&variants, &[&[][..]; 3]),
    };
    let found = cross_check(&time, &count, "a", judging);
    found.iter().map(|it| it.gain.unwrap().gain).collect()
}

#[test]
fn warm_up_counts_as_it_does_in_tables() {
    let (old, new) = (warming(100.0, 200.0, 1), warming(120.0, 0.0, 2));
    let judging = |warm_up_counts| Judging { warm_up_counts, ..Judging::default() };
    let gains = [false, true].map(|counts| gains(&[&old, &new], &judging(counts))[0]);
    assert!((gains[0] + 20.0).abs() < 1.0 && (gains[1] + 4.3).abs() < 1.0, "{gains:?}");
}

#[test]
fn warm_up_of_a_third_variant_is_left_out_of_all() {
    let sides = [warming(100.0, 0.0, 1), warming(101.0, 0.0, 2), warming(102.0, 50.0, 3)];
    let cut = sides.clone().map(|mut boots| {
        boots.iter_mut().for_each(|boot| drop(boot.samples.drain(..3)));
        boots
    });
    let [whole, cut] =
        [&sides, &cut].map(|it| gains(&[&it[0], &it[1], &it[2]], &Judging::default()));
    assert_eq!(whole, cut);
    let apart = gains(&[&sides[0], &sides[1]], &Judging::default());
    assert_ne!(apart[0], whole[0]);
}

/// The first look is at 4 boots of each variant, the next at 6.
#[test]
fn boots_after_the_current_look_do_not_count() {
    let variants = ["old", "new"].map(variant);
    let old = [10.0, 11.0, 12.0, 10.5, 10.0];
    let count = experiment(Mode::Exact, 2, vec![manifest()]);
    let count = Results {
        experiment: &count,
        reading: Reading::USUAL,
        variants: columns(&variants, &[&[], &[]]),
    };
    let found = |new: &[f64]| {
        let times = [&old[..new.len()], new].map(|values| measured(&[("Elapsed", values)]));
        let mut time = experiment(Mode::Measured, 6, vec![manifest()]);
        time.sequential = Some(model::Sequential { margin: 0.01, budget: None });
        let variants = columns(&variants, &times.each_ref().map(|it| &**it));
        let time = Results { experiment: &time, reading: Reading::USUAL, variants };
        let [found] = cross_check(&time, &count, "old", &Judging::of(&time)).try_into().unwrap();
        (found.blocks, found.gain)
    };
    let few = [10.1, 11.2, 12.1, 10.4];
    assert_eq!(found(&few[..3]), (0, None));
    let (blocks, gain) = found(&few);
    assert!((gain.unwrap().confidence - 0.995).abs() < 1e-9);
    assert_eq!(found(&[10.1, 11.2, 12.1, 10.4, 99.0]), (blocks, gain));
    assert_eq!(blocks, 4);
}

const TIMES: [&[f64]; 3] = [&[10.0, 11.0, 12.0], &[10.1, 10.9, 12.1], &[12.0, 13.2, 14.5]];
const COUNTS: [[[f64; 2]; 2]; 3] = [
    [[900.0, 100.0], [900.0, 100.2]],
    [[900.0, 100.1], [900.0, 100.2]],
    [[900.0, 150.0], [900.0, 150.1]],
];

/// The conclusion, given whether the time and the instructions changed.
fn read(time: bool, code: bool) -> Conclusion {
    let times = [0, if time { 2 } else { 1 }].map(|it| measured(&[("Elapsed", TIMES[it])]));
    let counts = [0, if code { 2 } else { 1 }].map(|it| exact(&COUNTS[it]));
    let found = together(times.each_ref().map(|it| &**it), counts.each_ref().map(|it| &**it));
    let [found] = found.try_into().unwrap();
    assert_eq!((&*found.metric, &*found.variant, found.blocks), ("Elapsed", "new", 3));
    found.conclusion
}

#[test]
fn time_and_instructions_are_read_together() {
    assert_eq!(read(true, true), Conclusion::CodePath);
    assert_eq!(read(true, false), Conclusion::LayoutOrMemory);
    assert_eq!(read(false, true), Conclusion::Hidden);
    assert_eq!(read(false, false), Conclusion::Same);
}

/// One experiment asks for other phases, or was kept before its manifest named them.
#[test]
fn figures_read_in_another_way_are_of_the_same_work() {
    let times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
    let mut counts = [0, 2].map(|it| exact(&COUNTS[it]));
    counts[0][0].chunks = ["fill", "run"].map(|phase| chunk(0, phase, &[])).into();
    let mut older = manifest();
    older.metrics[0].concurrent = true;
    let time = experiment(Mode::Measured, 3, vec![older]);
    let count = experiment(Mode::Exact, 2, vec![manifest()]);
    let asked = ["fill".to_owned()];
    let reading = with_phases(Reading::USUAL, &count.workloads, &counts[0], &asked).unwrap();
    let own = reading.workload(&count.workloads[0]);
    assert!(own.leaves_out(&manifest(), "run") && comparable(&time, &count));
    let variants = ["old", "new"].map(variant);
    let time = Results {
        experiment: &time,
        reading: Reading::USUAL,
        variants: columns(&variants, &times.each_ref().map(|it| &**it)),
    };
    let count = Results {
        experiment: &count,
        reading: Reading::USUAL,
        variants: columns(&variants, &counts.each_ref().map(|it| &**it)),
    };
    let found = cross_check(&time, &count, "old", &Judging::of(&time));
    assert_eq!(found[0].conclusion, Conclusion::CodePath);
}

#[test]
fn gains_are_of_blocks_and_of_seeds() {
    let (old, new) = (measured(&[("Elapsed", TIMES[0])]), measured(&[("Elapsed", TIMES[2])]));
    let found = together([&old, &new], [&exact(&COUNTS[0]), &exact(&COUNTS[2])]);
    let CrossCheck { gain, instructions, .. } = found[0];
    // Paired by block, times are 20 %, 20 % and 20.8 % longer.
    let Gain { gain, low, high, .. } = gain.unwrap();
    assert!((gain + 20.277).abs() < 1e-3, "{gain}");
    assert!(low < gain && gain < high && high < -19.0, "{low} to {high}");
    let Instructions { difference, gain, floor_percent, verdict } = instructions.unwrap();
    assert!((difference.base - 1000.1).abs() < 1e-9 && (difference.new - 1050.05).abs() < 1e-9);
    assert_eq!(gain, stats::gain(Better::Lower, difference.new, difference.base));
    let floor = difference.floor.unwrap();
    assert_eq!(floor_percent, Some(100.0 * floor / difference.base));
    assert!(floor < 5.0 && verdict == Verdict::Regression);
}

#[test]
fn a_higher_rate_is_a_gain() {
    let old = measured(&[("Rate", TIMES[0]), ("CPU", TIMES[0])]);
    let new = measured(&[("Rate", TIMES[2]), ("CPU", TIMES[2])]);
    let found = together([&old, &new], [&[], &[]]);
    let [found] = found.try_into().unwrap();
    let Gain { gain, low, high, .. } = found.gain.unwrap();
    assert!((gain - 20.277).abs() < 1e-3 && low < gain && gain < high && low > 19.0);
    assert_eq!((found.instructions, found.conclusion), (None, Conclusion::Undecided));
}

#[test]
fn too_few_figures_leave_it_undecided() {
    let times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
    let counts = [0, 2].map(|it| exact(&COUNTS[it]));
    let conclusion = |times: [&[Boot]; 2], counts: [&[Boot]; 2]| {
        let found = together(times, counts);
        (found[0].blocks, found[0].conclusion)
    };
    let [old, new] = &times;
    let [old_count, new_count] = &counts;
    let undecided = |blocks| (blocks, Conclusion::Undecided);
    assert_eq!(conclusion([&old[..2], new], [old_count, new_count]), undecided(2));
    assert_eq!(conclusion([old, new], [old_count, &new_count[..1]]), undecided(3));
    assert_eq!(conclusion([old, new], [old_count, new_count]), (3, Conclusion::CodePath));
}

#[test]
fn layout_is_not_blamed_while_a_part_of_the_figures_changed() {
    let times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
    let conclusion = |counts: [&[Boot]; 2]| together([&times[0], &times[1]], counts)[0].conclusion;
    // The kernel executes as many instructions more as user mode executes less.
    let (old, new) = (exact(&COUNTS[0]), exact(&[[850.0, 150.0], [850.0, 150.2]]));
    assert_eq!(conclusion([&old, &new]), Conclusion::Undecided);
    // Guest time changed because of waiting.
    let (mut old, mut new) = (exact(&COUNTS[0]), exact(&COUNTS[1]));
    assert_eq!(conclusion([&old, &new]), Conclusion::LayoutOrMemory);
    for (boots, elapsed) in [(&mut old, 1.0), (&mut new, 2.0)] {
        boots.iter_mut().for_each(|boot| boot.samples.last_mut().unwrap().value = elapsed);
    }
    assert_eq!(conclusion([&old, &new]), Conclusion::Undecided);
    // Guest time is not known.
    old[0].samples.pop();
    assert_eq!(conclusion([&old, &new]), Conclusion::Undecided);
}

#[test]
fn layout_is_not_blamed_for_what_luck_may_hide() {
    // 20.3 % longer.
    let times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
    let read = |user: [f64; 2], kernel: [f64; 2]| {
        let seeds = exact(&[[user[0], kernel[0]], [user[1], kernel[1]]]);
        let found = together([&times[0], &times[1]], [&seeds, &seeds]);
        (found[0].conclusion, found[0].unseen.unwrap().round())
    };
    // A floor of 9.92 standard errors: Student's t at 1 % with 2 degrees of freedom.
    assert_eq!(read([900.0; 2], [99.5, 100.5]), (Conclusion::LayoutOrMemory, 7.0));
    assert_eq!(read([900.0; 2], [99.0, 101.0]), (Conclusion::Undecided, 14.0));
    assert_eq!(read([880.0, 1000.0], [100.0; 2]), (Conclusion::Undecided, 90.0));
    assert_eq!(read([0.0; 2], [100.0, 101.0]), (Conclusion::LayoutOrMemory, 7.0));
    // Instructions are equal in all seeds, and guest time varies.
    let mut seeds = exact(&[[900.0, 100.0], [900.0, 100.0]]);
    seeds[1].samples.last_mut().unwrap().value *= 1.2;
    let found = together([&times[0], &times[1]], [&seeds, &seeds]);
    assert_eq!(found[0].conclusion, Conclusion::Undecided);
}

#[test]
fn instructions_of_several_operations_belong_to_none() {
    let read = |operations: &[(&str, &str)]| {
        let with = |mut boots: Vec<Boot>, scale: f64| {
            for (boot, drift) in boots.iter_mut().zip([1.0, 1.1, 1.2]) {
                boot.samples.retain(|it| it.metric != "Elapsed");
                for (label, phase) in operations {
                    let sample = sample("Elapsed", label, 0, scale * drift);
                    boot.samples.push(model::Sample { phase: (*phase).into(), ..sample });
                }
            }
            boots
        };
        let times = [1.0, 1.2].map(|scale| with((0..3).map(boot).collect(), scale));
        let mut times = times;
        for boot in times.iter_mut().flatten() {
            boot.block = boot.boot_index;
        }
        let counts = [0, 2].map(|it| {
            let mut boots = with(exact(&COUNTS[it]), 1.0);
            for boot in &mut boots {
                let phases: Vec<_> = boot
                    .samples
                    .iter()
                    .filter(|it| it.metric == INSTRUCTIONS)
                    .map(|it| model::Sample { phase: "fill".into(), ..it.clone() })
                    .collect();
                boot.samples.extend(phases);
            }
            boots
        });
        let found = together([&times[0], &times[1]], [&counts[0], &counts[1]]);
        let of = |it: &CrossCheck| (it.instructions.is_some(), it.conclusion);
        found.iter().map(of).collect::<Vec<_>>()
    };
    let (known, unknown) = ((true, Conclusion::CodePath), (false, Conclusion::Undecided));
    assert_eq!(read(&[("a", "")]), [known]);
    assert_eq!(read(&[("a", ""), ("b", "")]), [unknown; 2]);
    assert_eq!(read(&[("", ""), ("", "fill")]), [unknown, known]);
    assert_eq!(read(&[("a", "fill"), ("b", "fill")]), [unknown; 2]);
}

#[test]
fn an_operation_has_the_instructions_of_its_phase_or_of_all() {
    let mut boot = boot(0);
    for (iteration, phase, count) in [(0, "a", 5.0), (0, "b", 7.0), (1, "a", 6.0), (1, "b", 8.0)] {
        let sample = sample(INSTRUCTIONS, "total", iteration, count);
        boot.samples.push(model::Sample { phase: phase.into(), ..sample });
    }
    let of = |phase| instructions(&boot, &used(manifest()), "total", phase);
    assert_eq!((of("a"), of("b"), of("")), (Some(5.5), Some(7.5), Some(13.0)));
    assert_eq!(of("c"), None);
}

#[test]
fn times_under_emulation_give_no_conclusion() {
    let mut times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
    times[1][2].facts.provenance.execution = Some(Execution::Tcg);
    let counts = [0, 2].map(|it| exact(&COUNTS[it]));
    let found = together([&times[0], &times[1]], [&counts[0], &counts[1]]);
    assert_eq!(found[0].conclusion, Conclusion::Withheld);
    assert!(found[0].gain.is_some());
}

#[test]
fn experiments_of_the_same_variants_and_work_are_comparable() {
    let mut a = experiment(Mode::Measured, 3, vec![manifest()]);
    a.variants = vec![variant("old"), variant("new")];
    let mut b = a.clone();
    (b.mode, b.boots) = (Mode::Exact, 5);
    b.variants.reverse();
    b.workloads[0].iterations = 7;
    b.workloads.push(WorkloadUse {
        manifest: Manifest { name: "other".into(), ..manifest() },
        ..b.workloads[0].clone()
    });
    assert!(comparable(&a, &b) && comparable(&b, &a));

    let changed = |change: &dyn Fn(&mut Experiment)| {
        let mut other = b.clone();
        change(&mut other);
        comparable(&a, &other) || comparable(&other, &a)
    };
    assert!(!changed(&|it| it.variants[0].kernel = "6.1 sha256:0".into()));
    assert!(!changed(&|it| it.variants[0].cmdline = "quiet".into()));
    assert!(!changed(&|it| it.variants[1].modules = vec!["ext4".into()]));
    let off = || Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() };
    assert!(!changed(&|it| it.variants[1].settings = vec![off()]));
    assert!(!changed(&|it| it.variants.push(Variant { name: "third".into(), ..variant("") })));
    assert!(!changed(&|it| it.variants[0].name = "other".into()));
    let disk = || model::Disk {
        kind: model::DiskKind::VirtioBlk,
        size: model::Bytes::mib(64),
        format: None,
    };
    let cpus = || Topology::even(2, model::Bytes::mib(512), 2).unwrap();
    assert!(!changed(&|it| it.machine.topology = cpus()));
    assert!(!changed(&|it| it.machine.disks = vec![disk()]));
    assert!(
        !changed(&|it| it.workloads[0].manifest.parameters = [("a".into(), "b".into())].into())
    );
    assert!(!changed(&|it| it.workloads[0].program = Some("./a".into())));
}
