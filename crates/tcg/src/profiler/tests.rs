//! Programs for a made-up machine, from their translation to the profile's file.

mod arm64;

use std::collections::BTreeMap;
use std::ops::Range;

use flight::profile::marks::x86_64::{MARK, TICK};
use flight::profile::{Accesses, Privilege, Profile, Target};
use tempfile::NamedTempFile;

use super::*;
use crate::arch::X86_64;
use crate::machine::fake::{Fake, FakeAccess, FakeInstruction, Probed};

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const SWITCH: u64 = KERNEL + 0x2000;
const STACK: u64 = 0xffff_c900_0010_4000;
const USER: u64 = 0x40_0000;
/// Where a kernel of arm64 begins.
const LOW_KERNEL: u64 = 1 << 30;
/// Tasks at these addresses, of a process with this number, and with this name.
const TASKS: [(u64, u32, &[u8; 16]); 4] = [
    (0xffff_8880_0100_0000, AGENT, b"agent\0\0\0\0\0\0\0\0\0\0\0"),
    (0xffff_8880_0200_0000, 7, b"process\0\0\0\0\0\0\0\0\0"),
    (0xffff_8880_0300_0000, AGENT, b"sampler\0\0\0\0\0\0\0\0\0"),
    (0xffff_8880_0400_0000, 7, b"sampler\0\0\0\0\0\0\0\0\0"),
];
const SAMPLING: usize = 2;
const TGID: u64 = 0x10;
const COMM: u64 = 0x20;

const NOP: &[u8] = &[0x90];
const CALL: &[u8] = &[0xe8, 0, 1, 0, 0];
const RET: &[u8] = &[0xc3];

/// A machine, and the counters and probes that the plugin set at its instructions.
struct Trace<A: Architecture> {
    profiler: Profiler<A>,
    machine: Fake,
    code: BTreeMap<u64, FakeInstruction>,
    file: NamedTempFile,
}

impl<A: Architecture> Trace<A> {
    fn with_functions(
        functions: Vec<u64>,
        cpus: u16,
        nodes: Vec<(u16, Range<u64>)>,
        stacks: bool,
    ) -> Self {
        let switch = Some(Switch { address: SWITCH, tgid: TGID, comm: COMM });
        let arguments = Arguments {
            nodes,
            switch,
            stacks,
            each: false,
            turn: Some(4),
            caches: None,
            transfers: (cpus > 1).then(|| vec![0; usize::from(cpus)]),
            layout: None,
            per_cpu: None,
            allocators: Vec::new(),
            per_cpu_allocators: Vec::new(),
        };
        let file = NamedTempFile::new().unwrap();
        let mut machine = Fake::new(A::REGISTERS);
        let profiler = Profiler::new(
            &arguments,
            Functions::new(functions),
            file.path(),
            cpus,
            machine.position,
        )
        .unwrap();
        machine.set(A::REGISTERS[A::STACK_POINTER], STACK);
        for (task, id, name) in TASKS {
            machine.write(task + TGID, &id.to_le_bytes());
            machine.write(task + COMM, name);
        }
        Self { profiler, machine, code: BTreeMap::new(), file }
    }

    /// Translates a block that begins at `address`.
    fn block(&mut self, address: u64, code: &[&[u8]]) {
        match A::TARGET {
            X86_64::TARGET => self.machine.set("cs", if address < KERNEL { 0x33 } else { 0x10 }),
            _ => self.machine.set("cpsr", if address < LOW_KERNEL { 0 } else { 5 }),
        }
        let mut next = address;
        let block: Vec<_> = code
            .iter()
            .map(|bytes| {
                let instruction = FakeInstruction::new(next, bytes);
                next += bytes.len() as u64;
                instruction
            })
            .collect();
        self.profiler.translate(&self.machine, &block);
        self.code.extend(block.into_iter().map(|it| (it.address, it)));
    }

    /// Executes the instruction at `address`, which makes these accesses.
    fn execute(&self, address: u64, accesses: &[FakeAccess]) {
        self.begin(address);
        for access in accesses {
            for probed in self.code[&address].probes.borrow().iter() {
                if let Probed::AfterAccess(probe) = probed {
                    self.profiler.accessed(&self.machine, *probe, access);
                }
            }
        }
    }

