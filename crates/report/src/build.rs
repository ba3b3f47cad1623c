//! Sentences on how kernels were built differently. They stand beside the verdicts, because a change between
//! such kernels need not come from their sources.

use compare::{BuildDifference, Comparison, Explanation, Fact, Kind, Row, split_columns};
use model::{Mode, count, grouped};

use crate::ascii::{excerpt, few};
use crate::document::{self, Block, TEXT, note};
use crate::exact;
use crate::notes::shared_words;
use crate::words::{self, Of, decimal, phase_of};

/// Returns a sentence for each variant whose kernel was built differently from the baseline's, and what comes from
/// that, or how `try` tells it apart; empty if there is none. Kernels that were built to take a change apart have no
/// sentence.
pub fn builds(comparison: &Comparison) -> String {
    let is_split = split_columns(comparison).is_some();
    let said = differences(comparison, is_split, None).into_iter().map(note);
    let can_split = comparison.variants.len() == 2
        && comparison.arch.is_usual()
        && !comparison.notes.builds.is_empty();
    let offer = can_split.then(|| note("`--split` tells that part from what the source changed."));
    let said = said.chain(offer).chain(split(comparison));
    document::text(&said.collect::<Vec<_>>(), &TEXT)
}

/// Returns a sentence for each kernel that was built differently from the baseline's, that of the variant `leading` first.
/// If the change `is_split`, kernels that were built for that have none.
pub(crate) fn differences(
    comparison: &Comparison,
    is_split: bool,
    leading: Option<&str>,
) -> Vec<String> {
    let Comparison { variants, notes, .. } = comparison;
    let mut builds: Vec<BuildDifference> = notes.builds.clone();
    if is_split {
        builds.retain(|it| it.variant == variants[1].name);
    }
    builds.sort_by_key(|it| leading.is_some_and(|leading| leading != it.variant));
    let differs = |it: &BuildDifference| if is_split { built(it) } else { differs(it) };
    // The variants of one kernel have one sentence.
    let mut kernels: Vec<(&BuildDifference, Vec<&str>)> = Vec::new();
    for it in &builds {
        let alike = |other: &BuildDifference| {
            *other == BuildDifference { variant: other.variant.clone(), ..it.clone() }
        };
        match kernels.iter_mut().find(|(other, _)| alike(other)) {
            Some((_, names)) => names.push(&it.variant),
            None => kernels.push((it, vec![&it.variant])),
        }
    }
    let said = kernels.iter().flat_map(|(it, names)| match shared_words(names, variants) {
        Some(variant) => vec![differs(&BuildDifference { variant, ..(*it).clone() })],
        None => {
            let of = |name: &&str| BuildDifference { variant: (*name).to_owned(), ..(*it).clone() };
            names.iter().map(|name| differs(&of(name))).collect()
        }
    });
    said.collect()
}

/// Returns a sentence on the states in which the variants differ, each with the variants that have it. `None` if they do
/// not.
pub(crate) fn states_of(comparison: &Comparison) -> Option<String> {
    let of = |it: &Fact| {
        let mut found: Vec<(&str, Vec<String>)> = Vec::new();
        for (variant, value) in comparison.variants.iter().zip(&it.values) {
            let (name, value) = (excerpt(&variant.name), value.as_deref().unwrap_or("not known"));
            match found.iter_mut().find(|(known, _)| *known == value) {
                Some((_, names)) => names.push(name),
                None => found.push((value, vec![name])),
            }
        }
        let said = found
            .iter()
            .map(|(value, names)| format!("{} with {}", excerpt(value), names.join(" and ")));
        format!("{} is {}", it.name, said.collect::<Vec<_>>().join(", "))
    };
    let all: Vec<String> = comparison.notes.states.iter().map(of).collect();
    (!all.is_empty()).then(|| {
        format!(
            "The kernels ran in other states: {}. A part of the changes can come from that.",
            all.join("; ")
        )
    })
}

/// Returns a sentence on the states in which the kernels of an explanation differ. `None` if they do not.
pub(crate) fn states(explanation: &Explanation) -> Option<String> {
    let value = |fact: &Fact, place: usize| {
        let value = fact.values.get(place).cloned().flatten();
        excerpt(value.as_deref().unwrap_or("not known"))
    };
    let differ = |it: &Fact| format!("{} is {} instead of {}", it.name, value(it, 1), value(it, 0));
    let differ: Vec<String> = explanation.states.iter().map(differ).collect();
    let has_damon =
        explanation.states.iter().any(|it| it.values.iter().flatten().any(|it| it == DAMON));
    let off =
        if has_damon { "; `damon_stat.enabled=0` on the command line turns DAMON off" } else { "" };
    let axes: Vec<&str> = explanation.states.iter().filter_map(|it| axis(it.name)).collect();
    let tell = match &axes[..] {
        [] => String::new(),
        axes => format!(
            "; an experiment that sets `{}` in its `[matrix]` tells which",
            axes.join("` and `")
        ),
    };
    (!differ.is_empty()).then(|| {
        format!(
            "{} ran in another state: {}. A part of the change can come from that{tell}{off}.",
            excerpt(&explanation.new.name),
            differ.join("; ")
        )
    })
}

