//! Recognises the few instructions that are special to the plugin, by their bytes.

use flight::profile::{MARK, TICK};

use crate::machine::Machine;

/// Why an instruction is special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The agent cuts the profile.
    Mark,
    /// The agent's sampler ticks.
    Tick,
    /// `lidt`: the CPU gets another interrupt table.
    LoadInterruptTable,
    /// A plain store to memory, which may modify code.
    Store,
    /// A near call.
    Call,
    /// A near return.
    Return,
    /// `iretq`.
    InterruptReturn,
    /// `syscall` or `sysenter`.
    SystemCall,
    /// The stack pointer is loaded from memory.
    LoadStack,
    /// The stack pointer is set from the register with this number.
    MoveStack(usize),
}

/// Examines an instruction's bytes.
pub fn special(bytes: &[u8]) -> Option<Special> {
    if bytes == MARK {
        return Some(Special::Mark);
    }
    if bytes == TICK {
        return Some(Special::Tick);
    }
    let prefixes = bytes.iter().take_while(|byte| is_prefix(**byte)).count();
    let rex = bytes[..prefixes].last().filter(|byte| **byte & 0xf0 == 0x40);
    let rex = Rex(rex.copied().unwrap_or(0));
    // Opcode maps and ModR/M: Intel SDM, volume 2, appendix A and chapter 2.
    match bytes[prefixes..] {
        [0x0f, 0x01, modrm, ..] if is_memory(modrm) && field(modrm) == 3 => {
            Some(Special::LoadInterruptTable)
        }
        [0x0f, 0x05 | 0x34] => Some(Special::SystemCall),
        [0xe8, a, b, c, d] => call(i32::from_le_bytes([a, b, c, d])),
        [0xff, modrm, ..] if field(modrm) == 2 => Some(Special::Call),
        [0xc3] | [0xc2, ..] => Some(Special::Return),
        [0xcf] => Some(Special::InterruptReturn),
        [0x5c] if !rex.base() => Some(Special::LoadStack),
        // MOV to the stack pointer, in either encoding.
        [0x8b, modrm, ..] if rex.wide() && !rex.register() && field(modrm) == STACK => {
            Some(match is_memory(modrm) {
                true => Special::LoadStack,
                false => Special::MoveStack((modrm & 7 | u8::from(rex.base()) << 3).into()),
            })
        }
        [0x89, modrm] if rex.wide() && !rex.base() && modrm >> 6 == 3 && modrm & 7 == STACK => {
            Some(Special::MoveStack((field(modrm) | u8::from(rex.register()) << 3).into()))
        }
        // MOV, and MOVUPS, MOVAPS, MOVNTI, MOVQ, MOVNTQ and their prefixed variants.
        [0x88 | 0x89 | 0xc6 | 0xc7, modrm, ..]
        | [0x0f, 0x11 | 0x29 | 0x7f | 0xc3 | 0xd6 | 0xe7, modrm, ..]
            if is_memory(modrm) =>
        {
            Some(Special::Store)
        }
        _ => None,
    }
}

/// Length of the store before a [`Special::LoadStack`] in a task switch.
const SAVE_STACK: usize = 7;

/// Whether the instruction at `address`, which loads the stack pointer, switches from one task's stack to
/// another's.
pub fn leaves_task(address: u64, load: &[u8], machine: &impl Machine) -> bool {
    let before = machine.read(address.wrapping_sub(SAVE_STACK as u64));
    before.is_some_and(|before| is_switch(before, load))
}

/// Whether `load` loads the stack pointer from the field to which `before`, the instruction before it,
/// stored it in another structure: this is how the kernel switches from one task's stack to another's
/// (`__switch_to_asm` in `arch/x86/entry/entry_64.S`).
fn is_switch(before: [u8; SAVE_STACK], load: &[u8]) -> bool {
    // mov [a+disp32], rsp; mov rsp, [b+disp32]
    let ([0x48, 0x89, save, saved @ ..], [0x48, 0x8b, load, loaded @ ..]) = (before, load) else {
        return false;
    };
    let far = |modrm: u8| modrm >> 6 == 2 && field(modrm) == STACK && modrm & 7 != STACK;
    far(save) && far(*load) && save != *load && saved == loaded
}

/// The register number of the stack pointer; in an index byte it means no index.
const STACK: u8 = 4;
/// The smallest distance of a function call.
const PUSH: i32 = 8;

/// A call over a few bytes only pushes an address. Mitigations of speculative execution use such calls.
fn call(distance: i32) -> Option<Special> {
    (!(0..PUSH).contains(&distance)).then_some(Special::Call)
}

/// The bits of a REX prefix.
#[derive(Clone, Copy)]
struct Rex(u8);

impl Rex {
    fn wide(self) -> bool {
        self.0 & 8 != 0
    }

    fn register(self) -> bool {
        self.0 & 4 != 0
    }

    fn base(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Segment, operand size, address size and repetition prefixes, and REX.
fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3)
}

/// Whether the operand of a ModR/M byte is in memory, not a register.
fn is_memory(modrm: u8) -> bool {
    modrm >> 6 != 3
}

