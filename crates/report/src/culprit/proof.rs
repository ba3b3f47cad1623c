//! The proof of a culprit: how the figure changes from its parent to it, and what reverting it changes.

use culprit::{Findings, LevelChange, Proof};
use model::count;

use super::{by, floor, value};
use crate::ascii::excerpt;
use crate::document::{Block, part, sentence};
use crate::words::Of;

/// Most functions that a proof names.
const FUNCTIONS: usize = 8;

/// Writes one change of a proof. `what` names what was compared; `by` names what hides small changes.
fn line(what: &str, change: &LevelChange, of: Of, by: &str) -> String {
    let beyond = match change.floor {
        None => "too few boots to judge".to_owned(),
        Some(floor) => {
            let word = if change.is_beyond() { "beyond" } else { "within" };
            format!("{word} {by}, {}", self::floor(floor, change.levels[0]))
        }
    };
    let [before, after] = change.levels.map(value);
    format!("{what}: {before} -> {after} ({}; {beyond})", super::change(of, change.levels))
}

/// Lays out the proof of a culprit.
pub fn block(proof: &Proof, found: &Findings, is_option: bool) -> Block {
    let (by, of) = (by(found.exact), super::of(found));
    let [parent, reverted, reverting] = match is_option {
        false => ["its parent", "reverted", "reverting it"],
        true => ["the change before", "set back", "setting it back"],
    };
    let mut said = Vec::new();
    match &proof.step {
        Some(step) => said.push(line(&format!("{parent} and it"), step, of, by)),
        None => said.push(format!("no figure of both it and {parent}")),
    }
    match &proof.reverted {
        Ok(change) => {
            said.push(line(&format!("the bad end and that with it {reverted}"), change, of, by));
            if let Some(step) = proof.step.filter(LevelChange::is_beyond) {
                let back = -100.0 * change.change() / step.change();
                said.push(format!("{reverting} takes {back:.0} % of the step back"));
            }
        }
        Err(why) => said.push(format!("not {reverted}: {}", excerpt(why))),
    }
    match &proof.instructions {
        None => {}
        Some(Err(why)) => said.push(format!("kernel instructions not counted: {}", excerpt(why))),
        Some(Ok(counted)) => {
            let what = format!("kernel instructions of {parent} and it");
            said.push(line(&what, counted, Of::Number, "luck"));
            if !counted.is_beyond() {
                let why = "the code path is not longer: layout or caches, waiting, or slower instructions";
                said.push(why.to_owned());
            }
        }
    }
    match &proof.aligned {
        None => {}
        Some(Err(why)) => said.push(format!("not measured with aligned functions: {why}")),
        Some(Ok(change)) => {
            said.push(line("with all functions aligned to 64 bytes", change, of, by));
            said.push(match proof.remains() {
                Some(0.0) => "then the step is gone: it is the place of functions".to_owned(),
                Some(1.0) => "then the step remains: not the place of functions".to_owned(),
                Some(share) => format!("then {:.0} % of the step remains", 100.0 * share),
                None => "too few boots to say whether the step remains then".to_owned(),
            });
        }
    }
    said.push(functions(proof));
    // In exact mode the proof uses the seeds of the search.
    let how = if found.exact { "with all seeds" } else { "again" };
    let title = format!("Measured {how} (experiment {}):", proof.experiment);
    part(title, said.into_iter().map(sentence).collect::<Vec<_>>())
}

/// Writes which functions have other code because of the culprit.
fn functions(proof: &Proof) -> String {
    match &proof.functions {
        Err(why) => format!("which functions it changes is not known: {why}"),
        Ok(functions) if functions.is_empty() => "it changes the code of no function".to_owned(),
        Ok(functions) => {
            let named = functions.iter().take(FUNCTIONS).cloned().collect::<Vec<_>>().join(", ");
            let more = functions.len().checked_sub(FUNCTIONS).filter(|more| *more > 0);
            let more = more.map_or(String::new(), |more| format!(" and {more} more"));
            let number = count(functions.len(), "function");
            format!("it changes the code of {number}: {named}{more}")
        }
    }
}
