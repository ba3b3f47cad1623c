//! What a function executed, by line of the source, or by instruction where the lines are not known.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use code::{Line, Listing, Symbol};
use model::{INSTRUCTIONS, Place, WorkloadUse};
use serde::Serialize;

use super::{Identity, Span, Tally, profiles, seeds};
use crate::VariantBoots;

/// The place of instructions whose line is not known.
pub const NO_LINE: &str = "[no line]";
/// The longest instruction of x86 is shorter. A counted address in an instruction belongs to that instruction: the
/// kernel replaces instructions by others when it starts.
const LONGEST: u64 = 16;

/// What the seeds of a side executed of a function, without what it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CountedFunction {
    /// The variant's name.
    pub name: String,
    /// The number of seeds that count.
    pub seeds: usize,
    /// The function's entries, the sum over the seeds; those of its parts if it has none.
    pub entries: i128,
    /// The function's instructions, the sum over the seeds.
    pub instructions: i128,
    /// The executions of each instruction by its address, the sum over the seeds. Empty if they were not kept.
    #[serde(skip)]
    pub executions: BTreeMap<u64, u64>,
}

/// The figures of a line or an instruction on one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineSide {
    /// File and line, such as `mm/memory.c:512`; [`NO_LINE`]; or the instruction, if lines are not known.
    pub place: String,
    /// The inlined function that the line is in.
    pub inlined: Option<String>,
    /// The text of the line, if the source is known.
    pub text: Option<String>,
    /// Its instructions, the sum over the seeds.
    pub instructions: u64,
    /// The executions of its instruction that was executed most often, the sum over the seeds.
    pub executions: u64,
}

/// A line of the source, or an instruction, in two kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountedLine {
    /// The line in each kernel; `None` if the kernel has no code of it.
    pub sides: [Option<LineSide>; 2],
}

/// A function's lines in two kernels, with what they executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionLines {
    /// The function's name without suffixes of the compiler.
    pub function: String,
    /// The phase; `None` for the measured phases together.
    pub phase: Option<String>,
    /// The function on each side.
    pub sides: [CountedFunction; 2],
    /// Whether the rows are lines of the source; if not, they are instructions.
    pub by_source: bool,
    /// The rows, in the order of the source or of the code.
    pub lines: Vec<CountedLine>,
    /// Why a kernel has no lines.
    pub notes: Vec<String>,
}

impl CountedFunction {
    /// The function's instructions per seed.
    pub fn per_seed(&self) -> f64 {
        if self.seeds > 0 { self.instructions as f64 / self.seeds as f64 } else { 0.0 }
    }

    /// A sum over the seeds per entry of the function; per seed if it has no entries.
    pub fn per_entry(&self, sum: u64) -> f64 {
        let number = if self.entries > 0 { self.entries as f64 } else { self.seeds as f64 };
        if number > 0.0 { sum as f64 / number } else { 0.0 }
    }
}

impl FunctionLines {
    /// The change of a row's instructions per entry.
    pub fn change(&self, line: &CountedLine) -> f64 {
        let [base, new] = [0, 1].map(|side| {
            let own = line.sides[side].as_ref();
            own.map_or(0.0, |it| self.sides[side].per_entry(it.instructions))
        });
        new - base
    }
}

