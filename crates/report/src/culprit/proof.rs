//! The proof of a culprit: what it changes against its parent, and what its revert changes.

use culprit::{Change, Findings, Proof};
use model::count;

use super::{by, floor, value};
use crate::ascii::{escape, excerpt};
use crate::words::Of;

/// The functions that a proof names at most.
const FUNCTIONS: usize = 8;

/// One part of a proof. `by` is what hides small changes of its figure.
fn line(what: &str, change: &Change, of: Of, by: &str) -> String {
    let beyond = match change.floor {
        None => "too few boots to judge".to_owned(),
        Some(floor) => {
            let word = if change.is_beyond() { "beyond" } else { "within" };
            format!("{word} {by}, {}", self::floor(floor, change.levels[0]))
        }
    };
    let [before, after] = change.levels.map(value);
    format!("    {what}: {before} -> {after} ({}; {beyond})\n", super::change(of, change.levels))
}

/// The proof of a culprit, indented.
pub fn text(proof: &Proof, found: &Findings, is_option: bool) -> String {
    let (by, of) = (by(found.exact), super::of(found));
    let [parent, reverted, reverting] = match is_option {
        false => ["its parent", "reverted", "reverting it"],
        true => ["the change before", "set back", "setting it back"],
    };
    // In exact mode the seeds are those of the search.
    let how = if found.exact { "with all seeds" } else { "again" };
    let mut text = format!("  Measured {how} (experiment {}):\n", proof.experiment);
    match &proof.step {
        Some(step) => text += &line(&format!("{parent} and it"), step, of, by),
        None => text += &format!("    no figure of both it and {parent}\n"),
    }
    match &proof.reverted {
        Ok(change) => {
            text += &line(&format!("the bad end and that with it {reverted}"), change, of, by);
            if let Some(step) = proof.step.filter(Change::is_beyond) {
                let back = -100.0 * change.change() / step.change();
                text += &format!("    {reverting} takes {back:.0} % of the step back\n");
            }
        }
        Err(why) => text += &format!("    not {reverted}: {}\n", excerpt(why)),
    }
    match &proof.instructions {
        None => {}
        Some(Err(why)) => {
            text += &format!("    kernel instructions not counted: {}\n", excerpt(why))
        }
        Some(Ok(instructions)) => {
            text += &line(
                &format!("kernel instructions of {parent} and it"),
                instructions,
                Of::Number,
                "luck",
            );
            if !instructions.is_beyond() {
                text += "    the code path is not longer: layout or caches, waiting, or slower instructions\n";
            }
        }
    }
    match &proof.aligned {
        None => {}
        Some(Err(why)) => {
            text += &format!("    not measured with aligned functions: {}\n", escape(why))
        }
        Some(Ok(change)) => {
            text += &line("with all functions aligned to 64 bytes", change, of, by);
            text += &match proof.remains() {
                Some(0.0) => "    then the step is gone: it is the place of functions\n".to_owned(),
                Some(1.0) => "    then the step remains: not the place of functions\n".to_owned(),
                Some(share) => format!("    then {:.0} % of the step remains\n", 100.0 * share),
                None => "    too few boots to say whether the step remains then\n".to_owned(),
            };
        }
    }
    text += &match &proof.functions {
        Err(why) => format!("    which functions it changes is not known: {}\n", escape(why)),
        Ok(functions) if functions.is_empty() => {
            "    it changes the code of no function\n".to_owned()
        }
        Ok(functions) => {
            let first: Vec<String> =
                functions.iter().take(FUNCTIONS).map(|name| escape(name)).collect();
            let more = functions.len().saturating_sub(FUNCTIONS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "    it changes the code of {}: {}{more}\n",
                count(functions.len(), "function"),
                first.join(", ")
            )
        }
    };
    text
}
