//! The causes of the changes, in exact mode: the functions that hold them, and who calls whom.

use compare::Explained;

use super::Page;
use crate::ascii::{excerpt, shell_word};
use crate::build;
use crate::document::{Block, note, part};
use crate::explain::{apart, exact, headline, lines};

/// Most explanations that are drawn. Others have only their table.
const MAX_DRAWN: usize = 4;

/// Lays out the explanation of each workload and variant that changed.
pub fn blocks(page: &Page<'_>) -> Vec<Block> {
    let changed = page.explained.iter().filter(|it| !it.headlines.is_empty());
    let several = changed.clone().count() > 1;
    let parts = changed.enumerate().flat_map(|(number, it)| {
        let blocks = one(it, page, number < MAX_DRAWN);
        let title = format!("{}: {}", excerpt(&it.workload), excerpt(&it.variant));
        if several { vec![part(title, blocks)] } else { blocks }
    });
    parts.collect()
}

fn one(it: &Explained, page: &Page<'_>, is_drawn: bool) -> Vec<Block> {
    let Explained { headlines, explanation, paths, .. } = it;
    let mut blocks = vec![headline::table(headlines)];
    let said = headline::headlines(headlines, None);
    let below = headline::legend(&said).into_iter();
    let builds = page.comparison.notes.builds.iter().filter(|build| build.variant == it.variant);
    let below = below.chain(headline::hint(headlines.iter())).chain(builds.map(build::differs));
    let below = headline::by_kernel(it)
        .chain(apart::sentences(explanation, headlines.iter(), |_| true))
        .chain(headlines.iter().filter_map(apart::threads))
        .chain(below);
    blocks.extend(below.map(note));
    let section = explanation.section(None).filter(|_| is_drawn && explanation.all.is_some());
    blocks.extend(
        section
            .into_iter()
            .flat_map(|section| exact::drawn(explanation, headlines, paths, section)),
    );
    blocks.extend(lines::folds(explanation));
    let names = [&page.comparison.variants[0].name, &it.variant, &page.results.experiment.name];
    let [base, new, experiment] = names.map(|name| shell_word(name.as_bytes()));
    let several = page.comparison.has_several_workloads();
    let workload = several.then(|| format!(" --workload {}", shell_word(it.workload.as_bytes())));
    let workload = workload.unwrap_or_default();
    blocks.push(note(format!(
        "All functions, counters and phases: `faultline explain {base} {new} {experiment}{workload} \
         --format html`."
    )));
    blocks
}
