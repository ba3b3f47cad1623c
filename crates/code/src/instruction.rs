//! Instructions as they are compared: with the symbols that they point to in place of addresses.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::image::Place;

/// An instruction of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction<'a> {
    /// The address of its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub length: usize,
    /// What is compared.
    pub normal: Normal<'a>,
    /// What it instruments the function for; `None` for instructions of the function's own source.
    pub kind: Option<&'static str>,
}

/// An instruction for comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normal<'a> {
    pub shape: Shape,
    /// The displacement in memory or the target of a branch, then the immediate.
    pub values: [Value<'a>; 2],
    /// Whether it always calls or jumps to its first value.
    pub goes: bool,
}

/// A coarse identity of an instruction, by which two functions are aligned and instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

/// The parts of an instruction that are compared for equality, as its architecture packs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shape(pub [u64; 3]);

/// A displacement, target or immediate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// A number, which may also be the address of a per-CPU variable. It is 0 if there is no value.
    Number(u64, Option<Place<'a>>),
    /// The address of a per-CPU variable or of the end of per-CPU data, or an equal number.
    PerCpu(u64, Place<'a>),
    /// An address in this piece of the function, as the number of instructions before it.
    Own(usize),
    /// Another address.
    At(Place<'a>),
}

impl Value<'_> {
    /// No value.
    pub const NONE: Self = Self::Number(0, None);
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

    /// Whether the instruction of an object that was linked alone is this one, apart from addresses. Its numbers are
    /// those of the kernel, except where there is an address to fill in.
    pub fn is_in_object(&self, object: &Normal<'_>) -> bool {
        let mut values = self.values.iter().zip(&object.values);
        self.shape == object.shape
            && values.all(|(one, other)| match (one, other) {
                (Value::Number(one, None), Value::Number(other, None)) => {
                    one == other || *other == 0
                }
                (Value::Own(one), Value::Own(other)) => one == other,
                (Value::Own(_), _) | (_, Value::Own(_)) => false,
                _ => true,
            })
    }

    /// The same instruction in a function that lacks its instruction number `gone`.
    pub fn without(mut self, gone: usize) -> Self {
        for value in &mut self.values {
            if let Value::Own(number) = value {
                *number -= usize::from(*number > gone);
            }
        }
        self
    }

    /// Whether the instruction calls or jumps to address 0, which stands for a function that is not known.
    pub fn goes_nowhere(&self) -> bool {
        self.goes && matches!(self.values[0], Value::Number(0, None))
    }

    /// The function that the instruction calls or jumps to; `None` for other instructions.
    pub fn target(&self) -> Option<&str> {
        match self.values[0] {
            Value::At(Place::Code(name, 0)) if self.goes => Some(name),
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
