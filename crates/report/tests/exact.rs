//! The output of exact mode.

mod common;

use common::{
    boot, brief, by_patch, columns, count, document, experiment, judged, measure, measure_phase,
    series, spend, variant, words,
};
use compare::{
    Basis, Comparison, Judging, Kind, Results, Sources, Verdict, WithoutLoops, compare, cross_check,
};
use model::{
    Architecture, Boot, Cell, Chunk, Column, Cost, CostTable, Execution, LOADS, Mode, Outcome,
    Place, Privilege, Profile, Reading, STORES, Target,
};
use plots::locality;
use report::{OfArchitecture, Page, Recipe};
use serde_json::json;

/// The luck of seeds 0 to 4, in parts per 10,000 of a figure.
const LUCK: [f64; 5] = [0.0, 9.0, -4.0, 14.0, 3.0];

/// Returns boots of one variant with different seeds. `scale` is the factor of the kernel's time in NUMA01
/// and of the pages that it scans.
fn seeds(scale: f64, seeds: u32) -> Vec<Boot> {
    let boots = (0..seeds).map(|seed| {
        let luck = 1.0 + LUCK[seed as usize % LUCK.len()] / 1e4;
        let mut boot = boot(seed);
        boot.block = seed;
        boot.facts.provenance.execution = Some(Execution::Tcg);
        for (phase, work, scale) in [("NUMA01", 14.25, scale), ("NUMA02", 5.5, 1.0)] {
            let user = work * 1e9;
            let kernel = (work * 2.1e7 * luck * scale).round();
            measure_phase(&mut boot, phase, "System", "", 2e-9 * kernel);
            measure_phase(&mut boot, phase, "Elapsed", "", 2e-9 * (user + kernel) * luck);
            measure_phase(&mut boot, phase, "CPU", "", 397.0 + luck);
            measure_phase(&mut boot, phase, "instructions", "total", user + kernel);
            measure_phase(&mut boot, phase, "instructions", "user", user);
            measure_phase(&mut boot, phase, "instructions", "kernel", kernel);
            boot.profiles.push(accesses(phase, luck, scale));
        }
        spend(&mut boot, 0, 39.5, 0.83 * luck * scale, 40.4 * luck);
        let scans = 438_792.0 * luck * scale;
        let counters = [
            ("numa_pte_updates", scans as i64),
            ("numa_huge_pte_updates", 112),
            ("numa_hint_faults", (scans / 5.0) as i64),
            ("numa_hint_faults_local", (scans / 9.0 / scale) as i64),
            ("numa_pages_migrated", (33_795.0 * luck) as i64),
        ];
        count(&mut boot, 0, &counters);
        boot
    });
    boots.collect()
}

fn accesses(phase: &str, luck: f64, scale: f64) -> Profile {
    let made = |cpu, number: f64| {
        [Cell::new(0, cpu, number as u64), Cell::new(1, cpu, (number / 3.0) as u64)]
    };
    let mut costs = CostTable::new([LOADS, STORES].map(Cost::new));
    let memory = |privilege, node| Place::Memory(privilege, Target::Node(node));
    let user = [made(0, 4.1e9 * luck), made(2, 1.3e9 * scale)].concat();
    costs.push(memory(Privilege::User, 0), user);
    costs.push(memory(Privilege::User, 1), made(3, 2.2e9 * luck));
    costs.push(memory(Privilege::Kernel, 0), made(1, 5.1e7));
    costs.push(memory(Privilege::Kernel, 1), made(1, 1.2e7 * luck));
    Profile { workload: "autonuma".into(), phase: phase.into(), costs, ..Profile::default() }
}

/// Compares columns in exact mode. `wanted` is the number of seeds that each variant should have.
fn compared(wanted: u32, variants: &[(&str, &[Boot])]) -> Comparison {
    compared_after(0, wanted, variants)
}

/// Compares columns in exact mode. The first `warmup` iterations of each boot are warm-up.
fn compared_after(warmup: u32, wanted: u32, variants: &[(&str, &[Boot])]) -> Comparison {
    let names: Vec<_> = variants.iter().map(|(name, _)| variant(name)).collect();
    let boots: Vec<_> = variants.iter().map(|(_, boots)| *boots).collect();
    let mut experiment = experiment(Mode::Exact, wanted);
    experiment.workloads[0].warmup = warmup;
    judged(&experiment, columns(&names, &boots))
}

