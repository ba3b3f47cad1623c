//! The four programs and their sizes.

use std::fmt;
use std::str::FromStr;

use super::super::{Result, refused};
use super::process::{Plan, STEP};

/// One of the programs, by its usual name in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Two processes, each with half as many threads as there are CPUs. Every thread zeroes all memory of its
    /// process, which is on the first node at the start.
    Numa01,
    /// Like `NUMA01`, but each thread zeroes its own slice.
    Numa01ThreadLocal,
    /// One process with a thread for each CPU. Each thread zeroes its own slice, and is the first to touch it.
    Numa02,
    /// Like `NUMA02`, with half as many threads.
    Numa02Smt,
}

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// How often a thread zeroes its part of the memory.
    pub passes: Passes,
    /// A factor for all passes.
    pub scale: f64,
    /// The memory of one process of `NUMA01`, in percent of a node's average memory.
    pub share: f64,
}

/// The number of passes of each program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes([f64; 4]);

impl Default for Work {
    /// The number of passes of the original. With three tenths of a node, both processes fit on one node, and leave
    /// space for the kernel.
    fn default() -> Self {
        Self { passes: Passes([50.0, 1000.0, 800.0, 800.0]), scale: 1.0, share: 30.0 }
    }
}

impl Work {
    /// Fails if a value is invalid.
    pub fn check(&self) -> Result<()> {
        if !(self.scale > 0.0 && self.scale <= 1e6) {
            return Err(refused("scale", self.scale, "above 0, at most 1000000"));
        }
        if !(self.share > 0.0 && self.share <= 45.0) {
            let why = "both processes have to fit on one node: above 0, at most 45 percent";
            return Err(refused("share", self.share, why));
        }
        Ok(())
    }
}

impl FromStr for Passes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "four numbers above 0, such as 50,1000,800,800".to_owned();
        let numbers: Result<Vec<f64>, _> =
            text.split(',').map(|number| number.trim().parse()).collect();
        let passes: [f64; 4] = numbers.ok().and_then(|n| n.try_into().ok()).ok_or_else(wrong)?;
        if passes.iter().all(|passes| *passes > 0.0 && *passes <= 1e9) {
            Ok(Self(passes))
        } else {
            Err(wrong())
        }
    }
}

impl Program {
    /// All programs, in the usual order of tables.
    pub const ALL: [Self; 4] =
        [Self::Numa01, Self::Numa01ThreadLocal, Self::Numa02, Self::Numa02Smt];

    /// The name in tables, and that of the phase.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Numa01 => "NUMA01",
            Self::Numa01ThreadLocal => "NUMA01_THREADLOCAL",
            Self::Numa02 => "NUMA02",
            Self::Numa02Smt => "NUMA02_SMT",
        }
    }

    /// The number of processes.
    pub const fn processes(self) -> usize {
        if self.is_pair() { 2 } else { 1 }
    }

    /// Whether the program has two processes that share the machine.
    const fn is_pair(self) -> bool {
        matches!(self, Self::Numa01 | Self::Numa01ThreadLocal)
    }

    /// The plan of each process on a machine with `cpus` CPUs, whose nodes have `memory` bytes on average.
    pub fn plan(self, work: &Work, cpus: usize, memory: u64) -> Plan {
        let half = cpus / 2;
        let threads = if self == Self::Numa02 { cpus } else { half }.max(1);
        // The original has 3 GiB for each of two processes, or 1 GiB for one.
        let part = if self.is_pair() { 1.0 } else { 3.0 };
        let bytes = (memory as f64 * work.share / 100.0 / part) as usize;
        let unit = STEP * threads;
        let bytes = (bytes / unit).max(1) * unit;
        let whole = self == Self::Numa01;
        let region = if whole { bytes } else { bytes / threads };
        let passes = work.passes.0[self as usize] * work.scale;
        let steps = (passes * (region / STEP) as f64).round().max(1.0) as u64;
        Plan { threads, bytes, whole, steps, first_node: None, interval: 1000 }
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = Self::ALL.map(Self::name);
        let position = all.iter().position(|known| *known == name);
        position
            .map(|index| Self::ALL[index])
            .ok_or_else(|| format!("not one of {}", all.join(", ")))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        let written = mib(self.steps * STEP as u64);
        write!(
            f,
            "{} threads, {} MiB; each thread zeroes {written} MiB",
            self.threads,
            mib(self.bytes as u64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn sizes_on_the_originals_machine_are_the_originals() {
        let work = Work::default();
        let plans = Program::ALL.map(|program| program.plan(&work, 48, 10 * GIB));
        let total = |plan: &Plan| plan.steps * STEP as u64 * plan.threads as u64;
        let close = |value: u64, gib: u64| value.abs_diff(gib * GIB) < gib * GIB / 10;
        assert_eq!(plans.each_ref().map(|plan| plan.threads), [24, 24, 48, 24]);
        assert!(close(plans[0].bytes as u64, 3) && close(plans[2].bytes as u64, 1));
        // The originals zero threads x 50 x 3 GiB (both processes together), 1000 x 3 GiB, and 800 x 1 GiB.
        assert!(close(2 * total(&plans[0]), 2 * 24 * 150), "{:?}", plans[0]);
        assert!(close(2 * total(&plans[1]), 2 * 3000), "{:?}", plans[1]);
        assert!(close(total(&plans[2]), 800) && close(total(&plans[3]), 800));
    }

    #[test]
    fn slices_are_whole_steps_on_any_machine() {
        for cpus in [1, 2, 3, 4, 7, 255] {
            for memory in [0, 128 << 20, GIB, 1000 * GIB] {
                for program in Program::ALL {
                    let plan = program.plan(&Work::default(), cpus, memory);
                    assert!(plan.threads >= 1 && plan.steps >= 1);
                    assert!(plan.bytes > 0 && plan.bytes.is_multiple_of(STEP * plan.threads));
                }
            }
        }
    }

    #[test]
    fn names_and_passes_are_read() {
        for program in Program::ALL {
            assert_eq!(program.name().parse(), Ok(program));
        }
        assert!("numa01".parse::<Program>().unwrap_err().contains("NUMA01_THREADLOCAL"));
        assert_eq!("1, 2,3,0.5".parse(), Ok(Passes([1.0, 2.0, 3.0, 0.5])));
        for text in ["", "1", "1,2,3,0", "1,2,3,nan", "1,2,3,4,5", "1,2,3,inf"] {
            assert!(text.parse::<Passes>().is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_errors() {
        let work = |scale, share| Work { scale, share, ..Work::default() };
        assert!(work(0.1, 45.0).check().is_ok());
        for (scale, share) in
            [(0.0, 30.0), (f64::NAN, 30.0), (1.0, 46.0), (1.0, 0.0), (1.0, f64::NAN)]
        {
            assert!(work(scale, share).check().is_err());
        }
    }
}
