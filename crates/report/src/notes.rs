//! Notes on the variants, which stand below the tables.

use std::collections::BTreeSet;

use benchmarks::names::Month;
use compare::{
    Comparison, Complaint, ConfigChange, ConfigDifference, Fact, HostRange, Mixed, Notes,
    PAGE_SIZE, Unmeasured, UserNote, VariantOutcomes,
};
use model::{BootId, count};

use crate::ascii::{MAX_TEXT, cut, excerpt, few};
use crate::consistency;
use crate::document::Block;
use crate::note::{Note, block};
use crate::words::{listed, scope_sentence};

/// Most complaints of one kind that are printed for a variant; the others are counted.
const MAX_COMPLAINTS: usize = 3;
/// Most notes of workloads on figures that they could not measure that are printed for a variant; the
/// others are counted.
const MAX_UNMEASURED: usize = 8;
/// Most boots that are named in such a note.
const MAX_BOOTS: usize = 10;
/// Most kernel options that are printed for a variant; the others are counted.
const MAX_OPTIONS: usize = 20;
/// Most characters of a setting, module or command line that a variant changes. A command line has at most
/// 2048 characters (`COMMAND_LINE_SIZE`), but a guest can claim a longer one.
const MAX_CHANGED: usize = 1 << 16;
/// Topics of notes on what a variant changes.
pub const CHANGED: [&str; 3] = ["settings", "modules", "command line"];
/// The topic of notes on boots in which some workloads failed.
pub const PARTIAL: &str = "failed in part";
const CONFIGURATION: &str = "configuration";
/// The topic of notes on what kernels complained of.
pub const COMPLAINTS: &str = "complaints";
/// Prefix of the origin of a Debian package. The version follows, up to a comma.
pub const DEBIAN: &str = "Debian ";
/// The topic of notes on the origin of kernels.
pub const ORIGIN: &str = "origin";

/// Returns notes on the states in which the variants' kernels differ. They are read before the verdicts.
pub fn states(comparison: &Comparison) -> Vec<Note> {
    let Comparison { variants, notes, .. } = comparison;
    let states = notes.states.iter().flat_map(|it| together(fact(it, variants), variants));
    states.chain(per_page(comparison)).collect()
}

/// Returns a note on the rows with a verdict whose unit is a number of pages. `None` if there are none, or pages have one
/// size.
fn per_page(comparison: &Comparison) -> Option<Note> {
    let Comparison { tables, notes, .. } = comparison;
    let size = notes.states.iter().find(|it| it.name == PAGE_SIZE)?;
    let rows = tables.iter().flat_map(|table| &table.rows);
    let units = rows.filter(|row| row.better.is_some() && row.unit.contains("page"));
    let units: BTreeSet<String> = units.map(|row| excerpt(&row.unit)).collect();
    let units: Vec<String> = units.into_iter().collect();
    (!units.is_empty()).then(|| {
        let text = format!("figures in {} count pages, and not as many bytes", listed(&units));
        Note::on_all(size.name, text)
    })
}

/// Lays out the notes on states; `None` if there are none.
pub fn states_block(comparison: &Comparison) -> Option<Block> {
    let states = states(comparison);
    (!states.is_empty()).then(|| block("States that differ:", &states))
}

/// Returns all notes but those on states.
pub fn all(comparison: &Comparison) -> Vec<Note> {
    let Comparison { variants, notes, .. } = comparison;
    let baseline = variants.first().map_or("", |variant| &*variant.name);
    let mut all: Vec<Note> = Vec::new();
    all.extend(comparison.user_notes.iter().map(of_user));
    all.extend(scope_sentence(comparison).map(|it| Note::on_all("scope", it)));
    all.extend(comparison.names.map(names));
    all.extend(notes.facts.iter().flat_map(|it| together(fact(it, variants), variants)));
    all.extend(together(configs(&notes.config, baseline), variants));
    all.extend(notes.host.iter().map(host));
    all.extend(notes.mixed.iter().map(mixed));
    all.extend(variants.iter().flat_map(failed));
    all.extend(variants.iter().flat_map(set_aside));
    all.extend(noted("no figure", &notes.unmeasured));
    all.extend(noted("left over", &notes.left));
    all.extend(noted("changed", &notes.on_host));
    all.extend(complaints(&notes.complaints));
    all.extend(no_complaints(notes, variants.len()));
    all.extend(notes.findings.iter().map(consistency::finding));
    all.extend(notes.counting.iter().map(|it| consistency::counting(it, baseline)));
    all
}