#[test]
fn patches_are_compared_with_the_step_before_them() {
    let (variants, reading) = series(&["mm: one", "mm: two", "mm: three"]);
    let (base, dearer) = (seeds(1.0, 5), seeds(1.05, 5));
    let variants = columns(&variants, &[&base, &dearer, &dearer, &base]);
    let experiment = experiment(Mode::Exact, 5);
    let results = Results { experiment: &experiment, reading: &reading, variants };
    let text = report::text(&compare(&results, 0, &Judging::default()));
    insta::assert_snapshot!(by_patch(&text));
}

#[test]
fn architectures_are_side_by_side() {
    let of = |arch, scale: f64| {
        let (base, new) = (seeds(1.0, 5), seeds(scale, 5));
        Comparison { arch, ..compared(5, &[("6.1", &base), ("6.12", &new)]) }
    };
    let both = [of(Architecture::X86_64, 1.05), of(Architecture::Arm64, 0.95)];
    insta::assert_snapshot!(report::architectures(&[&both[0], &both[1]]));
    let without = Comparison { tables: Vec::new(), ..both[0].clone() };
    assert_eq!(report::architectures(&[&without]), "");
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let document =
        parsed(&report::architectures_json(&[(&both[0], &[]), (&both[1], &[])]).unwrap());
    for (arch, alone, verdict, change) in
        [("x86_64", &both[0], "regression", 5.0), ("arm64", &both[1], "improvement", -5.0)]
    {
        let alone = report::json(alone, &[]).unwrap();
        assert_eq!(document["architectures"][arch], parsed(&alone));
        let first = &document["verdicts"][0];
        assert_eq!((&first["variant"], &first["workload"]), (&json!("6.12"), &json!("autonuma")));
        let on = &first["on"][arch];
        assert_eq!(on["verdict"], verdict, "{first}");
        assert!((on["percent"].as_f64().unwrap() - change).abs() < 0.01, "{first}");
    }
}

#[test]
fn a_mail_has_architectures_side_by_side() {
    let mail = with_architectures(report::architectures_mail);
    assert!(mail.lines().all(|line| line.len() <= 78), "{mail}");
    insta::assert_snapshot!(mail);
}

#[test]
fn a_page_has_architectures_side_by_side() {
    let page = with_architectures(|all| {
        let pages = all.iter().map(|&OfArchitecture { comparison, results, explained, recipe }| {
            Page { comparison, results, plots: &[], explained, consoles: &[], recipe }
        });
        report::architectures_page(&pages.collect::<Vec<_>>())
    });
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|it| Some(it.split_once('"')?.0)).collect();
    for id in ["architectures", "x86_64-verdicts", "arm64-verdicts", "arm64-w0"] {
        assert_eq!(ids.iter().filter(|it| **it == id).count(), 1, "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
    assert_eq!(page.matches("<h1>").count(), 1);
    assert!(page.contains("Verdicts on 6.12 against 6.1, by architecture"));
}

/// Calls `with` for the same variants on two architectures. On one the second is worse, on the other it is better.
fn with_architectures(with: impl FnOnce(&[OfArchitecture<'_>]) -> String) -> String {
    let base = seeds(1.0, 5);
    let (worse, better) = (seeds(1.05, 5), seeds(0.95, 5));
    let recipe = Recipe { version: "0.1.0", ..Recipe::default() };
    let reading = Reading::default();
    let variants = ["6.1", "6.12"].map(variant);
    let experiments = [Architecture::X86_64, Architecture::Arm64].map(|arch| {
        let mut experiment = experiment(Mode::Exact, 5);
        experiment.machine.arch = arch;
        experiment
    });
    let results =
        [(&experiments[0], &worse), (&experiments[1], &better)].map(|(experiment, new)| {
            let variants = columns(&variants, &[&base, new]);
            Results { experiment, reading: &reading, variants }
        });
    let comparisons = results.each_ref().map(|it| Comparison {
        arch: it.experiment.machine.arch,
        ..compare(it, 0, &Judging::default())
    });
    let all = [0, 1].map(|place| OfArchitecture {
        comparison: &comparisons[place],
        results: &results[place],
        explained: &[],
        recipe: &recipe,
    });
    with(&all)
}

#[test]
fn iterations_of_warm_up_are_left_out_and_reported() {
    let seed = |boot_index, warm: f64| {
        let mut boot = boot(boot_index);
        measure(&mut boot, "Elapsed", "NUMA01", &[warm, 20.0 + f64::from(boot_index)]);
        boot
    };
    let (base, new) = ([seed(0, 60.0), seed(1, 62.0)], [seed(0, 80.0), seed(1, 84.0)]);
    let text = printed(&compared_after(1, 2, &[("6.1", &base), ("6.12", &new)]));
    let told = "Left out:   Elapsed-NUMA01: 61.00 on average, then 20.50 in 6.1, 82.00 on average, \
                then 20.50 in\n            6.12 (--warmup include counts it)\n";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("1 iteration after 1 of warm-up"), "{text}");
}

/// Returns the text, after a check that it has at most 100 columns.
fn printed(comparison: &Comparison) -> String {
    let text = common::carried::printed(comparison);
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    text
}

/// Returns the part of a text above its notes.
fn above_notes(text: &str) -> &str {
    &text[..text.find("\nNotes:").unwrap()]
}

fn lines<'a>(text: &'a str, first_words: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(first_words)).collect()
}

