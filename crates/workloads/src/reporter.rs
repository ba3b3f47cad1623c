//! Writes the workload's reports in the metric protocol.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use flight::protocol::{ACK_VARIABLE, FD_VARIABLE};

use super::{Result, While};

/// Writes lines of the protocol.
pub struct Reporter {
    lines: Box<dyn Write + Send>,
    acks: Option<File>,
}

impl Reporter {
    /// Writes to the descriptor from the environment or, if run by hand, to standard output.
    pub fn from_environment() -> Result<Self> {
        let lines: Box<dyn Write + Send> =
            match inherited(FD_VARIABLE, OpenOptions::new().write(true))? {
                Some(file) => Box::new(file),
                None => Box::new(io::stdout()),
            };
        Ok(Self { lines, acks: inherited(ACK_VARIABLE, OpenOptions::new().read(true))? })
    }

    /// Writes to a file, without waiting for acknowledgements.
    #[cfg(test)]
    pub fn to(file: File) -> Self {
        Self { lines: Box::new(file), acks: None }
    }

    /// Begins a phase, or no phase if the name is empty, and waits until the counters are cut.
    pub fn phase(&mut self, name: &str) -> Result<()> {
        self.line(format!("phase {name}").trim_end().to_owned())?;
        match &mut self.acks {
            Some(acks) => acks.read_exact(&mut [0]).while_("waiting for a phase to begin"),
            None => Ok(()),
        }
    }

    /// Reports a value of a metric.
    pub fn sample(&mut self, metric: &str, value: f64) -> Result<()> {
        self.line(format!("sample {metric} {value:.6}"))
    }

    /// Reports a value of a metric whose name may have spaces, with a label, which may be empty.
    pub fn labelled(&mut self, metric: &str, label: &str, value: f64) -> Result<()> {
        self.line(format!("sample \"{metric}\" {label} {value:.6}"))
    }

    /// Reports a value of a metric with a label, which may be empty, and the time at which the measured
    /// operation ended ([`guest::clock::boot_time`]), because the report may come later.
    pub fn timed(&mut self, metric: &str, label: &str, value: f64, ended: u64) -> Result<()> {
        let (seconds, rest) = (ended / 1_000_000_000, ended % 1_000_000_000);
        self.line(format!("sample \"{metric}\" {label} {value:.6} @{seconds}.{rest:09}"))
    }

    /// Ends the phase, and reports rates, each with the time at which it was measured.
    pub fn rates(&mut self, metric: &str, label: &str, rates: Vec<(f64, u64)>) -> Result<()> {
        self.phase("")?;
        rates.into_iter().try_for_each(|(rate, ended)| self.timed(metric, label, rate, ended))
    }

    /// Reports a point of a series.
    pub fn series(&mut self, name: &str, value: f64) -> Result<()> {
        self.line(format!("series {name} {value:.6}"))
    }

    /// Writes a note, which becomes part of the boot's results.
    pub fn note(&mut self, text: &str) -> Result<()> {
        self.line(format!("note \"{text}\""))
    }

    /// Writes a line at once, in a single write.
    pub fn line(&mut self, line: String) -> Result<()> {
        self.lines.write_all(format!("{line}\n").as_bytes()).while_("reporting")
    }
}

/// Opens the descriptor whose number is in `variable`; `None` if the variable is not set.
fn inherited(variable: &str, options: &OpenOptions) -> Result<Option<File>> {
    let Some(number) = env::var(variable).ok() else {
        return Ok(None);
    };
    options.open(format!("/proc/self/fd/{number}")).while_(variable).map(Some)
}
