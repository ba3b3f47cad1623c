//! The comparison as a mail.

#[path = "mail/cause.rs"]
mod cause;
mod common;
#[path = "mail/recipe.rs"]
mod recipe;
#[path = "mail/subject.rs"]
mod subject;
#[path = "mail/transfers.rs"]
mod transfers;
#[path = "mail/whole.rs"]
mod whole;

use common::carried::assert_short;
use common::{
    blocks, boot, boots, by_patch, columns, experiment, measure, measured, series, variant,
};
use compare::{
    Basis, Cell, Comparison, Conclusion, CrossCheck, Evidence, Explained, Gain, Judging, Kind,
    Results, Row, Verdict, compare,
};
use import::{Baseline, check, read};
use model::{
    Boot, Execution, Experiment, Imported, Millis, Mode, Outcome, PatchMail, Patched, Pinned,
    Reading, Setting, UserspaceLock, Variant,
};
use proptest::prelude::*;
use report::Recipe;

/// The input of a mail.
struct Case {
    experiment: Experiment,
    reading: Reading,
    variants: Vec<Variant>,
    boots: Vec<Vec<Boot>>,
    files: Vec<(String, String)>,
    explained: Vec<Explained>,
    attached: Vec<&'static str>,
    parameters: Option<Vec<(String, String)>>,
}

impl Case {
    fn new(mode: Mode, variants: &[(&str, Vec<Boot>)]) -> Self {
        let files = [("test.toml".to_owned(), "name = \"test\"\nboots = 2\n".to_owned())];
        Self {
            experiment: experiment(mode, 2),
            reading: Reading::default(),
            variants: variants.iter().map(|(name, _)| variant(name)).collect(),
            boots: variants.iter().map(|(_, boots)| boots.clone()).collect(),
            files: files.into(),
            explained: Vec::new(),
            attached: Vec::new(),
            parameters: None,
        }
    }

    /// Returns the mail and its comparison, which `change` may modify.
    fn mail(&self, change: impl FnOnce(&mut Comparison)) -> (String, Comparison) {
        let boots: Vec<&[Boot]> = self.boots.iter().map(Vec::as_slice).collect();
        let columns = columns(&self.variants, &boots);
        let results =
            Results { experiment: &self.experiment, reading: &self.reading, variants: columns };
        let mut comparison = compare(&results, 0, &Judging::default());
        change(&mut comparison);
        let recipe = Recipe {
            version: "0.1.0",
            files: &self.files,
            parameters: self.parameters.clone(),
            on_both: false,
        };
        let mail = report::mail(&comparison, &results, &self.explained, &recipe, &self.attached);
        assert_sendable(&mail);
        assert_short(&mail);
        (mail, comparison)
    }

    fn subject(&self, change: impl FnOnce(&mut Comparison)) -> String {
        let mail = self.mail(change).0;
        let header = mail.split("\n\n").next().unwrap();
        header.strip_prefix("Subject: ").unwrap().replace('\n', "")
    }
}

/// Returns two variants with a boot in each of two blocks. The order of the variants alternates from block
/// to block.
fn two(mode: Mode, scale: f64) -> Case {
    let mut all = [boots(1.0), boots(scale)];
    for (side, boots) in all.iter_mut().enumerate() {
        for (block, boot) in boots.iter_mut().enumerate() {
            boot.block = block as u32;
            boot.started += 100 * block as u64 + 50 * u64::from(side == block);
        }
    }
    let [old, new] = all;
    Case::new(mode, &[("6.1", old), ("6.12", new)])
}

#[test]
fn a_machine_without_huge_pages_is_said_to_be_one() {
    let mail = |thp: [&str; 2]| {
        let mut case = two(Mode::Measured, 1.3);
        for (boots, thp) in case.boots.iter_mut().zip(thp) {
            let found = format!("found by autonuma: THP = {thp}; swap = none");
            boots.iter_mut().for_each(|boot| boot.notes = vec![found.as_str().into()]);
        }
        case.mail(|_| ()).0
    };
    let without = "2 nodes, 2G; THP never; kvm";
    assert!(mail(["never", "never"]).contains(without), "{}", mail(["never", "never"]));
    for thp in [["always", "never"], ["always", "always"]] {
        assert!(!mail(thp).contains("no transparent"));
    }
    assert!(!two(Mode::Measured, 1.3).mail(|_| ()).0.contains("no transparent"));
}

