//! Lines from an object that was compiled again with debug information.

use std::collections::BTreeSet;
use std::rc::Rc;

use kernelfiles::kallsyms::Symbols;

use crate::image::{Added, Error, Image, Piece};
use crate::instruction::has_same_shape;
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
