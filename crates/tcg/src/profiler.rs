//! The profiler passes the events at probes to the observers, tracks the running tasks, and writes a slice when the
//! profile is cut.
//!
//! Any program of the guest can execute marks and ticks without limit. Marks and ticks of other processes than the
//! agent are ignored if the running process is known. The numbers of marks and ticks and the size of the file are
//! limited in any case. Beyond the limits nothing is written.

mod tasks;
mod translation;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::{
    AGENT, Class, Cpu, MAX_CLASSES, MAX_CPUS, MAX_SLICES, MAX_TICKS, Phase, Process, SAMPLER,
    Scope, Tick, Writer,
};

use crate::accesses::{AccessCounts, node_count};
use crate::arch::{Architecture, InterruptTables};
use crate::arguments::{Arguments, Switch};
use crate::caches::CacheCounts;
use crate::functions::Functions;
use crate::instructions::InstructionCounts;
use crate::machine::{Access, AccessProbe, Machine, Probe};
use crate::observer::{At, Flow, Observer, Slice};
use crate::path_counts::PathCounts;
use crate::running::Running;
use crate::segments::{Position, Segment};
use crate::transfers::TransferCounts;
use tasks::Tasks;

/// Counts what a machine does. Instructions and accesses are counted without a lock.
pub struct Profiler<A: Architecture> {
    /// Where blocks store the number of the instruction.
    position: Position,
    /// What each CPU executes.
    running: [Running; MAX_CPUS as usize],
    /// The CPU that began a segment last.
    last_cpu: AtomicUsize,
    /// Whether each instruction is a segment of its own.
    each: bool,
    /// The number of instructions after which a turn ends; `None` if QEMU ends turns.
    turn: Option<u64>,
    instructions: InstructionCounts,
    accesses: Option<AccessCounts>,
    paths: Option<PathCounts<A::Calls>>,
    caches: Option<CacheCounts<A>>,
    transfers: Option<TransferCounts<A>>,
    functions: Functions,
    switch: Option<Switch>,
    tasks: Tasks,
    state: Mutex<State>,
}

/// The state behind a lock, for rare events.
struct State {
    tables: InterruptTables,
    /// The CPU that runs the agent's sampler, whose work is left out of the counts.
    sampling: Option<usize>,
    ticks: Ticks,
    marks: Marks,
    classes: Classes,
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

/// The classes of kernel instructions by address.
#[derive(Default)]
struct Classes {
    known: HashMap<u64, Class>,
    /// What is not written yet.
    new: Vec<(u64, Option<Class>)>,
}

impl Classes {
    /// An instruction is translated. The kernel may have patched it. One that patches itself endlessly must not fill the
    /// host's memory.
    fn translated(&mut self, address: u64, class: Option<Class>) {
        let is_full = self.known.len() >= MAX_CLASSES || self.new.len() >= MAX_CLASSES;
        if self.known.get(&address).copied() == class || is_full {
            return;
        }
        match class {
            Some(class) => self.known.insert(address, class),
            None => self.known.remove(&address),
        };
        self.new.push((address, class));
    }
}

/// Number of marks executed.
#[derive(Default)]
struct Marks(usize);

impl Marks {
    /// The largest number of marks that cut the profile. One slice is left for the time after the last cut.
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

impl<A: Architecture> Profiler<A> {
    /// Starts to count for `cpus` CPUs, and to write to `path`. If call paths are followed, so are jumps between
    /// `functions`. Blocks store the numbers of instructions at `position`. Fails when the file cannot be written.
    pub fn new(
        arguments: &Arguments,
        functions: Functions,
        path: &Path,
        cpus: u16,
        position: Position,
    ) -> io::Result<Self> {
        let nodes = node_count(&arguments.nodes);
        let transfers = TransferCounts::new(arguments, cpus);
        let scope = Scope {
            arch: A::KIND,
            cpus,
            nodes,
            stacks: arguments.stacks,
            transfers: transfers.is_some(),
            misses: arguments.caches.is_some(),
        };
        let state = State {
            tables: InterruptTables::default(),
            sampling: None,
            ticks: Ticks::default(),
            marks: Marks::default(),
            classes: Classes::default(),
            has_intruder: false,
            out: Some(Writer::new(File::create(path)?, scope)?),
        };
        Ok(Self {
            position,
            running: [const { Running::new() }; MAX_CPUS as usize],
            last_cpu: AtomicUsize::new(0),
            each: arguments.each,
            turn: arguments.turn,
            instructions: InstructionCounts::new(cpus),
            accesses: (nodes > 0).then(|| AccessCounts::new(cpus, &arguments.nodes)),
            paths: arguments.stacks.then(|| PathCounts::new(cpus)),
            caches: arguments.caches.as_ref().map(CacheCounts::new),
            transfers,
            functions,
            switch: arguments.switch,
            tasks: Tasks::new(cpus),
            state: Mutex::new(state),
        })
    }

