//! What a function executed in two kernels, by line of the source or by instruction, as text and as JSON.

use std::cmp::Ordering;

use compare::{CountedFunction, CountedLine, Explanation, FunctionLines, LineSide};
use model::count;
use serde::Serialize;

use super::cause;
use super::headline::phase_name;
use super::view::signed;
use crate::ascii::excerpt;
use crate::document::{Block, Column, TEXT, lead, note, part, sections, sentence, table};
use crate::words;

/// The version of the JSON.
const SCHEMA: u32 = 1;
/// A smaller change of the instructions per entry is printed as 0.
const LEAST: f64 = 0.005;
/// The columns of figures, by the names of both sides.
const COLUMNS: [Column; 6] = [
    Column::figures("change"),
    Column::figures("base").at_least(8),
    Column::figures("new").at_least(8),
    Column::figures("base runs"),
    Column::figures("new runs"),
    Column::subject("line"),
];

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    lines: &'a FunctionLines,
}

#[derive(Serialize)]
struct Several<'a> {
    schema: u32,
    functions: &'a [FunctionLines],
}

/// Returns the lines of a function as JSON, with sums over the seeds. The format is stable: keys may be added without a
/// new version. No content causes an error.
pub fn lines_json(lines: &FunctionLines) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Document { schema: SCHEMA, lines })? + "\n")
}

/// Returns the lines of several functions as JSON, with sums over the seeds. The format is stable: keys may be added without
/// a new version. No content causes an error.
pub fn changed_lines_json(functions: &[FunctionLines]) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Several { schema: SCHEMA, functions })? + "\n")
}

/// Returns the lines of a function as plain text, at most 100 columns: first at most `top` whose instructions differ, the
/// largest change first, then all that ran in the order of the source.
pub fn lines(lines: &FunctionLines, top: usize) -> String {
    let legend = note(legend(lines.by_source));
    let head = [lead(head(lines))].into_iter().chain(found(lines).map(lead)).chain([legend]);
    let head = head.chain(without(lines)).collect();
    sections(&[head, vec![differing(lines, top)], vec![ran(lines)]], &TEXT)
}

/// Returns the lines of several functions whose instructions differ as plain text, at most 100 columns and at most `top`
/// lines of each.
pub fn changed_lines(functions: &[FunctionLines], top: usize) -> String {
    let one = |lines: &FunctionLines| {
        let head = [lead(head(lines))].into_iter().chain(found(lines).map(lead));
        head.chain(without(lines)).chain([differing(lines, top)]).collect()
    };
    let number = count(functions.len(), "function");
    let legend = legend(functions.iter().any(|it| it.by_source));
    let first = format!("The lines of {number} whose code differs, the largest change first.");
    let first = vec![lead(first), note(legend)];
    let parts = functions.iter().map(one);
    sections(&[first].into_iter().chain(parts).collect::<Vec<_>>(), &TEXT)
}

/// Returns a fold for each function whose lines boots kept, for a page. Text omits them.
pub fn folds(explanation: &Explanation) -> Vec<Block> {
    let one = |lines: &FunctionLines| {
        let title = match found(lines) {
            Some(found) => format!("Lines of {}. {found}", excerpt(&lines.function)),
            None => format!("Lines of {}", excerpt(&lines.function)),
        };
        let head = [sentence(head(lines)), note(legend(lines.by_source))];
        let tables = [differing(lines, usize::MAX), ran(lines)];
        let blocks = head.into_iter().chain(without(lines)).chain(tables).collect();
        Block::Fold(title, blocks)
    };
    explanation.lines.iter().map(one).collect()
}

/// Returns what the figures of lines are.
fn legend(by_source: bool) -> String {
    let more = match by_source {
        true => ", by its instruction that runs most.",
        false => {
            ". When the kernel starts, it replaces some instructions, such as indirect calls. One may become \
             several."
        }
    };
    format!(
        "base and new: instructions per entry of the function. runs: how often it runs per entry{more}"
    )
}

/// Says why there are no lines of the source.
fn without(lines: &FunctionLines) -> Option<Block> {
    let whose = lines.notes.iter().map(|why| excerpt(why) + ".");
    let instead = (!lines.by_source).then(|| "So these are instructions.".to_owned());
    let without: Vec<String> = whose.chain(instead).collect();
    (!without.is_empty()).then(|| note(without.join(" ")))
}

/// Returns the lines whose instructions differ, the largest change first.
fn changed(lines: &FunctionLines) -> Vec<&CountedLine> {
    let is_changed = |line: &&CountedLine| lines.change(line).abs() >= LEAST;
    let mut changed: Vec<&CountedLine> = lines.lines.iter().filter(is_changed).collect();
    changed.sort_by(|one, other| {
        let size = |line| lines.change(line).abs();
        size(other).partial_cmp(&size(one)).unwrap_or(Ordering::Equal)
    });
    changed
}

