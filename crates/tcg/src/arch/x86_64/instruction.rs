//! Recognises the few instructions that are special to the plugin.

use flight::profile::Class;
use flight::profile::marks::x86_64::{MARK, TICK};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use crate::arch::architecture::{Examined, Special};
use crate::machine::{Flush, Machine};

/// Examines an instruction's bytes as 64-bit code. Other code runs only in firmware and in programs. Marks, ticks and
/// system calls have the same bytes there, and so has what calculates with registers.
pub fn examine(bytes: &[u8]) -> Examined {
    let instruction = decode(bytes);
    let (special, completes) = (special(bytes, &instruction), completes(&instruction));
    let branches = instruction.flow_control() != FlowControl::Next;
    let class = class(&instruction);
    let flushes = flush(&instruction, class);
    Examined { special, completes, branches, flushes, class }
}

/// What the instruction makes the CPU forget of the pages that it knows (Intel's manual, volume 3, 5.10.4.1). QEMU's CPUs
/// have no PCIDs, so a write of CR3 leaves global pages alone.
fn flush(instruction: &Instruction, class: Option<Class>) -> Option<Flush> {
    match class {
        Some(Class::Cr3Write) => Some(Flush::Process),
        Some(Class::Invlpg) if is_at_register(instruction) => {
            Some(Flush::Page(instruction.memory_base().number()))
        }
        Some(Class::Invlpg | Class::Invpcid) => Some(Flush::All),
        _ => (instruction.code() == Code::Mov_cr_r64).then_some(Flush::All),
    }
}

/// Whether the memory operand is at the address in a general register.
fn is_at_register(instruction: &Instruction) -> bool {
    is_field(instruction) && instruction.memory_displacement64() == 0
}

fn special(bytes: &[u8], instruction: &Instruction) -> Option<Special> {
    if bytes == MARK.to_le_bytes() {
        return Some(Special::Mark);
    }
    if bytes == TICK.to_le_bytes() {
        return Some(Special::Tick);
    }
    let stores = instruction.op0_kind() == OpKind::Memory;
    let sets_stack =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP;
    let special = match instruction.mnemonic() {
        Mnemonic::Lidt => Special::LoadInterruptTable,
        Mnemonic::Syscall | Mnemonic::Sysenter => Special::SystemCall,
        Mnemonic::Call if is_near_call(instruction) => Special::Call,
        Mnemonic::Ret => Special::Return,
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => Special::InterruptReturn,
        Mnemonic::Pop if sets_stack => Special::LoadStack,
        Mnemonic::Mov if sets_stack && instruction.op1_kind() == OpKind::Memory => {
            Special::LoadStack
        }
        Mnemonic::Mov if sets_stack && instruction.op1_register().is_gpr64() => {
            Special::MoveStack(instruction.op1_register().number())
        }
        Mnemonic::Mov
        | Mnemonic::Movups
        | Mnemonic::Movupd
        | Mnemonic::Movss
        | Mnemonic::Movsd
        | Mnemonic::Movaps
        | Mnemonic::Movapd
        | Mnemonic::Movq
        | Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Movnti
        | Mnemonic::Movntq
        | Mnemonic::Movntdq
            if stores =>
        {
            Special::Again
        }
        _ if is_repeated(instruction) => Special::Again,
        _ => return None,
    };
    Some(special)
}

/// Whether it is a string instruction with a prefix that repeats it, such as `rep movsq`.
fn is_repeated(instruction: &Instruction) -> bool {
    let has_prefix = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    has_prefix && instruction.is_string_instruction()
}

