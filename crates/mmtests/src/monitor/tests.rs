use std::collections::BTreeSet;

use proptest::prelude::*;
use store::Deltas;

use super::*;
use crate::table::Budget;

/// Reads a monitor's text. Returns the times in seconds and, for each column, a line `name: value value -`.
fn of(monitor: Monitor, text: &str) -> (Vec<u64>, Vec<String>) {
    let budget = Budget::new(1 << 20);
    let mut table = SeriesTable::new(&budget);
    read(monitor, text.as_bytes(), Clock(1000), &mut table).unwrap();
    let (times, columns) = table.finish();
    let shown = |column: Deltas| {
        let values = column.values().into_iter();
        let values: Vec<_> =
            values.map(|value| value.map_or("-".into(), |value| value.to_string())).collect();
        format!("{}: {}", column.name(), values.join(" "))
    };
    (
        times.iter().map(|time| time / 1_000_000_000).collect(),
        columns.into_iter().map(shown).collect(),
    )
}

#[test]
fn vmstat_of_the_kernel() {
    let text = "nr_odd 7\ntime: 1001\nnr_free_pages 10\npgfault 5\ntime: 1002\r\n\
        nr_free_pages 11\r\npgfault 18446744073709551615\ntime: 1003\nnr_new 1\npgfault 8\n\
        torn\ntime: 1004.5\nnr_free_pages 12\npgfault 99";
    let (times, columns) = of(Monitor::Sampled(Source::Vmstat), text);
    assert_eq!(times, [1, 2, 3, 4]);
    assert_eq!(columns, ["nr_free_pages: 10 11 - 12", "pgfault: 5 -1 8 99", "nr_new: - - 1 -"]);
}

/// Lines with names such as a kernel prints, and values. Some are odd.
fn any_vmstat() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => ("nr_[abc]{1,2}", any::<u32>()).prop_map(|(name, value)| format!("{name} {value}")),
        1 => ("pg[ab]", any::<u64>()).prop_map(|(name, value)| format!("{name} {value}\r")),
        1 => any::<i64>().prop_map(|value| format!("nr_x {value}")),
        1 => "[ -~]{0,20}",
    ];
    let sample = prop::collection::vec(line.clone(), 0..8);
    // Most lines of a sample equal those of the previous sample.
    let change = prop::option::weighted(0.3, (any::<prop::sample::Index>(), line));
    (sample, prop::collection::vec(change, 0..12)).prop_map(|(mut lines, changes)| {
        let text = |(number, change): (usize, Option<(prop::sample::Index, String)>)| {
            if let Some((place, line)) = change {
                let place = place.index(lines.len() + 1);
                lines.splice(place..lines.len().min(place + 1), [line]);
            }
            format!("time: {}\n{}\n", 1001 + number, lines.join("\n"))
        };
        changes.into_iter().enumerate().map(text).collect()
    })
}

#[test]
fn files_of_nodes() {
    let text = "time: 1001\nnode: 0\nNode 0 MemFree: 5 kB\nnode: 1\nNode 1 MemFree: 6 kB\n\
        time: 1002\nnode: 0\nNode 0 MemFree: 7 kB\n";
    let (times, columns) = of(Monitor::Sampled(Source::NodeMeminfo), text);
    assert_eq!(times, [1, 2]);
    assert_eq!(columns, ["node0 MemFree: 5 7", "node1 MemFree: 6 -"]);
}

#[test]
fn mpstat_in_either_clock_of_the_day() {
    let text = "time: 1001\nLinux 6.6.0 (host) \t11/21/26 \t_x86_64_\t(2 CPU)\n\ntime: 1002\n\
        12:00:01 PM  CPU    %usr   %nice   %idle\n12:00:02 PM  all    1,25    0.00   98.75\n\
        12:00:02 PM    0    2.50    0.00   97.50\n\ntime: 1003\n\
        12:00:02     CPU    %usr   %nice   %idle\n12:00:03     all    3.00    0.00   97.00\n\n\
        time: 1004\nAverage:     CPU    %usr   %nice   %idle\nAverage:     all    9.00 0.00 91.00\n";
    let (times, columns) = of(Monitor::Mpstat, text);
    assert_eq!(times, [2, 3]);
    assert_eq!(columns[..2], ["all %usr: 1250000 3000000", "all %nice: 0 0"]);
    assert_eq!(columns[3], "cpu0 %usr: 2500000 -");
}

/// A line as monitors print it that stamp each line with the time.
fn stamp(second: u32, line: &str) -> String {
    format!("{:16.4} {:8.4} {:10.4} -- {line}\n", f64::from(second), 1.0, 0.5)
}

#[test]
fn iostat_whatever_its_columns_and_colours() {
    let report = |second, device: &str| {
        let lines = [
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
            "           \u{1b}[32;22m1.50\u{1b}[0m    0.00    0.25    0.00    0.00   98.25",
            "",
            "Device            r/s     rkB/s  aqu-sz  %util",
            device,
            "",
        ];
        lines.map(|line| stamp(second, line)).concat()
    };
    let colours = "\u{1b}[32;22msda\u{1b}[0m  \u{1b}[31;1m8.00\u{1b}[0m 64.00 0.01 2.40";
    let text = [
        stamp(1000, "Linux 6.6.0 (host) 11/21/26 _x86_64_ (2 CPU)"),
        report(1000, "sda 99.00 99.00 9.00 99.00"),
        report(1001, colours),
        report(1002, ""),
    ];
    let (times, columns) = of(Monitor::Iostat, &text.concat());
    assert_eq!(times, [1, 2]);
    assert_eq!(columns[0], "cpu %user: 1500000 1500000");
    let devices = ["sda r/s: 8000000 -", "sda rkB/s: 64000000 -", "sda aqu-sz: 10000 -"];
    assert_eq!(columns[6..9], devices);

    let old = ["Device:         rrqm/s   r/s  await", "sdb  0.00 1.00 4.00", ""];
    let old = |second| old.map(|line| stamp(second, line)).concat();
    let (times, columns) = of(Monitor::Iostat, &(old(1001) + &old(1002)));
    assert_eq!(times, [2]);
    assert_eq!(columns, ["sdb rrqm/s: 0", "sdb r/s: 1000000", "sdb await: 4000000"]);
}

