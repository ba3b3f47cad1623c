//! The built-in workloads: one file, or directory, each. `WORKLOAD [OPTION...]` runs one; it
//! reports by the metric protocol, as a program of anybody's own would.

mod autonuma;
mod bonnie;
mod fault;
mod files;
mod nas;
mod pagealloc;
mod paralleldd;
mod pgbench;
pub mod program;
mod reporter;
mod stutter;
mod tiobench;
mod truncate;
mod xfsrepair;

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::num::{ParseFloatError, ParseIntError};
use std::process::ExitCode;
use std::str::FromStr;

use crate::reason;

/// Why a workload failed. The agent records what is printed of it.
#[derive(Debug, thiserror::Error)]
enum WorkloadError {
    #[error("{0}")]
    Arguments(String),
    #[error("this machine has {nodes} NUMA node: {program} needs 2 or more")]
    Nodes { nodes: usize, program: &'static str },
    #[error("{what}: {}", reason(.error))]
    Io { what: String, error: io::Error },
    #[error("{0}")]
    Child(String),
    #[error("{name} does not count: {why}")]
    Verification { name: String, why: String },
    #[error(transparent)]
    Program(#[from] program::ProgramError),
}

impl From<lexopt::Error> for WorkloadError {
    fn from(error: lexopt::Error) -> Self {
        Self::Arguments(error.to_string())
    }
}

/// Names what was being done when an operation failed.
trait While<T> {
    fn while_(self, what: impl Into<String>) -> Result<T, WorkloadError>;
}

impl<T> While<T> for io::Result<T> {
    fn while_(self, what: impl Into<String>) -> Result<T, WorkloadError> {
        self.map_err(|error| WorkloadError::Io { what: what.into(), error })
    }
}

/// Gives `set` each option and its value; what it does not know it answers with false.
fn options(
    mut arguments: lexopt::Parser,
    mut set: impl FnMut(&str, &str) -> Result<bool, WorkloadError>,
) -> Result<(), WorkloadError> {
    while let Some(argument) = arguments.next()? {
        let lexopt::Arg::Long(name) = argument else {
            return Err(argument.unexpected().into());
        };
        let name = name.to_owned();
        let value = arguments.value()?.to_string_lossy().into_owned();
        if !set(&name, &value)? {
            return Err(WorkloadError::Arguments(format!("--{name} is not an option")));
        }
    }
    Ok(())
}

/// The value of an option.
fn value_of<T: FromStr<Err: Display + 'static>>(
    name: &str,
    value: &str,
) -> Result<T, WorkloadError> {
    value.parse().map_err(|why: T::Err| {
        // The library speaks of digits and literals.
        let error: &dyn Any = &why;
        let why = match () {
            () if error.is::<ParseIntError>() => "not a whole number of its range".to_owned(),
            () if error.is::<ParseFloatError>() => "not a number".to_owned(),
            () => why.to_string(),
        };
        WorkloadError::Arguments(format!("--{name} {value}: {why}"))
    })
}

/// The value of an option that is a share of the machine's memory in percent, or another amount
/// that cannot be none.
fn above_zero(name: &str, value: &str) -> Result<f64, WorkloadError> {
    match value_of(name, value)? {
        number if number > 0.0 && number <= MOST => Ok(number),
        _ => Err(WorkloadError::Arguments(format!("--{name} {value}: above 0, at most {MOST}"))),
    }
}

/// So many percent of the machine's memory, in bytes.
fn share_of(memory: u64, percent: f64) -> u64 {
    (memory as f64 * percent / 100.0) as u64
}

/// The values of an option that takes several, with commas between them.
fn list<T: FromStr<Err: Display + 'static>>(
    name: &str,
    value: &str,
) -> Result<Vec<T>, WorkloadError> {
    value.split(',').map(|value| value_of(name, value.trim())).collect()
}

/// The largest amount ([`above_zero`]): more is a slip.
const MOST: f64 = 1e5;

/// What runs a workload, or a part of one.
type Main = fn(lexopt::Parser) -> Result<(), WorkloadError>;

/// The workloads by name.
const WORKLOADS: &[(&str, Main)] = &[
    ("autonuma", autonuma::main),
    ("bonnie", bonnie::main),
    ("fault", fault::main),
    ("nas", nas::main),
    ("pagealloc", pagealloc::main),
    ("paralleldd", paralleldd::main),
    ("pgbench", pgbench::main),
    ("stutter", stutter::main),
    ("tiobench", tiobench::main),
    ("truncate", truncate::main),
    ("xfsrepair", xfsrepair::main),
];
/// Parts of workloads that are processes of their own.
const PARTS: &[(&str, Main)] = &[
    (autonuma::PROCESS, autonuma::process_main),
    (stutter::COPY, stutter::copy_main),
    (stutter::HOG, stutter::hog_main),
];

/// Runs the workload that the command line names.
pub fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    let name = arguments.value().map_err(WorkloadError::from);
    match name.and_then(|name| named(&name.to_string_lossy())?(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn named(name: &str) -> Result<Main, WorkloadError> {
    let mut all = WORKLOADS.iter().chain(PARTS);
    all.find(|(known, _)| *known == name).map(|(_, main)| *main).ok_or_else(|| {
        let known: Vec<&str> = WORKLOADS.iter().map(|(name, _)| *name).collect();
        WorkloadError::Arguments(format!("{name} is not a workload: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use flight::job::WORKLOADS_PATH;
    use model::Manifest;

    /// A built-in manifest, and its command's arguments after the workload's name, as for a machine
    /// with 4 CPUs, 2 nodes, 2 GiB and a disk.
    pub fn manifest(name: &str) -> (Manifest, Vec<String>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
        let text = fs::read_to_string(path.with_extension("toml")).unwrap();
        let manifest: Manifest = toml::from_str(&text).unwrap();
        let mut parameters = manifest.parameters.clone();
        let machine = [
            ("cpus", "4"),
            ("nodes", "2"),
            ("memory", "2147483648"),
            ("disk", "/mnt/disk0"),
            ("program", ""),
        ];
        for (name, value) in machine {
            assert_eq!(parameters.insert(name.into(), value.into()), None);
        }
        let replace = |word: &String| {
            let mut word = word.clone();
            for (name, value) in &parameters {
                word = word.replace(&format!("{{{name}}}"), value);
            }
            word
        };
        let command: Vec<String> = manifest.command.iter().map(replace).collect();
        let [program, workload, arguments @ ..] = command.as_slice() else { panic!("{command:?}") };
        assert_eq!((program.as_str(), workload.as_str()), (WORKLOADS_PATH, name));
        let arguments = arguments.to_vec();
        (manifest, arguments)
    }

    #[test]
    fn values_that_are_none_are_told_in_plain_words() {
        let told =
            |name: &str, value: &str| super::above_zero(name, value).unwrap_err().to_string();
        assert_eq!(told("size", "abc"), "--size abc: not a number");
        for wrong in ["0", "-1", "nan", "inf", "1e6"] {
            assert_eq!(told("size", wrong), format!("--size {wrong}: above 0, at most 100000"));
        }
        assert_eq!(super::above_zero("size", "0.5").unwrap(), 0.5);
        let error = super::list::<u32>("threads", "1,-2").unwrap_err().to_string();
        assert_eq!(error, "--threads -2: not a whole number of its range");
    }

    #[test]
    fn manifests_leave_nothing_open() {
        for (name, _) in super::WORKLOADS {
            let (manifest, arguments) = manifest(name);
            assert_eq!(manifest.name, *name);
            assert!(arguments.iter().all(|word| !word.contains('{')), "{arguments:?}");
        }
    }
}
