//! Whether a change is other work or dearer work: how often system calls and exceptions ran on both sides, and what one
//! takes.

use compare::{Asked, Difference, Headline};
use kernelfiles::entry::{EXCEPTION, SYSTEM_CALL};
use model::INSTRUCTIONS;

use super::figures;
use super::headline::phase_name;
use crate::ascii::excerpt;
use crate::words::{figure, in_percent, listed};

/// Most calls that a sentence names.
const MOST: usize = 3;
/// Calls of the same work are named if they have at least this share of the phase's instructions.
const LARGE: f64 = 0.05;
/// A number that luck changes is named if it changed by at least this share, and by at least this number.
const SCATTERED: (f64, f64) = (0.05, 100.0);
/// A share of the change above this says nothing: the cost of a call changed as much in the other direction.
const MOST_SHARE: f64 = 2.0;
/// A call is what a phase does if it has at least this share of its instructions.
const HALF: f64 = 0.5;

/// Returns a sentence on the work of a phase whose instructions changed beyond luck. `None` for others, and if calls were
/// not followed.
pub fn sentence(it: &Headline) -> Option<String> {
    let is_changed = it.kernel.beyond_luck() == Some(true) && !it.of_one_variant;
    if !is_changed || it.unit != INSTRUCTIONS || it.asked.is_empty() || !it.followed {
        return None;
    }
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
        let large = all.iter().take_while(|it| share(it) >= LARGE).count().clamp(1, MOST);
        let are_equal = |all: &[&Asked]| all.iter().all(|it| it.entries.change() == 0.0);
        let lucky: Vec<String> =
            all.iter().copied().filter(is_lucky).map(number).take(MOST).collect();
        let what = match are_equal(&all) {
            true => "the same work on both sides".to_owned(),
            false if lucky.is_empty() => "nearly the same work".to_owned(),
            false => format!("the same work but for luck ({})", listed(&lucky)),
        };
        let named: Vec<String> = all[..large].iter().copied().map(number).collect();
        let others = match are_equal(&all[..large]) && !are_equal(&all) {
            true => "; the numbers of smaller calls differ a little",
            false => "",
        };
        format!("{what}: {}{others}", listed(&named))
    } else {
        let what = if it.is_by_pages(&other) {
            "the same work in other pages"
        } else {
            "not the same work"
        };
        let named = other.into_iter().take(MOST).map(|asked| {
            let share = it.share_by_number(asked);
            match share.abs() <= MOST_SHARE {
                true => format!("{} ({} % of the change)", number(asked), in_percent(share, 1)),
                false => number(asked),
            }
        });
        format!("{what}: {}", listed(&named.collect::<Vec<_>>()))
    };
    // What a call takes is as counted, and luck hides its change.
    let main = all.first().filter(|of| share(of) >= HALF && !it.at_equal_entries);
    let cost = main.and_then(|asked| {
        let [one, _] = names(asked);
        let cost = asked.per_call()?.map(|it| figure(it, 0));
        let cost = figures::sides(cost, " instructions");
        Some(format!("; one{one} with what it calls: {cost}"))
    });
    let phase = phase_name(&it.phase);
    Some(format!("Phase {phase}, {work}{}.", cost.unwrap_or_default()))
}

/// Whether luck changed the number of a call notably.
fn is_lucky(asked: &&Asked) -> bool {
    let Difference { base, new, .. } = asked.entries;
    let (share, number) = SCATTERED;
    let change = (new - base).abs();
    asked.entries.beyond_luck() == Some(false)
        && change >= number
        && change >= share * base.max(new)
}

/// Returns the words that follow the number of one and of several calls: ` page fault`, ` calls of brk`.
pub fn names(asked: &Asked) -> [String; 2] {
    match asked.name.strip_prefix(SYSTEM_CALL) {
        Some(call) => ["call", "calls"].map(|word| format!(" {word} of {}", excerpt(call))),
        None => {
            let name = asked.name.strip_prefix(EXCEPTION).unwrap_or(&asked.name);
            let name = excerpt(name).replace('_', " ");
            [format!(" {name}"), format!(" {name}s")]
        }
    }
}
