//! The lines below a table of metrics on outliers, modes and other patterns that means hide, and on what is
//! left out of the means.

use compare::{Comparison, Kind, Odd, Oddity, Part, Peak, Repeated, Table, WarmUp};
use model::{BootId, count};

use crate::ascii::few;
use crate::document::{self, Block, Column};
use crate::words::decimal;

/// Most oddities of one kind that are named; the others are counted.
const MAX_NAMES: usize = 8;
/// Most boots of a mode that are named.
const MAX_BOOTS: usize = 10;

/// The column of topics of these lines.
pub const TOPIC: Column = Column::topics().at_least("Variation:".len());
/// Printed below the lines on outliers, modes and warm-up.
const ALL_COUNT: &str = "All of these are included in the figures. Iterations are numbered \
                             from 0.";
/// Printed for rows with one value per iteration, if warm-up samples of other rows in the table are left
/// out.
const WHOLE: &str = "rows with one value per iteration cover the whole iteration, warm-up \
                     included";
/// Names the option that includes warm-up.
const INCLUDE: &str = "--warmup include counts it";

/// Returns the oddities of `table` by kind, each a sentence without full stop. Kinds without oddities are
/// left out.
fn topics(
    table: &Table,
    comparison: &Comparison,
) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let topics = ["Outliers:", "Modes:", "Warm-up:", "Not steady:"];
    let named = topics.map(|topic| {
        let oddities = table.oddities.iter().filter(|it| self::topic(&it.what) == topic);
        let named = oddities.map(|it| sentence(it, table, comparison));
        let suspected = table.warm_ups.iter().flat_map(|it| match topic {
            "Warm-up:" => suspected(it, table, comparison),
            "Not steady:" => never(it, comparison),
            _ => Vec::new(),
        });
        (topic, few(MAX_NAMES, named.chain(suspected)))
    });
    named.into_iter().filter(|(_, named)| !named.is_empty())
}

/// Returns what is left out of the figures of `table`, each a sentence without full stop.
pub fn left_out(table: &Table, comparison: &Comparison) -> Vec<String> {
    let left_out = table.warm_ups.iter().filter(|it| it.first > 0 && !it.counted);
    let mut named = few(MAX_NAMES, left_out.map(|it| first(it, table, comparison)));
    if let Some(last) = named.last_mut() {
        last.push_str(&format!(" ({INCLUDE})"));
    }
    if table.kind == Kind::Metrics && table.part == Some(Part::Whole) {
        named.push(WHOLE.to_owned());
    }
    named
}

/// Lays out the oddities and what is left out; nothing if there is neither.
pub fn blocks(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let rows = |rows: Vec<Vec<String>>| document::table([TOPIC, Column::sentences("")], rows);
    let row = |(topic, named): (&str, Vec<String>)| vec![topic.to_owned(), named.join("; ")];
    let odd: Vec<Vec<String>> = topics(table, comparison).map(row).collect();
    let mut blocks = Vec::new();
    if !odd.is_empty() {
        blocks = vec![rows(odd), document::sentence(ALL_COUNT)];
    }
    let left_out = left_out(table, comparison);
    if !left_out.is_empty() {
        blocks.push(rows(vec![row(("Left out:", left_out))]));
    }
    blocks
}

