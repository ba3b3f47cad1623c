//! pgbench: transactions a second of a PostgreSQL database.
//!
//! Files `pgbench-transactions-CLIENTS.log`: a line for about each second, of which the first two
//! figures count, the time in seconds and the transactions since the line before.

use model::Better;

use super::gather::{Gather, TWO, metric, primary};
use super::time::runs;
use super::{Logs, Unreadable};

/// Lines of a window; each window gives a sample.
const WINDOW: usize = 4;
/// Lines before the first window.
const SKIPPED: usize = 7;

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    gather.metric(primary(metric("txn", "transactions/s", Better::Higher, TWO)));
    let files = logs.between("pgbench-transactions-", ".log");
    for (clients, text) in &files {
        let time = logs.text(&format!("time-{clients}-1"));
        let failure = time.and_then(|time| runs(&time).into_iter().find_map(Result::err));
        if let Some(why) = failure {
            gather.remark(format!("{clients} clients do not count: {why}"));
            continue;
        }
        let lines: Vec<Option<Line>> = text.lines().map(read_line).collect();
        let bad = lines.iter().filter(|line| line.is_none()).count();
        if bad > 0 {
            gather
                .remark(format!("{bad} lines of pgbench-transactions-{clients}.log are not read"));
        }
        let lines: Vec<Line> = lines.into_iter().flatten().collect();
        let rates = rates(&lines);
        if rates.is_empty() {
            gather.remark(format!("the run with {clients} clients is too short for a sample"));
        }
        for rate in rates {
            gather.sample("txn", clients, rate)?;
        }
    }
    Ok(!files.is_empty())
}

#[derive(Clone, Copy)]
struct Line {
    seconds: f64,
    transactions: f64,
}

fn read_line(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok().map(|number| number as f64);
    Some(Line { seconds: number()?, transactions: number()? })
}

/// The rate of each window but the first. A window's time is since the last line of the one before
/// it; one in which the clock stood still has no rate.
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
    fn windows_follow_the_clock() {
        let line = |number: u64| Line {
            // After 17 lines the clock jumps by 4 seconds.
            seconds: (1000 + number + if number > 17 { 4 } else { 0 }) as f64,
            transactions: (10 * number) as f64,
        };
        let lines: Vec<Line> = (1..=24).map(line).collect();
        // Windows are lines 8 to 11, 12 to 15, 16 to 19 and 20 to 23; the first is left out.
        assert_eq!(rates(&lines), [135.0, 700.0 / 8.0, 215.0]);
        assert_eq!(rates(&lines[..14]), []);
        assert_eq!(rates(&[line(1); 40]), []);
    }
}
