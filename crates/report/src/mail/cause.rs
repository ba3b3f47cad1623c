//! What a mail says of the cause: the functions that hold the change, how the kernels were built, and what made the
//! kernel execute.

use compare::{Comparison, Explained, Headline, RATE, Reason, RowVerdict};

use kernelfiles::entry::THREAD;

use crate::ascii::excerpt;
use crate::build;
use crate::document::{self, Block, Column, note, sentence};
use crate::explain::{apart, cause, headline, work};
use crate::notes;
use crate::words::{Of, figure, phase_alone};

/// Most functions that are named, one for each phase.
const MAX_FUNCTIONS: usize = 2;

/// Returns a sentence for each of the phases with the largest changes in which a function holds the change. That with
/// the largest change has the functions in it. The change of the variant, workload and phase `leading` is among them, also
/// if no function holds it. Where the total did not change, a sentence has what did.
pub fn functions(
    comparison: &Comparison,
    explained: &[Explained],
    leading: Option<&[String; 3]>,
) -> Vec<String> {
    let is_other = |of: &Explained, it: &Headline| {
        leading.is_none_or(|leading| *leading != [&*of.variant, &*of.workload, &*it.phase])
    };
    let all = explained.iter().flat_map(|of| of.headlines.iter().map(move |it| (of, it)));
    let named = all.filter(|(of, it)| headline::names(it) || !is_other(of, it));
    let mut named: Vec<(usize, (&Explained, &Headline))> = named.enumerate().collect();
    let size = |it: &Headline| ((it.kernel.new - it.kernel.base) / it.kernel.base).abs();
    named.sort_by(|(_, (of, it)), (_, (other_of, other))| {
        let is_other = is_other(of, it).cmp(&is_other(other_of, other));
        is_other.then(size(other).total_cmp(&size(it)))
    });
    // The variants of one kernel usually change in the same functions.
    let mut told: Vec<(&str, &str, bool, Vec<&str>)> = Vec::new();
    named.retain(|(_, (of, it))| {
        let is_more = it.kernel.new > it.kernel.base;
        let holds = (&*of.workload, &*it.phase, is_more, headline::functions(it).collect());
        let is_new = !told.contains(&holds);
        told.push(holds);
        is_new
    });
    named.truncate(MAX_FUNCTIONS);
    let work = named.first().and_then(|(_, (of, it))| {
        let said = work::sentence(it)?;
        Some(first_words(of, explained) + &said)
    });
    let said = named.into_iter().enumerate().flat_map(|(place, (_, (of, it)))| {
        let said = match place {
            0 => headline::in_short(it),
            _ => vec![headline::headline(it)],
        };
        said.into_iter().map(|said| first_words(of, explained) + &said)
    });
    let named: Vec<String> = said.collect();
    // Of several changes, those that matter are those of the one that is explained first.
    let is_asked = |it: &&Explained| leading.is_none_or(|leading| leading[0] == it.variant);
    let others = explained.iter().filter(is_asked).flat_map(|it| {
        let own = it.headlines.iter();
        let own = own.filter(|it| leading.is_none_or(|leading| leading[2] == it.phase));
        let has_loops = move |headline: &Headline| !is_said_of(comparison, it, &headline.phase);
        let apart = apart::sentences(&it.explanation, own, has_loops);
        let said = apart.chain(headline::offset_reasons(it));
        said.map(|said| first_words(it, explained) + &said)
    });
    // What a change may rest on stands before its details.
    let (first, rest) = named.split_at(named.len().min(1));
    first.iter().cloned().chain(work).chain(others).chain(rest.iter().cloned()).collect()
}

/// Returns a sentence on the kernel threads that ran beside the phase `leading`, as a monitor does, if its kernels were in
/// other states. `None` if they have no part of its change.
pub fn threads(explained: &[Explained], leading: Option<&[String; 3]>) -> Option<String> {
    let [variant, workload, phase] = leading?;
    let is_its = |it: &&Explained| it.variant == *variant && it.workload == *workload;
    let it = explained.iter().find(is_its).filter(|it| !it.explanation.states.is_empty())?;
    let headline = it.headlines.iter().find(|it| it.phase == *phase)?;
    Some(first_words(it, explained) + &apart::threads(headline)?)
}

/// Whether the table says what the change of a phase is without loops that copy and clear memory.
fn is_said_of(comparison: &Comparison, explained: &Explained, phase: &str) -> bool {
    let Some(column) = comparison.variants.iter().position(|it| it.name == explained.variant)
    else {
        return false;
    };
    let is_own = |it: &RowVerdict<'_>| {
        it.table.workload == explained.workload && phase_alone(it.row) == phase
    };
    let mut rows = comparison.verdicts(column).filter(is_own);
    rows.any(|it| it.row.without_loops(column).is_some())
}

