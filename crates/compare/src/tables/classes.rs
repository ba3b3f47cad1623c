//! The kernel's instructions by class, in the table of counters of exact mode.

use model::{Boot, Class, Place, Profile};

/// The number of classes.
const CLASSES: usize = Class::ALL.len();

/// The kernel's instructions of each class in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes<'a> {
    pub iteration: u32,
    pub phase: &'a str,
    /// The numbers in the order of [`Class::ALL`]; `None` for classes that were not counted.
    numbers: [Option<u64>; CLASSES],
}

/// A class of instructions, in one phase or in all phases.
pub type ClassIn<'a> = (Class, Option<&'a str>);

/// The classes of instructions of `workload` in `boot`, one entry per phase; empty if they were not counted.
pub fn classes<'a>(boot: &'a Boot, workload: &str) -> Vec<Classes<'a>> {
    let profiles = boot.profiles.iter().filter(|it| it.workload == workload);
    let of = |profile: &'a Profile| {
        let (iteration, phase) = (profile.iteration, &*profile.phase);
        Some(Classes { iteration, phase, numbers: numbers(profile)? })
    };
    profiles.map(of).collect::<Option<_>>().unwrap_or_default()
}

/// The sums over all functions and CPUs. `None` if no class was counted.
fn numbers(profile: &Profile) -> Option<[Option<u64>; CLASSES]> {
    let costs = Class::ALL.map(|class| profile.costs.number(class.name()));
    costs.iter().flatten().next()?;
    let mut numbers = costs.map(|cost| cost.map(|_| 0_u64));
    let functions = profile.costs.rows().filter(|row| matches!(row.place, Place::Function { .. }));
    for cell in functions.flat_map(|row| row.cells) {
        if let Some(class) = costs.iter().position(|cost| *cost == Some(cell.cost)) {
            numbers[class] = numbers[class].map(|sum| sum.saturating_add(cell.value));
        }
    }
    Some(numbers)
}

/// The rows: each class of which a boot executed instructions, in all phases together, and in each phase if there are
/// several. On one CPU some kernels replace their `lock` prefixes when they boot, and others do not, so locked
/// instructions have no row there.
pub fn rows<'a, 'b, B: Iterator<Item = &'b [Classes<'b>]>>(
    boots: impl Fn() -> B,
    phases: &[&'a str],
    cpus: u32,
) -> Vec<ClassIn<'a>> {
    let each = if phases.len() > 1 { phases } else { &[] };
    let phases = || [None].into_iter().chain(each.iter().copied().map(Some));
    let listed = Class::ALL.into_iter().filter(|class| *class != Class::Locked || cpus > 1);
    let all = listed.flat_map(|class| phases().map(move |phase| (class, phase)));
    let is_executed = |which| boots().any(|boot| number(boot, which).is_some_and(|it| it > 0));
    all.filter(|which| is_executed(*which)).collect()
}

/// The instructions of a class in a boot; `None` if they were not counted.
pub fn number(boot: &[Classes<'_>], (class, phase): ClassIn<'_>) -> Option<u64> {
    let of = boot.iter().filter(|it| phase.is_none_or(|phase| it.phase == phase));
    of.map(|it| it.numbers[class as usize]).sum::<Option<u64>>().filter(|_| !boot.is_empty())
}

/// The label of a row: the class, and the phase unless it is of all phases.
pub fn label((class, phase): ClassIn<'_>) -> String {
    let phase = phase.map_or(String::new(), |it| format!(" in {it}"));
    capitalized(&class.cost().unit) + &phase
}

/// Words with a capital as the first letter.
pub fn capitalized(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use model::exact_cost;
    use model::{Architecture, Cell, Cost};

    use super::*;
    use crate::testing::boot;

    #[test]
    fn functions_are_summed_by_class() {
        let mut boot = boot(0);
        let mut costs = exact_cost::table_with_classes(Architecture::X86_64, Default::default());
        let number_of = |class: Class| costs.number(class.name()).unwrap();
        let [locked, invlpg] = [Class::Locked, Class::Invlpg].map(number_of);
        let function = |symbol: &str| Place::Function { name: symbol.into(), module: "".into() };
        costs.push(function("a"), [Cell::new(locked, 0, 2), Cell::new(locked, 1, 3)]);
        costs.push(function("b"), [Cell::new(locked, 0, 5), Cell::new(invlpg, 0, 7)]);
        let (workload, phase) = ("autonuma".to_owned(), "run".to_owned());
        boot.profiles =
            vec![Profile { workload, phase, iteration: 4, costs, ..Profile::default() }];
        let found = classes(&boot, "autonuma");
        assert_eq!((found[0].iteration, found[0].phase), (4, "run"));
        let number = |class, phase| number(&found, (class, phase));
        assert_eq!([Class::Locked, Class::Fence].map(|it| number(it, None)), [Some(10), Some(0)]);
        // It was not counted in this boot.
        assert_eq!(number(Class::Transfer, None), None);
        assert_eq!(
            [Some("run"), Some("x")].map(|it| number(Class::Invlpg, it)),
            [Some(7), Some(0)]
        );
        let (locked, invlpg) = ((Class::Locked, None), (Class::Invlpg, None));
        let rows = |phases, cpus| rows(|| [&*found].into_iter(), phases, cpus);
        assert_eq!(rows(&["run"], 2), [locked, invlpg]);
        assert_eq!(rows(&["run"], 1), [invlpg]);
        let run = Some("run");
        assert_eq!(
            rows(&["run", "x"], 2),
            [locked, (Class::Locked, run), invlpg, (Class::Invlpg, run)]
        );
        assert_eq!(classes(&boot, "other"), []);
        boot.profiles[0].costs = model::CostTable::new([Cost::new("instructions")]);
        assert_eq!(classes(&boot, "autonuma"), []);
    }

    #[test]
    fn a_row_names_class_and_phase() {
        assert_eq!(label((Class::Locked, None)), "Locked instructions");
        assert_eq!(label((Class::Cr3Write, Some("fork"))), "Writes of CR3 in fork");
    }
}
