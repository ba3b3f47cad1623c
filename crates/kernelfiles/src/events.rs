//! Events that perf counts, as the agent prints them: one line for each event and CPU, `event CPU value enabled
//! running`. The two times are in nanoseconds (perf_event_open(2)): the time for which the event was enabled, and the
//! time for which it was counted. If there are more events than counters in the processor, the kernel counts them in
//! turn, and the second time is shorter.

use crate::{Counters, scan};

/// The suffix of the counter with the time for which an event was enabled.
pub const ENABLED: &str = " enabled";
/// The suffix of the counter with the time for which an event was counted.
pub const RUNNING: &str = " running";

/// Three counters for each event, sums over CPUs: its value and both times.
pub fn parse(text: &str) -> Counters {
    let mut sums: Vec<(&str, [i64; 3])> = Vec::new();
    for line in text.lines() {
        let Some((event, read)) = reading(line) else { continue };
        // Lines of one event follow each other.
        match sums.last_mut().filter(|(last, _)| *last == event) {
            Some((_, sum)) => {
                sum.iter_mut().zip(read).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
            }
            None => sums.push((event, read)),
        }
    }
    let named = |(event, [value, enabled, running]): (&str, [i64; 3])| {
        [("", value), (ENABLED, enabled), (RUNNING, running)]
            .map(|(end, number)| (format!("{event}{end}"), number))
    };
    sums.into_iter().flat_map(named).collect()
}

fn reading(line: &str) -> Option<(&str, [i64; 3])> {
    let mut words = line.split(' ');
    let event = scan::name(words.next()?).filter(|name| name.len() <= model::MAX_EVENT_NAME)?;
    words.next()?.parse::<u32>().ok()?;
    let mut number = || scan::number(words.next()?);
    let read = [number()?, number()?, number()?];
    words.next().is_none().then_some((event, read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn values_and_times_are_summed_over_cpus() {
        let text = "tlb:tlb_flush 0 10 900 900\ntlb:tlb_flush 1 5 800 800\ncycles 0 7 900 300\n";
        let counters = "tlb:tlb_flush 15, tlb:tlb_flush enabled 1700, tlb:tlb_flush running 1700, \
                        cycles 7, cycles enabled 900, cycles running 300";
        assert_eq!(parse(text), expected(counters));
    }

    #[test]
    fn torn_lines_are_skipped() {
        let text = "a 0 1 2\na x 1 2 3\na 0 1 2 3 4\n 0 1 2 3\nb 0 1 2 3";
        assert_eq!(parse(text), expected("b 1, b enabled 2, b running 3"));
    }
}
