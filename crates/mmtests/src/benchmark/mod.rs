//! Parses the logs of a benchmark: its metrics, in mmtests' order and under mmtests' names, and their
//! samples. There is one file per benchmark. Other modules find the logs. `docs/mmtests.md` explains how
//! each row is computed.

mod autonumabench;
mod bonniepp;
mod gather;
mod logs;
mod nas;
mod pagealloc;
mod paralleldd;
mod pgbench;
mod stutter;
mod time;
mod timed;
mod tiobench;
mod trunc;
mod xfsrepair;

use std::num::NonZeroU32;

use model::Metric;

use gather::Gather;
pub use logs::Logs;

/// What was read of one iteration's logs of a benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The metrics, in the order of the tables.
    pub metrics: Vec<Metric>,
    /// Their values, in the order of the tables. All are finite.
    pub samples: Vec<ParsedSample>,
    /// What was left out and why, and notes on the figures, for people.
    pub remarks: Vec<String>,
}

/// One value, or several equal ones that were measured one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedSample {
    /// The name of its metric, one of [`Parsed::metrics`].
    pub metric: String,
    /// What mmtests adds to it, such as the number of clients; may be empty.
    pub label: String,
    /// The value, in the metric's unit.
    pub value: f64,
    /// How many times it was measured.
    pub count: NonZeroU32,
}

/// Why a benchmark's logs could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The benchmark is unknown.
    #[error(
        "`{benchmark}` is not one of the benchmarks that are read: {}",
        KNOWN.map(|(name, _)| name).join(", ")
    )]
    Unknown {
        /// Its name.
        benchmark: String,
    },
    /// None of the files is one that the benchmark leaves.
    #[error("none of the files is a log that {benchmark} leaves")]
    NoLogs {
        /// The benchmark.
        benchmark: &'static str,
    },
    /// There are more values than any run has.
    #[error("there are more than {} values", gather::MAX_SAMPLES)]
    TooMany,
    /// A line that the benchmark cannot have written.
    #[error("{file}, line {line}: {why}")]
    Line {
        /// The log.
        file: String,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// Reads a benchmark's logs; false if there are none.
type Read = fn(&Logs, &mut Gather) -> Result<bool, Unreadable>;

/// The benchmarks that are read.
const KNOWN: [(&str, Read); 11] = [
    ("autonumabench", autonumabench::read),
    ("bonniepp", bonniepp::read),
    ("nas", nas::read),
    ("pagealloc", pagealloc::read),
    ("paralleldd", paralleldd::read),
    ("pgbench", pgbench::read),
    ("stutter", stutter::read_old),
    ("stutterp", stutter::read),
    ("tiobench", tiobench::read),
    ("trunc", trunc::read),
    ("xfsrepair", xfsrepair::read),
];

/// Reads the logs of `benchmark`, which is the name of its directory: a benchmark's own, or that
/// with more behind a dash, as in `nas-bt`. Fails when the benchmark is not known, or none of the files is
/// one of its logs, or there is too much.
pub fn read(benchmark: &str, logs: &Logs) -> Result<Parsed, Unreadable> {
    let Some((known, read)) = known(benchmark) else {
        return Err(Unreadable::Unknown { benchmark: benchmark.to_owned() });
    };
    let mut gather = Gather::default();
    match read(logs, &mut gather)? {
        true => Ok(gather.finish()),
        false => Err(Unreadable::NoLogs { benchmark: known }),
    }
}

/// The benchmark to which a directory of this name belongs.
fn known(mut name: &str) -> Option<(&'static str, Read)> {
    loop {
        let same = match name {
            "bonnie" | "bonnie++" => "bonniepp",
            "truncate" => "trunc",
            other => other,
        };
        if let Some(known) = KNOWN.into_iter().find(|(known, _)| *known == same) {
            return Some(known);
        }
        name = name.rsplit_once('-')?.0;
    }
}

#[cfg(test)]
mod tests;
