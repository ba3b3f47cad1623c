//! Chooses the segments and probes of a block's instructions.

use flight::profile::{Class, PROGRAM, Privilege};

use super::Profiler;
use crate::arch::{Architecture, Examined, InterruptTables, Special};
use crate::functions::Place;
use crate::machine::{AccessProbe, Instruction, Machine, Probe};
use crate::segments::Segments;

/// An instruction of a segment.
struct Part<I> {
    instruction: I,
    /// Whether it can begin again without having been executed.
    again: bool,
    /// Whether the CPU always goes on to the next instruction of the block.
    completes: bool,
    /// Whether it is a branch, which ends its block.
    branches: bool,
}

impl<A: Architecture> Profiler<A> {
    /// Divides a block into segments and sets its probes. A segment begins where the counts may change: at a probe that
    /// cuts them or changes the path. Such probes are reached before the segment begins, because the count depends on
    /// their results.
    pub fn translate<I: Instruction>(
        &self,
        machine: &impl Machine,
        block: impl IntoIterator<Item = I>,
    ) {
        let mut state = self.lock();
        let mut privilege = None;
        let mut new_path = true;
        let mut segments: Vec<Vec<Part<I>>> = Vec::new();
        for instruction in block {
            let address = instruction.address();
            // All instructions of a block are in one half of the address space, at one privilege level.
            let first = privilege.is_none();
            let privilege = *privilege.get_or_insert_with(|| A::privilege(address, machine));
            let Examined { special, completes, branches, flushes, class } =
                A::examine(&instruction.bytes());
            if privilege == Privilege::Kernel {
                state.classes.translated(address, class);
            }
            if first && privilege == Privilege::Kernel {
                self.probe_handler(&instruction, &state.tables, machine);
            }
            let mut begins = self.probe(&instruction, privilege, special) || first || self.each;
            if self.paths.is_some() && privilege == Privilege::Kernel {
                begins |= self.probe_block(&instruction, new_path);
                new_path = probe_path::<A>(&instruction, special, machine);
            }
            if self.accesses.is_some() {
                instruction.after_access(AccessProbe::Count(privilege));
            }
            let by = if privilege == Privilege::Kernel { address } else { PROGRAM };
            // In programs these have no effect but an exception.
            let flushes = flushes.filter(|_| privilege != Privilege::User && self.follows_pages());
            if let Some(flush) = flushes {
                instruction.before(Probe::Flush(flush));
            }
            if self.caches.is_some() {
                instruction.after_access(AccessProbe::Cached(by));
            }
            if let Some(transfers) = &self.transfers {
                if let Some(allocator) = transfers.allocator(address) {
                    instruction.before(Probe::Allocation(allocator));
                }
                if privilege == Privilege::Kernel && special == Some(Special::Return) {
                    instruction.before(Probe::Return);
                }
                instruction.after_access(match class {
                    Some(Class::Locked) => AccessProbe::LockedLine(by),
                    _ => AccessProbe::Line(by),
                });
            }
            let again = special == Some(Special::Again);
            let part = Part { instruction, again, completes, branches };
            match segments.last_mut().filter(|_| !begins) {
                Some(segment) => segment.push(part),
                None => segments.push(vec![part]),
            }
        }
        if let Some(privilege) = privilege {
            self.instructions.with_segments(|known| {
                segments.iter().for_each(|segment| count(segment, privilege, known));
            });
        }
        if let Some(segment) = segments.last().filter(|_| self.turn.is_some())
            && let Some((last, before)) = segment.split_last().filter(|(last, _)| last.branches)
        {
            last.instruction.before(Probe::Branch(before.len() as u64));
        }
    }

    /// Probes a kernel instruction if it is the first of an interrupt handler.
    fn probe_handler(
        &self,
        instruction: &impl Instruction,
        tables: &InterruptTables,
        machine: &impl Machine,
    ) {
        if let Some(vector) = tables.vector::<A>(instruction.address(), machine)
            && (A::is_fault(vector) || self.paths.is_some())
        {
            instruction.before(Probe::Interrupt(vector));
        }
    }

