//! Tests of the text of a comparison.

mod common;
#[path = "text/mail.rs"]
mod mail;

use common::carried::printed;
use common::{
    blocks, boot, boots, brief, by_patch, columns, compare_columns, compared, count, document,
    measure, measured, section, spend, variant,
};
use compare::{Comparison, Judging, Kind, Results, compare};
use model::{Boot, Execution, Host, Mode, Outcome, Problem, ProblemKind, Setting};

/// Returns the text of a comparison.
fn text(variants: &[(&str, &[Boot])]) -> String {
    printed(&compared(variants))
}

fn complain(boot: &mut Boot, kind: ProblemKind, text: &str) {
    boot.problems.push(Problem { kind, text: text.into() });
}

/// Returns the table of counters.
fn counters(comparison: &mut Comparison) -> &mut compare::Table {
    comparison.tables.iter_mut().find(|table| table.kind == Kind::Counters).unwrap()
}

fn widest(text: &str) -> usize {
    text.lines().map(str::len).max().unwrap_or(0)
}

#[test]
fn one_variant() {
    insta::assert_snapshot!(text(&[("6.1", &boots(1.0))]));
}

#[test]
fn two_variants() {
    let mut new = boots(0.9);
    for boot in &mut new {
        boot.facts.release = "6.12.57+deb12-cloud-amd64".into();
        boot.facts.banner = boot.facts.banner.replace("12.2.0", "14.2.0");
        boot.facts.cmdline.push_str(" transparent_hugepage=never");
        boot.facts.config.push_str("CONFIG_LRU_GEN_ENABLED=y\nCONFIG_FOO=m\n");
        boot.facts.kernel_origin = "Debian 6.12.57-1, linux-image-6.12.57+deb12-cloud-amd64".into();
    }
    let text = text(&[("6.1", &boots(1.0)), ("6.12", &new)]);
    assert!(widest(&text) <= 100);
    insta::assert_snapshot!(text);
}

#[test]
fn a_change_above_tenfold_is_a_factor_in_verdicts() {
    let comparison = compared(&[("6.1", &blocks(5, 1.0, 1)), ("6.12", &blocks(5, 20.0, 1))]);
    let text = printed(&comparison);
    let verdict = text.lines().find(|line| line.starts_with("  regression")).unwrap();
    assert!(verdict.contains("20.0 times as long (") && !verdict.contains(" %"), "{verdict}");
}

#[test]
fn the_notes_name_the_patch_of_a_kernel_from_source() {
    let from = |origin: &str| {
        let mut boots = boots(1.0);
        boots.iter_mut().for_each(|boot| boot.facts.kernel_origin = origin.into());
        boots
    };
    let origin = |patch: &str| format!("debian-source 6.1.174-1{patch}; small configuration");
    let [old, new] = ["", ", \"mm: walk every page\""].map(|patch| from(&origin(patch)));
    let text = brief(&compared(&[("6.1", &old), ("6.1+walk", &new)]));
    let told = format!("6.1+walk  {}\n", origin(", \"mm: walk every page\""));
    assert!(text.contains("\n  origin ") && text.contains(&told), "{text}");
    // The release tells packaged kernels apart.
    let packages = ["Debian 6.1.174-1, linux-image-6.1.0", "Debian 6.12.57-1, linux-image-6.12"];
    let [old, new] = packages.map(from);
    let text = brief(&compared(&[("6.1", &old), ("6.12", &new)]));
    assert!(!text.contains("  origin "), "{text}");
}

/// Times of two machines say nothing about two kernels, even if they are far apart.
#[test]
fn boots_of_two_hosts_give_no_verdict() {
    let on = |digit: &str, scale: f64| {
        let mut boots = blocks(5, scale, 1);
        for boot in &mut boots {
            let id = digit.repeat(64);
            boot.facts.provenance.host = Host { id, cpu: "EPYC".into(), ..Host::default() };
        }
        boots
    };
    let apart = text(&[("6.1", &on("1", 1.0)), ("6.12", &on("2", 2.0))]);
    let told = "  undecided  the boots are of several hosts, and none has 3 boots of both\n";
    assert!(apart.contains(told) && !apart.contains("regression"), "{apart}");
    assert!(!apart.contains("of each variant are needed"), "{apart}");
    let hosts =
        "\n  made on        6.1   EPYC (11111111)\n                 6.12  EPYC (22222222)\n";
    assert!(apart.contains(hosts), "{apart}");
    let together = text(&[("6.1", &on("1", 1.0)), ("6.12", &on("1", 2.0))]);
    assert!(together.contains("  regression ") && !together.contains("(11111111)"), "{together}");
}

