//! The layouts of types in both kernels, side by side, around the fields whose lines CPUs take from each other.

use std::collections::BTreeSet;

use compare::{Explanation, LINE, LayoutChange, LayoutField, LayoutSide, Parted};
use model::{count, grouped};

use crate::ascii::excerpt;
use crate::document::{Block, Column, note, part, sentence, table};
use crate::words::listed;

/// The longest name of a field in the table. Of longer ones the end is printed.
const MAX_NAME: usize = 23;
/// Most fields of a type whose writers are named.
const MAX_WRITTEN: usize = 4;

/// What layouts do not say.
const LIMITS: &str = "A layout says what lies on one line, and not which layout is faster: where CPUs wait for each other, \
                      two lines can cost more transfers and less time than one. Transfers also change with the code and \
                      with how often it runs.";

/// Lays out the layouts of the types whose transfers changed most. Empty if none is known.
pub fn blocks(explanation: &Explanation) -> Vec<Block> {
    // A layout whose fields have the same neighbours as before explains nothing.
    let all = &explanation.layouts;
    let is_parted = all.iter().any(|it| !it.parted.is_empty());
    let types = all.iter().filter(|it| !is_parted || !it.parted.is_empty());
    let types = types.map(|it| of_type(explanation, it));
    let limits = (!explanation.layouts.is_empty()).then(|| note(LIMITS));
    let unknown = explanation.no_layouts.as_ref();
    let unknown = unknown.map(|why| note(format!("Layouts are not known: {}.", excerpt(why))));
    types.chain(limits).chain(unknown).collect()
}

fn of_type(explanation: &Explanation, change: &LayoutChange) -> Block {
    let names = names(explanation);
    let (name, unit) = (excerpt(&change.name), unit(explanation));
    let title =
        format!("Layout of {name} around the fields with {} (in bytes):", explanation.cost.unit);
    let parted = sentences(explanation, change).map(sentence);
    let columns = names.iter().flat_map(|name| {
        [
            Column::figures("at"),
            Column::figures("size"),
            Column::words("").named(name.clone()),
            Column::figures("taken"),
        ]
    });
    let [base, new] = change.sides.each_ref().map(rows);
    let rows = (0..base.len().max(new.len())).map(|place| {
        let of = |rows: &[[String; 4]]| rows.get(place).cloned().unwrap_or_default();
        [of(&base), of(&new)].concat()
    });
    let table = table(columns.collect::<Vec<_>>(), rows.collect());
    let notes = change
        .sides
        .iter()
        .zip(&names)
        .filter_map(|(side, kernel)| told((&name, &unit), side, kernel));
    let notes = notes
        .chain(bits(change))
        .chain(spans(change))
        .chain(written(explanation, change))
        .map(note);
    part(title, parted.chain([table]).chain(notes).collect::<Vec<_>>())
}

fn names(explanation: &Explanation) -> [String; 2] {
    [&explanation.base, &explanation.new].map(|side| excerpt(&side.name))
}

/// The unit where lines are spoken of anyway.
fn unit(explanation: &Explanation) -> String {
    explanation.cost.unit.replace(" of lines", "")
}

/// The fields that are listed.
fn fields(side: &LayoutSide) -> impl Iterator<Item = &LayoutField> {
    side.lines.iter().flat_map(|it| &it.fields)
}

/// Returns a sentence for each field whose neighbours differ between the kernels.
pub fn sentences(explanation: &Explanation, change: &LayoutChange) -> impl Iterator<Item = String> {
    let (names, unit) = (names(explanation), unit(explanation));
    change.parted.iter().map(move |it| {
        let change = it.transfers.change();
        let more = if change > 0.0 { "more" } else { "fewer" };
        let number = grouped(&format!("{:.0}", change.abs()));
        let luck = if it.transfers.beyond_luck().is_none() { "; luck is unknown" } else { "" };
        format!("`{}` {}: {number} {unit} {more}{luck}.", excerpt(&it.field), shared(it, &names))
    })
}

/// Says with what a field shares a line, in which kernel.
fn shared(parted: &Parted, [base, new]: &[String; 2]) -> String {
    let mut kinds: Vec<[f64; 2]> = Vec::new();
    for (_, shares) in &parted.with {
        if !kinds.contains(shares) {
            kinds.push(*shares);
        }
    }
    let each = kinds.iter().map(|kind| {
        let with = parted.with.iter().filter(|(_, shares)| shares == kind);
        let with = with.map(|(field, _)| format!("`{}`", excerpt(field)));
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let kernels = match *kind {
            [1.0, 0.0] => format!("in {base}, not in {new}"),
            [0.0, 1.0] => format!("in {new}, not in {base}"),
            [one, other] => format!(
                "in {} of the places of an object in {base}, in {} in {new}",
                percent(one),
                percent(other)
            ),
        };
        format!("with {} {kernels}", listed(&with.collect::<Vec<_>>()))
    });
    format!("shares a line {}", each.collect::<Vec<_>>().join(", and "))
}

