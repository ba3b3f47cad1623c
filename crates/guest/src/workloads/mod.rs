//! The built-in workloads: one file, or directory, each. `WORKLOAD [OPTION...]` runs one; it
//! reports by the metric protocol, as a program of anybody's own would.

mod autonuma;
mod fault;
mod reporter;

use std::io;
use std::process::ExitCode;

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

/// Runs the workload that the command line names.
pub fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    let result =
        arguments.value().map_err(WorkloadError::from).and_then(|name| match name.to_str() {
            Some("autonuma") => autonuma::main(arguments),
            Some(autonuma::PROCESS) => autonuma::process_main(arguments),
            Some("fault") => fault::main(arguments),
            _ => Err(WorkloadError::Arguments(format!(
                "{} is not a workload: autonuma, fault",
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
    /// with 4 CPUs, 2 nodes and 2 GiB.
    pub fn manifest(name: &str) -> (Manifest, Vec<String>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
        let text = fs::read_to_string(path.with_extension("toml")).unwrap();
        let manifest: Manifest = toml::from_str(&text).unwrap();
        let mut parameters = manifest.parameters.clone();
        for (name, value) in [("cpus", "4"), ("nodes", "2"), ("memory", "2147483648")] {
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
        for name in ["autonuma", "fault"] {
            let (manifest, arguments) = manifest(name);
            assert_eq!(manifest.name, name);
            assert!(arguments.iter().all(|word| !word.contains('{')), "{arguments:?}");
        }
    }
}
