//! A function's instructions in two kernels, side by side.

use std::collections::HashMap;

use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::difference::{Body, bodies, unmatched};
use crate::image::Image;
use crate::instruction::Key;
use crate::sources::Origin;
use crate::{Symbol, arch};

/// A piece of a function in two kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Its symbol in each kernel; `None` if the kernel lacks the piece.
    pub symbols: [Option<String>; 2],
    /// The instructions of both kernels, aligned.
    pub lines: Vec<Line>,
}

/// An instruction of either kernel, or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The instruction of each kernel, in AT&T syntax or Arm's; `None` if the kernel lacks it.
    pub sides: [Option<String>; 2],
    /// Its place in the source, such as `mm/memory.c:512`, or `include/linux/mm.h:88 (an_inlined_function)`. `None`
    /// if the kernel has no debug information, or the previous instruction has the same place.
    pub sources: [Option<String>; 2],
    /// The address of each kernel's instruction, and the place in the source that it comes from, which is not left
    /// out after an equal one.
    pub at: [Option<At>; 2],
    /// Whether the instructions are the same, apart from addresses.
    pub same: bool,
}

/// Where an instruction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Its virtual address.
    pub address: u64,
    /// Its place in the source; `None` if the kernel has no debug information.
    pub origin: Option<Origin>,
}

/// The pieces of a function that differ between two kernels, or all pieces if none differs. Empty if neither kernel
/// has the function.
pub fn listings(base: &Image<'_>, new: &Image<'_>, name: &str) -> Vec<Listing> {
    let images = [base, new];
    let pieces = images.map(|image| image.pieces_of(name));
    let pieces = pieces.each_ref().map(Vec::as_slice);
    match unmatched(pieces, images) {
        [base, new] if base.is_empty() && new.is_empty() => {
            listings_of(bodies(pieces, images), images)
        }
        differing => listings_of(differing, images),
    }
}

/// All pieces of a function in two kernels, also those that do not differ. Empty if neither kernel has the function.
pub fn whole_listings(base: &Image<'_>, new: &Image<'_>, name: &str) -> Vec<Listing> {
    let images = [base, new];
    let pieces = images.map(|image| image.pieces_of(name));
    listings_of(bodies(pieces.each_ref().map(Vec::as_slice), images), images)
}

/// Pairs pieces by what they are: the function itself, its parts, its cold code.
pub(crate) fn listings_of(mut sides: [Vec<Body<'_>>; 2], images: [&Image<'_>; 2]) -> Vec<Listing> {
    for bodies in &mut sides {
        bodies.sort_by_key(|body| Symbol::of(body.piece.symbol).piece);
    }
    let [of_base, of_new] = &sides;
    let longer = of_base.len().max(of_new.len());
    let pairs = (0..longer).map(|place| [of_base.get(place), of_new.get(place)]);
    pairs.map(|bodies| listing(bodies, images)).collect()
}

fn listing(bodies: [Option<&Body<'_>>; 2], images: [&Image<'_>; 2]) -> Listing {
    let keys = bodies.map(|body| {
        let instructions = body.map_or(&[][..], |body| &body.instructions);
        instructions.iter().map(|it| it.key()).collect::<Vec<Key>>()
    });
    let at = [0, 1].map(|side| bodies[side].map_or(vec![], |it| places(it, images[side])));
    let mut sources = at.each_ref().map(|at| sources(at));
    let texts = [0, 1].map(|side| bodies[side].map_or(vec![], |it| texts(it, images[side])));
    let ops = capture_diff_slices(Algorithm::Myers, &keys[0], &keys[1]);
    let aligned: HashMap<usize, usize> = ops
        .iter()
        .filter(|op| op.tag() == DiffTag::Equal)
        .flat_map(|op| op.old_range().zip(op.new_range()))
        .collect();
    // Inserted instructions move the targets of jumps, which is no difference.
    let is_target = |one: usize, other: usize| aligned.get(&one).is_none_or(|at| *at == other);
    let is_same = |one: usize, other: usize| {
        let [Some(base), Some(new)] = bodies else { return false };
        base.instructions[one].is_same(&new.instructions[other], is_target)
    };
    let mut lines = Vec::new();
    for op in &ops {
        let [mut base, mut new] = [op.old_range(), op.new_range()];
        for _ in 0..base.len().max(new.len()) {
            let [one, other] = [base.next(), new.next()];
            let same = op.tag() == DiffTag::Equal
                && one.zip(other).is_some_and(|(one, other)| is_same(one, other));
            let sides = [one.map(|at| texts[0][at].clone()), other.map(|at| texts[1][at].clone())];
            let mut source = |side: usize, at: Option<usize>| sources[side].get_mut(at?)?.take();
            let sources = [source(0, one), source(1, other)];
            let at = [one.map(|it| at[0][it].clone()), other.map(|it| at[1][it].clone())];
            lines.push(Line { sides, sources, at, same });
        }
    }
    Listing { symbols: bodies.map(|body| body.map(|it| it.piece.symbol.to_owned())), lines }
}

/// The addresses of instructions, and the places in the source that they come from.
fn places(body: &Body<'_>, image: &Image<'_>) -> Vec<At> {
    let addresses = body.addresses.iter();
    addresses.map(|&address| At { address, origin: image.origin(address) }).collect()
}

/// The places in the source as text. A place equal to that of the previous instruction is left out.
fn sources(places: &[At]) -> Vec<Option<String>> {
    let text = |at: &At| {
        let origin = at.origin.as_ref()?;
        let inlined = origin.inlined.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        Some(origin.line.clone()? + &inlined)
    };
    let mut last = None;
    let texts = places.iter().map(text);
    texts.map(|text| (text != last).then(|| last.clone_from(&text)).and(text)).collect()
}

/// The instructions of a body as text.
fn texts(body: &Body<'_>, image: &Image<'_>) -> Vec<String> {
    arch::of(image).texts(&body.piece, image)
}
