//! What one function, process or remainder contributes to the change of the total.

use std::fmt;

use super::tally::Executed;
use crate::Difference;

/// What instructions are assigned to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A kernel function.
    Function {
        /// Its name, without a compiler's suffixes.
        name: String,
        /// Its module; empty for the kernel itself.
        module: String,
    },
    /// User instructions of all processes of this name.
    Process(String),
    /// User instructions that no process claims.
    OtherProcesses,
    /// Kernel instructions that no function claims.
    OtherFunctions,
    /// Firmware.
    Firmware,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { name, module } if module.is_empty() => f.write_str(name),
            Self::Function { name, module } => write!(f, "{name} [{module}]"),
            Self::Process(name) => write!(f, "{name} (user)"),
            Self::OtherProcesses => f.write_str("[other processes]"),
            Self::OtherFunctions => f.write_str("[other functions]"),
            Self::Firmware => f.write_str("[firmware]"),
        }
    }
}

/// A share of the change of the total.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// Whose it is.
    pub subject: Subject,
    /// Instructions of each side.
    pub instructions: Difference,
    /// Change of the instructions, over [`super::Explanation::denominator`].
    pub change: i128,
    /// How it was called, if it is a function.
    pub calls: Option<Calls>,
}

/// How a function was called.
#[derive(Clone, Debug, PartialEq)]
pub struct Calls {
    /// Entries of the function; where a side has none, those of its parts.
    pub entries: Difference,
    /// Own instructions per entry. None where the sides can't be compared so: it was not entered
    /// on one of them, or entered by its beginning on one and by a part on the other.
    pub per_entry: Option<Difference>,
    /// What the change is due to; none where there is no figure per entry.
    pub split: Option<Split>,
    /// The only side that executed it.
    pub only: Option<Only>,
    /// A function that only the other side executed, about as often and at about the same cost:
    /// maybe this one under another name.
    pub maybe: Option<Subject>,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// The baseline.
    Base,
    /// The other variant.
    New,
}

/// A function's change in two: with I = E p for instructions, entries and instructions per entry,
/// dI = dp mean(E) + dE mean(p), where the means are of the two sides (Bennet, "The theory of
/// measurement of changes in cost of living", Journal of the Royal Statistical Society 83, 1920).
/// Symmetric in the sides, and nothing is left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// By what an entry costs: dp mean(E), over [`super::Explanation::denominator`].
    pub by_cost: i128,
    /// By how often it is entered: dE mean(p), likewise.
    pub by_number: i128,
}

/// The least common multiple of two numbers of seeds; 1 if a side has no seed.
pub fn denominator(base: usize, new: usize) -> i128 {
    let (mut divisor, mut rest) = (base, new);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (base * new / divisor.max(1)).max(1) as i128
}

/// The change of a mean over seeds, over the denominator; 0 if a side has no seed.
pub fn change(sides: &[Vec<i128>; 2]) -> i128 {
    let unit = denominator(sides[0].len(), sides[1].len());
    let [base, new] = sides.each_ref().map(|seeds| {
        let share = unit / (seeds.len() as i128).max(1);
        seeds.iter().sum::<i128>() * share
    });
    new - base
}

/// The figures of both sides as a difference with its luck floor; none if a side has no seed.
pub fn difference(sides: &[Vec<i128>; 2]) -> Option<Difference> {
    let floats = |seeds: &Vec<i128>| seeds.iter().map(|&count| count as f64).collect();
    of_sorted(sides.each_ref().map(floats))
}

/// The difference between two lists of figures, whose order is made not to matter: sums of floats
/// depend on theirs in the last bit.
pub fn of_sorted(mut sides: [Vec<f64>; 2]) -> Option<Difference> {
    sides.iter_mut().for_each(|seeds| seeds.sort_by(f64::total_cmp));
    Difference::of(&sides[0], &sides[1])
}

/// A contribution from its instructions, one a seed; none if a side has no seed.
pub fn plain(subject: Subject, instructions: &[Vec<i128>; 2]) -> Option<Contribution> {
    Some(Contribution {
        subject,
        instructions: difference(instructions)?,
        change: change(instructions),
        calls: None,
    })
}

/// A function's contribution; none if a side has no seed.
pub fn of_function(subject: Subject, sides: &[Vec<Executed>; 2]) -> Option<Contribution> {
    let instructions = sides.each_ref().map(|seeds| of_each(seeds, |it| it.instructions));
    let by_part = sides.each_ref().map(|seeds| seeds.iter().all(|it| it.entries == 0));
    let entries = [0, 1].map(|side| {
        let part = by_part[side];
        of_each(&sides[side], |it| if part { it.part_entries } else { it.entries })
    });
    let split = (by_part[0] == by_part[1]).then(|| split(&instructions, &entries)).flatten();
    let calls = Calls {
        entries: difference(&entries)?,
        per_entry: split.and_then(|_| per_entry(&instructions, &entries)),
        split,
        only: only(&instructions),
        maybe: None,
    };
    Some(Contribution { calls: Some(calls), ..plain(subject, &instructions)? })
}

fn of_each(seeds: &[Executed], figure: impl Fn(&Executed) -> i128) -> Vec<i128> {
    seeds.iter().map(figure).collect()
}

fn only(instructions: &[Vec<i128>; 2]) -> Option<Only> {
    let executed = instructions.each_ref().map(|seeds| seeds.iter().any(|&count| count > 0));
    match executed {
        [true, false] => Some(Only::Base),
        [false, true] => Some(Only::New),
        _ => None,
    }
}

/// Instructions per entry, of the seeds that entered the function.
fn per_entry(instructions: &[Vec<i128>; 2], entries: &[Vec<i128>; 2]) -> Option<Difference> {
    let ratios = [0, 1].map(|side| {
        let seeds = instructions[side].iter().zip(&entries[side]);
        let entered = seeds.filter(|&(_, &entries)| entries > 0);
        entered.map(|(&count, &entries)| count as f64 / entries as f64).collect::<Vec<_>>()
    });
    of_sorted(ratios)
}

/// The split of a change. None where a side has no entry.
fn split(instructions: &[Vec<i128>; 2], entries: &[Vec<i128>; 2]) -> Option<Split> {
    let sums =
        |sides: &[Vec<i128>; 2]| sides.each_ref().map(|seeds| seeds.iter().sum::<i128>() as f64);
    let [base_entries, new_entries] = sums(entries);
    if base_entries == 0.0 || new_entries == 0.0 {
        return None;
    }
    let [base, new] = sums(instructions);
    let dearer = new / new_entries - base / base_entries;
    let [base_seeds, new_seeds] = instructions.each_ref().map(Vec::len);
    let entries = (base_entries / base_seeds as f64 + new_entries / new_seeds as f64) / 2.0;
    let unit = denominator(base_seeds, new_seeds) as f64;
    let by_cost = (dearer * entries * unit).round() as i128;
    Some(Split { by_cost, by_number: change(instructions) - by_cost })
}