/// The state of DAMON by which kernels watch accesses from their start (mm/damon/stat.c). Its thread makes floors wider.
const DAMON: &str = "damon_stat";

/// Returns the axis of a matrix that sets a state.
fn axis(state: &str) -> Option<&'static str> {
    match state {
        "THP" => Some("thp"),
        "MGLRU" => Some("mglru"),
        "NUMA balancing" => Some("numa_balancing"),
        _ => None,
    }
}

/// Returns the sentence on one variant, and what that means for its changes.
pub(crate) fn differs(it: &BuildDifference) -> String {
    format!("{} A part of its changes can come from that.", built(it))
}

/// Most options for checks and hardening that a sentence names.
const MOST_CHECKS: usize = 6;

/// Returns the sentence on one variant.
fn built(it: &BuildDifference) -> String {
    let compilers = it.compilers.as_ref().map(|[base, new]| {
        format!("the compiler is {} instead of {}", excerpt(new), excerpt(base))
    });
    let hz = it.hz.as_ref().map(|[base, new]| {
        format!("the timer ticks {new} times a second instead of {base} (CONFIG_HZ)")
    });
    let preemption = it
        .preemption
        .as_ref()
        .map(|[base, new]| format!("preemption is {} instead of {}", excerpt(new), excerpt(base)));
    let checks = it.checks.iter().zip(["off instead of on", "on instead of off"]);
    let checks = checks.filter(|(options, _)| !options.is_empty()).map(|(options, how)| {
        let options = few(MOST_CHECKS, options.iter().map(|it| excerpt(it)));
        let verb = if options.len() == 1 { "is" } else { "are" };
        format!("{} {verb} {how}", words::listed(&options))
    });
    let options = (it.options > 0).then(|| {
        let verb = if it.options == 1 { "differs" } else { "differ" };
        let [both, one] = [it.of_both, it.options - it.of_both].map(|it| grouped(&it.to_string()));
        format!(
            "{} {verb} ({both} in value, {one} in one configuration only)",
            count(it.options, "configuration option")
        )
    });
    let before = [compilers, hz, preemption].into_iter().flatten();
    let said: Vec<String> = before.chain(checks).chain(options).collect();
    format!("{} was also built differently: {}.", excerpt(&it.variant), said.join("; "))
}

/// Returns a sentence for each row with a verdict on what of its change comes from the source, and what from the
/// configuration and the compiler, in both orders. Empty if no variants were built for that.
pub fn split(comparison: &Comparison) -> Vec<Block> {
    let Some(columns) = split_columns(comparison) else { return Vec::new() };
    // A variant that has the baseline's compiler has no entry of it.
    let compiler = |column: usize| {
        let name = &comparison.variants[column].name;
        let built = comparison.notes.builds.iter().find(|it| it.variant == *name);
        built.and_then(|it| it.compilers.as_ref()).map(|[_, new]| &**new)
    };
    let steps = steps(columns, compiler);
    let tables = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
    let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let rows = rows.filter(|(_, row)| row.statistic.is_mean() && row.is_judged());
    let said = rows.filter_map(|(table, row)| {
        let parts = parts(row, &steps, comparison.mode)?;
        let phase = phase_of(row);
        let of = if phase == row.metric { "" } else { "Kernel instructions of " };
        let named = words::name(comparison, table, &Row { metric: phase, ..row.clone() });
        Some(note(format!("{of}{named}, in steps: {parts}")))
    });
    said.collect()
}

/// A step from one kernel to the next: its columns, and what changes in it.
struct Step {
    columns: [usize; 2],
    what: String,
}

/// Returns the two steps from the first variant to the second by way of each of the columns. The source changes in one,
/// the configuration in the other. The compiler changes in that whose kernels have different ones: both kernels that
/// were built for this have one compiler, which need not be that of either package.
fn steps<'a>(
    [new_as_base, base_as_new]: [usize; 2],
    compiler: impl Fn(usize) -> Option<&'a str>,
) -> [[Step; 2]; 2] {
    let step = |from: usize, to: usize, what: &str| {
        let differs = compiler(from) != compiler(to);
        let what = if differs { format!("{what} and compiler") } else { format!("the {what}") };
        Step { columns: [from, to], what }
    };
    [
        [step(0, new_as_base, "source"), step(new_as_base, 1, "configuration")],
        [step(0, base_as_new, "configuration"), step(base_as_new, 1, "source")],
    ]
}

