//! Runs the built-in workloads by name.

use std::process::ExitCode;

fn main() -> ExitCode {
    guest::workloads::main()
}
