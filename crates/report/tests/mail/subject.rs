//! Subjects of mails.

use super::*;

#[test]
fn names_that_move_are_those_of_the_versions_that_booted() {
    let subject = |name: &str, release: &str, origin: &str| {
        let mut case = two(Mode::Measured, 1.0);
        case.variants[0].name = "base".into();
        case.variants[1].name = name.into();
        for boot in &mut case.boots[1] {
            boot.facts.release = release.into();
            boot.facts.kernel_origin = origin.into();
        }
        case.subject(|comparison| judge(comparison, Verdict::Regression, EVIDENCE))
    };
    let package = "Debian 6.1.192-2~deb12u1, linux-image-6.1.0-56-cloud-amd64";
    for (name, release, origin, expected) in [
        ("newest", "7.3.4+deb13-cloud-amd64", "", "autonuma: 7.3.4 vs base"),
        ("newest+waste", "7.3.0-rc1+", "", "autonuma: 7.3.0-rc1+waste vs"),
        ("newest", "", "", "autonuma: newest vs"),
        ("newest2", "7.3.4", "", "autonuma: newest2 vs"),
        ("newest", "6.1.0-56-cloud-amd64", package, "autonuma: Debian 6.1.192 vs"),
        ("6.1", "6.1.0-56-cloud-amd64", package, "autonuma: Debian 6.1.192 vs"),
        ("6.1 thp", "6.1.0-56-cloud-amd64", package, "autonuma: Debian 6.1.192 thp vs"),
        ("thp", "6.1.0-56-cloud-amd64", package, "autonuma: thp vs"),
        ("6 nodes", "6.1.0-56-cloud-amd64", package, "autonuma: 6 nodes vs"),
        (
            "newest",
            "6.13-cloud",
            "Debian 6.13~rc7-1~exp1, linux-image",
            "autonuma: Debian 6.13-rc7 vs",
        ),
        ("6.1", "6.1.192", "git v6.1.192, 0123abc (\"x\"); debian:6.1", "autonuma: 6.1 vs"),
    ] {
        let said = subject(name, release, origin);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn subjects_say_what_was_found() {
    let case = two(Mode::Measured, 1.052);
    let subject = |verdict, evidence: Evidence| case.subject(|it| judge(it, verdict, evidence));
    assert_eq!(
        subject(Verdict::Regression, EVIDENCE),
        "[REGRESSION] autonuma: 6.12 vs Debian 6.1.174: System-NUMA01 5.2 % worse [4.3, 6.1], 1 other worse"
    );
    let better = Evidence { ratio: 0.95, low: 0.94, high: 0.96, ..EVIDENCE };
    assert!(subject(Verdict::Improvement, better).starts_with("[IMPROVEMENT] autonuma: 6.12 vs"));
    let same = Evidence { ratio: 1.001, low: 0.9967, high: 1.0042, ..EVIDENCE };
    assert_eq!(
        subject(Verdict::Same, same),
        "autonuma: 6.12 vs Debian 6.1.174: no change seen beyond 1 %"
    );
    assert_eq!(
        subject(Verdict::Undecided, same),
        "autonuma: 6.12 vs Debian 6.1.174: undecided in 2 of 2"
    );
    let unjudged = case.subject(|it| {
        for row in it.tables.iter_mut().flat_map(|table| &mut table.rows) {
            row.cells[1].verdict = None;
        }
    });
    assert_eq!(unjudged, "autonuma: 6.12 vs Debian 6.1.174: no verdict");
    let mixed = case.subject(|it| {
        judge(it, Verdict::Improvement, better);
        let rows = &mut it.tables[0].rows;
        let elapsed = rows.iter_mut().filter(|row| row.metric.starts_with("Elapsed"));
        let means = elapsed.filter(|row| row.statistic.is_mean());
        means.for_each(|row| row.cells[1].verdict = Some(Verdict::Regression));
    });
    assert!(
        mixed.starts_with("[REGRESSION] autonuma: 6.12 vs Debian 6.1.174: Elapsed-"),
        "{mixed}"
    );
    assert!(mixed.ends_with(", 1 other worse, 2 better"), "{mixed}");
}

#[test]
fn subjects_name_workloads_the_one_with_the_finding_first() {
    let case = two(Mode::Measured, 1.052);
    let subject = |others: &[&str], verdict| {
        case.subject(|it| {
            judge(it, verdict, EVIDENCE);
            let own = it.tables[0].clone();
            let mut tables: Vec<_> = others.iter().map(|_| own.clone()).collect();
            for (table, name) in tables.iter_mut().zip(others) {
                table.workload = (*name).to_owned();
                table.rows.iter_mut().for_each(|row| row.cells[1].verdict = None);
            }
            it.tables.splice(..0, tables);
        })
    };
    let found = subject(&["truncate"], Verdict::Regression);
    assert_eq!(
        found,
        "[REGRESSION] autonuma and truncate: 6.12 vs Debian 6.1.174: autonuma System-NUMA01 5.2 % worse [4.3, 6.1], \
         1 other worse"
    );
    let found = subject(&["truncate", "nas", "stutter"], Verdict::Improvement);
    assert!(found.starts_with("[IMPROVEMENT] autonuma, truncate and 2 more: 6.12"), "{found}");
    let open = subject(&["truncate", "nas"], Verdict::Undecided);
    assert_eq!(open, "truncate, nas and 1 more: 6.12 vs Debian 6.1.174: undecided in 2 of 2");
}

#[test]
fn the_subject_has_a_large_change_as_a_factor() {
    let sides = [("6.1", blocks(5, 1.0, 1)), ("6.12", blocks(5, 20.0, 1))];
    let subject = Case::new(Mode::Measured, &sides).subject(|_| ());
    assert!(subject.contains("20.0 times as long ("), "{subject}");
}

/// Two kernels with one setting come before a change of the setting, however large that is. Where they do not differ, a
/// change of the setting on one kernel comes before one on two.
#[test]
fn the_subject_of_a_matrix_compares_kernels() {
    let first = |subject: String, variant: &str| {
        assert!(subject.contains(&format!("autonuma: {variant} vs ")), "{subject}");
    };
    first(of_matrix(1.2), "6.12 thp=always");
    first(of_matrix(1.0), "Debian 6.1.174 thp=never");
}

/// The subject of a matrix of two kernels and two settings, whose second kernel takes this multiple of the time.
fn of_matrix(slower: f64) -> String {
    let cells = [
        ("6.1", "always", 1.0),
        ("6.1", "never", 2.0),
        ("6.12", "always", slower),
        ("6.12", "never", 2.4),
    ];
    let names = cells.map(|(kernel, thp, _)| format!("{kernel} thp={thp}"));
    let boots = cells.map(|(.., scale)| blocks(5, scale, 1));
    let sides: Vec<(&str, Vec<Boot>)> = names.iter().map(|it| &**it).zip(boots).collect();
    let mut case = Case::new(Mode::Measured, &sides);
    let values = cells.map(|(kernel, thp, _)| vec![kernel.to_owned(), thp.to_owned()]);
    case.reading = Reading {
        workloads: common::on_rows(&["Elapsed-NUMA01"]).workloads,
        ..common::crossed(&["kernel", "thp"], case.variants.iter().zip(values))
    };
    case.subject(|_| ())
}

#[test]
fn a_kernel_on_which_all_boots_failed_is_the_finding() {
    let mut case = two(Mode::Exact, 1.2);
    let fail = |boots: &mut Vec<Boot>| {
        boots.iter_mut().for_each(|it| it.outcome = Outcome::Failed("exited with status 3".into()));
    };
    fail(&mut case.boots[0]);
    let (mail, comparison) = case.mail(|_| {});
    assert!(
        mail.starts_with("Subject: mm: autonuma fails with Debian 6.1.174, not with 6.12\n"),
        "{mail}"
    );
    let said = "\n\nNo boot of 6.1.174 is complete. b1: failed: exited with status 3.\n\
                There is nothing to compare.\n\nWhat was compared:\n";
    assert!(mail.contains(said) && !mail.contains("undecided"), "{mail}");
    let sentences = report::failing(&comparison);
    assert_eq!(sentences.last().map(|it| &**it), Some("There is nothing to compare."));
    assert!(report::brief(&comparison, "").contains(&sentences[0]));
    fail(&mut case.boots[1]);
    assert_eq!(case.subject(|_| {}), "mm: autonuma fails with Debian 6.1.174, 6.12");
    // A third kernel can still be compared with the baseline.
    let [old, new] = [boots(1.0), boots(1.2)];
    let mut case = Case::new(Mode::Exact, &[("6.1", old), ("6.6", new.clone()), ("6.12", new)]);
    fail(&mut case.boots[1]);
    assert!(!case.subject(|_| {}).contains("fails"));
}

/// A table with more rows than a mail has room for keeps the row of the subject, wherever it is.
#[test]
fn the_row_of_the_subject_is_in_the_table() {
    let case = two(Mode::Exact, 1.2);
    let phases = |it: &mut Comparison| {
        let table = it.tables.iter_mut().find(|it| it.kind == Kind::Metrics).unwrap();
        let mean = table.rows.iter().find(|row| row.statistic.is_mean()).unwrap().clone();
        table.rows = (0..60)
            .map(|number| {
                let mut row =
                    Row { metric: format!("instructions-kernel-p{number}"), ..mean.clone() };
                let more = if number == 50 { 0.5 } else { 0.1 };
                row.cells[0].value = Some(1000.0);
                row.cells[1].value = Some(1000.0 * (1.0 + more));
                row.cells[1].gain = Some(-100.0 * more);
                row.cells[1].verdict = Some(Verdict::Regression);
                row
            })
            .collect();
    };
    let (mail, _) = case.mail(phases);
    assert!(mail.starts_with("Subject: mm: autonuma p50 50.0 % more kernel"), "{mail}");
    assert!(mail.contains("\np50  ") && !mail.contains("\np40  "), "{mail}");
}