    /// Sets the probes of an instruction that are not those of paths. Returns true if it may cut or switch the counts.
    fn probe(
        &self,
        instruction: &impl Instruction,
        privilege: Privilege,
        special: Option<Special>,
    ) -> bool {
        let is_privileged = privilege != Privilege::User;
        let mut switches = self.switch.is_some_and(|it| it.address == instruction.address());
        if switches {
            instruction.before(Probe::Switch);
        }
        match special {
            Some(Special::Mark) => instruction.before(Probe::Mark),
            Some(Special::Tick) if self.accesses.is_some() => instruction.before(Probe::Tick),
            Some(Special::LoadInterruptTable) => {
                instruction.after_access(AccessProbe::InterruptTable);
            }
            // In programs these have no effect but an exception.
            Some(Special::SetInterruptTable(register)) if is_privileged => {
                instruction.before(Probe::InterruptTable(register));
            }
            Some(Special::SetTask(register)) if is_privileged && self.follows_tasks() => {
                instruction.before(Probe::Task(register));
                switches = true;
            }
            Some(Special::SystemCall) if self.paths.is_some() && privilege == Privilege::User => {
                instruction.before(Probe::SystemCall);
            }
            _ => {}
        }
        switches || special == Some(Special::Mark)
    }

    /// Whether anything is counted by virtual address.
    fn follows_pages(&self) -> bool {
        self.caches.is_some() || self.transfers.is_some()
    }

    /// Whether anything is counted by task.
    fn follows_tasks(&self) -> bool {
        self.switch.is_some() || self.paths.is_some()
    }

    /// Probes a kernel instruction if the counted path may change at it: the first one of a function or of a block.
    /// Returns true if it may.
    fn probe_block(&self, instruction: &impl Instruction, first: bool) -> bool {
        let address = instruction.address();
        let reached = match self.functions.place(address) {
            Place::Beginning => Some(Probe::Function(address)),
            Place::Outside if first => Some(Probe::Outside(address)),
            Place::Outside | Place::Elsewhere => None,
        };
        if let Some(probe) = reached {
            instruction.before(probe);
        }
        let changes = first || reached.is_some();
        if changes {
            instruction.before(Probe::Block(address));
        }
        changes
    }
}

/// Counts the executions of a segment. An instruction tells its number if the CPU may leave the segment at it.
fn count<I: Instruction>(segment: &[Part<I>], privilege: Privilege, known: &mut Segments) {
    let counted = match privilege {
        Privilege::Kernel => {
            let addresses: Vec<u64> = segment.iter().map(|it| it.instruction.address()).collect();
            known.kernel(&addresses, segment[0].again)
        }
        _ => known.shared(privilege),
    };
    segment[0].instruction.begin(counted);
    let last = segment.len() - 1;
    let rest = segment.iter().enumerate().skip(1);
    rest.filter(|(number, it)| *number == last || !it.completes)
        .for_each(|(number, it)| it.instruction.tell_number(number as u64));
}

/// Probes a kernel instruction that changes the call path. Returns true if the instructions after it have another
/// path.
fn probe_path<A: Architecture>(
    instruction: &impl Instruction,
    special: Option<Special>,
    machine: &impl Machine,
) -> bool {
    let address = instruction.address();
    match special {
        Some(Special::Call) => instruction.after_access(AccessProbe::Call(address)),
        Some(Special::Return) => instruction.after_access(AccessProbe::Return),
        Some(Special::Link) => instruction.before(Probe::Link(address)),
        Some(Special::ReturnTo(register)) => instruction.before(Probe::ReturnTo(register)),
        Some(Special::InterruptReturn) => instruction.before(Probe::InterruptReturn),
        Some(Special::LoadStack) => {
            if A::leaves_task(address, &instruction.bytes(), machine) {
                instruction.before(Probe::LeaveStack);
            }
            instruction.after_access(AccessProbe::LoadStack);
        }
        Some(Special::MoveStack(register)) => instruction.before(Probe::MoveStack(register)),
        Some(Special::SetTask(_)) => {}
        _ => return false,
    }
    true
}
