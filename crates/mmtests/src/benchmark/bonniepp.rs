//! bonnie++: latencies and rates of reading, writing and creating files.
//!
//! Files: `bonnie-detail` with a line for each measured latency, and `bonnie` with the program's output,
//! which has a line of comma-separated figures; until June 2019 `bonnie-detail.N` and `bonnie.N`, one per
//! repetition, and for some time `bonnie++-detail` and `bonnie++`. mmtests has a table of each; the
//! latencies come first here.

use std::borrow::Cow;

use benchmarks::bonnie::{TESTS, measured};
use benchmarks::number;
use model::{Better, count};

use super::gather::{FOUR, Gather, TWO, metric, primary};
use super::{Logs, Unreadable};

/// What lines of `bonnie-detail` begin with, test by test.
const CODES: [&str; TESTS.len()] =
    ["pc", "wr", "rw", "gc", "rd", "sk", "cs", "ss", "ds", "cr", "sr", "dr"];

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let detail = files(logs, "-detail");
    let figures = files(logs, "");
    gather.metric(primary(metric("latency", "us", Better::Lower, FOUR)));
    for test in TESTS {
        gather.metric(primary(metric(test.name, test.unit, Better::Higher, TWO)));
    }
    for text in &detail {
        latencies(text, gather)?;
    }
    for line in figures.iter().flat_map(|text| text.lines()).filter(|line| is_figures(line)) {
        rates(line, gather)?;
    }
    Ok(!detail.is_empty() || !figures.is_empty())
}

/// The file with this suffix, or those of repetitions, in order.
fn files<'a>(logs: &'a Logs, suffix: &str) -> Vec<Cow<'a, str>> {
    let names = ["bonnie", "bonnie++"].map(|name| format!("{name}{suffix}"));
    if let Some(one) = names.iter().find_map(|name| logs.text(name)) {
        return vec![one];
    }
    let repeated = logs.between(&format!("{}.", names[0]), "");
    let repeated = repeated.into_iter().filter(|(number, _)| number.parse::<u32>().is_ok());
    repeated.map(|(_, text)| text).collect()
}

fn latencies(detail: &str, gather: &mut Gather) -> Result<(), Unreadable> {
    let mut bad = 0;
    for line in detail.lines() {
        let mut words = line.split(' ');
        let kind = words.next();
        let Some(test) = CODES.iter().position(|code| Some(*code) == kind) else { continue };
        match words.next().and_then(number) {
            Some(value) => gather.sample("latency", TESTS[test].label, value)?,
            None => bad += 1,
        }
    }
    if bad > 0 {
        gather.remark(format!("no latency: {} of bonnie-detail", count(bad, "line")));
    }
    Ok(())
}

/// Whether a line is one of figures: a word without capitals, then a comma.
fn is_figures(line: &str) -> bool {
    let plain =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(byte);
    let word = line.bytes().take_while(plain).count();
    word > 0 && line[word..].starts_with(',')
}

/// The rates of a line, without those that were too quick to measure.
fn rates(line: &str, gather: &mut Gather) -> Result<(), Unreadable> {
    let figures: Vec<&str> = line.split(',').take(64).collect();
    // The first figure is the format's version; up to 1.03 there was none, and the host's name comes first.
    let lacking = match figures[0] {
        "1.98" => Some(0),
        "1.96" | "1.97" => Some(2),
        other if number(other).is_some() => {
            gather
                .remark("a format of bonnie++'s figures that is not known is not read".to_owned());
            return Ok(());
        }
        _ => None,
    };
    for test in TESTS {
        let place = lacking.map_or(test.old_rate, |lacking| test.rate - lacking);
        let figure = figures.get(place).and_then(|figure| measured(figure.trim()));
        if let Some(rate) = figure.flatten() {
            gather.sample(test.name, "", rate)?;
        }
    }
    Ok(())
}
