//! Figures in the layout of the kernel's lists: labels to the left, the name of a variant above each
//! column, and in a column each value with the text beside it.

use compare::Verdict;
use maud::{Markup, html};

use super::markup::figure;
use super::medium::Medium;
use crate::ascii::escape;
use crate::header::Name;

/// Most characters by which labels widen their column. A longer label pushes the rest of its line to the
/// right.
const MAX_LABEL: usize = 60;
/// In a medium that splits grids, labels keep at least this many characters, even if the baseline and one
/// other column do not fit beside them.
const MIN_LABEL: usize = 19;
/// In a medium that splits grids, a name longer than this is cut short if it cannot be broken into two
/// lines that fit.
const MAX_NAME: usize = 20;

/// A table in the layout of the kernel's lists.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The title above the labels.
    pub heading: String,
    /// The rows, from top to bottom.
    pub rows: Vec<Label>,
    /// The columns, the baseline first.
    pub columns: Vec<Figures>,
    /// The least width of a value with the space before it, in characters.
    pub least: usize,
    /// The least number of spaces before a value.
    pub gap: usize,
    /// Breaks a name into two lines for a column of this width, in characters.
    pub cut: fn(&str, usize) -> Name,
}

/// The text to the left of a row.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// The title of the row's section, if it is in one. It is printed above the first row of the section.
    pub section: Option<String>,
    /// Words before the name, such as a statistic; may be empty.
    pub before: String,
    /// The name of the row. It is cut where there is too little room.
    pub name: String,
    /// The unit of the row; may be empty. Only pages print it.
    pub unit: String,
    /// Whether the row stands out on a page.
    pub stands_out: bool,
}

/// A column of a grid.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The name above the column.
    pub name: String,
    /// The figure of each row.
    pub cells: Vec<Figure>,
}

/// A figure of a grid. Its texts are padded as text prints them.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The value. If it has marks, it begins with the opening one.
    pub value: String,
    /// The text after the value: its gain or its closing mark.
    pub beside: String,
    /// The spread of the value; may be empty.
    pub spread: String,
    /// The verdict on the figure, which colours its gain on a page.
    pub verdict: Option<Verdict>,
}

/// A column, escaped, with its widths in characters.
struct Column {
    name: Name,
    values: Vec<String>,
    beside: Vec<String>,
    value_width: usize,
    beside_width: usize,
}

impl Column {
    fn new(figures: &Figures, name: &str, grid: &Grid) -> Self {
        let values: Vec<String> = figures.cells.iter().map(|it| escape(&it.value)).collect();
        let beside = figures.cells.iter().map(|it| escape(&it.beside) + &escape(&it.spread));
        let beside: Vec<String> = beside.collect();
        let beside_width = longest(&beside);
        let needed = grid.least.max(grid.gap + longest(&values));
        let name = (grid.cut)(name, needed + beside_width - grid.gap);
        let value_width = needed.max((grid.gap + name.longer()).saturating_sub(beside_width));
        Self { name, values, beside, value_width, beside_width }
    }

    fn width(&self) -> usize {
        self.value_width + self.beside_width
    }

    fn over(&self, name: &str) -> String {
        format!("{name:>width$}", width = self.width())
    }

    fn cell(&self, row: usize) -> String {
        let Self { value_width, beside_width, .. } = self;
        format!("{:>value_width$}{:>beside_width$}", self.values[row], self.beside[row])
    }
}

fn longest(texts: &[String]) -> usize {
    texts.iter().map(String::len).max().unwrap_or(0)
}

/// The names that were cut short. Each has a mark, such as `~1`, in place of its end; the legend repeats
/// the name in full.
#[derive(Default)]
struct Long(Vec<String>);

impl Long {
    /// Returns `name` cut to at most `room` characters including its mark, and records it.
    fn shorten(&mut self, name: &str, room: usize) -> String {
        let number = match self.0.iter().position(|long| long == name) {
            Some(place) => place + 1,
            None => self.0.len() + 1,
        };
        let mark = format!("~{number}");
        if number > self.0.len() {
            self.0.push(name.to_owned());
        }
        format!("{}{mark}", name[..room.saturating_sub(mark.len())].trim_end())
    }

    fn legend(&self, medium: &Medium) -> String {
        let names = (1..).zip(&self.0);
        names
            .map(|(number, name)| medium.wrapped("", "    ", &format!("~{number}: \"{name}\"")))
            .collect()
    }
}

