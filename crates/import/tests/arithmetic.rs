//! Compares directions, checks and new baselines with what mails printed.

use import::{Baseline, Clue, NoBaseline, Table};
use model::Better;

/// Arithmetic means of "mm: numa: Slow PTE scan rate if migration failures occur" (Mel Gorman, 7
/// March 2015), in which 3.19 is the last column.
const MARCH_7: &str = "
                                    4.0.0-rc1             4.0.0-rc1                3.19.0
                                      vanilla           slowscan-v2               vanilla
Amean    real-fsmark        1166.63 (  0.00%)     1155.97 (  0.91%)     1166.28 (  0.03%)
Amean    syst-fsmark        4020.94 (  0.00%)     4004.19 (  0.42%)     4025.87 ( -0.12%)
Amean    real-xfsrepair      507.85 (  0.00%)      459.58 (  9.50%)      447.66 ( 11.85%)
Amean    syst-xfsrepair      519.88 (  0.00%)      281.63 ( 45.83%)      202.93 ( 60.97%)
";

#[test]
fn a_header_that_lost_its_indent_is_read() {
    assert_eq!(table(MARCH_7.trim_start()).columns, table(MARCH_7).columns);
}

/// The gains of 4.0-rc1 over 3.19 from the same runs, as the same author printed them on 12 March
/// with 3.19 in the first column.
const MARCH_12: [&str; 4] = ["-0.03", "0.12", "-13.45", "-156.19"];

fn table(text: &str) -> Table {
    let mut document = import::read(text.as_bytes());
    assert_eq!((document.tables.len(), document.unread.len()), (1, 0), "{text}");
    document.tables.remove(0)
}

fn percents(table: &Table, column: usize) -> Vec<&str> {
    let percent = |row: &'_ import::Row| row.cells[column].percent.is_some();
    let rows = table.rows.iter().filter(|row| percent(row));
    rows.filter_map(|row| Some(row.cells[column].percent.as_ref()?.text.as_str())).collect()
}

#[test]
fn a_new_baseline_gives_what_the_author_printed_for_it() {
    let rebased = import::rebase(&table(MARCH_7), "3.19.0-vanilla", None).unwrap();
    assert_eq!(rebased.columns, ["3.19.0-vanilla", "4.0.0-rc1-vanilla", "4.0.0-rc1-slowscan-v2"]);
    assert_eq!(rebased.baseline, Some(Baseline::Column(0)));
    assert_eq!(percents(&rebased, 0), ["0.00"; 4]);
    assert_eq!(percents(&rebased, 1), MARCH_12);
}

#[test]
fn a_part_of_a_name_or_a_number_names_a_column() {
    let table = table(MARCH_7);
    let columns = |name| import::rebase(&table, name, None).map(|table| table.columns[0].clone());
    assert_eq!(columns("3.19"), Ok("3.19.0-vanilla".into()));
    assert_eq!(columns("#2"), Ok("4.0.0-rc1-slowscan-v2".into()));
    assert_eq!(columns("vanilla"), Err(NoBaseline::Ambiguous));
    assert_eq!(columns("3.20"), Err(NoBaseline::Unknown));
    assert_eq!(columns("#0"), Err(NoBaseline::Unknown));
    assert_eq!(columns("#4"), Err(NoBaseline::Unknown));
    assert_eq!(columns(""), Err(NoBaseline::Unknown));
}

#[test]
fn percentages_that_were_changed_are_found() {
    for (from, to, clue) in [
        ("9.50", "9.52", None),
        ("45.83", "54.83", None),
        ("( 11.85%)", "(-11.85%)", Some(Clue::OtherDirection)),
        ("(  0.91%)", "( -0.91%)", Some(Clue::OtherDirection)),
        ("1155.97", "1255.97", None),
    ] {
        let table = table(&MARCH_7.replace(from, to));
        let check = import::check(&table);
        assert_eq!((check.printed, check.derived, check.findings.len()), (12, 11, 1), "{to}");
        let line = 1 + MARCH_7.lines().position(|line| line.contains(from)).unwrap();
        assert_eq!(check.findings[0].line, line);
        assert_eq!(check.findings[0].clue, clue, "{to}");
    }
}

