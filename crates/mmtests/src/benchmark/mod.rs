//! Parses the logs of a benchmark into metrics, with mmtests' names and in its order, and samples. Each benchmark has
//! a file. Other modules find the logs. `docs/mmtests.md` explains how each row is computed.

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

/// What was read of the logs of one benchmark in one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The metrics, in the order of the tables.
    pub metrics: Vec<Metric>,
    /// The values, in the order of the tables. All are finite.
    pub samples: Vec<ParsedSample>,
    /// What was left out and why, and notes about the figures, for people.
    pub remarks: Vec<String>,
}

/// One value, or several equal values that were measured one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedSample {
    /// The name of the metric, which is one of [`Parsed::metrics`].
    pub metric: String,
    /// The operation within the metric, such as a number of clients; may be empty.
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
        /// The name of the directory, which should be that of a benchmark.
        benchmark: String,
    },
    /// No file has the name of a log of this benchmark.
    #[error("none of the files is a log that {benchmark} leaves")]
    NoLogs {
        /// The benchmark to which the directory belongs.
        benchmark: &'static str,
    },
    /// There are more values than any run has.
    #[error("there are more than {} values", gather::MAX_SAMPLES)]
    TooMany,
    /// The benchmark cannot have written this line.
    #[error("{file}, line {line}: {why}")]
    Line {
        /// The name of the log.
        file: String,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
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

/// Reads the logs of `benchmark`, the name of a directory: that of a benchmark, perhaps with a dash and more, as in
/// `nas-bt`. Fails if the benchmark is unknown, if no file is one of its logs, or if there are too many values.
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

/// The benchmark to which a directory with this name belongs.
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
