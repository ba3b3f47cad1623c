//! Problems in the text of a kernel's log, as the console or `/dev/kmsg` prints it: warnings, bugs, stalls, OOM kills
//! and panics. They are recognized by the beginnings of their first lines in Linux 5.10 to 7.3 (`kernel/panic.c`,
//! `lib/bug.c`, `kernel/watchdog.c`, `kernel/hung_task.c`, `kernel/rcu/`, `kernel/workqueue.c`, `mm/oom_kill.c`).
//! Registers and call traces stay in the log.

mod taint;

use model::Problem;
use model::ProblemKind::{self, Bug, OomKill, Stall, Warning};

use crate::scan;

pub use taint::{EXTERNAL_MODULE, taint};

/// The largest number of different problems that are kept of one log. The first ones are the most informative.
pub const MAX_PROBLEMS: usize = 200;
/// The largest number of characters that are kept of a line.
pub const MAX_TEXT: usize = 200;

const PANIC: &str = "Kernel panic - not syncing";

/// The messages of a kernel whose RCU thread does not run although it is due (`rcu_check_gp_kthread_starvation` and
/// `rcu_check_gp_kthread_expired_fqs_timer` in `kernel/rcu/tree_stall.h`).
const STARVED: &str = "kthread starved for";
const EXPIRED: &str = "kthread timer wakeup didn't happen";

/// A pattern of the first line of a problem. The line begins with `start`, and has the pieces of `then` somewhere
/// after it, in order.
struct Pattern {
    kind: ProblemKind,
    start: &'static str,
    then: &'static [&'static str],
}

const fn pattern(kind: ProblemKind, start: &'static str, then: &'static [&'static str]) -> Pattern {
    Pattern { kind, start, then }
}

/// The patterns. The first match counts, because a workqueue lockup begins with `BUG:` but is a stall.
const PATTERNS: &[Pattern] = &[
    pattern(Stall, "watchdog: BUG: soft lockup", &[]),
    pattern(Stall, "watchdog: ", &["detected hard LOCKUP"]),
    pattern(Stall, "NMI watchdog: ", &["detected hard LOCKUP"]),
    pattern(Stall, "BUG: workqueue lockup", &[]),
    pattern(Stall, "rcu: INFO: ", &["detected", "stall"]),
    pattern(Stall, "INFO: rcu", &["detected", "stall"]),
    pattern(Stall, "rcu: ", &[STARVED]),
    pattern(Stall, "rcu: ", &[EXPIRED]),
    pattern(Stall, "INFO: task ", &["blocked", "for more than"]),
    pattern(OomKill, "Out of memory", &["Killed process"]),
    pattern(OomKill, "Memory cgroup out of memory", &["Killed process"]),
    pattern(Bug, PANIC, &[]),
    pattern(Bug, "BUG: ", &[]),
    pattern(Bug, "kernel BUG at ", &[]),
    pattern(Bug, "Oops: ", &[]),
    pattern(Bug, "general protection fault", &[]),
    pattern(Bug, "invalid opcode: ", &[]),
    pattern(Bug, "divide error: ", &[]),
    pattern(Bug, "stack segment: ", &[]),
    pattern(Bug, "PANIC: ", &[]),
    pattern(Bug, "Unable to handle kernel ", &[]),
    pattern(Bug, "Internal error: ", &[]),
    pattern(Warning, "WARNING: ", &[]),
    pattern(Warning, "UBSAN: ", &[]),
    pattern(Warning, "", &[": page allocation failure: "]),
];

impl Pattern {
    fn matches(&self, message: &str) -> bool {
        let Some(mut rest) = message.strip_prefix(self.start) else {
            return false;
        };
        self.then.iter().all(|piece| {
            let found = rest.split_once(piece);
            rest = found.map_or("", |(_, after)| after);
            found.is_some()
        })
    }
}

/// The problems in order of first appearance, at most [`MAX_PROBLEMS`]. A problem's text is the kernel's
/// line without its time stamp, at most [`MAX_TEXT`] characters, with control and non-ASCII characters
/// replaced by `?`. The number of repetitions is appended: `(3 times)`.
pub fn problems(log: &str) -> Vec<Problem> {
    let mut found: Vec<(Problem, u64)> = Vec::new();
    for message in log.lines().map(message) {
        let Some(kind) = kind(message) else {
            continue;
        };
        let text = scan::printable(message, MAX_TEXT);
        let problem = Problem { kind, text };
        if let Some((_, times)) = found.iter_mut().find(|(known, _)| *known == problem) {
            *times += 1;
        } else if found.len() < MAX_PROBLEMS {
            found.push((problem, 1));
        }
    }
    let counted = |(mut problem, times): (Problem, u64)| {
        if times > 1 {
            problem.text += &format!(" ({times} times)");
        }
        problem
    };
    found.into_iter().map(counted).collect()
}

/// Whether a problem is that the kernel's RCU thread was not woken.
pub fn is_rcu_not_woken(problem: &Problem) -> bool {
    [STARVED, EXPIRED].iter().any(|it| problem.text.contains(it))
}

/// The first line of the first panic, such as `Kernel panic - not syncing: sysrq triggered crash`, cut and sanitised
/// as in [`problems`].
pub fn panic_line(log: &str) -> Option<String> {
    let mut messages = log.lines().map(message);
    let panic = messages.find(|message| message.starts_with(PANIC))?;
    Some(scan::printable(panic, MAX_TEXT))
}

/// The time of the kernel's last message that it powers the machine off (`kernel_power_off` in `kernel/reboot.c`), in
/// microseconds since its boot.
pub fn powered_off(log: &str) -> Option<u64> {
    stamp(log.lines().rfind(|line| message(line) == "reboot: Power down")?)
}

/// The time of a line, `[   12.345678] text`, in microseconds since the kernel's boot.
pub fn stamp(line: &str) -> Option<u64> {
    let (seconds, micros) = line.strip_prefix('[')?.split_once(']')?.0.trim().split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)
}