    /// Begins the instruction at `address`.
    fn begin(&self, address: u64) {
        let cpu = self.machine.cpu();
        self.machine.hides_kernel.set(A::HIDES_KERNEL && address < LOW_KERNEL);
        for probed in self.code[&address].probes.borrow().iter() {
            match probed {
                Probed::Begin(segment) => self.profiler.begins(cpu, segment),
                Probed::Number(number) => self.machine.position.store(*number, Relaxed),
                Probed::Before(probe) => self.profiler.reached(&self.machine, *probe),
                Probed::AfterAccess(_) => {}
            }
        }
    }

    /// Translates and executes a block without accesses.
    fn run(&mut self, address: u64, code: &[&[u8]]) {
        self.block(address, code);
        let mut next = address;
        for bytes in code {
            self.execute(next, &[]);
            next += bytes.len() as u64;
        }
    }

    fn end(self) -> Profile {
        self.profiler.end();
        flight::profile::read(&std::fs::read(self.file.path()).unwrap()).unwrap()
    }
}

impl Trace<X86_64> {
    fn new(nodes: Vec<(u16, Range<u64>)>, stacks: bool) -> Self {
        Self::with_cpus(1, nodes, stacks)
    }

    fn with_cpus(cpus: u16, nodes: Vec<(u16, Range<u64>)>, stacks: bool) -> Self {
        let functions = vec![KERNEL, KERNEL + 0x1000, SWITCH];
        Self::with_functions(functions, cpus, nodes, stacks)
    }

    /// The kernel switches to a task.
    fn switch(&mut self, from: usize, to: usize) {
        self.run(KERNEL, &[NOP]);
        self.machine.set("rdi", TASKS[from].0);
        self.machine.set("rsi", TASKS[to].0);
        self.run(SWITCH, &[NOP]);
    }

    fn mark(&mut self) {
        self.run(USER + 0x8000, &[&MARK.to_le_bytes()]);
    }
}

/// The counts of a slice by address.
fn kernel(profile: &Profile, slice: usize) -> Vec<(u64, u64)> {
    profile.slices[slice].cpus[0].kernel.iter().map(|it| (it.address, it.count)).collect()
}

#[test]
fn marks_cut_the_counts() {
    let mut trace = Trace::new(Vec::new(), false);
    trace.run(KERNEL, &[NOP, NOP]);
    trace.mark();
    trace.run(KERNEL, &[NOP]);
    trace.run(USER, &[NOP, NOP]);
    trace.mark();
    let profile = trace.end();
    assert!(profile.whole);
    assert_eq!(kernel(&profile, 0), [(KERNEL, 1), (KERNEL + 1, 1)]);
    assert_eq!(kernel(&profile, 1), [(KERNEL, 1)]);
    // The count includes the mark, which belongs to the slice that it begins.
    assert_eq!(profile.slices[1].cpus[0].totals.user, 3);
    assert_eq!(profile.slices[2].cpus[0].totals.user, 1);
}

/// How many turns end if CPU 0 executes branches and other instructions, in blocks of these lengths.
fn turns(each: bool, blocks: &[usize]) -> u64 {
    let mut trace = Trace::with_cpus(2, Vec::new(), false);
    trace.profiler.each = each;
    for (number, length) in blocks.iter().enumerate() {
        let block = [&vec![NOP; *length][..], &[CALL]].concat();
        trace.run(KERNEL + 0x100 * number as u64, &block);
    }
    trace.machine.turns.get()
}

