//! How a command fails: error messages and exit codes.

use std::io;
use std::process::ExitCode;

use plan::file::{FileError, InputError};
use report::escape;
use store::Trouble;

use crate::output;

/// The host failed: disk, emulator, package archive.
pub const HOST_FAILED: u8 = 1;
/// The command line or the experiment file is wrong; clap uses the same code.
pub const USAGE: u8 = 2;
/// Done, but boots failed.
pub const BOOTS_FAILED: u8 = 3;
/// Two boots of exact mode with the same inputs differ.
pub const NOT_EXACT: u8 = 4;
/// Ended by Ctrl-C: 128 plus the signal's number, as in a shell.
pub const INTERRUPTED: i32 = 130;

/// The end of `faultline --help`.
pub const EXIT_CODES: &str = "Exit codes:
  0    done
  1    the host failed: disk, memory, emulator, package archive
  2    the command line or the experiment file is wrong, or names something that does not exist
  3    done, but boots of the experiment failed, in this run or before
  4    exact mode: two boots with the same inputs differ
  130  interrupted by Ctrl-C; finished boots are kept, and the same command continues";

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An experiment file is wrong.
    #[error(transparent)]
    File(#[from] Box<FileError>),
    /// The arguments are wrong. The message has the usage.
    #[error("{0}")]
    Arguments(String),
    /// The request is wrong, such as an unknown name or an impossible topology.
    #[error("{0}")]
    Usage(String),
    /// Standard output was closed by its reader, as `| head` does.
    #[error("standard output is closed")]
    OutputClosed,
    /// Two boots of exact mode with the same inputs differ.
    #[error("{0}")]
    NotExact(String),
    /// The host failed.
    #[error("{0}")]
    Host(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Host(error.to_string()),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        match error {
            InputError::File(error) => Self::File(error),
            InputError::Option(message) => Self::Usage(message),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        match &error {
            store::Error::Store {
                trouble:
                    Trouble::NoExperiment { .. } | Trouble::NoBoot(_) | Trouble::NameTaken { .. },
                ..
            } => Self::Usage(error.to_string()),
            _ => Self::Host(error.to_string()),
        }
    }
}

impl From<results::AnalysisError> for Failure {
    fn from(error: results::AnalysisError) -> Self {
        match error {
            results::AnalysisError::Store(error) => error.into(),
            other => {
                Self::Usage(other.to_string().lines().map(escape).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

impl From<lab::ReplayError> for Failure {
    fn from(error: lab::ReplayError) -> Self {
        match error {
            lab::ReplayError::Run(error) => error.into(),
            invalid @ lab::ReplayError::Invalid(_) => Self::Host(invalid.to_string()),
            other => Self::Usage(other.to_string()),
        }
    }
}

macro_rules! host_failures {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Host(error.to_string())
            }
        })*
    };
}

impl From<lab::RunError> for Failure {
    fn from(error: lab::RunError) -> Self {
        match error {
            lab::RunError::Store(error) => error.into(),
            error @ (lab::RunError::NotExact { .. } | lab::RunError::Changed { .. }) => {
                Self::NotExact(error.to_string())
            }
            error if error.is_the_users() => Self::Usage(error.to_string()),
            other => Self::Host(other.to_string()),
        }
    }
}

impl From<kernels::Error> for Failure {
    fn from(error: kernels::Error) -> Self {
        match error.is_the_users() {
            true => Self::Usage(error.to_string()),
            false => Self::Host(error.to_string()),
        }
    }
}

impl From<boot::CodeError> for Failure {
    fn from(error: boot::CodeError) -> Self {
        match error.is_the_users() {
            true => Self::Usage(error.to_string()),
            false => Self::Host(error.to_string()),
        }
    }
}

impl From<boot::InspectionError> for Failure {
    fn from(error: boot::InspectionError) -> Self {
        match error {
            boot::InspectionError::Kernel(error) => error.into(),
            boot::InspectionError::Architecture { .. } => Self::Usage(error.to_string()),
            other => Self::Host(other.to_string()),
        }
    }
}

host_failures!(boot::NoGuest, machine::Error);

/// Prints why a command failed, and gives its exit code.
pub fn report_failure(failure: &Failure) -> ExitCode {
    match failure {
        Failure::File(error) => {
            output::say_in_file(error);
            ExitCode::from(USAGE)
        }
        Failure::Arguments(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::from(USAGE)
        }
        Failure::Usage(message) => {
            eprintln!("faultline: {message}");
            ExitCode::from(USAGE)
        }
        Failure::OutputClosed => ExitCode::SUCCESS,
        Failure::NotExact(message) => {
            eprintln!("faultline: {message}");
            ExitCode::from(NOT_EXACT)
        }
        Failure::Host(message) => {
            eprintln!("faultline: {message}");
            ExitCode::from(HOST_FAILED)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use model::BootId;

    use super::*;

    #[test]
    fn asking_for_what_is_not_there_is_wrong_usage() {
        let failure =
            |trouble| Failure::from(store::Error::Store { path: PathBuf::new(), trouble });
        let no_experiment = Trouble::NoExperiment { wanted: "x".into(), names: Vec::new() };
        assert!(matches!(failure(no_experiment), Failure::Usage(_)));
        assert!(matches!(failure(Trouble::NoBoot(BootId(99))), Failure::Usage(_)));
        assert!(matches!(failure(Trouble::Full), Failure::Host(_)));
    }

    #[test]
    fn each_exit_code_is_explained() {
        let told = EXIT_CODES.lines().skip(1).map(|line| line.split_whitespace().next().unwrap());
        let codes = [0, HOST_FAILED, USAGE, BOOTS_FAILED, NOT_EXACT].map(i32::from);
        let codes = codes.into_iter().chain([INTERRUPTED]).map(|code| code.to_string());
        assert!(told.eq(codes), "{EXIT_CODES}");
    }

    #[test]
    fn a_kernel_or_a_program_that_cannot_be_had_is_wrong_usage() {
        let request = || kernels::Error::Request { text: "x".into(), hint: "y".into() };
        let program =
            || lab::RunError::Program { path: "x".into(), error: io::ErrorKind::NotFound.into() };
        let is_usage = |failure: Failure| matches!(failure, Failure::Usage(_));
        assert!(is_usage(request().into()) && is_usage(lab::RunError::Kernel(request()).into()));
        assert!(
            is_usage(boot::InspectionError::Kernel(request()).into()) && is_usage(program().into())
        );
        assert!(!is_usage(kernels::Error::NoCache.into()));
    }

    #[test]
    fn a_cost_that_boots_lack_is_wrong_usage() {
        let error = || compare::NoCost { asked: "x".into(), known: vec!["entries".into()] };
        let message = "these boots have no `x` by function; they have: entries";
        for failure in [
            Failure::from(lab::RunError::from(error())),
            Failure::from(results::AnalysisError::from(error())),
        ] {
            assert!(matches!(&failure, Failure::Usage(text) if text == message), "{failure}");
        }
    }
}
