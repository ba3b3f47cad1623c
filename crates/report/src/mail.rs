//! The comparison as a mail for a list: a subject, the cause, one table, what differs otherwise, what the
//! figures do not show, and how to repeat the run, in at most [`fit::MOST`] lines. `compare --full` prints
//! everything else. It is plain text in the style of the kernel's lists. Whatever names a guest or a file has,
//! each line is printable ASCII of at most 78 characters, but for commands and lines of programs, and no mailbox misreads
//! it.

mod architectures;
mod cause;
mod counters;
mod fit;
pub mod kernel;
mod names;
mod reply;
pub mod reproduce;
mod rows;
mod subject;
mod tables;
mod verdicts;
mod work;

use compare::{
    Comparison, Explained, Kind, Results, Row, VariantBoots, first_columns, split_columns,
};
use model::{Mode, STATES};

use crate::ascii::escape;
use crate::brief::{tells, with_rows};
use crate::document::{Block, MAIL, sections, sentence, text};
use crate::explain::{headline, transfers};
use crate::note::{self, Note};
use crate::{build, cross_check, effects, exact, failing, notes, oddities, steps, sweep, table};
use fit::Piece::{Kept, Rows, Sentences, Shrinks, Spare};
use fit::{Piece, cut, whole};
use names::Versions;

pub use architectures::{OfArchitecture, architectures};
pub use reproduce::{Recipe, source_name};
pub use subject::header;

/// The titles of the notes.
const COMPARED: &str = "What was compared:";
const LIMITS: &str = "What this does not show:";
/// Most lines of a sweep's table, and of that of a series of patches.
const MAX_DESIGN: usize = 24;
/// Most and least lines about the cause.
const MAX_CAUSE: usize = 16;
const MIN_CAUSE: usize = 6;
/// Most and least lines about lines of memory that CPUs took from each other.
const MAX_TRANSFERS: usize = 12;
const MIN_TRANSFERS: usize = 9;
/// Most lines about boots that failed so that there is nothing to compare.
const MAX_FAILING: usize = 12;
/// Most and least lines about how the kernels were built and what code differs.
const MAX_BUILT: usize = 14;
const MIN_BUILT: usize = 3;
/// Most lines about what of a change comes from the source.
const MAX_SPLIT: usize = 14;
/// Most lines about what made the kernel execute.
const MAX_REASONS: usize = 14;
/// Most and least lines about what was compared. What the variants change comes first.
const MAX_COMPARED: usize = 18;
const MIN_COMPARED: usize = 5;
/// Most and least lines about what the figures do not show.
const MAX_LIMITS: usize = 14;
const MIN_LIMITS: usize = 12;
/// Least lines about it beside the effects of a matrix.
const MIN_LIMITS_OF_MATRIX: usize = 5;
/// Most and least lines about the effects of the settings of a matrix.
const MAX_EFFECTS: usize = 12;
const MIN_EFFECTS: usize = 10;
/// Most lines with the names of files beside the mail.
const MAX_ATTACHED: usize = 3;
/// Most lines about how to repeat the run, without files.
const MAX_RECIPE: usize = 20;

/// Returns the mail: its headers, then an empty line and the body. If the patches that were compared came in a mail, it
/// is a reply to that mail. `results` is the input of the comparison,
/// `explained` has what was executed, with the functions behind its verdicts, `recipe` has what is needed to repeat the
/// run, and `attached` names the files that go beside the mail.
pub fn mail(
    comparison: &Comparison,
    results: &Results<'_>,
    explained: &[Explained],
    recipe: &Recipe<'_>,
    attached: &[&str],
) -> String {
    with_versions(comparison, results, explained, |comparison, results, explained| {
        written(comparison, results, explained, recipe, attached)
    })
}

