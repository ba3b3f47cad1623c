//! The functions whose code differs between two kernels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::image::{Image, Piece};
use crate::instruction::{Key, Normal, decode, normal};

/// The functions of two kernels, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The functions that differ: changed ones, then new ones, then those that are gone. Of the changed ones
    /// those with the most changed instructions are first, of the others the largest.
    pub functions: Vec<Function>,
    /// The names of functions with the same code.
    pub same: BTreeSet<String>,
}

/// A function that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name without suffixes of the compiler.
    pub name: String,
    /// How it differs.
    pub change: Change,
    /// The size of its pieces that differ, in the baseline.
    pub base: Size,
    /// The same in the other kernel.
    pub new: Size,
    /// The number of instructions that only the baseline has, wherever they are.
    pub removed: usize,
    /// The number of instructions that only the other kernel has.
    pub added: usize,
}

/// How a function differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Both kernels have it, with different code.
    Changed,
    /// The baseline lacks it.
    New,
    /// The other kernel lacks it.
    Gone,
}

/// The size of code without padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes.
    pub bytes: usize,
    /// Instructions.
    pub instructions: usize,
}

impl Difference {
    /// How each function that differs does, by its name.
    pub fn changes(&self) -> HashMap<&str, Change> {
        self.functions.iter().map(|it| (&*it.name, it.change)).collect()
    }

    /// The functions that differ in one way.
    pub fn of(&self, change: Change) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(move |it| it.change == change)
    }
}

/// The code of a piece.
pub(crate) struct Body<'a> {
    pub piece: Piece<'a>,
    pub instructions: Vec<Normal<'a>>,
    bytes: usize,
}

impl<'a> Body<'a> {
    pub fn of(piece: Piece<'a>, image: &'a Image<'_>) -> Self {
        let decoded = decode(&piece, image);
        let instructions = normal(&decoded, &piece, image);
        Self { piece, instructions, bytes: decoded.iter().map(|it| it.len()).sum() }
    }

    fn is_same(&self, other: &Body<'_>) -> bool {
        let (one, other) = (&self.instructions, &other.instructions);
        let same = |one: usize, other: usize| one == other;
        one.len() == other.len()
            && one.iter().zip(other).all(|(one, other)| one.is_same(other, same))
    }
}

/// The bodies of a function that the other kernel's lacks. A symbol of padding has no body.
pub(crate) fn unmatched<'a>(
    pieces: [&[Piece<'a>]; 2],
    images: [&'a Image<'_>; 2],
) -> [Vec<Body<'a>>; 2] {
    let bodies = |place: usize| -> Vec<Body<'a>> {
        let bodies = pieces[place].iter().map(|piece| Body::of(*piece, images[place]));
        bodies.filter(|body| !body.instructions.is_empty()).collect()
    };
    let (mut base, mut new) = (bodies(0), bodies(1));
    base.retain(|one| match new.iter().position(|other| one.is_same(other)) {
        Some(place) => {
            new.remove(place);
            false
        }
        None => true,
    });
    [base, new]
}

/// Compares all functions of two kernels.
pub fn difference(base: &Image<'_>, new: &Image<'_>) -> Difference {
    let images = [base, new];
    let [of_base, of_new] = images.map(Image::functions);
    let mut difference = Difference::default();
    let names: BTreeSet<&str> = of_base.keys().chain(of_new.keys()).copied().collect();
    for name in names {
        let pieces = [&of_base, &of_new].map(|functions| pieces(functions, name));
        let bodies = unmatched(pieces, images);
        let change = match pieces.map(<[_]>::is_empty) {
            [true, _] => Change::New,
            [_, true] => Change::Gone,
            _ => Change::Changed,
        };
        if !bodies.iter().all(Vec::is_empty) {
            difference.functions.push(function(name, change, &bodies));
        } else if change == Change::Changed {
            difference.same.insert(name.to_owned());
        }
    }
    difference.functions.sort_by_key(|it| {
        let size = it.base.instructions + it.new.instructions;
        (it.change, Reverse(it.added + it.removed), Reverse(size))
    });
    difference
}

fn pieces<'a, 'b>(functions: &'b BTreeMap<&str, Vec<Piece<'a>>>, name: &str) -> &'b [Piece<'a>] {
    functions.get(name).map_or(&[], Vec::as_slice)
}

fn function(name: &str, change: Change, bodies: &[Vec<Body<'_>>; 2]) -> Function {
    let [base, new] = bodies.each_ref().map(|bodies| Size {
        bytes: bodies.iter().map(|body| body.bytes).sum(),
        instructions: bodies.iter().map(|body| body.instructions.len()).sum(),
    });
    let mut balance = HashMap::<Key, i64>::new();
    for (bodies, sign) in bodies.iter().zip([-1, 1]) {
        for instruction in bodies.iter().flat_map(|body| &body.instructions) {
            *balance.entry(instruction.key()).or_default() += sign;
        }
    }
    let sum = |sign: i64| balance.values().map(|it| (it * sign).max(0) as usize).sum();
    Function { name: name.to_owned(), change, base, new, removed: sum(-1), added: sum(1) }
}
