//! bonnie++: latencies and rates of reading, writing and creating files.
//!
//! Files: `bonnie-detail` with a line for each measured latency, and `bonnie` with the program's output, which has a
//! line of comma-separated figures. Until June 2019 they were `bonnie-detail.N` and `bonnie.N`, one for each
//! repetition, and for some time `bonnie++-detail` and `bonnie++`. mmtests has one table for each file; here the
//! latencies come first.

use std::borrow::Cow;

use benchmarks::bonnie::{TESTS, measured};
use benchmarks::number;
use model::{Better, count};

use super::gather::{FOUR, Gather, TWO, metric, primary};
use super::{Logs, Unreadable};

/// The words with which lines of `bonnie-detail` begin, in the order of the tests.
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

/// The file with this suffix, or the files of the repetitions in order.
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

/// Whether a line holds the figures: it begins with a word without capitals and a comma.
fn is_figures(line: &str) -> bool {
    let plain =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(byte);
    let word = line.bytes().take_while(plain).count();
    word > 0 && line[word..].starts_with(',')
}

/// Adds the rates of a line, except those that were too quick to measure.
fn rates(line: &str, gather: &mut Gather) -> Result<(), Unreadable> {
    let figures: Vec<&str> = line.split(',').take(64).collect();
    // The first figure is the version of the format. Up to 1.03 there was none: the first is the host's name.
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
