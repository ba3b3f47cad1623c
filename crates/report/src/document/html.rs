//! Lays documents out as HTML.

use compare::Verdict;
use maud::{Markup, html};

use super::markup::{figure, sentence};
use super::{Block, Cell, Chart, Column, Holds, On, Table, Tone};
use super::{grid, svg};
use crate::ascii::escape;

/// Lays out `blocks` below a heading of `level`.
pub fn html(blocks: &[Block], level: u8) -> Markup {
    html! { @for block in blocks { (one(block, level + 1)) } }
}

fn one(block: &Block, level: u8) -> Markup {
    match block {
        Block::Sentence(tone, said) => {
            let class = match tone {
                Tone::Lead => Some("lead"),
                Tone::Plain => None,
                Tone::Note => Some("note"),
                Tone::Caution => Some("caution"),
                Tone::Bad => Some("bad"),
            };
            html! { p class=[class] { (sentence(&escape(said))) } }
        }
        // Deep in a page, a title above nothing but a table becomes the caption of the table.
        Block::Part(title, blocks) => match &blocks[..] {
            [Block::Table(it)] if level > 2 => table(it, Some(title)),
            [Block::Grid(it)] if level > 2 => grid::html(it, Some(&named(title))),
            _ => html! { (heading(title, level)) (html(blocks, level)) },
        },
        Block::Table(it) => table(it, None),
        Block::Grid(it) => grid::html(it, None),
        Block::Fold(line, blocks) | Block::More(line, blocks) => html! {
            details { summary { (escape(line)) } (html(blocks, level - 1)) }
        },
        Block::Verdicts(first, given) => html! {
            p class="lead" {
                (escape(first)) " "
                @for (place, cell) in given.iter().enumerate() {
                    @if place > 0 { ", " }
                    (coloured(&cell.said, cell.verdict, true))
                }
                "."
            }
        },
        Block::Chart(it) => chart(it),
        Block::Charts(groups, charts) => html! {
            ul class="keys small" {
                @for (group, name) in groups { li { (svg::key(*group)) " " (escape(name)) } }
            }
            div class="plots" { @for it in charts { (chart(it)) } }
        },
        Block::Drawing(drawing) => drawing.clone(),
        Block::Code(lines) => html! {
            pre tabindex="0" { @for line in lines.lines() { (escape(line)) "\n" } }
        },
    }
}

/// Lays out a chart with its title above it.
fn chart(chart: &Chart) -> Markup {
    let Chart { title, beside, label, figures, note, class, size, shapes } = chart;
    let [width, height] = size.map(svg::px);
    let is_scaled = size[0] > 0.0;
    let scaled = is_scaled.then(|| format!("0 0 {width} {height}"));
    let said = |text: &str| (!text.is_empty()).then(|| escape(text));
    html! {
        figure class=[said(class)] {
            @if !title.is_empty() || !note.is_empty() {
                figcaption {
                    @if let Some(title) = said(title) { b { (title) } }
                    @if let Some(beside) = said(beside) { " " small { (beside) } }
                    @if let Some(note) = said(note) { small class="what" { (note) } }
                }
            }
            svg viewBox=[scaled] height=[(!is_scaled).then_some(height)] role="img" {
                title { (escape(label)) }
                @if !figures.is_empty() { desc { (figures) } }
                (shapes)
            }
        }
    }
}

fn heading(title: &str, level: u8) -> Markup {
    let title = named(title);
    html! {
        @match level {
            0..=2 => h2 { (title) },
            3 => h3 { (title) },
            _ => h4 { (title) },
        }
    }
}

fn named(title: &str) -> String {
    escape(title.trim_end_matches(':'))
}