/// Returns sentences on how the kernels were built differently, that of the variant `leading` first, and on how many of the
/// functions executed have other code. `is_split` says whether what the source changed alone was measured.
pub fn built(
    comparison: &Comparison,
    explained: &[Explained],
    leading: Option<&[String; 3]>,
    is_split: bool,
) -> Vec<Block> {
    let leading = leading.map(|[variant, ..]| &**variant);
    let mut builds = build::differences(comparison, is_split, leading);
    // The variants of one kernel have the same code.
    let mut told: Vec<(&str, [Option<&str>; 2])> = Vec::new();
    let code = explained.iter().filter_map(|it| {
        let kernel = (&*it.workload, kernel(comparison, &it.variant));
        if kernel.1.iter().all(Option::is_some) && told.contains(&kernel) {
            return None;
        }
        told.push(kernel);
        let said = cause::differing(it.explanation.section(None)?)?;
        Some(first_words(it, explained) + &said)
    });
    let can_split = comparison.variants.len() == 2 && comparison.arch.is_usual();
    let is_open = !is_split && can_split && !comparison.notes.builds.is_empty();
    // One paragraph has both, which is always printed.
    if let Some(last) = builds.last_mut().filter(|_| is_open) {
        *last += " What the source alone changed was not measured (`try --split`).";
    }
    builds.into_iter().chain(code).map(sentence).collect()
}

/// Returns the release of a variant's kernel, and its origin with its patches, as far as they are known.
fn kernel<'a>(comparison: &'a Comparison, variant: &str) -> [Option<&'a str>; 2] {
    let column = comparison.variants.iter().position(|it| it.name == variant);
    ["kernel", notes::ORIGIN].map(|name| {
        let fact = comparison.notes.facts.iter().find(|it| it.name == name)?;
        fact.values.get(column?)?.as_deref()
    })
}

/// Most system calls and other reasons that are listed for the size of their changes.
const MAX_REASONS: usize = 4;

/// Lays out which system calls, exceptions, interrupts and kernel threads have the change, where no function holds it.
pub fn by_reason(explained: &[Explained]) -> Vec<Block> {
    let open = explained.iter().filter(|it| it.headlines.iter().any(headline::is_open));
    let blocks = open.flat_map(|it| {
        let changed = it.explanation.reasons.iter().flatten();
        let changed: Vec<&Reason> =
            changed.filter(|it| it.cost.beyond_luck() == Some(true)).collect();
        if changed.len() < 2 {
            return Vec::new();
        }
        let phases = if it.headlines.len() > 1 { " of the measured phases" } else { "" };
        let title = format!(
            "{}Kernel instructions{phases} by reason, beyond luck (at most {:.0} % of these by luck):",
            first_words(it, explained),
            100.0 * RATE,
        );
        let names = [&it.explanation.base, &it.explanation.new].map(|side| excerpt(&side.name));
        let heads = names.map(|name| Column::figures("").named(name));
        let columns = [Column::words("reason")].into_iter().chain(heads);
        let columns: Vec<Column> = columns.chain([Column::figures("change")]).collect();
        let (largest, others) = changed.split_at(changed.len().min(MAX_REASONS));
        let shown = largest.iter().chain(others.iter().filter(|it| runs_on_one_side(it)));
        let rows: Vec<_> = shown.map(|it| row(it)).collect();
        let left = changed.len() - rows.len();
        let more = (left > 0).then(|| format!("{left} more."));
        let below = more.into_iter().chain(headline::start(it)).map(note);
        [sentence(title), document::table(columns, rows)].into_iter().chain(below).collect()
    });
    blocks.collect()
}

/// Whether only one of the kernels has this thread, such as that of a monitor. It is listed however small it is.
fn runs_on_one_side(Reason { name, cost }: &Reason) -> bool {
    name.starts_with(THREAD) && (cost.base == 0.0 || cost.new == 0.0)
}

fn row(Reason { name, cost }: &Reason) -> Vec<String> {
    let change = Of::Number.change([cost.base, cost.new], 2);
    vec![
        excerpt(name),
        figure(cost.base, 0),
        figure(cost.new, 0),
        change.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Returns the words before a sentence on one of several changes; empty if there is one. Changes of one workload are named
/// by their variants.
fn first_words(it: &Explained, all: &[Explained]) -> String {
    let variant = excerpt(&it.variant);
    match all {
        [_] => String::new(),
        _ if all.iter().all(|other| other.workload == it.workload) => format!("{variant}: "),
        _ => format!("{}, {variant}: ", excerpt(&it.workload)),
    }
}
