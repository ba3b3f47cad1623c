//! Small kernels for arm64, made of words. Nothing that knows arm64 is needed to make them.

use Op::{Add, Branch, Call, Literal, Load, Page, Word};
use code::{Change, CodeDifference, Image, difference, listings};
use kernelfiles::kallsyms::Symbols;
use proptest::prelude::*;

/// Where the kernel begins, its code, and its data.
const BASE: u64 = 0xffff_8000_8000_0000;
const CODE: usize = 0x1_0000;
const DATA: usize = 0x4_0000;
const SIZE: usize = 0x8_0000;

const NOP: Op = Word(0xd503_201f);
const RET: Op = Word(0xd65f_03c0);
const BTI_C: Op = Word(0xd503_245f);
const PACIASP: Op = Word(0xd503_233f);
const AUTIASP: Op = Word(0xd503_23bf);
/// `add x0, x0, #1` and `add x1, x1, #2`.
const ONE: Op = Word(0x9100_0400);
const TWO: Op = Word(0x9100_0821);

/// An instruction.
#[derive(Clone, Copy, Debug)]
enum Op {
    Word(u32),
    /// A call of a function.
    Call(&'static str),
    /// A branch of this kind over so many instructions.
    Branch(u32, i32),
    /// `adrp` of a text.
    Page(u32, &'static str),
    /// The same register with the distance of the text in its page added.
    Add(u32, &'static str),
    /// A load of the text by such a register, into another one.
    Load(u32, &'static str),
    /// A load of the literal so many instructions ahead.
    Literal(i32),
}

/// `b`, `b.ne` and `cbz x0`.
const JUMP: u32 = 0x1400_0000;
const IF_NOT_EQUAL: u32 = 0x5400_0001;
const IF_ZERO: u32 = 0xb400_0000;

struct Kernel {
    file: Vec<u8>,
    symbols: Symbols,
}

impl Kernel {
    /// A kernel of these functions, with texts that begin after `room` bytes.
    fn of(functions: &[(&str, &[Op])], room: usize) -> Self {
        let mut file = vec![0; SIZE];
        file[0x10..0x18].copy_from_slice(&(SIZE as u64).to_le_bytes());
        file[0x38..0x3c].copy_from_slice(b"ARM\x64");
        let starts = functions.iter().scan(CODE, |at, (_, code)| {
            let start = *at;
            *at += (4 * code.len()).next_multiple_of(16);
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        let mut data = DATA + room;
        let texts = ["a first text", "a second text"].map(|text| {
            file[data..data + text.len()].copy_from_slice(text.as_bytes());
            data += 0x1000;
            (text, data as u64 - 0x1000)
        });
        let text = |name: &str| BASE + texts.iter().find(|it| it.0 == name).unwrap().1;
        let length = |code: &[Op]| (4 * code.len()).next_multiple_of(16);
        let end = CODE + functions.iter().map(|(_, code)| length(code)).sum::<usize>();
        let mut listed = format!("{BASE:x} T _text\n{:x} D _etext\n", BASE + end as u64);
        for ((name, code), start) in functions.iter().zip(&starts) {
            listed += &format!("{:x} t {name}\n", BASE + *start as u64);
            let padded = code.iter().copied().chain([NOP; 3]);
            for (op, at) in padded.take(code.len().next_multiple_of(4)).zip((*start..).step_by(4)) {
                let address = BASE + at as u64;
                let field = |number: i32, bits: u32| number.cast_unsigned() & ((1 << bits) - 1);
                let word = match op {
                    Word(word) => word,
                    Call(callee) => {
                        let to = functions.iter().position(|it| it.0 == callee).unwrap();
                        0x9400_0000 | field((starts[to] as i32 - at as i32) / 4, 26)
                    }
                    Branch(JUMP, over) => JUMP | field(over, 26),
                    Branch(kind, over) => kind | field(over, 19) << 5,
                    Literal(over) => 0x5800_0000 | field(over, 19) << 5,
                    Page(register, name) => {
                        let pages = ((text(name) >> 12) - (address >> 12)) as u32;
                        0x9000_0000 | (pages & 3) << 29 | (pages >> 2) << 5 | register
                    }
                    Add(register, name) => {
                        let low = (text(name) & 0xfff) as u32;
                        0x9100_0000 | low << 10 | register << 5 | register
                    }
                    Load(register, name) => {
                        let low = (text(name) & 0xfff) as u32 / 8;
                        0xf940_0009 | low << 10 | register << 5
                    }
                };
                file[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
        }
        Self { file, symbols: Symbols::parse(&listed) }
    }

    fn image(&self) -> Image<'_> {
        Image::read(&self.file, &self.symbols).unwrap()
    }
}

fn compared(base: &Kernel, new: &Kernel) -> CodeDifference {
    difference(&base.image(), &new.image())
}

/// The differences if the function `f` is replaced. It moves, and so do its callee and all data.
fn between(base: &[Op], new: &[Op]) -> Vec<(String, Change)> {
    let first = Kernel::of(&[("callee", &[RET]), ("other", &[ONE, RET]), ("f", base)], 8);
    let room: &[Op] = &[ONE, ONE, ONE, RET, ONE, RET];
    let second =
        Kernel::of(&[("f", new), ("other", &[ONE, RET]), ("room", room), ("callee", &[RET])], 80);
    let functions = compared(&first, &second).functions.into_iter();
    functions.filter(|it| it.name != "room").map(|it| (it.name, it.change)).collect()
}

const FIRST: &str = "a first text";
const SECOND: &str = "a second text";

#[test]
fn code_that_only_moved_is_the_same() {
    for code in [
        &[Call("callee"), RET][..],
        &[Page(0, FIRST), Add(0, FIRST), RET],
        &[Page(3, SECOND), ONE, Call("callee"), RET],
        &[Page(0, FIRST), Load(0, FIRST), RET],
        &[Page(19, FIRST), Call("callee"), Add(19, FIRST), RET],
        &[Page(1, FIRST), Branch(IF_ZERO, 2), RET, Add(1, FIRST), RET],
        // What is known at a loop's beginning is what is so each time.
        &[Page(1, FIRST), ONE, Load(1, FIRST), Branch(IF_NOT_EQUAL, -2), RET],
        // The kernel replaces a jump around an instruction by a NOP, and a NOP by a jump behind the end.
        &[Page(1, FIRST), Branch(JUMP, 2), Add(1, FIRST), RET],
        &[Page(1, FIRST), NOP, RET, Add(1, FIRST), RET],
        &[Literal(2), RET, Word(5), Word(0)],
        &[Word(0), Word(0xffff_ffff), ONE], // no instructions
    ] {
        assert_eq!(between(code, code), [], "{code:?}");
    }
}

#[test]
fn other_code_is_a_change() {
    for (base, new) in [
        (&[Call("callee"), RET][..], &[Call("other"), RET][..]),
        (&[Page(0, FIRST), Add(0, FIRST), RET], &[Page(0, SECOND), Add(0, SECOND), RET]),
        (&[Page(0, FIRST), Add(0, FIRST), RET], &[Page(3, FIRST), Add(3, FIRST), RET]),
        (&[ONE, RET], &[TWO, RET]),
        (&[Literal(2), RET, Word(5), Word(0)], &[Literal(2), RET, Word(6), Word(0)]),
        (&[ONE, TWO, Branch(IF_NOT_EQUAL, -2), RET], &[ONE, TWO, Branch(IF_NOT_EQUAL, -1), RET]),
        (&[ONE, RET], &[ONE, NOP, RET]),
        // A call does not keep the register, so the number is one.
        (&[Page(1, FIRST), Call("callee"), ONE, RET], &[Page(1, FIRST), Call("callee"), TWO, RET]),
    ] {
        assert_eq!(between(base, new), [("f".to_owned(), Change::Changed)], "{base:?} {new:?}");
    }
}

#[test]
fn what_is_no_code_of_the_function_is_set_aside() {
    for (base, new) in [
        (&[ONE, RET][..], &[NOP, NOP, ONE, RET][..]),
        (&[BTI_C, ONE, RET], &[BTI_C, NOP, NOP, ONE, RET]),
        (&[RET], &[RET, NOP, NOP, Word(0), Word(0)]),
    ] {
        assert_eq!(between(base, new), [], "{base:?} {new:?}");
    }
}

#[test]
fn instrumentation_of_one_side_is_named() {
    let plain: &[Op] = &[ONE, RET];
    for (with, kind) in [
        (&[BTI_C, ONE, RET][..], "BTI"),
        (&[PACIASP, ONE, AUTIASP, RET], "pointer authentication"),
        (&[Word(0xf800_865e), ONE, Word(0xf85f_8e5e), RET], "the shadow call stack"),
    ] {
        let [base, new] = [plain, with].map(|code| Kernel::of(&[("f", code)], 0));
        let found = compared(&base, &new).functions.remove(0).instrumentation;
        assert_eq!((Vec::from_iter(found.gained), found.lost.len()), (vec![kind], 0));
        let found = compared(&new, &base).functions.remove(0).instrumentation;
        assert_eq!((found.gained.len(), Vec::from_iter(found.lost)), (0, vec![kind]));
    }
}

/// The texts of a function's instructions.
fn texts(kernel: &Kernel) -> Vec<String> {
    let image = kernel.image();
    let listings = listings(&image, &image, "f");
    listings.into_iter().flat_map(|it| it.lines).flat_map(|it| it.sides[0].clone()).collect()
}

#[test]
fn addresses_are_listed_by_name() {
    let code =
        [Call("callee"), Page(0, FIRST), Add(0, FIRST), Branch(IF_ZERO, 2), Branch(JUMP, -1), RET];
    let kernel = Kernel::of(&[("callee", &[RET]), ("f", &code)], 8);
    let expected = [
        "bl callee",
        "adrp x0, 0xffff800080040000",
        "add x0, x0, #0x8 // \"a first text\"",
        "cbz x0, f+0x14",
        "b f+0xc",
        "ret",
    ];
    assert_eq!(texts(&kernel), expected);
}

/// An instruction without what differs between forms of writing it: the base of numbers, and spaces.
fn plain(text: &str) -> String {
    let words = text.split([' ', ',', '#']).filter(|it| !it.is_empty());
    let number = |word: &str| {
        let digits = word.trim_start_matches(['-', '[']).trim_end_matches([']', '!']);
        let number = u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?;
        Some(word.replace(digits, &number.to_string()))
    };
    words.map(|it| number(it).unwrap_or(it.to_owned())).collect::<Vec<_>>().join(" ")
}

/// `objdump.txt` has an instruction of each form that is in Debian's kernels 6.1 and 6.12 at least 20 times, without
/// branches.
#[test]
fn instructions_read_as_objdump_prints_them() {
    let lines = include_str!("objdump.txt").lines().map(|line| line.split_once(' ').unwrap());
    for (word, expected) in lines {
        let code = [RET, Word(u32::from_str_radix(word, 16).unwrap()), RET];
        let text = texts(&Kernel::of(&[("f", &code)], 0)).swap_remove(1);
        assert_eq!(plain(&text), plain(expected), "{word}: {text}");
    }
}

proptest! {
    #[test]
    fn hostile_code_is_survived(words in prop::collection::vec(any::<u32>(), 1..300)) {
        let code: Vec<Op> = words.into_iter().map(Word).collect();
        let kernel = Kernel::of(&[("f", &code)], 0);
        prop_assert_eq!(compared(&kernel, &kernel).functions, []);
        texts(&kernel);
    }

    #[test]
    fn hostile_headers_and_symbols_are_survived(
        header in prop::collection::vec(any::<u8>(), 0x18..0x38),
        first in any::<u64>(),
        length in 0..SIZE,
        end in any::<u64>(),
    ) {
        let mut kernel = Kernel::of(&[("f", &[ONE, RET])], 0);
        kernel.file[..header.len()].copy_from_slice(&header);
        kernel.file.truncate(length);
        kernel.symbols = Symbols::parse(&format!("{first:x} t f\n{end:x} T _etext\n"));
        let _ = Image::read(&kernel.file, &kernel.symbols).map(|it| difference(&it, &it));
    }
}
