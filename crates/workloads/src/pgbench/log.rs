//! Parses output and logs of pgbench (pgbench(1), "Per-Transaction Logging").

use std::io::{BufRead, BufReader, Read};

/// The longest log of one run, in bytes.
const MAX_LOG: u64 = 2 << 30;
/// The longest line, in bytes. A line has six numbers.
const MAX_LINE: u64 = 160;

/// The number of transactions in pgbench's report.
pub fn processed(report: &str) -> Option<u64> {
    let mut lines = report.lines();
    let rest =
        lines.find_map(|line| line.strip_prefix("number of transactions actually processed: "))?;
    // Some reports also print the intended number.
    rest.split(['/', ' ']).next()?.parse().ok()
}

/// The rate of transactions in a window of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Transactions per second.
    pub value: f64,
    /// The end of the window, in microseconds since 1970.
    pub ended: u64,
}

/// All transactions of a run.
pub struct Log {
    /// How many more bytes may be read.
    room: u64,
    /// The end of each transaction, in microseconds since 1970.
    ends: Vec<u64>,
    /// The latency of each transaction, in microseconds.
    latencies: Vec<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self { room: MAX_LOG, ends: Vec::new(), latencies: Vec::new() }
    }
}

impl Log {
    /// Adds a log. Each transaction has a line with its client, its number, its latency in microseconds, its script,
    /// and its end in seconds and microseconds. The error says what is wrong if a line is invalid or there are too
    /// many.
    pub fn read(&mut self, log: impl Read) -> Result<(), String> {
        let mut log = BufReader::new(log);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = log.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            let length = length.map_err(|error| format!("its log: {error}"))?;
            if length == 0 {
                return Ok(());
            }
            let room = self.room.checked_sub(length as u64);
            self.room = room.ok_or_else(|| {
                format!("its log exceeds {MAX_LOG} bytes: use a shorter steady phase")
            })?;
            let text = String::from_utf8_lossy(&line);
            let Some((latency, end)) = transaction(&text) else {
                return Err(format!("its log has the invalid line `{}`", text.trim()));
            };
            self.latencies.push(latency);
            self.ends.push(end);
        }
    }

    /// The number of transactions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The rates in `windows` windows. The first begins `seconds` seconds before the last transaction.
    pub fn rates(&self, seconds: u32, windows: u32) -> Vec<Rate> {
        let Some(last) = self.ends.iter().max() else {
            return Vec::new();
        };
        let window = u64::from(seconds) * 1_000_000 / u64::from(windows);
        let mut counts = vec![0u32; windows as usize];
        for end in &self.ends {
            // A slow start put this transaction before the first window.
            let back = ((last - end) / window).min(u64::from(windows) - 1);
            counts[windows as usize - 1 - back as usize] += 1;
        }
        let rate = |(number, count): (u32, &u32)| Rate {
            value: f64::from(*count) * 1e6 / window as f64,
            ended: last.saturating_sub(u64::from(windows - 1 - number) * window),
        };
        (0..).zip(&counts).map(rate).collect()
    }

    /// The smallest latency in milliseconds that `percent` of the transactions did not exceed (nearest rank).
    pub fn percentile(&mut self, percent: f64) -> Option<f64> {
        self.latencies.sort_unstable();
        let rank = (percent / 100.0 * self.latencies.len() as f64).ceil() as usize;
        let latency = self.latencies.get(rank.max(1) - 1)?;
        Some(*latency as f64 / 1e3)
    }
}

/// The latency and the end of a transaction, both in microseconds.
fn transaction(line: &str) -> Option<(u64, u64)> {
    if !line.ends_with('\n') {
        return None;
    }
    let numbers: Option<Vec<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    match numbers?.as_slice() {
        [_, _, latency, _, seconds, micros] if *micros < 1_000_000 => {
            Some((*latency, seconds.checked_mul(1_000_000)?.checked_add(*micros)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A report of pgbench 15.
    const REPORT: &str = "pgbench (15.20 (Debian 15.20-0+deb12u1))\n\
                          transaction type: <builtin: select only>\nscaling factor: 1\n\
                          number of clients: 2\nduration: 3 s\n\
                          number of transactions actually processed: 51234\n\
                          number of failed transactions: 0 (0.000%)\n\
                          tps = 17078.0 (without initial connection time)\n";

    fn log(lines: &str) -> Result<Log, String> {
        let mut log = Log::default();
        log.read(lines.as_bytes()).map(|()| log)
    }

    #[test]
    fn the_number_of_transactions_is_read() {
        assert_eq!(processed(REPORT), Some(51234));
        assert_eq!(processed("number of transactions actually processed: 10/10\n"), Some(10));
        assert_eq!(processed("number of transactions actually processed: many\n"), None);
        assert_eq!(processed(""), None);
    }

    #[test]
    fn rates_are_per_window() {
        // There are ten transactions in each of the first three seconds, and twenty in the last.
        let at = |number: u64| 1_700_000_000_000_000 + number;
        let early = (0..30).map(|number| at(number * 100_000));
        let ends = early.chain((0..20).map(|number| at(3_000_000 + number * 50_000)));
        let lines: String = ends
            .map(|end| format!("0 1 250 0 {} {}\n", end / 1_000_000, end % 1_000_000))
            .collect();
        let log = log(&lines).unwrap();
        let rates = log.rates(4, 4);
        assert_eq!(rates.iter().map(|rate| rate.value).sum::<f64>(), 50.0);
        assert_eq!(rates[3], Rate { value: 20.0, ended: at(3_950_000) });
        assert_eq!(rates[0].ended, at(950_000));
        assert!(Log::default().rates(4, 4).is_empty());
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let lines: String =
            (1..=200).rev().map(|latency| format!("0 1 {latency} 0 1700000000 0\n")).collect();
        let mut log = log(&lines).unwrap();
        let found = [0.0, 50.0, 95.0, 99.0, 100.0].map(|percent| log.percentile(percent).unwrap());
        assert_eq!(found, [0.001, 0.1, 0.19, 0.198, 0.2]);
        assert_eq!(Log::default().percentile(50.0), None);
    }

    #[test]
    fn a_too_long_log_is_an_error() {
        let line = "0 1 250 0 1700000000 5\n";
        let mut log = Log { room: 2 * line.len() as u64, ..Log::default() };
        assert_eq!(log.read(line.as_bytes()), Ok(()));
        assert_eq!(log.read(line.as_bytes()), Ok(()));
        assert!(log.read(line.as_bytes()).unwrap_err().starts_with("its log exceeds 2147483648"));
        assert_eq!(log.len(), 2);
    }

    #[test]
    fn invalid_lines_are_quoted() {
        for line in ["0 1 failed 0 1700000000 5\n", "0 1 2\n", "0 1 2 0 1700000000 5", "\n"] {
            let problem = log(line).err().unwrap();
            assert_eq!(problem, format!("its log has the invalid line `{}`", line.trim()));
        }
        assert!(log(&"7".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut log = Log::default();
            let _ = log.read(bytes.as_slice());
            let _ = log.rates(3, 12);
        }

        #[test]
        fn no_transaction_is_lost(ends in prop::collection::vec(0_u64..30_000_000, 1..100)) {
            let lines: String =
                ends.iter().map(|end| format!("0 1 2 0 {} {}\n", end / 1_000_000, end % 1_000_000)).collect();
            let rates = log(&lines).unwrap().rates(12, 12);
            let done: f64 = rates.iter().map(|rate| rate.value).sum();
            prop_assert_eq!(done, ends.len() as f64);
        }
    }
}
