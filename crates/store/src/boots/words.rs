//! The words in the store for outcomes.

use model::Outcome;

/// The word of an outcome, and its detail; empty if it has none.
pub fn of_outcome(outcome: &Outcome) -> (&'static str, &str) {
    let detail = match outcome {
        Outcome::Complete | Outcome::Interrupted => "",
        Outcome::Partial(detail)
        | Outcome::Failed(detail)
        | Outcome::Panicked(detail)
        | Outcome::TimedOut(detail)
        | Outcome::Died(detail)
        | Outcome::Invalid(detail) => detail,
    };
    (outcome.name(), detail)
}

/// The outcome for a word and a detail; `None` for an unknown word.
pub fn outcome(word: &str, detail: String) -> Option<Outcome> {
    Some(match word {
        "complete" => Outcome::Complete,
        "partial" => Outcome::Partial(detail),
        "failed" => Outcome::Failed(detail),
        "panicked" => Outcome::Panicked(detail),
        "timed-out" => Outcome::TimedOut(detail),
        "died" => Outcome::Died(detail),
        // Older stores have `spoilt`.
        "invalid" | "spoilt" => Outcome::Invalid(detail),
        "interrupted" => Outcome::Interrupted,
        _ => return None,
    })
}
