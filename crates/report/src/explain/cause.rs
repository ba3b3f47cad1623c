//! Sentences and remarks on functions whose machine code differs, and which can therefore be causes of the
//! change.

use std::collections::BTreeSet;

use code::Instrumentation;
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
        (_, 1) => Some(format!(
            "The code of one {of} differs; own {unit}: {}. `explain --lines` prints its lines.",
            causes[0]
        )),
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
    let inlined = it.inlined.as_ref().map(|name| format!("inlined from {}", excerpt(name)));
    let parts: Vec<_> = inlined.into_iter().chain(instrumented(&it.instrumentation)).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let change = words::signed(it.instructions.change(), 0);
    format!("{}{parts} {change}{}", excerpt(&it.subject.to_string()), cost.unwrap_or_default())
}

/// Returns what the code of only one side is instrumented with; `None` if both have the same.
pub fn instrumented(it: &Instrumentation) -> Option<String> {
    let said = |word: &str, kinds: &BTreeSet<&str>| {
        let kinds: Vec<&str> = kinds.iter().copied().collect();
        (!kinds.is_empty()).then(|| format!("{word} {}", kinds.join(" and ")))
    };
    let said = [said("now with", &it.gained), said("now without", &it.lost)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
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
        Code::Differs => {
            let inlined = it.inlined.as_ref().map(|name| format!("inlined from {}", excerpt(name)));
            let parts =
                [Some("code differs".to_owned()), inlined, instrumented(&it.instrumentation)];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        // The other side cannot have executed it.
        Code::New | Code::Gone => None,
    });
    let remarks: Vec<_> = code.into_iter().chain(executed).collect();
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instrumentation_of_one_side_is_said() {
        let of = |gained: &[&'static str], lost: &[&'static str]| Instrumentation {
            gained: gained.iter().copied().collect(),
            lost: lost.iter().copied().collect(),
        };
        let said = instrumented(&of(&["retpolines", "the stack protector"], &["KCOV"]));
        let expected = "now with retpolines and the stack protector, now without KCOV";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(instrumented(&of(&[], &[])), None);
    }
}
