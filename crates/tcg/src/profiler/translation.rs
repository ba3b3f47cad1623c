//! Chooses the counters and probes of a block's instructions.

use flight::profile::Privilege;

use super::Profiler;
use crate::arch::{self, InterruptTables, Special};
use crate::functions::Place;
use crate::machine::{AccessProbe, Begin, Instruction, Machine, Probe};

impl Profiler {
    /// Sets the counters and probes of a block's instructions. Probes are reached before the instruction is counted,
    /// because the count depends on their results.
    pub fn translate<I: Instruction>(
        &self,
        machine: &impl Machine,
        block: impl IntoIterator<Item = I>,
    ) {
        let state = self.lock();
        let mut privilege = None;
        let mut new_path = true;
        for instruction in block {
            let address = instruction.address();
            // All instructions of a block are in one half of the address space, at one privilege level.
            let first = privilege.is_none();
            let privilege = *privilege.get_or_insert_with(|| arch::privilege(address, machine));
            let special = arch::special(&instruction.bytes());
            if first && privilege == Privilege::Kernel {
                self.probe_handler(&instruction, &state.tables, machine);
            }
            self.probe(&instruction, privilege, special);
            if self.paths.is_some() && privilege == Privilege::Kernel {
                self.probe_block(&instruction, new_path);
                new_path = probe_path(&instruction, special, machine);
            }
            self.count(&instruction, privilege, special);
            if self.accesses.is_some() {
                instruction.after_access(AccessProbe::Count(privilege));
            }
        }
    }

    /// Probes a kernel instruction if it is the first of an interrupt handler.
    fn probe_handler(
        &self,
        instruction: &impl Instruction,
        tables: &InterruptTables,
        machine: &impl Machine,
    ) {
        if let Some(vector) = tables.vector(instruction.address(), machine)
            && (arch::is_fault(vector) || self.paths.is_some())
        {
            instruction.before(Probe::Interrupt(vector));
        }
    }

    fn probe(
        &self,
        instruction: &impl Instruction,
        privilege: Privilege,
        special: Option<Special>,
    ) {
        if self.switch.is_some_and(|switch| switch.address == instruction.address()) {
            instruction.before(Probe::Switch);
        }
        match special {
            Some(Special::Mark) => instruction.before(Probe::Mark),
            Some(Special::Tick) if self.accesses.is_some() => instruction.before(Probe::Tick),
            Some(Special::LoadInterruptTable) => {
                instruction.after_access(AccessProbe::InterruptTable);
            }
            Some(Special::SystemCall) if self.paths.is_some() && privilege == Privilege::User => {
                instruction.before(Probe::SystemCall);
            }
            _ => {}
        }
    }

    /// Probes a kernel instruction at which the counted path may change: the first one of a function or of a block.
    fn probe_block(&self, instruction: &impl Instruction, first: bool) {
        let address = instruction.address();
        let reached = match self.functions.place(address) {
            Place::Beginning => Some(Probe::Function(address)),
            Place::Outside if first => Some(Probe::Outside(address)),
            Place::Outside | Place::Elsewhere => None,
        };
        if let Some(probe) = reached {
            instruction.before(probe);
        }
        if first || reached.is_some() {
            instruction.before(Probe::Block(address));
        }
    }

    fn count(
        &self,
        instruction: &impl Instruction,
        privilege: Privilege,
        special: Option<Special>,
    ) {
        let (counter, own) = self.instructions.counter(privilege, instruction.address());
        let begin = match special {
            Some(Special::Store) if own => Begin::Again,
            _ => Begin::Once,
        };
        instruction.count(counter, privilege, begin);
    }
}

/// Probes a kernel instruction that changes the call path. Returns true if the instructions after it have another
/// path.
fn probe_path(
    instruction: &impl Instruction,
    special: Option<Special>,
    machine: &impl Machine,
) -> bool {
    let address = instruction.address();
    match special {
        Some(Special::Call) => instruction.after_access(AccessProbe::Call(address)),
        Some(Special::Return) => instruction.after_access(AccessProbe::Return),
        Some(Special::InterruptReturn) => instruction.before(Probe::InterruptReturn),
        Some(Special::LoadStack) => {
            if arch::leaves_task(address, &instruction.bytes(), machine) {
                instruction.before(Probe::LeaveStack);
            }
            instruction.after_access(AccessProbe::LoadStack);
        }
        Some(Special::MoveStack(register)) => instruction.before(Probe::MoveStack(register)),
        _ => return false,
    }
    true
}