#[test]
fn rounded_values_allow_an_interval() {
    let read = |percent: &str| {
        let row = format!("Stddev ep.D 0.07 (0.00%) 0.05 ({percent}%)\n");
        import::check(&table(&row)).derived
    };
    // From 0.065 to 0.075 against 0.045 to 0.055 is 15.38 to 40 % lower.
    assert_eq!(["15.37", "15.38", "24.41", "40.00", "40.02"].map(read), [1, 2, 2, 2, 1]);
}

#[test]
fn percentages_of_a_baseline_rounded_to_0_cannot_be_checked() {
    let check = import::check(&table("Amean x 0.00 (0.00%) 0.01 (-99.00%) 0.00 (0.00%)\n"));
    assert_eq!((check.printed, check.derived, check.untold), (3, 2, 1));
}

/// From 0.001 to 0.004 is 300 % more, although both print as 0.00. If less is better, a value that rounds to nothing
/// cannot be more than 100 % better.
#[test]
fn digits_that_are_not_printed_explain_nearly_any_percentage() {
    let read = |row: &str| {
        let check = import::check(&table(row));
        (
            check.derived,
            check.untold,
            check.findings.iter().map(|it| it.follows).collect::<Vec<_>>(),
        )
    };
    let spreads = |percent: &str| {
        read(&format!(
            "CoeffVar ep.D 0.00 (0.00%) 0.00 ({percent}%)\nStddev ep.D 0.25 (0.00%) 0.20 (20.00%)\n"
        ))
    };
    for percent in ["-867.00", "10.06", "100.00"] {
        assert_eq!(spreads(percent), (3, 1, vec![]), "{percent}");
    }
    assert_eq!(spreads("0.00"), (4, 0, vec![]));
    assert_eq!(spreads("101.00"), (3, 0, vec![(f64::NEG_INFINITY, 100.0)]));
    // The nothing may be 0.004, but it is less than 5.
    let more = "Stddev a 0.00 (0.00%) 5.00 (12.00%)\nStddev b 2.00 (0.00%) 1.00 (50.00%)\n";
    assert_eq!(read(more), (3, 0, vec![(f64::NEG_INFINITY, 0.0)]));
}

#[test]
fn percentages_say_which_direction_is_good_before_names_do() {
    let directions = |text: &str| -> Vec<Option<Better>> {
        table(text).rows.iter().map(|row| row.better).collect()
    };
    let (lower, higher) = (Some(Better::Lower), Some(Better::Higher));
    let read =
        "Min SeqRead-1 82.68 (0.00%) 83.13 (0.54%)\nMin SeqRead-2 1.02 (0.00%) 1.02 (0.00%)\n";
    assert_eq!(directions(read), [higher, higher]);
    let rates = "Hmean send 10.00 (0.00%) 10.00 (0.00%)\nStddev send 1.00 (0.00%) 1.00 (0.00%)\n\
                 Min send 9.00 (0.00%) 9.00 (0.00%)\n";
    assert_eq!(directions(rates), [higher, lower, higher]);
    let times = "Amean x 10.00 (0.00%) 10.00 (0.00%)\nMax x 9.00 (0.00%) 9.00 (0.00%)\n";
    assert_eq!(directions(times), [lower, lower]);
    let mixed = "runtime 10.00 (0.00%) 9.00 (10.00%)\nstalls 100 (0.00%) 50 (50.00%)\n\
                 faults 10 (0.00%) 5 (50.00%)\nthroughput 10.00 (0.00%) 11.00 (10.00%)\n";
    assert_eq!(directions(mixed), [lower, lower, lower, higher]);
    let counters = "NUMA alloc hit 100 200\nNUMA pages migrated 5 6\n";
    assert_eq!(directions(counters), [None, None]);
    assert_eq!(directions("User 10.00 9.00\nElapsed 5.00 4.00\n"), [lower, lower]);
}

#[test]
fn rows_without_percentages_between_others_have_no_direction() {
    let text = "Amean x 10.00 (0.00%) 8.00 (20.00%)\nAmean CPU 50.00 60.00\nMax x 11.00 (0.00%) 9.00 (18.18%)\n";
    let table = table(text);
    let better: Vec<Option<Better>> = table.rows.iter().map(|row| row.better).collect();
    assert_eq!(better, [Some(Better::Lower), None, Some(Better::Lower)]);
}