/// The topic of notes on the compilers of kernels.
pub const COMPILER: &str = "compiler";
/// The topic of the user's own notes, which no mail has.
pub const OF_USER: &str = "user's note";

/// Returns the user's own note on an experiment.
fn of_user(note: &UserNote) -> Note {
    let text = note.text.clone();
    match note.experiment {
        Some(number) => Note::on(OF_USER, &format!("experiment {number}"), text),
        None => Note::on_all(OF_USER, text),
    }
}

/// Returns a note on the version of mmtests whose names the rows have.
fn names(at: Month) -> Note {
    let when = match at {
        Month::LATEST => "names them".to_owned(),
        at => format!("named them in {at}"),
    };
    Note::on_all(
        "names",
        format!("rows are named as mmtests {when}, where it has them; the figures are ours"),
    )
}

/// Returns a note on a fact. There is one note if all variants are the same, otherwise one for each
/// variant.
fn fact(fact: &Fact, variants: &[VariantOutcomes]) -> Vec<Note> {
    // What a variant changes is printed in full.
    let most = if CHANGED.contains(&fact.name) { MAX_CHANGED } else { MAX_TEXT };
    let words = |value: &Option<String>| match value.as_deref() {
        None => "not known".to_owned(),
        Some("") => "nothing of its own".to_owned(),
        Some(value) => cut(value, most),
    };
    let mut known = fact.values.iter().flatten();
    if fact.values.contains(&None) && known.all(String::is_empty) {
        return Vec::new();
    }
    if fact.differs() {
        let columns = variants.iter().zip(&fact.values);
        return columns
            .map(|(variant, value)| Note::on(fact.name, &variant.name, words(value)))
            .collect();
    }
    match fact.values.first() {
        None | Some(None) => Vec::new(),
        Some(Some(same)) if same.is_empty() && variants.len() == 1 => Vec::new(),
        Some(Some(same)) if same.is_empty() => vec![Note::on_all(fact.name, "the same".into())],
        Some(same) => vec![Note::on_all(fact.name, words(same))],
    }
}

/// Joins notes with the same text into one on all their variants, if words of the variants' names tell these from the
/// others. `notes` has at most one note on each variant.
fn together(notes: Vec<Note>, variants: &[VariantOutcomes]) -> Vec<Note> {
    let mut sets: Vec<(&Note, Vec<&str>)> = Vec::new();
    for note in &notes {
        let Some(variant) = note.variant.as_deref() else { return notes };
        match sets.iter_mut().find(|(other, _)| other.text == note.text) {
            Some((_, names)) => names.push(variant),
            None => sets.push((note, vec![variant])),
        }
    }
    let joined = sets.iter().map(|(note, names)| {
        let label = shared_words(names, variants)?;
        Some(Note::on(note.topic, &label, note.text.clone()))
    });
    joined.collect::<Option<Vec<Note>>>().unwrap_or(notes)
}

/// Returns the words that the names of these variants share, if no other variant's name has them all: `6.12` for the
/// variants `6.12 thp=always` and `6.12 thp=never` of several kernels. `None` if there are no such words.
pub(crate) fn shared_words(names: &[&str], variants: &[VariantOutcomes]) -> Option<String> {
    let (first, others) = names.split_first()?;
    let has = |name: &str, word: &str| name.split(' ').any(|it| it == word);
    let shared = first.split(' ').filter(|word| others.iter().all(|name| has(name, word)));
    let shared: Vec<&str> = shared.collect();
    let is_other = |it: &VariantOutcomes| !names.contains(&&*it.name);
    let has_all = |it: &VariantOutcomes| shared.iter().all(|word| has(&it.name, word));
    let tells = !variants.iter().any(|it| is_other(it) && has_all(it));
    (tells && !shared.is_empty()).then(|| shared.join(" "))
}

