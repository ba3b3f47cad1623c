//! Runs the distribution's bonnie++: a large file, then many small ones.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `io` | a file is written by the byte, by chunks, rewritten, read, and sought in |
//! | `create` | small files are created, examined and deleted, in order and at random |
//!
//! The figures are reported outside any phase, under the usual names of tables. A note lists the tests that were too
//! quick to measure.

use std::path::PathBuf;

use super::program::{Program, ProgramError};
use super::reporter::Reporter;
use super::{Given, Result, Workload, WorkloadError, files, refused, share_of};
use benchmarks::bonnie::{TESTS, measured};
use benchmarks::number;

/// The version of the line of figures (`bon_csv2html.1`; bonnie++ 1.98 and 2.00).
const FORMAT: &str = "1.98";
/// The number of figures in such a line.
const FIELDS: usize = 50;
pub struct Options {
    directory: PathBuf,
    /// The file's size in percent of the machine's memory.
    size: f64,
    chunk: u64,
    /// The part of the file that is written by the byte, in MiB.
    characters: u64,
    /// The number of small files, in units of 1024.
    files: u64,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            size: given.above_zero("size")?,
            chunk: given.value("chunk")?,
            characters: given.value("characters")?,
            files: given.value("files")?,
            memory: given.value("memory")?,
        };
        if !(256..=1 << 20).contains(&found.chunk) || !found.chunk.is_power_of_two() {
            let why = "a power of two from 256 bytes to 1 MiB";
            return Err(refused("chunk", found.chunk, why));
        }
        match found.mib() {
            0 => {
                let why = format!("that is no MiB, in percent of {} bytes", found.memory);
                Err(refused("size", found.size, why))
            }
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let mut results = Vec::new();
        for (phase, arguments) in self.parts() {
            files::drop_caches()?;
            reporter.phase(phase)?;
            let output = self.bonnie(arguments).run()?;
            results.extend(figures(&output.text).map_err(|problem| ProgramError::Garbage {
                program: "bonnie++".into(),
                problem,
            })?);
            reporter.phase("")?;
        }
        if results.is_empty() {
            return Err(WorkloadError::Child("bonnie++ was given nothing to do".into()));
        }
        report(&results, reporter)
    }
}

impl Options {
    /// The file's size in MiB.
    fn mib(&self) -> u64 {
        share_of(self.memory, self.size) >> 20
    }

