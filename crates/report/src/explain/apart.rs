//! Sentences on parts of a change that are not the work of the kernel's source: instructions of IBT, and loops that copy
//! and clear memory, for which a real machine usually has fast string instructions.

use code::{IBT, Instrumentation};
use compare::{Contribution, Difference, Explanation, Headline, Section, Subject, is_copy_loop};
use model::INSTRUCTIONS;

use super::headline::phase_name;
use crate::ascii::few;
use crate::words::{self, Of};

/// Most loops that copy and clear memory that are named.
const MAX_LOOPS: usize = 2;
/// Least share of a change, in either direction, at which such parts are mentioned.
const LEAST: f64 = 0.05;

/// Returns sentences on the changes of these phases: which part of it is IBT, and the change without loops that clear and
/// copy memory, if `has_loops`. There are none for a phase if these parts are small, it is not beyond luck, or the cost is
/// another one than instructions.
pub fn sentences<'a>(
    explanation: &'a Explanation,
    headlines: impl Iterator<Item = &'a Headline>,
    has_loops: impl Fn(&Headline) -> bool,
) -> impl Iterator<Item = String> {
    let is_counted = explanation.cost.name == INSTRUCTIONS;
    headlines.filter(move |_| is_counted).flat_map(move |it| {
        let section = explanation.section(Some(&it.phase));
        let section = section.filter(|it| it.totals.kernel.beyond_luck() == Some(true));
        let loops = section.filter(|_| has_loops(it));
        let landings = section.and_then(|section| landings(section, &it.phase));
        landings.into_iter().chain(loops.and_then(|section| without_loops(section, &it.phase)))
    })
}

/// Under IBT, functions begin with an instruction at which indirect calls may arrive. Each entry executes it, also where the
/// kernel has overwritten it with a NOP.
fn landings(section: &Section, phase: &str) -> Option<String> {
    let more = |it: &Contribution| {
        let Instrumentation { gained, lost } = &it.instrumentation;
        let entries = it.calls.as_ref()?.entries;
        match (gained.contains(IBT), lost.contains(IBT)) {
            (true, _) => Some(entries.new),
            (_, true) => Some(-entries.base),
            _ => None,
        }
    };
    let sum: f64 = section.contributions.iter().filter_map(more).sum();
    let share = sum / section.totals.kernel.change();
    let more = if sum < 0.0 { "fewer" } else { "more" };
    (share.is_finite() && share.abs() >= LEAST).then(|| {
        format!(
            "Phase {}: the endbr64 of IBT, one at each entry, is {} {more}, {} % of the change.",
            phase_name(phase),
            words::figure(sum.abs(), 0),
            words::decimal(Some(100.0 * share), 1),
        )
    })
}

fn without_loops(section: &Section, phase: &str) -> Option<String> {
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
    ((new - base).abs() >= LEAST * total.change().abs()).then(|| {
        format!(
            "Phase {} without loops that copy and clear memory ({names}), for which a real machine usually has fast \
             string instructions: {without}{luck}.",
            phase_name(phase)
        )
    })
}