#[test]
fn two_variants() {
    let comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.09, 5))]);
    insta::assert_snapshot!(above_notes(&printed(&comparison)));
}

#[test]
fn the_first_screen() {
    let comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.09, 5))]);
    let screen = brief(&comparison);
    insta::assert_snapshot!(screen);
    let verdicts = report::verdicts(&comparison);
    assert!(verdicts.starts_with("autonuma: over 5 seeds") && screen.contains(&verdicts));
    let figures = report::figures(&comparison);
    assert!(!figures.is_empty() && !figures.contains("instructions"), "{figures}");
}

#[test]
fn changes_beyond_luck_and_within_the_margin_are_named() {
    let comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.005, 5))]);
    let brief = brief(&comparison);
    let said = "same         instructions-kernel-NUMA01  0.50 % more, luck floor 0.17 %: beyond luck, within the";
    assert!(brief.contains(said), "{brief}");
    let words = words(&printed(&comparison));
    let said = "against 6.1: 1 same: beyond luck, within the margin (instructions-kernel-NUMA01 \
                0.50 % more), 1 same";
    assert!(words.contains(said), "{words}");
}

/// With loops that copy and clear memory the change is a regression, and without them it is none.
#[test]
fn a_change_without_copy_loops_stands_beside_its_verdict() {
    let mut comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.3, 5))]);
    let rows = comparison.tables.iter_mut().flat_map(|table| &mut table.rows);
    let mut row = rows.filter(|row| row.verdict(1) == Some(Verdict::Regression));
    let Basis::Exact { without_loops, .. } = &mut row.next().unwrap().cells[1].basis else {
        panic!("it is of exact mode")
    };
    *without_loops = Some(WithoutLoops { share: -0.125, is_luck: false });
    let change = "12.50 % fewer";
    let said = words(&report::brief(&comparison, ""));
    assert!(
        said.contains(&format!("; {change} without loops that copy and clear memory")),
        "{said}"
    );
    let mail = words(&table_of_mail(&comparison));
    assert!(
        mail.contains(&format!("fast string instructions: NUMA01 {change} with 6.12.")),
        "{mail}"
    );
    let csv = report::csv(&comparison).unwrap();
    assert!(csv.lines().any(|line| line.ends_with("regression,-12.5")), "{csv}");
}

#[test]
fn changes_within_luck_are_undecided_and_say_how_many_seeds_are_needed() {
    let spread = |scale| scaled(seeds(scale, 5), [1.0, 1.02, 0.98, 1.01, 0.99]);
    let comparison = compared(5, &[("6.1", &spread(1.0)), ("6.12", &spread(1.005))]);
    let words = words(&brief(&comparison));
    // In all, 5 x (3.99 / 1)^2 seeds are needed.
    let said = "undecided instructions-kernel-NUMA01 0.50 % more, luck floor 3.99 %; about 75 more seeds \
                to resolve 1 %";
    assert!(words.contains(said), "{words}");
}

/// With every sample multiplied by the factor of its seed.
fn scaled(mut boots: Vec<Boot>, factors: [f64; 5]) -> Vec<Boot> {
    for (boot, factor) in boots.iter_mut().zip(factors) {
        boot.samples.iter_mut().for_each(|sample| sample.value *= factor);
    }
    boots
}

