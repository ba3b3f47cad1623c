//! `faultline boot`: boots one kernel, and keeps nothing.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use boot::{Guest, Inspection};
use kernels::{Cache, Request};
use model::{Accel, Architecture, Machine, Topology};
use plan::file::check_cmdline;

use super::{print, say};
use crate::args::{AccelArg, ArchArg, BootArgs, MachineArgs};
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
    let MachineArgs { cpus, memory, nodes, accel, .. } = args.machine.of_vm();
    let [cpus, nodes] = [cpus, nodes].map(Option::unwrap_or_default);
    let topology = Topology::even(cpus, memory.unwrap_or_default(), nodes)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let accel = accel.map(Accel::from).unwrap_or_default();
    let machine = Machine { accel, ..Machine::new(topology) };
    let (kernel, arch) = kernel(args)?;
    let directory = tempfile::tempdir()?;
    let inspection = Inspection {
        cache: Cache::open()?,
        guest: Guest::find()?,
        kernel,
        arch,
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

/// The kernel, and the architecture that it must have.
fn kernel(args: &BootArgs) -> Result<(String, Option<Architecture>), Failure> {
    let name = &args.kernel;
    let refused = |problem: &str| Failure::Usage(format!("--arch: `{name}` {problem}"));
    if matches!(args.machine.arch, Some(ArchArg::Both)) {
        return Err(refused("is booted for one architecture: name it"));
    }
    let asked = args.machine.arch.and_then(ArchArg::one);
    let arch = asked.unwrap_or_else(|| Request::architecture(name));
    if arch != Architecture::X86_64 && matches!(args.machine.accel, Some(AccelArg::Kvm)) {
        return Err(Failure::Usage(
            "--accel: KVM does not run arm64 machines: leave it out".into(),
        ));
    }
    let Some(named) = Request::for_architecture(name, arch) else {
        let own = Request::architecture(name).name();
        return Err(refused(&format!("is a kernel for {own}, not for {}", arch.name())));
    };
    Ok((named, asked))
}
