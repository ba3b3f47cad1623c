//! The contribution of one function, process or remainder to the change of the total.

use std::fmt;

use code::{ChangedLine, Instrumentation};
use serde::{Serialize, Serializer};

use super::cause::Code;
use super::sides::Sides;
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
    /// User instructions attributed to no process.
    OtherProcesses,
    /// All instructions of firmware.
    Firmware,
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Keys<'a> {
            kind: &'static str,
            name: &'a str,
            module: &'a str,
        }
        let (kind, name, module) = match self {
            Self::Function { name, module } => ("function", &**name, &**module),
            Self::Process(name) => ("process", &**name, ""),
            Self::OtherProcesses => ("other-processes", "", ""),
            Self::Firmware => ("firmware", "", ""),
        };
        Keys { kind, name, module }.serialize(to)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { name, module } if module.is_empty() => f.write_str(name),
            Self::Function { name, module } => write!(f, "{name} [{module}]"),
            Self::Process(name) => write!(f, "{name} (user)"),
            Self::OtherProcesses => f.write_str("[no process] (user)"),
            Self::Firmware => f.write_str("[firmware]"),
        }
    }
}

/// A share of the change of the total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contribution {
    /// The function, process or remainder.
    #[serde(flatten)]
    pub subject: Subject,
    /// Instructions of each side.
    pub instructions: Difference,
    /// Change of the instructions, over [`super::Explanation::denominator`].
    #[serde(rename = "exact_change")]
    pub change: i128,
    /// How the function was called; `None` for other subjects.
    pub calls: Option<Calls>,
    /// How its code differs; `None` if that is not known.
    pub code: Option<Code>,
    /// The inlined function that holds most of the difference in its code, if that is known.
    pub inlined: Option<String>,
    /// The line that holds most of the difference in its code, if that is known.
    pub line: Option<ChangedLine>,
    /// What the code of only one side is instrumented with.
    #[serde(flatten)]
    pub instrumentation: Instrumentation,
}

impl Contribution {
    /// Whether both kernels are known to have the function.
    pub fn is_in_both(&self) -> bool {
        matches!(self.code, Some(Code::Same | Code::Differs))
    }

    /// Its cost per entry; `None` if that is not known or not compared.
    pub fn per_entry(&self) -> Option<Difference> {
        self.calls.as_ref()?.per_entry
    }

    /// The cost of the change at equal work: the smaller number of entries times the change of the instructions per
    /// entry. Only the part of the change that is beyond luck counts, or all of it if luck is unknown. 0 for a
    /// subject that is not a function.
    pub(crate) fn cost_at_equal_work(&self, luck_is_known: bool) -> f64 {
        let cost = self.calls.as_ref().and_then(|calls| {
            let cost = calls.per_entry?;
            let dearer = if luck_is_known { cost.excess() } else { cost.change().abs() };
            Some(dearer * calls.entries.base.min(calls.entries.new))
        });
        cost.unwrap_or(0.0)
    }
}

/// How a function was called.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calls {
    /// Entries of the function, or those of its parts if a side has none of its own.
    pub entries: Difference,
    /// Own instructions per entry: the sum over all seeds divided by the entries of all seeds, with the floor of the
    /// figures per seed. `None` if the sides cannot be compared because one of them did not enter the function, entered it
    /// far less often, or entered it in parts.
    pub per_entry: Option<Difference>,
    /// The change split by cause; `None` if there is no figure per entry.
    #[serde(flatten, serialize_with = "parts")]
    pub split: Option<Split>,
    /// Whether it was entered both at its beginning and through a part (`.part.N`), on one side or across both. Where
    /// its beginning is inlined, only the part counts an entry, and kernels may inline it at different places. Parts
    /// that the function itself entered do not count, if call paths are known.
    pub in_parts: bool,
    /// The side that executed it, if only one did.
    pub only: Option<Only>,
    /// A function that is possibly this one under another name: executed only on the other side, about as often, at
    /// a similar cost, and with most words of the name in common.
    #[serde(rename = "maybe_renamed")]
    pub maybe: Option<Subject>,
}

/// The parts of a change, `null` where it has none.
fn parts<S: Serializer>(split: &Option<Split>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parts {
        exact_by_cost: Option<i128>,
        exact_by_number: Option<i128>,
    }
    let (exact_by_cost, exact_by_number) = split.map(|it| (it.by_cost, it.by_number)).unzip();
    Parts { exact_by_cost, exact_by_number }.serialize(to)
}

/// The only side that executed a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// The baseline.
    Base,
    /// The other variant.
    New,
}

/// The change of a function, split in two: with I = E p for instructions, entries and instructions per entry,
/// dI = dp mean(E) + dE mean(p), where the means are of the two sides (Bennet, "The theory of measurement of
/// changes in cost of living", Journal of the Royal Statistical Society 83, 1920). Symmetric in the sides,
/// without remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The part by the cost of an entry: dp mean(E), over [`super::Explanation::denominator`].
    pub by_cost: i128,
    /// The part by the number of entries: dE mean(p), over the same denominator.
    pub by_number: i128,
}

