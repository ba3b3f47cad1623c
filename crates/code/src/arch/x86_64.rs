//! Reads instructions of x86-64.

mod text;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::Architecture;
use crate::image::{Image, LOWEST, Piece, Place};
use crate::instruction::{self, Normal, Shape, Value};
use crate::instrumentation::IBT;

/// The function that the compiler's calls for the function tracer name (`arch/x86/kernel/ftrace_64.S`).
const TRACER: &str = "__fentry__";
/// The length in bytes of a call of the tracer, and of the NOP that replaces it.
const CALL: usize = 5;

/// The largest distance in a per-CPU structure, in bytes. A larger displacement is the address of a variable.
const MAX_FIELD: u64 = 4095;

/// The architecture x86-64.
pub(crate) struct X86_64;

impl Architecture for X86_64 {
    fn decode<'a>(
        &self,
        piece: &Piece<'a>,
        image: &'a Image<'_>,
    ) -> Vec<instruction::Instruction<'a>> {
        let instructions = decode(piece, image);
        let own = Own { instructions: &instructions, piece, image };
        let whole = |it: &Instruction| instruction::Instruction {
            address: it.ip(),
            length: it.len(),
            normal: own.normal(it),
            kind: (it.mnemonic() == Mnemonic::Endbr64).then_some(IBT),
        };
        instructions.iter().map(whole).collect()
    }

    fn texts(&self, piece: &Piece<'_>, image: &Image<'_>) -> Vec<String> {
        text::of(&decode(piece, image), image)
    }
}

/// The instructions of a piece of a function, without padding at its end and calls of the function tracer.
fn decode(piece: &Piece<'_>, image: &Image<'_>) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, piece.bytes, piece.address, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        instructions.push(decoder.decode());
    }
    let fills = |it: &Instruction| matches!(it.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
    while instructions.last().is_some_and(fills) {
        instructions.pop();
    }
    let traces = |it: &Instruction| {
        let calls = it.mnemonic() == Mnemonic::Call
            && image.place(it.near_branch_target()) == Some(Place::Code(TRACER, 0));
        it.len() == CALL && (calls || it.mnemonic() == Mnemonic::Nop)
    };
    // The call is the first instruction, or follows an ENDBR64.
    let before = instructions.iter().take_while(|it| it.code() == Code::Endbr64).take(1).count();
    if instructions.get(before).is_some_and(traces) {
        instructions.remove(before);
    }
    instructions
}

/// A piece with its instructions.
struct Own<'s, 'a> {
    instructions: &'s [Instruction],
    piece: &'s Piece<'a>,
    image: &'a Image<'a>,
}

impl<'a> Own<'_, 'a> {
    fn normal(&self, it: &Instruction) -> Normal<'a> {
        let mut registers = [Register::None; 5];
        let mut values = [Value::NONE; 2];
        let mut rest = if it.is_invalid() { self.raw(it) } else { 0 };
        let mut has_immediate = false;
        for operand in 0..it.op_count() {
            match it.op_kind(operand) {
                OpKind::Register => registers[operand as usize] = it.op_register(operand),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                    values[0] = self.address(it.near_branch_target());
                }
                OpKind::FarBranch16 | OpKind::FarBranch32 => {
                    rest = u64::from(it.far_branch32()) << 16 | u64::from(it.far_branch_selector());
                }
                OpKind::Memory => values[0] = self.displacement(it),
                kind if it.try_immediate(operand).is_ok() => {
                    if std::mem::replace(&mut has_immediate, true) {
                        rest = it.immediate(operand);
                    } else {
                        values[1] = self.immediate(it, kind, it.immediate(operand));
                    }
                }
                _ => {} // memory by rsi, rdi or rbx, which the mnemonic tells
            }
        }
        let is_relative = it.is_ip_rel_memory_operand();
        let base = if is_relative { Register::None } else { it.memory_base() };
        // Their numbers have 8 bits each, and that of the mnemonic 16.
        let packed = |parts: &[usize]| parts.iter().fold(0, |all, part| all << 8 | *part as u64);
        let shape = Shape([
            packed(&[
                usize::from(it.has_lock_prefix()) << 2
                    | usize::from(it.has_rep_prefix()) << 1
                    | usize::from(it.has_repne_prefix()),
                it.mnemonic() as usize >> 8,
                it.mnemonic() as usize & 0xff,
                it.segment_prefix() as usize,
                base as usize,
                it.memory_index() as usize,
                it.memory_index_scale() as usize,
                it.memory_size() as usize,
            ]),
            packed(&registers.map(|it| it as usize)) << 8 | it.op_mask() as u64,
            rest,
        ]);
        let goes = matches!(it.mnemonic(), Mnemonic::Call | Mnemonic::Jmp);
        Normal { shape, values, goes }
    }

    /// The first bytes, if they are not an instruction.
    fn raw(&self, it: &Instruction) -> u64 {
        let bytes = &self.piece.bytes[(it.ip() - self.piece.address) as usize..];
        bytes.iter().take(it.len().min(8)).fold(0, |raw, &byte| raw << 8 | u64::from(byte))
    }

    /// The value of an address that an instruction has as a whole: in a register, in a branch, or as the only part of
    /// a memory operand.
    fn address(&self, address: u64) -> Value<'a> {
        let own = self.piece.address..self.piece.address + self.piece.bytes.len() as u64;
        if own.contains(&address) {
            return Value::Own(self.instructions.partition_point(|it| it.ip() < address));
        }
        self.image.place(address).map_or(Value::Number(address, None), Value::At)
    }

    fn displacement(&self, it: &Instruction) -> Value<'a> {
        let displacement = it.memory_displacement64();
        let is_per_cpu = matches!(it.segment_prefix(), Register::GS | Register::FS);
        let per_cpu = self.image.per_cpu(displacement);
        let alone = it.is_ip_rel_memory_operand()
            || (it.memory_base(), it.memory_index()) == (Register::None, Register::None);
        match (per_cpu, alone) {
            (Some(place), true) if is_per_cpu => Value::At(place),
            (Some(place @ Place::PerCpu(None)), _) if is_per_cpu && displacement > MAX_FIELD => {
                Value::At(place)
            }
            (place, _) if displacement < LOWEST => Value::Number(displacement, place),
            (_, true) => self.address(displacement),
            (_, false) => match self.address(displacement) {
                // Indices need not begin at 0, so the address may be before the data that is accessed.
                Value::At(Place::Data(Some((_, 1..)))) => Value::At(Place::Data(None)),
                value => value,
            },
        }
    }

    fn immediate(&self, it: &Instruction, kind: OpKind, number: u64) -> Value<'a> {
        match kind {
            OpKind::Immediate32to64 | OpKind::Immediate64 if number >= LOWEST => {
                self.address(number)
            }
            OpKind::Immediate32to64 | OpKind::Immediate32 => {
                // A compiler loads most other numbers of this size into the lower half.
                let is_whole = it.code() == Code::Mov_rm64_imm32;
                match self.image.per_cpu(number) {
                    Some(place) if is_whole => Value::PerCpu(number, place),
                    None if is_whole && number == self.image.per_cpu_end() => {
                        Value::PerCpu(number, Place::PerCpu(None))
                    }
                    place => Value::Number(number, place),
                }
            }
            _ => Value::Number(number, None),
        }
    }
}
