//! Programs for a made-up machine of arm64.

use flight::profile::marks::aarch64::MARK;

use super::*;
use crate::arch::Arm64;

const NOP: u32 = 0xd503_201f;
const MOVE: u32 = 0xaa01_03e0; // mov x0, x1: it always completes
const LOAD: u32 = 0xf940_0000; // ldr x0, [x0]
const CALL: u32 = 0x9400_0040; // bl
const RET: u32 = 0xd65f_03c0;
const SVC: u32 = 0xd400_0001;
const ERET: u32 = 0xd69f_03e0;
const SET_TASK: u32 = 0xd518_4101; // msr sp_el0, x1
const SET_VECTORS: u32 = 0xd518_c008; // msr vbar_el1, x8

/// Functions of the kernel.
const F: u64 = KERNEL + 0x1_0000;
const G: u64 = KERNEL + 0x2_0000;
const H: u64 = KERNEL + 0x3_0000;
/// Two tables of vectors.
const TABLES: [u64; 2] = [KERNEL + 0x800, KERNEL + 0x1800];
/// Offsets in a table.
const FROM_KERNEL: u64 = 0x200;
const IRQ_FROM_KERNEL: u64 = 0x280;
const FROM_PROGRAM: u64 = 0x400;
/// Classes of exceptions.
const SYSTEM_CALL: u64 = 0x15;
const ABORT_OF_PROGRAM: u64 = 0x24;
const ABORT: u64 = 0x25;
/// States to which an exception returns.
const TO_PROGRAM: u64 = 0;
const TO_KERNEL: u64 = 5;

/// Path, outermost call site first, block, and instructions.
type Counted = (Vec<u64>, u64, u64);

impl Trace<Arm64> {
    fn new() -> Self {
        Self::with_cpu_count(1)
    }

    fn with_cpu_count(cpus: u16) -> Self {
        let mut trace = Self::with_functions(vec![F, G, H], cpus, Vec::new(), true);
        for table in TABLES {
            trace.machine.set("x8", table);
            trace.words(KERNEL, &[SET_VECTORS]);
        }
        trace
    }

    /// Translates and executes a block.
    fn words(&mut self, address: u64, words: &[u32]) {
        self.translated(address, words);
        (0..words.len() as u64).for_each(|at| self.execute(address + 4 * at, &[]));
    }

    fn translated(&mut self, address: u64, words: &[u32]) {
        let bytes: Vec<_> = words.iter().map(|word| word.to_le_bytes()).collect();
        let bytes: Vec<&[u8]> = bytes.iter().map(|bytes| &bytes[..]).collect();
        self.block(address, &bytes);
    }

    /// A call from `site` to a function.
    fn call(&mut self, site: u64, function: u64, stack: u64) {
        self.machine.set("sp", stack);
        self.words(site, &[CALL]);
        self.words(function, &[NOP]);
    }

    /// A return at `from` to the instruction after the call at `site`.
    fn ret(&mut self, from: u64, site: u64, stack: u64) {
        self.machine.set("sp", stack);
        self.machine.set("x30", site + 4);
        self.words(from, &[RET]);
        self.words(site + 4, &[NOP]);
    }

    /// An exception at `address`, whose vector has two instructions.
    fn exception(&mut self, vector: u64, address: u64, class: u64) {
        self.machine.set("ELR_EL1", address);
        self.machine.set("ESR_EL1", class << 26);
        self.words(vector, &[NOP, NOP]);
    }

    fn eret(&mut self, address: u64, state: u64) {
        self.machine.set("ELR_EL1", address);
        self.machine.set("SPSR_EL1", state);
        self.words(KERNEL + 0x4000, &[ERET]);
    }

    /// The kernel switches from one task to another, which has this stack pointer.
    fn switch_to(&mut self, from: usize, to: usize, stack: u64) {
        self.machine.set("x0", TASKS[from].0);
        self.machine.set("x1", TASKS[to].0);
        self.machine.set("sp", stack);
        self.words(KERNEL + 0x5000, &[NOP, SET_TASK]);
    }