/// Calls `with` for variants whose names do not move: those of `newest` and the like are versions.
fn with_versions<T>(
    comparison: &Comparison,
    results: &Results<'_>,
    explained: &[Explained],
    with: impl FnOnce(&Comparison, &Results<'_>, &[Explained]) -> T,
) -> T {
    let Some(versions) = Versions::of(results) else {
        return with(comparison, results, explained);
    };
    let mut renamed = comparison.clone();
    versions.rename(&mut renamed);
    let (variants, reading) = (versions.variants(results), versions.reading(results.reading));
    let columns = variants
        .iter()
        .zip(&results.variants)
        .map(|(variant, column)| VariantBoots { variant, boots: column.boots.clone() });
    let results =
        Results { experiment: results.experiment, reading: &reading, variants: columns.collect() };
    with(&renamed, &results, &versions.explained(explained))
}

/// Returns the mail of variants whose names do not move.
fn written(
    comparison: &Comparison,
    results: &Results<'_>,
    explained: &[Explained],
    recipe: &Recipe<'_>,
    attached: &[&str],
) -> String {
    let split = build::split(comparison);
    // Kernels that were built to take the change apart are told of in its sentences alone.
    let first = split_columns(comparison).map(|_| first_columns(comparison, results, 2));
    let (comparison, of_first, explained) = match &first {
        Some((comparison, results)) => {
            let is_told = |it: &&Explained| it.variant == comparison.variants[1].name;
            let told = explained.iter().take_while(is_told).count();
            (comparison, results, &explained[..told])
        }
        None => (comparison, results, explained),
    };
    let finding = subject::words(comparison, of_first, explained);
    let answered = reproduce::answered(results);
    let reply = answered.and_then(|(subject, mail)| reply::headers(subject, mail));
    let mut pieces: Vec<Piece> = Vec::new();
    // A reply has the subject of what it answers.
    let said = reply.as_ref().map(|_| sentence(subject::as_sentence(&finding)));
    pieces.extend(said.map(|said| Kept(text(&[said], &MAIL))));
    let design = [sweep::blocks(comparison), steps::block(comparison).into_iter().collect()];
    pieces.extend(design.map(|blocks| Kept(cut(text(&blocks, &MAIL), MAX_DESIGN))));
    let failing: Vec<Block> = failing::sentences(comparison).into_iter().map(sentence).collect();
    let is_compared = failing.is_empty();
    pieces.push(Kept(whole(&failing, MAX_FAILING)));
    let has_rows = comparison.points.is_empty() && is_compared;
    let shown = if has_rows { rows::rows(comparison) } else { Vec::new() };
    let leading = subject::leading(comparison, of_first);
    let cause = cause::functions(comparison, explained, leading.as_ref());
    if has_rows {
        let by_kernel = explained.iter().flat_map(headline::by_kernel).map(sentence);
        let apart: Vec<Block> = split.iter().cloned().chain(by_kernel).collect();
        pieces.push(Kept(whole(&apart, MAX_SPLIT)));
        let cause = Sentences {
            name: "functions",
            blocks: cause.iter().map(sentence).collect(),
            most: MAX_CAUSE,
            least: MIN_CAUSE,
        };
        let built = Sentences {
            name: "how builds and code differ",
            blocks: cause::built(comparison, explained, leading.as_ref(), !split.is_empty()),
            most: MAX_BUILT,
            least: MIN_BUILT,
        };
        // Which functions a patch changes is known for sure.
        let transfers = Sentences {
            name: "transfers of lines",
            blocks: explained.iter().flat_map(transfers::sentences).map(sentence).collect(),
            most: MAX_TRANSFERS,
            least: MIN_TRANSFERS,
        };
        let ordered =
            if comparison.notes.builds.is_empty() { [built, cause] } else { [cause, built] };
        pieces.extend(ordered);
        pieces.push(transfers);
        let threads = cause::threads(explained, leading.as_ref());
        let states: Vec<Block> =
            build::states_of(comparison).into_iter().chain(threads).map(sentence).collect();
        pieces.push(Kept(text(&states, &MAIL)));
        pieces.push(Rows);
        // What a matrix asks.
        let metrics = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
        let effects = metrics.flat_map(|table| {
            let leading = leading.as_ref().filter(|[_, workload, _]| *workload == table.workload);
            effects::sentences(table, comparison, leading.map(|[.., phase]| &**phase))
        });
        let effects: Vec<Block> = effects.map(sentence).collect();
        pieces.push(Sentences {
            name: "effects",
            blocks: effects,
            most: MAX_EFFECTS,
            least: MIN_EFFECTS,
        });
        pieces.push(Spare {
            name: "instructions by reason",
            rank: 1,
            text: cut(text(&cause::by_reason(explained), &MAIL), MAX_REASONS),
        });
        pieces.push(Kept(text(&unmet(comparison), &MAIL)));
        pieces.extend(other_findings(comparison, explained, leading.as_ref()));
    }
    pieces.push(spare("the check by other figures", 1, &cross_check::blocks(comparison)));
    pieces.push(Shrinks {
        title: COMPARED,
        notes: compared_briefly(comparison, of_first),
        most: MAX_COMPARED,
        least: MIN_COMPARED,
    });
    let limits = is_compared.then(|| limits(comparison, &cause)).flatten();
    pieces.extend(limits.map(|notes| Shrinks {
        title: LIMITS,
        notes,
        most: MAX_LIMITS,
        least: if is_matrix(comparison) { MIN_LIMITS_OF_MATRIX } else { MIN_LIMITS },
    }));
    pieces.extend(reproduce::boots(results).map(|boots| spare("boots", 4, &[boots])));
    pieces.extend(reproduction(results, recipe, attached));
    pieces.extend(beside(attached).map(|files| Kept(cut(text(&[files], &MAIL), MAX_ATTACHED))));
    let table = |most| {
        let rows = rows::sections(comparison, explained, &shown, leading.as_ref(), most);
        sections(&rows, &MAIL)
    };
    let body = fit::body(&pieces, shown.len(), table);
    format!("{}\n{}", reply.unwrap_or_else(|| header(&finding)), guarded(&body))
}

/// Whether the variants are a matrix, so that their settings have effects.
fn is_matrix(comparison: &Comparison) -> bool {
    comparison.tables.iter().any(|table| table.effects.is_some())
}

/// Names the files that go beside a mail. `None` if there are none.
pub fn beside(attached: &[&str]) -> Option<Block> {
    (!attached.is_empty())
        .then(|| sentence(format!("On request: {}.", escape(&attached.join(", ")))))
}

/// Lays out a paragraph that is left out where there is no room.
fn spare(name: &'static str, rank: u8, blocks: &[Block]) -> Piece {
    Spare { name, rank, text: text(blocks, &MAIL) }
}

/// Lays out what stands beside the rows with verdicts: oddities and other differences of their tables, the
/// effects of axes, events, and the counters that moved most.
fn other_findings(
    comparison: &Comparison,
    explained: &[Explained],
    leading: Option<&[String; 3]>,
) -> Vec<Piece> {
    let of = |kind| comparison.tables.iter().filter(move |table| table.kind == kind);
    let odd: Vec<Block> =
        of(Kind::Metrics).flat_map(|table| oddities::blocks(table, comparison)).collect();
    let moved = of(Kind::Counters)
        .flat_map(|table| counters::blocks(table, comparison, explained, leading));
    let moved: Vec<Block> = moved.collect();
    let events: Vec<Block> =
        of(Kind::Events).flat_map(|table| table::blocks(table, comparison)).collect();
    vec![
        spare("other differences of the figures", 2, &odd),
        // Without times, they are all that tells what the kernels did, but for a program's text.
        spare("counters", if comparison.mode == Mode::Exact { 1 } else { 2 }, &moved),
        spare("events", 5, &events),
    ]
}

/// Returns the sentences on rows that were chosen for verdicts but are not there.
fn unmet(comparison: &Comparison) -> Vec<Block> {
    let tables = comparison.tables.iter();
    tables.filter_map(|table| crate::verdicts::unmet(table, comparison)).map(sentence).collect()
}

/// Lays out how to repeat the run. Files that the run needs have a paragraph each.
fn reproduction(results: &Results<'_>, recipe: &Recipe<'_>, attached: &[&str]) -> Vec<Piece> {
    let built = reproduce::built(results).into_iter().collect::<Vec<_>>();
    let mut pieces = vec![spare("how the kernels were built", 2, &built)];
    if let Some(one) = reproduce::OneCommand::of(results, recipe) {
        pieces.extend(one.pieces(recipe.version, attached));
        return pieces;
    }
    pieces.push(Kept(cut(text(&reproduce::how(results, recipe), &MAIL), MAX_RECIPE)));
    if results.experiment.imported.is_none() {
        let programs = reproduce::programs(results, attached);
        let files = recipe.files.iter();
        let file = |(name, text): &(String, String)| reproduce::short_file(name, text, attached);
        let mut needed: Vec<Piece> = files.map(file).chain(programs).collect();
        // Without one of them the others repeat nothing.
        let is_lost = |it: &Piece| matches!(it, Piece::File { text: None, is_beside: false, .. });
        if needed.iter().any(is_lost) {
            for it in &mut needed {
                if let Piece::File { text, .. } = it {
                    *text = None;
                }
            }
        }
        pieces.extend(needed);
    }
    pieces
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
    note::block(COMPARED, &notes)
}

/// Returns what differs between the kernels. Notes on which all of them agree are left out.
fn compared_briefly(comparison: &Comparison, results: &Results<'_>) -> Vec<Note> {
    let notes = notes::all(comparison).into_iter().filter(tells);
    let notes = notes.filter(|note| note.topic != notes::OF_USER);
    let notes = notes.filter(|note| *note != notes::no_complaint());
    // A variant of a matrix has its settings in its name.
    let is_in_name = |note: &Note| {
        let mut name = note.variant.iter();
        note.topic == notes::CHANGED[0] && name.any(|it| it.ends_with(&note.text))
    };
    let notes = notes.filter(|note| !is_in_name(note));
    // The subject and the command name the patches of a kernel that has no other source than the baseline.
    let base = comparison.variants.first().and_then(|it| results.column(&it.name));
    let is_patched = |note: &Note| {
        let variant = note.variant.as_deref().and_then(|name| results.column(name));
        let mut sides = base.into_iter().zip(variant);
        note.topic == notes::ORIGIN
            && sides.any(|(base, it)| reproduce::patches(base, it).is_some())
    };
    let notes = notes.filter(|note| !is_patched(note));
    // Compilers stand beside the other differences of how kernels were built.
    let has_builds = !comparison.notes.builds.is_empty();
    let notes = notes.filter(|note| !(has_builds && note.topic == notes::COMPILER));
    // Virtual machines differ only in the memory that their kernels leave free. The machine's own note says that they have
    // no huge pages.
    let machine = reproduce::machine(results);
    let has_machine = machine.is_some();
    let notes = notes.filter(|note| !(has_machine && ["machine", STATES[0]].contains(&note.topic)));
    let (changed, others): (Vec<Note>, Vec<Note>) =
        notes.partition(|note| notes::CHANGED.contains(&note.topic));
    let (kernels, others): (Vec<Note>, Vec<Note>) =
        others.into_iter().partition(|note| note.topic == "kernel");
    // A kernel's complaint can void the figures, so it is not left out for room before the rest.
    let (complaints, others): (Vec<Note>, Vec<Note>) =
        others.into_iter().partition(|note| note.topic == notes::COMPLAINTS);
    // The names of a matrix's variants say what they change.
    let ran = reproduce::workloads(results).chain(machine);
    let first: Vec<Note> = match is_matrix(comparison) {
        true => ran.chain(changed).collect(),
        false => changed.into_iter().chain(ran).collect(),
    };
    first.into_iter().chain(kernels).chain(complaints).chain(others).collect()
}

/// Printed about times that were measured under emulation.
const EMULATION: &str = "QEMU translated the guest's instructions (TCG): times say nothing of a \
                         real machine's instructions, caches, TLBs, memory latency and distances \
                         between nodes. Counts that do not depend on time are valid.";

/// Says what figures of exact mode are.
const COUNTED: &str = "in an emulated machine without caches: instructions, not time";
/// Says what they are, and what they are not, where the effects of a matrix need the room.
const COUNTED_BRIEFLY: &str = "instructions in an emulated machine, not time; no caches, TLBs, latency of memory, waiting \
                               between CPUs, or fast string instructions (loops or a rep, which counts as one)";
/// Says what a seed and a luck floor are.
const LUCK: &str = "each seed boots with another memory layout and timing; a change within the luck floor \
                    can come from these alone";

/// Returns what emulation or exact mode does not model, how many seeds there are, and what timers are if the sentences
/// on the `cause` name them. `None` in measured mode without emulation.
fn limits(comparison: &Comparison, cause: &[String]) -> Option<Vec<Note>> {
    match comparison.mode {
        Mode::Exact => {
            let [times, unmodelled] = exact::limits(comparison.arch);
            let is_judged = comparison.tables.iter().flat_map(|it| &it.rows).any(Row::is_judged);
            let is_matrix = is_matrix(comparison);
            let first = match (is_judged, is_matrix) {
                (false, _) => vec![times, unmodelled],
                (true, true) => vec![Note::on_all("counted", COUNTED_BRIEFLY.to_owned())],
                (true, false) => vec![Note::on_all("counted", COUNTED.to_owned()), unmodelled],
            };
            let seeds = exact::seeds(comparison).into_iter().map(|note| match is_judged {
                true if !is_matrix => Note { text: format!("{}; {LUCK}", note.text), ..note },
                _ => note,
            });
            let ticks = headline::timers(cause).map(|it| Note::on_all("ticks", it.to_owned()));
            let notes = first.into_iter().chain(ticks).chain(exact::transfers(comparison));
            let notes = notes.chain(exact::misses(comparison)).chain(seeds);
            Some(notes.chain(exact::cautions(comparison)).collect())
        }
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
