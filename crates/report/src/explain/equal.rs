//! What stands beside a change at equal entries.

use compare::Headline;

use super::figures;
use crate::ascii::excerpt;
use crate::words::{self, Of, listed};

/// Most functions that are named as left out.
const MOST: usize = 3;

/// Returns sentences on a change at equal entries: the figures as counted, whose change luck hides, and the functions
/// that have no part in it. None for other changes.
pub fn beside(it: &Headline) -> Vec<String> {
    let counted = it.counted.map(|counted| {
        let sides = [counted.base, counted.new];
        let change = Of::Number.change(sides, 2).map(|it| format!(" ({it})")).unwrap_or_default();
        let sides = figures::sides(sides.map(|it| words::figure(it, 0)), "");
        format!("As counted: {sides}{change}, which may be luck.")
    });
    let named = it.left_out.iter().take(MOST);
    let named =
        named.map(|it| format!("{} ({})", excerpt(&it.function), words::signed(it.change, 0)));
    let named: Vec<String> = named.collect();
    let left_out = (!named.is_empty()).then(|| {
        format!("Left out, because the number or the cost of entries is luck: {}.", listed(&named))
    });
    counted.into_iter().chain(left_out).collect()
}
