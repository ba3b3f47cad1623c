//! Names of functions without compiler suffixes, so that a function is compared with itself even if only one
//! compiler split or cloned it.

/// The function and the piece of it that a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The function's name in its source.
    pub name: &'a str,
    /// The piece of the function.
    pub piece: Piece,
}

/// The piece of a function that a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Piece {
    /// The whole function, or a copy of it.
    Whole,
    /// The function without its beginning. It is entered from a copy of the beginning that was inlined elsewhere, or
    /// from the function itself.
    Part,
    /// Cold code moved out of line. It is entered only from the function itself.
    Cold,
}

/// Padding before a function, which the kernel gives a symbol (`tools/objtool/elf.c`).
const PADDING: &str = "__pfx_";

impl<'a> Symbol<'a> {
    /// Reads a symbol. GCC names copies of a function `.isra.N` and `.constprop.N`, a piece moved
    /// out of the way `.cold`, and the rest of a function whose beginning is inlined `.part.N`
    /// (gcc/ipa-sra.cc, ipa-cp.cc, bb-reorder.cc, ipa-split.cc); Clang marks a promoted static
    /// function `.llvm.N`. One symbol may have several suffixes.
    pub fn of(symbol: &'a str) -> Self {
        let padded = symbol.strip_prefix(PADDING).filter(|rest| !rest.is_empty());
        let mut name = padded.unwrap_or(symbol);
        let mut piece = if padded.is_some() { Piece::Cold } else { Piece::Whole };
        while let Some((rest, of_rest)) = without_suffix(name) {
            name = rest;
            piece = piece.max(of_rest);
        }
        Self { name, piece }
    }
}

/// `name` without its last suffix, and the piece that the suffix marks.
fn without_suffix(name: &str) -> Option<(&str, Piece)> {
    let (stem, number) = match name.rsplit_once('.') {
        Some((stem, number)) if is_number(number) => (stem, true),
        _ => (name, false),
    };
    let (rest, suffix) = stem.rsplit_once('.')?;
    let piece = match (suffix, number) {
        ("isra" | "constprop" | "llvm", true) => Piece::Whole,
        ("part", true) => Piece::Part,
        ("cold", _) => Piece::Cold,
        _ => return None,
    };
    (!rest.is_empty()).then_some((rest, piece))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::Piece::{Cold, Part, Whole};
    use super::*;

    #[test]
    fn copies_and_parts_go_by_the_name_in_the_source() {
        for (symbol, name, piece) in [
            ("do_anonymous_page", "do_anonymous_page", Whole),
            ("can_vma_merge_after.isra.0", "can_vma_merge_after", Whole),
            ("__alloc_pages.constprop.12", "__alloc_pages", Whole),
            ("shrink_slab.llvm.8413280541724023146", "shrink_slab", Whole),
            ("copy_page_range.cold", "copy_page_range", Cold),
            ("copy_page_range.cold.30", "copy_page_range", Cold),
            ("free_unref_page.part.0", "free_unref_page", Part),
            ("try_charge.constprop.0.isra.0", "try_charge", Whole),
            ("try_charge.isra.0.cold", "try_charge", Cold),
            ("find_vma.part.0.constprop.1", "find_vma", Part),
            ("find_vma.part.0.cold", "find_vma", Cold),
            ("__pfx_find_vma", "find_vma", Cold),
            ("__pfx_find_vma.isra.0", "find_vma", Cold),
        ] {
            assert_eq!(Symbol::of(symbol), Symbol { name, piece }, "{symbol}");
        }
    }

    #[test]
    fn other_dots_belong_to_the_name() {
        for symbol in
            ["", ".", "..", "a.b", "a.1", "a.isra", "a.isra.", "a.isra.x", ".cold", "__pfx_", "[]"]
        {
            assert_eq!(
                Symbol::of(symbol),
                Symbol { name: symbol, piece: Piece::Whole },
                "{symbol}"
            );
        }
    }
}
