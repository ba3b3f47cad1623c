//! Reads where the fields of types lie in the kernels of two variants.

use std::collections::{BTreeMap, BTreeSet};

use boot::kernels_that_ran;
use compare::{LINE, Layout, LayoutMember, Layouts, VariantBoots};
use kernels::Cache;
use kernels::types::{Members, PER_CPU_WORDS, SLOTS, Types, begins_at_line, of_cache};

/// The type of which descriptors of pages are an array.
const PAGE: &str = "page";

/// The layouts of types that at least one of two kernels has. Uses only kernels in the cache. The error says why there are
/// none.
pub fn layouts(sides: [&VariantBoots<'_>; 2], names: &[String]) -> Layouts {
    let cache = Cache::open().map_err(|error| error.to_string())?;
    let kernels = sides.map(|it| &it.variant.kernel);
    let read = kernels_that_ran(&cache, kernels)?;
    let [base, new] = read
        .each_ref()
        .map(|it| it.types().ok_or_else(|| format!("{} has no type information (BTF)", it.name)));
    let (types, slots) = ([base?, new?], sides.map(slots));
    let found = names.iter().filter_map(|name| {
        let of = |side: usize| layout(&types[side], &slots[side], name);
        let layouts = [of(0), of(1)];
        let is_known = layouts.iter().any(Option::is_some);
        is_known.then(|| (name.clone(), layouts.map(Option::unwrap_or_default)))
    });
    Ok(found.collect())
}

/// The distances of objects in slab caches, as the boots of a variant found them.
fn slots(side: &VariantBoots<'_>) -> BTreeMap<String, u64> {
    let chunks = side.complete().flat_map(|it| &it.chunks).filter(|it| it.source == SLOTS);
    let slots = chunks.flat_map(|it| &it.columns).filter_map(|it| {
        let slot = u64::try_from((*it.values.first()?)?).ok()?;
        Some((it.name.clone(), slot))
    });
    slots.collect()
}

fn layout(types: &Types, slots: &BTreeMap<String, u64>, name: &str) -> Option<Layout> {
    let Members { size, begins, members } = types.members(name)?;
    let begins: BTreeSet<u64> = match name {
        PAGE => places(size).collect(),
        // The copies of each CPU begin at a page.
        variable if variable.starts_with(PER_CPU_WORDS) => [begins % LINE].into(),
        _ if begins_at_line(name, size) => [0].into(),
        _ => {
            let own = slots.iter().filter(|(cache, _)| of_cache(cache) == name);
            own.flat_map(|(_, slot)| places(*slot)).collect()
        }
    };
    let members = members.into_iter().map(|it| LayoutMember {
        name: it.name,
        offset: it.offset,
        size: it.size,
        bits: it.bits,
    });
    Some(Layout { begins: begins.into_iter().collect(), members: members.collect() })
}

/// The places in a line at which objects of a slab begin, where one follows the other at this distance. The first one
/// begins at a page.
fn places(slot: u64) -> impl Iterator<Item = u64> {
    // The size of a line divides that of the numbers.
    (0..LINE).map(move |object| object.wrapping_mul(slot) % LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_begin_where_their_distance_puts_them() {
        let places = |slot| places(slot).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        assert_eq!(places(1088), [0]);
        assert_eq!(places(688), [0, 16, 32, 48]);
        assert_eq!(places(600), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(places(u64::MAX - 15), places(48));
    }
}