/// The register, or the opcode extension, in a ModR/M byte.
fn field(modrm: u8) -> u8 {
    modrm >> 3 & 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_instructions_are_special() {
        assert_eq!(special(&MARK), Some(Special::Mark));
        assert_eq!(special(&TICK), Some(Special::Tick));
        let lidt = Some(Special::LoadInterruptTable);
        assert_eq!(special(&[0x0f, 0x01, 0x1f]), lidt); // lidt [rdi]
        assert_eq!(special(&[0x0f, 0x01, 0x1d, 1, 2, 3, 4]), lidt); // lidt [rip+0x04030201]
        assert_eq!(special(&[0x41, 0x0f, 0x01, 0x1c, 0x24]), lidt); // lidt [r12]
        assert_eq!(special(&[0x0f, 0x01, 0x17]), None); // lgdt [rdi]
        assert_eq!(special(&[0x0f, 0x01, 0xd8]), None); // vmrun
        assert_eq!(special(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), None); // an ordinary nop
        let store = Some(Special::Store);
        assert_eq!(special(&[0x4c, 0x89, 0x5c, 0x17, 0xf8]), store); // mov [rdi+rdx-8], r11
        assert_eq!(special(&[0x44, 0x88, 0x47, 0x01]), store); // mov [rdi+1], r8b
        assert_eq!(special(&[0xf3, 0x0f, 0x7f, 0x07]), store); // movdqu [rdi], xmm0
        assert_eq!(special(&[0xf3, 0xa4]), None); // rep movsb
        assert_eq!(special(&[0x89, 0xc8]), None); // mov eax, ecx
        assert_eq!(special(&[0x8b, 0x07]), None); // mov eax, [rdi]
        assert_eq!(special(&[0x90]), None);
        assert_eq!(special(&[0x66; 15]), None);
        assert_eq!(special(&[]), None);
    }

    #[test]
    fn calls_and_returns_are_special() {
        let call = Some(Special::Call);
        assert_eq!(special(&[0xe8, 0x6f, 0x31, 0x5e, 0xfe]), call); // call -0x1a1ce91
        assert_eq!(special(&[0x2e, 0xe8, 0x40, 0, 0, 0]), call); // cs call +0x40
        assert_eq!(special(&[0xe8, 1, 0, 0, 0]), None); // call over an int3
        assert_eq!(special(&[0xff, 0xd0]), call); // call rax
        assert_eq!(special(&[0x41, 0xff, 0x54, 0x24, 0x10]), call); // call [r12+16]
        assert_eq!(special(&[0xff, 0xe0]), None); // jmp rax
        assert_eq!(special(&[0xff, 0x30]), None); // push [rax]
        assert_eq!(special(&[0xc3]), Some(Special::Return));
        assert_eq!(special(&[0xf3, 0xc3]), Some(Special::Return)); // rep ret
        assert_eq!(special(&[0xc2, 8, 0]), Some(Special::Return)); // ret 8
        assert_eq!(special(&[0x48, 0xcb]), None); // lretq
        assert_eq!(special(&[0x48, 0xcf]), Some(Special::InterruptReturn));
        assert_eq!(special(&[0x0f, 0x05]), Some(Special::SystemCall));
        assert_eq!(special(&[0x48, 0x0f, 0x07]), None); // sysretq
    }

    #[test]
    fn changes_of_the_stack_pointer_are_special() {
        assert_eq!(special(&[0x5c]), Some(Special::LoadStack)); // pop rsp
        assert_eq!(special(&[0x41, 0x5c]), None); // pop r12
        // mov rsp, [rsi+0x14d8]; mov rsp, gs:[0x6008]
        assert_eq!(special(&[0x48, 0x8b, 0xa6, 0xd8, 0x14, 0, 0]), Some(Special::LoadStack));
        let load = [0x65, 0x48, 0x8b, 0x24, 0x25, 8, 0x60, 0, 0];
        assert_eq!(special(&load), Some(Special::LoadStack));
        assert_eq!(special(&[0x4c, 0x8b, 0xa6, 0xd8, 0x14, 0, 0]), None); // mov r12, [rsi+0x14d8]
        assert_eq!(special(&[0x8b, 0x66, 0x10]), None); // mov esp, [rsi+16]
        assert_eq!(special(&[0x48, 0x89, 0xc4]), Some(Special::MoveStack(0))); // mov rsp, rax
        assert_eq!(special(&[0x4c, 0x89, 0xdc]), Some(Special::MoveStack(11))); // mov rsp, r11
        assert_eq!(special(&[0x49, 0x8b, 0xe3]), Some(Special::MoveStack(11))); // mov rsp, r11
        assert_eq!(special(&[0x49, 0x89, 0xc4]), None); // mov r12, rax
        assert_eq!(special(&[0x48, 0x89, 0xe0]), None); // mov rax, rsp
    }

    #[test]
    fn a_switch_saves_one_stack_pointer_and_loads_another() {
        let save = [0x48, 0x89, 0xa7, 0xd8, 0x14, 0, 0]; // mov [rdi+0x14d8], rsp
        let load = [0x48, 0x8b, 0xa6, 0xd8, 0x14, 0, 0]; // mov rsp, [rsi+0x14d8]
        assert!(is_switch(save, &load));
        assert!(!is_switch(load, &save));
        let elsewhere = [0x48, 0x8b, 0xa6, 0xd0, 0x14, 0, 0];
        assert!(!is_switch(save, &elsewhere));
        let back = [0x48, 0x8b, 0xa7, 0xd8, 0x14, 0, 0]; // mov rsp, [rdi+0x14d8]
        assert!(!is_switch(save, &back));
        assert!(!is_switch([0x90; SAVE_STACK], &load));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..16)) {
            let prefix = [0x48, 0x66, 0xff].map(|first| [&[first], &bytes[..]].concat());
            for bytes in prefix.iter().chain([&bytes]) {
                let _ = (special(bytes), is_switch([0x48; SAVE_STACK], bytes));
            }
        }
    }
}
