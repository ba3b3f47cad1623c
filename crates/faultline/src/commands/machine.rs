//! `faultline machine`: puts settings of this host back.

use std::process::ExitCode;

use machine::settings::HostSettings;
use model::count;
use report::escape;

use super::print;
use crate::args::MachineCommand;
use crate::failure::Failure;

pub fn machine(command: &MachineCommand) -> Result<ExitCode, Failure> {
    let MachineCommand::Restore = command;
    let put_back = HostSettings::of_user().recover().map_err(lab::RunError::from)?;
    for line in put_back.lines() {
        print(&format!("{}\n", escape(&line)))?;
    }
    if put_back.void > 0 {
        let changes = count(put_back.void, "change");
        print(&format!("{changes} void: this kernel was started anew since\n"))?;
    } else if put_back.lines().is_empty() {
        print("No run left a changed setting.\n")?;
    }
    Ok(if put_back.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