    /// A CPU begins a segment.
    #[inline]
    pub fn begins(&self, cpu: usize, segment: &'static Segment) {
        let last = self.last_cpu.load(Relaxed);
        if last != cpu {
            self.running[last].park(self.position);
            self.last_cpu.store(cpu, Relaxed);
        }
        self.running[cpu].begin(cpu, segment, self.position);
        if last != cpu {
            self.running[cpu].begin_turn(0);
        }
    }

    /// The executing CPU begins a branch, with this number in its segment. Ends a turn that has lasted long enough. QEMU
    /// ends it at the next block, and a block ends at a branch. Elsewhere a block ends where QEMU has no room for what the
    /// plugin adds to it, and then the turn would depend on what is counted.
    fn branches(&self, machine: &impl Machine, number: u64) {
        let running = &self.running[machine.cpu()];
        if self.turn.is_some_and(|turn| running.turn().wrapping_add(number) >= turn) {
            // A CPU that runs alone has the next turn too.
            running.begin_turn(number + 1);
            machine.end_turn();
        }
    }

    /// A probe before an instruction is reached. It is inlined, because each callback has one probe.
    #[inline(always)]
    pub fn reached(&self, machine: &impl Machine, probe: Probe) {
        let at = self.at(machine.cpu());
        let stack = || machine.register(A::STACK_POINTER);
        let flow = match probe {
            Probe::Branch(number) => return self.branches(machine, number),
            Probe::Flush(flush) => {
                self.caches.iter().for_each(|all| all.flushes(machine, flush));
                return self.transfers.iter().for_each(|all| all.flushes(at.cpu));
            }
            Probe::Allocation(allocator) => {
                let begins = |all: &TransferCounts<A>| all.begins_to_allocate(machine, allocator);
                return self.transfers.iter().for_each(begins);
            }
            Probe::Return => return self.transfers.iter().for_each(|all| all.returns(machine)),
            Probe::Mark => return self.mark(machine),
            Probe::Tick => return self.tick(machine),
            Probe::Interrupt(vector) => return self.interrupted(machine, vector),
            Probe::Switch => {
                let tasks = A::switched_tasks(machine).into_iter();
                return tasks.for_each(|(from, to)| self.switched(machine, Some(from), to));
            }
            Probe::Task(register) => return self.set_task(machine, register),
            Probe::InterruptTable(register) => {
                let table = machine.register(register).into_iter();
                return table.for_each(|table| self.lock().tables.loaded(table));
            }
            Probe::Block(address) => {
                return self.paths.iter().for_each(|paths| paths.enters(at, address));
            }
            Probe::SystemCall => Some(Flow::Boundary),
            Probe::Link(site) => A::links(site, machine),
            Probe::ReturnTo(register) => A::returns_to(register, machine),
            Probe::Function(address) => Some(Flow::Function { address, stack: &stack }),
            Probe::Outside(address) => Some(Flow::Outside { address, stack: &stack }),
            Probe::InterruptReturn => A::returns(machine),
            Probe::LeaveStack => stack().map(|place| Flow::LeaveStack { place }),
            Probe::MoveStack(register) => {
                machine.register(register).map(|place| Flow::MoveStack { place })
            }
        };
        self.flows(at, flow);
    }

