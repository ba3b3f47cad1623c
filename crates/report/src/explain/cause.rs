//! Sentences and remarks on functions whose machine code differs, and which can therefore be causes of the
//! change.

use compare::{Calls, Code, Contribution, Only, Section};
use model::{count, grouped};

use super::headline::within;
use crate::ascii::{excerpt, few};
use crate::words;

/// Most functions that are named because their code differs.
const MAX_CAUSES: usize = 5;

/// Returns a sentence on the executed functions whose code differs, with the change of each. Functions
/// whose change is beyond luck come first. `None` if it is not known whose code differs.
pub fn causes(section: &Section, unit: &str) -> Option<String> {
    let marked = section.contributions.iter().filter(|it| it.code.is_some()).count();
    // Contributions are sorted by size.
    let (sure, others): (Vec<_>, Vec<_>) =
        section.contributions.iter().filter(|it| it.is_cause()).partition(|it| is_beyond_luck(it));
    let causes: Vec<String> = sure.into_iter().chain(others).map(part).collect();
    let of = format!("of the {} executed{}", count(marked, "function"), within(section));
    match (marked, causes.len()) {
        (0, _) => None,
        (_, 0) => Some(format!("The code of none {of} differs.")),
        (_, number) => Some(format!(
            "The code of {} {of} differs; own {unit}: {}.",
            grouped(&number.to_string()),
            few(MAX_CAUSES, causes).join(", ")
        )),
    }
}

/// Returns whether the instructions of a function, or its instructions per entry, differ beyond luck.
fn is_beyond_luck(it: &Contribution) -> bool {
    let cost = it.calls.as_ref().and_then(|calls| calls.per_entry);
    [Some(it.instructions), cost].into_iter().flatten().any(|it| it.beyond_luck() == Some(true))
}

/// Formats a function whose code differs: its name, its change, and the change per entry.
fn part(it: &Contribution) -> String {
    let cost = it.calls.as_ref().and_then(|calls| calls.per_entry);
    let cost = cost.map(|it| format!(" ({} per entry)", words::signed(it.change(), 2)));
    let inlined = it.inlined.as_ref().map(|name| format!(" (inlined from {})", excerpt(name)));
    let [inlined, cost] = [inlined, cost].map(Option::unwrap_or_default);
    let change = words::signed(it.instructions.change(), 0);
    format!("{}{inlined} {change}{cost}", excerpt(&it.subject.to_string()))
}

/// Returns the remarks on a function: how its code differs, that only one side executed it, or that it was
/// entered in parts.
pub fn remark(it: &Contribution) -> String {
    let executed = match &it.calls {
        Some(Calls { only: Some(only), maybe, .. }) => {
            let other = maybe.as_ref().map(|it| excerpt(&it.to_string()));
            Some(match (only, other) {
                (Only::Base, None) => "gone".to_owned(),
                (Only::New, None) => "new".to_owned(),
                (Only::Base, Some(other)) => format!("gone, maybe now {other}"),
                (Only::New, Some(other)) => format!("new, maybe was {other}"),
            })
        }
        Some(Calls { in_parts: true, .. }) => Some("in parts".to_owned()),
        _ => None,
    };
    let code = it.code.and_then(|code| match code {
        Code::Same => Some("code same".to_owned()),
        Code::Differs => Some(match &it.inlined {
            Some(name) => format!("code differs, inlined from {}", excerpt(name)),
            None => "code differs".to_owned(),
        }),
        // The other side cannot have executed it.
        Code::New | Code::Gone => None,
    });
    let remarks: Vec<_> = code.into_iter().chain(executed).collect();
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) }
}