/// Describes a warm-up that is certain: `txn-4: the first 3 of 40 samples of each iteration, warm-up in 5
/// of 6 boots of 6.1 (812.00 on average, then 1030.22)`, and so on for each variant. If the experiment sets
/// its length, which is printed once above the table, the text is
/// `txn-4: 812.00 on average, then 1030.22 in 6.1`.
fn first(warm_up: &WarmUp, table: &Table, comparison: &Comparison) -> String {
    let WarmUp { metric, of, repeated, first, asked, .. } = warm_up;
    let figure = figures(metric, table);
    let columns = comparison.variants.iter().zip(&warm_up.columns).filter(|(_, it)| it.boots > 0);
    let columns = columns.map(|(variant, it)| {
        let name = &variant.name;
        let means = it.before.zip(it.steady).map(|(before, steady)| {
            format!("{} on average, then {}", figure(&before), figure(&steady))
        });
        let boots = || format!("{} of {} of {name}", it.warm, count(it.boots, "boot"));
        match (means, asked) {
            (Some(means), true) => format!("{means} in {name}"),
            (Some(means), false) => format!("{} ({means})", boots()),
            (None, _) => boots(),
        }
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    if *asked {
        return format!("{metric}: {columns}");
    }
    let each = match of {
        Repeated::Iterations => "iterations of each boot",
        Repeated::Samples => "samples of each iteration",
    };
    let first_of = match (first, range(*repeated)) {
        (1, all) => format!("the first of {all}"),
        (_, all) => format!("the first {first} of {all}"),
    };
    format!("{metric}: {first_of} {each}, warm-up in {columns}")
}

/// Describes warm-up that is included in the figures: because the user asked for that, or because too few
/// boots show it.
fn suspected(warm_up: &WarmUp, table: &Table, comparison: &Comparison) -> Vec<String> {
    let WarmUp { metric, of, repeated, first: sure, counted, .. } = warm_up;
    match (sure, counted, of) {
        (1.., true, _) => return vec![first(warm_up, table, comparison)],
        (1.., false, _) | (0, _, Repeated::Iterations) => return Vec::new(),
        (0, _, Repeated::Samples) => {}
    }
    let columns = comparison.variants.iter().zip(&warm_up.columns);
    let warm = columns.filter(|(_, it)| it.warm > 0).map(|(variant, it)| {
        format!(
            "{} {}: {} of {} {} with warm-up, of up to {} of {} samples",
            variant.name,
            metric,
            it.warm,
            count(it.boots, "boot"),
            if it.warm == 1 { "begins" } else { "begin" },
            it.longest,
            range(*repeated)
        )
    });
    warm.collect()
}

/// Names the variants with boots whose samples never become steady.
fn never(warm_up: &WarmUp, comparison: &Comparison) -> Vec<String> {
    let columns = comparison.variants.iter().zip(&warm_up.columns);
    let never = columns.filter(|(_, it)| it.never > 0 && warm_up.of == Repeated::Samples);
    let never = never.map(|(variant, it)| {
        format!(
            "{} {}: {} of {} still {} at the end of iterations",
            variant.name,
            warm_up.metric,
            it.never,
            count(it.boots, "boot"),
            if it.never == 1 { "changes" } else { "change" }
        )
    });
    never.collect()
}

fn range([least, most]: [usize; 2]) -> String {
    if least == most { format!("{most}") } else { format!("{least} to {most}") }
}

/// Returns a function that formats values of a metric.
fn figures(metric: &str, table: &Table) -> impl Fn(&f64) -> String {
    let decimals = table.rows.iter().find(|row| row.metric == metric && row.unit != "%");
    let decimals = decimals.map_or(2, |row| row.decimals);
    move |value| decimal(Some(*value), decimals)
}

fn topic(what: &Odd) -> &'static str {
    match what {
        Odd::OutlyingBoot { .. } | Odd::OutlyingIteration { .. } => "Outliers:",
        Odd::Modes { .. } => "Modes:",
        Odd::WarmUp { .. } => "Warm-up:",
        Odd::NeverSteady { .. } => "Not steady:",
    }
}

fn sentence(oddity: &Oddity, table: &Table, comparison: &Comparison) -> String {
    let figure = figures(&oddity.metric, table);
    let of = match comparison.variants.len() {
        1 => oddity.metric.clone(),
        _ => format!("{} {}", oddity.variant, oddity.metric),
    };
    match &oddity.what {
        Odd::OutlyingBoot { boot, value, median } => {
            format!("{of}: {boot} {}, median of boots {}", figure(value), figure(median))
        }
        Odd::OutlyingIteration { boot, iteration, value, median } => format!(
            "{of}: {boot} iteration {iteration} {}, median of its boot {}",
            figure(value),
            figure(median)
        ),
        Odd::Modes { modes } => {
            let peaks: Vec<String> = modes.iter().map(|peak| mode(peak, &figure)).collect();
            format!("{of}: {}", peaks.join(", "))
        }
        Odd::WarmUp { boot, iterations, first, steady } => {
            let verb = if *iterations == 1 { "is" } else { "are" };
            format!(
                "{of}: first {} of {boot} {verb} warm-up, {} on average, then {}",
                count(*iterations, "iteration"),
                figure(first),
                figure(steady)
            )
        }
        Odd::NeverSteady { boot } => format!("{of}: {boot} still changes at its end"),
    }
}

/// Describes a mode, with the boots all of whose values are in it.
fn mode(peak: &Peak, figure: &dyn Fn(&f64) -> String) -> String {
    let named: Vec<String> = peak.boots.iter().take(MAX_BOOTS).map(BootId::to_string).collect();
    let more = if named.len() < peak.boots.len() { " ..." } else { "" };
    let boots = count(peak.boots.len(), "boot");
    format!("{boots} near {} ({}{more})", figure(&peak.centre), named.join(" "))
}
