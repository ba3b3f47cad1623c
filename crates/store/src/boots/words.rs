//! The words in the store for outcomes and kinds of problems.

use model::{Outcome, ProblemKind};

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

/// The word of a kind of problem.
pub fn of_problem(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Warning => "warning",
        ProblemKind::Bug => "bug",
        ProblemKind::Stall => "stall",
        ProblemKind::OomKill => "oom-kill",
        ProblemKind::Taint => "taint",
        ProblemKind::SeriesDropped => "series-dropped",
        ProblemKind::LeftOut => "left-out",
    }
}

/// The kind of problem for a word; `None` for an unknown word.
pub fn problem(word: &str) -> Option<ProblemKind> {
    Some(match word {
        "warning" => ProblemKind::Warning,
        "bug" => ProblemKind::Bug,
        "stall" => ProblemKind::Stall,
        "oom-kill" => ProblemKind::OomKill,
        "taint" => ProblemKind::Taint,
        "series-dropped" => ProblemKind::SeriesDropped,
        "left-out" => ProblemKind::LeftOut,
        _ => return None,
    })
}
