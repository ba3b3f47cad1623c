//! Tables of the kernel's cost by what made it execute, and of its instructions by class.

use compare::{ClassCost, Difference, Explanation, FieldCost, Reason, Section, Subject};
use kernelfiles::entry;

use super::figures;
use super::headline::within;
use super::view::{HEADS, ranking, row};
use crate::ascii::excerpt;
use crate::document::Block;

/// The reason why numbers of locked instructions on one CPU are not comparable.
pub const LOCKED_ON_ONE_CPU: &str = "On one CPU some kernels replace their `lock` prefixes when they boot, and others do \
                                     not: locked instructions are comparable with `--cpus 2`.";

/// Lays out the kernel's cost by system call, exception, interrupt, softirq and kernel thread, at most `limit` of them.
pub fn reasons(
    explanation: &Explanation,
    section: &Section,
    reasons: &[Reason],
    limit: usize,
) -> Block {
    let row = |it: &Reason| {
        let calls = calls(section, it).unwrap_or_default();
        row(format!("{}{calls}", excerpt(&it.name)), &it.cost)
    };
    let title = format!(
        "Kernel {}{} by system call, exception, interrupt, softirq and kernel thread",
        explanation.cost.unit,
        within(section)
    );
    let more = reasons.len().checked_sub(limit).filter(|more| *more > 0);
    let is_wait = |it: &Reason| it.name.strip_prefix(entry::SYSTEM_CALL) == Some("ppoll");
    let waits = reasons.iter().take(limit).any(is_wait).then_some(AGENT);
    let foot = more.map(|more| format!("{more} more")).into_iter();
    let foot = foot.chain(waits.map(str::to_owned)).collect();
    ranking(&title, &HEADS, reasons.iter().take(limit).map(row).collect(), foot)
}

/// The part of the agent in a phase.
const AGENT: &str = "The agent waits for the program in ppoll, and reads its lines and answers them by read and write: \
                     these calls count too.";

/// Returns in brackets how often a system call was made on both sides, and the cost of a call. `None` for other reasons,
/// and where a side made no call.
fn calls(section: &Section, reason: &Reason) -> Option<String> {
    let call = reason.name.strip_prefix(entry::SYSTEM_CALL)?;
    let of_call = section.contributions.iter().filter_map(|it| match &it.subject {
        Subject::Function { name, .. } if entry::system_call(name) == Some(call) => {
            it.calls.as_ref().map(|calls| calls.entries)
        }
        _ => None,
    });
    // Another function of the call may be in one kernel only, or be entered once for each call as well.
    let calls = of_call.fold([0.0_f64; 2], |[base, new], it| [base.max(it.base), new.max(it.new)]);
    let Difference { base, new, .. } = reason.cost;
    let each = [base / calls[0], new / calls[1]];
    let are_made = calls.iter().all(|it| *it > 0.0);
    are_made.then(|| {
        let (made, each) = (figures::called(calls), figures::cost_of(each, " per call"));
        format!(" ({made}; {each})")
    })
}

/// Lays out the kernel's instructions of each class. `None` if none is known.
pub fn classes(explanation: &Explanation, section: &Section) -> Option<Block> {
    let all = &explanation.classes;
    let title = format!("Kernel instructions{} by class", within(section));
    let of = |it: &ClassCost| format!("{} (--cost {})", it.cost.unit, it.cost.name);
    let rows = all.iter().map(|it| row(of(it), &it.instructions)).collect();
    (!all.is_empty()).then(|| ranking(&title, &HEADS, rows, Vec::new()))
}

/// Lays out the kernel's transfers of lines by field, at most `limit` of them. `None` if none is known.
pub fn fields(explanation: &Explanation, section: &Section, limit: usize) -> Option<Block> {
    let all = &explanation.fields;
    let title = format!("Kernel {}{} by field", explanation.cost.unit, within(section));
    let of = |it: &FieldCost| format!("{} ({})", excerpt(&it.field), excerpt(&it.function));
    let rows = all.iter().take(limit).map(|it| row(of(it), &it.transfers)).collect();
    let more = all.len().checked_sub(limit).filter(|more| *more > 0);
    let foot = more.map(|more| format!("{more} more")).into_iter().chain(named(all)).collect();
    (!all.is_empty()).then(|| ranking(&title, &HEADS, rows, foot))
}

/// Says which share of the transfers on both sides has the name of a field, a variable or an allocation.
fn named(all: &[FieldCost]) -> Option<String> {
    let sum = |wanted: &dyn Fn(&FieldCost) -> bool| -> f64 {
        let own = all.iter().filter(|it| wanted(it));
        own.fold(0.0, |sum, it| sum + it.transfers.base + it.transfers.new)
    };
    let every = sum(&|_| true);
    let [named, unknown] =
        [sum(&|it| !it.field.starts_with('[')), sum(&|it| it.field == "[unknown]")];
    (every > 0.0).then(|| {
        let percent = |part: f64| format!("{:.1} %", 100.0 * part / every);
        format!(
            "{} of them have the name of a field, a variable or an allocation, {} are of unknown memory; the function in \
             brackets takes most of the lines",
            percent(named),
            percent(unknown)
        )
    })
}
