//! The headlines of an explanation: a sentence for each phase.

use compare::{
    Code, CommonCallee, Difference, Divided, Explained, FEWEST_FOR_LISTS, FunctionByKernel,
    Headline, Holder, OwnCost, Reason, Section, capitalized,
};
use model::{ENTRIES, OUTSIDE_PHASES};

use super::divided::{ALL, called, shares};
use super::equal;
use super::figures::{self, figures};
use crate::ascii::{excerpt, few, shell_word};
use crate::document::{self, Block, Cell, Column, note};
use crate::words::{self, Of};

/// Returns a headline for each measured phase, or for `phase` alone. If call paths would help to name a
/// function, a sentence says how to record them.
pub fn headlines(headlines: &[Headline], phase: Option<&str>) -> Vec<String> {
    let asked = || headlines.iter().filter(|it| phase.is_none_or(|phase| it.phase == phase));
    asked().flat_map(in_full).chain(hint(asked())).collect()
}

/// Returns whether a change is beyond luck and call paths were recorded, but no functions make it up.
pub fn is_open(it: &Headline) -> bool {
    let is_held = it.function.is_some() || it.divided.as_ref().is_some_and(|it| it.complete);
    let is_beyond = it.kernel.beyond_luck() == Some(true) && !it.of_one_variant;
    it.followed && is_beyond && !is_held
}

/// Returns how to see which system calls have a change that no functions make up, or that luck may hide.
pub fn by_reason<'a>(headlines: impl Iterator<Item = &'a Headline>) -> Option<String> {
    let all: Vec<&Headline> = headlines.collect();
    if all.iter().any(|it| is_open(it)) {
        return Some(
            "`explain --by-syscall` divides the change between system calls, interrupts, softirqs and threads."
                .to_owned(),
        );
    }
    let hidden = all.iter().find(|it| is_hidden(it))?;
    Some(format!(
        "`explain --by-syscall --phase {}` shows which system calls, interrupts, softirqs and threads changed beyond \
         luck where the total of the phase did not.",
        shell_word(hidden.phase.as_bytes())
    ))
}

/// Whether luck may hide a change of a phase that is not small.
fn is_hidden(it: &Headline) -> bool {
    let Difference { base, new, .. } = it.kernel;
    let is_luck = it.kernel.beyond_luck() == Some(false) && !it.at_equal_entries;
    is_luck
        && !it.of_one_variant
        && it.listed
        && it.by_path
        && ((new - base) / base).abs() >= NOTABLE
}

/// Returns how to record call paths, if they would help to name a function.
pub fn hint<'a>(mut headlines: impl Iterator<Item = &'a Headline>) -> Option<String> {
    let lacks_paths = |it: &Headline| {
        let is_unnamed = it.kernel.beyond_luck() == Some(true) && !names(it);
        is_unnamed && it.listed && it.by_path && !it.followed && it.only_cause.is_none()
    };
    headlines.any(lacks_paths).then(|| {
        "`run --profile stacks` records call paths, which show a function and what it calls.".into()
    })
}

/// The reason by which a program starts.
const EXECVE: &str = "system call execve";
/// Least share of a change at which the start of a program is mentioned.
const NOTABLE: f64 = 0.01;

/// Returns a sentence on the share of a change that the start of the program has. `None` if it is small, luck or not
/// known, or if the start of the workload is not measured.
pub fn start(it: &Explained) -> Option<String> {
    let mut reasons = it.explanation.reasons.iter().flatten().filter(|_| it.plain);
    let execve = reasons.find(|it| it.name == EXECVE)?;
    let share = execve.cost.change() / it.explanation.section(None)?.totals.kernel.change();
    let is_beyond = execve.cost.beyond_luck() == Some(true);
    (is_beyond && share.is_finite() && share >= NOTABLE).then(|| {
        format!("{:.1} % of the change is in execve, which starts the program.", 100.0 * share)
    })
}

/// Returns a sentence for each function of the headlines on its instructions in all kernels of a split.
pub fn by_kernel(it: &Explained) -> impl Iterator<Item = String> {
    it.by_kernel.iter().map(|FunctionByKernel { phase, holder, kernels }| {
        let cost = |(name, cost): &(String, f64)| {
            format!("{} in {}", words::figure(*cost, 0), excerpt(name))
        };
        let costs = kernels.iter().map(cost).collect::<Vec<_>>().join(", ");
        format!("Phase {}, {}: {costs}.", phase_name(phase), called(holder))
    })
}

