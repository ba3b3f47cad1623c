//! Workloads and their metrics.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Parameter;

named! {
    /// Which direction of a metric is good.
    pub enum Better {
        /// Less is better, as with times.
        Lower = "lower",
        /// More is better, as with rates.
        Higher = "higher",
    }
}

/// How the values of a metric are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mean {
    /// Arithmetic mean, for times.
    #[default]
    Amean,
    /// Harmonic mean, for rates.
    Hmean,
    /// Geometric mean, for ratios.
    Gmean,
}

/// A named figure of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name in tables, such as `Elapsed`.
    pub name: String,
    /// Its unit, such as `s`.
    pub unit: String,
    /// The good direction; `None` for a figure that is only informative, such as CPU percent.
    #[serde(default)]
    pub better: Option<Better>,
    /// The mean that is appropriate for its values.
    pub mean: Mean,
    /// Whether verdicts rest on it. If a workload marks no metric, the first metric with a good direction is primary
    /// ([`Manifest::is_primary`]).
    #[serde(default, skip_serializing_if = "is_default")]
    pub primary: bool,
    /// The rows of its tables.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rows: Rows,
    /// Number of decimals in its tables; `None` if the size of the figures decides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decimals: Option<u8>,
    /// Whether the samples of an iteration are taken concurrently, such as one by each thread. Their order
    /// then has no meaning, and none is warm-up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub concurrent: bool,
}

/// The rows of a metric's table, in order, as mmtests prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    /// Extremes, mean, spread, and the mean of the best 95 %.
    #[default]
    Usual,
    /// The smallest value and the mean, for metrics of very many operations.
    Brief,
    /// Only the mean, for secondary metrics.
    Mean,
    /// The whole distribution, for latencies: extremes, quartiles, percentiles, the mean, and the means of
    /// the best 99, 95, 90, 50, 10, 5 and 1 %.
    Distribution,
}

/// Whether `text` matches `pattern`, in which a `*` stands for anything.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((begin, pattern)) = pattern.split_once('*') else { return pattern == text };
    let (middle, end) = pattern.rsplit_once('*').unwrap_or(("", pattern));
    let Some(text) = text.strip_prefix(begin) else { return false };
    let Some(within) = text.strip_suffix(end) else { return false };
    // The first match of each part leaves the most text for the parts after it.
    let mut parts = middle.split('*');
    parts.try_fold(within, |rest, part| Some(rest.split_once(part)?.1)).is_some()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A workload as its manifest describes it: a program with parameters that yields metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name that experiments use.
    pub name: String,
    /// A description of the workload in one line.
    pub description: String,
    /// The program and its arguments in the guest. Placeholders: `{name}` is the parameter of that name;
    /// `{cpus}`, `{nodes}` and `{memory}` (bytes) are the machine's; `{disk}` is the place of its first
    /// disk, a directory or the device of a raw disk; `{program}` is the path of a program of the user's,
    /// and is dropped if there is none. If the command has no `{program}`, the user's program replaces its
    /// first word.
    pub command: Vec<String>,
    /// A program on the host for `{program}`, relative to the manifest's directory. An experiment may name
    /// another one.
    #[serde(default, skip_serializing)]
    pub program: Option<PathBuf>,
    /// The parameters by name, with their defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Phases that only prepare the measurement or clean up after it. An empty name stands for the time outside
    /// phases, a `*` for anything. Tables of counters leave them out by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preparation: Vec<String>,
    /// Names of the user's programs, for a workload that can run several from one directory. A parameter's
    /// name in braces stands for each of its values, separated by commas, or for any word if it has none.
    /// Their paths in the guest, separated by commas, are `{program}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binaries: Option<String>,
    /// Kernel modules that the program needs: the kernel's own modules, or ours, which are built for each kernel.
    #[serde(default)]
    pub modules: Vec<String>,
    /// The smallest number of NUMA nodes that it works on; 0 for any number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes: u32,
    /// Whether it needs swap space.
    #[serde(default, skip_serializing_if = "is_default")]
    pub swap: bool,
    /// Debian packages whose programs it needs. If there are any, the command runs in a user space made of
    /// them and their dependencies, with `/faultline` and the disks at their usual paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Whether the program does not know the metric protocol. The agent measures it, and takes figures from
    /// lines `NAME VALUE UNIT` of its output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub plain: bool,
    /// The program's working directory in the guest; empty for the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The text of a plain program that needs no other files of the user's: its C file or its script. Mails show a short
    /// one. Empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The compiler that made the program of a C file, with its version, such as `gcc 12.2.0`. Empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compiler: String,
    /// The metrics, in the order of the tables.
    pub metrics: Vec<Metric>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Manifest {
    /// The manifest without the fields that only affect how its figures are read. Workloads whose manifests are equal
    /// without them run alike, and their figures have the same meaning. A manifest has both kinds of fields because
    /// it is one file: the program reports the names and units of metrics, and only tables use directions, means and
    /// rows.
    pub fn as_run(&self) -> Self {
        let as_run = |metric: &Metric| Metric {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            ..Metric::default()
        };
        let parameters = self.parameters.iter();
        Self {
            description: String::new(),
            parameters: parameters.map(|(name, it)| (name.clone(), it.as_run())).collect(),
            preparation: Vec::new(),
            nodes: 0,
            source: String::new(),
            compiler: String::new(),
            metrics: self.metrics.iter().map(as_run).collect(),
            ..self.clone()
        }
    }

    /// Whether a phase only prepares the measurement or cleans up after it.
    pub fn prepares(&self, phase: &str) -> bool {
        self.preparation.iter().any(|named| matches(named, phase))
    }

    /// Whether verdicts rest on `metric`. Marked metrics are primary, or else the first one that has a good
    /// direction.
    pub fn is_primary(&self, metric: &Metric) -> bool {
        match self.metrics.iter().any(|metric| metric.primary) {
            true => metric.primary,
            false => self.metrics.iter().find(|it| it.better.is_some()) == Some(metric),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        let fitting = ["", "*", "**", "ab", "a*", "*b", "a*b", "ab*", "*ab*", "a**b"];
        for pattern in &fitting[1..] {
            assert!(matches(pattern, "ab"), "{pattern}");
        }
        for (pattern, text) in [("", ""), ("*", ""), ("a*c*e", "abcde"), ("a*b*b", "abb")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("a", "ab"), ("a*a", "a"), ("a*b*b", "ab"), ("*c*", "ab"), ("b*", "ab")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