/// Checks that the mail follows RFC 5322 (headers, an empty line, a body) and the rules of the mailing
/// lists.
fn assert_sendable(mail: &str) {
    let (header, body) = mail.split_once("\n\n").unwrap();
    for (number, line) in header.lines().enumerate() {
        let begin = if number == 0 { "Subject: " } else { " " };
        assert!(line.starts_with(begin) && !line.trim().is_empty(), "{header}");
        assert!(!line.contains("=?") && line.len() <= 78, "{header}");
    }
    common::assert_plain(mail);
    for line in header.lines().chain(body.lines()) {
        assert!(!line.starts_with("From ") && !line.starts_with('>'), "{line}");
        let is_command = line.trim_start().starts_with("faultline ");
        assert!(line.len() <= 78 || is_command, "{}: {line}", line.len());
    }
    assert!(body.ends_with('\n') && !body.ends_with("\n\n"));
}

/// Checks that the table of the mail has the rows with verdicts, or else the first means, with each of its
/// columns and values, and that each percentage follows from the values beside it.
fn assert_readable(mail: &str, comparison: &Comparison) {
    let found = read(mail.as_bytes());
    let Some(table) = comparison.tables.first() else { return assert!(found.tables.is_empty()) };
    let judged: Vec<_> = table.rows.iter().filter(|row| row.is_judged()).collect();
    let means = table.rows.iter().filter(|row| row.statistic.is_mean());
    let rows = if judged.is_empty() { means.take(8).collect() } else { judged };
    let mut seen = vec![false; comparison.variants.len()];
    let mut parts = found.tables.iter();
    while !seen.iter().all(|seen| *seen) {
        let part = parts.next().unwrap_or_else(|| panic!("{mail}"));
        let check = check(part);
        if check.printed > 0 {
            assert_eq!(part.baseline, Some(Baseline::Column(0)), "{mail}");
        }
        assert_eq!(part.rows.len(), rows.len(), "{mail}");
        for (place, name) in part.columns.iter().enumerate() {
            let is_named = |it: &compare::VariantOutcomes| it.name.replace(' ', "-") == *name;
            // The kernel of a package is named by its version.
            let is_series =
                |it: &compare::VariantOutcomes| name.starts_with(&format!("{}.", it.name));
            let variants = &comparison.variants;
            let column =
                variants.iter().position(is_named).or_else(|| variants.iter().position(is_series));
            let column = column.unwrap_or_else(|| panic!("{name:?} of {:?}: {mail}", part));
            seen[column] = true;
            for (row, read) in rows.iter().zip(&part.rows) {
                match (row.value(column), read.cells[place].value.as_ref()) {
                    (None, None) => {}
                    (Some(value), Some(read)) => {
                        let error = (value - read.value).abs() - value.abs() * 1e-12;
                        assert!(error <= read.half, "{}: {value} as {read:?}\n{mail}", row.metric);
                    }
                    other => panic!("{}: {other:?}\n{mail}", row.metric),
                }
            }
        }
        assert_eq!((check.derived, check.findings), (check.printed, vec![]), "{mail}");
    }
}

/// Gives the means of the workload's first metric this verdict of measured mode.
fn judge(comparison: &mut Comparison, verdict: Verdict, evidence: Evidence) {
    for row in &mut comparison.tables[0].rows {
        if row.statistic.is_mean() && row.metric.starts_with("System") {
            let (evidence, variation) = (Some(Ok(evidence)), row.variation(1));
            let basis = Basis::Measured { evidence, variation };
            row.cells[1] = Cell { verdict: Some(verdict), basis, ..row.cells[1].clone() };
        }
    }
}

const EVIDENCE: Evidence = Evidence {
    ratio: 1.052,
    low: 1.043,
    high: 1.0612,
    p: 0.0021,
    boots: [8, 8],
    paired: true,
    visible: Some(0.008),
    needed: None,
    logarithmic: true,
    p_alone: 0.001,
    p_same: 0.9,
    error: 0.004,
    freedom: 7.0,
};

