//! QEMU's plugin interface (`include/plugins/qemu-plugin.h`), as far as it is used here.
//!
//! The CPU number passed to callbacks is wrong when one thread runs several CPUs, so it is ignored; see [`super::cpus`].
//! The `qemu-plugin` crate's own callbacks are closures, and each translation leaks one; these here are plain functions.

#![expect(unsafe_code, reason = "QEMU's interface is one of C")]

use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flight::profile::MAX_CPUS;
use qemu_plugin::RegisterDescriptor;
use qemu_plugin::sys::{
    GByteArray, qemu_plugin_cb_flags, qemu_plugin_get_hwaddr, qemu_plugin_hwaddr_is_io,
    qemu_plugin_hwaddr_phys_addr, qemu_plugin_insn, qemu_plugin_insn_data, qemu_plugin_insn_size,
    qemu_plugin_insn_vaddr, qemu_plugin_mem_get_value, qemu_plugin_mem_is_store,
    qemu_plugin_mem_rw, qemu_plugin_mem_size_shift, qemu_plugin_meminfo_t, qemu_plugin_op,
    qemu_plugin_read_memory_vaddr, qemu_plugin_register_vcpu_insn_exec_cb,
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu, qemu_plugin_register_vcpu_mem_cb,
    qemu_plugin_scoreboard, qemu_plugin_scoreboard_find, qemu_plugin_scoreboard_new,
    qemu_plugin_tb, qemu_plugin_tb_get_insn, qemu_plugin_tb_n_insns, qemu_plugin_u64,
};

use crate::machine;
use crate::segments::Position;

/// Called before an instruction is executed, with the data given at registration.
pub type OnExecution = unsafe extern "C" fn(c_uint, *mut c_void);
/// Called after an access, with the access, its virtual address, and the data given at registration.
pub type OnAccess = unsafe extern "C" fn(c_uint, qemu_plugin_meminfo_t, u64, *mut c_void);

unsafe extern "C" {
    // From GLib, which QEMU links.
    fn g_byte_array_new() -> *mut GByteArray;
    fn g_byte_array_free(array: *mut GByteArray, free_segment: c_int) -> *mut u8;
}

/// Whether a callback reads registers, which takes more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The callback reads no registers.
    Nothing,
    /// The callback reads registers.
    Registers,
}

/// A block of guest code during its translation.
pub struct Block(*mut qemu_plugin_tb);

impl Block {
    /// The block of a translation callback.
    ///
    /// # Safety
    /// The callback must not have returned before the block's last use.
    pub unsafe fn new(block: *mut qemu_plugin_tb) -> Self {
        Self(block)
    }

    pub fn instructions(&self) -> impl Iterator<Item = Instruction<'_>> {
        // SAFETY: the block is valid.
        let count = unsafe { qemu_plugin_tb_n_insns(self.0) };
        // SAFETY: the indices are below the number of instructions.
        let at = |index| unsafe { qemu_plugin_tb_get_insn(self.0, index) };
        (0..count).map(move |index| Instruction(at(index), PhantomData))
    }
}

/// An instruction of a block.
pub struct Instruction<'a>(*mut qemu_plugin_insn, PhantomData<&'a Block>);

impl Instruction<'_> {
    /// Its virtual address.
    pub fn address(&self) -> u64 {
        // SAFETY: the block that it belongs to is borrowed, and so valid; the same goes for all
        // calls below.
        unsafe { qemu_plugin_insn_vaddr(self.0) }
    }

    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: QEMU writes at most as many bytes as there is room for, and says how many.
        unsafe {
            let mut bytes = vec![0; qemu_plugin_insn_size(self.0)];
            let count = qemu_plugin_insn_data(self.0, bytes.as_mut_ptr().cast(), bytes.len());
            bytes.truncate(count);
            bytes
        }
    }

    /// Calls `callback` with `data` before each execution.
    ///
    /// # Safety
    /// `data` must be good for `callback` as long as QEMU runs.
    pub unsafe fn on_execution(&self, callback: OnExecution, reads: Reads, data: *const c_void) {
        let flags = match reads {
            Reads::Nothing => qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS,
            Reads::Registers => qemu_plugin_cb_flags::QEMU_PLUGIN_CB_R_REGS,
        };
        let data = data.cast_mut();
        // SAFETY: a function lives as long as the plugin, and so does the data.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(self.0, Some(callback), flags, data) }
    }

    /// Stores `number` at the place of `numbers` before each execution.
    ///
    /// # Safety
    /// `cpu` must be the CPU for which QEMU translates.
    pub unsafe fn stores(&self, numbers: &'static Numbers, cpu: usize, number: u64) {
        let op = qemu_plugin_op::QEMU_PLUGIN_INLINE_STORE_U64;
        let entry = numbers.entry(cpu);
        // SAFETY: the instruction is valid, and the entry leads to a place that lives as long as QEMU.
        unsafe { qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(self.0, op, entry, number) }
    }

    /// Calls `callback` with `data` after each load and store.
    ///
    /// # Safety
    /// `data` must be good for `callback` as long as QEMU runs.
    pub unsafe fn on_access(&self, callback: OnAccess, data: *const c_void) {
        let flags = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
        let both = qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW;
        let data = data.cast_mut();
        // SAFETY: as in `on_execution`.
        unsafe { qemu_plugin_register_vcpu_mem_cb(self.0, Some(callback), flags, both, data) }
    }
}