#[test]
fn written_out_signs_may_mean_more_and_not_better() {
    let table = table(
        "Alloc Time stddev 1000.00 ( +0.00%) 900.00 ( -10.00%)\n\
         THP fault alloc 30585.14 ( +0.00%) 40853.62 ( +33.57%)\n",
    );
    assert_eq!(table.signs, Some(import::Signs::Change));
    let rebased = import::rebase(&table, "#1", None).unwrap();
    assert_eq!(percents(&rebased, 1), ["10.00"]);
}

#[test]
fn columns_of_differences_say_what_their_sign_means() {
    let rows =
        "latency us     100.0     90.0     -10.0%\nstalls         200.0    150.0     -25.0%\n";
    let change = table(&format!("            before    after     change\n{rows}"));
    assert_eq!(
        (&*change.columns, change.signs),
        (&["before".into(), "after".into()][..], Some(import::Signs::Change))
    );
    let better: Vec<Option<Better>> = change.rows.iter().map(|row| row.better).collect();
    assert_eq!(better, [Some(Better::Lower), None]);
    let gain = table(&format!("            before    after      %gain\n{rows}"));
    assert_eq!(gain.signs, Some(import::Signs::Gain));
    assert_eq!(gain.rows[1].better, Some(Better::Higher));
}

#[test]
fn the_direction_of_nothing_is_made_up() {
    let counters = table("NUMA alloc hit 100 200\nNUMA pages migrated 5 6\n");
    let rebased = import::rebase(&counters, "#2", None).unwrap();
    assert_eq!(percents(&rebased, 1), [""; 0]);
    let rebased = import::rebase(&counters, "#2", Some(Better::Lower)).unwrap();
    assert_eq!(percents(&rebased, 1), ["50.00", "16.67"]);
}

/// Truncate times of "Truncate regression due to commit 69b6c1319b6" (Jan Kara, 27 February 2019).
#[test]
fn commits_are_compared_by_row() {
    let commits = table(
        "COMMIT      AVG            STDDEV\n\
         a97e7904c0  1431256.500000 1489.361759\n\
         69b6c1319b  1566944.000000 2252.692877\n",
    );
    let rebased = import::rebase(&commits, "a97e", Some(Better::Lower)).unwrap();
    assert_eq!(rebased.baseline_name(), Some("a97e7904c0"));
    assert_eq!(percents(&rebased, 0), ["0.00", "-9.48"]);
    assert_eq!(percents(&rebased, 1), ["0.00", "-51.25"]);
    let unassumed = import::rebase(&commits, "a97e", None).unwrap();
    assert_eq!(percents(&unassumed, 0), [""; 0]);
}

#[test]
fn stars_are_not_passed_on() {
    let table = table("Amean x 10.00 (0.00%) 8.00 *20.00%*\n");
    assert!(table.rows[0].cells[1].marked);
    assert!(!import::rebase(&table, "#1", None).unwrap().rows[0].cells[1].marked);
}

/// From "mm: page_alloc: defrag_mode" style tables, whose script divides by the baseline plus one.
#[test]
fn a_baseline_plus_one_is_recognised() {
    let table = table(
        "Pagealloc fallback 1328.00 ( +0.00%) 1.00 ( -99.85%)\nx 10.00 (+0.00%) 10.00 (+0.00%)\n",
    );
    let check = import::check(&table);
    assert_eq!(check.findings.len(), 1);
    assert_eq!(check.findings[0].clue, Some(Clue::BaselinePlusOne));
}

/// Lines of tbench from a mail on "sched/fair: SIS_NODE" whose author
/// (K Prateek Nayak, 2023) cuts percentages off.
const CUT: &str = "
Clients:      tip                     patched
    1    452.49 (0.00 pct)       457.94 (1.20 pct)
    2    862.44 (0.00 pct)       879.99 (2.03 pct)
    8   2966.77 (0.00 pct)      3040.90 (2.49 pct)
";