#[test]
fn a_regression() {
    let mut case = two(Mode::Measured, 1.052);
    case.variants[0].kernel = "6.1.0-49-cloud-amd64 sha256:5bd1".into();
    case.variants[1].kernel = "my kernel sha256:77aa".into();
    case.variants[1].settings =
        vec![Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() }];
    for boot in &mut case.boots[1] {
        boot.facts.kernel_origin = "/home/mel/linux/arch/x86/boot/bzImage".into();
        boot.facts.kernel_digest = "77aa".repeat(16);
        boot.facts.release = "7.3.0-rc1+".into();
    }
    let mut panicked = boot(2);
    panicked.block = 2;
    panicked.outcome = Outcome::Panicked("Kernel panic - not syncing: sysrq".into());
    case.boots[1].push(panicked);
    let (mail, comparison) = case.mail(|it| judge(it, Verdict::Regression, EVIDENCE));
    assert_readable(&mail, &comparison);
    insta::assert_snapshot!(mail);
}

#[test]
fn intervals_come_with_their_level() {
    let gain = Gain { gain: -4.02, low: -4.91, high: -3.25, confidence: 0.995 };
    let row = CrossCheck {
        workload: "autonuma".into(),
        metric: "Elapsed-NUMA01".into(),
        variant: "6.12".into(),
        blocks: 4,
        gain: Some(gain),
        instructions: None,
        unseen: None,
        conclusion: Conclusion::Undecided,
    };
    let (mail, _) = two(Mode::Measured, 1.0).mail(|it| it.cross_checks = vec![row]);
    for said in [
        "in time with their 99.5 % intervals (4 blocks of boots)",
        "Elapsed-NUMA01 -4.02% -4.91 to -3.25 ? -? - undecided",
    ] {
        assert!(common::words(&mail).contains(said), "{said}: {mail}");
    }
}

#[test]
fn exact_mode() {
    let mut case = two(Mode::Exact, 1.2);
    case.experiment.guest_digest = "99c4".repeat(16);
    case.experiment.userspace_digest = "51ab".repeat(16);
    case.experiment.workloads[0].manifest.packages = vec!["xfsprogs".into(), "fio".into()];
    for boot in case.boots.iter_mut().flatten() {
        boot.facts.provenance.execution = Some(Execution::Tcg);
    }
    let (mail, comparison) = case.mail(|_| {});
    assert_readable(&mail, &comparison);
    insta::assert_snapshot!(mail.split("\nWhat was compared:").next().unwrap());
    for said in [
        "\n  User space in the guest (fio, xfsprogs):\n    sha256 51ab51ab",
        "\n  not modelled  caches, TLBs",
    ] {
        assert!(mail.contains(said), "{mail}");
    }
}

#[test]
fn patches_of_a_series_have_a_line_each() {
    let [old, new] = [boots(1.0), boots(1.3)];
    let all = [("", old.clone()), ("", old), ("", new)];
    for mode in [Mode::Measured, Mode::Exact] {
        let (variants, reading) = series(&["mm: a patch with a subject of some length", "mm: two"]);
        let case = Case { variants, reading, ..Case::new(mode, &all) };
        insta::assert_snapshot!(by_patch(&case.mail(|_| ()).0));
    }
}

#[test]
fn variants_of_one_kernel_share_its_command() {
    let mut case = two(Mode::Measured, 1.2);
    for boot in case.boots.iter_mut().flatten() {
        boot.facts.kernel_origin = "Debian 6.12.1-1, linux-image-6.12.1".into();
    }
    // The second one is a series of Debian's packages, so it has the name of the version.
    let [first, second] = ["6.1", "6.12.1"];
    let (mail, _) = case.mail(|_| {});
    assert!(mail.contains(&format!("add debian:6.12.1-1  # {first}, {second}\n")), "{mail}");
    case.boots[1].iter_mut().for_each(|boot| boot.facts.kernel_digest = "ab".repeat(32));
    let (mail, _) = case.mail(|_| {});
    for name in [first, second] {
        assert!(mail.contains(&format!("add debian:6.12.1-1  # {name}\n")), "{mail}");
    }
}

#[test]
fn commands_fit_and_take_any_name() {
    let mut case = two(Mode::Measured, 1.2);
    case.experiment.name = "-x y".into();
    case.files[0].0 = "-x-y.toml".into();
    for (variant, name) in
        case.variants.iter_mut().zip(["with a name of some length", "and another one"])
    {
        variant.name = name.into();
    }
    let (mail, _) = case.mail(|_| {});
    assert!(mail.contains("\n  faultline run -- '-x-y.toml'\n"), "{mail}");
    assert!(mail.contains("\n  faultline compare --full -- '-x y'\n"), "{mail}");
    let said = "\n  # with a name of some length, and another one\n  faultline kernel add";
    assert!(mail.contains(said), "{mail}");
}

