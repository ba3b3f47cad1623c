//! Lines from an object that was compiled again with debug information.

use std::collections::BTreeSet;
use std::rc::Rc;

use kernelfiles::kallsyms::Symbols;

use crate::arch;
use crate::image::{Added, Error, Image, Piece};
use crate::instruction::Instruction;
use crate::sources::Sources;

impl Image<'_> {
    /// Takes the lines of functions from an object that was compiled again with debug information and linked alone, or from
    /// a `vmlinux`. A piece of a function has lines only if its code there is the kernel's, apart from addresses. Returns
    /// the functions that have such a piece.
    ///
    /// # Errors
    /// When the object is not a readable ELF file.
    pub fn add_lines(
        &mut self,
        object: &[u8],
        functions: &[String],
    ) -> Result<BTreeSet<String>, Error> {
        let other = Image::read(object, &Symbols::default())?;
        let Some(sources) = Sources::read(object, other.first()).map(Rc::new) else {
            return Ok(BTreeSet::new());
        };
        let mut added = Vec::new();
        let mut found = BTreeSet::new();
        for function in functions {
            let theirs = other.pieces_of(function);
            for piece in self.pieces_of(function) {
                let is_same = |it: &&Piece<'_>| {
                    it.symbol == piece.symbol && has_same_shape((&piece, self), (it, &other))
                };
                let Some(same) = theirs.iter().find(is_same) else { continue };
                let range = piece.address..piece.address + piece.bytes.len() as u64;
                added.push(Added { range, start: same.address, sources: Rc::clone(&sources) });
                found.insert(function.clone());
            }
        }
        added.into_iter().for_each(|it| self.add(it));
        Ok(found)
    }
}

/// Whether two pieces have the same instructions at the same distances from their beginning, apart from addresses: one
/// is in a kernel, the other in an object that was linked alone.
fn has_same_shape(
    (one, kernel): (&Piece<'_>, &Image<'_>),
    (other, object): (&Piece<'_>, &Image<'_>),
) -> bool {
    let of_kernel = arch::of(kernel).decode(one, kernel);
    let mut of_object = arch::of(object).decode(other, object);
    // The object does not know the function tracer.
    let first = of_object.iter().take(2).position(|it| it.normal.goes_nowhere());
    if let Some(first) = first.filter(|_| of_object.len() == of_kernel.len() + 1) {
        of_object.remove(first);
        of_object.iter_mut().for_each(|it| it.normal = it.normal.without(first));
    }
    let is_same = |(it, that): (&Instruction<'_>, &Instruction<'_>)| {
        it.address - one.address == that.address - other.address
            && it.normal.is_in_object(&that.normal)
    };
    of_kernel.len() == of_object.len() && of_kernel.iter().zip(&of_object).all(is_same)
}
