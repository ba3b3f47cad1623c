//! The functions whose code differs between two kernels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use serde::Serialize;

use crate::arch;
use crate::image::{Image, Piece};
use crate::instruction::{Key, Normal};
use crate::instrumentation::{Instrumentation, known};

/// The functions of two kernels, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeDifference {
    /// The functions that differ: first changed ones, by descending number of changed instructions; then new ones,
    /// then those that are gone, each by descending size.
    pub functions: Vec<Function>,
    /// The names of functions with the same code.
    pub same: BTreeSet<String>,
}

/// A function that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its name without suffixes of the compiler.
    pub name: String,
    /// The way in which it differs.
    pub change: Change,
    /// The size of its pieces that differ, in the baseline.
    pub base: Size,
    /// The size of its pieces that differ, in the other kernel.
    pub new: Size,
    /// The number of instructions that only the baseline has, at any position.
    pub removed: usize,
    /// The number of instructions that only the other kernel has, at any position.
    pub added: usize,
    /// The inlined function of the source that has most of these instructions: more than the function itself and than
    /// any other. Known only if both kernels have debug information.
    pub inlined: Option<String>,
    /// What only one side is instrumented with, if both kernels have the function.
    #[serde(flatten)]
    pub instrumentation: Instrumentation,
}

/// The way in which a function differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Both kernels have it, with different code.
    Changed,
    /// The baseline lacks it.
    New,
    /// The other kernel lacks it.
    Gone,
}

/// The size of code without padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// The number of bytes.
    pub bytes: usize,
    /// The number of instructions.
    pub instructions: usize,
}

impl CodeDifference {
    /// The way in which each function differs, by its name.
    pub fn changes(&self) -> HashMap<&str, Change> {
        self.functions.iter().map(|it| (&*it.name, it.change)).collect()
    }

    /// The functions that differ in this way.
    pub fn of(&self, change: Change) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(move |it| it.change == change)
    }
}

/// A piece with its decoded code.
pub(crate) struct Body<'a> {
    pub piece: Piece<'a>,
    pub instructions: Vec<Normal<'a>>,
    pub addresses: Vec<u64>,
    bytes: usize,
    /// What its own instructions instrument it for.
    kinds: BTreeSet<&'static str>,
}

impl<'a> Body<'a> {
    pub fn of(piece: Piece<'a>, image: &'a Image<'_>) -> Self {
        let decoded = arch::of(image).decode(&piece, image);
        let instructions = decoded.iter().map(|it| it.normal).collect();
        let addresses = decoded.iter().map(|it| it.address).collect();
        let bytes = decoded.iter().map(|it| it.length).sum();
        let kinds = decoded.iter().filter_map(|it| it.kind).collect();
        Self { piece, instructions, addresses, bytes, kinds }
    }

    /// What it is instrumented with: by functions that it calls, and by instructions.
    fn instrumented(&self) -> BTreeSet<&'static str> {
        let called = known(self.instructions.iter().filter_map(Normal::target));
        &called | &self.kinds
    }

    fn is_same(&self, other: &Body<'_>) -> bool {
        let (one, other) = (&self.instructions, &other.instructions);
        let same = |one: usize, other: usize| one == other;
        one.len() == other.len()
            && one.iter().zip(other).all(|(one, other)| one.is_same(other, same))
    }
}

/// For each kernel, the bodies of a function. A symbol of padding has no body.
pub(crate) fn bodies<'a>(
    pieces: [&[Piece<'a>]; 2],
    images: [&'a Image<'_>; 2],
) -> [Vec<Body<'a>>; 2] {
    [0, 1].map(|place| {
        let bodies = pieces[place].iter().map(|piece| Body::of(*piece, images[place]));
        bodies.filter(|body| !body.instructions.is_empty()).collect()
    })
}

/// For each kernel, the bodies of a function that have no equal in the other kernel.
pub(crate) fn unmatched<'a>(
    pieces: [&[Piece<'a>]; 2],
    images: [&'a Image<'_>; 2],
) -> [Vec<Body<'a>>; 2] {
    let [mut base, mut new] = bodies(pieces, images);
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
pub fn difference(base: &Image<'_>, new: &Image<'_>) -> CodeDifference {
    let images = [base, new];
    let [of_base, of_new] = images.map(Image::functions);
    let known = [&of_base, &of_new].map(|functions| known(functions.keys().copied()));
    let mut difference = CodeDifference::default();
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
            difference.functions.push(function(name, change, &bodies, (images, &known)));
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

fn function(
    name: &str,
    change: Change,
    bodies: &[Vec<Body<'_>>; 2],
    (images, known): ([&Image<'_>; 2], &[BTreeSet<&'static str>; 2]),
) -> Function {
    let [base, new] = bodies.each_ref().map(|bodies| Size {
        bytes: bodies.iter().map(|body| body.bytes).sum(),
        instructions: bodies.iter().map(|body| body.instructions.len()).sum(),
    });
    let balance = balance(bodies, |_, _| ());
    let sum = |sign: i64| balance.values().map(|it| (it * sign).max(0) as usize).sum();
    let (removed, added) = (sum(-1), sum(1));
    let (inlined, instrumentation) = match change {
        Change::Changed => {
            let kinds =
                bodies.each_ref().map(|it| it.iter().flat_map(Body::instrumented).collect());
            (inlined(bodies, images), Instrumentation::of(kinds, known))
        }
        Change::New | Change::Gone => (None, Instrumentation::default()),
    };
    let name = name.to_owned();
    Function { name, change, base, new, removed, added, inlined, instrumentation }
}

/// For each kind of instruction, and each value that `of` gives to its side and address: the number in the other
/// kernel minus the number in the baseline.
fn balance<T: Eq + Hash>(
    bodies: &[Vec<Body<'_>>; 2],
    of: impl Fn(usize, u64) -> T,
) -> HashMap<(Key, T), i64> {
    let mut balance = HashMap::new();
    for (side, sign) in [(0, -1), (1, 1)] {
        for body in &bodies[side] {
            for (instruction, &address) in body.instructions.iter().zip(&body.addresses) {
                *balance.entry((instruction.key(), of(side, address))).or_default() += sign;
            }
        }
    }
    balance
}

/// The inlined function that has the most instructions that only one kernel has; `None` if the function itself has as
/// many, or a kernel has no debug information of the code.
pub(crate) fn inlined(bodies: &[Vec<Body<'_>>; 2], images: [&Image<'_>; 2]) -> Option<String> {
    if !have_lines(bodies, images) {
        return None;
    }
    let mut by_function = BTreeMap::<Option<String>, u64>::new();
    for ((_, function), more) in
        balance(bodies, |side, address| images[side].origin(address)?.inlined)
    {
        *by_function.entry(function).or_default() += more.unsigned_abs();
    }
    by_function.retain(|_, instructions| *instructions > 0);
    // Of equal maxima `max_by_key` returns the last, which is the function itself, `None`.
    by_function.into_iter().rev().max_by_key(|(_, instructions)| *instructions)?.0
}

/// Whether both kernels have debug information of all these bodies.
pub(crate) fn have_lines(bodies: &[Vec<Body<'_>>; 2], images: [&Image<'_>; 2]) -> bool {
    let has_lines = |side: usize| {
        let mut pieces = bodies[side].iter().map(|body| body.piece.address);
        pieces.all(|address| images[side].origin(address).is_some())
    };
    has_lines(0) && has_lines(1)
}