#[test]
fn random_addresses_are_named_where_luck_is_large() {
    let of = |factors, random_addresses| {
        let sides = [1.0, 1.005].map(|scale| scaled(seeds(scale, 5), factors));
        let compared = compared(5, &[("6.1", &sides[0]), ("6.12", &sides[1])]);
        Comparison { random_addresses, ..compared }
    };
    let said = |it: &Comparison| words(&brief(it)).contains("addresses random; luck is large here");
    let large = [1.0, 1.1, 0.9, 1.05, 0.95];
    assert!(said(&of(large, true)));
    assert!(!said(&of(large, false)));
    assert!(!said(&of([1.0; 5], true)));
    assert!(words(&report::verdicts(&of(large, true))).contains("Beware: addresses random;"));
}

#[test]
fn short_phases_that_changed_are_named() {
    let of = |factor, scale| {
        let sides = [1.0, scale].map(|scale| scaled(seeds(scale, 5), [factor; 5]));
        words(&brief(&compared(5, &[("6.1", &sides[0]), ("6.12", &sides[1])])))
    };
    // Of NUMA01, 299 million instructions become 150 thousand.
    let said = "short NUMA01: below 200,000 instructions, of which up to 20,000 are";
    assert!(of(1.0 / 2000.0, 1.09).contains(said));
    assert!(!of(1.0 / 2000.0, 1.0).contains("below 200,000"));
    assert!(!of(1.0 / 1000.0, 1.09).contains("below 200,000"));
}

#[test]
fn a_row_that_one_kernel_lacks_names_the_kernel() {
    let mut base = seeds(1.0, 5);
    for boot in &mut base {
        boot.samples.retain(|sample| sample.phase != "NUMA01");
    }
    let comparison = compared(5, &[("6.1", &base), ("6.12", &seeds(1.0, 5))]);
    let words = words(&brief(&comparison));
    assert!(words.contains("undecided instructions-kernel-NUMA01 no value of 6.1"), "{words}");
}

#[test]
fn one_variant_has_no_verdicts() {
    let text = printed(&compared(5, &[("6.1", &seeds(1.0, 5))]));
    insta::assert_snapshot!(&text[..text.find("Min ").unwrap()]);
    assert!(!text.contains(['[', '?']), "{text}");
}

/// Returns the paragraph of a mail with the table of instructions.
fn table_of_mail(comparison: &Comparison) -> String {
    let mail = common::carried::mail(comparison);
    common::carried::assert_short(&mail);
    common::section(&mail, "Kernel instructions").to_owned()
}

#[test]
fn a_mail_has_one_table_of_all_phases() {
    let comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.5, 5))]);
    let mail = common::carried::mail(&comparison);
    let subject = "Subject: mm: autonuma NUMA01 50.0 % more kernel instructions with 6.12 than\n with 6.1\n\n";
    assert!(mail.starts_with(subject), "{mail}");
    insta::assert_snapshot!(table_of_mail(&comparison));
    assert!(mail.contains(
        "\n  counted       in an emulated machine without caches: instructions, not time\n"
    ));
    assert!(!mail.contains("Stddev") && !mail.contains('~'), "{mail}");
    // With long names, and with several variants, the columns have other heads.
    let [base, new] = [seeds(1.0, 5), seeds(0.9, 5)];
    let long = "6.12.117+deb12-cloud-amd64";
    let variants = [("6.1", &base[..]), (long, &new), ("v7.2", &base)];
    insta::assert_snapshot!(table_of_mail(&compared(5, &variants[..2])));
    insta::assert_snapshot!(table_of_mail(&compared(5, &variants)));
}

#[test]
fn a_mail_leaves_out_instructions_of_a_class_that_hardly_matter() {
    let mut comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.5, 5))]);
    let counters = comparison.tables.iter_mut().find(|it| it.kind == Kind::Counters).unwrap();
    let scans = counters.rows.iter().find(|it| it.beyond_luck(1) == Some(true)).unwrap();
    let mut fences = scans.clone();
    (fences.metric, fences.unit) = ("Fences".into(), "instructions".into());
    fences.cells[1].value = fences.cells[1].value.map(|it| it + 1.0);
    counters.rows.push(fences);
    assert!(common::carried::mail(&comparison).contains("Fences"));
    let counters = comparison.tables.iter_mut().find(|it| it.kind == Kind::Counters).unwrap();
    let fences = counters.rows.last_mut().unwrap();
    (fences.cells[0].value, fences.cells[1].value) = (Some(226.0), Some(174.0));
    let mail = common::carried::mail(&comparison);
    assert!(!mail.contains("Fences") && mail.contains("NUMA"), "{mail}");
}

