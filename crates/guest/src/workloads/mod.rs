//! The built-in workloads, a file or directory each. `WORKLOAD [OPTION...]` runs one, which reports by the
//! metric protocol like a user's own program.

mod autonuma;
mod bonnie;
mod fault;
mod files;
mod mprotect;
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
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use flight::job::WORKLOADS_PATH;
use model::Machine;

use crate::reason;

/// Why a workload failed. The agent records the printed message.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// An option has an invalid value.
    #[error(transparent)]
    Option(#[from] Refused),
    /// Another error of the command line.
    #[error("{0}")]
    Arguments(String),
    /// The machine has too few NUMA nodes.
    #[error("this machine has {nodes} NUMA node, but {program} needs 2 or more")]
    Nodes {
        /// The number of nodes.
        nodes: usize,
        /// The program that needs more.
        program: &'static str,
    },
    /// An operation failed.
    #[error("{what}: {}", reason(.error))]
    Io {
        /// The failed operation or its object.
        what: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// A process that does part of the work failed.
    #[error("{0}")]
    Child(String),
    /// A result is wrong.
    #[error("the result of {name} cannot be used: {why}")]
    Verification {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A program of the distribution failed.
    #[error(transparent)]
    Program(#[from] program::ProgramError),
}

/// An option of a workload has an invalid value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{option} {value}: {why}")]
pub struct Refused {
    /// The option's name.
    pub option: String,
    /// The value, or the wrong one of several.
    pub value: String,
    /// The allowed values.
    pub why: String,
}

impl From<lexopt::Error> for WorkloadError {
    fn from(error: lexopt::Error) -> Self {
        Self::Arguments(error.to_string())
    }
}

/// Adds the failed operation to an error.
trait While<T> {
    fn while_(self, what: impl Into<String>) -> Result<T, WorkloadError>;
}

impl<T> While<T> for io::Result<T> {
    fn while_(self, what: impl Into<String>) -> Result<T, WorkloadError> {
        self.map_err(|error| WorkloadError::Io { what: what.into(), error })
    }
}

/// Passes each option and its value to `set`, which returns false for an unknown option.
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
        // The standard library's messages mention digits and literals.
        let error: &dyn Any = &why;
        let why = match () {
            () if error.is::<ParseFloatError>() => "not a number".to_owned(),
            () => match error.downcast_ref().map(ParseIntError::kind) {
                None => why.to_string(),
                Some(IntErrorKind::PosOverflow) => "too large".to_owned(),
                Some(IntErrorKind::Zero) => "1 or more".to_owned(),
                Some(_) => "not a whole number, 0 or more".to_owned(),
            },
        };
        refused(name, value, why)
    })
}