    /// The kernel returns to a program, or a program enters the kernel.
    fn set_user_stack(&mut self, value: u64) {
        self.machine.set("x1", value);
        self.words(KERNEL + 0x5000, &[NOP, SET_TASK]);
    }

    fn cut(&mut self) {
        self.words(USER + 0x8000, &[MARK]);
    }
}

/// The counts by path of functions and of what was called, without code of the entry.
fn counted(profile: &Profile, slice: usize) -> Vec<Counted> {
    let path = |mut node: Option<u32>| {
        let mut path = Vec::new();
        while let Some(site) = node.map(|node| profile.nodes[node as usize]) {
            path.insert(0, site.address);
            node = site.parent;
        }
        path
    };
    let stacks = profile.slices[slice].stacks.iter().filter(|it| it.address >= F);
    let mut counted: Vec<_> = stacks.map(|it| (path(it.node), it.address, it.count)).collect();
    counted.sort();
    counted
}

#[test]
fn programs_the_kernel_and_its_first_instructions_are_told_apart() {
    let mut trace = Trace::<Arm64>::new();
    trace.words(LOW_KERNEL, &[MOVE, NOP, NOP]);
    trace.words(F, &[MOVE, NOP]);
    trace.words(USER, &[MOVE, LOAD, MOVE, NOP]);
    trace.cut();
    let profile = trace.end();
    let cpu = &profile.slices[0].cpus[0];
    assert_eq!((cpu.totals.firmware, cpu.totals.user), (3, 4));
    // Beside the two that set the tables.
    assert_eq!(cpu.instructions(Privilege::Kernel), 2 + 2);
    assert_eq!(profile.classes, BTreeMap::new());
}

#[test]
fn a_call_returns_with_its_address_and_stack() {
    let mut trace = Trace::<Arm64>::new();
    trace.call(F + 8, G, STACK);
    trace.call(G + 4, H, STACK - 32);
    trace.ret(H + 4, G + 4, STACK - 32);
    // A return without a call is a jump.
    trace.machine.set("x30", H + 0x100);
    trace.words(G + 0x80, &[RET]);
    trace.words(H + 0x100, &[NOP]);
    trace.ret(G + 0x40, F + 8, STACK);
    let site = vec![F + 8];
    let expected = [
        (vec![], F + 8, 1),
        (vec![], F + 12, 1),
        (site.clone(), G, 1),
        (site.clone(), G + 4, 1),
        (site.clone(), G + 8, 1),
        (site.clone(), G + 0x40, 1),
        (site.clone(), G + 0x80, 1),
        (site, H + 0x100, 1),
        (vec![F + 8, G + 4], H, 1),
        (vec![F + 8, G + 4], H + 4, 1),
    ];
    assert_eq!(counted(&trace.end(), 0), expected);
}

#[test]
fn a_function_that_is_reached_without_a_call_was_jumped_to() {
    let mut trace = Trace::<Arm64>::new();
    trace.call(F + 8, G, STACK);
    trace.words(H, &[NOP]);
    trace.ret(H + 4, F + 8, STACK);
    let expected = [
        (vec![], F + 8, 1),
        (vec![], F + 12, 1),
        (vec![F + 8], G, 1),
        (vec![F + 8, G], H, 1),
        (vec![F + 8, G], H + 4, 1),
    ];
    assert_eq!(counted(&trace.end(), 0), expected);
}