#[test]
fn a_change_is_taken_apart() {
    let scales = [1.0, 1.2, 1.1, 1.05].map(|scale| seeds(scale, 5));
    let names = ["6.1", "6.12", "6.12 as 6.1", "6.1 as 6.12"];
    let variants: Vec<(&str, &[Boot])> =
        names.into_iter().zip(scales.iter().map(Vec::as_slice)).collect();
    let comparison = compared(5, &variants);
    let said = "Kernel instructions of NUMA01, in steps: the source 10.00 % more (luck floor 0.22 %), then the configuration \
                9.09 % more (no luck floor); in the other order, the configuration 5.00 % more (luck floor 0.20 %), \
                then the source 14.29 % more (no luck floor).";
    let mail = common::carried::mail(&comparison);
    for text in [&printed(&comparison), &common::brief(&comparison), &mail] {
        assert!(common::words(text).contains(said), "{text}");
    }
    // The mail is about the two kernels.
    let subject = mail.split("\n\n").next().unwrap();
    assert!(
        common::words(subject).ends_with("20.0 % more kernel instructions with 6.12 than with 6.1")
    );
    assert!(!mail.contains(" as 6.1"), "{mail}");
}

#[test]
fn a_mail_keeps_the_phases_that_changed() {
    let boots = |scale: f64| -> Vec<Boot> {
        let seed = |number| {
            let mut boot = boot(number);
            for phase in 0..80 {
                let scale = if phase % 40 == 39 { scale } else { 1.0 };
                let phase = format!("phase-{phase:02}-of-many");
                let luck = 1.0 + LUCK[number as usize] / 1e4;
                measure_phase(&mut boot, &phase, "instructions", "kernel", 1e9 * luck * scale);
            }
            boot
        };
        (0..5).map(seed).collect()
    };
    let table = table_of_mail(&compared(5, &[("6.1", &boots(1.0)), ("6.12", &boots(1.2))]));
    let changed: Vec<&str> = table.lines().filter(|line| line.ends_with("regression")).collect();
    assert_eq!(changed.len(), 2, "{table}");
    assert!(changed[0].starts_with("phase-39-of-many  "), "{table}");
    assert!(table.contains("more phases; of all 80 verdicts 2 are regressions, 0 improvements."));
}

#[test]
fn three_variants_fit_a_mail() {
    let boots = |scale: f64| {
        let mut boots = [boot(0), boot(1)];
        for boot in &mut boots {
            measure(boot, "Elapsed", "fill", &[20.0 * scale]);
            measure(boot, "instructions", "kernel", &[10e9 * scale]);
        }
        boots
    };
    let [old, new, other] = [1.0, 0.9, 1.1].map(boots);
    printed(&compared(2, &[("6.1", &old), ("6.12", &new), ("7.2-patched", &other)]));
}

#[test]
fn a_boot_that_failed_takes_its_seed_out_of_both_sides() {
    let mut new = seeds(1.5, 5);
    new[3].outcome = Outcome::Panicked("Kernel panic - not syncing: Attempted to kill init".into());
    let comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &new)]);
    let text = printed(&comparison);
    insta::assert_snapshot!(&text[..text.find("\nautonuma").unwrap()]);
    let kernel = lines(&text, "Amean     instructions-kernel-NUMA01 ");
    assert!(kernel.len() == 1 && kernel[0].ends_with("[ -50.00%]"), "{text}");
    assert!(text.contains("failed, left out  6.12  b9: kernel panic: "), "{text}");
    let note = |old: &[Boot], new: &[Boot]| {
        let text = printed(&compared(5, &[("6.1", old), ("6.12", new)]));
        let notes = text.split("\n  verdicts").next().unwrap();
        notes.split_whitespace().skip(4).collect::<Vec<_>>().join(" ")
    };
    let expected = "3 of 5 seeds are complete on both sides; seed 4 of 6.1 is missing: not booted; \
                    seed 3 of 6.12 is missing: panicked; seed 4 of 6.12 is missing: not booted";
    assert_eq!(note(&seeds(1.0, 4), &new[..4]), expected);
    let expected = "1 of 5 seeds is complete on both sides; luck is unknown: that takes 2; \
                    seeds 1, 2, 3, 4 of 6.12 are missing: not booted";
    assert_eq!(note(&seeds(1.0, 5), &new[..1]), expected);
    let expected =
        "3 of 5 seeds are complete on both sides; seeds 3, 4 of both are missing: not booted";
    assert_eq!(note(&seeds(1.0, 3), &new[..3]), expected);
}

