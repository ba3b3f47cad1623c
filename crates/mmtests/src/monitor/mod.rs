//! Monitors: what mmtests runs beside its benchmarks. Some print kernel files repeatedly (`sampled`). Others are
//! tools with a format of their own, and have a module each.

mod iostat;
mod mpstat;
mod sampled;
mod tool;
mod top;
mod vmstat;

use std::io::{self, Read};

use model::Source;

use super::blocks::Blocks;
use super::table::SeriesTable;

/// The largest file of a monitor that is read, in bytes: a day of `/proc/zoneinfo` every second.
const MAX_TEXT: u64 = 4 << 30;
const SECOND: f64 = 1e9;
/// The store keeps figures of tools in millionths.
const MILLION: f64 = 1e6;

/// A monitor whose output can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Monitor {
    /// Prints a kernel file repeatedly, or that file of each node.
    Sampled(Source),
    /// `mpstat -P ALL`: CPU time by CPU.
    Mpstat,
    /// `iostat -x`: activity of disks.
    Iostat,
    /// `top -b`: CPU time by process.
    Top,
    /// `vmstat`: the tool, not the kernel file.
    Vmstat,
}

impl Monitor {
    /// The monitor that mmtests calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "proc-vmstat" => Self::Sampled(Source::Vmstat),
            "proc-zoneinfo" => Self::Sampled(Source::Zoneinfo),
            "proc-meminfo" => Self::Sampled(Source::Meminfo),
            "proc-buddyinfo" => Self::Sampled(Source::Buddyinfo),
            "proc-pagetypeinfo" => Self::Sampled(Source::Pagetypeinfo),
            "proc-interrupts" => Self::Sampled(Source::Interrupts),
            "proc-schedstat" => Self::Sampled(Source::Schedstat),
            "slabinfo" => Self::Sampled(Source::Slabinfo),
            "numa-numastat" => Self::Sampled(Source::NodeNumastat),
            "numa-meminfo" => Self::Sampled(Source::NodeMeminfo),
            "mpstat" => Self::Mpstat,
            "iostat" => Self::Iostat,
            "top" => Self::Top,
            "vmstat" => Self::Vmstat,
            _ => return None,
        })
    }

    /// The name of the source of its series.
    pub fn source(self) -> &'static str {
        match self {
            Self::Sampled(source) => source.name(),
            Self::Mpstat => "mpstat",
            Self::Iostat => "iostat",
            Self::Top => "top",
            Self::Vmstat => "vmstat-tool",
        }
    }
}

/// The moment at which the series begin, in seconds since 1970. Their times are relative to it.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub u64);

impl Clock {
    /// Nanoseconds from then to `seconds`; 0 if `seconds` is earlier.
    pub fn at(self, seconds: f64) -> u64 {
        // The subtraction comes first: nanoseconds since 1970 exceed the precision of an f64.
        ((seconds - self.0 as f64) * SECOND) as u64
    }
}

/// Reads what a monitor printed into `table`. Fails if part of it could not be read; what `table` has by then counts.
pub fn read(
    monitor: Monitor,
    text: impl Read,
    clock: Clock,
    table: &mut SeriesTable<'_>,
) -> io::Result<()> {
    let mut blocks = Blocks::new(text, MAX_TEXT);
    match monitor {
        Monitor::Sampled(Source::Vmstat) => {
            let mut reader = vmstat::VmstatFileReader::new(clock);
            while let Some(block) = blocks.next()? {
                reader.read(block, table);
            }
            Ok(())
        }
        Monitor::Sampled(source) => {
            let mut reader = sampled::SampledReader::new(source, clock);
            let end = lines(&mut blocks, |line| reader.line(line, table));
            reader.finish(table);
            end
        }
        Monitor::Mpstat => {
            let mut reader = mpstat::MpstatReader::default();
            lines(&mut blocks, |line| reader.line(line, clock, table))
        }
        Monitor::Iostat => {
            let mut reader = iostat::IostatReader::default();
            lines(&mut blocks, |line| reader.line(line, clock, table))
        }
        Monitor::Top => {
            let mut reader = top::TopReader::default();
            let end = lines(&mut blocks, |line| reader.line(line, clock, table));
            reader.finish(clock, table);
            end
        }
        Monitor::Vmstat => {
            let mut reader = tool::VmstatToolReader::default();
            lines(&mut blocks, |line| reader.line(line, clock, table))
        }
    }
}

fn lines(blocks: &mut Blocks<impl Read>, mut line: impl FnMut(&str)) -> io::Result<()> {
    while let Some(block) = blocks.next()? {
        String::from_utf8_lossy(block).lines().for_each(&mut line);
    }
    Ok(())
}

/// A line without the time stamp of some monitors, and its time. The stamp has the time now, the time since the start
/// and the time since the previous line, all in seconds.
fn stamped(line: &str) -> (Option<f64>, &str) {
    let parts = line.split_once(" -- ").or(line.strip_suffix(" --").map(|head| (head, "")));
    let Some((head, rest)) = parts else {
        return (None, line);
    };
    let mut numbers = head.split_ascii_whitespace().map(str::parse::<f64>);
    match [numbers.next(), numbers.next(), numbers.next(), numbers.next()] {
        [Some(Ok(now)), Some(Ok(_)), Some(Ok(_)), None] if now.is_finite() => (Some(now), rest),
        _ => (None, line),
    }
}

/// The seconds since 1970 in a line `time: 1700000000`, and the rest of the line.
fn time(line: &str) -> Option<(f64, &str)> {
    let rest = line.strip_prefix("time: ")?.trim();
    let (time, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    time.parse().ok().filter(|time: &f64| time.is_finite()).map(|time| (time, rest))
}

/// A figure in millionths. Some locales have a comma as decimal point.
fn millionths(word: &str) -> Option<i64> {
    let figure: f64 = match word.contains(',') {
        true => word.replace(',', ".").parse().ok()?,
        false => word.parse().ok()?,
    };
    figure.is_finite().then(|| (figure * MILLION).round() as i64)
}

/// A line without the escape sequences for colours.
fn plain(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic());
        text.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    text
}

#[cfg(test)]
mod tests;