#[test]
fn what_an_abort_interrupts_counts_once_and_a_system_call_counts() {
    for table in TABLES {
        let mut trace = Trace::<Arm64>::new();
        trace.words(USER, &[MOVE, LOAD]);
        trace.exception(table + FROM_PROGRAM, USER + 4, ABORT_OF_PROGRAM);
        trace.words(F, &[MOVE, LOAD]);
        trace.exception(table + FROM_KERNEL, F + 4, ABORT);
        trace.words(F + 4, &[LOAD]);
        // The syndrome is that of the last abort.
        trace.exception(table + IRQ_FROM_KERNEL, F + 4, ABORT);
        trace.words(USER + 4, &[LOAD, SVC]);
        trace.exception(table + FROM_PROGRAM, USER + 12, SYSTEM_CALL);
        let profile = trace.end();
        assert_eq!(profile.slices[0].cpus[0].totals.user, 3);
        let executed: Vec<_> =
            kernel(&profile, 0).into_iter().filter(|(address, _)| *address >= F).collect();
        assert_eq!(executed, [(F, 1), (F + 4, 1)]);
    }
}

#[test]
fn an_interrupt_is_apart_and_an_exception_is_a_call() {
    for (vector, inside) in [(IRQ_FROM_KERNEL, vec![]), (FROM_KERNEL, vec![F + 8, G + 4])] {
        // The kernel continues at the same instruction, or after it.
        for continues in [G + 4, G + 8] {
            let mut trace = Trace::<Arm64>::new();
            trace.call(F + 8, G, STACK);
            trace.exception(TABLES[0] + vector, G + 4, 0x3c);
            trace.call(KERNEL + 0x6000, H, STACK - 336);
            trace.ret(H + 4, KERNEL + 0x6000, STACK - 336);
            trace.machine.set("sp", STACK);
            trace.eret(continues, TO_KERNEL);
            trace.words(continues, &[NOP]);
            let within = [&inside[..], &[KERNEL + 0x6000]].concat();
            let mut expected = vec![
                (vec![], F + 8, 1),
                (vec![F + 8], G, 1),
                (vec![F + 8], continues, 1),
                (within.clone(), H, 1),
                (within, H + 4, 1),
            ];
            expected.sort();
            assert_eq!(counted(&trace.end(), 0), expected);
        }
    }
}

#[test]
fn a_task_continues_on_another_cpu_where_it_left() {
    let mut trace = Trace::with_cpu_count(2);
    trace.switch_to(0, 0, STACK);
    trace.call(F + 8, G, STACK);
    trace.call(G + 4, KERNEL + 0x5000, STACK - 64); // the function that switches
    trace.switch_to(0, 1, STACK - 0x8000);
    trace.words(H, &[NOP]);
    trace.machine.cpu = 1;
    trace.switch_to(2, 2, STACK + 0x8000);
    trace.switch_to(2, 0, STACK - 64);
    trace.ret(KERNEL + 0x5008, G + 4, STACK - 64);
    let profile = trace.end();
    let expected = [
        (vec![], F + 8, 1),
        (vec![], H, 1),
        (vec![F + 8], G, 1),
        (vec![F + 8], G + 4, 1),
        (vec![F + 8], G + 8, 1),
    ];
    assert_eq!(counted(&profile, 0), expected);
    let by_cpu = [0, 1].map(|cpu: usize| profile.slices[0].cpus[cpu].kernel.len());
    assert!(by_cpu.iter().all(|it| *it > 0));
}

#[test]
fn a_new_task_at_the_address_of_one_that_ended_has_no_calls() {
    let mut trace = Trace::<Arm64>::new();
    trace.switch_to(0, 0, STACK);
    trace.call(F + 8, G, STACK);
    trace.switch_to(0, 1, STACK - 0x8000);
    trace.switch_to(1, 0, STACK + 0x100);
    trace.words(H, &[NOP]);
    let expected = [(vec![], F + 8, 1), (vec![], H, 1), (vec![F + 8], G, 1)];
    assert_eq!(counted(&trace.end(), 0), expected);
}