#[test]
fn the_number_of_seeds_and_the_level_are_printed() {
    let seeds_note = |number| {
        let boots = seeds(1.0, number);
        let text = printed(&compared(number, &[("6.1", &boots), ("6.12", &boots)]));
        let notes = text.split("\n  verdicts").next().unwrap();
        notes.split_whitespace().skip(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seeds_note(1), "1 of each variant; luck is unknown");
    let note = "5 of each variant; luck alone causes a verdict in at most 1 % of tables";
    assert_eq!(seeds_note(5), note);
}

#[test]
fn a_regression_keeps_its_sign_however_small() {
    let boots = |total: f64| {
        [0, 1].map(|seed| {
            let mut boot = boot(seed);
            measure(&mut boot, "instructions", "kernel", &[total]);
            boot
        })
    };
    let (old, new, other) = (boots(1e9), boots(1e9 + 7.0), boots(1e9 - 7.0));
    let mut comparison = compared(2, &[("a", &old), ("b", &new), ("c", &other)]);
    let row = |row: &&mut compare::Row| row.statistic == compare::Statistic::Amean;
    let row = comparison.tables[0].rows.iter_mut().find(row).unwrap();
    // The verdicts are those of a margin of 0.
    row.cells[1].verdict = Some(compare::Verdict::Regression);
    row.cells[2].verdict = Some(compare::Verdict::Improvement);
    let text = printed(&comparison);
    let expected = "Amean     instructions-kernel 1000000000 (   0.00%) 1000000007 [  -0.00%] \
                    999999993 [   0.00%]";
    assert_eq!(lines(&text, "Amean"), [expected]);
}

#[test]
fn json_says_what_exact_mode_found() {
    let comparison = compared(5, &[("6.1", &seeds(1.0, 5)), ("6.12", &seeds(1.09, 5))]);
    let document = document(&comparison);
    assert_eq!(document["mode"], "exact");
    insta::assert_snapshot!(serde_json::to_string_pretty(&document["exact"]).unwrap());
    let rows = document["tables"][0]["rows"].as_array().unwrap();
    let row = |statistic: &str, metric: &str| {
        let mut rows = rows.iter();
        rows.find(|row| row["statistic"] == statistic && row["metric"] == metric).unwrap()
    };
    let mean = row("Amean", "instructions-kernel-NUMA01");
    assert_eq!(mean["verdicts"], json!([null, "regression"]));
    assert_eq!(mean["beyond_luck"], json!([null, true]));
    let luck = row("Luck", "instructions-kernel-NUMA01");
    assert_eq!(mean["floors"], json!([null, luck["values"][1]]));
    assert_eq!(luck["verdicts"], json!([null, null]));
    let undirected = row("Amean", "CPU-NUMA01");
    assert_eq!(undirected["verdicts"], json!([null, null]));
    let counters = &document["tables"][2];
    let faults = counters["rows"].as_array().unwrap();
    let faults = faults.iter().find(|row| row["metric"] == "NUMA hint faults").unwrap();
    assert_eq!(faults["verdicts"], json!([null, null]));
    assert_eq!(faults["beyond_luck"], json!([null, true]));
}

/// Returns boots under KVM, one in each block. `scale` is the factor of the kernel's time; `first` is the
/// place in [`LUCK`] at which the noise of the variant begins.
fn blocks(scale: f64, first: u32, number: u32) -> Vec<Boot> {
    let boots = (0..number).map(|block| {
        let drift = 1.0 + f64::from(block) / 50.0;
        let noise = 1.0 + LUCK[(first + block) as usize % LUCK.len()] / 1e3;
        let mut boot = boot(block);
        boot.block = block;
        measure_phase(&mut boot, "NUMA01", "System", "", 31.5 * drift * noise * scale);
        measure_phase(&mut boot, "NUMA01", "Elapsed", "", 62.4 * drift * noise);
        measure_phase(&mut boot, "NUMA02", "System", "", 5.25 * drift * noise * scale);
        measure_phase(&mut boot, "NUMA02", "Elapsed", "", 20.4 * drift * noise);
        boot
    });
    boots.collect()
}

/// Compares the measured boots of two variants, with a cross-check by their exact ones.
fn by_both_clocks(measured: [&[Boot]; 2], exact: [&[Boot]; 2]) -> Comparison {
    let variants = ["6.1", "6.12"].map(variant);
    let number = measured[0].len() as u32;
    let [time, count] =
        [(Mode::Measured, number), (Mode::Exact, 5)].map(|(mode, boots)| experiment(mode, boots));
    let time = Results {
        experiment: &time,
        reading: Reading::USUAL,
        variants: columns(&variants, &measured),
    };
    let count = Results {
        experiment: &count,
        reading: Reading::USUAL,
        variants: columns(&variants, &exact),
    };
    let mut comparison = compare(&time, 0, &Judging::default());
    comparison.cross_checks = cross_check(&time, &count, "6.1", &Judging::of(&time));
    comparison.cross_check_sources = Some(Sources {
        measured: "numa (number 3)".into(),
        exact: "numa-\u{1b}exact (number 7)".into(),
    });
    comparison
}

fn section(text: &str) -> &str {
    let text = above_notes(text);
    &text[text.find("Side by side").unwrap()..]
}

#[test]
fn time_stands_beside_instructions() {
    let (old, new) = (blocks(1.0, 0, 6), blocks(1.04, 3, 6));
    let comparison = by_both_clocks([&old, &new], [&seeds(1.0, 5), &seeds(1.09, 5)]);
    insta::assert_snapshot!(section(&printed(&comparison)));
    let document = document(&comparison);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document["beside"]).unwrap());
}

