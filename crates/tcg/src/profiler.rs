//! The plugin at work: gives each instruction its counter, follows what the machine does as far as
//! counting needs it, and writes a phase when it is cut.

use std::fs::File;
use std::io;
use std::sync::Arc;

use flight::profile::{Cpu, Executed, Phase, Privilege, Process, Scope, Totals, Writer};
use qemu_plugin::RegisterDescriptor;

use crate::accesses::{AccessCounts, node_count};
use crate::arguments::{Arguments, Switch};
use crate::callbacks::{self, Hook};
use crate::counters::{Counter, Counters};
use crate::emulator::{Block, Instruction, read_memory};
use crate::faults::{FRAME, InterruptTables, faulted};
use crate::instruction::{Special, special};
use crate::processes::Processes;

/// No more kernel instructions have counters of their own. A kernel executes about half a million;
/// one that generates code without end must not fill the host's memory.
const MAX_ADDRESSES: usize = 1 << 21;
/// Addresses from here on are the kernel's.
const UPPER_HALF: u64 = 1 << 63;

/// Everything that callbacks share, but for the counters' cells.
pub struct Profiler {
    counters: Counters,
    tables: InterruptTables,
    registers: Option<Registers>,
    switch: Option<Switch>,
    processes: Vec<Processes>,
    accesses: Option<Arc<AccessCounts>>,
    out: Option<Writer<File>>,
}

/// The registers that are looked at.
struct Registers {
    cs: RegisterDescriptor<'static>,
    rsp: RegisterDescriptor<'static>,
    rdi: RegisterDescriptor<'static>,
    rsi: RegisterDescriptor<'static>,
}

impl Profiler {
    /// Begins to count what `cpus` do, and to write it.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn new(arguments: &Arguments, cpus: u16) -> io::Result<Self> {
        let nodes = node_count(&arguments.nodes);
        let out = Writer::new(File::create(&arguments.out)?, Scope { cpus, nodes, stacks: false })?;
        Ok(Self {
            counters: Counters::new(cpus.into(), MAX_ADDRESSES),
            tables: InterruptTables::default(),
            registers: None,
            switch: arguments.switch,
            processes: (0..cpus).map(|_| Processes::default()).collect(),
            accesses: (nodes > 0).then(|| Arc::new(AccessCounts::new(cpus, &arguments.nodes))),
            out: Some(out),
        })
    }

    /// Where accesses are counted, if they are.
    pub fn accesses(&self) -> Option<Arc<AccessCounts>> {
        self.accesses.clone()
    }

    /// A CPU was made. The registers are the same for all.
    pub fn cpu_made(&mut self) {
        self.registers = self.registers.take().or_else(Registers::find);
    }

    /// Gives the instructions of a block their counters and hooks.
    pub fn translate(&mut self, block: &Block) {
        let mut privilege = None;
        for instruction in block.instructions() {
            let address = instruction.address();
            // A block does not leave its half of the address space, nor its privilege level.
            let first = privilege.is_none();
            let privilege = *privilege.get_or_insert_with(|| self.privilege_at(address));
            self.count(&instruction, privilege, address);
            if first && self.tables.fault_to(address, read_memory) {
                callbacks::hook(&instruction, Hook::PageFault);
            }
            if self.switch.is_some_and(|switch| switch.address == address) {
                callbacks::hook(&instruction, Hook::Switch);
            }
            if self.accesses.is_some() {
                callbacks::count_accesses(&instruction, privilege);
            }
        }
    }

    fn count(&mut self, instruction: &Instruction<'_>, privilege: Privilege, address: u64) {
        let counter = self.counter(privilege, address);
        match instruction.bytes(special) {
            Some(Special::Store) if self.counters.is_one_instructions(counter) => {
                callbacks::count_store(instruction, counter);
                return;
            }
            Some(Special::Marker) => callbacks::hook(instruction, Hook::Marker),
            Some(Special::LoadInterruptTable) => callbacks::hook(instruction, Hook::TableLoad),
            Some(Special::Store) | None => {}
        }
        callbacks::count(instruction, counter);
    }

    /// The privilege of code that is about to be executed.
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

    /// An interrupt table is in use from now on.
    pub fn table_loaded(&mut self, address: u64) {
        self.tables.loaded(address);
    }

    /// The handler of page faults begins: the instruction that faulted was not executed.
    pub fn page_fault(&mut self, cpu: usize) {
        let stack = self.registers.as_ref().and_then(|registers| word(&registers.rsp));
        let Some(fault) = stack.and_then(read_memory::<FRAME>).and_then(faulted) else { return };
        let privilege = match fault.user {
            true => Privilege::User,
            false if fault.address < UPPER_HALF => Privilege::Firmware,
            false => Privilege::Kernel,
        };
        self.counter(privilege, fault.address).take_back(cpu);
    }

    /// The kernel goes from one task to another.
    pub fn switch(&mut self, cpu: usize) {
        let Some(registers) = &self.registers else { return };
        let (Some(from), Some(to)) = (word(&registers.rdi), word(&registers.rsi)) else { return };
        let process = self.process(from);
        let processes = &mut self.processes[cpu];
        processes.count(process, self.counters.user.get(cpu));
        processes.switch_to(to);
    }

    fn process(&self, task: u64) -> Option<Process> {
        let switch = self.switch?;
        let id = read_memory(task.wrapping_add(switch.tgid))?;
        let name = read_memory(task.wrapping_add(switch.comm))?;
        Some(Process { id: u32::from_le_bytes(id), name })
    }

    /// Ends the phase: writes it, and starts all counters again.
    pub fn cut(&mut self) {
        let phase = Phase {
            cpus: (0..self.processes.len()).map(|cpu| self.take(cpu)).collect(),
            ..Phase::default()
        };
        let Some(mut out) = self.out.take() else { return };
        match out.slice(&phase) {
            Ok(()) => self.out = Some(out),
            Err(error) => eprintln!("the profile ends here, it cannot be written: {error}"),
        }
    }

    /// The machine ended: what came after the last cut is a phase too.
    pub fn end(&mut self) {
        // No CPU is there any more whose memory could be read.
        self.switch = None;
        self.cut();
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

impl Registers {
    fn find() -> Option<Self> {
        let all = qemu_plugin::qemu_plugin_get_registers().ok()?;
        let named = |name| all.iter().find(|register| register.name == name).cloned();
        Some(Self { cs: named("cs")?, rsp: named("rsp")?, rdi: named("rdi")?, rsi: named("rsi")? })
    }
}

/// A register's value, of at most 8 bytes.
fn word(register: &RegisterDescriptor<'_>) -> Option<u64> {
    let bytes = register.read().ok()?;
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(u64::from_le_bytes(word))
}
