//! Runs programs of the NAS Parallel Benchmarks that the user has built. The figures that they print count if they
//! verified their results.

use std::fmt;
use std::path::{Path, PathBuf};

use benchmarks::nas;

use super::super::program::{Program, ProgramError};
use super::super::reporter::Reporter;
use super::super::{Result, WorkloadError};

/// The longest name of a phase (`flight::protocol`).
const MAX_NAME: usize = flight::protocol::MAX_NAME;

/// The report that a program prints at its end.
#[derive(Debug, PartialEq)]
struct Report {
    /// The benchmark and its class, such as `cg.C`.
    name: String,
    /// The time in seconds.
    seconds: f64,
    /// Million operations a second.
    rate: f64,
}

/// Why a program's output cannot be used.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    Missing(&'static str),
    Strange(&'static str),
    Unverified(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => write!(f, "it does not print `{what}`"),
            Self::Strange(what) => write!(f, "its value of `{what}` is invalid"),
            Self::Unverified(word) => write!(f, "it did not verify its result: {word}"),
        }
    }
}

/// Runs the programs one after the other. If one of several programs fails, a note says so and the figures of the
/// others are reported. A failure is an error if there is only one program, or if none succeeds.
pub fn run(programs: &[PathBuf], threads: usize, reporter: &mut Reporter) -> Result<()> {
    let mut failures = Vec::new();
    for program in programs {
        match run_one(program, threads, reporter) {
            // The reporter failed: the agent no longer reads.
            Err(error @ WorkloadError::Io { .. }) => return Err(error),
            Err(error) => failures.push(error),
            Ok(()) => {}
        }
    }
    if failures.len() < programs.len() {
        for failure in failures {
            reporter.note(&failure.to_string())?;
        }
        return Ok(());
    }
    match failures.len() {
        0 | 1 => failures.pop().map_or(Ok(()), Err),
        _ => {
            let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
            Err(WorkloadError::Child(told.join("; ")))
        }
    }
}

/// Runs a program in a single phase, because it does not report its parts.
fn run_one(program: &Path, threads: usize, reporter: &mut Reporter) -> Result<()> {
    reporter.phase(&phase(program))?;
    let output = Program::new(program).env("OMP_NUM_THREADS", threads.to_string()).run();
    let output = output.map_err(|error| match error {
        ProgramError::Start { .. } => WorkloadError::Child(format!(
            "{error}; the guest has no C library: is it linked statically?"
        )),
        error => error.into(),
    })?;
    reporter.phase("")?;
    let Report { name, seconds, rate } = parse(&output.text).map_err(|why| {
        let name = program.display().to_string();
        WorkloadError::Verification { name, why: why.to_string() }
    })?;
    reporter.note(&format!("{name}: threads {threads}, {rate:.2} Mop/s, verified by itself"))?;
    reporter.sample(&name, seconds)?;
    reporter.sample(&format!("User {name}"), output.spent.user)?;
    reporter.sample(&format!("System {name}"), output.spent.system)
}

/// The name of the program's phase: its file name without characters that a phase cannot have.
fn phase(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name = name.chars().map(|letter| if plain(letter) { letter } else { '-' });
    name.take(MAX_NAME).collect()
}

