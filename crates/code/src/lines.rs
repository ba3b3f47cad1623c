//! Lines from an object that was compiled again with debug information.

use std::rc::Rc;

use kernelfiles::kallsyms::Symbols;

use crate::image::{Added, Error, Image, Piece};
use crate::instruction::has_same_shape;
use crate::sources::Sources;

impl Image<'_> {
    /// Takes the lines of a function from an object that was compiled again with debug information and linked alone, or
    /// from a `vmlinux`. Returns the number of the function's pieces whose code there is the kernel's, apart from
    /// addresses: only these have lines.
    ///
    /// # Errors
    /// When the object is not a readable ELF file.
    pub fn add_lines(&mut self, object: &[u8], function: &str) -> Result<usize, Error> {
        let other = Image::read(object, &Symbols::default())?;
        let Some(sources) = Sources::read(object, other.first()).map(Rc::new) else { return Ok(0) };
        let of_object = other.functions().remove(function).unwrap_or_default();
        let own = self.functions().remove(function).unwrap_or_default();
        let added = own.into_iter().filter_map(|piece| {
            let is_same = |it: &&Piece<'_>| {
                it.symbol == piece.symbol && has_same_shape((&piece, self), (it, &other))
            };
            let found = of_object.iter().find(is_same)?;
            let range = piece.address..piece.address + piece.bytes.len() as u64;
            Some(Added { range, start: found.address, sources: Rc::clone(&sources) })
        });
        let added: Vec<Added> = added.collect();
        let number = added.len();
        added.into_iter().for_each(|it| self.add(it));
        Ok(number)
    }
}
