//! Checks whether a guest's clock was right. A kernel under emulation measures the frequency of its TSC
//! itself, by timers that a busy host delays, and uses the result for the whole boot
//! (`arch/x86/kernel/tsc.c`).

use std::time::Duration;

use kernelfiles::klog;

/// A guest's clock may be faster than the host's by this factor: the kernel accepts a refined frequency
/// within 1 % of the first one.
const FASTER: f64 = 1.02;

/// Why the times of a boot are wrong; `None` without evidence of that. `log` is the kernel's, `lived` the
/// guest's time at the end in nanoseconds since its start. `wall` is the time from the start of the machine
/// to its end, and so the longer of the two; `None` if nobody saw the end.
pub fn fault(log: &str, lived: u64, wall: Option<Duration>) -> Option<String> {
    let lived = Duration::from_nanos(lived).as_secs_f64();
    if let Some(wall) = wall.map(|wall| wall.as_secs_f64())
        && lived > wall * FASTER
    {
        return Some(format!(
            "the guest's clock went too fast: {lived:.1} s passed there while {wall:.1} s passed \
             here, as happens where the host is busy when the kernel measures its TSC"
        ));
    }
    let doubt = klog::tsc_doubt(log)?;
    Some(format!(
        "the guest's clock cannot be trusted, as happens where the host is busy when the kernel \
         measures its TSC; the kernel says: {doubt}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_lives_no_longer_than_its_machine() {
        let wall = Some(Duration::from_secs(100));
        assert_eq!(fault("", 99_000_000_000, wall), None);
        let why = fault("", 960_000_000_000, wall).unwrap();
        assert_eq!(fault("", 960_000_000_000, None), None);
        assert!(why.contains("960.0 s passed there while 100.0 s passed here"), "{why}");
    }

    #[test]
    fn a_kernels_doubt_is_told() {
        let deviates = "tsc: PIT calibration deviates from HPET: 271207 2599996";
        let log = format!("[    0.1] {deviates}\n[    0.2] tsc: Using PIT calibration value\n");
        let why = fault(&log, 1, None).unwrap();
        assert!(why.ends_with(deviates), "{why}");
    }
}
