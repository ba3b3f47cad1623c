//! Collects metrics, samples and remarks, within limits.

use std::num::NonZeroU32;

use model::{Better, Mean, Metric, ONCE};

use super::{Parsed, ParsedSample, Unreadable};

/// The largest number of values of a benchmark in an iteration: 80 minutes of a latency every 5 ms.
pub const MAX_SAMPLES: u32 = 1_000_000;
/// The largest number of remarks that are kept; the others are counted.
const MAX_REMARKS: usize = 100;
/// Decimals of most of mmtests' tables.
pub const TWO: u8 = 2;
/// Decimals of the tables of `trunc`, `stutter` and of the latencies of `bonnie++`.
pub const FOUR: u8 = 4;

/// A metric whose mean follows from its direction, as in mmtests: arithmetic if lower is better, harmonic if higher
/// is better.
pub fn metric(name: &str, unit: &str, better: Better, decimals: u8) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better: Some(better),
        mean: match better {
            Better::Lower => Mean::Amean,
            Better::Higher => Mean::Hmean,
        },
        decimals: Some(decimals),
        ..Metric::default()
    }
}

/// A time in seconds; lower is better.
pub fn seconds(name: &str) -> Metric {
    metric(name, "s", Better::Lower, TWO)
}

/// Makes a metric one that verdicts rest on.
pub fn primary(metric: Metric) -> Metric {
    Metric { primary: true, ..metric }
}

/// What has been collected so far.
#[derive(Default)]
pub struct Gather {
    parsed: Parsed,
    /// The number of values.
    measured: u32,
    /// The number of remarks that were not kept.
    unsaid: usize,
}

impl Gather {
    /// Adds a metric, unless it is there.
    pub fn metric(&mut self, metric: Metric) {
        if !self.parsed.metrics.iter().any(|known| known.name == metric.name) {
            self.parsed.metrics.push(metric);
        }
    }

    /// Adds a value. Fails if there are too many.
    pub fn sample(&mut self, metric: &str, label: &str, value: f64) -> Result<(), Unreadable> {
        self.samples(ONCE, metric, label, value)
    }

    /// Adds a value that was measured `count` times in a row. A value that is not finite is left out, with a remark.
    /// Fails if there are too many.
    pub fn samples(
        &mut self,
        count: NonZeroU32,
        metric: &str,
        label: &str,
        value: f64,
    ) -> Result<(), Unreadable> {
        if !value.is_finite() {
            self.remark(format!("a value of {metric} {label} is no number"));
            return Ok(());
        }
        if count.get() > MAX_SAMPLES - self.measured {
            return Err(Unreadable::TooMany);
        }
        self.measured += count.get();
        let (metric, label) = (metric.to_owned(), label.to_owned());
        self.parsed.samples.push(ParsedSample { metric, label, value, count });
        Ok(())
    }

    /// Adds a remark, or counts it if there are too many.
    pub fn remark(&mut self, remark: String) {
        match self.parsed.remarks.len() < MAX_REMARKS {
            true => self.parsed.remarks.push(remark),
            false => self.unsaid += 1,
        }
    }

    /// Returns what was collected, with the samples in the order of their metrics.
    pub fn finish(mut self) -> Parsed {
        if self.unsaid > 0 {
            self.parsed.remarks.push(format!("{} more of this kind", self.unsaid));
        }
        let metrics = &self.parsed.metrics;
        let rank =
            |sample: &ParsedSample| metrics.iter().position(|metric| metric.name == sample.metric);
        self.parsed.samples.sort_by_cached_key(rank);
        self.parsed
    }
}
