//! A made-up machine in place of QEMU, for tests.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

use super::*;
use crate::segments::{Position, cells};

/// A machine whose registers and memory tests set.
pub struct Fake {
    names: &'static [&'static str],
    pub cpu: usize,
    pub position: Position,
    /// Whether the upper half of the address space cannot be read.
    pub hides_kernel: Cell<bool>,
    /// How many turns the profiler ended.
    pub turns: Cell<u64>,
    registers: HashMap<usize, u64>,
    memory: BTreeMap<u64, u8>,
}

impl Fake {
    /// A machine whose CPUs have registers with these names.
    pub fn new(names: &'static [&'static str]) -> Self {
        let (hides_kernel, turns, registers, memory) = Default::default();
        Self { names, cpu: 0, position: &cells(1)[0], hides_kernel, turns, registers, memory }
    }

    /// Sets the register with this name on all CPUs.
    pub fn set(&mut self, name: &str, value: u64) {
        let number = self.names.iter().position(|register| *register == name);
        self.registers.insert(number.expect("it is a register"), value);
    }

    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        self.memory.extend((address..).zip(bytes.iter().copied()));
    }
}

impl Machine for Fake {
    fn cpu(&self) -> usize {
        self.cpu
    }

    fn register(&self, number: usize) -> Option<u64> {
        self.registers.get(&number).copied()
    }

    fn read<const LENGTH: usize>(&self, address: u64) -> Option<[u8; LENGTH]> {
        if self.hides_kernel.get() && address >> 63 != 0 {
            return None;
        }
        let bytes = (address..).take(LENGTH).map(|at| self.memory.get(&at).copied());
        bytes.collect::<Option<Vec<_>>>()?.try_into().ok()
    }

    fn end_turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }
}

/// A made-up access to memory, or to a device if it has no physical address.
#[derive(Clone, Copy)]
pub struct FakeAccess {
    pub address: u64,
    pub physical: Option<u64>,
    pub size: u64,
    pub store: bool,
    pub value: u64,
}

impl FakeAccess {
    /// A load of 8 bytes. Its physical address is the virtual one.
    pub fn load(address: u64, value: u64) -> Self {
        Self { address, physical: Some(address), size: 8, store: false, value }
    }

    /// A store of 8 bytes. Its physical address is the virtual one.
    pub fn store(address: u64, value: u64) -> Self {
        Self { store: true, ..Self::load(address, value) }
    }
}

impl Access for FakeAccess {
    fn address(&self) -> u64 {
        self.address
    }

    fn physical(&self) -> Option<u64> {
        self.physical
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn is_store(&self) -> bool {
        self.store
    }

    fn word(&self) -> Option<u64> {
        (self.size() == 8).then_some(self.value)
    }
}

/// An instruction that remembers its probes.
#[derive(Clone, Debug)]
pub struct FakeInstruction {
    pub address: u64,
    pub bytes: Vec<u8>,
    pub probes: RefCell<Vec<Probed>>,
}

/// A segment, a number or a probe that was set at an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Probed {
    Begin(&'static Segment),
    Number(u64),
    Before(Probe),
    AfterAccess(AccessProbe),
}

impl FakeInstruction {
    pub fn new(address: u64, bytes: &[u8]) -> Self {
        Self { address, bytes: bytes.to_vec(), probes: RefCell::default() }
    }
}

impl Instruction for &FakeInstruction {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn begin(&self, segment: &'static Segment) {
        self.probes.borrow_mut().push(Probed::Begin(segment));
    }

    fn tell_number(&self, number: u64) {
        self.probes.borrow_mut().push(Probed::Number(number));
    }

    fn before(&self, probe: Probe) {
        self.probes.borrow_mut().push(Probed::Before(probe));
    }

    fn after_access(&self, probe: AccessProbe) {
        self.probes.borrow_mut().push(Probed::AfterAccess(probe));
    }
}