/// Most system calls and other reasons that are named where they offset each other.
const MAX_OFFSET: usize = 4;

/// Returns a sentence on system calls, exceptions, interrupts and kernel threads that changed beyond luck where the
/// total did not. `None` if the total changed, or none of them changed by a notable share of it.
pub fn offset_reasons(it: &Explained) -> Option<String> {
    let total = it.explanation.section(None).filter(|_| it.headlines.is_empty())?.totals.kernel;
    let is_notable = |it: &&Reason| {
        let is_beyond = it.cost.beyond_luck() == Some(true);
        is_beyond && it.cost.change().abs() >= NOTABLE * total.base
    };
    let reasons: Vec<&Reason> =
        it.explanation.reasons.iter().flatten().filter(is_notable).collect();
    let said = few(
        MAX_OFFSET,
        reasons
            .iter()
            .map(|it| format!("{} {}", excerpt(&it.name), words::signed(it.cost.change(), 0))),
    );
    (!reasons.is_empty() && total.beyond_luck() == Some(false)).then(|| {
        format!(
            "Parts of the kernel's instructions changed beyond luck, the total did not: {}.",
            said.join(", ")
        )
    })
}

/// Returns whether the headline names functions.
pub fn names(it: &Headline) -> bool {
    it.function.is_some() || it.divided.is_some()
}

/// Returns the names of the functions that a headline names.
pub fn functions(it: &Headline) -> impl Iterator<Item = &str> {
    it.holders().map(|it| &*it.name)
}

/// Returns what an entry is, and what timers are in exact mode, if sentences have them.
pub fn legend(said: &[String]) -> Option<String> {
    let is_used = said.iter().any(|it| it.contains(" entry") || it.contains(" entries"));
    let entry = is_used.then_some("An entry is one call or other start of a function.");
    let legends: Vec<&str> = [entry, timers(said)].into_iter().flatten().collect();
    (!legends.is_empty()).then(|| legends.join(" "))
}

/// Returns what the number of a timer's interrupts depends on, if a sentence names them.
pub fn timers(said: &[String]) -> Option<&'static str> {
    let names_one = |it: &String| TIMERS.iter().any(|name| it.contains(name));
    said.iter().any(names_one).then_some(
        "Ticks interrupt by guest time, 2 ns an instruction: for the same work a real machine usually has fewer. Other \
         timers, such as the scheduler's `hrtick`, interrupt as often as the kernel asks for. Interrupts also run work \
         that other code postponed.",
    )
}

/// Parts of the names of functions of timers' interrupts (`arch/x86/kernel/apic/apic.c`, `arch/x86/kernel/hpet.c`).
const TIMERS: [&str; 3] =
    ["apic_timer_interrupt", "common_interrupt", "hpet_msi_interrupt_handler"];
/// Fewest functions in a [`Holder`] that are named.
const PARTS: usize = 4;
/// Fewest functions in a part of a divided change that are named.
const PARTS_OF_PART: usize = 2;
/// Most functions in a [`Holder`] that a short list names.
const MAX_IN_SHORT: usize = 8;
/// A short list names functions with at least this share of the holder's change.
const NOTABLE_PART: f64 = 0.05;
/// Most functions in a [`Holder`] that are named, however much the others add up to.
const MAX_NAMED: usize = 12;

/// Returns the headline with the functions in which the change is: in the function that holds it, or a sentence for
/// each function between which it divides.
fn in_full(it: &Headline) -> Vec<String> {
    match &it.divided {
        Some(Divided { parts, .. }) => {
            let part = |of: &Holder| {
                let own = own(it, of, PARTS_OF_PART);
                format!("{}: {}{own}", called(of), figures(of, false))
            };
            [headline(it)].into_iter().chain(parts.iter().map(part)).chain(common(it)).collect()
        }
        _ => vec![with_functions(it)],
    }
}

/// Returns the headline with the functions in the one that holds the change.
fn with_functions(it: &Headline) -> String {
    let holder = it.function.as_ref().filter(|_| it.divided.is_none());
    let own = holder.map(|holder| own(it, holder, PARTS)).unwrap_or_default();
    let said = [headline(it) + &own].into_iter().chain(equal::beside(it)).chain(common(it));
    said.collect::<Vec<_>>().join(" ")
}