#[test]
fn a_variant_that_did_not_boot_has_no_command_line() {
    let text = text(&[("6.1", &boots(1.0)), ("6.12", &[])]);
    assert!(!text.contains("command line") && !text.contains("nothing of its own"), "{text}");
}

/// The spread of 10 and 10.001 is not zero, but is printed as zero. So it has no gain.
#[test]
fn there_is_no_gain_over_what_is_printed_as_0() {
    let measured = |times: &[f64]| [measured(&[("Elapsed", "NUMA01", times)])];
    let text = text(&[("6.1", &measured(&[10.0, 10.001])), ("6.12", &measured(&[10.0, 10.1]))]);
    let spread = |row: &str| text.lines().find(|line| line.starts_with(row)).unwrap().to_owned();
    for (row, values) in [("Stddev", ["0.00", "0.07"]), ("CoeffVar", ["0.01", "0.70"])] {
        let line = spread(row);
        assert!(values.iter().all(|value| line.contains(value)), "{line}");
        assert_eq!(line.ends_with("(        -)"), row == "Stddev", "{line}");
    }
}

/// The first screen has the rows with verdicts and the counters that moved most; with few boots, a table
/// without verdicts.
#[test]
fn the_first_screen() {
    let (base, worse) = (blocks(6, 1.0, 1), blocks(6, 1.08, 2));
    let comparison = compared(&[("6.1", &base), ("6.12", &worse)]);
    insta::assert_snapshot!("first_screen", brief(&comparison));
    let few = compared(&[("6.1", &base[..1]), ("6.12", &worse[..1])]);
    insta::assert_snapshot!("first_screen_of_few_boots", brief(&few));
}

#[test]
fn verdicts_of_boots_in_blocks() {
    let (base, worse, two) = (blocks(6, 1.0, 1), blocks(6, 1.08, 2), blocks(2, 1.0, 3));
    let text = text(&[("6.1", &base), ("6.12", &worse), ("7.2-patched", &two)]);
    assert!(widest(&text) <= 100);
    insta::assert_snapshot!(text);
}

#[test]
fn patches_are_compared_with_the_step_before_them() {
    let (variants, reading) =
        common::series(&["mm: one", "\"[PATCH 2/3] mm: two\"", "mm: three\x1b", "mm: four"]);
    let base = blocks(6, 1.0, 1);
    let (worse, same) = (blocks(6, 1.08, 2), blocks(6, 1.08, 2));
    let mut failed = boot(0);
    failed.outcome = Outcome::Failed("mm: three does not apply: mm/a.c:4".into());
    let failed = [failed];
    let columns = columns(&variants, &[&base, &worse, &same, &failed, &base]);
    let experiment = common::experiment(Mode::Measured, 6);
    let results = Results { experiment: &experiment, reading: &reading, variants: columns };
    let comparison = compare(&results, 2, &Judging::default());
    let text = printed(&comparison);
    insta::assert_snapshot!(by_patch(&text));
    assert_eq!(by_patch(&brief(&comparison)), by_patch(&text));
    let json = document(&comparison);
    assert_eq!(json["steps"][1]["variants"], serde_json::json!(["v6.12+1", "v6.12+2"]));
    assert_eq!(json["steps"][1]["patch"], "\"[PATCH 2/3] mm: two\"");
}

