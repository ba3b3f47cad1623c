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

use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use std::str::FromStr;

/// Why a workload failed. The agent records what is printed of it.
#[derive(Debug, thiserror::Error)]
enum WorkloadError {
    #[error("{0}")]
    Arguments(String),
    #[error("this machine has {nodes} NUMA node: {program} needs 2 or more")]
    Nodes { nodes: usize, program: &'static str },
    #[error("{what}: {error}")]
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
fn value_of<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, WorkloadError> {
    value.parse().map_err(|why| WorkloadError::Arguments(format!("--{name} {value}: {why}")))
}

/// The values of an option that takes several, with commas between them.
fn list<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<Vec<T>, WorkloadError> {
    value.split(',').map(|value| value_of(name, value.trim())).collect()
}

/// Runs the workload that the command line names.
pub fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    let result =
        arguments.value().map_err(WorkloadError::from).and_then(|name| match name.to_str() {
            Some("autonuma") => autonuma::main(arguments),
            Some(autonuma::PROCESS) => autonuma::process_main(arguments),
            Some("bonnie") => bonnie::main(arguments),
            Some("fault") => fault::main(arguments),
            Some("nas") => nas::main(arguments),
            Some("pagealloc") => pagealloc::main(arguments),
            Some("paralleldd") => paralleldd::main(arguments),
            Some("pgbench") => pgbench::main(arguments),
            Some("stutter") => stutter::main(arguments),
            Some(stutter::HOG) => stutter::hog_main(arguments),
            Some(stutter::COPY) => stutter::copy_main(arguments),
            Some("tiobench") => tiobench::main(arguments),
            Some("truncate") => truncate::main(arguments),
            Some("xfsrepair") => xfsrepair::main(arguments),
            _ => Err(WorkloadError::Arguments(format!(
                "{} is not a workload: autonuma, bonnie, fault, nas, pagealloc, paralleldd, pgbench, stutter, tiobench, truncate, xfsrepair",
                name.display()
            ))),
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
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
    fn manifests_leave_nothing_open() {
        for name in [
            "autonuma",
            "fault",
            "nas",
            "pagealloc",
            "paralleldd",
            "pgbench",
            "stutter",
            "tiobench",
            "truncate",
            "xfsrepair",
        ] {
            let (manifest, arguments) = manifest(name);
            assert_eq!(manifest.name, name);
            assert!(arguments.iter().all(|word| !word.contains('{')), "{arguments:?}");
        }
    }
}
