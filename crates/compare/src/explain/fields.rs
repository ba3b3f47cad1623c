//! The lines of memory that the kernel takes from other CPUs, by the field that lies there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Boot, Class, Name, Place, WorkloadUse};
use serde::Serialize;

use super::sides::{Sides, judged};
use super::{Span, profiles, seeds};
use crate::{Difference, VariantBoots};

/// The transfers of lines with one field. Two kernels are compared by its name, wherever it lies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldCost {
    /// The type and the field, or what else is known of the memory, in brackets.
    pub field: String,
    /// The function that takes most of them on both sides together.
    pub function: String,
    /// The number on both sides.
    pub transfers: Difference,
    /// The functions that are known to write it, on both sides: they took the copies of others while they had one. Those
    /// that did so most come first. Other transfers can be loads or stores.
    pub writers: [Vec<String>; 2],
}

/// Most functions that are named because they write a field.
const MOST_WRITERS: usize = 3;

/// The transfers by field, those that changed most first. `cost` is a kind of transfers; empty for any other cost.
pub fn fields(
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
    used: &WorkloadUse,
    (phase, cost): (Option<&str>, &str),
) -> Vec<FieldCost> {
    if !Class::named(cost).is_some_and(Class::is_transfer) {
        return Vec::new();
    }
    let all = seeds([base, new], used);
    let span = Span::of(phase, &all, used);
    let boots = Sides::of(all);
    let sides = boots.map(|boot| of_boot(boot, used, span, cost));
    let upgrades = boots.map(|boot| of_boot(boot, used, span, Class::Upgrade.name()));
    let names: BTreeSet<&Name> = sides.iter().flat_map(BTreeMap::keys).collect();
    let fields = names.into_iter().filter_map(|field| {
        let own = sides.map(|fields| fields.get(field));
        let sum = |it: &Option<&Counts>| it.map_or(0, |it| it.values().sum::<u128>());
        let counts = own.map(|it| sum(it).cast_signed());
        let functions = summed(own.iter().flatten().copied());
        let (function, _) = functions.iter().max_by_key(|(name, count)| (**count, **name))?;
        let writers = upgrades.seeds.each_ref().map(|seeds| writers(seeds, field));
        let (field, function) = (field.to_string(), function.to_string());
        Some((FieldCost { field, function, transfers: counts.difference()?, writers }, counts))
    });
    let mut fields = judged(fields.collect(), false, |it| &mut it.transfers);
    let size = |it: &FieldCost| it.transfers.base.max(it.transfers.new);
    fields.sort_by(|a, b| {
        let [of_a, of_b] = [a, b].map(|it| it.transfers.change().abs());
        of_b.total_cmp(&of_a).then(size(b).total_cmp(&size(a)))
    });
    fields
}

/// The functions that wrote a field while others had a copy, in the seeds of a side.
fn writers(seeds: &[BTreeMap<Name, Counts>], field: &Name) -> Vec<String> {
    let sums = summed(seeds.iter().filter_map(|fields| fields.get(field)));
    let mut writers: Vec<_> = sums.into_iter().filter(|(_, count)| *count > 0).collect();
    writers.sort_by_key(|(_, count)| Reverse(*count));
    writers.into_iter().take(MOST_WRITERS).map(|(function, _)| function.to_string()).collect()
}

/// The sums over seeds.
fn summed<'a>(seeds: impl Iterator<Item = &'a Counts>) -> BTreeMap<&'a Name, u128> {
    let mut sums = BTreeMap::new();
    for (function, count) in seeds.flatten() {
        *sums.entry(function).or_default() += count;
    }
    sums
}

/// Transfers by function.
type Counts = BTreeMap<Name, u128>;

/// The transfers of a boot by field and function.
fn of_boot(boot: &Boot, used: &WorkloadUse, span: Span<'_>, cost: &str) -> BTreeMap<Name, Counts> {
    let mut sums = BTreeMap::<Name, Counts>::new();
    for profile in profiles(boot, used, span) {
        let cost = profile.costs.number(cost);
        for row in profile.costs.rows() {
            if let Place::Field { field, function, .. } = row.place {
                let counts = sums.entry(field.clone()).or_default();
                *counts.entry(function.clone()).or_default() += row.sum(cost);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use model::{Architecture, Cell, CostTable, Profile, exact_cost};

    use super::*;
    use crate::testing::{boot, columns, manifest, used, variant};

    const COUNT: &str = "mm_struct.mm_count";

    /// A boot whose kernel took so many lines with a field, and a few others by luck.
    fn taken(seed: u32, mm_count: u64) -> Boot {
        let counted = exact_cost::Counted { transfers: true, ..Default::default() };
        let mut costs: CostTable = exact_cost::table_with_classes(Architecture::X86_64, counted);
        let number = |class: Class| costs.number(class.name()).unwrap();
        let numbers = [Class::Transfer, Class::Upgrade].map(number);
        let luck = [51, 50, 53, 52][seed as usize];
        for (field, function, count) in
            [(COUNT, "mmdrop", mm_count), (COUNT, "mmgrab", 7), ("[page]", "f", luck)]
        {
            let upgrades = if field == COUNT { count / 10 } else { 0 };
            let (field, function) = (field.into(), function.into());
            let place = Place::Field { field, function, module: "".into() };
            let cells = numbers.into_iter().zip([count, upgrades]);
            costs.push(place, cells.map(|(number, count)| Cell::new(number, 0, count)));
        }
        let (workload, phase) = (manifest().name, "run".to_owned());
        let profile = Profile { workload, phase, costs, ..Profile::default() };
        Boot { profiles: vec![profile], ..boot(seed) }
    }

    #[test]
    fn fields_are_compared_by_name_the_largest_change_first() {
        let side = |mm_count: u64| (0..4).map(|seed| taken(seed, mm_count)).collect::<Vec<_>>();
        let sides = [1000, 10].map(side);
        let variants = ["old", "new"].map(variant);
        let columns = columns(&variants, &[&sides[0], &sides[1]]);
        let used = used(manifest());
        let ask = |cost: &str| fields(&columns[0], &columns[1], &used, (Some("run"), cost));
        let found = ask("transfers");
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*first.field, &*first.function), (COUNT, "mmdrop"));
        assert_eq!((first.transfers.base, first.transfers.new), (1007.0, 17.0));
        assert_eq!(first.transfers.beyond_luck(), Some(true));
        assert_eq!(first.writers, [vec!["mmdrop".to_owned()], vec!["mmdrop".to_owned()]]);
        assert_eq!(second.writers, [Vec::<String>::new(), Vec::new()]);
        assert_eq!((&*second.field, second.transfers.beyond_luck()), ("[page]", Some(false)));
        assert_eq!(ask("instructions"), []);
    }
}
