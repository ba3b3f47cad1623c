//! Determines where and by what boots are made.

use std::fs;
use std::path::Path;

use kernels::digest;
use machine::Emulator;
use model::{Architecture, CountedBy, Execution, Experiment, Host, Mode, Programs, Provenance};

use crate::On;
use crate::error::{BootError, in_file};
use crate::guest::{Guest, Libraries};

/// Returns the provenance of all boots of an experiment on this host. Fails when one of our own
/// programs or libraries cannot be read or, in exact mode, a library is not the one that was built.
pub fn provenance(
    experiment: &Experiment,
    host: &Host,
    on: On<'_>,
    (guest, libraries): (&Guest, &Libraries),
) -> Result<Provenance, BootError> {
    let mut programs = Programs {
        agent: of(&guest.agent)?,
        workloads: of(&guest.workloads)?,
        ..Programs::default()
    };
    if experiment.mode == Mode::Exact {
        libraries.check()?;
        programs.plugin = of(&libraries.plugin)?;
        programs.clock = of(&libraries.clock)?;
    }
    if experiment.machine.disks.iter().any(|disk| disk.format.is_some()) {
        programs.mkfs = of(&guest.mkfs)?;
    }
    let (execution, emulator) = match on {
        On::Vm { engine, emulator } => (engine.execution(), emulator.version()),
        On::Host { .. } => (Execution::Native, ""),
    };
    Ok(Provenance {
        execution: Some(execution),
        emulator: emulator.to_owned(),
        host: host.clone(),
        programs,
    })
}

/// Returns the versions of what counts instructions on this host: the emulator for guests of an architecture, and the
/// libraries. Fails when QEMU cannot be used, or a library is not the one that was built.
pub fn counted_by(libraries: &Libraries, arch: Architecture) -> Result<CountedBy, BootError> {
    libraries.check()?;
    let emulator = Emulator::find(arch)?;
    Ok(CountedBy {
        emulator: emulator.version().to_owned(),
        plugin: of(&libraries.plugin)?,
        clock: of(&libraries.clock)?,
        machine: machine(&emulator),
    })
}

/// Returns the digest of what all exact machines have with this emulator.
pub fn machine(emulator: &Emulator) -> String {
    digest(machine::exact_machine(emulator).as_bytes())
}

fn of(path: &Path) -> Result<String, BootError> {
    Ok(digest(&fs::read(path).map_err(in_file(path))?))
}
