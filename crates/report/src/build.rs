//! Sentences on how kernels were built differently. They stand beside the verdicts, because a change between
//! such kernels need not come from their sources.

use compare::{BuildDifference, Comparison, Kind, Row};
use model::{count, grouped};

use crate::ascii::excerpt;
use crate::document::{self, TEXT, note};
use crate::words::{self, Of};

/// Returns a sentence for each variant whose kernel was built differently from the baseline's, and how `try` tells
/// that apart; empty if there is none.
pub fn builds(comparison: &Comparison) -> String {
    let said = comparison.notes.builds.iter().map(|it| note(differs(it)));
    let can_split = comparison.variants.len() == 2 && !comparison.notes.builds.is_empty();
    let split = can_split.then(|| note("`--split` tells that part from what the source changed."));
    let said = said.chain(split);
    document::text(&said.collect::<Vec<_>>(), &TEXT)
}

/// Returns the sentence on one variant.
pub(crate) fn differs(it: &BuildDifference) -> String {
    let compilers = it.compilers.as_ref().map(|[base, new]| {
        format!("the compiler is {} instead of {}", excerpt(new), excerpt(base))
    });
    let hz = it.hz.as_ref().map(|[base, new]| {
        format!("the timer ticks {new} times a second instead of {base} (CONFIG_HZ)")
    });
    let options = (it.options > 0).then(|| {
        let verb = if it.options == 1 { "differs" } else { "differ" };
        let both = grouped(&it.of_both.to_string());
        format!(
            "{} {verb}, {both} of those that both list",
            count(it.options, "configuration option")
        )
    });
    let said: Vec<String> = [compilers, hz, options].into_iter().flatten().collect();
    format!(
        "{} was also built differently: {}. A part of its changes can come from that.",
        excerpt(&it.variant),
        said.join("; ")
    )
}

/// Stands between the names of two kernels in the name of the variant with the source of the first one and the
/// configuration of the second one.
pub const BUILT_AS: &str = " as ";

/// Returns a sentence for each row with a verdict on what of its change comes from the source, and what from
/// configuration and compiler, in both orders. Empty if no variants were built for that.
pub fn split(comparison: &Comparison) -> String {
    document::text(&parts_of_rows(comparison).into_iter().map(note).collect::<Vec<_>>(), &TEXT)
}

/// Returns the sentences of [`split`].
pub(crate) fn parts_of_rows(comparison: &Comparison) -> Vec<String> {
    let variants = &comparison.variants;
    let [base, new, ..] = &variants[..] else { return Vec::new() };
    let built = |one: &str, other: &str| {
        let name = format!("{one}{BUILT_AS}{other}");
        variants.iter().position(|it| it.name == name)
    };
    let Some(columns) = built(&new.name, &base.name).zip(built(&base.name, &new.name)) else {
        return Vec::new();
    };
    let tables = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
    let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let rows = rows.filter(|(_, row)| row.statistic.is_mean() && row.is_judged());
    let said = rows.filter_map(|(table, row)| {
        let parts = parts(row, columns)?;
        Some(format!("{}: {parts}", words::name(comparison, table, row)))
    });
    said.collect()
}

/// Returns the change of a row by source first, and by configuration and compiler first. `None` if a figure is missing.
fn parts(row: &Row, (new_as_base, base_as_new): (usize, usize)) -> Option<String> {
    let (base, new) = (row.base(1)?, row.value(1)?);
    let [by_source, by_build] = [row.value(new_as_base)?, row.value(base_as_new)?];
    let change = |from: f64, to: f64| Of::unit(&row.unit).change([from, to], 2);
    Some(format!(
        "the source {}, then configuration and compiler {}; in the other order, configuration and compiler {}, then \
         the source {}.",
        change(base, by_source)?,
        change(by_source, new)?,
        change(base, by_build)?,
        change(by_build, new)?
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
            options: 1547,
            of_both: 63,
        };
        assert_eq!(
            differs(&it),
            "newest was also built differently: the compiler is gcc-14 14.2.0 instead of \
             gcc-12 12.2.0; the timer ticks 1000 times a second instead of 250 (CONFIG_HZ); 1,547 \
             configuration options differ, 63 of those that both list. A part of its changes can \
             come from that."
        );
        let options =
            BuildDifference { compilers: None, hz: None, options: 1, of_both: 0, ..it.clone() };
        assert!(differs(&options).contains("differently: 1 configuration option differs, 0 of"));
        let compiler = BuildDifference { hz: None, options: 0, ..it };
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
        let said = parts(&row, (2, 3)).unwrap();
        assert_eq!(
            said,
            "the source 30.00 % more, then configuration and compiler 10.00 % more; in the other \
             order, configuration and compiler 10.00 % more, then the source 30.00 % more."
        );
        let mut without = row;
        without.cells[2].value = None;
        assert_eq!(parts(&without, (2, 3)), None);
    }
}