#[test]
fn a_turn_ends_at_the_first_branch_after_its_instructions() {
    for each in [false, true] {
        // Four instructions before the branch end it. The branch counts for the turn that ends.
        assert_eq!([2, 3, 4].map(|length| turns(each, &[length])), [0, 0, 1]);
        assert_eq!(turns(each, &[1, 2]), 1);
        assert_eq!(turns(each, &[1, 1]), 0);
        // A CPU that runs alone has the next turn too.
        assert_eq!([3, 4].map(|length| turns(each, &[4, length])), [1, 2]);
    }
    // A block that QEMU divides ends no turn at its division.
    let mut trace = Trace::with_cpus(2, Vec::new(), false);
    trace.run(KERNEL, &[NOP; 9]);
    assert_eq!(trace.machine.turns.get(), 0);
    // Another CPU has a turn of its own.
    trace.machine.cpu = 1;
    trace.run(KERNEL + 0x100, &[NOP, NOP, NOP, CALL]);
    trace.machine.cpu = 0;
    trace.run(KERNEL + 0x200, &[NOP, NOP, NOP, CALL]);
    assert_eq!(trace.machine.turns.get(), 0);
}

#[test]
fn only_the_agent_cuts_and_its_instructions_are_apart() {
    let mut trace = Trace::new(Vec::new(), false);
    trace.switch(0, 1);
    trace.run(USER, &[NOP, NOP, NOP]);
    trace.mark(); // by process 7
    trace.switch(1, 0);
    trace.run(USER, &[NOP]);
    trace.mark();
    let profile = trace.end();
    assert_eq!(profile.slices.len(), 2);
    let by_id: Vec<_> =
        profile.slices[0].cpus[0].processes.iter().map(|(it, count)| (it.id, *count)).collect();
    assert_eq!(by_id, [(AGENT, 1), (7, 4)]);
    assert_eq!(profile.intruder.map(|it| it.id), Some(7));
}

/// Paths, accesses and instructions of a slice, as sums.
fn sums(profile: &Profile, slice: usize) -> (u64, u64, u64, u64) {
    let slice = &profile.slices[slice];
    let cpu = &slice.cpus[0];
    let kernel = cpu.kernel.iter().map(|it| it.count).sum();
    let loads = cpu.accesses.iter().map(|it| it.loads).sum();
    (kernel, slice.stacks.iter().map(|it| it.count).sum(), cpu.totals.user, loads)
}

#[test]
fn the_work_of_the_sampler_is_left_out_also_across_a_cut() {
    const LOAD: &[u8] = &[0x8b, 0x07]; // mov eax, [rdi]
    let of = |between: &dyn Fn(&mut Trace<X86_64>)| {
        let mut trace = Trace::new(vec![(0, 0..u64::MAX)], true);
        let work = |trace: &mut Trace<X86_64>| {
            trace.run(KERNEL + 0x800, &[NOP, NOP]);
            trace.run(USER, &[LOAD]);
            trace.execute(USER, &[FakeAccess::load(0x1000, 0)]);
        };
        trace.switch(1, 0);
        work(&mut trace);
        between(&mut trace);
        work(&mut trace);
        trace.mark();
        let profile = trace.end();
        assert!(profile.whole);
        (sums(&profile, 0), sums(&profile, profile.slices.len() - 2), profile)
    };
    let sampled = |trace: &mut Trace<X86_64>| {
        // Code that was executed before, and code that was not.
        trace.run(KERNEL + 0x800, &[NOP, NOP]);
        trace.run(KERNEL + 0x1000, &[NOP, NOP, NOP]);
        trace.run(USER, &[LOAD]);
        trace.execute(USER, &[FakeAccess::load(0x1000, 0)]);
    };
    let (alone, _, _) = of(&|_| ());
    // Each switch executes one instruction before the tasks change, and one after.
    let switched = |to: usize| {
        of(&move |trace: &mut Trace<X86_64>| {
            trace.switch(0, to);
            sampled(trace);
            trace.machine.set("rax", 50);
            trace.run(USER + 0x100, &[&TICK.to_le_bytes()]);
            sampled(trace);
            trace.switch(to, 0);
        })
    };
    let (left_out, _, profile) = switched(SAMPLING);
    assert_eq!(left_out, (alone.0 + 2, alone.1 + 2, alone.2, alone.3));
    let processes = &profile.slices[0].cpus[0].processes;
    assert!(processes.iter().all(|(process, _)| !is_sampler(process)), "{processes:?}");
    let tick: u64 = profile.slices[0].ticks[0].accesses[0].iter().map(|it| it.loads).sum();
    assert_eq!(tick * 2, alone.3);
    // A program cannot hide its work by a name.
    let (counted, _, _) = switched(3);
    assert!(counted.0 > alone.0 + 10 && counted.3 > alone.3);
    // The sampler waits for a cut.
    let (before, after, _) = of(&|trace: &mut Trace<X86_64>| {
        trace.switch(0, SAMPLING);
        sampled(trace);
        trace.mark();
        sampled(trace);
        trace.switch(SAMPLING, 0);
    });
    assert_eq!(before.0 + after.0, alone.0 + 2);
    assert_eq!((before.1 + after.1, before.3 + after.3), (alone.1 + 2, alone.3));
}