/// Lays out a table. Its first column stays in sight while the figures are scrolled. On a phone each row of
/// a table with drawings becomes a card. Browsers then drop the roles of rows and cells, so such a table
/// sets them explicitly.
fn table(table: &Table, title: Option<&str>) -> Markup {
    let (columns, rows) = &table.on(On::Page);
    let holds = |wanted: Holds| columns.last().is_some_and(|it| it.holds == wanted);
    let has_subject = holds(Holds::Subject);
    let is_card = columns.iter().any(|it| it.holds == Holds::Drawings);
    let style = match holds(Holds::Sentences) {
        _ if is_card => Some("summary"),
        true => Some("notes"),
        false => None,
    };
    let is_same = |one: &Vec<&Cell>, other: &Vec<&Cell>| {
        columns[0].holds != Holds::Topics || one[0].said == other[0].said
    };
    let role = |role: &'static str| is_card.then_some(role);
    let (heads, subject) = columns.split_at(columns.len() - usize::from(has_subject));
    html! {
        @if !rows.is_empty() {
            div class="table" {
                table class=[style] role=[role("table")] {
                    @if let Some(title) = title { caption { (named(title)) } }
                    @if columns.iter().any(|column| !column.head.is_empty()) {
                        thead role=[role("rowgroup")] { tr role=[role("row")] {
                            @for column in subject { th scope="col" { (escape(&column.head)) } }
                            @for column in heads {
                                th scope="col" class=[class(column)] role=[role("columnheader")] {
                                    (escape(&column.head))
                                    @if let Some(ruler) = &column.ruler { (ruler) }
                                }
                            }
                        } }
                    }
                    @for block in rows.chunk_by(is_same) {
                        tbody role=[role("rowgroup")] {
                            @for (number, row) in block.iter().enumerate() {
                                (line(row, columns, number == 0, block.len(), is_card))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the style sheet's class for the cells of a column.
fn class(column: &Column) -> Option<&'static str> {
    match column.holds {
        Holds::Figures => Some("figure"),
        Holds::Gains => Some("gain"),
        Holds::Intervals => Some("uncertain"),
        Holds::Drawings => Some("plot"),
        Holds::Verdicts => Some("said"),
        Holds::Topics | Holds::Words | Holds::Subject | Holds::Sentences => None,
    }
}

/// Lays out a row. It is one of `of` consecutive rows with the same topic; `is_first` marks the first of
/// them, which has the cell with the topic.
fn line(row: &[&Cell], columns: &[&Column], is_first: bool, of: usize, is_card: bool) -> Markup {
    let subject = row.last().filter(|_| columns[row.len() - 1].holds == Holds::Subject);
    let (head, cells) = match subject {
        Some(subject) => (subject, &row[..row.len() - 1]),
        None => (&row[0], &row[1..]),
    };
    let of_topics = columns[0].holds == Holds::Topics;
    let spanned = 1 + columns.len() - row.len();
    let last = cells.len().saturating_sub(1);
    let columns = if subject.is_some() { columns } else { &columns[1..] };
    let verdict = row.iter().find_map(|cell| cell.verdict).map(Verdict::name);
    let role = |role: &'static str| is_card.then_some(role);
    html! {
        tr class=[verdict] role=[role("row")] {
            @if !of_topics { th scope="row" role=[role("rowheader")] { (escape(&head.said)) (below(head)) } }
            @else if is_first { th scope="rowgroup" rowspan=(of) { (escape(&head.said)) } }
            @for (place, cell) in cells.iter().enumerate() {
                @let span = (place == last && spanned > 1).then_some(spanned);
                @let column = columns[place];
                @let label = (column.holds == Holds::Intervals).then_some(&*column.head);
                td class=[class(column)] colspan=[span] role=[role("cell")] data-label=[label] {
                    @match column.holds {
                        Holds::Figures => (figure(&escape(&cell.said))),
                        Holds::Gains | Holds::Intervals => (figures(&escape(&cell.said))),
                        Holds::Words if span.is_none() => b { (escape(&cell.said)) },
                        Holds::Verdicts => (said(cell)),
                        _ => (sentence(&escape(cell.said.trim_start()))),
                    }
                    (below(cell))
                }
            }
        }
    }
}

fn below(cell: &Cell) -> Markup {
    html(&cell.below, 3)
}

/// Lays out a verdict, with a sign that can be seen at a glance.
fn said(Cell { said, verdict, .. }: &Cell) -> Markup {
    coloured(said, *verdict, verdict.is_some_and(|it| it.name() == said))
}

fn coloured(said: &str, verdict: Option<Verdict>, has_sign: bool) -> Markup {
    let sign = verdict.filter(|_| has_sign).map(symbol);
    html! {
        span class={ "verdict " (verdict.map_or("none", Verdict::name)) } {
            @if let Some(sign) = sign { (sign) " " }
            (escape(said))
        }
    }
}

/// Returns the sign of a verdict.
fn symbol(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "\u{25bc}",
        Verdict::Improvement => "\u{25b2}",
        Verdict::Same => "=",
        Verdict::Undecided => "?",
    }
}

/// Formats each word of a text by [`figure`].
fn figures(text: &str) -> String {
    text.split(' ').map(figure).collect::<Vec<_>>().join(" ")
}
