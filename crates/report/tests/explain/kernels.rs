//! Synthetic exact profiles of two kernels: 200 functions whose numbers of entries vary by luck, and one
//! function of the new kernel that executes 40 instructions more per entry.

use model::{
    ALL_CPUS, Boot, Cell, Chunk, Column, Cost, CostTable, ENTRIES, INSTRUCTIONS, Place, Privilege,
    Profile,
};

use super::common::boot;

/// The function that became more expensive.
pub const PLANTED: &str = "do_anonymous_page";
/// The additional instructions per entry.
pub const MORE: u64 = 40;
/// Number of functions of a kernel, including those that the other kernel lacks.
const FUNCTIONS: usize = 200;

/// Functions, indented below their callers, with their entries in a phase and their instructions per entry.
/// Functions without numbers are not counted.
const TREE: &str = "\
asm_exc_page_fault 160000 14
 exc_page_fault 160000 41
  handle_mm_fault 160000 72
   do_anonymous_page 120000 187
    clear_page_rep 120000 519
    vma_alloc_folio 120000 64
     get_page_from_freelist 120400 211
   do_numa_page 40000 133
    migrate_misplaced_page 9000 402
     migrate_pages_batch 9000 988
asm_sysvec_apic_timer_interrupt 21000 22
 hrtimer_interrupt 21000 201
  update_process_times 21000 144
   task_tick_fair 20800 377
ret_from_fork
 worker_thread 4100 310
  vmstat_update 900 705
entry_SYSCALL_64_after_hwframe 30000 31
 do_syscall_64 30000 58
  __x64_sys_futex 17000 290
  __x64_sys_mmap 700 1904
  __x64_sys_munmap 650 2900
cpu_startup_entry
 do_idle 8000 160
";

/// Returns boots of the old kernel with five seeds.
pub fn old() -> Vec<Boot> {
    (0..5).map(|seed| seeded(seed, false)).collect()
}

/// Returns boots of the new kernel with five other seeds.
pub fn new() -> Vec<Boot> {
    (5..10).map(|seed| seeded(seed, true)).collect()
}

/// A function in one of the kernels.
struct KernelFunction {
    path: Vec<String>,
    entries: u64,
    cost: u64,
}

fn seeded(seed: u32, new: bool) -> Boot {
    let mut luck = Luck(u64::from(seed));
    let functions = functions(new);
    let phases = [("", 1), ("fill", 10), ("steady", 14)];
    let mut boot = boot(seed % 5);
    for iteration in 0..2 {
        for (phase, length) in phases {
            boot.profiles.push(profile(&functions, iteration, phase, length, &mut luck));
            boot.chunks.push(chunk(iteration, phase, length, new, &mut luck));
        }
    }
    boot
}

/// Returns the functions of a kernel: those of the tree, and helpers that they call.
fn functions(new: bool) -> Vec<KernelFunction> {
    let mut functions = Vec::new();
    let mut path = Vec::new();
    for line in TREE.lines() {
        let mut words = line.split_whitespace();
        path.truncate(line.len() - line.trim_start().len());
        path.extend(words.next().map(str::to_owned));
        let mut number = || words.next().map(|word| word.parse::<u64>().unwrap());
        if let (Some(entries), Some(cost)) = (number(), number()) {
            let more = if new && path.ends_with(&[PLANTED.to_owned()]) { MORE } else { 0 };
            functions.push(KernelFunction { path: path.clone(), entries, cost: cost + more });
        }
    }
    let tree = functions.len();
    for number in tree..FUNCTIONS {
        let mut sizes = Luck(number as u64);
        let mut path = functions[number % tree].path.clone();
        path.push(helper(number, new));
        let (entries, cost) = (10 + sizes.below(9_000), 9 + sizes.below(240));
        functions.push(KernelFunction { path, entries, cost });
    }
    functions
}

/// Returns the name of a helper. One was renamed, one has another suffix of the compiler, and each side has
/// one that the other lacks.
fn helper(number: usize, new: bool) -> String {
    let name = match (number, new) {
        (60, false) => "lru_cache_add",
        (60, true) => "folio_add_lru",
        (61, false) => "page_add_file_rmap",
        (61, true) => "mas_wr_walk",
        (62, false) => "charge_memcg.isra.0",
        (62, true) => "charge_memcg.constprop.0",
        _ => return format!("mm_helper_{number:03}"),
    };
    name.to_owned()
}

fn profile(
    functions: &[KernelFunction],
    iteration: u32,
    phase: &str,
    length: u64,
    luck: &mut Luck,
) -> Profile {
    let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
    let mut kernel = 0;
    for (number, KernelFunction { path, entries, cost }) in functions.iter().enumerate() {
        // Helper 61 is a different function in each kernel.
        let entries =
            if path.last().is_some_and(|it| it == "mas_wr_walk") { entries * 3 } else { *entries };
        let entries = luck.about(entries * length / 10, 200).max(1);
        // In every tenth function luck changes the number of branches.
        let cost_luck = if number % 10 == 9 { 60 } else { 0 };
        let instructions = luck.about(entries * cost, cost_luck);
        kernel += instructions;
        let name = path[path.len() - 1].clone();
        let function = Place::Function { name: name.into(), module: "".into() };
        costs.push(function, [Cell::new(0, 0, instructions), Cell::new(1, 0, entries)]);
        costs.push(
            Place::Path(path.iter().map(|name| name.as_str().into()).collect()),
            [Cell::new(0, ALL_CPUS, instructions)],
        );
    }
    let user = luck.about(90_000_000 * length, 800);
    for (id, name, instructions) in [(211, "numa01", user / 100 * 98), (1, "agent", user / 100)] {
        let process = Place::Process { id, name: name.into(), functions: Vec::new() };
        costs.push(process, [Cell::new(0, 0, instructions)]);
    }
    for (privilege, instructions) in
        [(Privilege::User, user), (Privilege::Kernel, kernel), (Privilege::Firmware, 1200)]
    {
        costs.push(Place::All(privilege), [Cell::new(0, 0, instructions)]);
    }
    Profile {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        costs,
        ..Profile::default()
    }
}

fn chunk(iteration: u32, phase: &str, length: u64, new: bool, luck: &mut Luck) -> Chunk {
    let scans = if new { 31_000 } else { 44_000 };
    let grown = [
        ("nr_dirtied", 0),
        ("numa_hint_faults", luck.about(4_000 * length, 300)),
        ("numa_pages_migrated", luck.about(900 * length, 20)),
        ("numa_pte_updates", luck.about(scans * length, 150)),
        ("pgalloc_normal", luck.about(12_040 * length, 200)),
        ("pgfault", luck.about(16_000 * length, 200)),
    ];
    let column =
        |(name, by): (&str, u64)| Column::new(name, vec![Some(1000), Some(1000 + by as i64)]);
    Chunk {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        source: "vmstat".into(),
        times: vec![0, 1_000_000_000],
        columns: grown.into_iter().map(column).collect(),
    }
}

/// Pseudo-random numbers, the same in each run (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
struct Luck(u64);

impl Luck {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    /// Returns `value`, increased by up to `value / part`; `value` itself if `part` is 0.
    fn about(&mut self, value: u64, part: u64) -> u64 {
        match part {
            0 => value,
            part => value + self.below(value / part + 1),
        }
    }
}
