//! Loops that copy and clear memory. A real machine usually has fast string instructions for them, which the processor
//! of exact mode lacks. So their share of a change is said apart.

use std::collections::BTreeMap;

use super::equal::Counted;
use crate::verdicts::luck::mean;
use crate::{Row, WithoutLoops};

/// Functions that are such loops (arch/x86/lib/copy_user_64.S, clear_page_64.S, copy_page_64.S, memset_64.S,
/// memcpy_64.S), by their names since 5.10.
const LOOPS: [&str; 12] = [
    "__clear_pages_unrolled", "__clear_user", "clear_page_orig", "clear_user_original",
    "copy_page_regs", "copy_user_generic_string", "copy_user_generic_unrolled",
    "copy_user_short_string", "memcpy_orig", "memset_orig", "rep_movs_alternative",
    "rep_stos_alternative",
];

/// Returns whether the function with this name is a loop that copies or clears memory.
pub fn is_copy_loop(name: &str) -> bool {
    LOOPS.contains(&name)
}

/// Whether these are two such loops that do the same, so that one may replace the other.
pub fn are_one_loop(one: &str, other: &str) -> bool {
    let clears = |name: &str| ["clear", "memset", "stos"].iter().any(|it| name.contains(it));
    let is_user = |name: &str| name.contains("user") || name.contains("rep_");
    is_copy_loop(one)
        && is_copy_loop(other)
        && clears(one) == clears(other)
        && is_user(one) == is_user(other)
}

/// Returns the instructions of such loops in an iteration of a boot.
fn of_boot(it: &Counted<'_>) -> f64 {
    let loops = it.tally.functions.iter().filter(|(function, _)| is_copy_loop(function.name));
    loops.map(|(_, executed)| executed.cost as f64).sum::<f64>() / f64::from(it.iterations)
}

/// Returns the mean instructions of such loops in an iteration, on each side.
pub fn in_loops(counted: &[Vec<Counted<'_>>; 2]) -> [f64; 2] {
    let mean = |side: &Vec<Counted<'_>>| mean(&side.iter().map(of_boot).collect::<Vec<f64>>());
    counted.each_ref().map(|side| mean(side).unwrap_or(0.0))
}

/// Returns the instructions of such loops in an iteration, by seed.
pub fn by_seed(counted: &[Counted<'_>]) -> BTreeMap<u32, f64> {
    counted.iter().map(|it| (it.seed, of_boot(it))).collect()
}

/// The change without loops is said if they have at least this share of a change, in either direction.
pub const LARGE: f64 = 0.25;

/// The change without loops is said if it is larger by this factor than the change, or smaller.
const DOUBLE: f64 = 2.0;

/// Returns the change of a row with a verdict without such loops. `None` unless the verdict would be another one without
/// them, or the loops have a [`LARGE`] share of a change outside the margin, or it is a [`DOUBLE`] change without them.
pub fn without_loops(
    row: &Row,
    column: usize,
    loops: [f64; 2],
    margin: f64,
) -> Option<WithoutLoops> {
    let all = [row.base(column)?, row.value(column)?];
    let share = |[base, new]: [f64; 2]| (new - base) / base;
    let side = |share: f64| match share {
        _ if share > margin => 1,
        _ if share < -margin => -1,
        _ => 0,
    };
    let rest = [all[0] - loops[0], all[1] - loops[1]];
    let is_luck = row.floor(column).is_none_or(|floor| (rest[1] - rest[0]).abs() <= floor);
    let is_large = (loops[1] - loops[0]).abs() >= LARGE * (all[1] - all[0]).abs();
    let times = share(rest).ln_1p() / share(all).ln_1p();
    let is_other = is_luck || is_large || !(1.0 / DOUBLE..DOUBLE).contains(&times);
    let is_said = side(share(rest)) != side(share(all)) || (side(share(all)) != 0 && is_other);
    let without = WithoutLoops { share: share(rest), is_luck };
    (without.share.is_finite() && is_said).then_some(without)
}

/// Returns instructions on both sides without those of such loops. `None` if the loops have no [`LARGE`] share of their
/// change, or there are no others.
pub fn others(all: [f64; 2], loops: [f64; 2]) -> Option<[f64; 2]> {
    let change = |[base, new]: [f64; 2]| new - base;
    let others = [all[0] - loops[0], all[1] - loops[1]];
    let is_large = change(loops).abs() >= LARGE * change(all).abs();
    (is_large && change(loops) != 0.0 && others.iter().all(|it| *it > 0.0)).then_some(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes in 5.10 copy by a loop, and in 7.3 by `rep`, which counts once.
    #[test]
    fn others_are_told_apart_from_loops() {
        assert_eq!(others([82.8, 74.5], [21.3, 0.3]), Some([61.5, 74.2]));
        assert_eq!(others([100.0, 80.0], [10.0, 6.0]), None);
        assert_eq!(others([100.0, 80.0], [0.0, 0.0]), None);
        assert_eq!(others([20.0, 10.0], [20.0, 10.0]), None);
    }

    #[test]
    fn a_loop_replaces_one_that_does_the_same() {
        assert!(are_one_loop("clear_page_orig", "__clear_pages_unrolled"));
        assert!(are_one_loop("copy_user_generic_unrolled", "rep_movs_alternative"));
        assert!(are_one_loop("__clear_user", "rep_stos_alternative"));
        assert!(!are_one_loop("clear_page_orig", "rep_stos_alternative"));
        assert!(!are_one_loop("clear_page_orig", "copy_page_regs"));
        assert!(!are_one_loop("clear_page_orig", "clear_huge_page"));
    }
}
