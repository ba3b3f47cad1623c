//! Explains a difference of exact mode: first in sentences, on a page also in graphs, then in tables.

use compare::{Explanation, Headline, Paths, SampledDifference, Section};
use model::Class;

use super::cause;
use super::flame::{self, Graphs};
use super::layout;
use super::lines;
use super::lists;
use super::transfers;
use super::waterfall::waterfall;
use super::{apart, headline};
use super::{page, pages, sampled, view, work};
use crate::ascii::{excerpt, few};
use crate::build;
use crate::document::{Block, TEXT, lead, note, part, sections, sentence};
use crate::words;

/// Most rows of each ranking on a page.
const MAX_ROWS: usize = 30;
/// Most phases that have a line of their own in text.
const MAX_PHASES: usize = 8;

/// Printed below a flame graph without call paths.
const WITHOUT_PATHS: &str = "Not all boots recorded call paths, so functions stand alone. With `stacks = true` boots \
                             record them, and the graph shows who calls whom.";

/// Explains the difference as plain text: ASCII, at most 100 columns where the figures allow. The text
/// begins with a sentence for each measured phase. The rankings are those of the measured phases, or of
/// `phase`, with `top` rows each.
pub fn explain(
    explanation: &Explanation,
    headlines: &[Headline],
    phase: Option<&str>,
    top: usize,
) -> String {
    match blocks(explanation, headlines, phase, top, None) {
        Err(why) => sections(&[vec![sentence(why)]], &TEXT),
        Ok(all) => {
            let title = vec![sentence(format!("{}:", view::title(explanation)))];
            sections(&[title].into_iter().chain(all).collect::<Vec<_>>(), &TEXT)
        }
    }
}

/// Explains the difference as a page. For the measured phases, or for `phase`, the page has a waterfall of
/// the contributions, a flame graph of `paths`, which must be of the same phases, and the rankings. The
/// rankings of the other phases follow, folded. `beside` is a comparison of sampled profiles of the same
/// variants, with its own paths, which is added below. Every name is escaped; nothing is loaded.
pub fn explain_html(
    explanation: &Explanation,
    headlines: &[Headline],
    paths: &Paths,
    phase: Option<&str>,
    beside: Option<(&SampledDifference, &Paths)>,
) -> String {
    let all = blocks(explanation, headlines, phase, MAX_ROWS, Some(paths));
    let all = all.unwrap_or_else(|why| vec![vec![sentence(why)]]);
    let beside = beside.map(|(difference, paths)| {
        let blocks = sampled::blocks(difference, MAX_ROWS, Some(paths)).concat();
        // The blocks below have the same level as this title.
        let title = part(format!("Sampled: {}", sampled::title(difference)), []);
        [vec![title], blocks].concat()
    });
    let all: Vec<Block> = all.into_iter().chain(beside).flatten().collect();
    page(&explanation.workload, &view::title(explanation), &all)
}

/// Returns the blocks of an explanation, in sections, with at most `rows` rows in each ranking. With
/// `paths` they are those of a page, which has graphs. An error says why there is nothing to explain.
fn blocks(
    explanation: &Explanation,
    headlines: &[Headline],
    phase: Option<&str>,
    rows: usize,
    paths: Option<&Paths>,
) -> Result<Vec<Vec<Block>>, String> {
    let Some(all) = explanation.section(None).filter(|_| explanation.all.is_some()) else {
        return Err(view::nothing(explanation));
    };
    let Some(section) = explanation.section(phase) else {
        return Err(view::no_phase(explanation, phase.unwrap_or_default()));
    };
    let mut found = headline::headlines(headlines, phase);
    let is_unasked = explanation.reasons.is_none();
    let asked = headlines.iter().filter(|it| phase.is_none_or(|phase| it.phase == phase));
    found.extend(asked.clone().filter_map(work::sentence));
    found.extend(pages::sentences(asked.clone()));
    found.extend(headline::by_reason(asked.clone()).filter(|_| is_unasked));
    found.extend(apart::sentences(explanation, asked.clone(), |_| true));
    found.extend(asked.filter_map(apart::threads));
    let moved = cause::moved(of_section(headlines, section), section);
    // Of a class, only functions with such instructions are known.
    let causes = match Class::named(&explanation.cost.name) {
        Some(_) => None,
        None => cause::causes(section, &explanation.cost.unit, &moved),
    };
    // A single cause is the answer.
    let place = if section.only_cause().is_some() { 0 } else { found.len() };
    found.splice(place..place, causes);
    found.extend(of_one_side(explanation));
    let instructions = explanation.instructions.as_ref();
    found.extend(instructions.and_then(|it| transfers::meaning(it, &section.totals.kernel)));
    let is_locked = explanation.cost.name == Class::Locked.name();
    found.extend(is_locked.then(|| lists::LOCKED_ON_ONE_CPU.to_owned()));
    found.splice(0..0, build::states(explanation));
    found.extend(explanation.build.as_ref().map(build::differs));
    let legend = headline::legend(&found);
    let below = legend.into_iter().chain(view::unjudged(explanation, phase)).map(note);
    let found = found.into_iter().map(lead).chain(below).collect();
    let phases = if paths.is_some() { usize::MAX } else { MAX_PHASES };
    let drawn = paths.map(|paths| drawn(explanation, headlines, paths, section));
    let others = std::iter::once(all).chain(&explanation.phases);
    let others = others.filter(|other| paths.is_some() && other.phase != section.phase);
    let folds = others.map(|other| {
        let tables = rankings(explanation, headlines, other, rows);
        let blocks = contributions(explanation, other).into_iter().chain(tables);
        let blocks = blocks.chain(view::cautions(explanation, other).into_iter().map(sentence));
        Block::Fold(format!("In {}", covered(explanation, other)), blocks.collect())
    });
    let cautions = view::cautions(explanation, section).into_iter().map(sentence);
    let notes = view::notes(explanation).into_iter().map(note);
    let last = lines::folds(explanation).into_iter().chain(cautions).chain(folds).chain(notes);
    let last = last.collect();
    let tables = rankings(explanation, headlines, section, rows).map(|table| vec![table]);
    let reasons =
        explanation.reasons.as_ref().map(|it| lists::reasons(explanation, section, it, rows));
    let lists = reasons.into_iter().chain(lists::classes(explanation, section));
    let lists = lists.chain(lists::fields(explanation, section, rows));
    let lists = lists.chain(layout::blocks(explanation));
    let totals = [view::totals(explanation, phase, phases)].into_iter().chain(lists).collect();
    Ok([found].into_iter().chain(drawn).chain([totals]).chain(tables).chain([last]).collect())
}