    /// A probe after an access is reached. It is inlined, because each callback has one probe.
    #[inline(always)]
    pub fn accessed(&self, machine: &impl Machine, probe: AccessProbe, access: &impl Access) {
        let at = self.at(machine.cpu());
        let flow = match probe {
            AccessProbe::Count(privilege) => {
                return self.accesses.iter().for_each(|all| all.accesses(at, privilege, access));
            }
            AccessProbe::Cached(by) => {
                return self.caches.iter().for_each(|all| all.accesses(machine, at, by, access));
            }
            AccessProbe::Line(by) => return self.takes(machine, at, (by, false), access),
            AccessProbe::LockedLine(by) => return self.takes(machine, at, (by, true), access),
            // The operand consists of the table's limit, 2 bytes, and its address.
            AccessProbe::InterruptTable => {
                return access
                    .word()
                    .into_iter()
                    .for_each(|table| self.lock().tables.loaded(table));
            }
            AccessProbe::Call(site) => access
                .word()
                .filter(|_| access.is_store())
                .map(|returns_to| Flow::Call { site, slot: access.address(), returns_to }),
            AccessProbe::Return => {
                access.word().map(|returns_to| Flow::Return { slot: access.address(), returns_to })
            }
            AccessProbe::LoadStack => access.word().map(|place| Flow::MoveStack { place }),
        };
        self.flows(at, flow);
    }

    #[inline(always)]
    fn takes(&self, machine: &impl Machine, at: At<'_>, by: (u64, bool), access: &impl Access) {
        self.transfers.iter().for_each(|all| all.accesses(machine, at, by, access));
    }

    #[inline(always)]
    fn flows(&self, at: At<'_>, flow: Option<Flow<'_>>) {
        if let (Some(paths), Some(flow)) = (&self.paths, flow) {
            paths.flows(at, flow);
        }
    }

    #[inline]
    fn at(&self, cpu: usize) -> At<'_> {
        At { cpu, running: &self.running[cpu] }
    }

    fn observers(&self) -> impl Iterator<Item = &dyn Observer> {
        let instructions: &dyn Observer = &self.instructions;
        let accesses = self.accesses.as_ref().map(|accesses| accesses as &dyn Observer);
        let paths = self.paths.as_ref().map(|paths| paths as &dyn Observer);
        let transfers = self.transfers.as_ref().map(|transfers| transfers as &dyn Observer);
        let caches = self.caches.as_ref().map(|caches| caches as &dyn Observer);
        [Some(instructions), accesses, paths, caches, transfers].into_iter().flatten()
    }

    /// An interrupt handler begins.
    fn interrupted(&self, machine: &impl Machine, vector: u8) {
        if let Some(what) = A::interrupted(vector, machine) {
            let at = self.at(machine.cpu());
            if what.faulted {
                at.running.faulted(at.cpu, (what.address, what.privilege), self.position);
            }
            self.observers().for_each(|observer| observer.interrupted(at, &what));
        }
    }

    /// The register of the running task is set from the one with this number. Most often the task stays, or a program
    /// continues. Then no lock is taken.
    fn set_task(&self, machine: &impl Machine, register: usize) {
        let cpu = machine.cpu();
        let from = self.tasks.task(cpu);
        let value = machine.register(register);
        if value == from {
            return;
        }
        let Some(task) = value.and_then(|value| A::next_task(value, from, machine)) else {
            // The task can have another name since it entered the kernel.
            if let Some(process) = from.and_then(|task| self.process(machine, task)) {
                self.tasks.note(cpu, Some(&process));
            }
            return;
        };
        self.switched(machine, from, task);
        let place = machine.register(A::STACK_POINTER);
        self.flows(self.at(cpu), place.map(|place| Flow::Task { task, place }));
    }

    /// The kernel switches from one task, if it is known, to another one.
    fn switched(&self, machine: &impl Machine, from: Option<u64>, to: u64) {
        let cpu = machine.cpu();
        let at = self.at(cpu);
        let mut state = self.lock();
        if state.sampling == Some(cpu) {
            state.sampling = None;
            at.running.set_counted(cpu, true, self.position);
        }
        self.instructions.ran(at, from.and_then(|task| self.process(machine, task)));
        let process = self.process(machine, to);
        self.tasks.set(cpu, to, process.as_ref());
        if process.is_some_and(|process| is_sampler(&process)) {
            state.sampling = Some(cpu);
            at.running.set_counted(cpu, false, self.position);
        }
    }

    /// The process that runs on a CPU, if it is known. Programs are running that may not see the kernel's memory.
    fn process_on(&self, machine: &impl Machine, cpu: usize) -> Option<Process> {
        match A::HIDES_KERNEL {
            true => self.tasks.process(cpu),
            false => self.tasks.task(cpu).and_then(|task| self.process(machine, task)),
        }
    }

