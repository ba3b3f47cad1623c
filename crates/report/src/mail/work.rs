//! Whether a change is other work or dearer work: how often system calls and exceptions ran on both sides, and what one
//! takes.

use compare::{Asked, Comparison, Explained, Headline, Statistic, Verdict};
use kernelfiles::entry::SYSTEM_CALL;

use super::rows::Shown;
use crate::ascii::excerpt;
use crate::explain::{figures, headline};
use crate::words::{Of, figure, in_percent, listed, phase_alone};

/// Most calls that a sentence names.
const MOST: usize = 3;
/// Calls of the same work are named if they have at least this share of the phase's instructions.
const LARGE: f64 = 0.05;
/// A call is what a phase does if it has at least this share of its instructions.
const HALF: f64 = 0.5;
/// The verdict on a change of which other work is a part.
pub const OTHER: &str = "other work";

/// Returns the headline of the phase of a row that is a regression or an improvement, if the work of the phase is another
/// one.
pub fn other<'a>(
    explained: &'a [Explained],
    comparison: &Comparison,
    Shown { table, row }: &Shown<'_>,
    column: usize,
) -> Option<&'a Headline> {
    // A row at equal entries has the cost of the same work.
    let is_change = row.statistic != Statistic::Equal
        && matches!(row.verdict(column), Some(Verdict::Regression | Verdict::Improvement));
    let variant = &comparison.variants[column].name;
    let is_its = |it: &&Explained| it.workload == table.workload && it.variant == *variant;
    let mut headlines = explained.iter().filter(is_its).flat_map(|it| &it.headlines);
    let of_phase = headlines.find(|it| is_change && it.phase == phase_alone(row));
    of_phase.filter(|it| !it.other_work().is_empty())
}

/// Returns how the number of the call that makes the work another one changed, for a subject: `23.0 % fewer page faults`.
/// `None` if the work is the same.
pub fn in_subject(it: &Headline) -> Option<String> {
    let asked = *it.other_work().first()?;
    let [_, calls] = names(asked);
    let change = Of::Number.change([asked.entries.base, asked.entries.new], 1);
    Some(format!("with {}{calls}", change.unwrap_or_else(|| "new".to_owned())))
}

/// Returns a sentence on the work of a phase. `None` if it is not known.
pub fn sentence(it: &Headline) -> Option<String> {
    let share = |asked: &Asked| {
        let [base, new] = asked.instructions.unwrap_or_default();
        (base / it.kernel.base).min(new / it.kernel.new)
    };
    let mut all: Vec<&Asked> = it.asked.iter().collect();
    all.sort_by(|one, other| share(other).total_cmp(&share(one)));
    let number = |asked: &Asked| {
        let [one, several] = names(asked);
        figures::numbers([asked.entries.base, asked.entries.new], [&one, &several])
    };
    let other = it.other_work();
    let work = if other.is_empty() {
        let large = match it.followed {
            true => all.iter().take_while(|it| share(it) >= LARGE).count().clamp(1, MOST),
            false => MOST,
        };
        let named = || all.iter().copied().take(large);
        let is_equal = named().all(|it| it.entries.change() == 0.0);
        let what = if is_equal { "the same work on both sides" } else { "nearly the same work" };
        format!("{what}: {}", listed(&named().map(number).collect::<Vec<_>>()))
    } else {
        let named = other.into_iter().take(MOST).map(|asked| {
            let share = in_percent(it.share_by_number(asked), 1);
            format!("{} ({share} % of the change)", number(asked))
        });
        format!("not the same work: {}", listed(&named.collect::<Vec<_>>()))
    };
    let main = all.first().filter(|it| share(it) >= HALF);
    let cost = main.and_then(|asked| {
        let [one, _] = names(asked);
        let cost = asked.per_call()?.map(|it| figure(it, 0));
        let cost = figures::sides(cost, " instructions");
        Some(format!("; one{one} with what it calls: {cost}"))
    });
    let phase = headline::phase_name(&it.phase);
    (!all.is_empty()).then(|| format!("Phase {phase}, {work}{}.", cost.unwrap_or_default()))
}

/// Returns the words that follow the number of one and of several calls: ` page fault`, ` calls of brk`.
fn names(asked: &Asked) -> [String; 2] {
    match asked.name.strip_prefix(SYSTEM_CALL) {
        Some(call) => ["call", "calls"].map(|word| format!(" {word} of {}", excerpt(call))),
        None => {
            let name = asked.name.strip_prefix("exception ").unwrap_or(&asked.name);
            let name = excerpt(name).replace('_', " ");
            [format!(" {name}"), format!(" {name}s")]
        }
    }
}
