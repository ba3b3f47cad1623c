//! Sentences on parts of a change that a reader must tell apart: instructions of IBT, loops that copy and clear memory, for
//! which a real machine usually has fast string instructions, and waiting for locks. Kernel threads beside a phase are apart
//! from these.

use code::{IBT, Instrumentation};
use compare::{
    Contribution, Difference, Explanation, Headline, KernelThread, Section, Subject, is_copy_loop,
};
use kernelfiles::entry::THREAD;
use model::INSTRUCTIONS;

use super::headline::phase_name;
use super::locks;
use crate::ascii::{excerpt, few};
use crate::words::{self, Of};

/// Most loops that copy and clear memory that are named.
const MAX_LOOPS: usize = 2;
/// Loops that clear or copy as many pages on both sides differ by less than this share.
const NOTABLE: f64 = 0.1;
/// Least share of a change, in either direction, at which such parts are mentioned.
const LEAST: f64 = 0.05;

/// Returns sentences on the changes of these phases: which part of it is IBT, the change without loops that clear and copy
/// memory, if `has_loops`, and locks that were waited for. There are none for a phase if these parts are small, or the cost
/// is another one than instructions. If its change is within luck, there is only that on loops, where they hide a change.
pub fn sentences<'a>(
    explanation: &'a Explanation,
    headlines: impl Iterator<Item = &'a Headline>,
    has_loops: impl Fn(&Headline) -> bool,
) -> impl Iterator<Item = String> {
    let is_counted = explanation.cost.name == INSTRUCTIONS;
    headlines.filter(move |_| is_counted).flat_map(move |it| {
        let section = explanation.section(Some(&it.phase));
        let loops = section.filter(|_| has_loops(it));
        let section = section.filter(|it| it.totals.kernel.beyond_luck() == Some(true));
        let landings = section.and_then(|section| landings(section, &it.phase));
        let locks = section.and_then(|section| locks::sentence(section, &it.phase));
        let loops = loops.and_then(|section| without_loops(section, &it.phase));
        landings.into_iter().chain(loops).chain(locks)
    })
}

/// Most kernel threads that are named.
const MAX_THREADS: usize = 3;
/// Least share of a change at which a kernel thread is named, and one that only one side ran.
const OF_THREAD: f64 = 0.01;
const OF_ONE_SIDE: f64 = 0.001;

/// Returns a sentence on the kernel threads that have a part of a change: they work beside the phase, as DAMON does. `None`
/// if there are none, or the headline names them itself.
pub fn threads(it: &Headline) -> Option<String> {
    let share = |thread: &KernelThread| {
        let [base, new] = thread.instructions;
        (new - base) / it.kernel.change()
    };
    let is_told = |thread: &&KernelThread| {
        let least = if thread.instructions.contains(&0.0) { OF_ONE_SIDE } else { OF_THREAD };
        let name = format!("{THREAD}{}", thread.function);
        share(thread).abs() >= least && !it.holders().any(|holder| holder.name == name)
    };
    let named = it.threads.iter().filter(is_told).map(|thread| {
        let [base, new] = thread.instructions.map(|it| words::figure(it, 0));
        let share = words::decimal(Some(100.0 * share(thread)), 1);
        let function = excerpt(&thread.function);
        format!("{function} {base} instructions before, {new} now ({share} % of the change)")
    });
    let named: Vec<String> = few(MAX_THREADS, named);
    (!named.is_empty() && !it.at_equal_entries && it.unit == INSTRUCTIONS).then(|| {
        format!(
            "Phase {}: kernel threads ran beside it: {}.",
            phase_name(&it.phase),
            named.join(", ")
        )
    })
}

/// Returns the instructions of IBT that only one side of a section executed. Under IBT, functions begin with an instruction
/// at which indirect calls may arrive. Each entry executes it, also where the kernel has overwritten it with a NOP. `None`
/// if they are a small part of the change.
fn of_landings(section: &Section) -> Option<[f64; 2]> {
    let of = |it: &Contribution| {
        let Instrumentation { gained, lost } = &it.instrumentation;
        let entries = it.calls.as_ref()?.entries;
        match (gained.contains(IBT), lost.contains(IBT)) {
            (true, _) => Some([0.0, entries.new]),
            (_, true) => Some([entries.base, 0.0]),
            _ => None,
        }
    };
    let each = section.contributions.iter().filter_map(of);
    let [base, new] = each.fold([0.0; 2], |[base, new], it| [base + it[0], new + it[1]]);
    let share = (new - base) / section.totals.kernel.change();
    (share.is_finite() && share.abs() >= LEAST).then_some([base, new])
}