#[test]
fn there_is_no_gain_over_what_is_printed_as_0() {
    let spread = |by| vec![measured(&[("Elapsed", "NUMA01", &[5.0 - by, 5.0, 5.0 + by])])];
    let case = Case::new(Mode::Measured, &[("old", spread(1e-5)), ("new", spread(1.4e-3))]);
    let text = report::text(&case.mail(|_| {}).1);
    let line = text.lines().find(|line| line.starts_with("Stddev")).unwrap();
    let figures = line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
    assert_eq!(figures, "0.00 ( 0.00%) 0.00 ( -)");
}

#[test]
fn settings_are_printed_in_full() {
    let mut case = two(Mode::Measured, 1.0);
    let names: Vec<String> = (0..40).map(|number| format!("vm.knob_{number}")).collect();
    let setting = |name: &String| Setting::Sysctl { name: name.clone(), value: "1".into() };
    case.variants[1].settings = names.iter().map(setting).collect();
    let (mail, comparison) = case.mail(|_| {});
    let brief = report::brief(&comparison, "faultline compare 1 --full");
    let full = report::text(&comparison);
    for set in names.iter().map(|name| format!("{name}=1")) {
        assert!(mail.contains(&set) && full.contains(&set), "{set}");
    }
    assert!(!brief.contains("vm.knob_39") && brief.contains("..."), "{brief}");
}

#[test]
fn times_under_emulation_are_no_regression() {
    let mut case = two(Mode::Measured, 1.5);
    for boot in case.boots.iter_mut().flatten() {
        boot.facts.provenance.execution = Some(Execution::Tcg);
    }
    let (mail, comparison) = case.mail(|_| {});
    assert_readable(&mail, &comparison);
    assert!(mail.starts_with(
        "Subject: autonuma: 6.12 vs Debian 6.1.174: emulated, no verdict on times\n\n"
    ));
    assert!(mail.contains("What this does not show:\n  emulation  QEMU translated"), "{mail}");
    let subject = case.subject(|it| judge(it, Verdict::Regression, EVIDENCE));
    assert!(subject.starts_with("[EMULATED] "), "{subject}");
}

#[test]
fn wide_tables_are_split_by_variants() {
    let variants = [
        ("4.16.0-rc4-schedtip-20180309", boots(1.0)),
        ("4.16.0-rc4-nodirty-v1", boots(0.8)),
        ("4.16.0-rc4-nodirty-v1r47", boots(1.3)),
        ("3.19", boots(0.7)),
        ("x", boots(0.9)),
    ];
    let (mail, comparison) = Case::new(Mode::Measured, &variants).mail(|_| {});
    assert_readable(&mail, &comparison);
    let baseline = mail.lines().filter(|line| line.trim_start().starts_with("4.16.0-rc4 "));
    assert_eq!(baseline.count(), 4, "{mail}");
}

#[test]
fn names_that_do_not_fit_are_listed_in_full() {
    let label = "threadlocal".repeat(9);
    let long = "a".repeat(70);
    let boots = |value| vec![measured(&[("Elapsed", &label, &[value])])];
    let case = Case::new(Mode::Measured, &[("old", boots(123.0)), (&long, boots(0.04))]);
    let (mail, _) = case.mail(|_| {});
    let [table] = read(mail.as_bytes()).tables.try_into().unwrap();
    assert_eq!(table.columns, ["old", &format!("{}~1", "a".repeat(18))]);
    let statistics: Vec<_> = table.rows.iter().map(|row| &*row.statistic).collect();
    assert_eq!(statistics, ["Amean"]);
    let unfolded = mail.replace("\n    ", "");
    assert!(unfolded.contains(&format!("\n~1: \"{long}\"\n")), "{mail}");
    assert!(unfolded.contains(&format!("\n~2: \"Elapsed-{label}\"\n")), "{mail}");
}

