//! Sentences on loops that copy and clear memory, for which a real machine usually has fast string instructions.

use compare::{Difference, Explanation, Headline, Subject, is_copy_loop};
use model::INSTRUCTIONS;

use super::headline::phase_name;
use crate::ascii::few;
use crate::words::Of;

/// Most loops that copy and clear memory that are named.
const MAX_LOOPS: usize = 2;
/// Least share of a change, in either direction, at which such loops are mentioned.
const OF_LOOPS: f64 = 0.05;

/// Returns a sentence for each of these phases on its change without loops that clear and copy memory. There is none for
/// a phase if these loops hardly change it, it is not beyond luck, or the cost is another one than instructions.
pub fn sentences<'a>(
    explanation: &'a Explanation,
    headlines: impl Iterator<Item = &'a Headline>,
) -> impl Iterator<Item = String> {
    let is_counted = explanation.cost.name == INSTRUCTIONS;
    headlines.filter(move |_| is_counted).filter_map(|it| without_loops(explanation, &it.phase))
}

fn without_loops(explanation: &Explanation, phase: &str) -> Option<String> {
    let section = explanation.section(Some(phase))?;
    if section.totals.kernel.beyond_luck() != Some(true) {
        return None;
    }
    let own = section.contributions.iter().filter_map(|it| match &it.subject {
        Subject::Function { name, .. } if is_copy_loop(name) => Some((&**name, it.instructions)),
        _ => None,
    });
    let mut changed: Vec<(&str, Difference)> = own.filter(|(_, it)| it.change() != 0.0).collect();
    changed.sort_by(|(_, one), (_, other)| other.change().abs().total_cmp(&one.change().abs()));
    let [base, new] =
        changed.iter().fold([0.0; 2], |[base, new], (_, it)| [base + it.base, new + it.new]);
    let total = section.totals.kernel;
    let names = few(MAX_LOOPS, changed.iter().map(|it| it.0)).join(", ");
    let without = Of::Number.change([total.base - base, total.new - new], 2)?;
    // The loops have hardly a part in the floor.
    let left = total.change() - (new - base);
    let is_luck = total.floor.is_some_and(|floor| left.abs() <= floor);
    let luck = if is_luck { ", which may be luck" } else { "" };
    ((new - base).abs() >= OF_LOOPS * total.change().abs()).then(|| {
        format!(
            "Phase {} without loops that copy and clear memory ({names}), for which a real machine usually has fast \
             string instructions: {without}{luck}.",
            phase_name(phase)
        )
    })
}
