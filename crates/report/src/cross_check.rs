//! Measured time beside counted instructions.

use compare::{Comparison, Conclusion, CrossCheck, Gain, Sources, Verdict};
use model::count;

use crate::ascii::{escape, wrap};
use crate::notes::Note;
use crate::table::{decimal, marks, signed};
use crate::verdicts::short;

/// Which instructions are meant. Verdicts of exact mode are on the kernel's alone.
const ALL: &str = "instructions of kernel and user together";

/// Longer names push only their own line to the right.
const MAX_LABEL_WIDTH: usize = 34;

/// The names of the experiments, a table for each workload and variant, and below them the meaning of the
/// conclusions.
pub fn text(comparison: &Comparison) -> Option<String> {
    let cross_checks = &comparison.cross_checks;
    let baseline = comparison.variants.first().map_or("", |variant| &*variant.name);
    let same =
        |a: &CrossCheck, b: &CrossCheck| (&a.workload, &a.variant) == (&b.workload, &b.variant);
    let tables = cross_checks.chunk_by(same).map(|rows| table(rows, baseline));
    let tables = tables.collect::<Vec<_>>().join("\n");
    let meanings = conclusions(cross_checks).into_iter().map(|conclusion| {
        wrap(
            &format!("{}: ", conclusion.name()),
            &meaning(conclusion, widest(cross_checks, conclusion)),
        )
    });
    let sources = comparison.cross_check_sources.as_ref().map(|Sources { measured, exact }| {
        let (measured, exact) = (escape(measured), escape(exact));
        wrap("", &format!("Side by side: measured {measured}, exact {exact}; {ALL}"))
    });
    let parts = sources.into_iter().chain([tables]).chain(meanings);
    (!cross_checks.is_empty()).then(|| parts.collect())
}

/// The same as sentences, for lines too short for the table.
pub fn sentences(comparison: &Comparison) -> Option<Vec<Note>> {
    let Comparison { cross_checks, cross_check_sources, .. } = comparison;
    let said = |row: &CrossCheck| {
        let time = row.gain.map(|Gain { gain, low, high, confidence, .. }| {
            let [gain, low, high] = [gain, low, high].map(|it| decimal(Some(it), 2));
            let confidence = short(100.0 * confidence);
            let blocks = count(row.blocks, "block");
            format!("time {gain} % [{low}, {high}; {confidence} % interval] in {blocks}")
        });
        let instructions = row.instructions.as_ref().and_then(|it| {
            let gain = signed(Some(it.gain?), Some(it.verdict));
            let floor = it.floor_percent.map(|floor| format!(", luck floor {floor:.3} %"));
            Some(format!("instructions {gain} %{}", floor.unwrap_or_default()))
        });
        let figures: Vec<String> = [time, instructions].into_iter().flatten().collect();
        let name = format!("{} {}", row.workload, row.metric);
        let text = format!("{}: {}: {}", escape(&name), figures.join(", "), row.conclusion.name());
        Note::on("gains", &row.variant, text)
    };
    let sources = cross_check_sources.iter().map(|Sources { measured, exact }| {
        let text = format!("measured {}, exact {}; {ALL}", escape(measured), escape(exact));
        Note::on_all("experiments", text)
    });
    let conclusions = conclusions(cross_checks).into_iter().map(|conclusion| {
        let text = format!(
            "{}: {}",
            conclusion.name(),
            meaning(conclusion, widest(cross_checks, conclusion))
        );
        Note::on_all("conclusions", text)
    });
    let notes = sources.chain(cross_checks.iter().map(said)).chain(conclusions);
    (!cross_checks.is_empty()).then(|| notes.collect())
}

/// The conclusions of the rows, each once.
fn conclusions(cross_checks: &[CrossCheck]) -> Vec<Conclusion> {
    let mut conclusions: Vec<Conclusion> = cross_checks.iter().map(|row| row.conclusion).collect();
    conclusions.sort_unstable();
    conclusions.dedup();
    conclusions
}

/// The widest floor in percent among the rows with this conclusion.
fn widest(cross_checks: &[CrossCheck], conclusion: Conclusion) -> Option<f64> {
    let rows = cross_checks.iter().filter(|row| row.conclusion == conclusion);
    rows.filter_map(|row| row.unseen).reduce(f64::max)
}

fn table(rows: &[CrossCheck], baseline: &str) -> String {
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
        "{} by both clocks: gains of {} over {} (positive is better), in time{intervals} ({blocks} of boots), in \
         instructions with their luck floors",
        escape(workload),
        escape(variant),
        escape(baseline)
    );
    let labels: Vec<String> = rows.iter().map(|row| escape(&row.metric)).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0).min(MAX_LABEL_WIDTH);
    let mut text = wrap("", &heading);
    let header =
        format!("{:width$}{:>9}{:>20}{:>14}{:>9}", "", "time", "interval", "instructions", "floor");
    text.push_str(&format!("{header}  conclusion\n"));
    for (label, row) in labels.iter().zip(rows) {
        text.push_str(&format!("{label:<width$}{}  {}\n", figures(row), row.conclusion.name()));
    }
    text
}

fn figures(row: &CrossCheck) -> String {
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
    format!("{gain:>9}{interval:>20}{instructions:>14}{floor:>9}")
}

/// What a conclusion means where floors are at most `unseen` percent wide.
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
