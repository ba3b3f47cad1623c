//! Words for functions whose machine code differs: which ones can be causes, and a mark for each.

use compare::{Calls, Code, Contribution, Only, Section};
use model::count;

use super::view::{signed, within};
use crate::ascii::{excerpt, few};

/// Most functions named whose code differs.
const MAX_CAUSES: usize = 5;

/// Which executed functions' code differs; `None` where that is not known.
pub fn causes(section: &Section) -> Option<String> {
    let marked = section.contributions.iter().filter(|it| it.code.is_some()).count();
    let ranked = section.per_entry.iter().map(|&place| &section.contributions[place]);
    let unranked = section.contributions.iter().enumerate();
    let unranked = unranked.filter(|(place, _)| !section.per_entry.contains(place));
    let causes: Vec<_> = ranked
        .chain(unranked.map(|(_, it)| it))
        .filter(|it| it.is_cause())
        .map(|it| {
            let cost = it.calls.as_ref().and_then(|calls| calls.per_entry);
            let cost = cost.map(|it| format!(" ({} per entry)", signed(it.change(), 2)));
            let inlined =
                it.inlined.as_ref().map(|name| format!(", inlined from {}", excerpt(name)));
            let [inlined, cost] = [inlined, cost].map(Option::unwrap_or_default);
            format!("{}{inlined}{cost}", excerpt(&it.subject.to_string()))
        })
        .collect();
    let of = format!("of the {} executed{}", count(marked, "function"), within(section));
    let named = |causes| few(MAX_CAUSES, causes).join(", ");
    match (marked, causes.len()) {
        (0, _) => None,
        (_, 0) => Some(format!("The code of none {of} differs.")),
        (_, number) => Some(format!("The code of {number} {of} differs: {}.", named(causes))),
    }
}

/// Remarks on a function: how its code differs, that one side did not execute it, that it was entered in
/// parts.
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