#[test]
fn chosen_rows_that_do_not_exist_are_named() {
    let (base, worse) = (blocks(6, 1.0, 1), blocks(6, 1.08, 2));
    let variants = [variant("6.1"), variant("6.12")];
    let primary = ["Elapsed-NUMA1", "Elapsed-NUMA03\x1b"];
    let experiment = common::experiment(Mode::Measured, 6);
    let text = |primary: &[&str]| {
        let (variants, reading) = (columns(&variants, &[&base, &worse]), common::on_rows(primary));
        let results = Results { experiment: &experiment, reading: &reading, variants };
        let text = printed(&compare(&results, 0, &Judging::default()));
        assert!(widest(&text) <= 100);
        let from = text.find("Verdicts on").or_else(|| text.find("No verdict")).unwrap();
        text[from..from + text[from..].find("Variation:").unwrap()].to_owned()
    };
    insta::assert_snapshot!(text(&primary));
    let some = text(&[primary[0], "Elapsed-NUMA01"]);
    assert!(some.contains("\nNo verdict on Elapsed-NUMA1: chosen"), "{some}");
    assert!(some.contains("\nRows without a verdict"), "{some}");
}

#[test]
fn odd_values_are_shown_and_count() {
    let warm = |block: u32| {
        let mut boot = blocks(block + 1, 1.0, 7).pop().unwrap();
        boot.samples.clear();
        let slow = |at: u32| if block == 1 && at < 3 { 30.0 } else { 0.0 };
        let times = (0..24).map(|at| 100.0 + f64::from(7 * (at + block) % 11) + slow(at));
        measure(&mut boot, "System", "NUMA01", &times.collect::<Vec<_>>());
        let mode = if block.is_multiple_of(2) { 10.0 } else { 15.0 };
        let times = (0..3).map(|at| mode + 0.1 * f64::from((3 * at + block) % 5));
        measure(&mut boot, "System", "NUMA02", &times.collect::<Vec<_>>());
        boot
    };
    let base = blocks(6, 1.0, 1);
    let mut odd: Vec<Boot> = (0..6).map(warm).collect();
    measure(&mut odd[4], "Elapsed", "NUMA03", &[4.0, 4.0, 4.1, 9.0, 4.2, 4.1, 4.0, 4.1, 4.0]);
    let text = text(&[("6.1", &base), ("6.12\x1b", &odd)]);
    let variation = section(&text, "Variation:");
    assert!(widest(variation) <= 100);
    insta::assert_snapshot!(variation);
}

/// Returns five boots of one iteration, with 40 to 44 samples of two metrics. The first metric has warm-up
/// in all boots, the second in the first `warm` boots.
fn warming(variant: u32, warm: u32) -> Vec<Boot> {
    let mut boots = blocks(5, 1.0, variant.into());
    for (boot, number) in boots.iter_mut().zip(0..) {
        boot.samples.clear();
        let level = |at: u32| 50.0 + f64::from(7 * (at + number + variant) % 11);
        for (label, warm) in [("NUMA01\x1b", 5), ("NUMA02", warm)] {
            let slow = |at: u32| if number < warm && at < 3 { 80.0 } else { 0.0 };
            let times: Vec<f64> = (0..40 + number).map(|at| level(at) + slow(at)).collect();
            measure(boot, "System", label, &times);
        }
        boot.samples.iter_mut().for_each(|sample| sample.iteration = 0);
    }
    boots
}

#[test]
fn a_warm_up_is_left_out_and_reported() {
    let (base, new) = (warming(1, 0), warming(2, 1));
    let text = text(&[("6.1", &base), ("6.12\x1b", &new)]);
    let variation = section(&text, "Variation:");
    assert!(widest(variation) <= 100);
    insta::assert_snapshot!(variation);
    // This is the largest value of the steady state, not of the warm-up.
    let max = text.lines().find(|line| line.contains("Max") && line.contains("NUMA01")).unwrap();
    assert!(max.contains(" 60.00 "), "{max}");
}

#[test]
fn every_heading_names_iterations_of_warm_up() {
    let variants = [variant("6.1"), variant("6.12")];
    let (old, new) = (blocks(3, 1.0, 1), blocks(3, 1.1, 2));
    let text = printed(&common::compare_after(1, columns(&variants, &[&old, &new])));
    let headings = text.lines().filter(|line| line.contains("1 iteration after 1 of warm-up"));
    assert_eq!(headings.count(), 3, "{text}");
    insta::assert_snapshot!(section(&text, "Left out:"));
}