/// Returns a sentence on the function that many others call, and that has much of the change. Its part is in those of its
/// callers too.
fn common(it: &Headline) -> Option<String> {
    let CommonCallee { name, was, instructions, share, callers } = it.common.as_ref()?;
    let was = was.as_ref().map(|was| format!(" (before: {})", excerpt(was))).unwrap_or_default();
    Some(format!(
        "Phase {}, counted above too: {}{was} with what it calls has {:.1} % of the change, called from {callers} functions: \
         {}.",
        phase_name(&it.phase),
        excerpt(name),
        100.0 * share,
        figures::sides(instructions.map(|it| words::figure(it, 0)), "")
    ))
}

/// Returns the headline, and a sentence on the largest functions in the one that holds the change. Where the change
/// divides, returns a sentence with figures for each function between which it does, and such a list of the first one
/// after its figures.
pub fn in_short(it: &Headline) -> Vec<String> {
    let list = |of: &Holder, within: String| {
        let parts = parts(of);
        let is_listed = parts.len() > 1;
        is_listed
            .then(|| format!("Change{within}{}", listed(it, of, &parts, number_in_short(&parts))))
    };
    let tree = |of: &Holder| {
        let per_entry = if of.parts_per_entry { " per entry" } else { "" };
        let tree = in_tree(&parts(of))?;
        Some(format!("Of the change{per_entry} in {}, {tree}", called(of)))
    };
    let parts_of_it = it.divided.iter().flat_map(|it| &it.parts);
    let tree = it.function.iter().chain(parts_of_it).find_map(tree);
    let rest: Vec<String> = match &it.divided {
        None => it.function.iter().filter_map(|of| list(of, String::new())).collect(),
        Some(Divided { parts, .. }) => {
            let figures = |of: &Holder| format!("{}: {}", called(of), figures(of, false));
            let list = parts.first().and_then(|of| list(of, format!(" in {}", called(of))));
            let (first, others) = parts.split_at(parts.len().min(1));
            let first = first.iter().map(figures).chain(list);
            first.chain(others.iter().map(figures)).collect()
        }
    };
    let first = [headline(it)].into_iter().chain(equal::beside(it)).chain(common(it));
    first.chain(rest).chain(tree).collect()
}

/// Divides the change of a holder in `it` between the functions in it, at least `fewest` by name. Empty if `fewest` is 0 or
/// there are fewer than two.
fn own(it: &Headline, holder: &Holder, fewest: usize) -> String {
    let parts = parts(holder);
    if parts.len() < 2 || fewest == 0 {
        return String::new();
    }
    let tree = in_tree(&parts).map(|it| format!(" Of this, {it}")).unwrap_or_default();
    format!(" Change{}{tree}", listed(it, holder, &parts, number(&parts, fewest)))
}

/// Returns the functions in a holder that changed.
fn parts(holder: &Holder) -> Vec<&OwnCost> {
    holder.parts.iter().filter(|it| change_of(it) != 0.0).collect()
}

/// Divides the change of a holder in `it` between these functions in it, this number by name. Follows the word `change`. Of
/// a function that one side alone called, it says whether the other side's kernel has it: it may be inlined there, unless
/// both sides have one kernel.
fn listed(it: &Headline, holder: &Holder, parts: &[&OwnCost], number: usize) -> String {
    // A change that is printed as 0 has no name, but is a part of the sum.
    let is_shown = |it: &&&OwnCost| words::figure(change_of(it).abs(), 0) != "0";
    let one_kernel = it.one_kernel;
    let shown = parts.iter().take(number).take_while(is_shown).count();
    let (named, others) = parts.split_at(shown);
    let of = |it: &&OwnCost| {
        let (name, change) = (excerpt(&it.name), words::signed(change_of(it), 0));
        let name = match &it.with {
            Some(with) => format!("{name} with {}", excerpt(with)),
            None => name,
        };
        let only = match (&it.with, it.own) {
            (None, [0.0, _]) if one_kernel => Some("called there only now"),
            (None, [_, 0.0]) if one_kernel => Some("called there only before"),
            (None, [0.0, _]) if it.code == Some(Code::New) => Some("new, or inlined before"),
            (None, [_, 0.0]) if it.code == Some(Code::Gone) => Some("gone, or inlined now"),
            (None, [0.0, _]) if it.is_on_both => Some("called there only now, or inlined before"),
            (None, [_, 0.0]) if it.is_on_both => Some("called there only before, or inlined now"),
            (None, [0.0, _]) => Some("called only now, or inlined before"),
            (None, [_, 0.0]) => Some("called only before, or inlined now"),
            _ => None,
        };
        let luck = (it.beyond_luck == Some(false)).then_some("may be luck");
        let remarks: Vec<&str> = [only, luck].into_iter().flatten().collect();
        match remarks.is_empty() {
            true => format!("{name} {change}"),
            false => format!("{name} {change} ({})", remarks.join("; ")),
        }
    };
    let left = (!others.is_empty()).then(|| {
        let sum: f64 = others.iter().copied().map(change_of).sum();
        format!("{} more {}", others.len(), words::signed(sum, 0))
    });
    let all: Vec<String> = named.iter().map(of).chain(left).collect();
    let per_entry = if holder.parts_per_entry { " per entry" } else { "" };
    let luck = if is_mostly_luck(parts) { " Most of this may be luck." } else { "" };
    format!("{per_entry}, by function: {}.{luck}", all.join(", "))
}

