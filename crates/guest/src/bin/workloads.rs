//! The built-in workloads, by their names.

use std::process::ExitCode;

fn main() -> ExitCode {
    guest::workloads::main()
}
