//! Reads instructions of arm64. All have the same length. They are compared as they are, except for the bits of
//! addresses.

mod known;
mod names;
mod text;
mod word;

use super::Architecture;
use crate::image::{Image, Piece, Place};
use crate::instruction::{Instruction, Normal, Shape, Value};
use word::{Named, Word};

/// The length of an instruction in bytes.
const LENGTH: usize = 4;
/// The most NOPs at the beginning of a function that the function tracer replaces (`-fpatchable-function-entry`,
/// `arch/arm64/Makefile`).
const TRACED: usize = 2;
/// Landing pads of indirect calls, with any value of the bits left out (`-mbranch-protection`).
const PAD: (u32, u32) = (0xffff_ff3f, 0xd503_241f);
/// What instructions instrument a function for: `paciasp`, `autiasp` and their like with the other key, `retaa` and
/// `retab`, and the store and the load of the return address (`-fsanitize=shadow-call-stack`).
const KINDS: [((u32, u32), &str); 6] = [
    (PAD, "BTI"),
    ((0xffff_ffbf, 0xd503_233f), "pointer authentication"),
    ((0xffff_ffbf, 0xd503_23bf), "pointer authentication"),
    ((0xffff_fbff, 0xd65f_0bff), "pointer authentication"),
    ((!0, 0xf800_865e), "the shadow call stack"),
    ((!0, 0xf85f_8e5e), "the shadow call stack"),
];

/// The architecture arm64.
pub(crate) struct Arm64;

impl Architecture for Arm64 {
    fn decode<'a>(&self, piece: &Piece<'a>, image: &'a Image<'_>) -> Vec<Instruction<'a>> {
        let code = Code::of(piece);
        code.kept.iter().map(|&at| code.instruction(at, image)).collect()
    }

    fn texts(&self, piece: &Piece<'_>, image: &Image<'_>) -> Vec<String> {
        let code = Code::of(piece);
        let text = |&at: &usize| text::of(code.words[at], code.address(at), code.formed[at], image);
        code.kept.iter().map(text).collect()
    }
}

/// The words of a piece.
struct Code<'s, 'a> {
    piece: &'s Piece<'a>,
    words: Vec<Word>,
    /// The words that are instructions of the function, without literals, padding at the end and NOPs of the tracer.
    kept: Vec<usize>,
    /// The addresses that instructions form by a register.
    formed: Vec<Option<u64>>,
}

impl<'s, 'a> Code<'s, 'a> {
    fn of(piece: &'s Piece<'a>) -> Self {
        let words = piece.bytes.as_chunks::<LENGTH>().0.iter();
        let words: Vec<Word> = words.map(|it| Word(u32::from_le_bytes(*it))).collect();
        let is = |at: usize, word: Word| words.get(at) == Some(&word);
        // The NOPs are the first instructions, or follow a landing pad.
        let pad = usize::from(words.first().is_some_and(|it| it.is(PAD.0, PAD.1)));
        let traced = pad + (pad..pad + TRACED).take_while(|&at| is(at, Word::NOP)).count();
        let formed = known::addresses(&words, piece.address, traced);
        let mut code = Self { piece, words, kept: Vec::new(), formed };
        let literals = code.literals();
        let is_kept = |at: &usize| !literals[*at] && !(pad..traced).contains(at);
        let mut kept: Vec<usize> = (0..code.words.len()).filter(is_kept).collect();
        while kept.last().is_some_and(|&at| [Word::NOP, Word::ZERO].contains(&code.words[at])) {
            kept.pop();
        }
        code.kept = kept;
        code
    }

    fn address(&self, at: usize) -> u64 {
        self.piece.address.wrapping_add((LENGTH * at) as u64)
    }

    /// Whether each word is a literal that an instruction of the piece loads.
    fn literals(&self) -> Vec<bool> {
        let mut literals = vec![false; self.words.len()];
        for (at, word) in self.words.iter().enumerate() {
            if let Some((Named::Literal(address, size), _)) = word.named(self.address(at)) {
                let first = address.wrapping_sub(self.piece.address) as usize / LENGTH;
                let range = first..first.saturating_add(size / LENGTH);
                literals.get_mut(range).into_iter().flatten().for_each(|it| *it = true);
            }
        }
        literals
    }

    fn instruction(&self, at: usize, image: &'a Image<'_>) -> Instruction<'a> {
        let (word, address) = (self.words[at], self.address(at));
        let (value, bits) = match (word.named(address), self.formed[at], word.offset()) {
            (Some((named, bits)), ..) => (self.value(named, image), bits),
            (None, Some(formed), Some(offset)) => (self.place(formed, image), offset.bits),
            _ => (Value::NONE, 0),
        };
        let kind = KINDS.iter().find(|((mask, value), _)| word.is(*mask, *value));
        let normal = Normal {
            shape: Shape([u64::from(word.0 & !bits), 0, 0]),
            values: [value, Value::NONE],
            goes: word.is(0x7c00_0000, 0x1400_0000),
        };
        Instruction { address, length: LENGTH, normal, kind: kind.map(|(_, kind)| *kind) }
    }

    fn value(&self, named: Named, image: &'a Image<'_>) -> Value<'a> {
        match named {
            Named::Target(address) | Named::Address(address) => self.place(address, image),
            // What is in the page is told by the instruction that adds the distance.
            Named::Page(_) => Value::At(Place::Data(None)),
            Named::Literal(address, size) => self.literal(address, size, image),
        }
    }

    /// The value of an address: the number of instructions before it, if it is in the piece.
    fn place(&self, address: u64, image: &'a Image<'_>) -> Value<'a> {
        let distance = address.wrapping_sub(self.piece.address);
        if distance < self.piece.bytes.len() as u64 {
            let word = distance as usize / LENGTH;
            return Value::Own(self.kept.partition_point(|at| *at < word));
        }
        image.place(address).map_or(Value::Number(address, None), Value::At)
    }

    /// The value of data that are loaded: what they are, if they are in the piece.
    fn literal(&self, address: u64, size: usize, image: &'a Image<'_>) -> Value<'a> {
        let start = address.wrapping_sub(self.piece.address) as usize;
        let bytes = self.piece.bytes.get(start..start.saturating_add(size));
        let Some(bytes) = bytes.filter(|it| !it.is_empty()) else {
            return self.place(address, image);
        };
        let number = bytes.iter().take(8).rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        match image.place(number) {
            Some(place) => Value::At(place),
            None => Value::Number(number, None),
        }
    }
}