/// How names of functions of the tree of mappings begin (lib/maple_tree.c, since Linux 6.1).
const TREE: [&str; 6] = ["ma_", "mab_", "mas_", "mt_", "mte_", "mtree_"];
/// The least share of a change in the tree of mappings at which it is mentioned.
const LARGE_IN_TREE: f64 = 0.25;

/// Returns the end of a sentence on what of the change of these functions is in the tree of mappings, in functions that both
/// kernels executed there: others are another algorithm. `None` if it is little.
fn in_tree(parts: &[&OwnCost]) -> Option<String> {
    let all: f64 = parts.iter().copied().map(change_of).sum();
    let is_of_tree = |it: &&OwnCost| {
        !it.own.contains(&0.0) && TREE.iter().any(|begin| it.name.starts_with(begin))
    };
    let tree: f64 = parts.iter().copied().filter(is_of_tree).map(change_of).sum();
    ((tree / all).abs() >= LARGE_IN_TREE).then(|| {
        format!(
            "{} is in the tree of mappings: how full its nodes are depends on all mappings of the program, and no luck \
             floor covers that.",
            words::signed(tree, 0)
        )
    })
}

/// Returns whether half of the change of these functions or more may be luck.
fn is_mostly_luck(parts: &[&OwnCost]) -> bool {
    let all: f64 = parts.iter().copied().map(change_of).sum();
    let lucky = parts.iter().copied().filter(|it| it.beyond_luck == Some(false));
    lucky.map(change_of).sum::<f64>() / all >= 0.5
}

/// Returns how many functions are named: `fewest`, or more until the changes left out, whatever their signs, add up to
/// less than the last one named. At most [`MAX_NAMED`].
fn number(parts: &[&OwnCost], fewest: usize) -> usize {
    let most = parts.len().min(MAX_NAMED);
    (fewest.min(most)..most).find(|number| is_enough(parts, *number)).unwrap_or(most)
}

/// Returns how many functions a short list names: those with a notable part of the change.
fn number_in_short(parts: &[&OwnCost]) -> usize {
    let all: f64 = parts.iter().copied().map(change_of).sum();
    let is_large = |it: &&&OwnCost| change_of(it).abs() >= NOTABLE_PART * all.abs();
    let large = parts.iter().take_while(is_large).count();
    large.clamp(PARTS_OF_PART, MAX_IN_SHORT).min(parts.len())
}

/// Returns whether the changes after the first `number` add up to no more than the last of these.
fn is_enough(parts: &[&OwnCost], number: usize) -> bool {
    let (named, others) = parts.split_at(number);
    let left: f64 = others.iter().map(|it| change_of(it).abs()).sum();
    named.last().is_some_and(|last| left <= change_of(last).abs())
}

fn change_of(it: &OwnCost) -> f64 {
    it.own[1] - it.own[0]
}

/// Lays the headlines out as a table: the change of each phase and the functions that hold it. Their figures are
/// below.
pub fn table(headlines: &[Headline]) -> Block {
    let rows = headlines.iter().flat_map(|it| {
        let row = |said: String, below: Vec<String>| {
            let below = below.into_iter().filter(|it| !it.is_empty()).map(note).collect();
            vec![phase_name(&it.phase).into(), Cell { said, below, ..Cell::default() }]
        };
        let said_of = |of: &Holder, most| [figures(of, it.at_equal_entries), own(it, of, most)];
        let parts = it.divided.iter().flat_map(|it| &it.parts);
        let parts = parts.map(|part| row(called(part), said_of(part, PARTS_OF_PART).into()));
        let first = match (&it.function, &it.divided) {
            (Some(of), divided) => {
                let share = format!("{:.1} % of the change in {}", 100.0 * of.share, called(of));
                let most = if divided.is_some() { 0 } else { PARTS };
                let divided = divided.as_ref().map(|parts| shares(it, parts) + ".");
                let below = said_of(of, most).into_iter().chain(divided).chain(equal::beside(it));
                let below = below.collect();
                row(format!("{}, {share}", change(it)), below)
            }
            (None, Some(divided)) => {
                row(format!("{}: {}", change(it), shares(it, divided)), vec![])
            }
            (None, None) => row(format!("{}: {}", change(it), unnamed(it)), equal::beside(it)),
        };
        [first].into_iter().chain(parts).collect::<Vec<Vec<Cell>>>()
    });
    let columns = [Column::topics().named("Phase"), Column::sentences("Change")];
    document::table(columns, rows.collect())
}