/// The value of an option that must be in this range.
fn within<T: FromStr + PartialOrd + Display>(
    name: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<T, WorkloadError> {
    let number = value.parse().ok().filter(|number| (&least..=&most).contains(&number));
    number.ok_or_else(|| refused(name, value, format!("a number from {least} to {most}")))
}

/// The values of an option with a list of values. Each value must be in this range.
fn list_within<T: FromStr + PartialOrd + Display + Copy>(
    name: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<Vec<T>, WorkloadError> {
    value.split(',').map(|value| within(name, value.trim(), least, most)).collect()
}

fn refused(option: &str, value: impl Display, why: impl Into<String>) -> WorkloadError {
    Refused { option: option.to_owned(), value: value.to_string(), why: why.into() }.into()
}

/// The value of an option in percent of the machine's memory, or another amount above zero.
fn above_zero(name: &str, value: &str) -> Result<f64, WorkloadError> {
    match value_of(name, value)? {
        number if number > 0.0 && number <= MOST => Ok(number),
        _ => Err(refused(name, value, format!("above 0, at most {MOST}"))),
    }
}

/// `percent` of the machine's memory, in bytes.
fn share_of(memory: u64, percent: f64) -> u64 {
    (memory as f64 * percent / 100.0) as u64
}

/// The values of an option with a list of values, separated by commas.
fn list<T: FromStr<Err: Display + 'static>>(
    name: &str,
    value: &str,
) -> Result<Vec<T>, WorkloadError> {
    value.split(',').map(|value| value_of(name, value.trim())).collect()
}

/// The largest amount ([`above_zero`]). Larger ones are typing errors.
const MOST: f64 = 1e5;

/// Checks that `directory` has a file system on a disk for a workload that writes files, with space for so
/// many bytes. `option` and its value determine that number. The file system's own overhead is not known in
/// advance.
fn fits_on_disk(
    (option, value): (&str, impl Display),
    (directory, bytes): (&Path, u64),
    machine: &Machine,
) -> Result<(), WorkloadError> {
    let mut disks = machine.disks.iter().enumerate();
    let disk = disks.find(|(number, disk)| Path::new(&disk.place(*number)) == directory);
    let Some((number, disk)) = disk else { return Ok(()) };
    let Some(format) = &disk.format else {
        let why = format!("it needs a disk with a file system, but disk {number} has none");
        return Err(WorkloadError::Arguments(why));
    };
    if bytes <= disk.size.0 || format.options.contains("compress") {
        return Ok(());
    }
    let why = format!(
        "that takes {} MiB of disk {number}, which has {}",
        bytes.div_ceil(1 << 20),
        disk.size.0 >> 20
    );
    Err(refused(option, value, why))
}

/// The main function of a workload, or of a part of one.
type Main = fn(lexopt::Parser) -> Result<(), WorkloadError>;
/// A function that checks for values that a workload would reject, or that cannot work on a machine.
type Check = fn(lexopt::Parser, &Machine) -> Result<(), WorkloadError>;

macro_rules! workloads {
    ($($name:ident)*) => {
        /// The workloads by name.
        const WORKLOADS: &[(&str, Main)] = &[$((stringify!($name), $name::main)),*];
        /// Their checks, in a separate table so that the host, which only calls these, does not link the
        /// workloads.
        const CHECKS: &[(&str, Check)] = &[$((stringify!($name), $name::check)),*];
    };
}
workloads! {
    autonuma bonnie fault mprotect nas pagealloc paralleldd pgbench stutter tiobench truncate xfsrepair
}
/// Parts of workloads that run as separate processes.
const PARTS: &[(&str, Main)] = &[
    (autonuma::PROCESS, autonuma::process_main),
    (stutter::COPY, stutter::copy_main),
    (stutter::HOG, stutter::hog_main),
];

/// Parses the command line of a built-in workload like the workload itself does, and compares it with the
/// machine. Other programs are not checked.
///
/// # Errors
/// The workload's own error.
pub fn check(command: &[String], machine: &Machine) -> Result<(), WorkloadError> {
    match command {
        [program, name, arguments @ ..] if program == WORKLOADS_PATH => {
            let check = named(name, CHECKS)?;
            check(lexopt::Parser::from_args(arguments), machine)
        }
        _ => Ok(()),
    }
}

/// Runs the workload that the command line names.
pub fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    let name = arguments.value().map_err(WorkloadError::from);
    let main = name.and_then(|name| {
        let name = name.to_string_lossy();
        named(&name, PARTS).or_else(|_| named(&name, WORKLOADS))
    });
    match main.and_then(|main| main(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The element of a table for the workload with this name.
fn named<T: Copy>(name: &str, table: &[(&str, T)]) -> Result<T, WorkloadError> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, it)| *it).ok_or_else(|| {
        let known: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        WorkloadError::Arguments(format!("{name} is not a workload: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use flight::job::WORKLOADS_PATH;
    use model::{Accel, Bytes, Disk, DiskKind, FileSystem, Format, Machine, Manifest, Topology};

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
    fn invalid_values_are_described_in_plain_words() {
        let told =
            |name: &str, value: &str| super::above_zero(name, value).unwrap_err().to_string();
        assert_eq!(told("size", "abc"), "--size abc: not a number");
        for wrong in ["0", "-1", "nan", "inf", "1e6"] {
            assert_eq!(told("size", wrong), format!("--size {wrong}: above 0, at most 100000"));
        }
        assert_eq!(super::above_zero("size", "0.5").unwrap(), 0.5);
        let error = super::list::<u32>("threads", "1,-2").unwrap_err().to_string();
        assert_eq!(error, "--threads -2: not a whole number, 0 or more");
        let error = super::list::<u32>("threads", "5000000000").unwrap_err().to_string();
        assert_eq!(error, "--threads 5000000000: too large");
        let error = super::list_within("threads", "1, 0,2", 1, 9).unwrap_err().to_string();
        assert_eq!(error, "--threads 0: a number from 1 to 9");
    }

    #[test]
    fn commands_are_checked_like_the_workloads_read_them() {
        for (name, _) in super::WORKLOADS {
            let machine = machine(8192, FileSystem::Xfs);
            assert!(super::check(&command(name, &[]), &machine).is_ok(), "{name}");
        }
        let told = |name: &str, changes: &[(&str, &str)]| {
            let refused = super::check(&command(name, changes), &machine(8192, FileSystem::Ext4));
            refused.unwrap_err().to_string()
        };
        for (name, option, value, why) in [
            ("autonuma", "share", "50", "both processes have to fit on one node"),
            ("autonuma", "interval", "0", "1 or more"),
            ("bonnie", "chunk", "1000", "a power of two from 256"),
            ("bonnie", "size", "401", "that takes 8212 MiB of disk 0, which has 8192"),
            ("fault", "fault", "sneeze", "panic, hang, exit, garbage or sleep"),
            ("mprotect", "share", "91", "at most 90"),
            ("nas", "class", "E", "not one of S, W, A, B, C, D"),
            ("nas", "benchmarks", "ft", "not one of ep, is, cg, mg, lu"),
            ("nas", "threads", "5000", "from 1 to 4096"),
            ("pagealloc", "cpu", "4", "the machine has CPUs 0 to 3"),
            ("pagealloc", "orders", "0,11", "from 0 to 10"),
            ("paralleldd", "readers", "1,x", "a number from 1 to 4096"),
            ("paralleldd", "size", "500", "that takes 10240 MiB of disk 0, which has 8192"),
            ("pgbench", "transactions", "write", "read-only or read-write"),
            ("pgbench", "size", "500", "of disk 0, which has 8192"),
            ("stutter", "hog", "95", "the hog and a probe of 128 MiB"),
            ("stutter", "file", "201", "that takes 8233 MiB of disk 0, which has 8192"),
            ("tiobench", "random", "15", "an operation for each of 16 threads"),
            ("tiobench", "size", "401", "that takes 8213 MiB of disk 0, which has 8192"),
            ("truncate", "rounds", "0", "from 1 to"),
            ("truncate", "files", "100001", "from 1 to 100000"),
            ("xfsrepair", "size", "17592186044416", "ext4 has files below 16 TiB: use xfs"),
            ("xfsrepair", "ag-stride", "none", "a whole number, such as -1"),
        ] {
            let told = told(name, &[(option, value)]);
            let wrong = value.rsplit(',').next().unwrap();
            assert!(told.starts_with(&format!("--{option} {wrong}: ")), "{name}: {told}");
            assert!(told.contains(why), "{name}: {told}");
        }
        let mut raw = machine(8192, FileSystem::Ext4);
        raw.disks[0].format = None;
        let on_raw = command("truncate", &[("directory", "/dev/disk0")]);
        let told = super::check(&on_raw, &raw).unwrap_err().to_string();
        assert_eq!(told, "it needs a disk with a file system, but disk 0 has none");
        let mut compressed = machine(64, FileSystem::Btrfs);
        compressed.disks[0].format.as_mut().unwrap().options = "compress=zstd".into();
        assert!(super::check(&command("bonnie", &[]), &compressed).is_ok());
        assert!(super::check(&["/bin/anything".into(), "--at-all".into()], &raw).is_ok());
    }

    /// The command of a manifest, with other values of some options or words.
    fn command(name: &str, changes: &[(&str, &str)]) -> Vec<String> {
        let mut arguments = manifest(name).1;
        for (option, value) in changes {
            let before = arguments.iter().position(|word| *word == format!("--{option}"));
            let place = before.map_or(0, |place| place + 1);
            arguments[place] = (*value).to_owned();
        }
        [WORKLOADS_PATH, name].map(String::from).into_iter().chain(arguments).collect()
    }

    /// The machine of [`manifest`], with a disk of so many MiB.
    fn machine(disk: u64, filesystem: FileSystem) -> Machine {
        let (mount, options) = ("/mnt/disk0".into(), String::new());
        let format = Format { filesystem, mkfs: Vec::new(), mount, options, digest: None };
        let size = Bytes::mib(disk);
        Machine {
            topology: Topology::even(4, Bytes::mib(2048), 2).unwrap(),
            disks: vec![Disk { kind: DiskKind::VirtioBlk, size, format: Some(format) }],
            accel: Accel::Tcg,
            ..Machine::default()
        }
    }

    #[test]
    fn manifests_have_no_open_placeholders() {
        for (name, _) in super::WORKLOADS {
            let (manifest, arguments) = manifest(name);
            assert_eq!(manifest.name, *name);
            assert!(arguments.iter().all(|word| !word.contains('{')), "{arguments:?}");
            // Errors name the parameter after its option.
            for pair in manifest.command.windows(2) {
                if let Some(option) = pair[0].strip_prefix("--") {
                    let placeholder = pair[1].replace('_', "-");
                    let own = placeholder == format!("{{{option}}}");
                    assert!(own || pair[1] == "{disk}", "{pair:?}");
                }
            }
        }
    }
}
