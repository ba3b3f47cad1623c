//! `faultline export`: a boot's profile for other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use model::{Mode, Profile};
use store::BootId;

use super::{existing_store, write_out};
use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;

pub fn export(store: Option<PathBuf>, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let id = BootId(args.boot);
    let boot = store.boot(id)?.boot;
    let wanted = |profile: &&Profile| {
        args.workload.as_ref().is_none_or(|name| *name == profile.workload)
            && args.phase.as_ref().is_none_or(|name| *name == profile.phase)
    };
    let profiles: Vec<&Profile> = boot.profiles.iter().filter(wanted).collect();
    if profiles.is_empty() {
        let message = match boot.profiles.len() {
            0 if boot.facts.accel == Mode::Exact.name() => {
                format!("{id} has no profile: `faultline show {id}` tells how it ended")
            }
            0 => format!("{id} has no profile: only boots of exact mode have one"),
            _ => format!("{id} has no profile of that workload and phase"),
        };
        return Err(Failure::Usage(message));
    }
    let text = match args.format {
        ExportFormat::Collapsed => report::collapsed(profiles),
        ExportFormat::PerfScript => report::perf_script(profiles),
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