    fn process(&self, machine: &impl Machine, task: u64) -> Option<Process> {
        let switch = self.switch?;
        let id = machine.read(task.wrapping_add(switch.tgid))?;
        let name = machine.read(task.wrapping_add(switch.comm))?;
        Some(Process { id: u32::from_le_bytes(id), name })
    }

    /// Whether a process other than the agent is known to run on the executing CPU. The first such process is
    /// recorded.
    fn is_intruded(&self, machine: &impl Machine, state: &mut State) -> bool {
        let running = self.process_on(machine, machine.cpu());
        let Some(intruder) = running.filter(|process| process.id != AGENT) else { return false };
        if !state.has_intruder {
            state.has_intruder = true;
            state.write(|out| out.intruder(intruder));
        }
        true
    }

    /// Handles a tick of the sampler: writes the accesses in the slice so far.
    fn tick(&self, machine: &impl Machine) {
        let mut state = self.lock();
        if self.is_intruded(machine, &mut state) {
            return;
        }
        let time = machine.register(A::TICK_TIME);
        let (Some(accesses), Some(time)) = (&self.accesses, time) else { return };
        let ticks = &state.ticks;
        if ticks.count >= MAX_TICKS || ticks.last.is_some_and(|last| last >= time) {
            return;
        }
        state.ticks = Ticks { count: ticks.count + 1, last: Some(time) };
        let cpus = 0..self.tasks.cpus();
        let tick = Tick { time, accesses: cpus.map(|cpu| accesses.so_far(cpu)).collect() };
        state.write(|out| out.tick(tick));
    }

    /// Handles a mark of the agent: ends the slice, unless there were too many marks. Counts after the last cut go into
    /// the last slice, which is not exact, because no mark ends it.
    fn mark(&self, machine: &impl Machine) {
        let cpu = machine.cpu();
        self.running[cpu].finish(cpu, self.position);
        let mut state = self.lock();
        if !self.is_intruded(machine, &mut state) && state.marks.next_cuts() {
            self.instructions.split_others(cpu, &self.running, self.position);
            let cpus = 0..self.tasks.cpus();
            let running = cpus.map(|cpu| self.process_on(machine, cpu)).collect();
            self.cut(&mut state, running);
        }
    }

    /// Ends the slice: writes it, and resets all counters. `running` has the process of each CPU.
    fn cut(&self, state: &mut State, running: Vec<Option<Process>>) {
        state.ticks.last = None;
        let cpus = vec![Cpu::default(); running.len()];
        let mut slice = Slice { counts: Phase { cpus, ..Phase::default() }, ..Slice::default() };
        for (cpu, process) in running.into_iter().enumerate() {
            self.instructions.ran(self.at(cpu), process);
        }
        self.observers().for_each(|observer| observer.cut(&mut slice));
        let classes = std::mem::take(&mut state.classes.new);
        state.write(|out| {
            out.nodes(&slice.sites)?;
            out.classes(&classes)?;
            out.caches(&slice.caches)?;
            out.slice(&slice.counts)
        });
    }

    /// Handles the end of the machine, and writes the time after the last cut as a slice. No CPU exists any more, so
    /// memory cannot be read, and no process is known.
    pub fn end(&self) {
        let running = self.running.iter().enumerate();
        running.for_each(|(cpu, running)| running.finish(cpu, self.position));
        let mut state = self.lock();
        let running = vec![None; self.tasks.cpus()];
        self.cut(&mut state, running);
        if let Some(Err(error)) = state.out.take().map(Writer::end) {
            eprintln!("the profile's end cannot be written: {error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is the agent's thread that samples.
fn is_sampler(process: &Process) -> bool {
    let (name, rest) = process.name.split_at(SAMPLER.len());
    process.id == AGENT && name == SAMPLER.as_bytes() && rest[0] == 0
}

impl State {
    fn write(&mut self, write: impl FnOnce(&mut Writer<File>) -> io::Result<()>) {
        let Some(Err(error)) = self.out.as_mut().map(write) else { return };
        eprintln!("the profile cannot be written and ends here: {error}");
        self.out = None;
    }
}

#[cfg(test)]
mod tests;
