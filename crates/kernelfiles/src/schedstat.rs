//! `/proc/schedstat`: the scheduler's statistics by CPU and scheduling domain
//! (`kernel/sched/stats.c`, `Documentation/scheduler/sched-stats.rst`).
//!
//! | version | kernels | a domain's line |
//! | --- | --- | --- |
//! | 15 | 5.10, 6.1 | mask; idle, busy, newly idle; `lb_imbalance` |
//! | 16 | 6.12 | the same with busy before idle |
//! | 17 | 6.14 to 7.3 | a name before the mask; four kinds of imbalance |
//!
//! Fields of other versions are named by their position in the line. Times (`rq_cpu_time`, `run_delay`) are
//! nanoseconds. Most counters stay zero until `kernel.sched_schedstats` is set.

use crate::{Counters, scan};

/// Fields of a CPU in all versions named here. The second is always zero and is left out.
const CPU: [&str; 9] = [
    "yld_count", UNUSED, "sched_count", "sched_goidle", "ttwu_count", "ttwu_local", "rq_cpu_time",
    "run_delay", "pcount",
];
const UNUSED: &str = "";

/// Fields of load balancing, once for each kind of idleness.
const BALANCE: [&str; 8] = [
    "lb_count", "lb_balanced", "lb_failed", "lb_imbalance", "lb_gained", "lb_hot_gained",
    "lb_nobusyq", "lb_nobusyg",
];
const BALANCE_17: [&str; 11] = [
    "lb_count", "lb_balanced", "lb_failed", "lb_imbalance_load", "lb_imbalance_util",
    "lb_imbalance_task", "lb_imbalance_misfit", "lb_gained", "lb_hot_gained", "lb_nobusyq",
    "lb_nobusyg",
];

/// Fields of a domain after load balancing. Those of `sbe_` and `sbf_` are always zero.
const DOMAIN_TAIL: [&str; 12] = [
    "alb_count", "alb_failed", "alb_pushed", UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED,
    "ttwu_wake_remote", "ttwu_move_affine", "ttwu_move_balance",
];

/// The form of a domain's line in a version: the number of words before the numbers, and the names of the numbers.
struct Layout {
    head: usize,
    names: Vec<String>,
}

impl Layout {
    fn of(version: u32) -> Option<Self> {
        let (head, idleness, balance): (_, _, &[&str]) = match version {
            15 => (1, ["idle", "busy", "newidle"], &BALANCE),
            16 => (1, ["busy", "idle", "newidle"], &BALANCE),
            17 => (2, ["busy", "idle", "newidle"], &BALANCE_17),
            _ => return None,
        };
        let balance = idleness.iter().flat_map(|kind| {
            let named = move |field| format!("{kind} {field}");
            balance.iter().map(named)
        });
        let tail = DOMAIN_TAIL.iter().map(ToString::to_string);
        Some(Self { head, names: balance.chain(tail).collect() })
    }
}

/// The counters, such as `cpu0 run_delay` and `cpu0 domain1 newidle lb_count`. Domains are named by number,
/// not by the name that version 17 adds, so that names are the same in all versions.
pub fn parse(text: &str) -> Counters {
    let mut counters = Vec::new();
    let mut layout = None;
    let mut cpu = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(subject) = words.next() else {
            continue;
        };
        if subject == "version" {
            let version = words.next().and_then(|word| word.parse().ok());
            layout = version.and_then(Layout::of);
        } else if numbered(subject, "cpu") {
            cpu = Some(subject);
            match &layout {
                Some(_) => add(&mut counters, subject, CPU.into_iter(), words),
                None => add_by_place(&mut counters, subject, words),
            }
        } else if let Some(cpu) = cpu
            && numbered(subject, "domain")
        {
            let owner = format!("{cpu} {subject}");
            match &layout {
                Some(layout) => {
                    let names = layout.names.iter().map(String::as_str);
                    add(&mut counters, &owner, names, words.skip(layout.head));
                }
                None => add_by_place(&mut counters, &owner, words),
            }
        }
    }
    counters
}

/// Whether the word is a name made of `prefix` and a number.
fn numbered(word: &str, prefix: &str) -> bool {
    let number = scan::name(word).and_then(|word| word.strip_prefix(prefix));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn add<'a, 'b>(
    counters: &mut Counters,
    owner: &str,
    names: impl Iterator<Item = &'a str>,
    words: impl Iterator<Item = &'b str>,
) {
    let used = names.zip(words).filter(|(name, _)| *name != UNUSED);
    let counter = |(name, word)| Some((format!("{owner} {name}"), scan::number(word)?));
    counters.extend(used.filter_map(counter));
}

fn add_by_place<'a>(counters: &mut Counters, owner: &str, words: impl Iterator<Item = &'a str>) {
    counters.extend(words.enumerate().filter_map(|(place, word)| {
        let field = format!("{owner} field{}", place + 1);
        Some((field, scan::number(word)?))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    /// A file with one CPU and one domain, in which each number is its position in the line.
    fn text(version: u32, head: &str, numbers: i64) -> String {
        let numbers: Vec<_> = (1..=numbers).map(|number| number.to_string()).collect();
        format!(
            "version {version}\ntimestamp 4295\ncpu3 1 0 3 4 5 6 7 8 9\ndomain0 {head} {}\n",
            numbers.join(" ")
        )
    }

    fn assert_values(counters: &Counters, values: &str) {
        for counter in expected(values) {
            assert!(counters.contains(&counter), "{counter:?}");
        }
    }

    #[test]
    fn a_cpu_in_every_known_version() {
        for version in 15..=17 {
            let counters = parse(&text(version, "3", 0));
            assert_eq!(counters.len(), 8);
            assert_values(
                &counters,
                "cpu3 yld_count 1, cpu3 sched_count 3, cpu3 run_delay 8, cpu3 pcount 9",
            );
        }
    }

    #[test]
    fn version_16_swaps_busy_and_idle() {
        for (version, idle, busy) in [(15, 1, 9), (16, 9, 1)] {
            let counters = parse(&text(version, "00000000,0000000f", 36));
            assert_eq!(counters.len(), 8 + 30);
            assert_values(
                &counters,
                &format!(
                    "cpu3 domain0 idle lb_count {idle}, cpu3 domain0 busy lb_count {busy}, cpu3 domain0 newidle lb_nobusyg 24, cpu3 domain0 alb_count 25, cpu3 domain0 ttwu_move_balance 36"
                ),
            );
        }
    }

    #[test]
    fn version_17_names_domains_and_splits_the_imbalance() {
        let counters = parse(&text(17, "NUMA f", 45));
        assert_eq!(counters.len(), 8 + 39);
        assert_values(
            &counters,
            "cpu3 domain0 busy lb_imbalance_misfit 7, cpu3 domain0 idle lb_count 12, cpu3 domain0 ttwu_wake_remote 43",
        );
    }

    #[test]
    fn an_unknown_version_is_numbered_by_place() {
        let counters = parse(&text(99, "MC ff", 2));
        assert_values(&counters, "cpu3 field9 9");
        assert!(counters.iter().all(|(name, _)| name != "cpu3 domain0 field1"));
        assert_values(&counters, "cpu3 domain0 field4 2");
    }

    #[test]
    fn a_domain_without_a_cpu_is_skipped() {
        assert_eq!(parse("version 15\ndomain0 f 1 2 3\ncpux 1\n"), []);
    }
}