#[test]
fn between_program_and_kernel_there_are_no_calls() {
    let mut trace = Trace::<Arm64>::new();
    trace.call(F + 8, G, STACK);
    trace.eret(USER, TO_PROGRAM);
    trace.words(H, &[NOP]);
    trace.call(F + 8, G, STACK);
    trace.exception(TABLES[1] + FROM_PROGRAM, USER + 4, SYSTEM_CALL);
    trace.words(H, &[NOP]);
    let expected = [(vec![], F + 8, 2), (vec![], H, 2), (vec![F + 8], G, 2)];
    assert_eq!(counted(&trace.end(), 0), expected);
}

#[test]
fn only_the_agent_cuts_and_its_instructions_are_apart() {
    let mut trace = Trace::<Arm64>::new();
    trace.switch_to(1, 1, STACK);
    trace.words(USER, &[NOP, NOP, NOP]);
    trace.cut(); // by process 7
    // It pretends to be the agent, whose task is a possible stack pointer, and gets another name.
    trace.machine.set("x0", 0);
    trace.machine.write(TASKS[1].0 + COMM, b"another\0\0\0\0\0\0\0\0\0");
    trace.set_user_stack(TASKS[0].0);
    trace.cut();
    trace.set_user_stack(TASKS[1].0);
    trace.words(USER, &[SET_TASK]);
    trace.cut();
    trace.switch_to(1, 0, STACK);
    trace.words(USER, &[NOP]);
    trace.cut();
    let profile = trace.end();
    assert_eq!(profile.slices.len(), 2);
    let processes = profile.slices[0].cpus[0].processes.iter();
    let processes: Vec<_> = processes.map(|(it, count)| (it.id, it.name[0], *count)).collect();
    assert_eq!(processes, [(AGENT, b'a', 1), (7, b'a', 3 + 1 + 1 + 2)]);
    assert_eq!(profile.intruder.map(|it| it.id), Some(7));
}

/// Executes the same program with segments and with a callback at each instruction.
#[test]
fn segments_and_single_instructions_count_the_same() {
    let of = |each: bool| {
        let mut trace = Trace::with_cpu_count(2);
        trace.profiler.each = each;
        trace.switch_to(0, 0, STACK);
        trace.machine.cpu = 1;
        trace.switch_to(SAMPLING, SAMPLING, STACK + 0x8000);
        trace.words(F, &[MOVE, MOVE]);
        trace.machine.cpu = 0;
        trace.call(F + 8, G, STACK);
        trace.translated(H + 0x40, &[MOVE, MOVE, LOAD, MOVE, MOVE]);
        (0..3).for_each(|at| trace.begin(H + 0x40 + 4 * at));
        trace.exception(TABLES[0] + FROM_KERNEL, H + 0x48, ABORT);
        trace.eret(H + 0x48, TO_KERNEL);
        trace.words(H + 0x48, &[LOAD, MOVE, MOVE]);
        trace.ret(G + 4, F + 8, STACK);
        trace.translated(USER, &[MOVE, LOAD, MOVE]);
        (0..2).for_each(|at| trace.begin(USER + 4 * at));
        trace.exception(TABLES[1] + FROM_PROGRAM, USER + 4, ABORT_OF_PROGRAM);
        trace.words(USER + 4, &[LOAD, MOVE]);
        trace.machine.cpu = 1;
        trace.words(F, &[MOVE, NOP, MOVE]);
        trace.switch_to(SAMPLING, 1, STACK + 0x8000);
        trace.words(F, &[MOVE, NOP, MOVE]);
        trace.machine.cpu = 0;
        trace.cut();
        trace.end()
    };
    let [segments, single] = [false, true].map(of);
    assert!(segments.whole && segments == single, "{segments:?} {single:?}");
    let slice = &segments.slices[0];
    let by_path: u64 = slice.stacks.iter().map(|it| it.count).sum();
    assert_eq!(by_path, slice.instructions(Privilege::Kernel));
    assert_eq!(slice.cpus[0].totals.user, 3);
    assert_eq!(slice.cpus[1].kernel.iter().filter(|it| it.address >= F).count(), 2);
}