#[test]
fn the_widest_luck_floor_is_printed() {
    let (old, new) = (blocks(1.0, 0, 6), blocks(1.04, 3, 6));
    let exact = seeds(1.0, 5);
    let text = printed(&by_both_clocks([&old, &new], [&exact, &exact]));
    let words = words(section(&text));
    let said = "or guest time was seen above 0.152 %: the cause is alignment,";
    assert!(words.contains(said), "{words}");
    assert!(words.ends_with("and guest time above 0.155 %."), "{words}");
}

#[test]
fn times_under_emulation_have_no_reading() {
    let mut measured = [blocks(1.0, 0, 3), blocks(1.04, 3, 3)];
    for boot in measured.iter_mut().flatten() {
        boot.facts.provenance.execution = Some(Execution::Tcg);
    }
    let exact = seeds(1.0, 5);
    let comparison = by_both_clocks(measured.each_ref().map(|it| &**it), [&exact, &exact]);
    insta::assert_snapshot!(section(&printed(&comparison)));
}

#[test]
fn locality_over_time() {
    let column = |(name, values): &(&str, [i64; 4])| Column::new(*name, values.map(Some).to_vec());
    let series = |source: &str, columns: &[(&str, [i64; 4])]| Chunk {
        workload: "autonuma".into(),
        iteration: 0,
        phase: "NUMA01".into(),
        source: source.into(),
        times: vec![5_000_000_000, 6_000_000_000, 7_000_000_000, 7_500_000_000],
        columns: columns.iter().map(column).collect(),
    };
    let accesses = [
        ("user-local", [10, 1_000_010, 5_000_010, 9_000_010]),
        ("user-remote", [10, 3_000_010, 4_000_010, 4_100_010]),
        ("kernel-local", [0, 500, 700, 900]),
        ("kernel-remote", [0, 1500, 1600, 1700]),
    ];
    let hints =
        [("numa_hint_faults_local", [4, 24, 90, 90]), ("numa_hint_faults", [9, 99, 199, 199])];
    let chunks = vec![series("accesses", &accesses), series("vmstat", &hints)];
    let boot = Boot { chunks, ..boot(0) };
    insta::assert_snapshot!(report::locality("autonuma", &locality(&boot, "autonuma")));
    assert_eq!(report::locality("autonuma", &[]), "");
}
