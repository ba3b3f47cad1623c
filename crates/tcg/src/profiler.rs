//! The profiler: gives each instruction its counter, tracks the state of the machine that counting needs, and
//! writes a phase when it is cut.
//!
//! Any program of the guest can execute marks and ticks without limit. Those of other processes than the agent are
//! ignored where the running process is known. Marks, ticks and the file are limited in any case: beyond the limits
//! nothing is written.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use flight::profile::{
    AGENT, CallSite, Cpu, Executed, MAX_SLICES, MAX_TICKS, Phase, Privilege, Process, Scope, Tick,
    Totals, Writer,
};
use qemu_plugin::RegisterDescriptor;

use crate::accesses::{AccessCounts, node_count};
use crate::arguments::{Arguments, Switch};
use crate::callbacks::{self, Hook, following};
use crate::counters::{Counter, Counters};
use crate::emulator::{Block, Instruction, read_memory};
use crate::functions::{Functions, Place};
use crate::instruction::{SAVE_STACK, Special, is_switch, special};
use crate::interrupts::{InterruptTables, Interrupted, PAGE_FAULT, interrupted};
use crate::paths::Paths;
use crate::processes::Processes;
use crate::running::Running;

/// The largest number of kernel instructions with their own counters. A kernel executes about half a million.
/// One that generates code endlessly must not fill the host's memory.
const MAX_ADDRESSES: usize = 1 << 21;
/// The first kernel address.
const UPPER_HALF: u64 = 1 << 63;

/// All state shared by callbacks, except the counters' cells.
pub struct Profiler {
    stacks: bool,
    functions: Functions,
    counters: Counters,
    tables: InterruptTables,
    registers: Option<Registers>,
    switch: Option<Switch>,
    processes: Vec<Processes>,
    accesses: Option<Arc<AccessCounts>>,
    ticks: Ticks,
    marks: Marks,
    /// Whether a process other than the agent executed a mark or a tick.
    has_intruder: bool,
    out: Option<Writer<File>>,
}

/// The recorded ticks.
#[derive(Default)]
struct Ticks {
    count: usize,
    /// The time of the last one in this slice.
    last: Option<u64>,
}

/// Number of marks executed.
#[derive(Default)]
struct Marks(usize);

impl Marks {
    /// The largest number of marks that cut. One slice is left for the time after the last cut.
    const MOST: usize = MAX_SLICES - 1;

    /// Whether the next mark cuts. Warns once when the limit is reached.
    fn next_cuts(&mut self) -> bool {
        if self.0 == Self::MOST {
            eprintln!("no further cuts of the profile: the guest executed {} marks", Self::MOST);
        }
        self.0 = self.0.saturating_add(1);
        self.0 <= Self::MOST
    }
}

/// The registers that are read.
struct Registers {
    cs: RegisterDescriptor<'static>,
    /// General purpose registers, by their numbers in instructions.
    general: Vec<RegisterDescriptor<'static>>,
}

const RAX: usize = 0;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

impl Profiler {
    /// Starts to count for `cpus` CPUs, and to write to `path`. Jumps between `functions` are followed if
    /// call paths are. Fails when the file cannot be written.
    pub fn new(
        arguments: &Arguments,
        functions: Functions,
        path: &Path,
        cpus: u16,
    ) -> io::Result<Self> {
        let nodes = node_count(&arguments.nodes);
        let scope = Scope { cpus, nodes, stacks: arguments.stacks };
        let out = Writer::new(File::create(path)?, scope)?;
        Ok(Self {
            stacks: arguments.stacks,
            functions,
            counters: Counters::new(cpus.into(), MAX_ADDRESSES),
            tables: InterruptTables::default(),
            registers: None,
            switch: arguments.switch,
            processes: (0..cpus).map(|_| Processes::default()).collect(),
            accesses: (nodes > 0).then(|| Arc::new(AccessCounts::new(cpus, &arguments.nodes))),
            ticks: Ticks::default(),
            marks: Marks::default(),
            has_intruder: false,
            out: Some(out),
        })
    }

