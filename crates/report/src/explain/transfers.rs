//! Sentences on lines that the kernel takes from other CPUs, beside what it executes.

use compare::{Difference, Explained, FieldCost, RATE};
use model::grouped;

use super::layout;
use crate::ascii::excerpt;
use crate::words::{Of, figure, listed};

/// Most fields that are named because their transfers changed.
const MAX_FIELDS: usize = 4;
/// Most sentences on fields that share a line with others.
const MAX_SHARED: usize = 2;

/// How a figure changed.
#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
    /// Not beyond luck.
    Same,
}

/// `None` if luck is not known.
fn way(figure: &Difference) -> Option<Way> {
    Some(match figure.beyond_luck()? {
        false => Way::Same,
        true if figure.change() > 0.0 => Way::Up,
        true => Way::Down,
    })
}

/// Says what the changes of the kernel's instructions and of its transfers of lines are together. `None` if luck is not
/// known.
pub fn meaning(instructions: &Difference, transfers: &Difference) -> Option<String> {
    use Way::{Down, Same, Up};
    let size = |it: &Difference| {
        let change = Of::Number.change([it.base, it.new], 2);
        change.unwrap_or_else(|| format!("{} instead of 0", figure(it.new, 0)))
    };
    let executed = format!("The kernel executed {} instructions", size(instructions));
    let took = format!("took {} lines from other CPUs", size(transfers));
    let ways = (way(instructions)?, way(transfers)?);
    let said = match ways {
        (Same, Same) => {
            "Neither the kernel's instructions nor its transfers of lines changed beyond luck"
                .to_owned()
        }
        (Same, _) => {
            format!("The kernel's instructions did not change beyond luck, and the kernel {took}")
        }
        (_, Same) => {
            format!("{executed}, and its transfers of lines did not change beyond luck")
        }
        _ => format!("{executed} and {took}"),
    };
    let means = match ways {
        (Same, Same) => return Some(format!("{said}: neither figure tells the kernels apart.")),
        (Same, Up) => "the same work takes more lines from them",
        (Same, Down) => "the same work takes fewer lines from them",
        (Down, Up) => "less work, but more of its lines come from them",
        (Up, Down) => "more work, but fewer of its lines come from them",
        (Up, Up) => "some of these transfers may come with the additional work",
        (Down, Down) => "some of these transfers may have gone with the work",
        (_, Same) => return Some(format!("{said}. Neither figure is time.")),
    };
    Some(format!("{said}: {means}. Neither figure is time."))
}

/// Returns the sentence on both changes of what was explained, then the fields whose transfers changed beyond luck, then
/// those that share a line with others in one kernel alone. Empty if transfers were not counted.
pub fn sentences(it: &Explained) -> Vec<String> {
    let Some(transfers) = &it.transfers else { return Vec::new() };
    let totals = [&it.explanation, transfers].map(|it| Some(it.section(None)?.totals.kernel));
    let [Some(instructions), Some(total)] = totals else { return Vec::new() };
    // What has no name is in brackets.
    let beyond = transfers
        .fields
        .iter()
        .filter(|it| it.transfers.beyond_luck() == Some(true) && !it.field.starts_with('['));
    let named = |it: &FieldCost| {
        let [base, new] = [it.transfers.base, it.transfers.new].map(|it| figure(it, 0));
        format!("`{}` {base} before, {new} now", excerpt(&it.field))
    };
    let all = beyond.clone().count();
    let named: Vec<String> = beyond.take(MAX_FIELDS).map(named).collect();
    let fields = (!named.is_empty()).then(|| {
        let largest = match named.len() == all {
            true => String::new(),
            false => format!(", the {} largest of {}", named.len(), grouped(&all.to_string())),
        };
        format!(
            "Transfers by field, beyond luck (at most {:.0} % of these by luck){largest}: {}.",
            100.0 * RATE,
            listed(&named)
        )
    });
    let shared = transfers.layouts.iter().flat_map(|it| layout::sentences(transfers, it));
    meaning(&instructions, &total)
        .into_iter()
        .chain(fields)
        .chain(shared.take(MAX_SHARED))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_combination_has_one_sentence() {
        let change = |new: f64| Difference { base: 1000.0, new, floor: Some(20.0) };
        let all = [700.0, 1010.0, 1300.0].map(|instructions| {
            [700.0, 1010.0, 1300.0]
                .map(|transfers| meaning(&change(instructions), &change(transfers)).unwrap())
        });
        insta::assert_snapshot!(all.concat().join("\n"));
        let unknown = Difference { floor: None, ..change(700.0) };
        assert_eq!(meaning(&unknown, &change(700.0)), None);
        let from_0 = Difference { base: 0.0, ..change(300.0) };
        let said = meaning(&change(1000.0), &from_0).unwrap();
        assert!(said.contains("took 300 instead of 0 lines"), "{said}");
    }
}
