//! Kernels that are built to take a change between two kernels apart: each one's source with the other one's
//! configuration.

use crate::Comparison;

/// Stands between the names of two kernels in the name of the variant with the source of the first one and the
/// configuration of the second one.
pub const BUILT_AS: &str = " as ";

/// Returns the columns of the second variant's source built as the first variant, and of the first one's source built
/// as the second. `None` if there are none.
pub fn split_columns(comparison: &Comparison) -> Option<[usize; 2]> {
    let variants = &comparison.variants;
    let [base, new, ..] = &variants[..] else { return None };
    let built = |one: &str, other: &str| {
        let name = format!("{one}{BUILT_AS}{other}");
        variants.iter().position(|it| it.name == name)
    };
    Some([built(&new.name, &base.name)?, built(&base.name, &new.name)?])
}