#[test]
fn three_variants_with_long_names() {
    let text = text(&[
        ("4.16.0-rc4-schedtip-20180309", &boots(1.0)),
        ("4.16.0-rc4-nodirty-v1", &boots(0.8)),
        ("mmotm_20160623_nodelru_v8_and_more", &boots(1.3)),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn three_variants_fit_a_mail() {
    let variants = [("6.1", 1.0), ("6.12", 0.9), ("7.2-patched", 1.1)];
    let boots = variants.map(|(name, scale)| (name, boots(scale)));
    let columns: Vec<_> = boots.iter().map(|(name, boots)| (*name, &**boots)).collect();
    assert!(widest(&text(&columns)) <= 100);
}

#[test]
fn missing_metrics_and_percentages() {
    let old = measured(&[("Elapsed", "NUMA01", &[12.5]), ("System", "NUMA01", &[0.0])]);
    let mut new = measured(&[("Elapsed", "NUMA02", &[3.25]), ("System", "NUMA01", &[1.5])]);
    spend(&mut new, 0, 5.0, 1.5, 3.25);
    insta::assert_snapshot!(text(&[("old", &[old]), ("new", &[new])]));
}

#[test]
fn failed_boots() {
    let mut panicked = boot(2);
    panicked.outcome =
        Outcome::Panicked("Kernel panic - not syncing: sysrq triggered crash".into());
    let mut hung = boot(0);
    hung.outcome = Outcome::TimedOut("no frame of the agent within 180 s".into());
    let mut old = boots(1.0);
    old.push(panicked);
    insta::assert_snapshot!(text(&[("6.1", &old), ("7.3-rc1", &[hung])]));
}

#[test]
fn figures_that_were_not_measured_are_named() {
    let mut new = boots(0.9);
    for boot in &mut new {
        boot.notes =
            vec!["too quick to be measured: SeqRead-1, \x1b[2J".into(), "created 40 files".into()];
    }
    let text = text(&[("6.1", &boots(1.0)), ("6.12", &new)]);
    let said = "\n  no figure      6.12  b3, b4: too quick to be measured: SeqRead-1, \\u{1b}[2J\n";
    assert!(text.contains(said) && !text.contains("40 files"), "{text}");
}

#[test]
fn states_that_differ_come_first_and_leftovers_are_named() {
    let noted = |scale, thp: &str| {
        let mut boots = boots(scale);
        let found = format!("found by autonuma: THP = {thp}; swap = none");
        boots.iter_mut().for_each(|boot| boot.notes = vec![found.as_str().into()]);
        boots
    };
    let (old, mut new) = (noted(1.0, "always"), noted(0.9, "never"));
    new[0].notes.push("left by fill: 312 MiB of memory in use".into());
    let columns = [("6.1", &old[..]), ("6.12", &new)];
    let first = "States that differ:\n  THP  6.1   always\n       6.12  never\n\n";
    let said = "\n  left over      6.12  b3: left by fill: 312 MiB of memory in use\n";
    let whole = text(&columns);
    assert!(whole.starts_with(first) && whole.contains(said), "{whole}");
    assert!(!whole.contains("swap"), "{whole}");
    let comparison = compared(&columns);
    assert!(brief(&comparison).starts_with(first));
    let same = text(&[("6.1", &old), ("6.12", &noted(0.9, "always"))]);
    assert!(!same.contains("States that differ"), "{same}");
}

#[test]
fn figures_that_count_pages_of_other_sizes_are_named() {
    let sized = |page_size| {
        let mut boots = boots(1.0);
        boots.iter_mut().for_each(|boot| boot.facts.page_size = page_size);
        boots
    };
    let variants = [variant("4k"), variant("16k")];
    let said = |unit: &str, other: u64| {
        let kernels = [sized(4 << 10), sized(other)];
        let mut comparison = compare_columns(columns(&variants, &[&kernels[0], &kernels[1]]));
        comparison.tables[0].rows[0].unit = unit.into();
        printed(&comparison)
    };
    let sizes = "States that differ:\n  page size  4k   4 KiB (huge pages: 2 MiB)\n             \
                 16k  16 KiB (huge pages: 32 MiB)\n";
    let pages = "             figures in ns a page count pages, and not as many bytes\n";
    let text = said("ns a page", 16 << 10);
    assert!(text.starts_with(&format!("{sizes}{pages}\n")), "{text}");
    assert!(said("s", 16 << 10).starts_with(&format!("{sizes}\n")));
    assert!(!said("ns a page", 4 << 10).contains("page size"));
}

#[test]
fn settings_and_boots_set_aside() {
    let mut old = boots(1.0);
    old.push(boot(2));
    old[2].outcome = Outcome::Interrupted;
    let mut new = vec![boot(0)];
    new[0].outcome = Outcome::Failed("no sysctl kernel.numa_balancing".into());
    complain(&mut new[0], ProblemKind::Bug, "BUG: of a boot set aside");
    new.extend(boots(0.9));
    for boot in new.iter_mut().chain(&mut old) {
        boot.host.steal = f64::NAN;
    }
    for boot in &mut new {
        boot.host.load_before = f64::NAN;
        boot.host.load_after = f64::NAN;
    }
    let mut variants = [variant("6.1"), variant("6.1-off")];
    variants[1].settings = vec![
        Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() },
        Setting::Sysfs {
            path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            value: "never\x1b".into(),
        },
    ];
    for variant in &mut variants {
        variant.modules = vec!["ext4".into()];
    }
    let mut columns = columns(&variants, &[&old, &new]);
    columns[1].boots[0].superseded = true;
    let text = printed(&compare_columns(columns));
    insta::assert_snapshot!(&text[text.find("Notes:").unwrap()..]);
}

/// Returns a boot that reclaims. `by_zone` selects the counters of kernels before 4.8.
fn reclaiming(by_zone: bool) -> Boot {
    let mut boot = boot(0);
    let names = match by_zone {
        true => ["allocstall", "pgscan_kswapd_normal", "pgsteal_kswapd_normal"],
        false => ["allocstall_movable", "pgscan_kswapd", "pgsteal_kswapd"],
    };
    let grown = [2603, 50_719_775, 41_541_765];
    let mut counters: Vec<_> = names.into_iter().zip(grown).collect();
    counters.extend([
        ("pgscan_direct_normal", 216_787),
        ("pgscan_direct_dma", 0),
        ("pswpin", 0),
        ("pswpout", 0),
        ("nr_vmscan_write", 0),
        ("thp_fault_alloc", 5),
        ("compact_stall", 0),
        ("numa_hint_faults", 7),
        ("numa_hint_faults_local", 2),
    ]);
    count(&mut boot, 0, &counters);
    boot
}

#[test]
fn counters_by_section_without_those_that_stood_still() {
    let text = text(&[("4.7", &[reclaiming(true)]), ("4.8", &[reclaiming(false)])]);
    assert!(widest(&text) <= 100);
    insta::assert_snapshot!(&text[..text.find("\nNotes:").unwrap()]);
    insta::assert_snapshot!(&text[text.find("  counted otherwise").unwrap()..]);
}

#[test]
fn a_column_without_boots_does_not_hide_what_others_count() {
    let boots = [reclaiming(true)];
    let text = text(&[("4.7", &boots), ("4.8", &[])]);
    let counters = &text[text.find("counters summed").unwrap()..];
    assert!(counters.contains("\nZero in every column: Swap Ins,"), "{counters}");
    assert!(!counters.contains("Zero where"), "{counters}");
}

#[test]
fn only_some_of_many_unchanged_counters_are_named() {
    let old = [reclaiming(true)];
    let mut comparison = compared(&[("4.7", &old)]);
    let mut said = |count: usize| {
        let rows = &mut counters(&mut comparison).rows;
        let zero = compare::Row {
            cells: vec![compare::Cell { value: Some(0.0), ..Default::default() }],
            ..rows[0].clone()
        };
        let named = |number: usize| compare::Row { metric: number.to_string(), ..zero.clone() };
        *rows = (0..count).map(named).collect();
        printed(&comparison).replace('\n', " ")
    };
    let text = said(9);
    assert!(text.contains("Zero in every column: 0, 1, 2, 3, 4, 5, 6, 7, 8. "), "{text}");
    let text = said(47);
    let expected =
        "Zero in every column: 0, 1, 2, 3, 4, 5, 6, 7 and 39 more (all are in --format json). ";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn phases_that_are_not_counted_are_named() {
    let old = [reclaiming(true)];
    let mut comparison = compared(&[("4.7", &old)]);
    for (phases, expected) in [
        (",create\n,fill", "1 boot x 1 iteration; without create\\n, fill and time outside phases"),
        (
            ",cg.S-fill,cg.S-verify,ep.S-fill,ep.S-verify,cg.S-warm-up,is.S-warm-up,init",
            "; without *-fill (2), *-verify (2), *-warm-up (2), init and time outside phases",
        ),
        ("init,warmup-1,warmup-12,warmup-21,warmup-5", "; without init and warmup-* (4)"),
    ] {
        counters(&mut comparison).left_out = phases.split(',').map(str::to_owned).collect();
        let text = printed(&comparison).replace('\n', " ");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn counters_that_do_not_add_up() {
    let impossible = |boot_index| {
        let mut boot = boot(boot_index);
        boot.facts.cpus = 4;
        let counters = [
            ("pgscan_direct", 54_504),
            ("allocstall_normal", 0),
            ("pgfault", 9),
            ("pgmajfault", 1_000_000),
            ("oom_kill", -1),
        ];
        count(&mut boot, 0, &counters);
        boot
    };
    let mut stalling = boot(0);
    count(&mut stalling, 0, &[("allocstall_normal", 900), ("pgscan_direct", 0)]);
    let impossible: Vec<Boot> = (0..7).map(impossible).collect();
    let text = text(&[("6.1", &impossible), ("6.12", &[stalling])]);
    assert!(widest(&text) <= 100);
    insta::assert_snapshot!(&text[text.find("  does not add up").unwrap()..]);
}

#[test]
fn no_boot_at_all() {
    insta::assert_snapshot!(text(&[("6.1", &[]), ("7.3", &[])]));
}

#[test]
fn emulated_with_complaints() {
    let emulated = |scale| {
        let mut boots = boots(scale);
        for boot in &mut boots {
            boot.facts.provenance.execution = Some(Execution::Tcg);
            boot.problems.clear();
        }
        boots
    };
    let (old, mut new) = (emulated(1.0), emulated(1.1));
    let warning = "WARNING: CPU: 1 PID: 312 at mm/page_alloc.c:4402 \
                   __alloc_pages+0x3d1/0x14a0 which is a line that goes on and on";
    for boot in &mut new {
        complain(boot, ProblemKind::Warning, warning);
        complain(boot, ProblemKind::Taint, "W: kernel issued warning");
    }
    for process in 0..5 {
        let text = format!("Out of memory: Killed process {process} (numa01)");
        complain(&mut new[1], ProblemKind::OomKill, &text);
    }
    complain(&mut new[1], ProblemKind::SeriesDropped, "the recorder was full");
    new[1].facts.provenance.emulator = "QEMU 10.0.3".into();
    insta::assert_snapshot!(text(&[("6.1", &old), ("6.1-patched", &new)]));
}

#[test]
fn huge_values() {
    let old = measured(&[("Elapsed", "NUMA01", &[123_456_789_012.25, 0.5]), ("Rate", "", &[1e-7])]);
    let new = measured(&[("Elapsed", "NUMA01", &[1e300, -1e300, 3.0]), ("Rate", "", &[25.0])]);
    insta::assert_snapshot!(text(&[("old", &[old]), ("new", &[new])]));
}

#[test]
fn nothing_from_a_guest_reaches_the_terminal_raw() {
    let long = "long".repeat(50);
    let odd = ("Elapsed\x1b[2J", "\u{202e}caf\u{e9}", &[1.0][..]);
    let mut hostile = measured(&[odd, (&long, "", &[1.0])]);
    complain(&mut hostile, ProblemKind::Bug, "\x07bell\r\nFORGED: line");
    hostile.facts.release = "6.1\x1b]0;title\x07".into();
    insta::assert_snapshot!(text(&[("a\tb", &[hostile])]));
}
