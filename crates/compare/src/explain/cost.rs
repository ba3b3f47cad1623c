//! The cost that a user asks for, among those that boots have.

use std::collections::BTreeSet;

use model::{Class, Place, Profile};

/// The boots do not have the cost that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these boots have no `{asked}` by function; they have: {}", known.join(", "))]
pub struct NoCost {
    /// The name that was asked for.
    pub asked: String,
    /// The names of the costs that functions have.
    pub known: Vec<String>,
}

/// Checks that functions in these profiles have the cost called `asked`. Without any function there is nothing to
/// check.
///
/// # Errors
/// If functions have other costs only; the error lists them.
pub fn check_cost<'a>(
    asked: &str,
    profiles: impl IntoIterator<Item = &'a Profile>,
) -> Result<(), NoCost> {
    let known: BTreeSet<&str> = profiles.into_iter().flat_map(of_functions).collect();
    match known.is_empty() || known.contains(asked) {
        true => Ok(()),
        false => Err(NoCost {
            asked: asked.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// The names of the costs that functions have. Classes of instructions are counted even where no function has one.
fn of_functions(profile: &Profile) -> BTreeSet<&str> {
    let rows = profile.costs.rows().filter(|row| matches!(row.place, Place::Function { .. }));
    let cells = rows.flat_map(|row| row.cells);
    let costs: BTreeSet<&str> =
        cells.map(|it| &*profile.costs.costs()[usize::from(it.cost)].name).collect();
    let names = profile.costs.costs().iter().map(|it| &*it.name);
    let classes = names.filter(|name| !costs.is_empty() && Class::named(name).is_some());
    costs.iter().copied().chain(classes).collect()
}
