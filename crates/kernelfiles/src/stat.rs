//! `/proc/stat`: CPU time by mode, interrupts, context switches and forks (`fs/proc/stat.c`, proc_stat(5)).
//!
//! Times are in clock ticks (`USER_HZ`, 1/100 s on x86). `guest` is part of `user`, and `guest_nice` of `nice`. The
//! boot time (`btime`) is not a counter and is left out. The sums of single interrupts are left out too, because
//! `/proc/interrupts` has better names for them.

use crate::{Counters, scan};

const MODES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// The order of `softirq_to_name` in `kernel/softirq.c`, after the total.
const SOFTIRQS: [&str; 11] = [
    "total", "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
    "RCU",
];

/// The counters, such as `cpu user`, `cpu0 idle`, `intr`, `ctxt`, `softirq TIMER`.
pub fn parse(text: &str) -> Counters {
    let mut counters = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("softirq") => scan::add_fields(&mut counters, "softirq", &SOFTIRQS, words),
            Some(name @ ("intr" | "ctxt" | "processes" | "procs_running" | "procs_blocked")) => {
                let value = words.next().and_then(scan::number);
                counters.extend(value.map(|value| (name.to_owned(), value)));
            }
            Some(cpu) if cpu.starts_with("cpu") && scan::name(cpu).is_some() => {
                scan::add_fields(&mut counters, cpu, &MODES, words);
            }
            _ => {}
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn every_kind_of_line() {
        let text = "cpu  17903 0 4461 425246 963 0 138 18 5 6\ncpu1 9644 0 2538\n\
            intr 414690 7 8 9\nctxt 734694\nbtime 1795243737\nprocesses 14745\n\
            procs_running 4\nprocs_blocked 0\nsoftirq 270787 0 36824\n";
        let counters = "cpu user 17903, cpu nice 0, cpu system 4461, cpu idle 425246, \
            cpu iowait 963, cpu irq 0, cpu softirq 138, cpu steal 18, cpu guest 5, \
            cpu guest_nice 6, cpu1 user 9644, cpu1 nice 0, cpu1 system 2538, intr 414690, \
            ctxt 734694, processes 14745, procs_running 4, procs_blocked 0, softirq total 270787, \
            softirq HI 0, softirq TIMER 36824";
        assert_eq!(parse(text), expected(counters));
    }
}