/// Returns the change of a section without the instructions of IBT, followed by `words`. `None` if they are a small part of
/// it.
pub fn change_without_landings(section: &Section, decimals: usize, words: &str) -> Option<String> {
    without(section, of_landings(section)?, decimals, words)
}

fn landings(section: &Section, phase: &str) -> Option<String> {
    let [base, new] = of_landings(section)?;
    let (sum, more) = (new - base, if new < base { "fewer" } else { "more" });
    let without = change_without_landings(section, 2, "").map(|it| format!("; without it: {it}"));
    Some(format!(
        "Phase {}: the endbr64 of IBT, one at each entry, is {} {more}, {} % of the change{}.",
        phase_name(phase),
        words::figure(sum.abs(), 0),
        words::decimal(Some(100.0 * sum / section.totals.kernel.change()), 1),
        without.unwrap_or_default(),
    ))
}

/// Formats the change of a section without a part of its instructions, followed by `words` and whether it may be luck. The
/// part has hardly a share in the floor.
fn without(
    section: &Section,
    [base, new]: [f64; 2],
    decimals: usize,
    words: &str,
) -> Option<String> {
    let total = section.totals.kernel;
    let change = Of::Number.change([total.base - base, total.new - new], decimals)?;
    let left = total.change() - (new - base);
    let is_luck = total.floor.is_some_and(|floor| left.abs() <= floor);
    Some(format!("{change}{words}{}", if is_luck { ", which may be luck" } else { "" }))
}

/// Loops that clear and copy whole pages, each with what it does. They take as many instructions for each page on both
/// sides: newer kernels clear several pages by the same loop (arch/x86/lib/clear_page_64.S, copy_page_64.S).
const OF_PAGES: [(&[&str], &str); 2] =
    [(&["clear_page_orig", "__clear_pages_unrolled"], "clear"), (&["copy_page_regs"], "copy")];

/// Says whether loops cleared or copied more or fewer pages. Other loops have no such number: what they take for a byte
/// depends on the size.
fn volume(loops: &[(&str, Difference)]) -> String {
    let of = |(names, verb): &(&[&str], &str)| {
        let own = loops.iter().filter(|(name, _)| names.contains(name));
        let [base, new] = own.fold([0.0; 2], |[base, new], (_, it)| [base + it.base, new + it.new]);
        let is_notable = base.min(new) > 0.0 && (new - base).abs() >= NOTABLE * base.max(new);
        is_notable.then(|| format!("{verb} {} pages", if new < base { "fewer" } else { "more" }))
    };
    let said: Vec<String> = OF_PAGES.iter().filter_map(of).collect();
    if said.is_empty() { String::new() } else { format!(": they {}", said.join(" and ")) }
}

fn without_loops(section: &Section, phase: &str) -> Option<String> {
    let own = section.contributions.iter().filter_map(|it| match &it.subject {
        Subject::Function { name, .. } if is_copy_loop(name) => Some((&**name, it.instructions)),
        _ => None,
    });
    let mut changed: Vec<(&str, Difference)> = own.filter(|(_, it)| it.change() != 0.0).collect();
    changed.sort_by(|(_, one), (_, other)| other.change().abs().total_cmp(&one.change().abs()));
    let [base, new] =
        changed.iter().fold([0.0; 2], |[base, new], (_, it)| [base + it.base, new + it.new]);
    let names = few(MAX_LOOPS, changed.iter().map(|it| it.0)).join(", ");
    let without = without(section, [base, new], 2, "")?;
    // They can hide a change of the rest.
    let kernel = section.totals.kernel;
    let left = kernel.change() - (new - base);
    let is_told =
        kernel.beyond_luck() == Some(true) || kernel.floor.is_some_and(|floor| left.abs() > floor);
    let other = volume(&changed);
    (is_told && (new - base).abs() >= LEAST * kernel.change().abs()).then(|| {
        format!(
            "Phase {}: loops that copy and clear memory ({names}) take {} instructions before, {} now{other}. A real \
             machine usually does long ones by fast string instructions. Without them: {without}.",
            phase_name(phase),
            words::figure(base, 0),
            words::figure(new, 0),
        )
    })
}
