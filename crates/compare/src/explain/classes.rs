//! The kernel's instructions by class.

use model::{Architecture, Boot, Class, Cost, Place, Profile, WorkloadUse};
use serde::Serialize;

use super::sides::Sides;
use super::{Span, profiles, seeds};
use crate::{Difference, VariantBoots};

/// The number of the kernel's instructions of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassCost {
    /// The cost, by which functions can be ranked.
    pub cost: Cost,
    /// The number on both sides.
    pub instructions: Difference,
}

/// The architecture whose classes were counted in these boots; x86-64 if none were.
pub fn architecture<'a>(boots: impl Iterator<Item = &'a Boot>) -> Architecture {
    let of = |profile: &Profile| {
        let is_counted = |class: &Class| profile.costs.number(class.name()).is_some();
        Architecture::ALL.iter().copied().find(|arch| Class::of(*arch).iter().any(is_counted))
    };
    boots.flat_map(|boot| &boot.profiles).find_map(of).unwrap_or_default()
}

/// The kernel's instructions of each class that a side executed, in one phase or in the measured phases. Empty if a seed
/// did not count classes. On one CPU some kernels replace their `lock` prefixes when they boot, and others do not, so
/// locked instructions are left out there.
pub fn classes(
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
    used: &WorkloadUse,
    phase: Option<&str>,
) -> Vec<ClassCost> {
    let all = seeds([base, new], used);
    let span = Span::of(phase, &all, used);
    let counts =
        |it: &Profile| Class::ALL.iter().any(|class| it.costs.number(class.name()).is_some());
    let mut boots = all.iter().flatten();
    if !boots.all(|boot| profiles(boot, used, Span::All).all(counts)) {
        return Vec::new();
    }
    let sides = Sides::of(all);
    let sum = |boot: &Boot, class: Class| -> i128 {
        let of = profiles(boot, used, span);
        let is_function = |place: &Place| matches!(place, Place::Function { .. });
        of.map(|it| it.costs.sum(class.name(), is_function).cast_signed()).sum()
    };
    let has_several = sides.iter().any(|boot| boot.facts.cpus > 1);
    let rows = Class::ALL.map(|class| (class, sides.map(|boot| sum(boot, class))));
    let rows = rows.into_iter().filter(|(class, sides)| {
        (*class != Class::Locked || has_several) && sides.iter().any(|count| *count > 0)
    });
    let rows = rows.filter_map(|(class, sides)| {
        Some(ClassCost { cost: class.cost(), instructions: sides.difference()? })
    });
    rows.collect()
}
