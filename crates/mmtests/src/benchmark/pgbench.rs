//! pgbench: transactions per second of a PostgreSQL database.
//!
//! Files `pgbench-transactions-CLIENTS.log`, before May 2019 `pgbench-transactions-CLIENTS-1`. They have a line about
//! each second. Its first two figures count: the time in seconds, and the transactions since the previous line.
//! pgbench's own output is in the same directory, before May 2019 in `pgbench-raw-CLIENTS`.

use benchmarks::number;
use model::{Better, count};

use super::gather::{Gather, TWO, metric, primary};
use super::time::runs;
use super::{Logs, Unreadable};

/// The number of lines of a window. Each window gives a sample.
const WINDOW: usize = 4;
/// The number of lines before the first window.
const SKIPPED: usize = 7;
/// The number of lines before the first window in logs from before May 2019.
const OLD_SKIPPED: usize = 9;
/// A time of day is at least this, a time in 2001. The first figure of other lines is smaller.
const EARLIEST: f64 = 1e9;

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    gather.metric(primary(metric("txn", "transactions/s", Better::Higher, TWO)));
    let files = logs.between("pgbench-transactions-", ".log");
    for (clients, text) in &files {
        if !failed(logs, clients, &format!("time-{clients}-1"), gather) {
            let lines = lines(text, &format!("pgbench-transactions-{clients}.log"), gather);
            add(clients, rates(&lines), gather)?;
        }
    }
    let old = logs.between("pgbench-transactions-", "-1");
    for (clients, text) in &old {
        if failed(logs, clients, &format!("time-{clients}"), gather) {
            continue;
        }
        if logs.text(&format!("pgbench-transactions-{clients}-2")).is_some() {
            gather.remark(format!(
                "with {clients} clients, transactions of the first thread of pgbench are counted alone"
            ));
        }
        let lines = lines(text, &format!("pgbench-transactions-{clients}-1"), gather);
        let rates = match old_rates(&lines) {
            rates if rates.is_empty() => whole(logs, clients),
            rates => rates,
        };
        add(clients, rates, gather)?;
    }
    Ok(!files.is_empty() || !old.is_empty())
}

/// Whether `time` reports that pgbench failed. If so, adds a remark.
fn failed(logs: &Logs, clients: &str, time: &str, gather: &mut Gather) -> bool {
    let failure = logs.text(time).and_then(|time| runs(&time).into_iter().find_map(Result::err));
    if let Some(why) = &failure {
        gather.remark(format!("{clients} clients do not count: {why}"));
    }
    failure.is_some()
}

fn add(clients: &str, rates: Vec<f64>, gather: &mut Gather) -> Result<(), Unreadable> {
    if rates.is_empty() {
        gather.remark(format!("the run with {clients} clients is too short for a sample"));
    }
    rates.into_iter().try_for_each(|rate| gather.sample("txn", clients, rate))
}

/// The readable lines of a log. Adds a remark about the others.
fn lines(text: &str, name: &str, gather: &mut Gather) -> Vec<Line> {
    let lines: Vec<Option<Line>> = text.lines().map(read_line).collect();
    let bad = lines.iter().filter(|line| line.is_none()).count();
    if bad > 0 {
        gather.remark(format!("not read: {} of {name}", count(bad, "line")));
    }
    lines.into_iter().flatten().collect()
}

/// The mean rate of each window in logs from before May 2019, as if each line covered a second.
fn old_rates(lines: &[Line]) -> Vec<f64> {
    let windows = lines.get(OLD_SKIPPED..).unwrap_or_default().chunks_exact(WINDOW);
    let sum = |window: &[Line]| window.iter().map(|line| line.transactions).sum::<f64>();
    windows.map(|window| sum(window) / WINDOW as f64).collect()
}

/// The rate of a whole run as pgbench prints it. It includes the time to connect.
fn whole(logs: &Logs, clients: &str) -> Vec<f64> {
    let printed = logs.text(&format!("pgbench-raw-{clients}"));
    let rate = |line: &str| {
        let (rate, what) = line.strip_prefix("tps = ")?.split_once(' ')?;
        what.starts_with("(including").then(|| number(rate))?
    };
    printed.iter().flat_map(|text| text.lines().filter_map(rate)).collect()
}

#[derive(Clone, Copy)]
struct Line {
    seconds: f64,
    transactions: f64,
}

fn read_line(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok().map(|number| number as f64);
    let line = Line { seconds: number()?, transactions: number()? };
    // Without aggregation, as in 2014, a line is a transaction and begins with the client's number.
    (line.seconds >= EARLIEST).then_some(line)
}

/// The rate of each window but the first. A window begins with the last line of the previous one. If the clock stood
/// still, a window has no rate.
fn rates(lines: &[Line]) -> Vec<f64> {
    let windows: Vec<&[Line]> =
        lines.get(SKIPPED..).unwrap_or_default().chunks_exact(WINDOW).collect();
    let rate = |pair: &[&[Line]]| {
        let end = |window: &[Line]| window[WINDOW - 1].seconds;
        let seconds = end(pair[1]) - end(pair[0]);
        let transactions: f64 = pair[1].iter().map(|line| line.transactions).sum();
        (seconds > 0.0).then(|| transactions / seconds)
    };
    windows.windows(2).filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_too_short_for_a_window_have_the_rate_that_is_printed() {
        let logs = |text: &str| {
            let raw = "number of clients: 8\ntps = 412.250 (including connections establishing)\n\
                       tps = 412.5 (excluding connections establishing)\n";
            let files = [
                ("noprofile/default/pgbench-transactions-8-1", text),
                ("noprofile/default/pgbench-raw-8", raw),
            ];
            let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
            Logs { files: files.into() }
        };
        let samples = |text: &str| {
            let mut gather = Gather::default();
            assert!(read(&logs(text), &mut gather).unwrap());
            let parsed = gather.finish();
            let values = parsed.samples.iter().map(|sample| sample.value).collect::<Vec<_>>();
            (values, parsed.remarks.len())
        };
        let line = |number: u64| format!("{} {number} 4 5 6 7\n", 1_500_000_000 + number);
        assert_eq!(samples(&(1..=12).map(line).collect::<String>()), (vec![412.25], 0));
        assert_eq!(samples(&(1..=17).map(line).collect::<String>()), (vec![11.5, 15.5], 0));
        // Transactions, each on a line of its own: client, number, microseconds, script, time.
        assert_eq!(samples("0 1 2300 0 1500000000 17\n"), (vec![412.25], 1));
    }

    #[test]
    fn windows_follow_the_clock() {
        let line = |number: u64| Line {
            // The clock jumps by 4 seconds after 17 lines.
            seconds: (1000 + number + if number > 17 { 4 } else { 0 }) as f64,
            transactions: (10 * number) as f64,
        };
        let lines: Vec<Line> = (1..=24).map(line).collect();
        // The windows are lines 8 to 11, 12 to 15, 16 to 19 and 20 to 23. The first is left out.
        assert_eq!(rates(&lines), [135.0, 700.0 / 8.0, 215.0]);
        assert_eq!(rates(&lines[..14]), [0.0; 0]);
        assert_eq!(rates(&[line(1); 40]), [0.0; 0]);
    }
}
