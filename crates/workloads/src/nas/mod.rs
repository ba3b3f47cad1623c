//! EP, IS, CG, MG and LU of the NAS Parallel Benchmarks, with threads, after their specification (Bailey et
//! al., "The NAS Parallel Benchmarks", RNR-94-007, NASA Ames, 1994; classes W, C and D and the timed parts
//! after NPB 3). Each verifies its result against the official values, and reports no figure if that fails.
//!
//! | phase, after `ep.S-` | what happens |
//! | --- | --- |
//! | `fill` | the threads touch and fill their parts of the arrays |
//! | `warm-up` | one iteration that the specification does not time; EP has none |
//! | `steady` | the part that the specification times |
//! | `verify` | the result is verified |

mod cg;
mod ep;
mod is;
mod lu;
mod memory;
mod mg;
mod own;
mod random;
mod stages;
mod team;
mod verify;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use self::stages::{StageTimes, Stages};
use self::team::Team;
use super::reporter::Reporter;
use super::{Given, Result, Workload, WorkloadError, list, refused, value_of, within};

/// The share of the machine's memory that a benchmark may use, in percent. The kernel needs the rest.
const ROOM: u64 = 85;
const MOST_THREADS: usize = 4096;

/// The size of a problem, from a sample's to a supercomputer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    S,
    W,
    A,
    B,
    C,
    D,
}

impl Class {
    const ALL: [Self; 6] = [Self::S, Self::W, Self::A, Self::B, Self::C, Self::D];

    /// The element for this class of values given for all classes.
    fn pick<T: Copy>(self, values: [T; Self::ALL.len()]) -> T {
        values[self as usize]
    }
}

impl FromStr for Class {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = |class: &Self| format!("{class:?}") == name;
        Self::ALL.into_iter().find(named).ok_or("not one of S, W, A, B, C, D")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Benchmark {
    Ep,
    Is,
    Cg,
    Mg,
    Lu,
}

impl Benchmark {
    const ALL: [Self; 5] = [Self::Ep, Self::Is, Self::Cg, Self::Mg, Self::Lu];

    /// The size of its arrays in bytes.
    fn bytes(self, class: Class, threads: usize) -> u64 {
        match self {
            Self::Ep => ep::bytes(threads),
            Self::Is => is::bytes(class),
            Self::Cg => cg::bytes(class),
            Self::Mg => mg::bytes(class),
            Self::Lu => lu::bytes(class),
        }
    }

    fn run(self, class: Class, team: &Team, stages: &Stages<'_>) -> Result<Outcome> {
        match self {
            Self::Ep => Ok(ep::run(class, team, stages)),
            Self::Is => is::run(class, team, stages),
            Self::Cg => cg::run(class, team, stages),
            Self::Mg => mg::run(class, team, stages),
            Self::Lu => lu::run(class, team, stages),
        }
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ep => "ep",
            Self::Is => "is",
            Self::Cg => "cg",
            Self::Mg => "mg",
            Self::Lu => "lu",
        })
    }
}

impl FromStr for Benchmark {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = |benchmark: &Self| benchmark.to_string() == name;
        Self::ALL.into_iter().find(named).ok_or("not one of ep, is, cg, mg, lu")
    }
}

/// The result of a run.
struct Outcome {
    /// Operations of the timed part in millions, as the official programs count them.
    millions: f64,
    /// Why the result differs from the official one.
    verdict: Result<(), String>,
    /// A remark on the result.
    remark: String,
}

