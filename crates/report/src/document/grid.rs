//! Figures in the layout of the kernel's lists: labels to the left, under each name a value and what stands
//! beside it.

use maud::{Markup, html};

use super::medium::Medium;
use crate::ascii::escape;
use crate::header::Name;

/// Longer labels push only their own line to the right.
const MAX_LABEL: usize = 60;
/// In a medium that splits grids, labels are not cut shorter than this, even where two columns do not fit beside
/// them, and names of columns longer than this are cut short, where they cannot be cut in two.
const MIN_LABEL: usize = 19;
const MAX_NAME: usize = 20;

/// Figures in the layout of the kernel's lists.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The name over the labels.
    pub heading: String,
    /// The title above each row, if it begins a section.
    pub sections: Vec<Option<String>>,
    /// The text to the left of each row: words before its name, which stay whole, and the name.
    pub labels: Vec<[String; 2]>,
    /// The columns, the baseline first.
    pub columns: Vec<Figures>,
    /// The least width of a value with the space before it.
    pub least: usize,
    /// The least number of spaces before a value.
    pub gap: usize,
    /// Cuts a name for a column of so many letters.
    pub cut: fn(&str, usize) -> Name,
}

/// A column of a grid.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The name over it.
    pub name: String,
    /// The value of each row.
    pub values: Vec<String>,
    /// What stands beside each value.
    pub beside: Vec<String>,
}

/// A column with its widths.
struct Column {
    name: Name,
    values: Vec<String>,
    beside: Vec<String>,
    value_width: usize,
    beside_width: usize,
}

impl Column {
    fn new(figures: &Figures, name: &str, grid: &Grid) -> Self {
        let [values, beside] = [&figures.values, &figures.beside]
            .map(|cells| cells.iter().map(|cell| escape(cell)).collect::<Vec<String>>());
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

/// Names too long for their place, each with the mark that replaces its end.
#[derive(Default)]
struct Long(Vec<String>);

impl Long {
    /// `name`, or as much of it as fits into `room` letters and a mark.
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

/// The lines of a grid. A strict medium has each section by itself, beside as many columns as fit.
pub fn text(grid: &Grid, medium: &Medium) -> String {
    if !medium.strict {
        let columns: Vec<Column> =
            grid.columns.iter().map(|it| Column::new(it, &escape(&it.name), grid)).collect();
        let labels = labels(grid).into_iter().map(|[before, name]| before + &name).collect();
        return lines(grid, labels, &columns.iter().collect::<Vec<_>>(), &grid.sections);
    }
    let mut long = Long::default();
    let mut begin = 0;
    let sections = grid.sections.chunk_by(|one, other| one == other).map(|rows| {
        let title = rows[0].as_ref().map(|title| format!("{}:\n", escape(title)));
        let section = grid.rows(begin..begin + rows.len());
        begin += rows.len();
        title.unwrap_or_default() + &parts(&section, medium, &mut long).join("\n")
    });
    sections.collect::<Vec<_>>().join("\n") + &long.legend(medium)
}

impl Grid {
    /// Some of the rows, as a section of its own.
    fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        let columns = self.columns.iter().map(|it| Figures {
            name: it.name.clone(),
            values: it.values[rows.clone()].to_vec(),
            beside: it.beside[rows.clone()].to_vec(),
        });
        Self {
            sections: vec![None; rows.len()],
            labels: self.labels[rows.clone()].to_vec(),
            columns: columns.collect(),
            heading: self.heading.clone(),
            ..*self
        }
    }
}

/// The labels, with the words before the names padded.
fn labels(grid: &Grid) -> Vec<[String; 2]> {
    let labels = grid.labels.iter().map(|label| label.each_ref().map(|it| escape(it)));
    let labels: Vec<[String; 2]> = labels.collect();
    match labels.iter().map(|[before, _]| before.len()).max().unwrap_or(0) {
        0 => labels,
        width => labels.into_iter().map(|[it, name]| [format!("{it:<width$} "), name]).collect(),
    }
}

/// Names over columns, and a line for each row.
fn lines(
    grid: &Grid,
    labels: Vec<String>,
    columns: &[&Column],
    sections: &[Option<String>],
) -> String {
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
    for (row, (label, own)) in labels.iter().zip(sections).enumerate() {
        if section != own {
            section = own;
            line(&escape(own.as_deref().unwrap_or_default()), &|_| String::new());
        }
        line(label, &|column| column.cell(row));
    }
    text
}

/// The rows beside the baseline and as many other columns as fit, part by part.
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
        // The words before it stay: the name is too long.
        false if before.len() < room / 2 => {
            let name = long.shorten(&name, room - before.len());
            before + &name
        }
        false => long.shorten(&(before + &name), room),
    };
    let labels: Vec<String> = labels(grid).into_iter().map(short).collect();
    let parts = split(&columns, medium.width.saturating_sub(longest(&labels)));
    parts.iter().map(|part| lines(grid, labels.clone(), part, &grid.sections)).collect()
}

/// The baseline with as many of the other columns as fit, until all have been printed.
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

/// A grid on a page.
pub fn html(grid: &Grid) -> Markup {
    let above = std::iter::once(&None).chain(&grid.sections);
    let sections =
        grid.sections.iter().zip(above).map(|(own, above)| own.as_ref().filter(|_| own != above));
    html! {
        div class="table" {
            table {
                thead { tr {
                    th { (escape(&grid.heading)) }
                    @for column in &grid.columns { th { (escape(&column.name)) } }
                } }
                tbody {
                    @for (row, (section, [before, name])) in sections.zip(&grid.labels).enumerate() {
                        @if let Some(section) = section {
                            tr { th colspan=(1 + grid.columns.len()) { (escape(section)) } }
                        }
                        tr {
                            th { @if !before.is_empty() { (escape(before)) " " } (escape(name)) }
                            @for it in &grid.columns {
                                td { (escape(&it.values[row])) (escape(&it.beside[row])) }
                            }
                        }
                    }
                }
            }
        }
    }
}
