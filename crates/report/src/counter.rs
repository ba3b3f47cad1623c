//! Explains a kernel counter, or how a row of the tables is computed.

use benchmarks::names::{of_counter as names_in_mmtests, ours};
use kernelfiles::catalogue::{self, Counter, End, OLDEST, Widened};
use kernelfiles::derived::{self, Derived};

use crate::document::{Column, TEXT, part, table, text};

/// Returns what the catalogue says about a counter or a derived row. `name` can be ours or that of mmtests.
/// `None` if it is not known.
pub fn counter(name: &str) -> Option<String> {
    let known = |name: &str| match catalogue::find(name) {
        Some(counter) => Some(of_counter(counter)),
        None => derived::find(name).map(of_row),
    };
    known(name).or_else(|| known(&ours(name, None)?))
}

fn of_counter(counter: &Counter) -> String {
    let kind = if counter.gauge { "a gauge" } else { "counted up since boot" };
    let names = |names: &[String]| names.join(", ");
    let rows = derived::rows().filter(|row| uses(row, counter)).map(|row| row.label);
    lay_out(
        &format!("{}: {}, {kind}", counter.name, counter.unit),
        &[
            ("counts", counter.what.clone()),
            ("where", counter.place.clone()),
            ("kernels", kernels(counter)),
            ("before", names(&counter.was)),
            ("was part of", names(&counter.split_from)),
            ("since then", names(&counter.became)),
            ("also counts", also(counter)),
            ("rows", rows.collect::<Vec<_>>().join(", ")),
            ("remark", counter.note.clone()),
        ],
    )
}

fn also(counter: &Counter) -> String {
    let words =
        |it: &Widened| format!("{} since {}; older kernels do not count that", it.by, it.since);
    counter.widened.as_ref().map(words).unwrap_or_default()
}

fn of_row(row: &Derived) -> String {
    let formula = row.formula.to_string();
    let mut counters: Vec<&str> = Vec::new();
    for counter in row.formula.expr.counters().iter().filter_map(|name| catalogue::find(name)) {
        if !counters.contains(&&*counter.name) {
            counters.push(&counter.name);
        }
    }
    let zones = "NAME[_ZONE] is NAME and its forms for zones, as many as the kernel has.";
    let optional = "[NAME] is 0 where the kernel lacks it.";
    let legend = [("[_ZONE]", zones), (" [", optional)].into_iter();
    let legend = legend.filter(|(sign, _)| formula.contains(sign)).map(|(_, meaning)| meaning);
    let formula =
        std::iter::once(&*format!("{formula}.")).chain(legend).collect::<Vec<_>>().join(" ");
    lay_out(
        &format!("{}: {}, a row of {}", row.label, row.unit, row.section.name()),
        &[
            ("formula", formula),
            ("counters", counters.join(", ")),
            ("in mmtests", names_in_mmtests(row.label).join(", ")),
            ("remark", row.note.to_owned()),
        ],
    )
}

/// Returns whether a row is computed from a counter, or from the counter's form for a single zone.
fn uses(row: &Derived, counter: &Counter) -> bool {
    let found = row.formula.expr.counters().into_iter().filter_map(|name| catalogue::find(&name));
    found.into_iter().any(|used| used.name == counter.name)
}

fn kernels(counter: &Counter) -> String {
    if counter.patched {
        return "only some patched ones".to_owned();
    }
    let unsure = |end: End| match counter.unchecked.contains(&end) {
        true => " (not checked to the very release)",
        false => "",
    };
    let since = match &counter.since {
        Some(since) => format!("since {since}{}", unsure(End::Since)),
        None => format!("in {OLDEST} already"),
    };
    match &counter.until {
        Some(until) => format!("{since}, until {until}{}", unsure(End::Until)),
        None => since,
    }
}

/// Lays out a title, and below it the facts, each beside its topic. Empty facts are left out.
fn lay_out(title: &str, topics: &[(&str, String)]) -> String {
    let known = topics.iter().filter(|(_, text)| !text.is_empty());
    let rows = known.map(|(topic, text)| vec![(*topic).to_owned(), text.clone()]).collect();
    let facts = table([Column::words(""), Column::sentences("")], rows);
    text(&[part(title, [facts])], &TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_was_split() {
        insta::assert_snapshot!(counter("allocstall").unwrap());
    }

    #[test]
    fn a_counter_of_a_zone() {
        insta::assert_snapshot!(counter("pgscan_kswapd_normal").unwrap());
    }

    #[test]
    fn a_counter_with_a_trap() {
        insta::assert_snapshot!(counter("numa_pte_updates").unwrap());
    }

    #[test]
    fn a_row() {
        insta::assert_snapshot!(counter("kswapd efficiency").unwrap());
    }

    #[test]
    fn everything_in_the_catalogue_can_be_explained() {
        let labels = derived::rows().map(|row| row.label);
        let names = catalogue::counters().map(|counter| &*counter.name);
        for name in names.chain(labels) {
            let text = counter(name).unwrap();
            assert!(text.lines().all(|line| line.len() <= 100 && line.is_ascii()), "{text}");
        }
        assert_eq!(counter("no such name"), None);
    }
}