/// Lays out a grid as lines. A grid that is too wide is split into parts, each with the baseline and as many of
/// the other columns as fit. In a strict medium each section stands alone, and long names are cut short.
pub fn text(grid: &Grid, medium: &Medium) -> String {
    if !medium.strict {
        let columns: Vec<Column> =
            grid.columns.iter().map(|it| Column::new(it, &escape(&it.name), grid)).collect();
        let labels = labels(grid).into_iter().map(|[before, name]| before + &name);
        let labels: Vec<String> = labels.collect();
        let room = medium.width.saturating_sub(longest(&labels).min(MAX_LABEL));
        let parts = split(&columns, room).into_iter();
        let parts = parts.map(|part| lines(grid, labels.clone(), &part));
        return parts.collect::<Vec<_>>().join("\n");
    }
    let mut long = Long::default();
    let mut begin = 0;
    let sections = grid.rows.chunk_by(|one, other| one.section == other.section).map(|rows| {
        let title = rows[0].section.as_ref().map(|title| format!("{}:\n", escape(title)));
        let section = grid.rows(begin..begin + rows.len());
        begin += rows.len();
        title.unwrap_or_default() + &parts(&section, medium, &mut long).join("\n")
    });
    sections.collect::<Vec<_>>().join("\n") + &long.legend(medium)
}

impl Grid {
    /// Returns a grid of only these rows, without section titles.
    fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        let columns = self
            .columns
            .iter()
            .map(|it| Figures { name: it.name.clone(), cells: it.cells[rows.clone()].to_vec() });
        let labels = self.rows[rows.clone()].iter();
        Self {
            rows: labels.map(|it| Label { section: None, ..it.clone() }).collect(),
            columns: columns.collect(),
            heading: self.heading.clone(),
            ..*self
        }
    }
}

/// Returns the escaped labels. The words before the names are padded to equal width.
fn labels(grid: &Grid) -> Vec<[String; 2]> {
    let labels = grid.rows.iter().map(|it| [&it.before, &it.name].map(|text| escape(text)));
    let labels: Vec<[String; 2]> = labels.collect();
    match labels.iter().map(|[before, _]| before.len()).max().unwrap_or(0) {
        0 => labels,
        width => labels.into_iter().map(|[it, name]| [format!("{it:<width$} "), name]).collect(),
    }
}

/// Lays out the names of the columns, and a line for each row.
fn lines(grid: &Grid, labels: Vec<String>, columns: &[&Column]) -> String {
    let heading = escape(&grid.heading);
    let label_width = longest(&labels).max(heading.len()).min(MAX_LABEL);
    let mut text = String::new();
    let mut line = |label: &str, cells: &dyn Fn(&Column) -> String| {
        let cells: String = columns.iter().map(|column| cells(column)).collect();
        text.push_str(format!("{label:<label_width$}{cells}").trim_end());
        text.push('\n');
    };
    let has_below = columns.iter().any(|column| !column.name.bottom.is_empty());
    if columns.iter().any(|column| !column.name.top.is_empty()) {
        line(if has_below { "" } else { &heading }, &|column| column.over(&column.name.top));
    }
    if has_below {
        line(&heading, &|column| column.over(&column.name.bottom));
    }
    let mut section = &None;
    for (row, (label, own)) in labels.iter().zip(&grid.rows).enumerate() {
        if section != &own.section {
            section = &own.section;
            line(&escape(own.section.as_deref().unwrap_or_default()), &|_| String::new());
        }
        line(label, &|column| column.cell(row));
    }
    text
}

/// Lays out the grid in parts. Each part repeats the labels and the baseline, and has as many of the other
/// columns as fit.
fn parts(grid: &Grid, medium: &Medium, long: &mut Long) -> Vec<String> {
    let columns = grid.columns.iter().map(|it| {
        let name = escape(&it.name);
        let name = match (grid.cut)(&name, MAX_NAME).longer() <= MAX_NAME {
            true => name,
            false => long.shorten(&name, MAX_NAME),
        };
        Column::new(it, &name, grid)
    });
    let columns: Vec<Column> = columns.collect();
    let widest = columns.iter().skip(1).map(Column::width).max().unwrap_or(0);
    let two = widest + columns.first().map_or(0, Column::width);
    let room = medium.width.saturating_sub(two).max(MIN_LABEL);
    let short = |[before, name]: [String; 2]| match before.len() + name.len() <= room {
        true => before + &name,
        // The words before the name leave room for it: only the name is cut.
        false if before.len() < room / 2 => {
            let name = long.shorten(&name, room - before.len());
            before + &name
        }
        false => long.shorten(&(before + &name), room),
    };
    let labels: Vec<String> = labels(grid).into_iter().map(short).collect();
    let parts = split(&columns, medium.width.saturating_sub(longest(&labels)));
    parts.iter().map(|part| lines(grid, labels.clone(), part)).collect()
}

