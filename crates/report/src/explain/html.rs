//! An explanation as one page of HTML that needs nothing from elsewhere.

use compare::{Explanation, Paths, Section, Side};

use super::view::{self, Table};
use crate::ascii::{escape, excerpt};
use crate::flame::{self, Widths};

/// Rows of each ranking.
const MAX_ROWS: usize = 50;
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

/// Where the difference went as a page: the totals, the rankings of the whole workload and of each
/// phase, and a flame graph of `paths`, which are those of `phase` or of the whole workload. Every
/// name is escaped; nothing is loaded.
pub fn explain_html(explanation: &Explanation, paths: &Paths, phase: Option<&str>) -> String {
    let mut body = format!("<h1>{}</h1>\n", html(&view::title(explanation)));
    match &explanation.all {
        None => body.push_str(&paragraph(&view::nothing(explanation))),
        Some(all) => {
            body.push_str(&table(&view::totals(explanation, usize::MAX)));
            body.push_str(&rankings(explanation, all));
            body.push_str(&graphs(explanation, paths, phase));
            body.extend(explanation.phases.iter().map(|section| folded(explanation, section)));
            body.extend(view::notes(explanation).iter().map(|note| paragraph(note)));
        }
    }
    let name = html(&format!("faultline explain {}", escape(&explanation.workload)));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

fn rankings(explanation: &Explanation, section: &Section) -> String {
    let tables = [
        view::per_entry(section, MAX_ROWS),
        view::contributions(explanation, section, MAX_ROWS),
        view::counters(section, MAX_ROWS),
    ];
    tables.iter().map(table).collect()
}

/// A phase's rankings, to be opened.
fn folded(explanation: &Explanation, section: &Section) -> String {
    let name = view::phase_name(section.phase.as_deref().unwrap_or_default());
    let rankings = rankings(explanation, section);
    format!("<details><summary>Phase {}</summary>\n{rankings}</details>\n", html(&name))
}

fn table(table: &Table) -> String {
    let mut text = format!("<h2>{}</h2>\n", html(&table.title));
    if !table.rows.is_empty() {
        let heads = table.head.iter().map(|cell| format!("<th>{}</th>", html(cell)));
        let head: String = heads.collect();
        let rows: String = table.rows.iter().map(|cells| row(cells)).collect();
        text.push_str(&format!(
            "<div class=\"table\"><table>\n<thead><tr>{head}</tr></thead>\n\
             <tbody>\n{rows}</tbody></table></div>\n"
        ));
    }
    text.extend(table.foot.iter().map(|foot| paragraph(foot)));
    text
}

fn row(cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", html(cell))).collect();
    format!("<tr>{cells}</tr>\n")
}

/// The flame graph by the widths of either side.
fn graphs(explanation: &Explanation, paths: &Paths, phase: Option<&str>) -> String {
    let name = |side: &Side| html(&excerpt(&side.name));
    let (base, new) = (name(&explanation.base), name(&explanation.new));
    let of = match phase {
        Some(phase) => format!("phase {}", html(&view::phase_name(phase))),
        None => "all phases".to_owned(),
    };
    let mut text = format!(
        "<h2>Differential flame graph of {of}</h2>\n\
         <p><span class=\"key more\">red</span> {new} executes more instructions in the function \
         itself, called by this path, than {base}; <span class=\"key fewer\">blue</span> fewer; \
         <span class=\"key same\">white</span> as many. The deepest colour is that of the largest \
         change. A frame is as wide as the instructions executed in it and in what it calls; the \
         outermost frame says who executes.</p>\n"
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

/// A graph in a page of its own, so that its script and its names reach nothing else.
fn graph(paths: &Paths, widths: Widths, side: &Side) -> String {
    let title = format!("Widths: instructions of {}", excerpt(&side.name));
    let Some(svg) = flame::differential(paths, widths, &title) else {
        return paragraph("Nothing was executed.");
    };
    format!(
        "<iframe sandbox=\"allow-scripts allow-modals\" title=\"{}\" height=\"{}\" \
         srcdoc=\"{}\"></iframe>\n",
        html(&title),
        height(&svg),
        html(&format!("{GRAPH_HEAD}{svg}"))
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

/// `text` as it may stand in an element or in an attribute's quotes.
fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}