/// Returns the change of a row by each step, in both orders. `None` if a figure is missing.
fn parts(row: &Row, steps: &[[Step; 2]; 2], mode: Mode) -> Option<String> {
    let value = |column| if column == 0 { row.base(1) } else { row.value(column) };
    let said = |Step { columns: [from, to], what }: &Step| {
        let change = Of::unit(&row.unit).change([value(*from)?, value(*to)?], 2)?;
        let floor = match (mode, *from) {
            (Mode::Measured, _) => String::new(),
            (Mode::Exact, 0) => match exact::floor_percent(row, *to) {
                Some(floor) => format!(" (luck floor {} %)", decimal(Some(floor), 2)),
                None => " (luck floor unknown)".to_owned(),
            },
            (Mode::Exact, _) => " (no luck floor)".to_owned(),
        };
        Some(format!("{what} {change}{floor}"))
    };
    let [[first, second], [other_first, other_second]] = steps;
    Some(format!(
        "{}, then {}; in the other order, {}, then {}.",
        said(first)?,
        said(second)?,
        said(other_first)?,
        said(other_second)?
    ))
}

#[cfg(test)]
mod tests {
    use compare::{Cell, Statistic};
    use model::INSTRUCTIONS;

    use super::*;

    #[test]
    fn only_what_differs_is_said() {
        let it = BuildDifference {
            variant: "newest".into(),
            compilers: Some(["gcc-12 12.2.0".into(), "gcc-14 14.2.0".into()]),
            hz: Some(["250".into(), "1000".into()]),
            preemption: Some(["voluntary".into(), "lazy".into()]),
            checks: [vec!["KASAN".into(), "KCSAN".into()], vec!["UBSAN".into()]],
            options: 1547,
            of_both: 63,
        };
        assert_eq!(
            differs(&it),
            "newest was also built differently: the compiler is gcc-14 14.2.0 instead of \
             gcc-12 12.2.0; the timer ticks 1000 times a second instead of 250 (CONFIG_HZ); preemption \
             is lazy instead of voluntary; KASAN and KCSAN are off instead of on; UBSAN is on instead of off; \
             1,547 configuration options differ (63 in value, 1,484 in one configuration only). A part of its changes can come from that."
        );
        let checks = Default::default();
        let it = BuildDifference { hz: None, preemption: None, checks, ..it };
        let options = BuildDifference { compilers: None, options: 1, of_both: 0, ..it.clone() };
        assert!(differs(&options).contains("1 configuration option differs (0 in value, 1 in one"));
        let compiler = BuildDifference { options: 0, ..it };
        assert!(differs(&compiler).contains("instead of gcc-12 12.2.0. A part"));
    }

    #[test]
    fn a_change_is_taken_apart_in_both_orders() {
        let cell = |value| Cell { value: Some(value), base: Some(100.0), ..Cell::default() };
        let row = Row {
            section: None,
            metric: "instructions-kernel-run".into(),
            unit: INSTRUCTIONS.into(),
            better: None,
            statistic: Statistic::Amean,
            cells: [100.0, 143.0, 130.0, 110.0].map(cell).into(),
            decimals: 0,
        };
        let said = |row: &Row, compilers: [&'static str; 4]| {
            parts(row, &steps([2, 3], |column| Some(compilers[column])), Mode::Measured)
        };
        assert_eq!(
            said(&row, ["12"; 4]).unwrap(),
            "the source 30.00 % more, then the configuration 10.00 % more; in the other order, the \
             configuration 10.00 % more, then the source 30.00 % more."
        );
        // The host's compiler is that of the first package.
        assert_eq!(
            said(&row, ["12", "14", "12", "12"]).unwrap(),
            "the source 30.00 % more, then configuration and compiler 10.00 % more; in the other order, \
             the configuration 10.00 % more, then source and compiler 30.00 % more."
        );
        assert_eq!(
            said(&row, ["12", "14", "13", "13"]).unwrap(),
            "source and compiler 30.00 % more, then configuration and compiler 10.00 % more; in the \
             other order, configuration and compiler 10.00 % more, then source and compiler 30.00 % more."
        );
        let mut without = row;
        without.cells[2].value = None;
        assert_eq!(said(&without, ["12"; 4]), None);
    }
}