    /// The arguments of the two parts. Each skips the tests of the other.
    fn parts(&self) -> [(&'static str, [String; 3]); 2] {
        let file = format!("{}:{}", self.mib(), self.chunk);
        [
            ("io", ["-s".into(), file, "-n0".into()]),
            ("create", ["-s".into(), "0".into(), format!("-n{}", self.files)]),
        ]
    }

    /// The program for a part. It runs as root, ignores the amount of memory, and seeks to the same places each time:
    /// the default seed of its random numbers is the clock.
    fn bonnie(&self, part: [String; 3]) -> Program {
        let program = Program::new("bonnie++").args(["-q", "-u0:0", "-r0", "-z1"]);
        let program = program.args([format!("-f{}", self.characters)]).args(part);
        program.args(["-d"]).args([&self.directory])
    }
}

fn report(tests: &[Test], reporter: &mut Reporter) -> Result<()> {
    for Test { name, label, rate, cpu, latency } in tests {
        reporter.labelled("latency", label, *latency)?;
        if let Some(rate) = rate {
            reporter.labelled(name, "", *rate)?;
        }
        if let Some(cpu) = cpu {
            reporter.labelled("CPU", label, *cpu)?;
        }
    }
    remarks(tests).iter().try_for_each(|remark| reporter.note(remark))
}

/// Notes on missing figures, and on figures that look wrong but are not.
fn remarks(tests: &[Test]) -> Vec<String> {
    let quick = tests.iter().filter(|test| test.rate.is_none()).map(|test| test.name.to_owned());
    let above = tests.iter().filter_map(|test| {
        let percent = test.cpu.filter(|&percent| percent > 100.0)?;
        Some(format!("{} {percent} %", test.name))
    });
    let said = [
        (model::NoteKind::TooQuick.head(), quick.collect::<Vec<_>>()),
        (
            "more CPU time than elapsed time, because bonnie++ adds up several processes: ",
            above.collect(),
        ),
    ];
    let said = said.into_iter().filter(|(_, names)| !names.is_empty());
    said.map(|(what, names)| format!("{what}{}", names.join(", "))).collect()
}

/// The results of a test of bonnie++.
#[derive(Clone, Debug, PartialEq)]
struct Test {
    /// The metric of the rate.
    name: &'static str,
    /// The label of latency and CPU time.
    label: &'static str,
    /// KiB or operations per second; `None` if the test was too quick to measure it.
    rate: Option<f64>,
    /// CPU time in percent; `None` if the test was too quick to measure it.
    cpu: Option<f64>,
    /// The longest latency of a call, in microseconds.
    latency: f64,
}

/// Reads the line of figures, without the tests that were skipped. The error says why there is no such line, or which
/// figure cannot be read.
fn figures(text: &str) -> Result<Vec<Test>, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err("not one line".into());
    };
    let fields: Vec<&str> = line.split(',').take(FIELDS + 1).collect();
    if fields[0] != FORMAT {
        return Err(format!("figures of the format `{}`, not {FORMAT}", guest::cut(fields[0], 20)));
    }
    if fields.len() != FIELDS {
        return Err(format!("not {FIELDS} figures"));
    }
    let mut tests = Vec::new();
    for benchmarks::bonnie::Test { name, label, rate, latency, .. } in TESTS {
        let [rate, cpu, latency] = [fields[rate], fields[rate + 1], fields[latency]];
        if [rate, cpu, latency].iter().all(|field| field.is_empty()) {
            continue;
        }
        let test = || {
            let (rate, cpu) = (measured(rate)?, measured(cpu)?);
            Some(Test { name, label, rate, cpu, latency: microseconds(latency)? })
        };
        let wrong =
            || guest::cut(&format!("{name}: `{rate}`, `{cpu}`, `{latency}`"), 100).to_owned();
        tests.push(test().ok_or_else(wrong)?);
    }
    Ok(tests)
}

