//! `/proc/interrupts` and `/proc/softirqs`: a table of events, with a line for each event and a column for
//! each CPU (`kernel/irq/proc.c`, `arch/x86/kernel/irq.c`, `fs/proc/softirqs.c`).
//!
//! The kernel counts each CPU in 32 bits, so these counters wrap. Numbers of device interrupts are assigned
//! at boot and may mean another device in another kernel.

use crate::{Counters, scan};

/// The counters: for each row its sum, `LOC total`, and each CPU, `LOC cpu0`. Rows that count events once
/// for the machine (`ERR`, `MIS` before Linux 7.3) have only the sum.
pub fn parse(text: &str) -> Counters {
    let mut lines = text.lines();
    let cpus = lines.next().map(cpus).unwrap_or_default();
    let mut counters = Vec::new();
    if cpus.is_empty() {
        return counters;
    }
    for line in lines {
        let Some((id, rest)) = line.split_once(':') else {
            continue;
        };
        let Some(id) = scan::name(id.trim()) else {
            continue;
        };
        let words = rest.split_ascii_whitespace();
        let counts: Vec<_> = words.map_while(scan::number).take(cpus.len()).collect();
        let whole_row = counts.len() == cpus.len();
        if !whole_row && counts.len() != 1 {
            continue;
        }
        let total = counts.iter().fold(0, |sum: i64, &count| sum.wrapping_add(count));
        counters.push((format!("{id} total"), total));
        if whole_row {
            let of_cpus = cpus.iter().zip(counts);
            counters.extend(of_cpus.map(|(cpu, count)| (format!("{id} cpu{cpu}"), count)));
        }
    }
    counters
}

/// The numbers of the CPUs in the header. Offline CPUs have no column.
fn cpus(header: &str) -> Vec<u32> {
    let words = header.split_ascii_whitespace();
    let number = |word: &str| word.strip_prefix("CPU")?.parse().ok();
    words.map_while(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn rows_of_devices_of_cpus_and_of_the_machine() {
        let text = "           CPU0       CPU2       \n \
            24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
            LOC:     155588     154269   Local timer interrupts\n\
            ERR:          3\n\
            CAL:          5\n";
        let counters = "24 total 1, 24 cpu0 1, 24 cpu2 0, LOC total 309857, LOC cpu0 155588, \
            LOC cpu2 154269, ERR total 3, CAL total 5";
        assert_eq!(parse(text), expected(counters));
    }

    #[test]
    fn rows_of_softirqs() {
        let text =
            "                    CPU0       CPU1       \n       TIMER:      18166      18660\n";
        let counters = "TIMER total 36826, TIMER cpu0 18166, TIMER cpu1 18660";
        assert_eq!(parse(text), expected(counters));
    }

    #[test]
    fn rows_with_too_few_columns_are_skipped() {
        assert_eq!(parse("CPU0 CPU1 CPU2\nLOC: 1 2 Local\nRES: none\n"), []);
        assert_eq!(parse("no header\nLOC: 1 2\n"), []);
        assert_eq!(parse(""), []);
    }

    #[test]
    fn a_sum_may_wrap() {
        let text = format!("CPU0 CPU1\nLOC: {0} {0}\n", i64::MAX);
        assert_eq!(parse(&text)[0], ("LOC total".to_owned(), -2));
    }
}
