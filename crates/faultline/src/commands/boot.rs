//! `faultline boot`: boots one kernel, and keeps nothing.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use boot::{Guest, Inspection};
use kernels::Cache;
use model::{Machine, Topology};
use plan::file::check_cmdline;

use super::{print, say};
use crate::args::BootArgs;
use crate::failure::{BOOTS_FAILED, Failure};
use crate::list;

pub fn boot(args: &BootArgs) -> Result<ExitCode, Failure> {
    // A guest does not see the end of its input, so its shell would wait forever.
    if args.shell && !stdin().is_terminal() {
        return Err(Failure::Usage("--shell needs a terminal as standard input".into()));
    }
    if args.machine.disk.is_some() {
        return Err(Failure::Usage("--disk is for workloads, and `boot` runs none".into()));
    }
    check_cmdline(&args.cmdline)
        .map_err(|(problem, hint)| Failure::Usage(format!("--cmdline: {problem}; {hint}")))?;
    let topology = Topology::even(args.machine.cpus, args.machine.memory, args.machine.nodes)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let machine = Machine { accel: args.machine.accel.into(), ..Machine::new(topology) };
    let directory = tempfile::tempdir()?;
    let inspection = Inspection {
        cache: Cache::open()?,
        guest: Guest::find()?,
        kernel: args.kernel.clone(),
        machine,
        cmdline: args.cmdline.clone(),
        directory: directory.path().to_owned(),
    };
    if args.shell {
        inspection.shell(&say)?;
        return Ok(ExitCode::SUCCESS);
    }
    let boot = inspection.boot(&say)?;
    print(&list::boot(&boot))?;
    Ok(if boot.outcome.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}