/// The agent cuts the profile on one CPU while the sampler runs on the other one.
#[test]
fn other_cpus_count_while_the_sampler_runs() {
    let mut trace = Trace::with_cpus(2, Vec::new(), false);
    trace.machine.cpu = 1;
    trace.switch(1, 0);
    trace.machine.cpu = 0;
    trace.switch(1, SAMPLING);
    trace.run(KERNEL + 0x800, &[NOP, NOP]);
    trace.machine.cpu = 1;
    trace.run(KERNEL + 0x800, &[NOP, NOP]);
    trace.mark();
    trace.machine.cpu = 0;
    trace.run(KERNEL + 0x800, &[NOP, NOP]);
    trace.machine.cpu = 1;
    trace.run(KERNEL + 0x800, &[NOP, NOP]);
    trace.machine.cpu = 0;
    trace.switch(SAMPLING, 1);
    trace.run(KERNEL + 0x800, &[NOP]);
    trace.machine.cpu = 1;
    trace.mark();
    let profile = trace.end();
    let work = |slice: usize, cpu: usize| -> u64 {
        let executed = profile.slices[slice].cpus[cpu].kernel.iter();
        executed
            .filter(|it| (KERNEL + 0x800..KERNEL + 0x900).contains(&it.address))
            .map(|it| it.count)
            .sum()
    };
    assert_eq!([work(0, 0), work(0, 1)], [0, 2]);
    // The last instruction on CPU 0 is still running when CPU 1 cuts.
    assert_eq!([work(1, 0) + work(2, 0), work(1, 1)], [1, 2]);
}

const HANDLER: u64 = KERNEL + 0x1000;
const LIDT: &[u8] = &[0x0f, 0x01, 0x1f];

impl Trace<X86_64> {
    /// Loads a table of interrupts, whose page faults have a handler.
    fn load_handler(&mut self) {
        const TABLE: u64 = 0xffff_fe00_0000_0000;
        let mut gates = [0; 4096];
        let handler = HANDLER.to_le_bytes();
        let gate = &mut gates[14 * 16..][..16];
        gate[..2].copy_from_slice(&handler[..2]);
        gate[6..8].copy_from_slice(&handler[2..4]);
        gate[8..12].copy_from_slice(&handler[4..]);
        self.machine.write(TABLE, &gates);
        self.block(KERNEL, &[LIDT]);
        self.execute(KERNEL, &[FakeAccess { size: 2, ..FakeAccess::load(STACK, 0xfff) }]);
        self.execute(KERNEL, &[FakeAccess::load(STACK + 2, TABLE)]);
    }

    /// The handler of a page fault at this address of a program or of the kernel.
    fn fault(&mut self, address: u64) {
        let segment = if address < KERNEL { 0x33 } else { 0x10 };
        let frame = [6, address, segment].map(u64::to_le_bytes);
        self.machine.write(STACK, frame.as_flattened());
        self.run(HANDLER, &[NOP, NOP]);
    }
}

#[test]
fn an_instruction_with_a_page_fault_counts_once() {
    for stacks in [false, true] {
        let mut trace = Trace::new(Vec::new(), stacks);
        trace.load_handler();
        trace.block(USER, &[NOP]);
        trace.begin(USER);
        // A program can run at another address than that for which it was translated.
        trace.fault(USER + 0x1000);
        trace.execute(USER, &[]);
        let profile = trace.end();
        assert_eq!(kernel(&profile, 0), [(KERNEL, 2), (HANDLER, 1), (HANDLER + 1, 1)]);
        assert_eq!(profile.slices[0].cpus[0].totals.user, 1);
    }
}

