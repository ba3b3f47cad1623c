//! Lists as text: kernels, experiments, boots.

use model::{Boot, Kernel};
use store::{BootId, ExperimentRow};

/// The kernels in the cache, a line each.
pub fn kernels(kernels: &[Kernel]) -> String {
    let rows = kernels.iter().map(|kernel| {
        let modules = if kernel.modules.is_some() { "modules" } else { "no modules" };
        [
            kernel.name.clone(),
            modules.to_owned(),
            kernel.digest.chars().take(12).collect(),
            kernel.origin.clone(),
        ]
    });
    columns(["KERNEL", "MODULES", "DIGEST", "ORIGIN"], rows)
}

/// The experiments in the store, a line each.
pub fn experiments(experiments: &[ExperimentRow]) -> String {
    let rows = experiments.iter().map(|row| {
        let wanted = row.boots as usize * row.variants.len();
        let outcomes: Vec<String> =
            row.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let boots = format!("{} of {wanted}", outcomes.join(", "));
        [row.id.to_string(), row.name.clone(), boots, row.variants.join(", ")]
    });
    columns(["NUMBER", "EXPERIMENT", "BOOTS", "VARIANTS"], rows)
}

/// The boots of an experiment, a line each.
pub fn boots(boots: &[(BootId, Boot)]) -> String {
    let rows = boots.iter().map(|(id, boot)| {
        [
            format!("b{id}"),
            boot.variant.clone(),
            boot.replicate.to_string(),
            format!("{:.0} s", boot.host.wall),
            boot.facts.accel.clone(),
            boot.facts.release.clone(),
            one_line(&boot.outcome.to_string()),
        ]
    });
    columns(["BOOT", "VARIANT", "REPLICATE", "TIME", "ACCEL", "RELEASE", "OUTCOME"], rows)
}

/// What a boot for a look found.
pub fn boot(boot: &Boot) -> String {
    let facts = &boot.facts;
    let head = format!(
        "{}: {} in {:.1} s ({}, {})\n",
        facts.release,
        one_line(&boot.outcome.to_string()),
        boot.host.wall,
        facts.emulator,
        facts.accel
    );
    let machine = format!(
        "{} CPUs, {} nodes, {} MiB of memory\n",
        facts.cpus,
        facts.nodes,
        facts.memory >> 20
    );
    let lines = [&facts.banner, &facts.version, &facts.cmdline].map(|line| one_line(line.trim()));
    let problems = boot
        .problems
        .iter()
        .map(|problem| format!("{}: {}\n", problem.kind, one_line(&problem.text)));
    let problems: String = problems.collect();
    format!("{head}{machine}{}\n{problems}", lines.join("\n"))
}

/// Text of a guest's, made safe for a terminal and a line.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Lays rows out in columns, each as wide as its widest cell.
fn columns<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a".to_owned(), "bcd".to_owned()], ["efgh".to_owned(), "i".to_owned()]];
        let text = columns(["X", "Y"], rows.into_iter());
        assert_eq!(text, "X     Y\na     bcd\nefgh  i\n");
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        assert_eq!(one_line("a\nb\x1b[2J"), "a b [2J");
    }
}