pub struct Options {
    /// The requested benchmarks; if empty, all that fit into memory.
    benchmarks: Vec<Benchmark>,
    class: Class,
    threads: usize,
    /// The machine's memory in bytes.
    memory: u64,
    /// The directory of the files that the arrays map; without it arrays are anonymous memory.
    files: Option<PathBuf>,
    /// The user's own programs, which replace ours.
    programs: Vec<PathBuf>,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let programs =
            given.optional("program")?.map_or(Ok(Vec::new()), |it| list("program", &it))?;
        let (benchmarks, class) = (given.optional("benchmarks")?, given.text("class")?);
        let cpus = given.value("cpus")?;
        let mut found = Self {
            benchmarks: Vec::new(),
            class: Class::S,
            threads: given
                .optional("threads")?
                .map_or(Ok(cpus), |it| within("threads", &it, 1, MOST_THREADS))?,
            memory: given.value("memory")?,
            files: given.optional("files")?.map(PathBuf::from),
            programs,
        };
        // The user's programs may have other benchmarks and classes.
        if found.programs.is_empty() {
            found.benchmarks = benchmarks.map_or(Ok(Vec::new()), |it| list("benchmarks", &it))?;
            found.class = value_of("class", &class)?;
        }
        if let Some(directory) = found.files.as_ref().filter(|it| !it.is_absolute()) {
            return Err(refused("files", directory.display(), "not a path from the root"));
        }
        Ok(found)
    }

    /// Runs the benchmarks one after the other, or the user's own programs.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        if !self.programs.is_empty() {
            return own::run(&self.programs, self.threads, reporter);
        }
        if let Some(directory) = &self.files {
            memory::FILES.get_or_init(|| directory.clone());
        }
        let (fitting, others) = self.fitting()?;
        for why in others {
            reporter.note(&why)?;
        }
        for benchmark in fitting {
            run(benchmark, self.class, self.threads, reporter)?;
        }
        Ok(())
    }
}

impl Options {
    /// The benchmarks to run, and why others are not run.
    fn fitting(&self) -> Result<(Vec<Benchmark>, Vec<String>)> {
        let why_not = |benchmark: Benchmark| {
            let wanted = benchmark.bytes(self.class, self.threads);
            let room = self.memory / 100 * ROOM;
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            (wanted > room).then(|| {
                format!(
                    "{benchmark}.{:?} needs {} MiB, but {ROOM} % of the machine's memory are {}",
                    self.class,
                    mib(wanted),
                    mib(room)
                )
            })
        };
        let all = if self.benchmarks.is_empty() { &Benchmark::ALL[..] } else { &self.benchmarks };
        let (mut fitting, mut others) = (Vec::new(), Vec::new());
        for &benchmark in all {
            match why_not(benchmark) {
                None => fitting.push(benchmark),
                Some(why) if self.benchmarks.is_empty() => others.push(why),
                Some(why) => return Err(refused("benchmarks", benchmark, why)),
            }
        }
        match fitting.is_empty() {
            true => Err(refused("class", format!("{:?}", self.class), others.join("; "))),
            false => Ok((fitting, others)),
        }
    }
}

fn run(benchmark: Benchmark, class: Class, threads: usize, reporter: &mut Reporter) -> Result<()> {
    let name = format!("{benchmark}.{class:?}");
    let stages = Stages::new(&name, reporter);
    let outcome = benchmark.run(class, &Team::new(threads), &stages)?;
    let taken = stages.end()?;
    report(&name, outcome, taken, threads, reporter)
}