fn class(instruction: &Instruction) -> Option<Class> {
    let is_in_memory =
        || (0..instruction.op_count()).any(|it| instruction.op_kind(it) == OpKind::Memory);
    match instruction.mnemonic() {
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence => Some(Class::Fence),
        Mnemonic::Invlpg => Some(Class::Invlpg),
        Mnemonic::Invpcid => Some(Class::Invpcid),
        Mnemonic::Wrmsr => Some(Class::MsrWrite),
        Mnemonic::Mov if instruction.code() == Code::Mov_cr_r64 => {
            (instruction.op0_register() == Register::CR3).then_some(Class::Cr3Write)
        }
        // It locks without a prefix (Intel's manual, volume 2, XCHG).
        Mnemonic::Xchg if is_in_memory() => Some(Class::Locked),
        _ => instruction.has_lock_prefix().then_some(Class::Locked),
    }
}

/// Whether the instruction only calculates with general registers.
fn completes(instruction: &Instruction) -> bool {
    let calculates = match instruction.mnemonic() {
        Mnemonic::Lea => return true,
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => true,
        Mnemonic::Add | Mnemonic::Adc | Mnemonic::Sub | Mnemonic::Sbb | Mnemonic::Imul => true,
        Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Not | Mnemonic::Neg => true,
        Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt => true,
        Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar | Mnemonic::Rol | Mnemonic::Ror => true,
        Mnemonic::Cdqe | Mnemonic::Cdq | Mnemonic::Cqo | Mnemonic::Bswap => true,
        Mnemonic::Cmove | Mnemonic::Cmovne | Mnemonic::Cmovb | Mnemonic::Cmovae => true,
        Mnemonic::Sete | Mnemonic::Setne | Mnemonic::Setb | Mnemonic::Setae => true,
        _ => false,
    };
    let is_plain = |operand| match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).is_gpr(),
        kind => IMMEDIATES.contains(&kind),
    };
    calculates && (0..instruction.op_count()).all(is_plain)
}

/// Operands that are numbers in the instruction.
const IMMEDIATES: [OpKind; 8] = [
    OpKind::Immediate8,
    OpKind::Immediate16,
    OpKind::Immediate32,
    OpKind::Immediate64,
    OpKind::Immediate8to16,
    OpKind::Immediate8to32,
    OpKind::Immediate8to64,
    OpKind::Immediate32to64,
];

/// Length of the store before a [`Special::LoadStack`] in a task switch.
const SAVE_STACK: usize = 7;

/// Whether the instruction at `address`, which loads the stack pointer, switches from one task's stack to
/// another's.
pub fn leaves_task(address: u64, load: &[u8], machine: &impl Machine) -> bool {
    let before = machine.read(address.wrapping_sub(SAVE_STACK as u64));
    before.is_some_and(|before| is_switch(before, load))
}

/// Whether `before` and `load`, which follow each other, switch from one task's stack to another's: `before` stores
/// the stack pointer in a field of one structure, and `load` loads it from the same field of another
/// (`__switch_to_asm` in `arch/x86/entry/entry_64.S`).
fn is_switch(before: [u8; SAVE_STACK], load: &[u8]) -> bool {
    let (save, load) = (decode(&before), decode(load));
    save.len() == SAVE_STACK
        && save.code() == Code::Mov_rm64_r64
        && load.code() == Code::Mov_r64_rm64
        && (save.op1_register(), load.op0_register()) == (Register::RSP, Register::RSP)
        && is_field(&save)
        && is_field(&load)
        && save.memory_base() != load.memory_base()
        && save.memory_displacement64() == load.memory_displacement64()
}

/// Whether the instruction accesses a field of the structure at which a register points.
fn is_field(instruction: &Instruction) -> bool {
    instruction.memory_base().is_gpr64()
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None
}

/// The smallest distance, in bytes, from a call to the function that it calls.
const PUSH: u64 = 8;

/// Whether a call is a near call of a function. A call over a few bytes only pushes an address; mitigations of
/// speculative execution use such calls.
fn is_near_call(call: &Instruction) -> bool {
    let distance = call.near_branch_target().wrapping_sub(call.next_ip());
    call.is_call_near_indirect() || call.is_call_near() && distance >= PUSH
}