/// Splits the columns into parts at most `room` characters wide. Each part has the baseline and at least
/// one other column, even if that is too wide.
fn split(columns: &[Column], room: usize) -> Vec<Vec<&Column>> {
    let Some((baseline, others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut parts = vec![vec![baseline]];
    for column in others {
        let fits = |part: &Vec<&Column>| {
            part.len() == 1
                || part.iter().map(|it| it.width()).sum::<usize>() + column.width() <= room
        };
        match parts.last_mut().filter(|part| fits(part)) {
            Some(part) => part.push(column),
            None => parts.push(vec![baseline, column]),
        }
    }
    parts
}

/// Lays out a grid as a table of a page. A gain has a cell of its own beside its value; the baseline has no
/// gain over itself.
pub fn html(grid: &Grid, caption: Option<&str>) -> Markup {
    let mut cells = grid.columns.iter().flat_map(|column| &column.cells);
    let has_gains = cells.any(|it| it.beside.trim().len() > 1);
    let wide = if has_gains { 2 * grid.columns.len() } else { 1 + grid.columns.len() };
    let is_alike = |one: &Label, other: &Label| {
        one.section == other.section && one.stands_out == other.stands_out
    };
    let mut places = 0..;
    let blocks = grid.rows.chunk_by(is_alike);
    let mut above = &None;
    let blocks = blocks.map(|rows| {
        let section = (*above != rows[0].section).then_some(&rows[0].section);
        above = &rows[0].section;
        (section, rows)
    });
    html! {
        div class="table" {
            table class="figures" {
                @if let Some(caption) = caption { caption { (escape(caption)) } }
                thead { tr {
                    th scope="col" { (escape(&grid.heading)) }
                    @for (number, column) in grid.columns.iter().enumerate() {
                        @let wide = (has_gains && number > 0).then_some(2);
                        th scope="col" colspan=[wide] { (escape(&column.name)) }
                    }
                } }
                @for (section, rows) in blocks {
                    tbody class=[rows[0].stands_out.then_some("means")] {
                        @if let Some(section) = section {
                            tr { th scope="rowgroup" colspan=(wide) {
                                (escape(section.as_deref().unwrap_or_default()))
                            } }
                        }
                        @for (label, place) in rows.iter().zip(&mut places) {
                            tr {
                                th scope="row" {
                                    @if !label.before.is_empty() {
                                        span class="of" { (escape(&label.before)) } " "
                                    }
                                    (escape(&label.name))
                                    @if !label.unit.is_empty() { small { " " (escape(&label.unit)) } }
                                }
                                @for (number, column) in grid.columns.iter().enumerate() {
                                    (one(&column.cells[place], has_gains && number > 0))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Lays out a figure. If there are no gains, the value has its marks on both sides.
fn one(cell: &Figure, has_gains: bool) -> Markup {
    let (value, beside) = (escape(cell.value.trim()), escape(&cell.beside));
    let verdict = cell.verdict.map_or("none", Verdict::name);
    html! {
        @if has_gains {
            td { (figure(&value)) }
            td class={ "gain " (verdict) } { (unpadded(&beside)) }
        } @else {
            td {
                (unpadded(&value))
                @if beside.trim().len() == 1 { (beside.trim()) }
                @if !cell.spread.trim().is_empty() { small { " " (unpadded(&escape(&cell.spread))) } }
            }
        }
    }
}

/// Removes the padding of a figure in brackets or marks, and formats its number for a page.
fn unpadded(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let inner = text.trim_start_matches(['(', '[', '?', '*', ' ']);
    let marks = text[..text.len() - inner.len()].trim_end();
    format!("{marks}{}", figure(&inner.replace(" )", ")")))
}
