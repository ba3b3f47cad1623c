//! Properties of the explanations of any boots.

use model::{Boot, Cell, Cost, CostTable, ENTRIES, Privilege, Profile};
use proptest::prelude::*;

use super::*;

/// Any profile of any phase, its sums consistent or not.
fn any_profile() -> impl Strategy<Value = Profile> {
    let number = || prop_oneof![4 => 0..1000u64, 1 => any::<u64>()];
    let values = |costs: u16| prop::collection::vec((0..costs, 0..3u16, number()), 0..5);
    let function = ("[a-c](\\.(part|isra)\\.0)?(\\.cold)?|\\PC{0,3}", "(nfs)?")
        .prop_map(|(name, module)| Place::Function { name: name.into(), module: module.into() });
    let process = (0..3u32, "[a-b]|\\PC{0,3}").prop_map(|(id, name)| Place::Process {
        id,
        name: name.into(),
        functions: Vec::new(),
    });
    let privilege = prop::sample::select(&Privilege::ALL[..]).prop_map(Place::All);
    let parts = (
        0..2u32,
        "(fill|run)?",
        prop::collection::vec((function, values(2)), 0..6),
        prop::collection::vec((process, values(1)), 0..4),
        prop::collection::vec((privilege, values(1)), 0..4),
    );
    parts.prop_map(|(iteration, phase, functions, processes, all)| {
        let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
        for (place, values) in functions.into_iter().chain(processes).chain(all) {
            costs.push(
                place,
                values.into_iter().map(|(cost, cpu, value)| Cell::new(cost, cpu, value)),
            );
        }
        Profile { workload: WORKLOAD.into(), iteration, phase, costs, sampled: None }
    })
}

fn any_seeds() -> impl Strategy<Value = Vec<Boot>> {
    let boot = prop::collection::vec(any_profile(), 1..4).prop_map(seed);
    prop::collection::vec(boot, 1..4).prop_map(|boots| {
        let numbered = (0..).zip(boots).map(|(boot_index, boot)| Boot { boot_index, ..boot });
        numbered.collect()
    })
}

/// The same seeds in another order.
fn turned(boots: &[Boot]) -> Vec<Boot> {
    let turned = boots.iter().rev().cloned().map(|mut boot| {
        for profile in &mut boot.profiles {
            let mut turned = CostTable::new(profile.costs.costs().to_vec());
            let rows: Vec<_> = profile.costs.rows().collect();
            for row in rows.into_iter().rev() {
                let value = |cell: &Cell| Cell { cpu: 2 - cell.cpu, ..*cell };
                turned.push(row.place.clone(), row.cells.iter().map(value));
            }
            profile.costs = turned;
        }
        boot
    });
    turned.collect()
}

/// By how much the kernel's instructions exceed those of functions, in all boots.
fn in_no_function(boots: &[Boot], phase: Option<&str>) -> i128 {
    let profiles = boots.iter().flat_map(|boot| &boot.profiles);
    let own = profiles.filter(|it| phase.is_none_or(|phase| it.phase == phase));
    let excess = own.map(|profile| {
        let is_function = |place: &Place| matches!(place, Place::Function { .. });
        sum(profile, |place| *place == Place::All(Privilege::Kernel)) - sum(profile, is_function)
    });
    excess.sum()
}

/// Instructions of some places.
fn sum(profile: &Profile, wanted: impl Fn(&Place) -> bool) -> i128 {
    profile.costs.sum(INSTRUCTIONS, wanted).cast_signed()
}

proptest! {
    #[test]
    fn contributions_add_up_whatever_was_counted(base in any_seeds(), new in any_seeds()) {
        let explanation = explained(&base, &new);
        let all = explanation.all.as_ref().unwrap();
        let share = |boots: &[Boot]| explanation.denominator / boots.len() as i128;
        for section in std::iter::once(all).chain(&explanation.phases) {
            let sum: i128 = section.contributions.iter().map(|it| it.change).sum();
            let phase = section.phase.as_deref();
            let missing = in_no_function(&new, phase) * share(&new)
                - in_no_function(&base, phase) * share(&base);
            prop_assert_eq!(sum + missing, section.change);
            prop_assert!(section.in_no_function != 0 || missing == 0);
            for it in &section.contributions {
                if let Some(split) = it.calls.as_ref().and_then(|calls| calls.split) {
                    prop_assert_eq!(split.by_cost + split.by_number, it.change);
                }
            }
        }
        let phases: i128 = explanation.phases.iter().map(|section| section.change).sum();
        prop_assert_eq!(phases, all.change);
        let total = |boots: &[Boot]| -> i128 {
            let profiles = boots.iter().flat_map(|boot| &boot.profiles);
            profiles.map(|it| sum(it, |place| matches!(place, Place::All(_)))).sum()
        };
        let change = total(&new) * base.len() as i128 - total(&base) * new.len() as i128;
        let both = (base.len() * new.len()) as i128;
        prop_assert_eq!(all.change * both, change * explanation.denominator);
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(base in any_seeds(), new in any_seeds()) {
        let told = explained(&base, &new);
        let retold = explained(&turned(&base), &turned(&new));
        prop_assert_eq!(&told.all, &retold.all);
        for section in &told.phases {
            prop_assert_eq!(Some(section), retold.section(section.phase.as_deref()));
        }
    }

    #[test]
    fn exchanged_sides_change_every_sign(base in any_seeds(), new in any_seeds()) {
        let there = explained(&base, &new).all.unwrap();
        let back = explained(&new, &base).all.unwrap();
        let changes = |section: &Section, sign: i128| {
            let rows = section.contributions.iter();
            rows.map(|it| (it.subject.clone(), sign * it.change)).collect::<Vec<_>>()
        };
        prop_assert_eq!(changes(&there, 1), changes(&back, -1));
        prop_assert_eq!(there.per_entry, back.per_entry);
    }
}