/// Decodes these bytes as an instruction at address 0. The result is an invalid instruction if they are none.
fn decode(bytes: &[u8]) -> Instruction {
    Decoder::new(u64::BITS, bytes, DecoderOptions::NONE).decode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(bytes: &[u8]) -> Option<Special> {
        examine(bytes).special
    }

    fn completes(bytes: &[u8]) -> bool {
        examine(bytes).completes
    }

    #[test]
    fn branches_are_told_from_others() {
        let is_branch = |bytes: &[u8]| examine(bytes).branches;
        // jmp, jne, call, call through a register, ret, iretq, loop, syscall
        let branches: [&[u8]; 8] = [
            &[0xeb, 0],
            &[0x75, 0x10],
            &[0xe8, 0, 0, 0, 0],
            &[0xff, 0xd0],
            &[0xc3],
            &[0x48, 0xcf],
            &[0xe2, 0],
            &[0x0f, 5],
        ];
        assert!(branches.iter().all(|bytes| is_branch(bytes)));
        // nop, rep stos, hlt, push, a store, endbr64
        let others: [&[u8]; 6] =
            [&[0x90], &[0xf3, 0x48, 0xab], &[0xf4], &[0x50], &[0x89, 7], &[0xf3, 0x0f, 0x1e, 0xfa]];
        assert!(!others.iter().any(|bytes| is_branch(bytes)));
    }

    #[test]
    fn pages_are_flushed_by_few_instructions() {
        let flush = |bytes: &[u8]| examine(bytes).flushes;
        assert_eq!(flush(&[0x0f, 0x22, 0xd8]), Some(Flush::Process)); // mov cr3, rax
        assert_eq!(flush(&[0x0f, 0x22, 0xe0]), Some(Flush::All)); // mov cr4, rax
        assert_eq!(flush(&[0x0f, 0x01, 0x3f]), Some(Flush::Page(7))); // invlpg [rdi]
        assert_eq!(flush(&[0x41, 0x0f, 0x01, 0x3c, 0x24]), Some(Flush::Page(12))); // invlpg [r12]
        assert_eq!(flush(&[0x0f, 0x01, 0x7f, 8]), Some(Flush::All)); // invlpg [rdi+8]
        assert_eq!(flush(&[0x0f, 0x20, 0xd8]), None); // mov rax, cr3
        assert_eq!(flush(&[0x8b, 0x07]), None); // mov eax, [rdi]
    }

    #[test]
    fn few_instructions_are_special() {
        assert_eq!(special(&MARK.to_le_bytes()), Some(Special::Mark));
        assert_eq!(special(&TICK.to_le_bytes()), Some(Special::Tick));
        let lidt = Some(Special::LoadInterruptTable);
        assert_eq!(special(&[0x0f, 0x01, 0x1f]), lidt); // lidt [rdi]
        assert_eq!(special(&[0x0f, 0x01, 0x1d, 1, 2, 3, 4]), lidt); // lidt [rip+0x04030201]
        assert_eq!(special(&[0x41, 0x0f, 0x01, 0x1c, 0x24]), lidt); // lidt [r12]
        assert_eq!(special(&[0x0f, 0x01, 0x17]), None); // lgdt [rdi]
        assert_eq!(special(&[0x0f, 0x01, 0xd8]), None); // vmrun
        assert_eq!(special(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), None); // an ordinary nop
        let again = Some(Special::Again);
        assert_eq!(special(&[0x4c, 0x89, 0x5c, 0x17, 0xf8]), again); // mov [rdi+rdx-8], r11
        assert_eq!(special(&[0x44, 0x88, 0x47, 0x01]), again); // mov [rdi+1], r8b
        assert_eq!(special(&[0xf3, 0x0f, 0x7f, 0x07]), again); // movdqu [rdi], xmm0
        assert_eq!(special(&[0xf3, 0xa4]), again); // rep movsb
        assert_eq!(special(&[0xf2, 0xae]), again); // repne scasb
        assert_eq!(special(&[0xa4]), None); // movsb
        assert_eq!(special(&[0x89, 0xc8]), None); // mov eax, ecx
        assert_eq!(special(&[0x8b, 0x07]), None); // mov eax, [rdi]
        assert_eq!(special(&[0x90]), None);
        assert_eq!(special(&[0x66; 15]), None);
        assert_eq!(special(&[]), None);
    }

    #[test]
    fn classes_are_those_of_the_manual() {
        let classes: [(&[u8], Option<Class>); 14] = [
            (&[0xf0, 0x48, 0xff, 0x07], Some(Class::Locked)), // lock inc qword [rdi]
            (&[0x48, 0xff, 0x07], None),                      // inc qword [rdi]
            (&[0x3e, 0x48, 0xff, 0x07], None),                // ds inc qword [rdi]
            (&[0x48, 0x87, 0x07], Some(Class::Locked)),       // xchg [rdi], rax
            (&[0x48, 0x87, 0xc3], None),                      // xchg rbx, rax
            (&[0xf0, 0x0f, 0xb1, 0x17], Some(Class::Locked)), // lock cmpxchg [rdi], edx
            (&[0x0f, 0xae, 0xf0], Some(Class::Fence)),        // mfence
            (&[0x0f, 0xae, 0xe8], Some(Class::Fence)),        // lfence
            (&[0x0f, 0xae, 0xf8], Some(Class::Fence)),        // sfence
            (&[0x0f, 0x01, 0x38], Some(Class::Invlpg)),       // invlpg [rax]
            (&[0x66, 0x0f, 0x38, 0x82, 0x02], Some(Class::Invpcid)), // invpcid rax, [rdx]
            (&[0x0f, 0x22, 0xd8], Some(Class::Cr3Write)),     // mov cr3, rax
            (&[0x0f, 0x22, 0xe0], None),                      // mov cr4, rax
            (&[0x0f, 0x30], Some(Class::MsrWrite)),           // wrmsr
        ];
        for (bytes, class) in classes {
            assert_eq!(examine(bytes).class, class, "{bytes:x?}");
        }
    }

    #[test]
    fn what_may_leave_a_block_does_not_always_complete() {
        let calculate: [&[u8]; 6] = [
            &[0x89, 0xc8],             // mov eax, ecx
            &[0x48, 0x8d, 0x47, 0x08], // lea rax, [rdi+8]
            &[0x48, 0x83, 0xc0, 0x01], // add rax, 1
            &[0x85, 0xc0],             // test eax, eax
            &[0x0f, 0xb6, 0xc0],       // movzx eax, al
            &[0xc1, 0xe0, 0x03],       // shl eax, 3
        ];
        assert!(calculate.into_iter().all(completes));
        let leave: [&[u8]; 10] = [
            &[0x8b, 0x07],             // mov eax, [rdi]
            &[0x48, 0x83, 0x07, 0x01], // add qword [rdi], 1
            &[0x55],                   // push rbp
            &[0xf7, 0xf1],             // div ecx
            &[0x8e, 0xd8],             // mov ds, eax
            &[0x0f, 0x22, 0xd8],       // mov cr3, rax
            &[0xf3, 0xa4],             // rep movsb
            &[0xec],                   // in al, dx
            &[0xe8, 0, 1, 0, 0],       // call
            &[],
        ];
        assert!(!leave.into_iter().any(completes));
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
        let other = [0x48, 0x8b, 0x86, 0xd8, 0x14, 0, 0]; // mov rax, [rsi+0x14d8]
        assert!(!is_switch(save, &other));
        let far = [0x65, 0x48, 0x8b, 0xa6, 0xd8, 0x14, 0, 0]; // mov rsp, gs:[rsi+0x14d8]
        assert!(!is_switch(save, &far));
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
