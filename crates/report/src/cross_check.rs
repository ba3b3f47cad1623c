//! Compares the change of measured time with that of counted instructions.

use compare::{Comparison, Conclusion, CrossCheck, Gain, Sources, Verdict};
use model::count;

use crate::document::{Block, Column, sentence, table};
use crate::table::{marks, signed};
use crate::words::{decimal, short};

/// The instructions of this table. Verdicts of exact mode are on those of the kernel alone.
const ALL: &str = "instructions of kernel and user together";

/// Lays out the experiments that are compared, then a table for each workload and variant, then the meaning
/// of the conclusions in the tables. Nothing if there is no cross-check.
pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let cross_checks = &comparison.cross_checks;
    if cross_checks.is_empty() {
        return Vec::new();
    }
    let baseline = comparison.variants.first().map_or("", |variant| &*variant.name);
    let same =
        |a: &CrossCheck, b: &CrossCheck| (&a.workload, &a.variant) == (&b.workload, &b.variant);
    let tables = cross_checks.chunk_by(same).flat_map(|rows| of_variant(rows, baseline));
    let meanings = conclusions(cross_checks).into_iter().map(|conclusion| {
        let said = meaning(conclusion, widest(cross_checks, conclusion));
        vec![format!("{}:", conclusion.name()), said]
    });
    let meanings = table([Column::words(""), Column::sentences("")], meanings.collect());
    let sources = comparison.cross_check_sources.as_ref().map(|Sources { measured, exact }| {
        sentence(format!("Side by side: measured {measured}, exact {exact}; {ALL}."))
    });
    sources.into_iter().chain(tables).chain([meanings]).collect()
}

/// Returns the conclusions of the rows, each once, sorted.
fn conclusions(cross_checks: &[CrossCheck]) -> Vec<Conclusion> {
    let mut conclusions: Vec<Conclusion> = cross_checks.iter().map(|row| row.conclusion).collect();
    conclusions.sort_unstable();
    conclusions.dedup();
    conclusions
}

/// Returns the largest change, in percent, that can be unseen in a row with this conclusion. `None` if no
/// row has a limit.
fn widest(cross_checks: &[CrossCheck], conclusion: Conclusion) -> Option<f64> {
    let rows = cross_checks.iter().filter(|row| row.conclusion == conclusion);
    rows.filter_map(|row| row.unseen).reduce(f64::max)
}

/// Lays out the rows of a workload and a variant, below a heading.
fn of_variant(rows: &[CrossCheck], baseline: &str) -> [Block; 2] {
    let CrossCheck { workload, variant, .. } = &rows[0];
    let least = rows.iter().map(|row| row.blocks).min().unwrap_or(0);
    let most = rows.iter().map(|row| row.blocks).max().unwrap_or(0);
    let blocks = match least == most {
        true => count(most, "block"),
        false => format!("{least} to {most} blocks"),
    };
    let intervals = rows.iter().find_map(|row| row.gain).map_or(String::new(), |gain| {
        format!(" with their {} % intervals", short(100.0 * gain.confidence))
    });
    let heading = format!(
        "{workload} by both clocks: gains of {variant} over {baseline} (positive is better), in \
         time{intervals} ({blocks} of boots), in instructions with their luck floors"
    );
    let columns = [
        Column::words(""),
        Column::figures("time"),
        Column::figures("interval"),
        Column::figures("instructions"),
        Column::figures("floor"),
        Column::words("conclusion"),
    ];
    [sentence(heading), table(columns, rows.iter().map(cells).collect())]
}

fn cells(row: &CrossCheck) -> Vec<String> {
    let [gain, interval] = match row.gain {
        Some(Gain { gain, low, high, .. }) => {
            let [gain, low, high] = [gain, low, high].map(|it| decimal(Some(it), 2));
            [format!("{gain}%"), format!("{low:>7} to {high:>7}")]
        }
        None => ["-".to_owned(), "-".to_owned()],
    };
    let percent = |text: String| if text == "-" { text } else { format!("{text}%") };
    let counted = row.instructions.as_ref();
    let verdict = counted.map_or(Verdict::Undecided, |it| it.verdict);
    let instructions = percent(signed(counted.and_then(|it| it.gain), Some(verdict)));
    let floor = percent(decimal(counted.and_then(|it| it.floor_percent), 3));
    let [open, close] = marks(Some(verdict));
    let instructions = format!("{open}{instructions:>8}{close}");
    let conclusion = row.conclusion.name().to_owned();
    vec![row.metric.clone(), gain, interval, instructions, floor, conclusion]
}

/// Returns the meaning of a conclusion. `unseen` is the largest change, in percent, that can be unseen.
fn meaning(conclusion: Conclusion, unseen: Option<f64>) -> String {
    let above = unseen.map_or(String::new(), |unseen| format!(" above {unseen:.3} %"));
    match conclusion {
        Conclusion::CodePath => "time changed, and so did instructions, beyond luck.".to_owned(),
        Conclusion::LayoutOrMemory => format!(
            "time changed, but no change of instructions (user and kernel) or guest time was \
             seen{above}: the cause is alignment, caches or memory latency, not the code path."
        ),
        Conclusion::Hidden => {
            "instructions changed beyond luck, but no change of time was seen.".to_owned()
        }
        Conclusion::Same => format!(
            "no change was seen in time, nor in instructions (user and kernel) and guest \
             time{above}."
        ),
        Conclusion::Undecided => "fewer than 3 blocks, a seed missing, floors wider than half the \
                               gain in time, instructions of several operations in one, or \
                               instructions that disagree with their parts or with guest time."
            .to_owned(),
        Conclusion::Withheld => "times under emulation (TCG) are not performance.".to_owned(),
    }
}
