//! bonnie++: latencies and rates of reading, writing and creating files.
//!
//! Files: `bonnie-detail` with a line for each measured latency, and `bonnie` with the program's output,
//! which has a line of comma-separated figures; until June 2019 `bonnie-detail.N` and `bonnie.N`, one per
//! repetition, and for some time `bonnie++-detail` and `bonnie++`. mmtests has a table of each; the
//! latencies come first here.

use std::borrow::Cow;

use model::{Better, count};

use super::gather::{FOUR, Gather, TWO, metric, primary};
use super::time::number;
use super::{Logs, Unreadable};

/// Prefixes of the lines of `bonnie-detail`, and the labels of their latencies.
const LATENCIES: [(&str, &str); 12] = [
    ("pc", "SeqOut:char"),
    ("wr", "SeqOut:block"),
    ("rw", "SeqOut:rewrite"),
    ("gc", "SeqIn:char"),
    ("rd", "SeqIn:block"),
    ("sk", "Random:seeks"),
    ("cs", "SeqCreate:create"),
    ("ss", "SeqCreate:read"),
    ("ds", "SeqCreate:del"),
    ("cr", "RandCreate:create"),
    ("sr", "RandCreate:read"),
    ("dr", "RandCreate:del"),
];

/// Names and units of the rates, and their places among the figures of format 1.98 and of
/// versions 1.03 and before (bonnie++, `bon_csv2html`). Formats 1.96 and 1.97 lack the two figures about
/// seeks that 1.98 has before all rates.
const RATES: [(&str, &str, usize, usize); 12] = [
    ("SeqOut char", "K/s", 9, 2),
    ("SeqOut block", "K/s", 11, 4),
    ("SeqOut rewrite", "K/s", 13, 6),
    ("SeqIn char", "K/s", 15, 8),
    ("SeqIn block", "K/s", 17, 10),
    ("Random seeks", "ops/s", 19, 12),
    ("SeqCreate ops", "ops/s", 26, 15),
    ("SeqCreate read", "ops/s", 28, 17),
    ("SeqCreate del", "ops/s", 30, 19),
    ("RandCreate ops", "ops/s", 32, 21),
    ("RandCreate read", "ops/s", 34, 23),
    ("RandCreate del", "ops/s", 36, 25),
];

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let detail = files(logs, "-detail");
    let figures = files(logs, "");
    gather.metric(primary(metric("latency", "us", Better::Lower, FOUR)));
    for (name, unit, ..) in RATES {
        gather.metric(primary(metric(name, unit, Better::Higher, TWO)));
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
        let Some((_, label)) = LATENCIES.iter().find(|(code, _)| Some(*code) == kind) else {
            continue;
        };
        match words.next().and_then(number) {
            Some(value) => gather.sample("latency", label, value)?,
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

/// The rates of a line. `+++++` means too quick to measure; that and 0 are left out.
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
    for (name, _, place, old_place) in RATES {
        let figure = figures.get(lacking.map_or(old_place, |lacking| place - lacking));
        let rate = figure.and_then(|figure| number(figure.trim()));
        if let Some(rate) = rate.filter(|&rate| rate > 0.0) {
            gather.sample(name, "", rate)?;
        }
    }
    Ok(())
}