/// Lists at most `top` lines whose instructions differ.
fn differing(lines: &FunctionLines, top: usize) -> Block {
    let changed = changed(lines);
    let (unit, differ) = match lines.by_source {
        true => ("line", "Lines that executed more or fewer instructions"),
        false => ("instruction", "Instructions that ran more or less often"),
    };
    if changed.is_empty() {
        return note(format!("No {unit} differs in its instructions per entry."));
    }
    let more = changed.len().checked_sub(top).filter(|more| *more > 0);
    let more = more.map(|more| note(format!("{more} more (--top {})", changed.len())));
    let shown = rows(lines, changed.iter().copied().take(top));
    let title = format!("{differ}, the largest change first:");
    part(title, [shown].into_iter().chain(more).collect::<Vec<_>>())
}

/// Lists the lines that ran.
fn ran(lines: &FunctionLines) -> Block {
    let order = if lines.by_source { "source" } else { "code" };
    let ran = |line: &&CountedLine| line.sides.iter().flatten().any(|it| it.executions > 0);
    let still = lines.lines.iter().filter(|line| !ran(line)).count();
    let still = (still > 0).then(|| note(format!("{still} more never ran")));
    let title = format!("All that ran, in the order of the {order}:");
    let all = [rows(lines, lines.lines.iter().filter(ran))].into_iter().chain(still);
    part(title, all.collect::<Vec<_>>())
}

fn head(lines: &FunctionLines) -> String {
    let within = lines.phase.as_deref().map(phase_name);
    let within = within.map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let sides = lines.sides.each_ref().map(|it| {
        let instructions = u64::try_from(it.instructions).unwrap_or(u64::MAX);
        let figure = words::figure(it.per_entry(instructions), 2);
        let each = if it.entries > 0 { "an entry" } else { "a boot, without an entry" };
        format!("{figure} instructions {each} in {} ({})", excerpt(&it.name), entered(it))
    });
    let elsewhere = moved(lines).map(|it| {
        format!(
            " Its work may be in a function that it calls in {}: `explain` names such a one as `{} with ...`.",
            excerpt(&it.name),
            excerpt(&lines.function)
        )
    });
    let elsewhere = elsewhere.unwrap_or_default();
    format!("{}{within}: {}.{elsewhere}", excerpt(&lines.function), sides.join(", "))
}

/// The work of a function may have moved if one side takes so many times the instructions of the other an entry.
const MANY: f64 = 10.0;

/// Returns the side to which the work of a function may have moved out of it. `None` if both sides take about as many
/// instructions an entry.
fn moved(lines: &FunctionLines) -> Option<&CountedFunction> {
    let [base, new] = &lines.sides;
    let each = |it: &CountedFunction| it.instructions as f64 / it.entries as f64;
    let fewer = if each(base) < each(new) { base } else { new };
    let many = MANY * each(fewer);
    let is_large = [base, new].iter().all(|it| it.entries > 0 && it.instructions > 0);
    (is_large && each(base).max(each(new)) >= many).then_some(fewer)
}

/// Names the line with the largest change; `None` if none changed, or the rows are no lines.
fn found(lines: &FunctionLines) -> Option<String> {
    let line = *changed(lines).first().filter(|_| lines.by_source)?;
    let [base, new] = &line.sides;
    let side = new.as_ref().or(base.as_ref())?;
    let named = cause::named(&lines.function, side.inlined.as_deref(), &side.place);
    Some(format!("The largest change: {named}: {}.", cause::more_per_entry(lines.change(line))))
}

fn entered(it: &CountedFunction) -> String {
    let seeds = count(it.seeds, "seed");
    let entries = words::figure(it.entries as f64, 0);
    format!("{entries} {} in {seeds}", if it.entries == 1 { "entry" } else { "entries" })
}

fn rows<'a>(lines: &FunctionLines, shown: impl Iterator<Item = &'a CountedLine>) -> Block {
    let rows = shown.map(|line| {
        let figures = |of: fn(&LineSide) -> u64| {
            [0, 1].map(|side| {
                let own = line.sides[side].as_ref();
                let each = own.map(|it| lines.sides[side].per_entry(of(it)));
                each.map_or("-".to_owned(), |it| words::decimal(Some(it), 2))
            })
        };
        let [base, new] = figures(|it| it.instructions);
        let [base_runs, new_runs] = figures(|it| it.executions);
        let change = lines.change(line);
        let change = if change.abs() < LEAST { "0.00".to_owned() } else { signed(change, 2) };
        vec![change, base, new, base_runs, new_runs, named(line)]
    });
    table(COLUMNS, rows.collect())
}

