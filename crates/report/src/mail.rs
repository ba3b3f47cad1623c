//! The comparison as a mail, ready to send: a subject, the verdicts, the tables, other differences, what
//! the figures do not show, and how to repeat the run. It is plain text in the style of the kernel's lists.
//! Whatever names a guest or a file has, each line is printable ASCII of at most 78 characters, and no
//! mailbox misreads it.

pub mod reproduce;
mod subject;
mod tables;
mod verdicts;

use compare::{Comparison, Explained, Results};
use model::Mode;

use crate::ascii::{escape, excerpt};
use crate::brief::with_rows;
use crate::document::{Block, MAIL, sections, sentence};
use crate::explain::headline;
use crate::note::{self, Note};
use crate::notes::{self, ORIGIN};
use crate::{cross_check, exact, steps, sweep};

pub use reproduce::Recipe;
pub use subject::header;

/// Returns the mail: one header, the subject, then an empty line and the body. `results` is the input of
/// the comparison, `explained` names the functions behind its verdicts, and `recipe` has what is needed to
/// repeat the run.
pub fn mail(
    comparison: &Comparison,
    results: &Results<'_>,
    explained: &[Explained],
    recipe: &Recipe<'_>,
) -> String {
    // The origin of kernels is printed with the commands that get them. An import has no such commands.
    let is_told = |note: &Note| note.topic == ORIGIN && results.experiment.imported.is_none();
    let seeds = (comparison.mode == Mode::Exact).then(|| exact::seeds(comparison));
    let notes = notes::all(comparison).into_iter().filter(|note| !is_told(note));
    let notes: Vec<Note> = seeds.into_iter().flatten().chain(notes).collect();
    let mut all: Vec<Vec<Block>> = vec![notes::states_block(comparison).into_iter().collect()];
    all.push(sweep::blocks(comparison));
    if comparison.points.is_empty() {
        all.extend(verdicts::sections(comparison));
        all.push(functions(explained));
        all.extend(tables::sections(comparison));
    }
    all.push(steps::block(comparison).into_iter().collect());
    all.push(cross_check::blocks(comparison));
    all.push(vec![note::block("What was compared:", &notes)]);
    all.extend(limits(comparison).map(|it| vec![note::block("What this does not show:", &it)]));
    all.extend(reproduce::boots(results).map(|boots| vec![boots]));
    all.extend(reproduce::sections(results, recipe));
    format!("{}\n{}", header(&subject::words(comparison)), guarded(&sections(&all, &MAIL)))
}

/// Lays out the verdicts of a comparison, and the rows of its tables that have a verdict.
pub fn verdicts_and_rows(comparison: &Comparison) -> Vec<Vec<Block>> {
    let mut judged = comparison.clone();
    for table in &mut judged.tables {
        let rows = table.rows.iter().filter(|row| row.is_judged()).cloned().collect();
        *table = with_rows(table, rows);
    }
    judged.tables.retain(|table| !table.rows.is_empty());
    verdicts::sections(comparison).into_iter().chain(tables::sections(&judged)).collect()
}

/// Lays out the kernels, the machine and the workload that were compared.
pub fn compared(comparison: &Comparison) -> Block {
    let notes: Vec<Note> =
        notes::states(comparison).into_iter().chain(notes::all(comparison)).collect();
    note::block("What was compared:", &notes)
}

/// Most functions that are named, one for each phase.
const MAX_FUNCTIONS: usize = 4;

/// Returns a sentence for each phase in which a function holds the change.
fn functions(explained: &[Explained]) -> Vec<Block> {
    let named = explained.iter().flat_map(|it| {
        let first = match explained {
            [_] => String::new(),
            _ => format!("{}, {}: ", excerpt(&it.workload), excerpt(&it.variant)),
        };
        let headlines = it.headlines.iter().filter(|it| headline::names(it));
        headlines.map(move |it| sentence(format!("{first}{}", headline::headline(it))))
    });
    named.take(MAX_FUNCTIONS).collect()
}

/// Printed about times that were measured under emulation.
const EMULATION: &str = "QEMU translated the guest's instructions (TCG): times say nothing of a \
                         real machine's instructions, caches, TLBs, memory latency and distances \
                         between nodes. The kernels' counters are valid.";

/// Returns what emulation or exact mode does not model. `None` in measured mode without emulation.
fn limits(comparison: &Comparison) -> Option<Vec<Note>> {
    match comparison.mode {
        Mode::Exact => Some(exact::limits().into()),
        Mode::Measured if comparison.emulated => {
            Some(vec![Note::on_all("emulation", EMULATION.to_owned())])
        }
        Mode::Measured => None,
    }
}

/// Puts a space before lines that a mailbox would take for the beginning of a mail (`From `, the mbox
/// format), or that a reader would take for quoted text (`>`).
pub fn guarded(body: &str) -> String {
    let guard = |line: &str| match line.starts_with("From ") || line.starts_with('>') {
        true => format!(" {line}\n"),
        false => format!("{line}\n"),
    };
    body.lines().map(guard).collect()
}

/// Escapes a name, and cuts it if it is longer than `room`.
fn clipped(name: &str, room: usize) -> String {
    let mut name = escape(name);
    if name.len() > room {
        name.truncate(room.saturating_sub(3));
        name.push_str("...");
    }
    name
}
