//! Checks whether a guest's clock was right. Under emulation a kernel measures the frequency of its TSC with
//! timers that a busy host delays, and uses the result for the rest of the boot (`arch/x86/kernel/tsc.c`).

use std::time::Duration;

use kernelfiles::klog;

/// A guest's clock may be faster than the host's by this factor. The kernel accepts a refined frequency
/// within 1 % of the first one.
const FASTER: f64 = 1.02;

/// The largest lead of the recording's times over the kernel's own, in seconds. The two clocks
/// start at different moments of the kernel's boot.
const LATER: f64 = 1.0;

/// Checks that the times of a recording are the guest's own. Returns an error message if `lived` is
/// too late although the kernel's power-off message has a plausible time: a workload then wrote
/// times into the recording. `None` if there is no evidence of that, or the console has no
/// power-off message. `lived` is the recording's last time in nanoseconds. `wall` is the host's
/// time from the start of the machine to its end. Exact mode has no `wall`; its recording and its
/// kernel use the same clock.
pub fn contradiction(
    console: &str,
    lived: u64,
    wall: Option<Duration>,
    is_exact: bool,
) -> Option<String> {
    let lived = Duration::from_nanos(lived).as_secs_f64();
    let off = Duration::from_micros(klog::powered_off(console)?).as_secs_f64();
    let most = match wall {
        Some(wall) => wall.as_secs_f64() * FASTER,
        None if is_exact => off,
        None => return None,
    };
    (off <= most && lived > most + LATER).then(|| {
        format!(
            "the recording contradicts itself: its last time is {lived:.1} s after the start of \
             the guest, but the kernel powered off after {off:.1} s"
        )
    })
}

/// Checks the guest's clock. Returns the reason why the times of a boot are wrong; `None` if there
/// is no evidence of that. `log` is the kernel's log. `lived` is the guest's last time in
/// nanoseconds. `wall` is the host's time from the start of the machine to its end, so it should be
/// longer than `lived`; `None` if the end was not observed.
pub fn fault(log: &str, lived: u64, wall: Option<Duration>) -> Option<String> {
    let lived = Duration::from_nanos(lived).as_secs_f64();
    if let Some(wall) = wall.map(|wall| wall.as_secs_f64())
        && lived > wall * FASTER
    {
        return Some(format!(
            "the guest's clock is too fast: {lived:.1} s passed in the guest and {wall:.1} s on \
             the host. The host was probably busy while the kernel measured its TSC"
        ));
    }
    let doubt = klog::tsc_doubt(log)?;
    Some(format!(
        "the guest's clock is unreliable. The host was probably busy while the kernel \
         measured its TSC; the kernel's message: {doubt}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_outruns_the_hosts_is_wrong() {
        let wall = Some(Duration::from_secs(100));
        assert_eq!(fault("", 99_000_000_000, wall), None);
        let why = fault("", 960_000_000_000, wall).unwrap();
        assert_eq!(fault("", 960_000_000_000, None), None);
        assert!(why.contains("960.0 s passed in the guest and 100.0 s on the host"), "{why}");
    }

    #[test]
    fn times_later_than_the_kernels_own_are_forged() {
        let console = "[    6.389567] reboot: Power down\n";
        let told = |lived: u64, wall: Option<u64>, is_exact| {
            let wall = wall.map(Duration::from_secs);
            contradiction(console, lived * 1_000_000_000, wall, is_exact)
        };
        let why = told(960, Some(10), false).unwrap();
        assert!(why.ends_with(
            "is 960.0 s after the start of the guest, but the kernel powered off after 6.4 s"
        ));
        assert_eq!(told(960, None, true), Some(why));
        // The kernel's clock was too fast as well, so the host was busy.
        assert_eq!(told(960, Some(5), false), None);
        assert_eq!(told(960, None, false), None);
        assert_eq!((told(7, None, true), told(11, Some(10), false)), (None, None));
        assert_eq!(contradiction("", u64::MAX, None, true), None);
    }

    #[test]
    fn the_kernels_message_about_its_tsc_is_quoted() {
        let deviates = "tsc: PIT calibration deviates from HPET: 271207 2599996";
        let log = format!("[    0.1] {deviates}\n[    0.2] tsc: Using PIT calibration value\n");
        let why = fault(&log, 1, None).unwrap();
        assert!(why.ends_with(deviates), "{why}");
    }
}