    /// The number of CPUs whose calls are followed; `None` if calls are not followed.
    pub fn followed(&self) -> Option<u16> {
        self.stacks.then_some(self.processes.len() as u16)
    }

    /// The counts of accesses; `None` if they are not counted.
    pub fn accesses(&self) -> Option<Arc<AccessCounts>> {
        self.accesses.clone()
    }

    /// A CPU was created. The registers are the same for all.
    pub fn cpu_made(&mut self) {
        self.registers = self.registers.take().or_else(Registers::find);
    }

    /// Gives the instructions of a block their counters and hooks. Hooks run first, because the count depends
    /// on what they find out about the instruction.
    pub fn translate(&mut self, block: &Block) {
        let mut privilege = None;
        let mut new_path = true;
        for instruction in block.instructions() {
            let address = instruction.address();
            // All instructions of a block are in one half of the address space, at one privilege level.
            let first = privilege.is_none();
            let privilege = *privilege.get_or_insert_with(|| self.privilege_at(address));
            let special = instruction.bytes(special);
            if first {
                self.hook_handler(&instruction, privilege);
            }
            self.hook(&instruction, privilege, special);
            if self.stacks && privilege == Privilege::Kernel {
                self.hook_block(&instruction, new_path);
                new_path = hook_path(&instruction, special);
            }
            self.count(&instruction, privilege, special);
            if self.accesses.is_some() {
                callbacks::count_accesses(&instruction, privilege);
            }
        }
    }

    /// Hooks a kernel instruction at which another path may be counted: the first of a function, or of a
    /// block.
    fn hook_block(&self, instruction: &Instruction<'_>, first: bool) {
        use following::Hook;
        let address = instruction.address();
        let reached = match self.functions.place(address) {
            Place::Beginning => Some(Hook::Function(address)),
            Place::Outside if first => Some(Hook::Outside(address)),
            Place::Outside | Place::Elsewhere => None,
        };
        if let Some(hook) = reached {
            following::hook(instruction, hook);
        }
        if first || reached.is_some() {
            following::hook(instruction, Hook::Block(address));
        }
    }

    /// Hooks an instruction that may be the first of an interrupt handler.
    fn hook_handler(&self, instruction: &Instruction<'_>, privilege: Privilege) {
        if privilege != Privilege::Kernel {
            return;
        }
        match self.tables.vector(instruction.address(), read_memory) {
            Some(vector) if vector == PAGE_FAULT || self.stacks => {
                callbacks::hook(instruction, Hook::Interrupt(vector));
            }
            _ => {}
        }
    }

    fn hook(&self, instruction: &Instruction<'_>, privilege: Privilege, special: Option<Special>) {
        if self.switch.is_some_and(|switch| switch.address == instruction.address()) {
            callbacks::hook(instruction, Hook::Switch);
        }
        let hook = match special {
            Some(Special::Mark) => Hook::Mark,
            Some(Special::Tick) if self.accesses.is_some() => Hook::Tick,
            Some(Special::LoadInterruptTable) => Hook::TableLoad,
            Some(Special::SystemCall) if self.stacks && privilege == Privilege::User => {
                return following::hook(instruction, following::Hook::SystemCall);
            }
            _ => return,
        };
        callbacks::hook(instruction, hook);
    }

    fn count(
        &mut self,
        instruction: &Instruction<'_>,
        privilege: Privilege,
        special: Option<Special>,
    ) {
        let counter = self.counter(privilege, instruction.address());
        if special == Some(Special::Store) && self.counters.is_one_instructions(counter) {
            callbacks::count_store(instruction, privilege, counter);
        } else {
            callbacks::count(instruction, privilege, counter);
        }
    }

