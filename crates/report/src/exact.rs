//! What is said above and below the tables of exact mode: what it found, and what it cannot see.

use compare::{Comparison, Kind, Table, Verdict};
use model::{Mode, count};

use crate::ascii::{escape, few};
use crate::notes::{Note, lay_out};

/// Nanoseconds by which the guest's clock advances with an instruction of whichever CPU: QEMU's
/// `-icount shift=1` is 2^1.
pub const NANOSECONDS: u32 = 2;
/// What time depends on in a real machine and not in exact mode.
pub const NOT_MODELLED: [&str; 4] =
    ["caches", "TLBs", "memory latency", "contention in time between CPUs (they take turns)"];
/// Operations that are named for a verdict; the others are counted.
const MAX_NAMES: usize = 4;
/// How often luck alone exceeds the floor of so many seeds, in percent of comparisons, if figures are
/// normal; see `compare`'s page on luck. With more seeds it does so less often.
const FALSE_ALARMS: [(u32, f64); 4] = [(2, 22.0), (3, 4.9), (4, 1.1), (5, 0.2)];

/// So many seeds that false alarms are rare: as many as the last of [`FALSE_ALARMS`] has.
pub const ENOUGH: u32 = 5;

/// How often luck alone exceeds the floor of `seeds` seeds, in percent of comparisons: at most so
/// often for more than 5. None for fewer than 2, of which nothing is known.
pub fn false_alarms(seeds: u32) -> Option<f64> {
    let known = FALSE_ALARMS.iter().rev().find(|(number, _)| *number <= seeds);
    known.map(|(_, percent)| *percent)
}

/// The head of a report made in exact mode.
pub fn head(comparison: &Comparison) -> Option<String> {
    (comparison.mode == Mode::Exact).then(|| lay_out("Exact mode:", &notes(comparison)))
}

/// What there is to say of exact mode before any table.
pub fn notes(comparison: &Comparison) -> Vec<Note> {
    let mut notes: Vec<Note> = seeds(comparison);
    notes.extend((1..comparison.variants.len()).filter_map(|column| verdicts(comparison, column)));
    notes.extend(limits());
    notes
}

/// What exact mode does not see.
pub fn limits() -> [Note; 2] {
    let times = format!("guest time: {NANOSECONDS} ns an instruction, no caches; not performance");
    [Note::on_all("times", times), Note::on_all("not modelled", NOT_MODELLED.join(", "))]
}

/// How many seeds there are, and what that means for verdicts.
pub fn seeds(comparison: &Comparison) -> Vec<Note> {
    const TOPIC: &str = "seeds";
    let Comparison { boots: wanted, variants, .. } = comparison;
    let lacking = variants.iter().filter(|variant| (variant.complete as u64) < u64::from(*wanted));
    let mut notes: Vec<Note> = lacking
        .map(|variant| {
            let text = format!("{} of {wanted}, so that nothing is decided", variant.complete);
            Note::on(TOPIC, &variant.name, text)
        })
        .collect();
    if notes.is_empty() {
        let text = match (*wanted, false_alarms(*wanted), false_alarms(ENOUGH)) {
            (1, ..) => "1 a variant, which says nothing of luck".to_owned(),
            (..ENOUGH, Some(percent), Some(least)) => format!(
                "{wanted} a variant: luck alone goes beyond their floor in {percent} % of \
                 comparisons, beyond that of {ENOUGH} seeds in {least} %"
            ),
            _ => format!("{wanted} a variant"),
        };
        notes.push(Note::on_all(TOPIC, text));
    }
    notes
}

/// How often each verdict was given on a column, and on what.
fn verdicts(comparison: &Comparison, column: usize) -> Option<Note> {
    let of = |verdict| {
        let given = comparison.verdicts(column).filter(|it| it.2 == verdict);
        given.map(|(table, row, _)| (table, row)).collect::<Vec<_>>()
    };
    let first = comparison.tables.first().map(|table| &table.workload);
    let several = comparison.tables.iter().any(|table| Some(&table.workload) != first);
    let name = |table: &Table, metric: &str| match several {
        true => format!("{} {}", escape(&table.workload), escape(metric)),
        false => escape(metric),
    };
    let mut said = Vec::new();
    for verdict in [Verdict::Regression, Verdict::Improvement] {
        let rows = of(verdict);
        if rows.is_empty() {
            continue;
        }
        let names =
            few(MAX_NAMES, rows.iter().map(|(table, row)| name(table, &row.metric)).collect());
        said.push(format!("{} ({})", count(rows.len(), verdict.name()), names.join(", ")));
    }
    for verdict in [Verdict::Same, Verdict::Undecided] {
        let rows = of(verdict).len();
        if rows > 0 {
            said.push(format!("{rows} {}", verdict.name()));
        }
    }
    let (variant, baseline) = (&comparison.variants[column].name, &comparison.variants[0].name);
    let text = format!("against {}: {}", escape(baseline), said.join(", "));
    (!said.is_empty()).then(|| Note::on("verdicts", variant, text))
}

/// What the marks in `table` mean.
pub fn legend(table: &Table) -> Option<&'static str> {
    match (table.kind, table.pooled.len()) {
        (Kind::Metrics, 0 | 1) => Some("Luck: the range over seeds."),
        (Kind::Metrics, _) => Some(
            "Means: [beyond luck], (the same), ?undecided?; the floor is the wider Luck of the two.",
        ),
        (_, 0 | 1) => None,
        _ => Some(
            "[Beyond luck]: differs by more than the wider range over seeds of the two; ?undecided?.",
        ),
    }
}