/// A contribution with the figures of its seeds.
pub struct SeedContribution {
    pub contribution: Contribution,
    /// Instructions of each seed.
    pub instructions: [Vec<f64>; 2],
    /// Instructions per entry of each seed that entered it.
    pub per_entry: [Vec<f64>; 2],
}

/// A contribution from its instructions; `None` if a side has no seed.
pub fn plain(subject: Subject, instructions: &Sides<i128>) -> Option<SeedContribution> {
    let figures = instructions.map(|&count| Some(count as f64));
    let contribution = Contribution {
        subject,
        instructions: figures.difference()?,
        change: instructions.change(),
        calls: None,
        code: None,
        inlined: None,
        line: None,
        instrumentation: Instrumentation::default(),
    };
    Some(SeedContribution {
        contribution,
        instructions: figures.known(),
        per_entry: Default::default(),
    })
}

/// A function's contribution; `None` if a side has no seed.
pub fn of_function(subject: Subject, sides: &Sides<Executed>) -> Option<SeedContribution> {
    let instructions = sides.map(|it| it.cost);
    let whole = sides.map(|it| it.entries);
    let parts = sides.map(|it| it.part_entries);
    let mut entries = whole.clone();
    for (entries, parts) in entries.seeds.iter_mut().zip(&parts.seeds) {
        if entries.iter().all(|&entries| entries == 0) {
            entries.clone_from(parts);
        }
    }
    let [is_entered, in_parts] = [&whole, &parts].map(|it| it.iter().any(|&entries| entries > 0));
    let in_parts = is_entered && in_parts;
    let costs = costs(&instructions, &entries).filter(|_| !in_parts);
    let own = own_costs(&instructions, &entries);
    let calls = Calls {
        // Entries are no list that is compared with luck.
        entries: Difference { floor: None, ..entries.difference()? },
        per_entry: costs.and_then(|[base, new]| {
            let floor = own.difference()?.floor;
            Some(Difference { base, new, floor })
        }),
        split: costs.map(|costs| split(costs, &instructions, &entries)),
        in_parts,
        only: only(&instructions, &entries),
        maybe: None,
    };
    let plain = plain(subject, &instructions)?;
    let contribution = Contribution { calls: Some(calls), ..plain.contribution };
    Some(SeedContribution { contribution, per_entry: own.known(), ..plain })
}

/// A function can be executed without instructions of the class that is the cost.
fn only(instructions: &Sides<i128>, entries: &Sides<i128>) -> Option<Only> {
    let is_any = |it: &Sides<i128>| it.seeds.each_ref().map(|it| it.iter().any(|&sum| sum > 0));
    let (executed, entered) = (is_any(instructions), is_any(entries));
    match [0, 1].map(|side| executed[side] || entered[side]) {
        [true, false] => Some(Only::Base),
        [false, true] => Some(Only::New),
        _ => None,
    }
}

/// If a side entered a function less often than this share of the other side's entries, its entries are of another kind,
/// and their costs are not compared.
const RARE: f64 = 0.001;

/// Instructions per entry of each side: the sum over its seeds divided by the sum of their entries. `None` if a side
/// has no entry, or far fewer than the other one.
fn costs(instructions: &Sides<i128>, entries: &Sides<i128>) -> Option<[f64; 2]> {
    let ([base, new], [base_entries, new_entries]) = (instructions.sums(), entries.sums());
    let fewer = base_entries.min(new_entries);
    let are_alike = fewer > 0.0 && fewer >= RARE * base_entries.max(new_entries);
    are_alike.then(|| [base / base_entries, new / new_entries])
}

/// Instructions per entry of each seed; `None` for a seed that has no entry.
fn own_costs(instructions: &Sides<i128>, entries: &Sides<i128>) -> Sides<Option<f64>> {
    let seeds = [0, 1].map(|side| {
        let seeds = instructions.seeds[side].iter().zip(&entries.seeds[side]);
        let own =
            seeds.map(|(&count, &entries)| (entries > 0).then(|| count as f64 / entries as f64));
        own.collect::<Vec<_>>()
    });
    Sides { seeds, complete: instructions.complete }
}

/// Splits the change of a function's instructions by cost and number of entries.
fn split([base, new]: [f64; 2], instructions: &Sides<i128>, entries: &Sides<i128>) -> Split {
    let [base_entries, new_entries] = entries.sums();
    let [base_seeds, new_seeds] = entries.seeds.each_ref().map(Vec::len);
    let entries = (base_entries / base_seeds as f64 + new_entries / new_seeds as f64) / 2.0;
    let by_cost = ((new - base) * entries * instructions.denominator() as f64).round() as i128;
    Split { by_cost, by_number: instructions.change() - by_cost }
}