/// Returns notes on kernel configurations. There is one note if all are the same, otherwise one for each
/// variant but the baseline.
fn configs(differences: &[ConfigDifference], baseline: &str) -> Vec<Note> {
    let mut others = differences.iter();
    if !differences.is_empty() && others.all(|it| it.differing == Some(0)) {
        return vec![Note::on_all(CONFIGURATION, "the same".into())];
    }
    differences.iter().map(|it| config(it, baseline)).collect()
}

fn config(difference: &ConfigDifference, baseline: &str) -> Note {
    let text = match difference.differing {
        None => "not known".to_owned(),
        Some(0) => format!("the same as {baseline}"),
        Some(differing) => {
            let differ = if differing == 1 { "differs" } else { "differ" };
            let differing = count(differing, "option");
            let relevant = relevant(difference);
            format!(
                "{differing} {differ} from {baseline}; of memory management and scheduling: \
                 {relevant}"
            )
        }
    };
    Note::on(CONFIGURATION, &difference.variant, text)
}

/// Lists the options that both kernels have with different values. Options that only one kernel has came or
/// went with the code, and are counted.
fn relevant(difference: &ConfigDifference) -> String {
    let changed: Vec<String> = difference.relevant.iter().filter_map(changed).collect();
    let one_sided = difference.relevant.len() - changed.len();
    let mut texts: Vec<String> = changed.iter().take(MAX_OPTIONS).cloned().collect();
    if changed.len() > MAX_OPTIONS {
        texts.push(format!("{} more", changed.len() - MAX_OPTIONS));
    }
    if one_sided > 0 {
        texts.push(format!("{one_sided} that only one of the kernels has"));
    }
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

fn changed(change: &ConfigChange) -> Option<String> {
    let (baseline, value) = (change.baseline.as_ref()?, change.value.as_ref()?);
    let option = change.option.strip_prefix("CONFIG_").unwrap_or(&change.option);
    Some(format!("{} {} -> {}", excerpt(option), excerpt(baseline), excerpt(value)))
}

fn host(host: &HostRange) -> Note {
    let load = host.load.map(|load| format!("load {}", range(load)));
    let steal = host.steal.map(|steal| format!("steal {} %", range(steal)));
    let known: Vec<_> = [load, steal].into_iter().flatten().collect();
    Note::on("host", &host.variant, known.join(", "))
}

fn range([least, most]: [f64; 2]) -> String {
    let [least, most] = [least, most].map(|it| format!("{it:.1}"));
    if least == most { least } else { format!("{least} to {most}") }
}

fn mixed(mixed: &Mixed) -> Note {
    let values: Vec<_> = mixed.values.iter().map(|value| excerpt(value)).collect();
    let text = format!("{}: {}", mixed.what, values.join("; "));
    Note::on("boots differ", &mixed.variant, text)
}

fn failed(variant: &VariantOutcomes) -> impl Iterator<Item = Note> {
    variant.failed.iter().map(|failed| {
        let text = format!("{}: {}", failed.boot, failed.outcome);
        let topic = if failed.partial { PARTIAL } else { "failed, left out" };
        Note::on(topic, &variant.name, text)
    })
}

fn set_aside(variant: &VariantOutcomes) -> impl Iterator<Item = Note> {
    variant.set_aside.iter().map(|aside| {
        let since = if aside.done_again { "repeated since" } else { "not repeated yet" };
        let text = format!("{}, {since}: {}", aside.boot, excerpt(&aside.outcome));
        Note::on("set aside", &variant.name, text)
    })
}

fn noted(topic: &'static str, all: &[Unmeasured]) -> Vec<Note> {
    let mut notes = Vec::new();
    for own in all.chunk_by(|a, b| a.variant == b.variant) {
        let variant = &own[0].variant;
        notes.extend(own.iter().take(MAX_UNMEASURED).map(|it| {
            let boots = few(MAX_BOOTS, &it.boots).join(", ");
            Note::on(topic, variant, format!("{boots}: {}", excerpt(&it.text)))
        }));
        if let Some(more) = own.len().checked_sub(MAX_UNMEASURED).filter(|more| *more > 0) {
            notes.push(Note::on(topic, variant, format!("{more} more like these")));
        }
    }
    notes
}

/// Returns the note that no kernel complained.
pub fn no_complaint() -> Note {
    Note::on_all(COMPLAINTS, "none".into())
}

/// Returns a note that no kernel complained, or notes on the variants of which that is not known.
fn no_complaints(notes: &Notes, columns: usize) -> Vec<Note> {
    let unknown = || "- (no kernel log)".to_owned();
    match notes.without_log.len() {
        0 if notes.complaints.is_empty() => vec![no_complaint()],
        all if all == columns => vec![Note::on_all(COMPLAINTS, unknown())],
        _ => {
            let variants = notes.without_log.iter();
            variants.map(|variant| Note::on(COMPLAINTS, variant, unknown())).collect()
        }
    }
}

fn complaints(complaints: &[Complaint]) -> Vec<Note> {
    let alike = |a: &Complaint, b: &Complaint| a.variant == b.variant && a.kind == b.kind;
    let mut notes = Vec::new();
    for complaints in complaints.chunk_by(alike) {
        let Complaint { variant, kind, .. } = &complaints[0];
        let shown = complaints.iter().take(MAX_COMPLAINTS);
        notes.extend(shown.map(|it| Note::on(COMPLAINTS, variant, complaint(it))));
        if let Some(more) = complaints.get(MAX_COMPLAINTS..).filter(|it| !it.is_empty()) {
            let text = format!("{kind}: {} more like these", more.len());
            notes.push(Note::on(COMPLAINTS, variant, text));
        }
    }
    notes
}

fn complaint(complaint: &Complaint) -> String {
    // Entries of one boot are adjacent.
    let mut boots = complaint.boots.clone();
    boots.dedup();
    let boots: Vec<String> = boots.iter().map(BootId::to_string).collect();
    let times = match complaint.boots.len() {
        times if times > boots.len() => format!(" ({times} times)"),
        _ => String::new(),
    };
    let (boots, text) = (boots.join(", "), excerpt(&complaint.text));
    format!("{boots}{times}: {}: {text}", complaint.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(names: &[&str]) -> Vec<VariantOutcomes> {
        let variant = |name: &&str| VariantOutcomes {
            name: (*name).to_owned(),
            complete: 1,
            pairs: None,
            missing: Vec::new(),
            failed: Vec::new(),
            set_aside: Vec::new(),
        };
        names.iter().map(variant).collect()
    }

    #[test]
    fn variants_share_a_note_if_their_names_tell_which() {
        let notes = |variants: &[VariantOutcomes], texts: &[&str]| -> Vec<(String, String)> {
            let each = variants.iter().zip(texts);
            let notes =
                each.map(|(it, text)| Note::on("kernel", &it.name, (*text).to_owned())).collect();
            let joined = together(notes, variants).into_iter();
            joined.map(|it| (it.variant.unwrap(), it.text)).collect()
        };
        let pair = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        let matrix = variants(&["6.1 thp=on", "6.1 thp=off", "7.0 thp=on", "7.0 thp=off"]);
        assert_eq!(notes(&matrix, &["a", "a", "b", "b"]), [("6.1", "a"), ("7.0", "b")].map(pair));
        assert_eq!(
            notes(&matrix, &["a", "b", "a", "b"]),
            [("thp=on", "a"), ("thp=off", "b")].map(pair)
        );
        // `6.1` would name all variants that have the word, and no word is in all three names.
        assert_eq!(notes(&matrix, &["a", "a", "b", "a"]).len(), 4);
        let split = variants(&["6.1", "7.0", "7.0 as 6.1", "6.1 as 7.0"]);
        assert_eq!(notes(&split, &["a", "b", "a", "b"]).len(), 4);
        assert_eq!(notes(&split[..2], &["a", "b"]).len(), 2);
    }
}
