//! Checking, directions and new baselines, against what mails printed.

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

#[test]
fn a_line_of_versions_over_names_is_no_row() {
    let text = "
                                  4.0.0-rc1                  3.19
                                slowscan-v2
Amean    real-fsmark    1155.97 (   0.00%)    1166.28 (  -0.89%)
";
    assert_eq!(table(text).columns, ["4.0.0-rc1-slowscan-v2", "3.19"]);
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
    // 0.065 to 0.075 and 0.045 to 0.055: 15.38 to 40 % lower.
    assert_eq!(["15.37", "15.38", "24.41", "40.00", "40.02"].map(read), [1, 2, 2, 2, 1]);
}

#[test]
fn what_rounding_leaves_nothing_of_is_not_told() {
    let check = import::check(&table("Amean x 0.00 (0.00%) 0.01 (-99.00%) 0.00 (0.00%)\n"));
    assert_eq!((check.printed, check.derived, check.untold), (3, 2, 1));
}

/// From 0.001 to 0.004 is 300 % more, and all of it is lost in two decimals. What is not more than
/// nothing can't be more than 100 % better where less is better.
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
    // Nothing may be 0.004, but it is less than 5.
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
fn columns_of_differences_say_what_their_sign_says() {
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
fn frames_are_taken_off() {
    let framed = "\
        | Benchmark   | base 6.9 | patched |\n\
        |-------------|----------|---------|\n\
        | kernel real |   225.21 |  224.85 |\n\
        | kernel user |    10.00 |    9.00 |\n";
    let table = table(framed);
    assert_eq!(
        (table.heading.as_str(), &*table.columns),
        ("Benchmark", &["base 6.9".into(), "patched".into()][..])
    );
    assert_eq!(table.rows[1].label, "kernel user");
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
fn percentages_that_are_cut_off_follow_where_all_are() {
    let table = table(CUT);
    assert_eq!((table.heading.as_str(), table.columns.len()), ("Clients:", 2));
    assert_eq!(table.rows[2].label, "8");
    assert!(table.rows.iter().all(|row| row.better == Some(Better::Higher)));
    let check = import::check(&table);
    assert_eq!((check.printed, check.derived, check.cut), (6, 6, 1));
}

#[test]
fn one_percentage_that_is_cut_off_among_rounded_ones_is_told() {
    let rounded = CUT.replace("1.20", "1.25");
    let check = import::check(&table(&rounded));
    let clues: Vec<_> = check.findings.iter().map(|finding| finding.clue).collect();
    // 1.2044 is neither, whether rounded or cut off.
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
fn what_values_scatter_by_stands_beside_them() {
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

/// From "x86, sched: Add support for frequency invariance" (Giovanni Gherdovich, 2019): ratios, with
/// a box about the column that was chosen.
const BOXED: &str = "
                                         +------+
                 I_PSTATE   1C     3C    | 4C   |  8C
pgbench-ro           1.14   ~      ~     | 1.11 |  1.14
pgbench-rw           ~      ~      ~     | ~    |  ~
netperf-udp          1.06   ~      1.06  | 1.05 |  1.07
                                         +------+
";

#[test]
fn bars_set_columns_off_and_tildes_stand_for_what_is_not_told() {
    let table = table(BOXED);
    assert_eq!(table.columns, ["I_PSTATE", "1C", "3C", "4C", "8C"]);
    assert_eq!(table.rows.len(), 3);
    assert!(table.rows[1].cells.iter().all(|cell| cell.value.is_none()));
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

/// From "[ext4] 4e8fc10115: fio.write_iops 330.6% improvement" (kernel test robot); the last row is from
/// further down.
const ROBOT: &str = "
commit:
  27bc446e2d (\"ext4: limit the length of per-inode prealloc list\")
  4e8fc10115 (\"ext4: Optimize file overwrites\")

27bc446e2def38db 4e8fc10115a6978060fe8a90f6a
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
      0.12 \u{b1}106%      -0.1        0.01        fio.latency_100us%
     14780 \u{b1}  3%      -9.4%      13390        fio.time.involuntary_context_switches
 5.426e+08 \u{b1}  5%    +330.6%  2.337e+09 \u{b1}  6%  fio.workload

    -47.00           -45.7%     -25.50        sched_debug.cpu.nr_uninterruptible.min
";

#[test]
fn tables_of_the_test_robot_have_their_labels_last() {
    let table = table(ROBOT);
    assert_eq!(table.columns, ["27bc446e2def38db", "4e8fc10115a6978060fe8a90f6a"]);
    assert_eq!((table.lines.first, table.lines.last), (6, 14));
    assert_eq!(table.signs, Some(import::Signs::Change));
    let row = |place: usize| {
        let text =
            |it: &Option<import::Figure>| it.as_ref().map_or("-".into(), |it| it.text.clone());
        let row = &table.rows[place];
        let cells = row.cells.iter().flat_map(|cell| [&cell.value, &cell.spread, &cell.percent]);
        format!("{}: {}", row.label, cells.map(text).collect::<Vec<String>>().join(" "))
    };
    // A difference of percents is no percentage of the other.
    assert_eq!(row(0), "fio.latency_100us%: 0.12 106% - 0.01 - -");
    assert_eq!(row(2), "fio.workload: 5.426e+08 5% - 2.337e+09 6% +330.6");
    let check = import::check(&table);
    assert_eq!((check.printed, check.derived, check.findings), (3, 2, vec![]));
    let check = import::check(&self::table(&ROBOT.replace("-9.4%", "-9.9%")));
    assert_eq!(check.findings.len(), 1);
}

/// From "mm: add new syscall pidfd_set_mempolicy()" (Zhongkun He, 2022), an attachment: names that
/// have run together so that nothing tells where the one ends.
const RUN_TOGETHER: &str = "
                baseline_statumpol_cout_proc_status_po
                baseline_statusmpol_cout_proc_status_pol
Duration User           0.10        0.12
Duration System         0.27        0.28
Duration Elapsed      723.94      726.94
";

#[test]
fn a_value_is_no_end_of_a_label_under_names_that_have_run_together() {
    let table = table(RUN_TOGETHER);
    assert_eq!(table.kind, import::Kind::Duration);
    assert_eq!(table.columns, ["", ""]);
    assert_eq!((table.rows[0].label.as_str(), table.rows[0].cells.len()), ("User", 2));
}

#[test]
fn a_stroke_after_names_is_none() {
    // From "sched/numa: Complete scanning of inactive VMAs when there is no alternative" (Mel Gorman, 2023).
    let text = "
                     6.6.0-rc2   6.6.0-rc2
                  sched-numabtrace-v1 sched-numabselective-v1 /
  Duration User       91201.80    63506.64
  Duration System      2015.53     1819.78
  Duration Elapsed     1234.77      868.37
";
    let names = ["6.6.0-rc2-sched-numabtrace-v1", "6.6.0-rc2-sched-numabselective-v1"];
    assert_eq!(table(text).columns, names);
}

#[test]
fn threads_may_be_a_row_or_head_the_labels() {
    let rows = "Threads       1200      1180\nProcesses      300       310\n";
    let named = table(&format!("           vanilla   patched\n{rows}"));
    assert_eq!(named.columns, ["vanilla", "patched"]);
    assert_eq!(named.rows[0].label, "Threads");
    let numbered = table("Threads           1         2\nmmap         100.10    200.20\n");
    assert_eq!((numbered.heading.as_str(), numbered.rows.len()), ("Threads", 1));
    assert_eq!(numbered.columns, ["1", "2"]);
}

#[test]
fn a_baseline_is_no_label() {
    let decimals = "100.00  110.00 (-10.00%)  120.00 (-20.00%)";
    let whole = "   100     110 (-10.00%)     120 (-20.00%)";
    for row in [decimals, whole] {
        let found =
            import::read(format!("  base  patched           v2\n{row}\n{row}\n").as_bytes());
        assert_eq!((found.tables.len(), found.unread.len()), (0, 1), "{row}");
    }
    let clients = table(&format!("clients  patched         v2\n{whole}\n{whole}\n"));
    assert_eq!((clients.rows[0].label.as_str(), clients.columns.len()), ("100", 2));
}

#[test]
fn a_label_that_ends_with_a_number_is_none_of_the_values_that_a_row_lacks() {
    let text = "
                        base             patched
Hmean     8    5418.25 (   0.00%)  5500.10 (   1.51%)
Hmean     16   5418.25 (   0.00%)
Hmean     32                       5500.10 (   1.51%)
Hmean     64   5418.25 (   0.00%)  5500.10 (   1.51%)
";
    let table = table(text);
    let row = |place: usize| {
        let row = &table.rows[place];
        let values = row.cells.iter().map(|cell| cell.value.as_ref().map_or(0.0, |it| it.value));
        (row.label.as_str(), values.collect::<Vec<f64>>())
    };
    assert_eq!(row(1), ("16", vec![5418.25, 0.0]));
    assert_eq!(row(2), ("32", vec![0.0, 5500.1]));
}

#[test]
fn a_row_without_a_figure_is_listed_and_parts_no_table() {
    let text = "
                        base             patched
Amean     8    5418.25 (   0.00%)  5500.10 (  -1.51%)
Amean     16   5418.25 (   0.00%)   FAILED
Amean     32   5418.25 (   0.00%)  5500.10 (  -1.51%)
";
    let found = import::read(text.as_bytes());
    let unread = &found.unread[0].lines;
    assert_eq!((unread.first, unread.last), (4, 4));
    let lines: Vec<usize> = found.tables[0].rows.iter().map(|row| row.line).collect();
    assert_eq!((found.tables.len(), lines), (1, vec![3, 5]));
}

#[test]
fn a_row_with_a_version_for_a_value_is_no_header() {
    let text = "
                            base     patched
Ops NUMA alloc hit     183669.00   183000.00
Ops NUMA alloc local   183669.00       1.2.3
Ops NUMA PTE updates   183669.00   183001.00
Ops NUMA hint faults   183669.00   183002.00
";
    let found = import::read(text.as_bytes());
    assert_eq!(found.unread[0].lines.first, 4);
    assert!(found.tables.iter().all(|table| table.columns == ["base", "patched"]));
    assert_eq!(found.tables.iter().map(|table| table.rows.len()).sum::<usize>(), 3);
}
