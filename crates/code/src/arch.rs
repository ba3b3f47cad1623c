//! Reads instructions, with what depends on the kernel's architecture behind one trait.

mod arm64;
mod x86_64;

use crate::image::{Image, Piece};
use crate::instruction::Instruction;

/// Reads the instructions of an architecture.
pub(crate) trait Architecture {
    /// The instructions of a piece of a function, without padding at its end and calls of the function tracer.
    fn decode<'a>(&self, piece: &Piece<'a>, image: &'a Image<'_>) -> Vec<Instruction<'a>>;

    /// The same instructions in the architecture's assembly language.
    fn texts(&self, piece: &Piece<'_>, image: &Image<'_>) -> Vec<String>;
}

/// What reads the instructions of a kernel.
pub(crate) fn of(image: &Image<'_>) -> &'static dyn Architecture {
    match image.arch() {
        model::Architecture::X86_64 => &x86_64::X86_64,
        model::Architecture::Arm64 => &arm64::Arm64,
    }
}