/// Reports the times of a run, if its result is correct.
fn report(
    name: &str,
    outcome: Outcome,
    taken: StageTimes,
    threads: usize,
    reporter: &mut Reporter,
) -> Result<()> {
    let Outcome { millions, verdict, remark } = outcome;
    verdict.map_err(|why| WorkloadError::Verification { name: name.to_owned(), why })?;
    let rate = millions / taken.elapsed;
    reporter.note(&format!("{name}: threads {threads}, {remark}, {rate:.2} Mop/s, verified"))?;
    reporter.sample(name, taken.elapsed)?;
    reporter.sample(&format!("User {name}"), taken.cpu.user)?;
    reporter.sample(&format!("System {name}"), taken.cpu.system)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::read_to_string;

    use super::*;
    use crate::tests::{manifest, options};

    /// Runs a benchmark with verification, and returns the lines it reports.
    fn lines(benchmark: Benchmark, class: Class, threads: usize) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut reporter = Reporter::to(file.reopen().unwrap());
        run(benchmark, class, threads, &mut reporter).unwrap();
        let text = read_to_string(File::open(file.path()).unwrap()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn results_are_official_for_any_number_of_threads() {
        for benchmark in Benchmark::ALL {
            for threads in 1..=3 {
                let lines = lines(benchmark, Class::S, threads);
                let phases: Vec<&str> =
                    lines.iter().filter_map(|line| line.strip_prefix("phase")).collect();
                let named = |stage: &str| format!(" {benchmark}.S-{stage}");
                let mut expected: Vec<String> =
                    ["fill", "warm-up", "steady", "verify"].map(named).into();
                expected.push(String::new());
                if benchmark == Benchmark::Ep {
                    expected.remove(1);
                }
                assert_eq!(phases, expected);
                let sample = format!("sample {benchmark}.S ");
                let time = lines.iter().find_map(|line| line.strip_prefix(&sample));
                assert!(time.unwrap().parse::<f64>().unwrap() > 0.0, "{lines:?}");
            }
        }
    }

    #[test]
    fn a_wrong_result_is_an_error_without_a_figure() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut reporter = Reporter::to(file.reopen().unwrap());
        let verdict = verify::check("zeta", 8.6, 8.5971775078648, 1e-10);
        let outcome = Outcome { millions: 1.0, verdict, remark: String::new() };
        let error = report("cg.S", outcome, StageTimes::default(), 2, &mut reporter).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the result of cg.S cannot be used: zeta is 8.6000000000000e0, but the official value is \
                     8.5971775078648e0"
        );
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }

    #[test]
    #[ignore = "class W takes minutes without optimization: `make check-long` runs it"]
    fn larger_results_are_official_too() {
        for benchmark in Benchmark::ALL {
            lines(benchmark, Class::W, 2);
        }
    }

    #[test]
    fn the_manifest_gives_options_and_all_metrics() {
        let (manifest, _) = manifest("nas");
        let options: Options = options("nas", &[]).unwrap();
        assert_eq!((options.class, options.threads, options.programs.len()), (Class::S, 4, 0));
        assert_eq!(options.fitting().unwrap(), (Benchmark::ALL.into(), Vec::new()));
        for benchmark in Benchmark::ALL {
            for class in Class::ALL {
                let name = format!("{benchmark}.{class:?}");
                assert!(manifest.metrics.iter().any(|metric| metric.name == name), "{name}");
            }
        }
    }

    #[test]
    fn benchmarks_that_do_not_fit_are_left_out_or_errors() {
        let told = |benchmarks: &str, class: &str, memory: &str| {
            let given = [("benchmarks", benchmarks), ("class", class), ("memory", memory)];
            let options: Options =
                options("nas", &[&given[..], &[("threads", "2")]].concat()).unwrap();
            options.fitting().map_err(|error| error.to_string())
        };
        let (fitting, others) = told("", "D", "34359738368").unwrap();
        assert_eq!(fitting, Benchmark::ALL);
        assert!(others.is_empty());
        let (fitting, others) = told("", "D", "2147483648").unwrap();
        assert_eq!(fitting, [Benchmark::Ep]);
        let mg = others.iter().find(|why| why.starts_with("mg.D"));
        assert_eq!(mg.unwrap(), "mg.D needs 27094 MiB, but 85 % of the machine's memory are 1741");
        assert!(
            told("cg", "D", "2147483648").unwrap_err().starts_with("--benchmarks cg: cg.D needs ")
        );
        assert!(
            told("", "S", "65536").unwrap_err().starts_with("--class S: ep.S needs 2 MiB, but ")
        );
    }

    #[test]
    fn a_users_programs_may_be_other_benchmarks() {
        let given = [("benchmarks", "ft,cg"), ("program", "/p/nas/ft.S.x,/p/nas/cg.S.x")];
        for class in ["", "E", "S,A"] {
            let given = [&given[..], &[("class", class)]].concat();
            assert!(options::<Options>("nas", &given).is_ok(), "{class}");
        }
        let options: Options = options("nas", &given).unwrap();
        let expected = ["/p/nas/ft.S.x", "/p/nas/cg.S.x"].map(PathBuf::from);
        assert_eq!((options.programs, options.benchmarks), (expected.into(), Vec::new()));
    }
}