/// The kernel's message if it doubts the TSC frequency: two ways to measure it differed by more than 10 %,
/// and a further measurement did not confirm the frequency in use (`native_calibrate_tsc` and
/// `tsc_refine_calibration_work` in `arch/x86/kernel/tsc.c`). Cut and sanitised as in [`problems`].
pub fn tsc_doubt(log: &str) -> Option<String> {
    let mut messages = log.lines().map(message);
    let doubt = messages.find(|message| message.starts_with("tsc: PIT calibration deviates"))?;
    let is_refined = messages.any(|it| it.starts_with("tsc: Refined TSC clocksource calibration"));
    (!is_refined).then(|| scan::printable(doubt, MAX_TEXT))
}

fn kind(message: &str) -> Option<ProblemKind> {
    let pattern = PATTERNS.iter().find(|pattern| pattern.matches(message))?;
    Some(pattern.kind)
}

/// A line without its prefix: the level `<4>`, and in brackets the time and, if the kernel is built to
/// print it, the caller (`T` and thread or `C` and CPU).
fn message(line: &str) -> &str {
    let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let mut rest = match level {
        Some((number, rest)) if number.parse::<u16>().is_ok() => rest,
        _ => line,
    };
    while let Some((stamp, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && stamp.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b' ' | b'T' | b'C'))
    {
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    rest.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_power_off_is_read() {
        let log = "[    0.5] reboot: Power down\nx\n[   12.345678][    T1] reboot: Power down\n\n";
        assert_eq!(powered_off(log), Some(12_345_678));
        for none in ["", "reboot: Power down", "[    1.000000] reboot: Power down later"] {
            assert_eq!(powered_off(none), None, "{none}");
        }
    }

    /// The kinds and texts found.
    fn found(log: &str) -> Vec<(ProblemKind, String)> {
        let problems = problems(log).into_iter();
        problems.map(|problem| (problem.kind, problem.text)).collect()
    }

    #[test]
    fn a_tsc_is_doubted_unless_measured_once_more() {
        let deviates = "tsc: PIT calibration deviates from HPET: 271207 2599996";
        let log =
            format!("<4>[    0.0] {deviates}\n<6>[    0.0] tsc: Using PIT calibration value\n");
        assert_eq!(tsc_doubt(&log).as_deref(), Some(deviates));
        let refined = "<6>[    2.5] tsc: Refined TSC clocksource calibration: 2599.996 MHz\n";
        assert_eq!(tsc_doubt(&(log + refined)), None);
        assert_eq!(tsc_doubt(refined), None);
    }

    #[test]
    fn every_kind_of_problem() {
        for (kind, line) in [
            (Warning, "WARNING: CPU: 1 PID: 2 at mm/memory.c:42 do_fault+0x1/0x2"),
            (Warning, "WARNING: mm/memory.c:42 at do_fault+0x1/0x2, CPU#1: sh/2"),
            (Warning, "WARNING: possible circular locking dependency detected"),
            (Warning, "UBSAN: array-index-out-of-bounds in mm/slub.c:1:2"),
            (Warning, "kworker/0:1: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL)"),
            (Bug, "BUG: kernel NULL pointer dereference, address: 0000000000000000"),
            (Bug, "BUG: Bad page state in process sh  pfn:12345"),
            (Bug, "kernel BUG at mm/slub.c:305!"),
            (Bug, "general protection fault, probably for non-canonical address 0xdead: 0000 [#1]"),
            (Bug, "Oops: general protection fault: 0000 [#1] SMP NOPTI"),
            (Bug, "Unable to handle kernel paging request at virtual address dead000000000108"),
            (Bug, "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009"),
            (Stall, "rcu: INFO: rcu_preempt self-detected stall on CPU"),
            (Stall, "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"),
            (Stall, "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {"),
            (Stall, "INFO: rcu_tasks detected stalls on tasks:"),
            (Stall, "rcu: rcu_preempt kthread starved for 5252 jiffies! g9 f0x0"),
            (Stall, "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [sh:2]"),
            (Stall, "watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 1"),
            (Stall, "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1"),
            (Stall, "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 32s!"),
            (Stall, "INFO: task sync:123 blocked for more than 120 seconds."),
            (Stall, "INFO: task sync:123 blocked in I/O wait for more than 120 seconds."),
            (OomKill, "Out of memory: Killed process 7 (hog) total-vm:1kB, anon-rss:1kB"),
            (OomKill, "Memory cgroup out of memory: Killed process 7 (hog) total-vm:1kB"),
        ] {
            for stamp in ["", "[    1.234567] ", "[    1.234567][   T12] ", "<4>[1.2] [    C0] "] {
                assert_eq!(found(&format!("{stamp}{line}\r\n")), [(kind, line.to_owned())]);
            }
        }
    }

    #[test]
    fn ordinary_lines_are_none() {
        let log = "[    0.000000] Linux version 6.1.0\n[drm] BUG: not at the start\n\
            traps: sh[7] general protection fault ip:1 sp:2 error:0\n\
            rcu: RCU CPU stall warnings timeout set to 21\n\
            INFO: task sync:123 is blocked on a mutex likely owned by task sh:7.\n\
            ---[ end Kernel panic - not syncing: x ]---\n[ ]\n[\n<\n";
        assert_eq!(found(log), []);
        assert_eq!(panic_line(log), None);
    }

    #[test]
    fn repetitions_are_counted() {
        let log = "[1.0] BUG: b\n[2.0] WARNING: a\n[3.0] BUG: b\n[4.0] BUG: b\n";
        let counted = [(Bug, "BUG: b (3 times)".to_owned()), (Warning, "WARNING: a".to_owned())];
        assert_eq!(found(log), counted);
    }

    #[test]
    fn a_flood_is_bounded() {
        let flood = |number| format!("WARNING: {number} {}\n", "x".repeat(1000));
        let log: String = (0..1000).map(flood).collect();
        let problems = problems(&log);
        assert_eq!(problems.len(), MAX_PROBLEMS);
        assert!(problems.iter().all(|problem| problem.text.len() == MAX_TEXT));
    }

    #[test]
    fn the_panic_line_is_sanitised() {
        let log = "[    9.1] sysrq: Trigger a crash\n\
            [    9.2] Kernel panic - not syncing: \u{1b}[2Jsysrq triggered crash\n\
            [    9.3] Kernel panic - not syncing: another\n";
        let panic = "Kernel panic - not syncing: ?[2Jsysrq triggered crash";
        assert_eq!(panic_line(log).as_deref(), Some(panic));
    }
}