#[test]
fn top_by_name() {
    let report = |second: u32, form: &str, rows: &str| {
        format!(
            "time: {second} {form}\ntop - 12:00:00 up 1 day\nTasks: 2 total\n\n    PID USER      PR  \
             NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n{rows}"
        )
    };
    let row = |pid: u32, share: &str, name: &str| {
        format!(
            "    {pid} root      20   0       0      0      0 S  {share}   0.0   0:00.00 {name}\n"
        )
    };
    let text = [
        report(1001, "short", &(row(71, "5.0", "kswapd0") + &row(72, "1.5", "kswapd1"))),
        report(1002, "short", &row(72, "2.0", "kswapd1")),
        report(1003, "full", &(row(72, "2.0", "kswapd1") + &row(73, "3.0", "kswapd1"))),
    ];
    let (times, columns) = of(Monitor::Top, &text.concat());
    assert_eq!(times, [1, 2, 3]);
    let expected = ["kswapd0 %CPU: 5000000 0 -", "kswapd1 %CPU: 1500000 2000000 5000000"];
    assert_eq!(columns, expected);
}

#[test]
fn vmstat_the_tool() {
    let lines = [
        (1000, "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----"),
        (1000, " r  b   swpd   free   si   so"),
        (1000, " 9  9      9      9    9    9"),
        (1001, " 1  0      0  81234    0    2"),
        (1002, " 2  0      0  81230    0    3"),
    ];
    let text: String = lines.map(|(second, line)| stamp(second, line)).concat();
    let (times, columns) = of(Monitor::Vmstat, &text);
    assert_eq!(times, [1, 2]);
    assert_eq!(columns[0], "r: 1000000 2000000");
    assert_eq!(columns[5], "so: 2000000 3000000");
}

const ALL: [Monitor; 7] = [
    Monitor::Sampled(Source::Vmstat),
    Monitor::Sampled(Source::Zoneinfo),
    Monitor::Sampled(Source::NodeNumastat),
    Monitor::Mpstat,
    Monitor::Iostat,
    Monitor::Top,
    Monitor::Vmstat,
];

proptest! {
    /// The fast way to read a text gives the same figures as the plain one.
    #[test]
    fn fast_and_plain_reading_agree(text in any_vmstat()) {
        let mut samples: Vec<(String, Vec<(String, i64)>)> = Vec::new();
        for part in text.split("time: ").skip(1) {
            let (time, rest) = part.split_once('\n').unwrap();
            samples.push((time.to_owned(), kernelfiles::vmstat::parse(rest)));
        }
        let budget = Budget::new(1 << 20);
        let mut table = SeriesTable::new(&budget);
        read(Monitor::Sampled(Source::Vmstat), text.as_bytes(), Clock(1000), &mut table).unwrap();
        let (times, columns) = table.finish();
        prop_assert_eq!(times.len(), samples.len());
        let names: BTreeSet<&str> = columns.iter().map(Deltas::name).collect();
        let all = samples.iter().flat_map(|(_, sample)| sample);
        prop_assert_eq!(names, all.map(|(name, _)| &**name).collect());
        for column in columns {
            for (value, (_, sample)) in column.values().into_iter().zip(&samples) {
                let first = sample.iter().find(|(name, _)| name == column.name());
                prop_assert_eq!(value, first.map(|(_, value)| *value));
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for monitor in ALL {
            let budget = Budget::new(1 << 20);
            let _ = read(monitor, &bytes[..], Clock(1000), &mut SeriesTable::new(&budget));
        }
    }

    #[test]
    fn any_mixture_of_lines_is_survived(
        lines in prop::collection::vec(
            prop_oneof![
                Just("time: 1001 short".to_owned()),
                Just("node: 0".to_owned()),
                Just(" 12:00:01 CPU %usr %idle".to_owned()),
                Just(" 12:00:02 all 1.00 2.00".to_owned()),
                Just("PID %CPU COMMAND".to_owned()),
                Just("7 1e300 kswapd0".to_owned()),
                Just(stamp(1001, "Device r/s").trim_end().to_owned()),
                Just(stamp(1002, "sda 1.0").trim_end().to_owned()),
                Just(stamp(1002, "").trim_end().to_owned()),
                Just(stamp(1003, "r b").trim_end().to_owned()),
                Just(stamp(1003, "1 2").trim_end().to_owned()),
                Just("Node 0, zone Normal".to_owned()),
                "[ -~]{0,30}",
            ],
            0..30,
        ),
    ) {
        for monitor in ALL {
            let budget = Budget::new(1 << 20);
            let mut table = SeriesTable::new(&budget);
            read(monitor, lines.join("\n").as_bytes(), Clock(1000), &mut table).unwrap();
            let (times, columns) = table.finish();
            prop_assert!(columns.iter().all(|column| column.len() == times.len()));
        }
    }
}

/// Readers of series recognise figures in millionths by their source.
#[test]
fn sources_of_tools_are_known() {
    let tools = ["mpstat", "iostat", "top", "vmstat"].map(|name| Monitor::named(name).unwrap());
    assert_eq!(tools.map(Monitor::source), model::TOOL_SOURCES);
}