/// Names a row by its place in the newer kernel, and by the other one's if its text is another.
fn named(line: &CountedLine) -> String {
    let text = |it: &LineSide| {
        let inlined = it.inlined.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let text = it.text.as_ref().map(|text| format!(": {}", text.trim())).unwrap_or_default();
        format!("{}{inlined}{text}", it.place)
    };
    let said = |it: &LineSide| match it.text.as_deref().map(str::trim) {
        Some(text) => text.to_owned(),
        // An instruction's offset is in front of it.
        None => it.place.split_once(' ').map_or("", |(_, text)| text).to_owned(),
    };
    match &line.sides {
        [Some(base), Some(new)] if said(base) != said(new) => {
            excerpt(&format!("{} (was {})", text(new), said(base)))
        }
        [_, Some(it)] | [Some(it), None] => excerpt(&text(it)),
        [None, None] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(place: &str, inlined: &str, text: &str, counts: [u64; 2]) -> Option<LineSide> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let [instructions, executions] = counts;
        let place = place.to_owned();
        Some(LineSide { place, inlined: some(inlined), text: some(text), instructions, executions })
    }

    fn function(name: &str, instructions: i128) -> CountedFunction {
        let (seeds, executions) = (2, Default::default());
        CountedFunction { name: name.into(), seeds, entries: 4, instructions, executions }
    }

    fn of(by_source: bool, rows: Vec<[Option<LineSide>; 2]>) -> FunctionLines {
        let lines = rows.into_iter().map(|sides| CountedLine { sides });
        FunctionLines {
            function: "do_wp_page".into(),
            phase: Some("touch".into()),
            sides: [function("6.1", 600), function("+waste\x1b[2J", 640)],
            by_source,
            lines: lines.collect(),
            notes: if by_source { vec![] } else { vec!["6.1 has no debug information".into()] },
        }
    }

    #[test]
    fn lines_of_the_source() {
        let lines = of(
            true,
            vec![
                [
                    side("mm/memory.c:3300", "", "if (vma)", [8, 4]),
                    side("mm/memory.c:3301", "", "if (vma)", [8, 4]),
                ],
                [side("mm/memory.c:3310", "", "gone();", [4, 4]), None],
                [
                    side("mm/memory.c:3320", "", "goto x;", [0, 0]),
                    side("mm/memory.c:3321", "", "goto x;", [0, 0]),
                ],
                [
                    None,
                    side("mm/memory.c:3312", "wp_page_copy", "asm volatile(\"\x07\");", [40, 4]),
                ],
                [
                    side("mm/memory.c:3313", "wp_page_copy", "a = b;", [20, 4]),
                    side("mm/memory.c:3314", "wp_page_copy", "a = c;", [24, 4]),
                ],
            ],
        );
        insta::assert_snapshot!(super::lines(&lines, 2));
        insta::assert_snapshot!(lines_json(&lines).unwrap());
    }

    #[test]
    fn lines_of_several_functions() {
        let row = [
            side("mm/memory.c:10", "", "if (vma)", [8, 4]),
            side("mm/memory.c:10", "", "if (vma)", [12, 4]),
        ];
        let one = of(true, vec![row.clone(), row.clone()]);
        let other = FunctionLines { function: "other".into(), ..of(false, vec![row]) };
        insta::assert_snapshot!(changed_lines(&[one.clone(), other], 1));
        let json: serde_json::Value =
            serde_json::from_str(&changed_lines_json(&[one]).unwrap()).unwrap();
        assert_eq!(json["functions"][0]["function"], "do_wp_page");
        assert_eq!(json["schema"], 1);
    }

    #[test]
    fn work_that_moved_out_of_a_function_is_mentioned() {
        let said = |instructions| {
            let sides = [function("6.12", 60_000), function("newest", instructions)];
            head(&FunctionLines { sides, ..of(true, Vec::new()) }).contains("calls in newest: ")
        };
        assert!(said(600) && !said(59_000) && !said(0));
    }

    #[test]
    fn instructions_without_debug_information() {
        let lines = of(
            false,
            vec![
                [side("+0x0 push %rbx", "", "", [4, 4]), side("+0x0 push %rbx", "", "", [4, 4])],
                [
                    side("+0x1 mov $1,%eax", "", "", [4, 4]),
                    side("+0x1 mov $2,%eax", "", "", [8, 8]),
                ],
            ],
        );
        insta::assert_snapshot!(super::lines(&lines, 20));
        let same = of(false, vec![lines.lines[0].sides.clone()]);
        assert!(super::lines(&same, 20).contains("No instruction differs"));
    }
}