/// A load or store.
#[derive(Clone, Copy)]
pub struct Access {
    info: qemu_plugin_meminfo_t,
    address: u64,
}

impl Access {
    /// The access of a memory callback.
    ///
    /// # Safety
    /// The callback must not have returned before the access's last use.
    pub unsafe fn new(info: qemu_plugin_meminfo_t, address: u64) -> Self {
        Self { info, address }
    }
}

impl machine::Access for Access {
    fn address(&self) -> u64 {
        self.address
    }

    fn physical(&self) -> Option<u64> {
        // SAFETY: the handle is valid for the duration of the callback, or null.
        unsafe {
            let memory = qemu_plugin_get_hwaddr(self.info, self.address);
            (!memory.is_null() && !qemu_plugin_hwaddr_is_io(memory))
                .then(|| qemu_plugin_hwaddr_phys_addr(memory))
        }
    }

    fn size(&self) -> u64 {
        // SAFETY: the callback lasts; the same goes for all calls below.
        1 << unsafe { qemu_plugin_mem_size_shift(self.info) }
    }

    fn is_store(&self) -> bool {
        // SAFETY: as above.
        unsafe { qemu_plugin_mem_is_store(self.info) }
    }

    fn word(&self) -> Option<u64> {
        // SAFETY: as above. A value of this size is in this field.
        (self.size() == 8).then(|| unsafe { qemu_plugin_mem_get_value(self.info).data.u64_ })
    }
}

/// The place where blocks store the number of the instruction that they execute.
///
/// An inline operation of QEMU 10 stores at the data of a scoreboard plus an offset, plus the number of the CPU for which
/// the block is translated, if one thread runs all CPUs, times the size of an entry (`gen_plugin_u64_ptr` in
/// `accel/tcg/plugin-gen.c`). It multiplies in place, in a constant that other operations of the block share. So the
/// size must be 1, and the offset leads to a place outside of the scoreboard.
#[repr(C)]
pub struct Numbers {
    /// Nothing is stored beside the place, unless this QEMU adds the number of another CPU.
    before: [AtomicU64; BESIDE],
    place: AtomicU64,
    after: [AtomicU64; BESIDE],
    scoreboard: OnceLock<Scoreboard>,
}

/// The words on which the number of a CPU can lead.
const BESIDE: usize = MAX_CPUS as usize / 8 + 1;

struct Scoreboard(*mut qemu_plugin_scoreboard);

// SAFETY: QEMU's functions for scoreboards can be called from any thread.
unsafe impl Send for Scoreboard {}
// SAFETY: as above.
unsafe impl Sync for Scoreboard {}

impl Numbers {
    /// Number 0.
    pub const fn new() -> Self {
        let [before, after] = [const { [const { AtomicU64::new(0) }; BESIDE] }; 2];
        Self { before, place: AtomicU64::new(0), after, scoreboard: OnceLock::new() }
    }

    pub fn place(&'static self) -> Position {
        &self.place
    }

    /// Whether all numbers were stored at the place.
    pub fn is_sound(&self) -> bool {
        self.before.iter().chain(&self.after).all(|word| word.load(Relaxed) == 0)
    }

    /// The entry by which an inline operation that is translated for `cpu` finds the place. All CPUs must have been
    /// created, because that moves the data.
    fn entry(&'static self, cpu: usize) -> qemu_plugin_u64 {
        // SAFETY: the size is that of an entry, and no entry is read or written.
        let make = || Scoreboard(unsafe { qemu_plugin_scoreboard_new(1) });
        let Scoreboard(score) = *self.scoreboard.get_or_init(make);
        // SAFETY: the scoreboard lives as long as QEMU, which runs a CPU.
        let data = unsafe { qemu_plugin_scoreboard_find(score, 0) }.addr();
        let place = ptr::from_ref(&self.place).expose_provenance();
        qemu_plugin_u64 { score, offset: place.wrapping_sub(data).wrapping_sub(cpu) }
    }
}

/// The registers that the plugin reads.
pub struct Registers(Vec<RegisterDescriptor<'static>>);

impl Registers {
    /// Finds the registers with these names. A CPU must have been created. `None` unless all exist.
    pub fn find(names: &[&str]) -> Option<Self> {
        let all = qemu_plugin::qemu_plugin_get_registers().ok()?;
        let named = |name: &&str| all.iter().find(|register| register.name == *name).cloned();
        names.iter().map(named).collect::<Option<_>>().map(Self)
    }

    /// The executing CPU's value of the register with this number, of at most 8 bytes.
    pub fn value(&self, number: usize) -> Option<u64> {
        let bytes = self.0.get(number)?.read().ok()?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(u64::from_le_bytes(word))
    }
}

/// Reads the guest's memory at a virtual address, as seen by the CPU that this thread emulates. `None` unless all of
/// it is mapped.
pub fn read_memory<const LENGTH: usize>(address: u64) -> Option<[u8; LENGTH]> {
    // SAFETY: callbacks come from threads that emulate a CPU. The array belongs to GLib, and QEMU may
    // enlarge it. It is read only where QEMU reports that it is filled, and freed once.
    unsafe {
        let array = g_byte_array_new();
        let read = qemu_plugin_read_memory_vaddr(address, array, LENGTH);
        let filled = read && (*array).len as usize == LENGTH;
        let bytes =
            filled.then(|| slice::from_raw_parts((*array).data, LENGTH).try_into().ok()).flatten();
        g_byte_array_free(array, 1);
        bytes
    }
}
