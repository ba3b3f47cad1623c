//! Checks whether a guest's clock was right. Under emulation a kernel measures the frequency of its TSC with
//! timers that a busy host delays, and uses the result for the rest of the boot (`arch/x86/kernel/tsc.c`).

use std::time::Duration;

use kernelfiles::klog;

/// A guest's clock may be faster than the host's by this factor. The kernel accepts a refined frequency
/// within 1 % of the first one.
const FASTER: f64 = 1.02;

/// Why the times of a boot are wrong; `None` if there is no evidence that they are. `log` is the kernel's
/// log. `lived` is the guest's last time in nanoseconds. `wall` is the host's time from the start of the
/// machine to its end, so it should be the longer one; it is `None` if the end was not observed.
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
    fn the_kernels_message_about_its_tsc_is_quoted() {
        let deviates = "tsc: PIT calibration deviates from HPET: 271207 2599996";
        let log = format!("[    0.1] {deviates}\n[    0.2] tsc: Using PIT calibration value\n");
        let why = fault(&log, 1, None).unwrap();
        assert!(why.ends_with(deviates), "{why}");
    }
}