/// Reads the report at the end of these programs' output ([`benchmarks::nas`]).
fn parse(output: &str) -> Result<Report, Unusable> {
    let end = "Benchmark Completed";
    let titled = |line: &'_ str| {
        let (title, _) = line.split_once(end)?;
        Some(title.trim().to_ascii_lowercase())
    };
    let benchmark = output.lines().find_map(titled).ok_or(Unusable::Missing(end))?;
    let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !(1..=4).contains(&benchmark.len()) || !letters(&benchmark) {
        return Err(Unusable::Strange(end));
    }
    let field = |name: &'static str| nas::field(output, name).ok_or(Unusable::Missing(name));
    let number = |name: &'static str| {
        let value = field(name)?.parse::<f64>();
        let value = value.ok().filter(|value| value.is_finite() && *value >= 0.0);
        value.ok_or(Unusable::Strange(name))
    };
    // The C++ programs of GMAP use another name.
    let class = field("Class").or_else(|missing| field("class_npb").map_err(|_| missing))?;
    if class.len() != 1 || !letters(class) {
        return Err(Unusable::Strange("Class"));
    }
    let verification = field("Verification")?;
    if verification != "SUCCESSFUL" {
        return Err(Unusable::Unverified(verification.chars().take(MAX_NAME).collect()));
    }
    let name = format!("{benchmark}.{}", class.to_ascii_uppercase());
    Ok(Report { name, seconds: number(nas::TIME)?, rate: number("Mop/s total")? })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::read_to_string;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// The end of the output of NPB 3.4's `cg.S.x`.
    const OUTPUT: &str = "
   15       0.13235507E-14     8.5971775078648
 Benchmark completed
 VERIFICATION SUCCESSFUL
 Zeta is     8.5971775078648E+00
 Error is    1.0330880937196E-15


 CG Benchmark Completed.
 Class           =                        S
 Size            =                     1400
 Iterations      =                       15
 Time in seconds =                     0.05
 Total threads   =                        2
 Avail threads   =                        2
 Mop/s total     =                  1332.34
 Mop/s/thread    =                   666.17
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                    3.4.2
";

    #[test]
    fn reports_are_read() {
        let report = Report { name: "cg.S".into(), seconds: 0.05, rate: 1332.34 };
        assert_eq!(parse(OUTPUT).as_ref(), Ok(&report));
        assert_eq!(parse(&OUTPUT.replace("Class    ", "class_npb")), Ok(report));
    }

    #[test]
    fn unverified_results_do_not_count() {
        let told = |from: &str, to: &str| parse(&OUTPUT.replace(from, to)).unwrap_err().to_string();
        assert_eq!(
            told("      SUCCESSFUL", "    UNSUCCESSFUL"),
            "it did not verify its result: UNSUCCESSFUL"
        );
        assert_eq!(told("Verification", "V"), "it does not print `Verification`");
        assert_eq!(told("0.05", "-1"), "its value of `Time in seconds` is invalid");
        assert_eq!(told("1332.34", "NaN"), "its value of `Mop/s total` is invalid");
        assert_eq!(told("CG", "a b"), "its value of `Benchmark Completed` is invalid");
        assert_eq!(parse("").unwrap_err().to_string(), "it does not print `Benchmark Completed`");
    }

    /// Runs a script as the program, and returns the reported lines.
    fn lines(script: &str) -> Result<Vec<String>, String> {
        lines_of(&[("cg S.x", script)])
    }

    /// Runs several scripts as programs with these names.
    fn lines_of(scripts: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        // Another process writes the file. If this one did, a child that another test starts could hold the file
        // open, and a file that is open for writing cannot be executed.
        let write = r#"printf '#!/bin/sh\n%s' "$1" > "$0"; chmod 755 "$0""#;
        let programs = scripts.iter().map(|(name, script)| {
            let program = directory.path().join(name);
            let written = Command::new("sh").args(["-c", write]).arg(&program).arg(script).status();
            assert!(written.unwrap().success());
            program
        });
        let programs: Vec<PathBuf> = programs.collect();
        let path = directory.path().join("lines");
        let mut reporter = Reporter::to(File::create(&path).unwrap());
        run(&programs, 2, &mut reporter).map_err(|error| error.to_string())?;
        let text = read_to_string(File::open(&path).unwrap()).unwrap();
        Ok(text.lines().map(str::to_owned).collect())
    }

    #[test]
    fn a_program_is_run_with_its_threads() {
        let script = OUTPUT.replace("0.05", "$OMP_NUM_THREADS.5");
        let lines = lines(&format!("cat <<END\n{script}END\nhead -c 3000000 /dev/zero")).unwrap();
        assert_eq!(lines[..2], ["phase cg-S.x", "phase"]);
        assert_eq!(lines[3], "sample cg.S 2.500000");
        assert!(lines[4].starts_with("sample User cg.S 0."), "{lines:?}");
    }

    #[test]
    fn of_several_programs_the_verified_ones_count() {
        let script = |output: &str| format!("cat <<END\n{output}END\n");
        let cg = script(OUTPUT);
        let ft =
            script(&OUTPUT.replace("CG", "FT").replace("      SUCCESSFUL", "    UNSUCCESSFUL"));
        let lines = lines_of(&[("ft.S.x", &ft), ("cg.S.x", &cg), ("is.S.x", "exit 3")]).unwrap();
        let begin = |word: &str| {
            lines.iter().filter(|line| line.starts_with(word)).cloned().collect::<Vec<_>>()
        };
        assert_eq!(begin("phase "), ["phase ft.S.x", "phase cg.S.x", "phase is.S.x"]);
        assert_eq!(begin("sample cg.S "), ["sample cg.S 0.050000"]);
        assert_eq!(begin("sample ft"), [""; 0]);
        let notes = begin("note ");
        assert!(notes[1].contains("ft.S.x cannot be used: it did not verify its result: UNSUCC"));
        assert!(notes[2].contains("failed (exit status: 3)"), "{notes:?}");
        let none = lines_of(&[("ft.S.x", &ft), ("is.S.x", "exit 3")]).unwrap_err();
        assert!(none.contains("UNSUCCESSFUL; ") && none.contains("exit status: 3"), "{none}");
    }

    #[test]
    fn a_failing_program_is_quoted() {
        assert!(lines("exit 3").unwrap_err().contains("failed (exit status: 3)"));
        assert!(lines("kill -9 $$").unwrap_err().contains("signal: 9"));
        assert!(lines("echo hello").unwrap_err().contains("`Benchmark Completed`"));
        let mut reporter = Reporter::to(tempfile::tempfile().unwrap());
        let missing = run(&["/no/such".into()], 1, &mut reporter).unwrap_err().to_string();
        assert!(missing.contains("is it linked statically?"), "{missing}");
    }

    proptest! {
        #[test]
        fn any_output_is_read_without_panic(lines in prop::collection::vec(
            prop_oneof![
                "\\PC{0,30}",
                "( [A-Z]{2} Benchmark Completed|Class|Time in seconds|Mop/s total|Verification) *=? *[SUCEF0-9.e-]{0,12}"
            ], 0..12)
        ) {
            let _ = parse(&lines.join("\n"));
        }
    }
}
