//! `faultline machine`: says what this host is good for, and puts its settings back.

mod noise;

use std::path::Path;
use std::process::ExitCode;

use machine::host::{abilities, describe, facts};
use machine::settings::HostSettings;
use model::count;
use report::escape;

use super::print;
use crate::args::MachineCommand;
use crate::failure::Failure;
use crate::list::topics;
use noise::Noise;

pub fn machine(command: &MachineCommand) -> Result<ExitCode, Failure> {
    match command {
        MachineCommand::Check { .. } => check(),
        MachineCommand::Restore => restore(),
    }
}

/// Prints what this host is good for. The load is read before sessions make one.
fn check() -> Result<ExitCode, Failure> {
    let root = Path::new("/");
    let host = describe(root);
    let mut known = facts(root, &host);
    let can = topics("What this user can do here", &abilities(root, &HostSettings::of_user()));
    eprintln!("measuring noise: {} short sessions", noise::SESSIONS);
    let (states, noise) = match Noise::measure(&host) {
        Ok(noise) => (noise.states(), noise.lines()),
        Err(error) => (Vec::new(), vec![("not measured", error.to_string())]),
    };
    known.extend(states);
    let (known, noise) = (topics("This host", &known), topics("Noise", &noise));
    print(&format!("{known}\n{can}\n{noise}"))?;
    Ok(ExitCode::SUCCESS)
}

fn restore() -> Result<ExitCode, Failure> {
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
