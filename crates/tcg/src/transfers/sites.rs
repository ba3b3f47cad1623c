//! Who allocated memory without a type. The kernel's allocation functions are followed from their beginning to their
//! return, whose value tells what was allocated.

use std::collections::{BTreeMap, HashMap};
use std::mem::discriminant;

use foldhash::fast::FixedState;

/// The most objects whose allocation is remembered. Further ones at other addresses are not.
const MAX_OBJECTS: usize = 1 << 20;
/// The most stacks on which allocations run at a time. There is one for each task, and one for each CPU's interrupts.
const MAX_STACKS: usize = 1 << 14;
/// The most allocation functions of a stack that run within each other. More are left out.
const MAX_CALLS: usize = 16;
/// The size of a stack (`THREAD_SIZE`), which is its alignment too.
const STACK: u64 = 16 << 10;

/// The allocations that run, and what those that ended returned.
#[derive(Default)]
pub struct Sites {
    /// The calls of each stack, outermost first, by the stack's number.
    running: HashMap<u64, Vec<Call>, FixedState>,
    /// The return address in the function that allocated, and the size, by the address of the object.
    objects: HashMap<u64, (u64, u32), FixedState>,
    /// The size and the same of per-CPU memory, by its pointer: the distance of a CPU's copy from the CPU's base address.
    per_cpu: BTreeMap<u64, (u64, u64)>,
}

/// What an allocation function returns.
#[derive(Clone, Copy)]
pub enum Returns {
    /// An object of as many bytes; 0 if that is not known.
    Object(u32),
    /// A pointer to as many bytes of each CPU.
    PerCpu(u64),
}

/// A call of an allocation function.
#[derive(Clone, Copy)]
struct Call {
    /// Where its return address is stored.
    slot: u64,
    returns_to: u64,
    what: Returns,
}

impl Sites {
    /// An allocation function begins, whose return address is stored at `slot`.
    pub fn begins(&mut self, slot: u64, returns_to: u64, what: Returns) {
        if self.running.len() >= MAX_STACKS && !self.running.contains_key(&(slot / STACK)) {
            return;
        }
        let calls = self.running.entry(slot / STACK).or_default();
        // A function that jumps to another one has its slot. Those below have returned.
        calls.retain(|call| call.slot > slot);
        if calls.len() < MAX_CALLS {
            calls.push(Call { slot, returns_to, what });
        }
    }

    /// Whether no allocation function runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// A function returns to the address that is stored at `slot`. If it allocates, it returns `value`, which belongs to the
    /// caller of the outermost function that returns the same kind.
    pub fn returns(&mut self, slot: u64, value: impl FnOnce() -> Option<u64>) {
        let Some(calls) = self.running.get_mut(&(slot / STACK)) else { return };
        let Some(call) = calls.pop_if(|call| call.slot == slot) else { return };
        let is_same = |it: &&Call| discriminant(&it.what) == discriminant(&call.what);
        let Call { returns_to: site, what, .. } =
            *calls.iter().rev().take_while(is_same).last().unwrap_or(&call);
        if calls.is_empty() {
            self.running.remove(&(slot / STACK));
        }
        match (what, value()) {
            (Returns::Object(size), Some(object)) if is_object(object) => {
                self.add(object, (site, size));
            }
            (Returns::PerCpu(size), Some(pointer)) if pointer != 0 => {
                self.add_per_cpu(pointer, size, site);
            }
            _ => {}
        }
    }

    fn add(&mut self, object: u64, site: (u64, u32)) {
        if self.objects.len() < MAX_OBJECTS || self.objects.contains_key(&object) {
            self.objects.insert(object, site);
        }
    }

    fn add_per_cpu(&mut self, pointer: u64, size: u64, site: u64) {
        // What began there before was freed.
        let own = self.per_cpu.range(pointer..pointer.saturating_add(size));
        let freed: Vec<u64> = own.map(|(begin, _)| *begin).collect();
        for begin in freed {
            self.per_cpu.remove(&begin);
        }
        if self.per_cpu.len() < MAX_OBJECTS {
            self.per_cpu.insert(pointer, (size, site));
        }
    }

    /// The return address in the function that allocated the object at this address last, and the size that was asked for.
    pub fn find(&self, object: u64) -> Option<(u64, u32)> {
        self.objects.get(&object).copied()
    }

    /// The same for the per-CPU memory that holds `pointer`, and the distance from its begin.
    pub fn find_per_cpu(&self, pointer: u64) -> Option<(u64, u64)> {
        let (begin, (size, site)) = self.per_cpu.range(..=pointer).next_back()?;
        let offset = pointer - begin;
        (offset < *size).then_some((*site, offset))
    }
}