/// Writes the change of a phase.
fn change(it: &Headline) -> String {
    let kernel = &it.kernel;
    let unit = match &*it.unit {
        ENTRIES => "entries of kernel functions".to_owned(),
        unit => format!("kernel {unit}"),
    };
    match Of::Number.change([kernel.base, kernel.new], 2).as_deref() {
        _ if kernel.base == kernel.new => format!("{} {unit}", words::figure(kernel.new, 0)),
        None => format!("{} {unit}, none before", words::figure(kernel.new, 0)),
        Some("0.00 %") => format!("{unit} the same within 0.01 %"),
        Some(change) if it.at_equal_entries => {
            format!("{change} {unit} at equal entries")
        }
        Some(change) => format!("{change} {unit}"),
    }
}

/// Writes the headline of a phase: its change, and the functions that hold the change or why none is named.
pub fn headline(it: &Headline) -> String {
    let change = format!("Phase {}: {}", phase_name(&it.phase), change(it));
    let divided = it.divided.as_ref().map(|parts| shares(it, parts));
    match (&it.function, divided) {
        (Some(holder), divided) => {
            let share = format!("{:.1} % of the change ", 100.0 * holder.share);
            let figures = figures(holder, it.at_equal_entries);
            let rest = if has_lucky_rest(it, holder) {
                " The rest is smaller than the phase's luck floor."
            } else {
                ""
            };
            let divided = divided.map(|it| format!(" {}.", capitalized(&it))).unwrap_or_default();
            format!("{change}, {share}in {}: {figures}{rest}{divided}", called(holder))
        }
        (None, Some(divided)) => format!("{change}: {divided}."),
        (None, None) => format!("{change}: {}.", unnamed(it)),
    }
}

/// Returns whether the share of the function that is named leaves a notable rest of the change, which is within luck.
fn has_lucky_rest(it: &Headline, holder: &Holder) -> bool {
    let rest = 1.0 - holder.share;
    let is_luck = it.kernel.floor.is_some_and(|floor| (rest * it.kernel.change()).abs() <= floor);
    it.followed && rest.abs() > ALL && is_luck
}

/// Returns why no function is named.
fn unnamed(it: &Headline) -> String {
    if let (Some(true), Some(cause)) = (it.kernel.beyond_luck(), &it.only_cause) {
        return format!("beyond luck; the code of {} alone differs", excerpt(cause));
    }
    if it.of_one_variant {
        return "the seeds differ by luck".to_owned();
    }
    if it.kernel.base == it.kernel.new {
        return "the same on both sides".to_owned();
    }
    match it.kernel.beyond_luck() {
        Some(true) if it.followed => "beyond luck; no function holds the change".to_owned(),
        Some(true) if !it.by_path => "beyond luck".to_owned(),
        Some(true) if it.listed => {
            "beyond luck; no function alone explains half of the change".to_owned()
        }
        Some(true) => format!(
            "beyond luck; naming the function takes {FEWEST_FOR_LISTS} seeds a side{}",
            if it.by_path { " or call paths (`run --profile stacks`)" } else { "" }
        ),
        Some(false) => "this may be luck".to_owned(),
        None => "the luck floor is unknown".to_owned(),
    }
}

/// Returns the printed name of a phase.
pub fn phase_name(phase: &str) -> String {
    if phase.is_empty() { OUTSIDE_PHASES.to_owned() } else { excerpt(phase) }
}

/// Returns ` in phase NAME` for the section of a phase; empty for other sections.
pub fn within(section: &Section) -> String {
    let phase = section.phase.as_deref().map(phase_name);
    phase.map(|phase| format!(" in phase {phase}")).unwrap_or_default()
}