    /// The privilege of the code that is about to be executed.
    fn privilege_at(&self, address: u64) -> Privilege {
        if address >= UPPER_HALF {
            return Privilege::Kernel;
        }
        // The low bits of CS are the privilege level.
        match self.registers.as_ref().and_then(|registers| word(&registers.cs)) {
            Some(segment) if segment & 3 == 3 => Privilege::User,
            _ => Privilege::Firmware,
        }
    }

    fn counter(&mut self, privilege: Privilege, address: u64) -> Counter {
        match privilege {
            Privilege::Kernel => self.counters.kernel(address),
            Privilege::User => self.counters.user,
            Privilege::Firmware => self.counters.firmware,
        }
    }

    /// An interrupt table was loaded.
    pub fn table_loaded(&mut self, address: u64) {
        self.tables.loaded(address);
    }

    /// An interrupt handler begins. If it is for a page fault, the faulting instruction was not executed.
    pub fn interrupted(
        &mut self,
        cpu: usize,
        vector: u8,
        running: &Running,
    ) -> Option<Interrupted> {
        let what = interrupted(vector, self.stack_pointer()?, read_memory)?;
        if what.faulted {
            let privilege = match what.user {
                true => Privilege::User,
                false if what.address < UPPER_HALF => Privilege::Firmware,
                false => Privilege::Kernel,
            };
            let counter = self.counter(privilege, what.address);
            running.forget(counter.cell(cpu));
        }
        Some(what)
    }

    /// The kernel switches tasks.
    pub fn switch(&mut self, cpu: usize) {
        let (Some(from), Some(to)) = (self.general(RDI), self.general(RSI)) else { return };
        let process = self.process(from);
        let processes = &mut self.processes[cpu];
        processes.count(process, self.counters.user.get(cpu));
        processes.switch_to(to);
    }

    pub fn stack_pointer(&self) -> Option<u64> {
        self.general(RSP)
    }

    /// The general purpose register with this number in instructions.
    pub fn general(&self, number: usize) -> Option<u64> {
        word(self.registers.as_ref()?.general.get(number)?)
    }

    fn process(&self, task: u64) -> Option<Process> {
        let switch = self.switch?;
        let id = read_memory(task.wrapping_add(switch.tgid))?;
        let name = read_memory(task.wrapping_add(switch.comm))?;
        Some(Process { id: u32::from_le_bytes(id), name })
    }

    /// Whether a process other than the agent runs on a CPU, as far as is known. The first one is recorded.
    fn is_intruded(&mut self, cpu: usize) -> bool {
        let running = self.processes[cpu].task().and_then(|task| self.process(task));
        let Some(intruder) = running.filter(|process| process.id != AGENT) else { return false };
        if !self.has_intruder {
            self.has_intruder = true;
            self.write(|out| out.intruder(intruder));
        }
        true
    }

    /// Handles a tick of the sampler: writes the accesses in the slice so far.
    pub fn tick(&mut self, cpu: usize) {
        if self.is_intruded(cpu) {
            return;
        }
        let (Some(accesses), Some(time)) = (&self.accesses, self.general(RAX)) else { return };
        if self.ticks.count >= MAX_TICKS || self.ticks.last.is_some_and(|last| last >= time) {
            return;
        }
        self.ticks = Ticks { count: self.ticks.count + 1, last: Some(time) };
        let cpus = 0..self.processes.len();
        let tick = Tick { time, accesses: cpus.map(|cpu| accesses.so_far(cpu)).collect() };
        self.write(|out| out.tick(tick));
    }

    /// Handles a mark of the agent: ends the slice, unless there were too many marks. Counts after the last cut go into
    /// the last slice, which is not exact, because no mark ends it.
    pub fn mark(&mut self, cpu: usize, paths: Option<&mut Paths>) {
        if !self.is_intruded(cpu) && self.marks.next_cuts() {
            self.cut(paths);
        }
    }