#[test]
fn kernel_instructions_are_counted_by_call_path() {
    let mut trace = Trace::new(Vec::new(), true);
    let (callee, slot) = (KERNEL + 0x1000, STACK - 8);
    trace.block(KERNEL, &[NOP, CALL]);
    trace.execute(KERNEL, &[]);
    trace.execute(KERNEL + 1, &[FakeAccess::store(slot, KERNEL + 6)]);
    trace.machine.set("rsp", slot);
    trace.block(callee, &[NOP, RET]);
    trace.execute(callee, &[]);
    trace.execute(callee + 1, &[FakeAccess::load(slot, KERNEL + 6)]);
    trace.run(KERNEL + 6, &[NOP]);
    let profile = trace.end();
    let sites: Vec<_> = profile.nodes.iter().map(|site| (site.parent, site.address)).collect();
    assert_eq!(sites, [(None, KERNEL + 1)]);
    let stacks = profile.slices[0].stacks.iter().map(|it| (it.node, it.address, it.count));
    let expected = [(None, KERNEL, 2), (None, KERNEL + 6, 1), (Some(0), callee, 2)];
    assert_eq!(stacks.collect::<Vec<_>>(), expected);
}

#[test]
fn ticks_record_accesses_of_programs_and_kernel() {
    let mut trace = Trace::new(vec![(0, 0..u64::MAX)], false);
    let load: &[u8] = &[0x8b, 0x07]; // mov eax, [rdi]
    trace.block(USER, &[load]);
    trace.execute(USER, &[FakeAccess::load(0x1000, 0)]);
    trace.machine.set("rax", 50);
    trace.run(USER + 0x100, &[&TICK.to_le_bytes()]);
    trace.run(USER + 0x100, &[&TICK.to_le_bytes()]); // at the same time
    trace.block(KERNEL, &[load]);
    trace.execute(KERNEL, &[FakeAccess { physical: None, ..FakeAccess::load(0x2000, 0) }]);
    let profile = trace.end();
    let slice = &profile.slices[0];
    let row = |privilege, target| Accesses { privilege, target, loads: 1, stores: 0 };
    let user = row(Privilege::User, Target::Node(0));
    let ticks: Vec<_> = slice.ticks.iter().map(|tick| (tick.time, &*tick.accesses)).collect();
    assert_eq!(ticks, [(50, &[vec![user]][..])]);
    assert_eq!(slice.cpus[0].accesses, [row(Privilege::Kernel, Target::Device), user]);
}

#[test]
fn a_store_that_begins_again_counts_once() {
    let mut trace = Trace::new(Vec::new(), false);
    let store: &[u8] = &[0x88, 0x07]; // mov [rdi], al
    // The block is abandoned at the store, which is executed in a block of its own.
    trace.block(KERNEL, &[NOP, store, NOP]);
    trace.execute(KERNEL, &[]);
    trace.begin(KERNEL + 1);
    trace.run(KERNEL + 1, &[store]);
    trace.run(KERNEL + 3, &[NOP]);
    trace.run(KERNEL + 3, &[NOP]);
    assert_eq!(kernel(&trace.end(), 0), [(KERNEL, 1), (KERNEL + 1, 1), (KERNEL + 3, 2)]);
}

/// QEMU ends the block at each repetition, and begins the instruction once more to find that it is done.
#[test]
fn a_repeated_instruction_counts_once() {
    let mut trace = Trace::new(Vec::new(), false);
    let repeated: &[u8] = &[0xf3, 0x48, 0xa5]; // rep movsq
    let last = KERNEL + 1;
    trace.block(KERNEL, &[NOP, repeated]);
    trace.execute(KERNEL, &[]);
    trace.begin(last);
    for _ in 0..19 {
        trace.run(last, &[repeated]);
    }
    trace.run(KERNEL + 4, &[NOP]);
    assert_eq!(kernel(&trace.end(), 0), [(KERNEL, 1), (last, 1), (KERNEL + 4, 1)]);
}

