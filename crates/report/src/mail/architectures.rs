//! A mail on the same kernels for several architectures.

use std::iter;

use compare::{Comparison, Explained, Results, Verdict};

use super::fit::{self, Piece};
use super::{
    COMPARED, LIMITS, MAX_CAUSE, MAX_COMPARED, MAX_LIMITS, MIN_CAUSE, MIN_COMPARED, MIN_LIMITS,
    Recipe, cause, compared_briefly, guarded, limits, reply, reproduce, reproduction, subject,
    with_versions,
};
use crate::architectures::{Beside, blocks, columns, rows};
use crate::ascii::excerpt;
use crate::document::{MAIL, sections, sentence, text};
use crate::note::Note;

/// What is printed of one architecture.
#[derive(Clone, Copy, Debug)]
pub struct OfArchitecture<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// The input of the comparison.
    pub results: &'a Results<'a>,
    /// What was executed, with the functions behind its verdicts.
    pub explained: &'a [Explained],
    /// What is needed to repeat the run. A mail has that of the first one, which is for both.
    pub recipe: &'a Recipe<'a>,
}

/// What a mail has of one architecture.
struct Side {
    comparison: Comparison,
    cause: Vec<String>,
    compared: Vec<Note>,
    limits: Vec<Note>,
    recipe: Vec<Piece>,
}

/// Returns the mail on comparisons of which each is for another architecture: the verdicts side by side, and for each
/// architecture the functions that hold the changes. If the patches that were compared came in
/// a mail, it is a reply to that mail.
pub fn architectures(all: &[OfArchitecture<'_>]) -> String {
    let sides: Vec<Side> = all.iter().map(side).collect();
    let comparisons: Vec<&Comparison> = sides.iter().map(|it| &it.comparison).collect();
    let finding = finding(&comparisons);
    let answered = all.first().and_then(|it| reproduce::answered(it.results));
    let reply = answered.and_then(|(subject, mail)| reply::headers(subject, mail));
    let said = reply.as_ref().map(|_| sentence(subject::as_sentence(&finding)));
    let mut pieces = vec![Piece::Kept(text(said.as_slice(), &MAIL))];
    pieces.push(Piece::Kept(sections(&blocks(&comparisons), &MAIL)));
    pieces.extend(sides.iter().map(|it| Piece::Sentences {
        name: "functions",
        blocks: it.cause.iter().cloned().map(sentence).collect(),
        most: MAX_CAUSE,
        least: MIN_CAUSE / all.len(),
    }));
    pieces.push(Piece::Shrinks {
        title: COMPARED,
        notes: together(&sides, |it| &it.compared),
        most: MAX_COMPARED,
        least: MIN_COMPARED,
    });
    pieces.push(Piece::Shrinks {
        title: LIMITS,
        notes: together(&sides, |it| &it.limits),
        most: MAX_LIMITS,
        least: MIN_LIMITS,
    });
    pieces.extend(sides.into_iter().take(1).flat_map(|it| it.recipe));
    let body = fit::body(&pieces, 0, |_| String::new());
    format!("{}\n{}", reply.unwrap_or_else(|| subject::header(&finding)), guarded(&body))
}

fn side(of: &OfArchitecture<'_>) -> Side {
    let OfArchitecture { comparison, results, explained, recipe } = of;
    with_versions(comparison, results, explained, |comparison, results, explained| {
        let leading = subject::leading(comparison, results);
        let mut cause = cause::functions(comparison, explained, leading.as_ref());
        let limits = limits(comparison, &cause).unwrap_or_default();
        if let Some(first) = cause.first_mut() {
            *first = format!("On {}: {first}", comparison.arch.name());
        }
        Side {
            comparison: comparison.clone(),
            cause,
            compared: compared_briefly(comparison, results),
            limits,
            recipe: reproduction(results, recipe, &[]),
        }
    })
}

/// The notes of all sides. Those that all have are there once, the others with the name of their architecture.
fn together<'a>(sides: &'a [Side], notes: impl Fn(&'a Side) -> &'a [Note]) -> Vec<Note> {
    let is_shared = |note: &Note| sides.iter().all(|it| notes(it).contains(note));
    let of = |(place, side): (usize, &'a Side)| {
        let arch = side.comparison.arch.name();
        notes(side).iter().filter_map(move |note| match is_shared(note) {
            true => (place == 0).then(|| note.clone()),
            false => {
                // The machine of an unusual architecture names it.
                let text = note.text.strip_prefix(arch).unwrap_or(&note.text);
                let text = text.strip_prefix("; ").unwrap_or(&note.text);
                Some(Note { text: format!("{arch}: {text}"), ..note.clone() })
            }
        })
    };
    let mut notes: Vec<Note> = sides.iter().enumerate().flat_map(of).collect();
    // Notes on one topic stay together.
    let topics: Vec<&str> = notes.iter().map(|note| note.topic).collect();
    notes.sort_by_key(|note| topics.iter().position(|topic| *topic == note.topic));
    notes
}

/// What the comparisons found, in a few words: the first row with a regression, or else the first with another verdict.
fn finding(all: &[&Comparison]) -> String {
    let names = |column: usize| {
        let variants = all.iter().map(|it| &it.variants).find(|it| it.len() > column);
        variants.map_or_else(String::new, |it| {
            format!("{} against {}", excerpt(&it[column].name), excerpt(&it[0].name))
        })
    };
    let found = (1..columns(all)).flat_map(|column| {
        rows(all, column).into_iter().zip(iter::repeat(column)).collect::<Vec<_>>()
    });
    let rank = |row: &Beside<'_>| {
        let has = |verdict| row.on.iter().flatten().any(|it| it.verdict == verdict);
        [Verdict::Regression, Verdict::Improvement].into_iter().position(has).unwrap_or(2)
    };
    let Some((row, column)) = found.min_by_key(|(row, _)| rank(row)) else {
        return "mm: nothing has a verdict".to_owned();
    };
    let said = |(place, it): (usize, &&Comparison)| {
        let said = row.said(place, column).unwrap_or_else(|| "no verdict".to_owned());
        format!("{said} on {}", it.arch.name())
    };
    let said: Vec<String> = all.iter().enumerate().map(said).collect();
    format!("mm: {}: {}, {}", names(column), excerpt(row.metric), said.join(", "))
}