    /// Ends the slice: writes it, and resets all counters.
    fn cut(&mut self, paths: Option<&mut Paths>) {
        self.ticks.last = None;
        let cpus = (0..self.processes.len()).map(|cpu| self.take(cpu)).collect();
        let mut slice = Phase { cpus, ..Phase::default() };
        let mut sites: &[CallSite] = &[];
        if let Some(paths) = paths {
            slice.stacks = paths.take_tallies();
            sites = paths.take_sites();
        }
        self.write(|out| {
            out.nodes(sites)?;
            out.slice(&slice)
        });
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer<File>) -> io::Result<()>) {
        let Some(Err(error)) = self.out.as_mut().map(write) else { return };
        eprintln!("the profile cannot be written and ends here: {error}");
        self.out = None;
    }

    /// Handles the end of the machine: the time after the last cut is a slice too.
    pub fn end(&mut self, paths: Option<&mut Paths>) {
        // No CPU exists any more, so no memory can be read.
        self.switch = None;
        self.cut(paths);
        if let Some(Err(error)) = self.out.take().map(Writer::end) {
            eprintln!("the profile's end cannot be written: {error}");
        }
    }

    fn take(&mut self, cpu: usize) -> Cpu {
        let process = self.processes[cpu].task().and_then(|task| self.process(task));
        let counters = &self.counters;
        let processes = &mut self.processes[cpu];
        processes.count(process, counters.user.get(cpu));
        let kernel = counters.kernel_counters();
        let kernel =
            kernel.map(|(address, counter)| Executed { address, count: counter.take(cpu) });
        Cpu {
            kernel: kernel.filter(|executed| executed.count > 0).collect(),
            totals: Totals {
                user: counters.user.take(cpu),
                kernel_other: counters.kernel_other.take(cpu),
                firmware: counters.firmware.take(cpu),
            },
            processes: processes.cut(),
            accesses: self.accesses.as_ref().map_or_else(Vec::new, |all| all.cut(cpu)),
        }
    }
}

/// Hooks a kernel instruction that changes the call path. True if the instructions after it have another
/// path.
fn hook_path(instruction: &Instruction<'_>, special: Option<Special>) -> bool {
    use following::Hook;
    let address = instruction.address();
    let hook = match special {
        Some(Special::Call) => Hook::Call(address),
        Some(Special::Return) => Hook::Return,
        Some(Special::InterruptReturn) => Hook::InterruptReturn,
        Some(Special::LoadStack) => Hook::LoadStack,
        Some(Special::MoveStack(register)) => Hook::MoveStack(register),
        _ => return false,
    };
    let before = || read_memory(address.wrapping_sub(SAVE_STACK as u64));
    if hook == Hook::LoadStack
        && before().is_some_and(|before| instruction.bytes(|load| is_switch(before, load)))
    {
        following::hook(instruction, Hook::LeaveStack);
    }
    following::hook(instruction, hook);
    true
}

impl Registers {
    fn find() -> Option<Self> {
        // Intel SDM, volume 2, table 2-2.
        const GENERAL: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        let all = qemu_plugin::qemu_plugin_get_registers().ok()?;
        let named = |name| all.iter().find(|register| register.name == name).cloned();
        let general: Option<Vec<_>> = GENERAL.into_iter().map(named).collect();
        Some(Self { cs: named("cs")?, general: general? })
    }
}

/// A register's value, of at most 8 bytes.
fn word(register: &RegisterDescriptor<'_>) -> Option<u64> {
    let bytes = register.read().ok()?;
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_the_end_do_not_exceed_the_slices_of_a_profile() {
        let mut marks = Marks::default();
        let cuts = (0..2 * MAX_SLICES).filter(|_| marks.next_cuts()).count();
        assert_eq!(cuts + 1, MAX_SLICES);
        let mut last = Marks(usize::MAX);
        assert!(!last.next_cuts() && !last.next_cuts());
    }
}