/// Most phases that are named because only one side has them.
const MAX_LACKING: usize = 6;

/// Returns a sentence on the phases that only one side has, for each side that has some.
fn of_one_side(explanation: &Explanation) -> Vec<String> {
    let Explanation { base, new, phases, .. } = explanation;
    let name = |it: &Section| headline::phase_name(it.phase.as_deref().unwrap_or_default());
    let is_named = |it: &&Section| it.is_of_one_side() && it.phase.as_deref() != Some("");
    let said = [(new, base, true), (base, new, false)].map(|(has, lacks, is_new)| {
        let own = phases.iter().filter(is_named);
        let own: Vec<&Section> = own.filter(|it| it.executed[0] != is_new).collect();
        let change: f64 = own.iter().map(|it| it.totals.kernel.change()).sum();
        (!own.is_empty()).then(|| {
            format!(
                "Only {} has {}, not {}: {} kernel {} of the change of the measured phases together.",
                excerpt(&has.name),
                few(MAX_LACKING, own.iter().map(|it| format!("phase {}", name(it)))).join(", "),
                excerpt(&lacks.name),
                words::signed(change, 0),
                explanation.cost.unit
            )
        })
    });
    said.into_iter().flatten().collect()
}

/// Draws a section: the contributions, and who calls whom.
pub fn drawn(
    explanation: &Explanation,
    headlines: &[Headline],
    paths: &Paths,
    section: &Section,
) -> Vec<Block> {
    let graphs = graphs(explanation, headlines, paths, section);
    let lacks_paths = !paths.followed && view::is_per_entry(explanation);
    let alone = lacks_paths.then(|| sentence(WITHOUT_PATHS));
    contributions(explanation, section).into_iter().chain([graphs]).chain(alone).collect()
}

/// Returns the tables of a section. There is no ranking per entry if the cost is entries.
fn rankings(
    explanation: &Explanation,
    headlines: &[Headline],
    section: &Section,
    rows: usize,
) -> impl Iterator<Item = Block> {
    let moved = cause::moved(of_section(headlines, section), section);
    let is_per_entry = view::is_per_entry(explanation);
    let per_entry = is_per_entry.then(|| view::per_entry(explanation, section, &moved, rows));
    let contributions = view::contributions(explanation, section, &moved, rows);
    per_entry.into_iter().chain([contributions, view::counters(explanation, section, rows)])
}

/// Draws the contributions of a section as a waterfall.
fn contributions(explanation: &Explanation, section: &Section) -> Option<Block> {
    let [base, new] = names(explanation);
    let drawing = waterfall(explanation, section)?;
    let (unit, covered) = (&explanation.cost.unit, covered(explanation, section));
    let how = format!(
        "A bar is the change of a function's own {unit}, without those of what it calls. Where work \
         moved from a function into others, its bar points back and theirs point forward. Hollow: only \
         one side executes the function; it may be new, gone, renamed, inlined or split off. Pale: the \
         change may be luck."
    );
    let title = format!("From {base} to {new} in {covered}: {unit} by function");
    Some(part(title, [note(how), Block::Chart(drawing)]))
}

/// Returns the name of what a section covers: a phase, the measured phases, or all phases.
fn covered(explanation: &Explanation, section: &Section) -> String {
    match &section.phase {
        Some(phase) => format!("phase {}", headline::phase_name(phase)),
        None if explanation.measured.is_some() => "the measured phases".to_owned(),
        None => "all phases".to_owned(),
    }
}

/// Draws the flame graphs of a section.
fn graphs(
    explanation: &Explanation,
    headlines: &[Headline],
    paths: &Paths,
    section: &Section,
) -> Block {
    let graphs = Graphs {
        title: format!(
            "Who calls whom in {}: a differential flame graph",
            covered(explanation, section)
        ),
        names: names(explanation),
        unit: &explanation.cost.unit,
        moved: ": to another call path of the same function, between a function and its callees, or \
                between callees of which one is new or gone",
        least: section.totals.kernel.floor.unwrap_or(0.0),
        marked: of_section(headlines, section).flat_map(headline::functions).collect(),
        marks: "the functions named at the top",
    };
    flame::graphs(paths, &graphs)
}

/// Returns the headlines of the phases of a section.
fn of_section<'a>(
    headlines: &'a [Headline],
    section: &'a Section,
) -> impl Iterator<Item = &'a Headline> {
    let phase = section.phase.as_deref();
    headlines.iter().filter(move |it| phase.is_none_or(|phase| it.phase == phase))
}

/// Returns the names of both sides, escaped.
fn names(explanation: &Explanation) -> [String; 2] {
    [&explanation.base, &explanation.new].map(|side| excerpt(&side.name))
}
