//! The tables as one self-contained page of HTML.

use import::Cell;

use super::{Foreign, ForeignTable, check, label, lines};
use crate::ascii::{escape, excerpt};
use crate::document::frame::{Policy, frame};
use crate::document::markup;

const STYLE: &str = include_str!("page.css");

/// The page. Every text from a file is escaped; nothing is loaded.
pub fn html(found: &Foreign) -> String {
    let mut body: String = found.tables.iter().map(table).collect();
    if found.tables.is_empty() {
        body.push_str("<p>No table found.</p>\n");
    }
    if !found.unread.is_empty() {
        let items = found.unread.iter().map(|it| {
            let place = format!("{}, {}", excerpt(&it.file), lines(it.unread.lines));
            format!("<li>{}: {}</li>\n", markup::html(&place), markup::html(it.unread.why))
        });
        let items: String = items.collect();
        body.push_str(&format!(
            "<h2>Looks like a table, but could not be read</h2>\n<ul>\n{items}</ul>\n"
        ));
    }
    let body = format!("<h1>Tables found</h1>\n{body}");
    frame("faultline table", STYLE, Policy::Nothing, &body)
}

fn table(found: &ForeignTable) -> String {
    let table = &found.table;
    let cell = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", markup::html(&escape(text)));
    let names: String = table.columns.iter().map(|name| cell("th", name)).collect();
    let width = 1 + table.columns.len();
    let rows = table.sections().map(|(section, row)| {
        let values: String = row.cells.iter().map(|it| cell("td", &shown(it))).collect();
        let heading = section.map(|section| markup::html(&escape(section)));
        let heading = heading.map(|it| format!("<tr><th colspan=\"{width}\">{it}</th></tr>\n"));
        format!("{}<tr>{}{values}</tr>\n", heading.unwrap_or_default(), cell("th", &label(row)))
    });
    let rows: String = rows.collect();
    let mut text = format!(
        "<h2>{}</h2>\n<div class=\"table\"><table>\n<thead><tr>{}{names}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n",
        markup::html(&found.heading()),
        cell("th", &table.heading),
    );
    text.extend(found.note.map(|note| format!("<p>{}</p>\n", markup::html(note))));
    let findings = found.check.iter().flat_map(|check| &check.findings);
    text.extend(
        findings.map(|it| format!("<p>{}</p>\n", markup::html(&check::finding(found, it)))),
    );
    text
}

/// A value, and its percentage beside it.
fn shown(cell: &Cell) -> String {
    let value = cell.value.as_ref().map_or("-", |value| &value.text);
    let spread = cell.spread.as_ref().map_or(String::new(), |it| format!(" +- {}", it.text));
    match &cell.percent {
        Some(percent) if cell.marked => format!("{value}{spread} *{:>7}%*", percent.text),
        Some(percent) => format!("{value}{spread} ({:>7}%)", percent.text),
        None => format!("{value}{spread}"),
    }
}