/// The lines of a side with rules between them.
fn rows(side: &LayoutSide) -> Vec<[String; 4]> {
    let begins = side.begins.first().copied().unwrap_or(0);
    let rows = side.lines.iter().flat_map(|line| {
        let rule = line.number.map(|number| {
            let at = (number * LINE).saturating_sub(begins);
            let said = format!("--- line {number} ({at}) ---");
            [String::new(), String::new(), said, String::new()]
        });
        rule.into_iter().chain(line.fields.iter().map(row))
    });
    rows.collect()
}

fn row(field: &LayoutField) -> [String; 4] {
    let (at, size) = match field.bits {
        None => (field.offset.to_string(), field.size.to_string()),
        Some((first, bits)) => (format!("{}:{first}", field.offset), count(bits as usize, "bit")),
    };
    let name = excerpt(&field.name);
    let cut = name.len().saturating_sub(MAX_NAME - 2);
    let name = if name.len() > MAX_NAME { format!("..{}", &name[cut..]) } else { name };
    let transfers = match field.transfers {
        0.0 => String::new(),
        few if few < 0.5 => "<1".to_owned(),
        transfers => format!("{transfers:.0}"),
    };
    [at, size, name, transfers]
}

/// What is to be known of the lines of a side. `None` if all of them with transfers are listed.
fn told((name, unit): (&str, &str), side: &LayoutSide, kernel: &str) -> Option<String> {
    let (lines, transfers) = side.others;
    match (side.lines.len(), side.begins.len()) {
        (0, 0) => Some(format!("{kernel} has no {unit} of {name}, or no such type.")),
        (_, 0) => Some(format!(
            "The boots of {kernel} do not say where in a line objects of {name} begin, so no lines are drawn."
        )),
        (_, 1) => (lines > 0).then(|| {
            let others =
                if lines == 1 { "another line".into() } else { format!("{lines} other lines") };
            format!("{kernel} has {transfers:.0} more {unit} in {others} of {name}, which are not drawn.")
        }),
        (_, places) => Some(format!(
            "Objects of {name} begin at {places} places of a line in {kernel}, so what shares a line depends on the \
             object, and no lines are drawn."
        )),
    }
}

/// Says where the transfers of bit fields count. `None` if there are none.
fn bits(change: &LayoutChange) -> Option<String> {
    let has_any =
        change.sides.iter().flat_map(fields).any(|it| it.bits.is_some() && it.transfers > 0.0);
    has_any.then(|| "Bit fields of one byte count at the first of them.".to_owned())
}

/// Says where the transfers of fields count that lie in several lines. `None` if there are none.
fn spans(change: &LayoutChange) -> Option<String> {
    let spans = |side: &LayoutSide| {
        let [begins] = side.begins[..] else { return false };
        let line = |byte: u64| (begins + byte) / LINE;
        fields(side).any(|it| {
            it.transfers > 0.0 && line(it.offset) < line(it.offset + it.size.saturating_sub(1))
        })
    };
    let has_any = change.sides.iter().any(spans);
    has_any
        .then(|| "A field in several lines, such as an array, counts at its first line.".to_owned())
}

/// Says which functions write the fields. `None` if none is known.
fn written(explanation: &Explanation, change: &LayoutChange) -> Option<String> {
    let dotted = format!("{}.", change.name);
    // What writes a byte of bit fields need not write the one that it is named by.
    let bits = change.sides.iter().flat_map(fields).filter(|it| it.bits.is_some());
    let bits: BTreeSet<&str> = bits.map(|it| &*it.name).collect();
    let own =
        explanation.fields.iter().filter_map(|it| Some((it.field.strip_prefix(&dotted)?, it)));
    let own = own.filter(|(field, _)| !bits.contains(field));
    let written = own.filter_map(|(field, it)| {
        let writers: BTreeSet<String> = it.writers.iter().flatten().map(|it| excerpt(it)).collect();
        let writers: Vec<String> = writers.into_iter().collect();
        (!writers.is_empty()).then(|| format!("`{}` by {}", excerpt(field), listed(&writers)))
    });
    let written: Vec<String> = written.take(MAX_WRITTEN).collect();
    (!written.is_empty()).then(|| {
        format!(
            "Known to write, because they took the copies of others: {}. Other transfers are loads or stores.",
            written.join("; ")
        )
    })
}