/// Executes the same program with segments and with a callback at each instruction: blocks that are left midway by faults
/// and by a device, work that is left out, and a cut by another CPU.
#[test]
fn segments_and_single_instructions_count_the_same() {
    const MOVE: &[u8] = &[0x89, 0xc8]; // mov eax, ecx: it always completes
    const LOAD: &[u8] = &[0x8b, 0x07]; // mov eax, [rdi]
    const WORK: u64 = KERNEL + 0x800;
    let of = |each: bool| {
        let mut trace = Trace::with_cpus(2, Vec::new(), true);
        trace.profiler.each = each;
        trace.load_handler();
        trace.machine.cpu = 1;
        trace.switch(1, 0);
        trace.machine.cpu = 0;
        trace.run(USER, &[MOVE, LOAD, MOVE, MOVE]);
        // A fault of the kernel at the fourth instruction, and one of a program at the second.
        trace.block(WORK, &[MOVE, MOVE, MOVE, LOAD, MOVE]);
        (0..4).for_each(|at| trace.begin(WORK + 2 * at));
        trace.fault(WORK + 6);
        trace.run(WORK + 6, &[LOAD, MOVE]);
        trace.block(USER, &[MOVE, LOAD, MOVE]);
        (0..2).for_each(|at| trace.begin(USER + 2 * at));
        trace.fault(USER + 2);
        trace.run(USER + 2, &[LOAD, MOVE]);
        trace.switch(1, SAMPLING);
        trace.run(WORK, &[MOVE, LOAD, MOVE]);
        trace.switch(SAMPLING, 1);
        // A device ends the block at the second instruction. Then another CPU cuts.
        trace.block(WORK + 0x100, &[MOVE, LOAD, MOVE]);
        (0..2).for_each(|at| trace.begin(WORK + 0x100 + 2 * at));
        trace.machine.cpu = 1;
        trace.run(WORK + 0x200, &[MOVE, MOVE]);
        trace.mark();
        trace.machine.cpu = 0;
        trace.run(WORK + 0x104, &[MOVE]);
        trace.machine.cpu = 1;
        trace.mark();
        trace.end()
    };
    let [segments, single] = [false, true].map(of);
    assert!(segments.whole && segments == single, "{segments:?} {single:?}");
    let work: Vec<_> =
        kernel(&segments, 0).into_iter().filter(|(address, _)| *address >= WORK).collect();
    let once = [0, 2, 4, 6, 8, 0x100].map(|at| (WORK + at, 1));
    let rest = work.iter().filter(|(address, _)| *address < HANDLER).copied();
    assert_eq!(rest.collect::<Vec<_>>(), once);
    assert_eq!(segments.slices[0].cpus[0].totals.user, 7);
}

#[test]
fn marks_and_the_end_do_not_exceed_the_slices_of_a_profile() {
    let mut marks = Marks::default();
    let cuts = (0..2 * MAX_SLICES).filter(|_| marks.next_cuts()).count();
    assert_eq!(cuts + 1, MAX_SLICES);
    let mut last = Marks(usize::MAX);
    assert!(!last.next_cuts() && !last.next_cuts());
}

/// The kernel patches an instruction while it boots.
#[test]
fn kernel_instructions_have_the_class_of_their_last_translation() {
    const FENCE: &[u8] = &[0x0f, 0xae, 0xf0];
    const LOCKED: &[u8] = &[0xf0, 0x48, 0xff, 0x07];
    let mut trace = Trace::new(Vec::new(), false);
    trace.run(KERNEL, &[FENCE, NOP, LOCKED]);
    trace.run(USER, &[FENCE]);
    trace.mark();
    trace.block(KERNEL, &[NOP]);
    trace.mark();
    let profile = trace.end();
    assert_eq!(profile.classes, [(KERNEL + 3 + NOP.len() as u64, Class::Locked)].into());
}
