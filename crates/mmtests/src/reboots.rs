//! Detects reboots between two iterations of a run. mmtests does not reboot by itself, but a run can be put together
//! from several. Iterations without a reboot between them belong to one boot, however often the benchmarks ran.

use kernelfiles::vmstat;

/// Traces of the boot in which an iteration ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traces {
    /// A time in seconds since 1970, and the uptime in seconds at that time.
    pub uptime: Option<(f64, f64)>,
    /// The last time at which the iteration is known to have run, in seconds since 1970.
    pub last: Option<u64>,
    /// The first and the last known number of page faults since the boot.
    pub faults: Option<(i64, i64)>,
    /// The time of the last line in the kernel's log, in seconds since the boot.
    pub log_end: Option<f64>,
}

/// Whether `later` belongs to another boot than `earlier`; `None` if that is unknown.
pub fn rebooted(earlier: &Traces, later: &Traces) -> Option<bool> {
    let by_clock = || {
        let ((time, up), last) = later.uptime.zip(earlier.last)?;
        // The machine booted after the earlier iteration was last known to run.
        Some(time - up > last as f64)
    };
    let by_faults = || Some(later.faults?.0 < earlier.faults?.1);
    let by_log = || Some(later.log_end? < earlier.log_end?);
    by_clock().or_else(by_faults).or_else(by_log)
}

/// The time and the uptime in a monitor's `.start` file: seconds since 1970 and, on the next line, `/proc/uptime`.
pub fn uptime(text: &str) -> Option<(f64, f64)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<f64>);
    let (time, up) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (time.is_finite() && up.is_finite()).then_some((time, up))
}

/// Page faults in a text of `/proc/vmstat`.
pub fn faults(text: &str) -> Option<i64> {
    let mut counters = vmstat::parse(text).into_iter();
    counters.find_map(|(name, value)| (name == "pgfault").then_some(value))
}

/// The seconds since the boot with which a line of the kernel's log begins.
pub fn stamp(line: &str) -> Option<f64> {
    line.strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()
}

/// Adds the new lines of a later text of the same kernel's log. The kernel keeps only the end of its log, so both
/// texts are needed.
pub fn extend_log(log: &mut String, later: &str) {
    let Some(last) = log.lines().rev().find_map(stamp) else {
        later.clone_into(log);
        return;
    };
    let mut place = 0;
    for line in later.split_inclusive('\n') {
        if stamp(line).is_some_and(|time| time > last) {
            log.push_str(&later[place..]);
            return;
        }
        place += line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_boot_time_is_another_boot() {
        let earlier = Traces { last: Some(2000), ..Traces::default() };
        let later = |up| Traces { uptime: Some((2100.0, up)), ..Traces::default() };
        assert_eq!(rebooted(&earlier, &later(1500.0)), Some(false));
        assert_eq!(rebooted(&earlier, &later(50.0)), Some(true));
        assert_eq!(rebooted(&earlier, &Traces::default()), None);
    }

    #[test]
    fn counters_and_logs_decide_if_clocks_do_not() {
        let faults = |faults| Traces { faults: Some(faults), ..Traces::default() };
        assert_eq!(rebooted(&faults((10, 90)), &faults((90, 95))), Some(false));
        assert_eq!(rebooted(&faults((10, 90)), &faults((20, 95))), Some(true));
        let log = |end| Traces { log_end: Some(end), ..Traces::default() };
        assert_eq!(rebooted(&log(7.0), &log(7.0)), Some(false));
        assert_eq!(rebooted(&log(7.0), &log(6.9)), Some(true));
    }

    #[test]
    fn texts_of_traces() {
        assert_eq!(uptime("1700000000\n123.45 400.10\n"), Some((1_700_000_000.0, 123.45)));
        assert_eq!(uptime("1700000000\n"), None);
        assert_eq!(faults("nr_x 1\npgfault 7\n"), Some(7));
        assert_eq!(stamp("[   12.5] x"), Some(12.5));
        assert_eq!(stamp("[Tue Nov 21 15:00:00 2026] x"), None);
    }

    #[test]
    fn a_log_grows_by_what_is_new() {
        let mut log = "[    1.0] a\n[    2.0] b\n".to_owned();
        extend_log(&mut log, "[    2.0] b\n more\n[    3.0] c\n more\n");
        assert_eq!(log, "[    1.0] a\n[    2.0] b\n[    3.0] c\n more\n");
        extend_log(&mut log, "[    3.0] c\n");
        assert_eq!(log.lines().count(), 4);
        let mut log = "without stamps\n".to_owned();
        extend_log(&mut log, "[    1.0] a\n");
        assert_eq!(log, "[    1.0] a\n");
    }
}