#[test]
fn a_mail_says_what_ran() {
    let mut case = two(Mode::Measured, 1.0);
    let manifest = &mut case.experiment.workloads[0].manifest;
    manifest.description = "Threads zero memory".into();
    manifest.parameters = [("scale".to_owned(), "2".into())].into();
    let said = |case: &Case| case.mail(|_| ()).0.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said(&case).contains("workload autonuma (scale 2): Threads zero memory"));
    let manifest = &mut case.experiment.workloads[0].manifest;
    manifest.plain = true;
    manifest.command = ["./my test", "{argument-1}", "200"].map(str::to_owned).into();
    manifest.parameters = [("argument-1".to_owned(), "{x}".into())].into();
    let said = said(&case);
    assert!(said.contains("workload the program `'./my test' '{x}' 200`"), "{said}");
}

#[test]
fn imported_results_have_no_recipe() {
    let mut case = two(Mode::Measured, 1.1);
    let imported = Imported {
        tool: "mmtests".into(),
        directory: "/home/mel/logs".into(),
        digest: String::new(),
    };
    case.experiment.imported = Some(imported);
    let (mail, _) = case.mail(|_| {});
    assert!(mail.ends_with("\nImported from what mmtests left behind.\n"), "{mail}");
    assert!(!mail.contains("Boots:"), "{mail}");
}

#[test]
fn little_makes_a_mail_too() {
    let one = Case::new(Mode::Measured, &[("6.1", boots(1.0))]);
    assert_eq!(one.subject(|_| {}), "autonuma: Debian 6.1.174: figures");
    let (mail, comparison) = one.mail(|_| {});
    assert_readable(&mail, &comparison);
    let many: Vec<String> = (0..90).map(|row| format!("row{row}")).collect();
    let rows: Vec<_> = many.iter().map(|row| ("Elapsed", &**row, &[1.0][..])).collect();
    let (mail, _) = Case::new(Mode::Measured, &[("6.1", vec![measured(&rows)])]).mail(|_| {});
    let shown = mail.lines().filter(|line| line.starts_with("Amean Elapsed-row")).count();
    assert!(shown > 10 && mail.contains(&format!("\n{} more rows.\n", 90 - shown)), "{mail}");
    let failed = Case::new(Mode::Measured, &[("6.1", vec![]), ("6.12", vec![])]);
    assert_eq!(failed.subject(|_| {}), "nothing: 6.12 vs 6.1: no verdict");
}

proptest! {
    /// A mail with any names can be sent. With values of any size, each printed percentage follows from the
    /// values.
    #[test]
    fn any_name_can_be_sent(
        name in "From [a-z ]{0,40}|\\PC{1,200}|=\\?utf-8\\?q\\?evil\\?=|>{1,3} .{0,9}|.{1,90}",
        text in ".{0,200}|From .{0,80}|[\\r\\n]{1,3}Bcc: a@b",
        exact in any::<bool>(),
    ) {
        let mode = if exact { Mode::Exact } else { Mode::Measured };
        let mut case = two(mode, 1.1);
        case.experiment.name = text.clone();
        case.variants[1].name = name.clone();
        case.variants[1].kernel = text.clone().into();
        case.experiment.workloads[0].manifest.name = name.clone();
        for boot in case.boots.iter_mut().flatten() {
            boot.facts.kernel_origin = text.clone();
            boot.facts.release = text.clone();
            boot.facts.cmdline = format!("a {text}");
            measure(boot, "System", &name, &[1.0]);
            boot.samples.iter_mut().for_each(|it| it.workload = name.clone());
            boot.usage.iter_mut().for_each(|it| it.workload = name.clone());
            boot.chunks.iter_mut().for_each(|it| it.workload = name.clone());
        }
        case.mail(|it| judge(it, Verdict::Regression, EVIDENCE));
    }

    #[test]
    fn values_of_any_size_can_be_read_again(
        times in prop::collection::vec(prop_oneof![1 => Just(0.0), 9 => size()], 4),
        rates in [size(), size(), size(), size()],
    ) {
        let boots = |at: std::ops::Range<usize>| {
            vec![measured(&[("Elapsed", "NUMA01", &times[at.clone()]), ("Rate", "", &rates[at])])]
        };
        let (old, new) = (boots(0..2), boots(2..4));
        let case = Case::new(Mode::Measured, &[("old", old), ("new", new)]);
        let (mail, comparison) = case.mail(|_| {});
        assert_readable(&mail, &comparison);
    }
}

fn size() -> impl Strategy<Value = f64> {
    prop_oneof![1e-9..1e-3, 1e-3..1e3, 1e3..1e12]
}
