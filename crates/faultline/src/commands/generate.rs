//! `faultline generate`: what is made of the command line's grammar.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};

use crate::args::Cli;
use crate::failure::Failure;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// Writes a man page for each command, and a file of completions for each shell.
pub fn generate(directory: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::Host(format!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    for shell in SHELLS {
        generate_to(shell, &mut Cli::command(), "faultline", directory).map_err(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