#[test]
fn percentages_follow_if_all_are_truncated() {
    let table = table(CUT);
    assert_eq!((table.heading.as_str(), table.columns.len()), ("Clients:", 2));
    assert_eq!(table.rows[2].label, "8");
    assert!(table.rows.iter().all(|row| row.better == Some(Better::Higher)));
    let check = import::check(&table);
    assert_eq!((check.printed, check.derived, check.cut), (6, 6, 1));
}

#[test]
fn one_truncated_percentage_among_rounded_ones_is_reported() {
    let rounded = CUT.replace("1.20", "1.25");
    let check = import::check(&table(&rounded));
    let clues: Vec<_> = check.findings.iter().map(|finding| finding.clue).collect();
    // 1.2044 fits neither rounding nor truncation.
    assert_eq!(clues, [None, Some(Clue::CutOff)]);
    assert_eq!((check.derived, check.cut), (4, 0));
}

/// From "cpufreq / sched: frequency invariance" (Giovanni Gherdovich, 2019): means, how much they
/// scatter, and gains; brackets without a figure stand beside the baseline.
const SPREAD: &str = "
                 5.2.0 vanilla (BASELINE)           5.2.0 intel_pstate/HWP
- - - - - - - -  - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
Amean   32        28.78  +- 0.72% (        )         26.61  +- 1.99% (   7.55%)
Amean   64        20.46  +- 1.85% (        )         19.76  +- 0.35% (   3.42%)
";

#[test]
fn the_spread_of_values_is_read_beside_them() {
    let table = table(SPREAD);
    assert_eq!(table.columns, ["5.2.0 vanilla (BASELINE)", "5.2.0 intel_pstate/HWP"]);
    assert_eq!(table.baseline, Some(Baseline::Column(0)));
    let spread = |row: usize, column: usize| {
        table.rows[row].cells[column].spread.as_ref().map(|it| it.text.as_str())
    };
    assert_eq!((spread(0, 0), spread(1, 1)), (Some("0.72%"), Some("0.35%")));
    let check = import::check(&table);
    assert_eq!((check.printed, check.derived), (2, 2));
}

/// From "EEVDF and latency-nice" (K Prateek Nayak, 2023): normalized means, gains, coefficients of
/// variation, marks at the ends of lines.
const NORMALIZED: &str = "
#workers: base[pct imp](CV)       eevdf[pct imp](CV)     eevdf-curb[pct imp](CV)
  2     1.00 [ -0.00](11.27)     1.27 [-27.27]( 6.42)     1.14 [-13.64](11.02)  *
  4     1.00 [ -0.00]( 1.95)     1.00 [ -0.00]( 3.77)     0.93 [  6.67]( 4.22)
";

#[test]
fn gains_and_variation_stand_beside_normalized_values() {
    let table = table(NORMALIZED);
    assert_eq!(table.columns, ["base", "eevdf", "eevdf-curb"]);
    assert_eq!(table.rows[1].label, "4");
    assert_eq!(table.rows[1].better, Some(Better::Lower));
    assert_eq!(table.rows[1].cells[2].spread.as_ref().unwrap().value, 4.22);
    let check = import::check(&table);
    assert_eq!((check.printed, check.derived), (6, 6));
}

#[test]
fn percentages_of_something_else_are_not_held_against_a_column() {
    let shares = "
                   count      time
read                 120        35 (58.33%)
write                 80        20 (33.33%)
sync                  12         5 (8.33%)
";
    let check = import::check(&table(shares));
    assert_eq!((check.printed, check.derived, check.untold), (3, 0, 3));
}

/// From "ext4: remove unnecessary s_md_lock on update s_mb_last_group" (Baokun Li, 2025): pairs of
/// columns, of two machines.
const PAIRS: &str = "
                     base    patched         base    patched
mb_optimize_scan=0   4821    7612  (+57.8%)  15371   21647 (+40.8%)
mb_optimize_scan=1   4784    7568  (+58.1%)   6101    9117 (+49.4%)
";

#[test]
fn pairs_of_columns_are_compared_by_pair() {
    let check = import::check(&table(PAIRS));
    assert_eq!((check.printed, check.derived), (4, 4));
    let check = import::check(&table(&PAIRS.replace("+40.8", "+41.8")));
    assert!(check.findings.iter().any(|finding| (finding.line, finding.column) == (3, 3)));
}