/// Whether an address is one of an object, and no error (`include/linux/err.h`, `ZERO_SIZE_PTR`).
fn is_object(address: u64) -> bool {
    (1 << 63..u64::MAX - 4095).contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack, and two objects.
    const TOP: u64 = 0xffff_c900_0010_4000;
    const ONE: u64 = 0xffff_8880_0010_0000;
    const TWO: u64 = ONE + 64;

    #[test]
    fn an_object_belongs_to_the_caller_of_the_outermost_function() {
        let mut sites = Sites::default();
        sites.begins(TOP - 64, 10, Returns::Object(100));
        // It jumps to another one, which calls a third.
        sites.begins(TOP - 64, 10, Returns::Object(100));
        sites.begins(TOP - 128, 20, Returns::Object(128));
        // Other functions return.
        sites.returns(TOP - 256, || panic!("it allocates nothing"));
        sites.returns(TOP - 128, || Some(ONE));
        assert_eq!(sites.find(ONE), Some((10, 100)));
        assert!(!sites.is_idle());
        sites.returns(TOP - 64, || Some(ONE));
        assert!(sites.is_idle());
        assert_eq!((sites.find(ONE), sites.find(TWO)), (Some((10, 100)), None));
        // Another function gets the same memory.
        sites.begins(TOP - 32, 30, Returns::Object(0));
        sites.returns(TOP - 32, || Some(ONE));
        assert_eq!(sites.find(ONE), Some((30, 0)));
    }

    #[test]
    fn tasks_and_interrupts_allocate_independently() {
        let mut sites = Sites::default();
        let other = TOP + 2 * STACK;
        sites.begins(TOP - 64, 10, Returns::Object(0));
        sites.begins(other - 64, 20, Returns::Object(0));
        sites.returns(TOP - 64, || Some(ONE));
        sites.returns(other - 64, || Some(TWO));
        assert_eq!((sites.find(ONE), sites.find(TWO)), (Some((10, 0)), Some((20, 0))));
    }

    #[test]
    fn per_cpu_memory_is_found_by_any_of_its_bytes() {
        let mut sites = Sites::default();
        let mut allocate = |slot: u64, size: u64, site: u64, pointer: u64| {
            sites.begins(slot, site, Returns::PerCpu(size));
            // What describes the memory belongs to the function that allocates it.
            sites.begins(slot - 64, site + 1, Returns::Object(0));
            sites.returns(slot - 64, || Some(ONE + pointer));
            sites.returns(slot, || Some(pointer));
        };
        allocate(TOP - 64, 64, 10, 0x1000);
        allocate(TOP - 64, 8, 20, 0x1040);
        allocate(TOP - 64, 8, 30, 0);
        let found = [0xfff, 0x1000, 0x103f, 0x1044, 0x1048].map(|at| sites.find_per_cpu(at));
        assert_eq!(found, [None, Some((10, 0)), Some((10, 63)), Some((20, 4)), None]);
        assert_eq!(sites.find(ONE + 0x1000), Some((11, 0)));
        // A part of it is freed and allocated again.
        sites.begins(TOP - 64, 40, Returns::PerCpu(16));
        sites.returns(TOP - 64, || Some(0x1038));
        let found = [0x1037, 0x1038, 0x1044, 0x1048].map(|at| sites.find_per_cpu(at));
        assert_eq!(found, [Some((10, 0x37)), Some((40, 0)), Some((40, 12)), None]);
    }

    #[test]
    fn what_is_no_object_is_not_remembered() {
        let mut sites = Sites::default();
        for value in [None, Some(0), Some(16), Some(-12_i64 as u64)] {
            sites.begins(TOP - 64, 10, Returns::Object(0));
            sites.returns(TOP - 64, || value);
        }
        assert!(sites.is_idle() && sites.objects.is_empty());
    }

    #[test]
    fn calls_that_never_return_take_limited_memory() {
        let mut sites = Sites::default();
        for stack in 0..2 * MAX_STACKS as u64 {
            for depth in 2..2 * MAX_CALLS as u64 {
                sites.begins(TOP + stack * STACK - 8 * depth, 10, Returns::Object(0));
            }
        }
        assert_eq!(sites.running.len(), MAX_STACKS);
        assert!(sites.running.values().all(|calls| calls.len() <= MAX_CALLS));
        // A call farther up the stack shows that they have ended.
        sites.begins(TOP - 8, 20, Returns::Object(0));
        sites.returns(TOP - 8, || Some(ONE));
        assert_eq!(sites.find(ONE), Some((20, 0)));
    }
}
