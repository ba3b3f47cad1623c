//! Normalises instructions, by replacing addresses with the symbols that they point to.

use std::hash::{DefaultHasher, Hash, Hasher};

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, MemorySize, Mnemonic, OpKind, Register,
};

use crate::image::{Image, LOWEST, Piece, Place};

/// The function that the compiler's calls for the function tracer name (`arch/x86/kernel/ftrace_64.S`).
const TRACER: &str = "__fentry__";
/// The length in bytes of a call of the tracer, and of the NOP that replaces it.
const CALL: usize = 5;

/// The largest distance in a per-CPU structure, in bytes. A larger displacement is the address of a variable.
const MAX_FIELD: u64 = 4095;

/// An instruction for comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normal<'a> {
    shape: Shape,
    /// The displacement in memory or the target of a branch, then the immediate.
    values: [Value<'a>; 2],
}

/// A coarse identity of an instruction, by which two functions are aligned and instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

/// The parts of an instruction that are compared for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    mnemonic: Mnemonic,
    /// Lock, rep and repne.
    prefixes: [bool; 3],
    /// Register operands; `None` for an operand that is not a register.
    registers: [Register; 5],
    /// Segment, base and index.
    memory: [Register; 3],
    scale: u32,
    size: MemorySize,
    mask: Register,
    /// A second immediate, or bytes that are not an instruction.
    rest: u64,
}

/// A displacement, target or immediate.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    /// A number, which may also be the address of a per-CPU variable. It is 0 if there is no value.
    Number(u64, Option<Place<'a>>),
    /// The address of a per-CPU variable or of the end of per-CPU data, or an equal number.
    PerCpu(u64, Place<'a>),
    /// An address in this piece of the function, as the number of instructions before it.
    Own(usize),
    /// Another address.
    At(Place<'a>),
}

/// The instructions of a piece of a function, without padding at its end and calls of the function tracer.
pub(crate) fn decode(piece: &Piece<'_>, image: &Image<'_>) -> Vec<Instruction> {
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

/// The instructions of a piece in the form that is compared.
pub(crate) fn normal<'a>(
    instructions: &[Instruction],
    piece: &Piece<'a>,
    image: &'a Image<'_>,
) -> Vec<Normal<'a>> {
    let own = Own { instructions, piece, image };
    instructions.iter().map(|it| own.normal(it)).collect()
}

/// Whether two pieces have the same instructions at the same distances from their beginning, apart from addresses: one
/// is in a kernel, the other in an object that was linked alone.
pub(crate) fn has_same_shape(
    (one, kernel): (&Piece<'_>, &Image<'_>),
    (other, object): (&Piece<'_>, &Image<'_>),
) -> bool {
    let of_kernel = decode(one, kernel);
    let mut of_object = decode(other, object);
    // The object does not know the function tracer.
    let calls = |it: &Instruction| it.mnemonic() == Mnemonic::Call && it.near_branch_target() == 0;
    let first = of_object.iter().take(2).position(calls);
    if let Some(first) = first.filter(|_| of_object.len() == of_kernel.len() + 1) {
        of_object.remove(first);
    }
    let [of_kernel, of_object] =
        [(&of_kernel, one, kernel), (&of_object, other, object)].map(|(all, piece, image)| {
            let distances = all.iter().map(|it| it.ip() - piece.address);
            distances.zip(normal(all, piece, image)).collect::<Vec<_>>()
        });
    let is_same = |((at, one), (of, other)): (&(u64, Normal<'_>), &(u64, Normal<'_>))| {
        let mut values = one.values.iter().zip(&other.values);
        // The numbers of the object are those of the kernel, except where there is an address to fill in.
        at == of
            && one.shape == other.shape
            && values.all(|(one, other)| match (one, other) {
                (Value::Number(one, None), Value::Number(other, None)) => {
                    one == other || *other == 0
                }
                (Value::Own(one), Value::Own(other)) => one == other,
                (Value::Own(_), _) | (_, Value::Own(_)) => false,
                _ => true,
            })
    };
    of_kernel.len() == of_object.len() && of_kernel.iter().zip(&of_object).all(is_same)
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
        let mut values = [Value::Number(0, None); 2];
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
        let shape = Shape {
            mnemonic: it.mnemonic(),
            prefixes: [it.has_lock_prefix(), it.has_rep_prefix(), it.has_repne_prefix()],
            registers,
            memory: [it.segment_prefix(), base, it.memory_index()],
            scale: it.memory_index_scale(),
            size: it.memory_size(),
            mask: it.op_mask(),
            rest,
        };
        Normal { shape, values }
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

impl Normal<'_> {
    /// Whether two instructions are the same, apart from addresses. Unknown parts count as the same. `is_target`
    /// tells whether two of the functions' own instructions are the same target.
    pub fn is_same(&self, other: &Normal<'_>, is_target: impl Fn(usize, usize) -> bool) -> bool {
        let mut values = self.values.iter().zip(&other.values);
        let is_same = |(one, other): (&Value<'_>, &Value<'_>)| match (*one, *other) {
            (Value::Own(one), Value::Own(other)) => is_target(one, other),
            (Value::At(one), Value::At(other)) => is_same(one, other),
            (Value::PerCpu(one, at), Value::PerCpu(other, of)) => one == other || is_same(at, of),
            (Value::PerCpu(one, _), Value::Number(other, _))
            | (Value::Number(one, _), Value::PerCpu(other, _)) => one == other,
            (Value::Number(one, of_one), Value::Number(other, of_other)) => {
                let is_named = matches!(of_one, Some(Place::PerCpu(Some(_))));
                one == other || (is_named && of_one == of_other)
            }
            _ => false,
        };
        self.shape == other.shape && values.all(is_same)
    }

    /// The function that the instruction calls or jumps to; `None` for other instructions.
    pub fn target(&self) -> Option<&str> {
        match (self.shape.mnemonic, self.values[0]) {
            (Mnemonic::Call | Mnemonic::Jmp, Value::At(Place::Code(name, 0))) => Some(name),
            _ => None,
        }
    }

    /// The identity of the instruction without distances in the function and without all data.
    pub fn key(&self) -> Key {
        let mut hasher = DefaultHasher::new();
        self.shape.hash(&mut hasher);
        for value in self.values {
            match value {
                Value::Number(number, None) => (0, number).hash(&mut hasher),
                Value::Number(_, Some(_)) => 1.hash(&mut hasher),
                Value::Own(_) => 2.hash(&mut hasher),
                Value::At(Place::Code(name, _)) => (3, name).hash(&mut hasher),
                Value::At(Place::Data(_) | Place::Text(_)) => 4.hash(&mut hasher),
                Value::At(Place::PerCpu(_)) | Value::PerCpu(..) => 5.hash(&mut hasher),
            }
        }
        Key(hasher.finish())
    }
}

fn is_same(one: Place<'_>, other: Place<'_>) -> bool {
    match (one, other) {
        // The distance in another function may differ because that function changed.
        (Place::Code(one, at), Place::Code(other, of)) => one == other && (at == 0) == (of == 0),
        (Place::Data(None), Place::Data(_)) | (Place::Data(_), Place::Data(None)) => true,
        (Place::PerCpu(None), Place::PerCpu(_)) | (Place::PerCpu(_), Place::PerCpu(None)) => true,
        // Only one kernel has names of data.
        (Place::Data(Some(_)), Place::Text(_)) | (Place::Text(_), Place::Data(Some(_))) => true,
        _ => one == other,
    }
}
