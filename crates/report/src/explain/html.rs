//! An explanation as one page of HTML that needs nothing from elsewhere.

use compare::{Explanation, Headline, Paths, Section, Side};

use super::view::{self, Table};
use crate::ascii::{escape, excerpt};
use crate::document::{Policy, document};
use crate::flame::{self, Widths};
use crate::markup::html;

/// Rows of each ranking.
const MAX_ROWS: usize = 30;
/// Height of a graph that does not say its own.
const GRAPH_HEIGHT: usize = 600;
const STYLE: &str = include_str!("page.css");
/// What precedes a flame graph on its own page. There it has no address in which to keep what is
/// zoomed, and its script would stop when it tries.
const GRAPH_HEAD: &str = concat!(
    "<!DOCTYPE html><meta charset=\"utf-8\"><style>",
    include_str!("graph.css"),
    "</style><script>history.replaceState = () => {};</script>"
);

/// Where the difference went as a page: the totals, the rankings of the whole workload or of
/// `phase`, a flame graph of `paths`, which are those of the same, and the rankings of everything
/// else. Every name is escaped; nothing is loaded.
pub fn explain_html(
    explanation: &Explanation,
    headlines: &[Headline],
    paths: &Paths,
    phase: Option<&str>,
) -> String {
    let mut body = format!("<h1>{}</h1>\n", html(&view::title(explanation)));
    match (&explanation.all, explanation.section(phase)) {
        (None, _) => body.push_str(&paragraph(&view::nothing(explanation))),
        (Some(_), None) => {
            body.push_str(&paragraph(&view::no_phase(explanation, phase.unwrap_or_default())));
        }
        (Some(all), Some(section)) => {
            let said = view::headlines(headlines, phase);
            body.extend(said.iter().map(|line| paragraph(line)));
            body.push_str(&table(&view::totals(explanation, usize::MAX)));
            body.push_str(&rankings(explanation, section));
            body.push_str(&graphs(explanation, paths, section));
            let others = std::iter::once(all).chain(&explanation.phases);
            let others = others.filter(|other| other.phase != section.phase);
            body.extend(others.map(|other| folded(explanation, other)));
            body.extend(view::notes(explanation).iter().map(|note| paragraph(note)));
        }
    }
    let name = format!("faultline explain {}", escape(&explanation.workload));
    document(&name, STYLE, Policy::Frames, &body)
}

fn rankings(explanation: &Explanation, section: &Section) -> String {
    let tables = [
        view::per_entry(explanation, section, MAX_ROWS),
        view::contributions(explanation, section, MAX_ROWS),
        view::counters(explanation, section, MAX_ROWS),
    ];
    let cautions = view::cautions(explanation, section);
    tables.iter().map(table).chain(cautions.iter().map(|caution| paragraph(caution))).collect()
}

/// The rankings of a section, to be opened.
fn folded(explanation: &Explanation, section: &Section) -> String {
    let rankings = rankings(explanation, section);
    format!("<details><summary>In {}</summary>\n{rankings}</details>\n", html(&span(section)))
}

/// What a section covers.
fn span(section: &Section) -> String {
    match &section.phase {
        Some(phase) => format!("phase {}", view::phase_name(phase)),
        None => "all phases".to_owned(),
    }
}

fn table(table: &Table) -> String {
    let mut text = String::new();
    if !table.title.is_empty() {
        text.push_str(&format!("<h2>{}</h2>\n", html(&table.title)));
    }
    if !table.rows.is_empty() {
        let head = row("th", &table.head);
        let rows: String = table.rows.iter().map(|cells| row("td", cells)).collect();
        text.push_str(&format!(
            "<div class=\"table\"><table>\n<thead>{head}</thead>\n\
             <tbody>\n{rows}</tbody></table></div>\n"
        ));
    }
    text.extend(table.foot.iter().map(|foot| paragraph(foot)));
    text
}

/// A line of a table. What it is of comes first, and stays in sight while figures are scrolled.
fn row(element: &str, cells: &[impl AsRef<str>]) -> String {
    let (figures, of) = cells.split_at(cells.len().saturating_sub(1));
    let cells = of.iter().chain(figures);
    let cells = cells.map(|cell| format!("<{element}>{}</{element}>", html(cell.as_ref())));
    format!("<tr>{}</tr>\n", cells.collect::<String>())
}

/// The flame graph by the widths of either side.
fn graphs(explanation: &Explanation, paths: &Paths, section: &Section) -> String {
    let name = |side: &Side| html(&excerpt(&side.name));
    let (base, new) = (name(&explanation.base), name(&explanation.new));
    let of = html(&span(section));
    let mut text = format!(
        "<h2>Differential flame graph of {of}</h2>\n\
         <p><span class=\"key more\">red</span> {new} executes more instructions in the function \
         itself, called by this path, than {base}; <span class=\"key fewer\">blue</span> fewer; \
         <span class=\"key same\">white</span> as many. The deepest colour is that of the largest \
         change. A frame is as wide as the instructions executed in it and in what it calls; the \
         outermost frame says who executes. Where a function is called by another path than \
         before, though only by other names, it is red on the new path and, below, blue on the \
         old one: whether it became dearer, the table of instructions per entry tells.</p>\n"
    );
    if !paths.followed {
        text.push_str(&paragraph(
            "Calls were not followed in boots of both sides, so functions stand alone; with \
             `stacks = true` the graph shows who calls them.",
        ));
    }
    text.push_str(&graph(paths, Widths::New, &explanation.new));
    text.push_str(&format!(
        "<details><summary>With the widths of {base}, to see what {new} no longer executes\
         </summary>\n{}</details>\n",
        graph(paths, Widths::Base, &explanation.base)
    ));
    text
}

/// A graph in a page of its own: its script looks for elements by names that two graphs would
/// share, and takes keys for itself. It can't measure letters while it is folded away, so the one
/// that is waits for being seen.
fn graph(paths: &Paths, widths: Widths, side: &Side) -> String {
    let title = format!("Widths: instructions of {}", excerpt(&side.name));
    let loading = match widths {
        Widths::New => "eager",
        Widths::Base => "lazy",
    };
    let Some(svg) = flame::differential(paths, widths) else {
        return paragraph("Nothing was executed.");
    };
    format!(
        "<p>{0}</p>\n<iframe loading=\"{3}\" title=\"{0}\" height=\"{1}\" \
         srcdoc=\"{2}\"></iframe>\n",
        html(&title),
        height(&svg),
        html(&format!("{GRAPH_HEAD}{svg}")),
        loading
    )
}

/// The height that an `svg` element asks for.
fn height(svg: &str) -> usize {
    let after = svg.split_once(" height=\"").map_or("", |(_, after)| after);
    let number = after.split_once('"').and_then(|(number, _)| number.parse().ok());
    number.unwrap_or(GRAPH_HEIGHT)
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", html(text))
}
