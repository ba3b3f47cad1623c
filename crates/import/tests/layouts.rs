//! Layouts of tables that are easily mistaken for others.

use import::Table;

fn table(text: &str) -> Table {
    let mut document = import::read(text.as_bytes());
    assert_eq!((document.tables.len(), document.unread.len()), (1, 0), "{text}");
    document.tables.remove(0)
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
fn a_blank_cell_in_a_frame_is_a_missing_value() {
    let framed = "\
        | test |  base | mid   | new  |\n\
        |------|-------|-------|------|\n\
        | one  | 10.00 |       | 12.0 |\n\
        | two  |       | 10.50 | 12.0 |\n\
        | three| 11.00 | 10.50 | 12.0 |\n";
    let value = |cell: &import::Cell| cell.value.as_ref().map(|it| it.value);
    let rows = table(framed).rows;
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.cells.iter().map(value).collect()).collect();
    let expected = [
        [Some(10.0), None, Some(12.0)],
        [None, Some(10.5), Some(12.0)],
        [Some(11.0), Some(10.5), Some(12.0)],
    ];
    assert_eq!(rows, expected);
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
fn bars_separate_columns_and_tildes_are_missing_values() {
    let table = table(BOXED);
    assert_eq!(table.columns, ["I_PSTATE", "1C", "3C", "4C", "8C"]);
    assert_eq!(table.rows.len(), 3);
    assert!(table.rows[1].cells.iter().all(|cell| cell.value.is_none()));
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
    // A difference of percentages is no percentage of the other commit.
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
fn a_slash_after_names_is_no_name() {
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
fn a_row_without_a_figure_is_listed_and_splits_no_table() {
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

#[test]
fn a_title_on_the_first_line_of_a_mail_is_read_in_any_encoding() {
    // "Fault times\n            base          fix\nAmean 1    10.00 ( 0.00%)  9.00 ( 10.00%)\n"
    let base64 = "RmF1bHQgdGltZXMKICAgICAgICAgICAgYmFzZSAgICAgICAgICBmaXgKQW1lYW4gMSAgICAxMC4w\n\
                  MCAoIDAuMDAlKSAgOS4wMCAoIDEwLjAwJSkK\n";
    let plain =
        "Fault times\n            base          fix\nAmean 1    10.00 ( 0.00%)  9.00 ( 10.00%)\n";
    let bodies = [("8bit", plain), ("quoted-printable", plain), ("base64", base64)];
    for (encoding, body) in bodies {
        let mail = format!(
            "From: Ada <a@b.c>\nSubject: x\nContent-Transfer-Encoding: {encoding}\n\n{body}"
        );
        assert_eq!(table(&mail).title, "Fault times", "{encoding}");
    }
}