/// What both sides executed of a function of the kernel, in a phase or in the measured phases together.
pub fn counted_function(
    sides: [&VariantBoots<'_>; 2],
    used: &WorkloadUse,
    phase: Option<&str>,
    function: &str,
) -> [CountedFunction; 2] {
    let seeds = seeds(sides, used);
    let span = Span::of(phase, &seeds, used);
    [0, 1].map(|side| {
        let name = sides[side].name().to_owned();
        let mut counted =
            CountedFunction { name, seeds: seeds[side].len(), ..CountedFunction::default() };
        for boot in &seeds[side] {
            let own = Tally::of(profiles(boot, used, span), INSTRUCTIONS)
                .executed(Identity { name: function, module: "" });
            counted.instructions += own.cost;
            counted.entries += if own.entries > 0 { own.entries } else { own.part_entries };
            for profile in profiles(boot, used, span) {
                let cost = profile.costs.number(INSTRUCTIONS);
                for row in profile.costs.rows() {
                    let Place::Instruction { function: symbol, module, address } = row.place else {
                        continue;
                    };
                    if module.is_empty() && Symbol::of(symbol).name == function {
                        let sum = counted.executions.entry(*address).or_default();
                        *sum = sum.saturating_add(u64::try_from(row.sum(cost)).unwrap_or(u64::MAX));
                    }
                }
            }
        }
        counted
    })
}

/// Assigns what a function executed to its lines. `listings` is all of its code; `text` gives a line of a side's source,
/// such as that of `mm/memory.c:512`. Rows are instructions if a side has no debug information.
pub fn function_lines(
    function: &str,
    phase: Option<&str>,
    sides: [CountedFunction; 2],
    listings: &[Listing],
    text: &dyn Fn(usize, &str) -> Option<String>,
) -> FunctionLines {
    let code: Vec<&Line> = listings.iter().flat_map(|it| &it.lines).collect();
    let costs = [0, 1].map(|side| costs(&code, side, &sides[side].executions));
    let has_lines = |side: usize| {
        let mut own = code.iter().filter_map(|line| line.at[side].as_ref()).peekable();
        own.peek().is_none() || own.any(|at| at.origin.as_ref().is_some_and(|it| it.line.is_some()))
    };
    let by_source = has_lines(0) && has_lines(1);
    let lines = match by_source {
        true => by_line(&code, &costs, text),
        false => by_instruction(&code, &costs),
    };
    let (function, phase) = (function.to_owned(), phase.map(str::to_owned));
    FunctionLines { function, phase, sides, by_source, lines, notes: Vec::new() }
}

/// The instructions and executions at each address of a side's code.
type Costs = HashMap<u64, [u64; 2]>;

/// Assigns each counted address to the instruction of the code that it is in. A NOP for the function tracer, which the
/// code does not list, belongs to the instruction after it.
fn costs(code: &[&Line], side: usize, executions: &BTreeMap<u64, u64>) -> Costs {
    let addresses = code.iter().filter_map(|line| Some((line.at[side].as_ref()?.address, ())));
    let addresses: BTreeMap<u64, ()> = addresses.collect();
    let mut costs = Costs::new();
    for (&address, &count) in executions {
        let before = addresses.range(..=address).next_back().map(|(it, ())| *it);
        let after = addresses.range(address..).next().map(|(it, ())| *it);
        let near = before.filter(|before| address - before < LONGEST);
        let Some(own) = near.or(after).or(before) else { continue };
        let [instructions, most] = costs.entry(own).or_default();
        *instructions = instructions.saturating_add(count);
        *most = count.max(*most);
    }
    costs
}

fn by_instruction(code: &[&Line], costs: &[Costs; 2]) -> Vec<CountedLine> {
    let starts = [0, 1].map(|side| code.iter().find_map(|line| line.at[side].as_ref()));
    // Instructions that only stand side by side have a row each.
    let mnemonic = |text: &str| text.split(' ').next().map(str::to_owned);
    let rows = code.iter().flat_map(|line| match line.sides.each_ref().map(Option::as_deref) {
        [Some(base), Some(new)] if !line.same && mnemonic(base) != mnemonic(new) => {
            vec![(line, [true, false]), (line, [false, true])]
        }
        _ => vec![(line, [true, true])],
    });
    let row = |(line, shown): (&&Line, [bool; 2])| {
        let sides = [0, 1].map(|side| {
            let (at, text) = line.at[side].as_ref().zip(line.sides[side].as_ref())?;
            if !shown[side] {
                return None;
            }
            let [instructions, executions] =
                costs[side].get(&at.address).copied().unwrap_or_default();
            let offset = at.address.wrapping_sub(starts[side]?.address).cast_signed();
            let sign = if offset < 0 { '-' } else { '+' };
            let place = format!("{sign}{:#x} {text}", offset.unsigned_abs());
            Some(LineSide { place, inlined: None, text: None, instructions, executions })
        });
        CountedLine { sides }
    };
    rows.map(row).collect()
}

/// A line of one side: the inlined function, then file and line.
type Key = (Option<String>, String);

/// The lines of one side.
struct Lines {
    rows: Vec<LineSide>,
    /// How many instructions each line has.
    sizes: Vec<usize>,
    numbers: HashMap<Key, usize>,
}

impl Lines {
    /// The lines of a side in the order of the source: the function's own, then those of inlined functions.
    fn of(
        code: &[&Line],
        side: usize,
        costs: &Costs,
        text: &dyn Fn(usize, &str) -> Option<String>,
    ) -> Self {
        let mut sums = BTreeMap::<_, (LineSide, usize)>::new();
        for at in code.iter().filter_map(|line| line.at[side].as_ref()) {
            let (inlined, place) = key(at);
            let order = (inlined.clone(), order(&place));
            let (row, size) = sums.entry(order).or_insert_with(|| {
                let text = text(side, &place);
                (LineSide { place, inlined, text, instructions: 0, executions: 0 }, 0)
            });
            let [instructions, executions] = costs.get(&at.address).copied().unwrap_or_default();
            row.instructions = row.instructions.saturating_add(instructions);
            row.executions = row.executions.max(executions);
            *size += 1;
        }
        let (rows, sizes): (Vec<LineSide>, Vec<usize>) = sums.into_values().unzip();
        let numbers = rows.iter().map(|row| (row.inlined.clone(), row.place.clone())).zip(0..);
        Self { numbers: numbers.collect(), rows, sizes }
    }
}

fn key(at: &code::At) -> Key {
    let origin = at.origin.clone().unwrap_or_default();
    (origin.inlined, origin.line.unwrap_or_else(|| NO_LINE.to_owned()))
}

/// File and number of a line.
fn order(place: &str) -> (String, u32) {
    let parts = place.rsplit_once(':');
    let number = parts.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    number.unwrap_or_else(|| (place.to_owned(), 0))
}

fn by_line(
    code: &[&Line],
    costs: &[Costs; 2],
    text: &dyn Fn(usize, &str) -> Option<String>,
) -> Vec<CountedLine> {
    let [base, new] = [0, 1].map(|side| Lines::of(code, side, &costs[side], text));
    let pairs = pairs(code, &base, &new);
    let is_paired: HashMap<usize, usize> = pairs.iter().map(|(&new, &base)| (base, new)).collect();
    // Lines that only the baseline has stand after the line that precedes them in the baseline.
    let mut after = BTreeMap::<Option<usize>, Vec<usize>>::new();
    let mut last = None;
    for number in 0..base.rows.len() {
        match is_paired.get(&number) {
            Some(at) => last = Some(*at),
            None => after.entry(last).or_default().push(number),
        }
    }
    let mut lines = Vec::new();
    let mut gone = |at: Option<usize>, lines: &mut Vec<CountedLine>| {
        let gone = after.remove(&at).unwrap_or_default().into_iter();
        lines.extend(gone.map(|it| CountedLine { sides: [Some(base.rows[it].clone()), None] }));
    };
    gone(None, &mut lines);
    for (number, row) in new.rows.iter().enumerate() {
        let before = pairs.get(&number).map(|&it| base.rows[it].clone());
        lines.push(CountedLine { sides: [before, Some(row.clone())] });
        gone(Some(number), &mut lines);
    }
    lines
}

/// The line of the baseline for lines of the other side. Two lines are the same if their texts are, in the same
/// function; or if at least half of the instructions of each are the other's.
fn pairs(code: &[&Line], base: &Lines, new: &Lines) -> HashMap<usize, usize> {
    let mut shared = HashMap::<[usize; 2], usize>::new();
    for line in code {
        if let [Some(one), Some(other)] = &line.at {
            let numbers = [base.numbers[&key(one)], new.numbers[&key(other)]];
            *shared.entry(numbers).or_default() += 1;
        }
    }
    let mut by_text = HashMap::<_, Vec<usize>>::new();
    for (number, row) in base.rows.iter().enumerate() {
        if let Some(text) = row.text.as_deref().filter(|text| !text.is_empty()) {
            by_text.entry((&row.inlined, text)).or_default().push(number);
        }
    }
    let mut found = Vec::new();
    for (other, row) in new.rows.iter().enumerate() {
        let same = row.text.as_deref().and_then(|text| by_text.get(&(&row.inlined, text)));
        found.extend(same.into_iter().flatten().map(|&one| (true, [one, other])));
    }
    found.extend(shared.iter().filter_map(|(&[one, other], number)| {
        let is_half = 2 * number >= base.sizes[one].max(new.sizes[other]);
        is_half.then_some((false, [one, other]))
    }));
    found.sort_by_key(|&(same_text, numbers)| {
        let shared = shared.get(&numbers).copied().unwrap_or(0);
        (Reverse(same_text), Reverse(shared), numbers[0].abs_diff(numbers[1]), numbers)
    });
    let (mut pairs, mut is_taken) = (HashMap::new(), vec![false; base.rows.len()]);
    for (_, [one, other]) in found {
        if !is_taken[one] && !pairs.contains_key(&other) {
            is_taken[one] = true;
            pairs.insert(other, one);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use code::{At, Origin};
    use model::{ALL_CPUS, Boot, Cell, Cost, CostTable, ENTRIES, Profile};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{boot, columns, manifest, used, variant};

    /// An instruction: its address, text and line, and the function that is inlined there.
    type Coded<'a> = (u64, &'a str, &'a str, &'a str);

    fn at((address, _, line, inlined): Coded<'_>) -> At {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        At {
            address,
            origin: some(line).map(|it| Origin { line: Some(it), inlined: some(inlined) }),
        }
    }

    /// Code of both sides, aligned.
    fn listing(code: &[[Option<Coded<'_>>; 2]]) -> Listing {
        let line = |sides: &[Option<Coded<'_>>; 2]| Line {
            sides: sides.map(|it| it.map(|(_, text, ..)| text.to_owned())),
            sources: [None, None],
            at: sides.map(|it| it.map(at)),
            same: sides[0].map(|it| it.1) == sides[1].map(|it| it.1),
        };
        Listing { symbols: [None, None], lines: code.iter().map(line).collect() }
    }

    fn counted(entries: i128, executions: &[(u64, u64)]) -> CountedFunction {
        let instructions = executions.iter().map(|(_, count)| i128::from(*count)).sum();
        let executions = executions.iter().copied().collect();
        CountedFunction { name: "6.1".into(), seeds: 1, entries, instructions, executions }
    }

    /// The rows as text: place, instructions and executions of both sides.
    fn shown(lines: &FunctionLines) -> Vec<String> {
        let side = |it: &Option<LineSide>| {
            it.as_ref().map_or("-".to_owned(), |it| {
                let inlined = it.inlined.as_deref().unwrap_or("");
                format!("{}{inlined} {} {}", it.place, it.instructions, it.executions)
            })
        };
        lines.lines.iter().map(|it| it.sides.each_ref().map(side).join(" | ")).collect()
    }

    #[test]
    fn lines_of_both_kernels_are_paired() {
        let code = listing(&[
            [Some((10, "push", "m.c:3", "")), Some((20, "push", "m.c:4", ""))],
            [None, Some((21, "lea", "m.c:10", "copy"))],
            [Some((12, "mov", "m.c:7", "copy")), Some((25, "mov", "m.c:11", "copy"))],
            [Some((15, "call", "m.c:5", "")), None],
            [Some((19, "ret", "m.c:9", "")), Some((29, "ret", "m.c:20", ""))],
        ]);
        let base = counted(2, &[(10, 2), (12, 8), (15, 2), (19, 2)]);
        let new = counted(1, &[(20, 1), (21, 30), (25, 3), (29, 1)]);
        let text = |side: usize, place: &str| match (side, place) {
            (0, "m.c:9") | (1, "m.c:20") => Some("}".to_owned()),
            (0, "m.c:5") => Some("warn();".to_owned()),
            _ => None,
        };
        let lines = function_lines("f", None, [base, new], &[code], &text);
        assert!(lines.by_source);
        let expected = [
            "m.c:3 2 2 | m.c:4 1 1",
            "m.c:5 2 2 | -",
            "m.c:9 2 2 | m.c:20 1 1",
            "- | m.c:10copy 30 30",
            "m.c:7copy 8 8 | m.c:11copy 3 3",
        ];
        assert_eq!(shown(&lines), expected);
        let changes: Vec<f64> = lines.lines.iter().map(|it| lines.change(it)).collect();
        assert_eq!(changes, [0.0, -1.0, 0.0, 30.0, -1.0]);
    }

    #[test]
    fn without_lines_there_are_instructions() {
        let code = listing(&[
            [Some((10, "push %rbx", "m.c:3", "")), Some((20, "push %rbx", "", ""))],
            [Some((12, "mov 1", "", "")), Some((22, "mov 2", "", ""))],
            [Some((17, "jmp", "", "")), Some((27, "call", "", ""))],
        ]);
        // 5 is a NOP at the begin that code does not list, 14 is in the instruction at 12.
        let base = counted(1, &[(5, 1), (10, 1), (12, 1), (14, 1), (17, 1)]);
        let lines =
            function_lines("f", None, [base, counted(1, &[(22, 4)])], &[code], &|_, _| None);
        assert!(!lines.by_source);
        let expected = [
            "+0x0 push %rbx 2 1 | +0x0 push %rbx 0 0",
            "+0x2 mov 1 2 1 | +0x2 mov 2 4 4",
            "+0x7 jmp 1 1 | -",
            "- | +0x7 call 0 0",
        ];
        assert_eq!(shown(&lines), expected);
    }

    /// A seed whose function `f` and its cold part executed these instructions.
    fn seed(boot_index: u32, executions: &[(&str, u64, u64)]) -> Boot {
        let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
        for symbol in ["f.isra.0", "f.cold", "g"] {
            let own = executions.iter().filter(|it| it.0 == symbol).map(|it| it.2).sum();
            let place = Place::Function { name: symbol.into(), module: "".into() };
            costs.push(place, [Cell::new(0, 0, own), Cell::new(1, 0, 2)]);
        }
        for &(symbol, address, count) in executions {
            let (function, module) = (symbol.into(), "".into());
            let place = Place::Instruction { function, module, address };
            costs.push(place, [Cell::new(0, ALL_CPUS, count)]);
        }
        let profile = Profile {
            workload: "autonuma".into(),
            phase: "run".into(),
            costs,
            ..Profile::default()
        };
        Boot { profiles: vec![profile], ..boot(boot_index) }
    }

    #[test]
    fn all_seeds_and_pieces_count_and_other_functions_do_not() {
        let boots = [
            seed(0, &[("f.isra.0", 10, 4), ("f.cold", 90, 1), ("g", 50, 7)]),
            seed(1, &[("f.isra.0", 10, 6)]),
        ];
        let variants = ["6.1", "6.12"].map(variant);
        let columns = columns(&variants, &[&boots[..], &boots[..]]);
        let sides = [&columns[0], &columns[1]];
        let of = |phase| counted_function(sides, &used(manifest()), phase, "f");
        let [base, new] = of(Some("run"));
        assert_eq!((base.seeds, base.entries, base.instructions), (2, 4, 11));
        assert_eq!(base.executions, [(10, 10), (90, 1)].into());
        assert_eq!(base.per_entry(10), 2.5);
        assert_eq!(new, CountedFunction { name: "6.12".into(), ..base });
        assert_eq!(of(Some("other"))[0].executions, [].into());
    }

    proptest! {
        /// Whatever the code is, no execution is lost or counted twice.
        #[test]
        fn lines_add_up_to_the_function(
            code in prop::collection::btree_map(1_u64..300, (0_usize..4, 0_usize..3, 0_u8..3), 1..40),
            executions in prop::collection::btree_map(0_u64..400, 1_u64..1000, 0..60),
            by_source: bool,
        ) {
            let rows: Vec<[Option<Coded<'_>>; 2]> = code.iter().map(|(&address, it)| {
                let line = if by_source { ["m.c:1", "m.c:2", "m.c:30", "n.h:4"][it.0] } else { "" };
                let own = (address, ["mov", "jmp", "ret"][it.1], line, ["", "g", "h"][it.1]);
                [(it.2 != 1).then_some(own), (it.2 != 0).then_some(own)]
            }).collect();
            let own: Vec<(u64, u64)> = executions.into_iter().collect();
            let side = counted(1, &own);
            let text = |_: usize, place: &str| (place == "m.c:1").then(|| "x".to_owned());
            let lines =
                function_lines("f", None, [side.clone(), side.clone()], &[listing(&rows)], &text);
            for number in [0, 1] {
                let shown = lines.lines.iter().filter_map(|it| it.sides[number].as_ref());
                let has_code = rows.iter().any(|it| it[number].is_some());
                let expected = if has_code { side.instructions } else { 0 };
                let sum: u64 = shown.map(|it| it.instructions).sum();
                prop_assert_eq!(i128::from(sum), expected);
            }
        }
    }
}