/// Microseconds of a time such as `27128us`, `168ms` or `2s`.
fn microseconds(field: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (number_of, unit) =
        units.iter().find_map(|(suffix, unit)| Some((field.strip_suffix(suffix)?, unit)))?;
    Some(number(number_of)? * unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::{manifest, options};

    /// Printed by version 2.00a with `-s 128 -n 2:1000:10:4`.
    const ALL: &str = "1.98,2.00a,vm,1,1795277408,128M,,8192,5,1153,34,177225,34,+++++,+++,2263,\
        44,+++++,+++,11292,117,2,1000,10,,4,+++++,+++,+++++,+++,393,5,1655,21,+++++,+++,555,9,\
        27128us,20191us,10658us,32866us,12960us,86590us,16306us,12249us,168ms,16805us,4740us,\
        19519us\n";
    /// Printed with `-s 2M -n 0 -f0`: neither small files nor single bytes.
    const LARGE: &str = "\n1.98,2.00a,vm,1,1795278872,2M,,8192,5,,,+++++,+++,+++++,+++,,,+++++,+++,\
        +++++,+++,,,,,,,,,,,,,,,,,,,351us,183us,,12us,32423us,,,,,,\n";

    #[test]
    fn the_manifest_gives_options_and_declares_what_is_reported() {
        let (manifest, _) = manifest("bonnie");
        let options: Options = options("bonnie", &[]).unwrap();
        let commands = options.parts().map(|(_, part)| {
            let program = options.bonnie(part);
            let words = program.command().get_args().map(|word| word.to_string_lossy());
            words.collect::<Vec<_>>().join(" ")
        });
        let expected = ["-s 4096:8192 -n0", "-s 0 -n16"]
            .map(|part| format!("-q -u0:0 -r0 -z1 -f2 {part} -d /mnt/disk0"));
        assert_eq!(commands, expected);
        let declared: Vec<_> = manifest.metrics.iter().map(|metric| &*metric.name).collect();
        let rates = TESTS.iter().map(|test| test.name);
        let reported: Vec<_> = ["latency"].into_iter().chain(rates).chain(["CPU"]).collect();
        assert_eq!(declared, reported);
    }

    #[test]
    fn all_figures_are_read() {
        let tests = figures(ALL).unwrap();
        assert_eq!(tests.len(), 12);
        let of = |name: &str| tests.iter().find(|test| test.name == name).unwrap().clone();
        let test = |name, label, rate, cpu, latency| Test { name, label, rate, cpu, latency };
        // bonnie++'s own table has 1153k 34 %, 173m (177225 / 1024) 34 %, 11292 117 %.
        let block = test("SeqOut block", "SeqOut:block", Some(177_225.0), Some(34.0), 20_191.0);
        assert_eq!(of("SeqOut block"), block);
        let seeks = test("Random seeks", "Random:seeks", Some(11_292.0), Some(117.0), 86_590.0);
        assert_eq!(of("Random seeks"), seeks);
        let read = test("SeqIn block", "SeqIn:block", None, None, 12_960.0);
        assert_eq!(of("SeqIn block"), read);
        let deleted = test("SeqCreate del", "SeqCreate:del", Some(393.0), Some(5.0), 168_000.0);
        assert_eq!(of("SeqCreate del"), deleted);
        assert_eq!(of("RandCreate del").latency, 19_519.0);
    }

    #[test]
    fn quick_tests_and_high_cpu_times_are_noted() {
        let remarks = remarks(&figures(ALL).unwrap());
        let above = "more CPU time than elapsed time, because bonnie++ adds up several processes: \
                     Random seeks 117 %";
        assert!(remarks[0].starts_with("too quick to be measured: SeqOut rewrite, "));
        assert_eq!(remarks[1..], [above]);
        assert_eq!(super::remarks(&[]), [""; 0]);
    }

    #[test]
    fn skipped_tests_are_left_out() {
        let tests = figures(LARGE).unwrap();
        let names: Vec<_> = tests.iter().map(|test| test.name).collect();
        assert_eq!(names, ["SeqOut block", "SeqOut rewrite", "SeqIn block", "Random seeks"]);
        assert!(tests.iter().all(|test| test.rate.is_none()));
    }

    #[test]
    fn other_texts_are_errors() {
        for text in ["", "usage:\nbonnie++ [-d scratch-dir]\n", &ALL.repeat(2)] {
            assert_eq!(figures(text), Err("not one line".into()));
        }
        let error = figures(&ALL.replace("1.98", "1.03e")).unwrap_err();
        assert_eq!(error, "figures of the format `1.03e`, not 1.98");
        for text in [ALL.replace(",19519us", ""), ALL.replace("19519us", "19519us,1us")] {
            assert_eq!(figures(&text), Err("not 50 figures".into()));
        }
        for (figure, wrong) in [("177225", "1e5"), ("177225", "-1"), ("27128us", "27128")] {
            let error = figures(&ALL.replace(figure, wrong)).unwrap_err();
            assert!(error.starts_with("SeqOut ") && error.contains(wrong), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(
            text in ".{0,300}",
            fields in prop::collection::vec("[0-9.+mus]{0,8}", FIELDS - 1),
        ) {
            let _ = figures(&text);
            for test in figures(&format!("{FORMAT},{}", fields.join(","))).unwrap_or_default() {
                prop_assert!(test.latency.is_finite());
                prop_assert!(test.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0));
            }
        }
    }
}
