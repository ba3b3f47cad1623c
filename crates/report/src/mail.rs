//! The comparison as a mail, ready to send: a subject, the verdicts, the tables, other differences, what the
//! figures do not show, and how to run it again. Plain text in the style of the kernel's lists. Whatever
//! names a guest or a file brings, each line is of printable ASCII, has at most 78 letters, and is not
//! misread by a mailbox.

pub mod reproduce;
mod subject;
mod tables;
mod verdicts;

use compare::{Comparison, Explained, Results};
use model::Mode;

use crate::ascii::{escape, excerpt, fold};
use crate::brief::with_rows;
use crate::cross_check;
use crate::exact;
use crate::explain::headline;
use crate::notes::{self, Note, ORIGIN};
use crate::steps;
use crate::sweep;
use crate::verdicts::Layout;

pub use reproduce::Recipe;
pub use subject::header;

/// RFC 5322 asks for lines of at most 78 letters (2.1.1). One is kept free for [`guarded`].
pub const WIDTH: usize = 77;

/// The layout of sentences in a mail.
const LAYOUT: Layout = Layout { lines: hanging, marks: false };

/// Lines of `text`, the first after `first`, the others below where it began if that leaves room.
fn hanging(first: &str, text: &str) -> String {
    match first.len() <= WIDTH / 2 {
        true => fold(WIDTH, first, &" ".repeat(first.len()), text),
        false => fold(WIDTH, "  ", "    ", &format!("{}{text}", first.trim_start())),
    }
}

/// The mail: one header, the subject, then an empty line and the body. `results` is the input of the
/// comparison, `explained` names the functions behind its verdicts, and `recipe` is what is needed to run it
/// again.
pub fn mail(
    comparison: &Comparison,
    results: &Results<'_>,
    explained: &[Explained],
    recipe: &Recipe<'_>,
) -> String {
    // The origin of kernels is printed with the commands that get them, if those are known.
    let is_told = |note: &Note| note.topic == ORIGIN && results.experiment.imported.is_none();
    let seeds = (comparison.mode == Mode::Exact).then(|| exact::seeds(comparison));
    let notes = notes::all(comparison).into_iter().filter(|note| !is_told(note));
    let notes: Vec<Note> = seeds.into_iter().flatten().chain(notes).collect();
    let one_place = comparison.points.is_empty();
    let states = notes::states(comparison);
    let parts = [
        (!states.is_empty()).then(|| section(notes::STATES, &states)),
        sweep::text(comparison, &LAYOUT),
        one_place.then(|| verdicts::text(comparison) + &functions(explained)),
        one_place.then(|| tables::text(comparison)),
        steps::text(comparison, &LAYOUT),
        cross_check::sentences(comparison)
            .map(|notes| section("By both clocks (positive gains are better):", &notes)),
        Some(section("What was compared:", &notes)),
        limits(comparison).map(|limits| section("What this does not show:", &limits)),
        reproduce::boots(results),
        Some(reproduce::text(results, recipe)),
    ];
    let body = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    format!("{}\n{}", header(&subject::words(comparison)), guarded(&body))
}

/// The verdicts of a comparison, and the rows of its tables that have one.
pub fn verdicts_and_rows(comparison: &Comparison) -> String {
    let mut judged = comparison.clone();
    for table in &mut judged.tables {
        let rows = table.rows.iter().filter(|row| row.is_judged()).cloned().collect();
        *table = with_rows(table, rows);
    }
    judged.tables.retain(|table| !table.rows.is_empty());
    format!("{}\n{}", verdicts::text(comparison), tables::text(&judged))
}

/// What was compared: kernels, machine and workload.
pub fn compared(comparison: &Comparison) -> String {
    let notes: Vec<Note> =
        notes::states(comparison).into_iter().chain(notes::all(comparison)).collect();
    section("What was compared:", &notes)
}

/// Most phases whose function is named.
const MAX_FUNCTIONS: usize = 4;

/// A sentence for each phase in which one function holds the change.
fn functions(explained: &[Explained]) -> String {
    let named = explained.iter().flat_map(|it| {
        let first = match explained {
            [_] => String::new(),
            _ => format!("{}, {}: ", excerpt(&it.workload), excerpt(&it.variant)),
        };
        let headlines = it.headlines.iter().filter(|headline| headline.function.is_some());
        headlines
            .map(move |it| fold(WIDTH, "", "    ", &format!("{first}{}", headline::headline(it))))
    });
    let named: String = named.take(MAX_FUNCTIONS).collect();
    if named.is_empty() { named } else { format!("\n{named}") }
}

/// The limits of emulation.
const EMULATION: &str = "QEMU translated the guest's instructions (TCG): times say nothing of a \
                         real machine's instructions, caches, TLBs, memory latency and distances \
                         between nodes. The kernels' counters are valid.";

/// What emulation and exact mode do not model.
fn limits(comparison: &Comparison) -> Option<Vec<Note>> {
    match comparison.mode {
        Mode::Exact => Some(exact::limits().into()),
        Mode::Measured if comparison.emulated => {
            Some(vec![Note::on_all("emulation", EMULATION.to_owned())])
        }
        Mode::Measured => None,
    }
}

/// Notes below a title, each after its topic and its variant, which have a column of their own if they are
/// short.
fn section(title: &str, notes: &[Note]) -> String {
    let mut text = format!("{title}\n");
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let topics = longest(&mut notes.iter().map(|note| note.topic.len()));
    let names = longest(&mut notes.iter().map(|note| note.variant.as_ref().map_or(0, String::len)));
    let mut last = "";
    for Note { topic, variant, text: said } in notes {
        let shown = if *topic == last { "" } else { topic };
        last = topic;
        let first = match variant {
            Some(name) if topics + names <= WIDTH / 3 => {
                format!("  {shown:topics$}  {name:names$}  ")
            }
            None if topics + names <= WIDTH / 3 => format!("  {shown:topics$}  "),
            Some(name) => {
                text.push_str(&fold(WIDTH, "  ", "    ", &format!("{topic}, {name}:")));
                text.push_str(&fold(WIDTH, "    ", "    ", said));
                continue;
            }
            None => {
                text.push_str(&fold(WIDTH, "  ", "    ", &format!("{topic}: {said}")));
                continue;
            }
        };
        text.push_str(&fold(WIDTH, &first, &" ".repeat(first.len()), said));
    }
    text
}

/// Puts a space before lines that a mailbox or a reader would misread: as the begin of a mail (`From `, the
/// mbox format), or as quoted text.
pub fn guarded(body: &str) -> String {
    let guard = |line: &str| match line.starts_with("From ") || line.starts_with('>') {
        true => format!(" {line}\n"),
        false => format!("{line}\n"),
    };
    body.lines().map(guard).collect()
}

/// A name as printed, cut if it is longer than `room`.
fn clipped(name: &str, room: usize) -> String {
    let mut name = escape(name);
    if name.len() > room {
        name.truncate(room.saturating_sub(3));
        name.push_str("...");
    }
    name
}
