//! What the boots of a run share: kernels, emulator, and the engine that executes machines.

use std::sync::Arc;

use boot::out_of_tree::OutOfTree;
use boot::provenance::provenance;
use boot::symbols::KernelCode;
use boot::{BootError, Bootable, Guest, Libraries, On, engine, exact};
use code::Symbol;
use kernels::Userspace;
use machine::settings::HostSettings;
use machine::{Emulator, Engine, Exact};
use model::{Experiment, MachineKind, Mode, Provenance, Reading};
use plan::schedule::Slot;

use crate::obtain::Obtained;
use crate::watch::{Progress, Watch};
use crate::{Lab, RunError};

/// What a run boots.
pub struct RunInputs<'a> {
    pub experiment: &'a Experiment,
    pub reading: &'a Reading,
    /// The kernel of each variant.
    pub kernels: &'a [Obtained],
    /// The modules built for each of them.
    pub out_of_tree: Vec<OutOfTree>,
    pub userspace: Option<&'a Userspace>,
}

/// Where the boots of a run are made.
enum Place {
    /// In VMs, with the engine of measured boots.
    Vm { emulator: Emulator, engine: Engine<'static> },
    /// On this host. Programs can have standard input, output and error of this process.
    Host { settings: Arc<HostSettings>, streams: bool },
}

impl Place {
    /// The place of a boot. `inputs` are those that make it exact; `None` in measured mode.
    fn on<'a>(&'a self, inputs: Option<&'a Exact>) -> On<'a> {
        match self {
            Self::Vm { emulator, engine } => {
                On::Vm { engine: inputs.map_or(*engine, Engine::Exact), emulator }
            }
            Self::Host { settings, streams } => On::Host { settings, streams: *streams },
        }
    }
}

/// Everything that is determined once for all boots of a run.
pub struct RunContext<'a> {
    pub experiment: &'a Experiment,
    pub reading: &'a Reading,
    /// The experiment as each variant runs it.
    seen: Vec<Experiment>,
    kernels: &'a [Obtained],
    /// The modules that workloads want, for the kernel of each variant.
    out_of_tree: Vec<OutOfTree>,
    userspace: Option<&'a Userspace>,
    guest: Guest,
    /// Where boots are made.
    place: Place,
    provenance: Provenance,
    /// The code of each variant's kernel; `None` in measured mode.
    codes: Option<Vec<KernelCode>>,
}

impl<'a> RunContext<'a> {
    /// Determines what all boots share. In measured mode, chooses the engine, which may boot the
    /// kernel of variant `first`. In exact mode, reads the symbols of the kernels.
    pub fn new(
        lab: &Lab,
        inputs: RunInputs<'a>,
        first: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Self, RunError> {
        let RunInputs { experiment, reading, kernels, out_of_tree, userspace } = inputs;
        let guest = lab.guest.of(experiment.machine.arch).map_err(BootError::from)?;
        let is_exact = experiment.mode == Mode::Exact;
        let (place, codes) = match experiment.machine.kind {
            MachineKind::Host => {
                (Place::Host { settings: lab.settings.clone(), streams: lab.streams }, None)
            }
            MachineKind::Vm => {
                let emulator = Emulator::find(experiment.machine.arch)?;
                let memory = experiment.profile.transfers;
                let codes =
                    is_exact.then(|| codes(lab, kernels, &emulator, memory, watch)).transpose()?;
                let engine = match kernels[first].unbuilt.is_some() || is_exact {
                    true => Engine::Tcg,
                    false => engine::choose(
                        experiment.machine.accel,
                        &emulator,
                        (&kernels[first].kernel, &guest),
                        &lab.cache,
                        &lab.scratch,
                        &mut |line| watch(Progress::Message(line)),
                    )?,
                };
                (Place::Vm { emulator, engine }, codes)
            }
        };
        let provenance =
            provenance(experiment, &lab.host, place.on(None), (&guest, &lab.libraries))?;
        let seen = experiment.variants.iter().map(|it| experiment.seen_by(it)).collect();
        Ok(Self {
            experiment,
            reading,
            seen,
            kernels,
            out_of_tree,
            userspace,
            guest,
            place,
            provenance,
            codes,
        })
    }

    /// Returns the inputs that make the boot in `slot` exact; `None` in measured mode.
    pub fn exact_inputs(&self, libraries: &Libraries, slot: Slot, each: bool) -> Option<Exact> {
        let code = self.kernel_code(slot)?;
        Some(exact::inputs(libraries, &self.seen[slot.variant], code, slot, each))
    }

    /// Returns what the boot in `slot` needs. `inputs` are those that make it exact; `None` in
    /// measured mode.
    pub fn bootable<'b>(&'b self, slot: Slot, inputs: Option<&'b Exact>) -> Bootable<'b> {
        Bootable {
            experiment: &self.seen[slot.variant],
            variant: &self.experiment.variants[slot.variant],
            kernel: &self.kernels[slot.variant].kernel,
            unbuilt: self.kernels[slot.variant].unbuilt.as_ref(),
            out_of_tree: &self.out_of_tree[slot.variant],
            guest: &self.guest,
            userspace: self.userspace,
            on: self.place.on(inputs),
            provenance: &self.provenance,
            symbols: self.kernel_code(slot).map(|code| &code.symbols),
            memory: self.kernel_code(slot).and_then(|code| code.memory.as_deref()),
        }
    }

    fn kernel_code(&self, slot: Slot) -> Option<&KernelCode> {
        self.codes.as_ref().map(|codes| &codes[slot.variant])
    }
}

/// Checks that some kernel has each function whose lines are kept.
pub fn check_lines(
    lab: &Lab,
    experiment: &Experiment,
    kernels: &[Obtained],
    watch: &mut Watch<'_>,
) -> Result<(), RunError> {
    if experiment.profile.lines.is_empty() {
        return Ok(());
    }
    let emulator = Emulator::find(experiment.machine.arch)?;
    let codes = codes(lab, kernels, &emulator, false, watch)?;
    let symbols = || codes.iter().flat_map(|code| code.symbols.functions());
    let has = |name: &str| symbols().any(|(symbol, _)| Symbol::of(&symbol.name).name == name);
    // Without symbols of any kernel nothing is known.
    match experiment.profile.lines.iter().find(|name| symbols().next().is_some() && !has(name)) {
        Some(missing) => Err(RunError::NoFunction(missing.clone())),
        None => Ok(()),
    }
}

/// Reads the code of each kernel, and with `memory` what is known of its memory. A kernel that could not be built has none.
fn codes(
    lab: &Lab,
    kernels: &[Obtained],
    emulator: &Emulator,
    memory: bool,
    watch: &mut Watch<'_>,
) -> Result<Vec<KernelCode>, RunError> {
    let mut code = |Obtained { kernel, unbuilt }: &Obtained| match unbuilt {
        Some(_) => Ok(KernelCode::default()),
        None => lab.kernel_code(kernel, emulator, memory, watch),
    };
    kernels.iter().map(&mut code).collect()
}
