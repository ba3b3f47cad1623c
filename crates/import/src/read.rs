//! Reads candidates as tables. Lists the candidates that it cannot read.

mod candidates;
mod finish;
mod leftovers;

use std::io::{self, BufRead, Seek};

use self::candidates::{Candidate, candidates};
use self::finish::{finish, fold_differences};
use crate::block::{
    Block, Fixed, FixedRow, Lined, MAX_ODD, line_up, notes, section, take_numbered,
};
use crate::header::{self, Geometry, Header};
use crate::kind;
use crate::mail::{Mail, Role, unfold};
use crate::mailbox::{Mailbox, Piece};
use crate::names::KnownNames;
use crate::robot;
use crate::row::{Placed, Shape, has_figures};
use crate::table::{Cell, Document, Figure, Kind, Lines, Row, Table, Unread};
use crate::wrapped::joined;

const MAX_TITLE: usize = 60;
/// Greatest number of lines between two tables of which the second inherits the names of the first.
const MAX_GAP: usize = 8;
/// How far from its column's end a value may end if its row lacks other values.
const MAX_SHIFT: usize = 2;

const NO_NAMES: &str = "no names over the figures, and rows of no known kind";
const ONE_FIGURE: &str = "one figure a line, under no name and of no known kind";
const DISTANCES: &str = "distances of NUMA nodes, not measurements";
const NO_FIGURE: &str = "a row beside others, of which something is no figure or missing";
const UNLABELLED: &str = "figures without labels";
const BETWEEN_WORDS: &str = "figures between words, not in columns at the ends of lines";
const TOO_LONG: &str = "the text goes on here, but no further lines are read";

/// The largest mail that is read from a file, in bytes, and the largest text that is not a mailbox.
pub const MAX_MAIL: usize = 16 << 20;

/// Finds and reads all tables of a text: a mail or a mailbox, a patch, a commit message, or a web page's
/// text. Bytes that are not UTF-8 are replaced, lines longer than 4096 bytes skipped.
pub fn read(bytes: &[u8]) -> Document {
    let mut all = Document::default();
    let add = |it: Document| {
        all.tables.extend(it.tables);
        all.unread.extend(it.unread);
    };
    each_mail(&mut io::Cursor::new(bytes), usize::MAX, add).unwrap_or_default();
    all
}

/// Like [`read`], for a text of any length. Each mail is passed to `each` with the tables found in it. Only one mail
/// is in memory at a time, so the text is read twice: unambiguous names over one table help to split names over
/// others that have run together. Fails if `source` can't be read, or if a mail is larger than [`MAX_MAIL`]; the
/// message says where that mail begins.
pub fn read_mails(
    source: &mut (impl BufRead + Seek),
    each: impl FnMut(Document),
) -> io::Result<()> {
    each_mail(source, MAX_MAIL, each)
}

fn each_mail(
    source: &mut (impl BufRead + Seek),
    most: usize,
    mut each: impl FnMut(Document),
) -> io::Result<()> {
    let mut known = KnownNames::default();
    // The current mail, while the text has no other.
    let mut only = None;
    for (number, piece) in Mailbox::new(&mut *source, most).enumerate() {
        only = None;
        let mail = unfolded(&piece?);
        let candidates = candidates(&shaped(&mail).0);
        let headers = candidates.iter().filter_map(|it| it.header.as_ref());
        headers.for_each(|it| it.teach(&mut known));
        if known.is_full() {
            break;
        }
        only = (number == 0).then_some(mail);
    }
    if let Some(mail) = only {
        each(of_mail(&mail, &known));
        return Ok(());
    }
    source.rewind()?;
    for piece in Mailbox::new(source, most) {
        each(of_mail(&unfolded(&piece?), &known));
    }
    Ok(())
}

fn unfolded(piece: &Piece) -> Mail {
    let mut mail = unfold(&piece.bytes, piece.before);
    mail.lines = joined(mail.lines);
    mail
}

/// The shape of each line of a mail, and its tables of fully known formats.
fn shaped(mail: &Mail) -> (Vec<Lined<'_>>, Vec<Fixed>) {
    let mut lines = line_up(&mail.lines);
    let fixed = robot::find(&lines);
    for lined in fixed.iter().flat_map(|it| it.first..=it.last).collect::<Vec<_>>() {
        lines[lined].shape = Shape::Other;
    }
    take_numbered(&mut lines);
    (lines, fixed)
}

/// The tables of a mail; `known` are the names of the whole text.
fn of_mail(mail: &Mail, known: &KnownNames) -> Document {
    let (lines, fixed) = shaped(mail);
    let mut reader = MailReader {
        mail,
        lines: &lines,
        known,
        document: Document::default(),
        used: notes(&mail.lines),
        before: None,
    };
    fixed.iter().for_each(|it| reader.used[it.first..=it.last].fill(true));
    candidates(&lines).iter().for_each(|candidate| reader.candidate(candidate));
    fixed.into_iter().for_each(|it| reader.fixed(it));
    reader.odd_rows();
    reader.leftovers();
    let mut document = reader.document;
    document.tables.sort_by_key(|table| table.lines.first);
    if let Some(line) = mail.cut {
        let lines = Lines { first: line, last: line };
        document.unread.push(Unread { lines, why: TOO_LONG });
    }
    document.unread.sort_by_key(|unread| unread.lines.first);
    document
}

struct MailReader<'a> {
    mail: &'a Mail,
    lines: &'a [Lined<'a>],
    known: &'a KnownNames,
    document: Document,
    /// Lines that belong to a table, or are listed as unread.
    used: Vec<bool>,
    before: Option<TableBefore>,
}

/// What the next table may continue or inherit.
struct TableBefore {
    last: usize,
    /// The depth of quoting.
    depth: usize,
    columns: Vec<String>,
}

impl MailReader<'_> {
    fn candidate(&mut self, candidate: &Candidate) {
        let Candidate { block, header, geometry } = candidate;
        let Some(geometry) = geometry else {
            return;
        };
        // A line that is already a row cannot be names.
        let taken = |header: &&Header| self.used[header.places()].contains(&true);
        let header = header.as_ref().filter(|header| !taken(header));
        let columns = match header {
            Some(header) => Some(header.columns(self.known)),
            None => self.names_before(block, geometry.width),
        };
        let heading = header.map_or("", |header| &header.heading);
        let named = columns.is_some();
        let columns = columns.unwrap_or_else(|| vec![String::new(); geometry.width]);
        let mut rows: Vec<Row> = Vec::new();
        let mut section = "";
        for (place, cells) in &block.rows {
            let above = place.checked_sub(1).and_then(|above| self::section(self.lines, above));
            section = above.unwrap_or(section);
            match self.row(*place, cells, geometry) {
                Some(row) => rows.push(Row { section: section.to_owned(), ..row }),
                None => self.unread(*place, *place, BETWEEN_WORDS),
            }
        }
        let labels = named && (heading.is_empty() || header::is_heading(heading));
        if block.percent && !labels && are_baselines(&rows) {
            return self.unread(block.first(), block.last(), UNLABELLED);
        }
        if let Err(why) = worth(block, geometry.width, named, heading, &rows) {
            if let Some(why) = why {
                self.unread(block.first(), block.last(), why);
            }
            return;
        }
        if header.is_none() && self.goes_on(block, &rows) {
            return self.append(block, rows);
        }
        let first = header.map_or(block.first(), |header| header.first);
        let line = self.lines[block.first()].line;
        let mut table = Table {
            lines: self.span(first, block.last()),
            author: self.mail.author(line),
            kind: Kind::Figures,
            title: self.title(first, block.first()),
            heading: heading.to_owned(),
            columns,
            baseline: None,
            signs: None,
            rows,
        };
        let (last, columns) = (block.last(), table.columns.clone());
        self.before = Some(TableBefore { last, depth: line.depth, columns });
        for place in first..block.first() {
            let title = header::is_ruled_title(self.lines, place, 0);
            let text = &self.lines[place].line.text;
            let names = header.is_some_and(|header| header.places().contains(&place));
            let odd = !self.used[place] && !title && !names && header::is_row(text);
            if odd {
                self.unread(place, place, NO_FIGURE);
            }
        }
        self.used[first..=block.last()].fill(true);
        let gains = fold_differences(&mut table);
        finish(&mut table, gains);
        self.document.tables.push(table);
    }

    fn fixed(&mut self, fixed: Fixed) {
        let row = |FixedRow { place, label, cells }| Row {
            line: self.lines[place].line.lines.first,
            section: String::new(),
            statistic: String::new(),
            label,
            better: None,
            cells,
        };
        let rows = fixed.rows.into_iter().map(row).collect();
        let mut table = Table {
            lines: self.span(fixed.first, fixed.last),
            author: self.mail.author(self.lines[fixed.first].line),
            kind: Kind::Figures,
            title: self.title(fixed.first, fixed.first),
            heading: String::new(),
            columns: fixed.columns,
            baseline: None,
            signs: None,
            rows,
        };
        finish(&mut table, false);
        self.document.tables.push(table);
    }

    /// Whether rows continue the table that ends on the line before. Rows without percentages may follow rows with
    /// percentages, and the reverse.
    fn goes_on(&self, block: &Block, rows: &[Row]) -> bool {
        let (Some(before), Some(table)) = (&self.before, self.document.tables.last()) else {
            return false;
        };
        let columns = &table.columns;
        let kind = kind::kind("", columns, rows);
        let alike = !matches!(kind, Kind::Duration | Kind::Counters | Kind::Times);
        let wide = columns.len() > 1 && rows.iter().all(|row| row.cells.len() == columns.len());
        let line = self.lines[block.first()].line;
        self.is_next(before.last, block.first()) && line.depth == before.depth && alike && wide
    }

    fn append(&mut self, block: &Block, rows: Vec<Row>) {
        let last = self.span(block.first(), block.last()).last;
        self.used[block.first()..=block.last()].fill(true);
        if let (Some(before), Some(table)) = (&mut self.before, self.document.tables.last_mut()) {
            before.last = block.last();
            table.lines.last = last;
            table.rows.extend(rows);
            finish(table, false);
        }
    }

    /// Whether at most [`MAX_ODD`] unreadable lines are between two rows.
    fn is_next(&self, row: usize, next: usize) -> bool {
        next - row <= MAX_ODD + 1 && (row + 1..next).all(|place| self.is_odd(place, row))
    }

    /// Whether a line beside a row may be a row of which a value can't be read. Mostly it has the same quoting, gaps
    /// between its words, and figures or a beginning such as rows have. If its spaces have collapsed or its quoting
    /// differs, it has figures and a known label or the first word of the row, or as many values as the row.
    fn is_odd(&self, place: usize, row: usize) -> bool {
        let Lined { line, shape } = &self.lines[place];
        let beside = self.lines[row].line;
        let text = line.text.trim();
        if line.role != Role::Text || !matches!(shape, Shape::Other | Shape::Row(_)) {
            return false;
        }
        let apart = text.contains("  ") && line.depth == beside.depth;
        let begins = kind::begins_as_row(text);
        let some = has_figures(text);
        let word = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
        let alike = || kind::has_known_label(text) || word(text) == word(&beside.text);
        let wide = || match (shape, &self.lines[row].shape) {
            (Shape::Row(cells), Shape::Row(others)) => cells.len() == others.len(),
            _ => false,
        };
        apart && (some || begins) || some && alike() || wide()
    }

    /// The names of the previous table, if only blanks, rules and titles between rules are between the two tables.
    fn names_before(&self, block: &Block, width: usize) -> Option<Vec<String>> {
        let TableBefore { last, depth, columns } = self.before.as_ref()?;
        let first = block.first();
        let parts = |place: usize| match self.lines[place].shape {
            Shape::Blank | Shape::Rule => false,
            _ if section(self.lines, place).is_some() || self.is_odd(place, first) => false,
            _ => !header::is_ruled_title(self.lines, place, last + 1),
        };
        let near = first - last <= MAX_GAP && !(last + 1..first).any(parts);
        if !near && !self.is_next(*last, first) {
            return None;
        }
        let same = self.lines[block.first()].line.depth == *depth && columns.len() == width;
        let named = columns.iter().any(|name| !name.is_empty());
        (same && named).then(|| columns.clone())
    }

    fn row(&self, place: usize, cells: &[Placed], geometry: &Geometry) -> Option<Row> {
        let Lined { line, .. } = &self.lines[place];
        // Leading zeros are what remains of a number that was split. Such a row lacks values.
        let torn = |placed: &Placed| placed.cell.value.as_ref().is_some_and(is_padded);
        if cells.len() < geometry.width && cells.iter().any(torn) {
            return None;
        }
        // Numbers at the end of a label belong to no column.
        let labels = cells.iter().take_while(|placed| geometry.is_label(placed.end)).count();
        let lacks = labels > 0 && cells.len() - labels < geometry.width;
        let unit = cells.first().and_then(|placed| placed.unit.as_ref());
        let values = cells.get(labels..).filter(|values| lacks && !values.is_empty());
        let placed = values.and_then(|it| Some((it[0].start, by_place(it, geometry.stand()?)?)));
        let (start, cells) = match (placed, cells.len().checked_sub(geometry.width)) {
            (Some(placed), _) => placed,
            _ if geometry.is_number_of_label(cells) => None?,
            (None, Some(more)) => {
                let cells = &cells[more..];
                (cells.first()?.start, cells.iter().map(|placed| placed.cell.clone()).collect())
            }
            (None, None) if geometry.has_odd_label(&line.text[..cells.first()?.start]) => None?,
            (None, None) => (cells.first()?.start, by_place(cells, geometry.stand()?)?),
        };
        let (statistic, mut label) = kind::split_label(&line.text[..start]);
        if let Some(unit) = unit {
            label = format!("{label} ({unit})");
        }
        let section = String::new();
        Some(Row { line: line.lines.first, section, statistic, label, better: None, cells })
    }

    /// The title of a table that begins at `first`, with rows from `rows` on: a title between rules, or a
    /// short line on its own.
    fn title(&self, first: usize, rows: usize) -> String {
        let is_title = |place: &usize| {
            // Names may be between rules as well.
            let is_names = (first..first + 2).contains(place) && first < rows;
            !is_names && header::is_ruled_title(self.lines, *place, 0)
        };
        let ruled_title = rows.checked_sub(2).filter(is_title);
        let is_rule = |place: &usize| self.lines[*place].shape == Shape::Rule;
        let above = first.checked_sub(1);
        let above = above.filter(is_rule).map_or(above, |rule| rule.checked_sub(1));
        let alone = |place: &usize| {
            let before = place.checked_sub(1).map(|before| &self.lines[before].shape);
            self.lines[*place].shape == Shape::Other
                && !self.used[*place]
                && self.lines[*place].line.depth == self.lines[first].line.depth
                && matches!(before, None | Some(Shape::Blank | Shape::Rule))
        };
        let title = ruled_title.or_else(|| above.filter(alone));
        let title = title.map_or("", |place| self.lines[place].line.text.trim());
        let reads = title.len() <= MAX_TITLE
            && !title.starts_with('(')
            && !title.ends_with(['.', ',', ';']);
        if reads { title.trim_end_matches(':').to_owned() } else { String::new() }
    }

    fn unread(&mut self, first: usize, last: usize, why: &'static str) {
        self.used[first..=last].fill(true);
        let lines = self.span(first, last);
        // Lines between two short lines belong to them, unless they were read.
        let most = match first.checked_sub(1) {
            Some(between) if self.used[between] => 1,
            _ => 2,
        };
        let before = self.document.unread.last_mut();
        let near = |it: &&mut Unread| {
            it.why == why && (1..=most).contains(&lines.first.saturating_sub(it.lines.last))
        };
        match before.filter(near).filter(|_| matches!(why, BETWEEN_WORDS | NO_FIGURE)) {
            Some(before) => before.lines.last = lines.last,
            None => self.document.unread.push(Unread { lines, why }),
        }
    }

    fn span(&self, first: usize, last: usize) -> Lines {
        let at = |place: usize| self.lines[place].line.lines;
        Lines { first: at(first).first, last: at(last).last }
    }
}

/// Whether a block is a table. If not, says why; [`None`] if it does not even look like one.
fn worth(
    block: &Block,
    width: usize,
    named: bool,
    heading: &str,
    rows: &[Row],
) -> Result<(), Option<&'static str>> {
    let node = |row: &Row| {
        let number = row.label.strip_suffix(':').unwrap_or(&row.label);
        row.label == "node" || number.len() < row.label.len() && number.parse::<u16>().is_ok()
    };
    let known = kind::is_known(rows);
    let many = rows.len() > 1;
    if rows.is_empty() {
        return Err(None);
    }
    if rows.iter().all(node) && !block.percent && (many || heading == "node") {
        return Err(Some(DISTANCES));
    }
    match width {
        1 if known && many && !block.percent => Ok(()),
        1 => Err((rows.len() > 2).then_some(ONE_FIGURE)),
        _ if block.percent || named || known && many => Ok(()),
        _ if !many && is_precise(&rows[0]) => Ok(()),
        _ => Err((many || known).then_some(NO_NAMES)),
    }
}

/// Whether the numbers that label rows can be the baseline of their percentages: no column is nearly all 0 %.
fn are_baselines(rows: &[Row]) -> bool {
    let number =
        |row: &Row| row.statistic.is_empty() && row.label.bytes().all(|byte| byte.is_ascii_digit());
    let width = rows.first().map_or(0, |row| row.cells.len());
    let zero = |row: &&Row, column: usize| {
        row.cells[column].percent.as_ref().is_some_and(|percent| percent.value == 0.0)
    };
    let zeros = |column| rows.iter().filter(|row| zero(row, column)).count();
    rows.iter().all(number) && (0..width).all(|column| 4 * zeros(column) < 3 * rows.len())
}

/// Whether a row cannot be prose: one word, and figures with the same number of decimals.
fn is_precise(row: &Row) -> bool {
    let decimals = |cell: &Cell| {
        let text = &cell.value.as_ref()?.text;
        text.split_once('.').map(|(_, decimals)| decimals.len())
    };
    let first = row.cells.first().and_then(decimals);
    let enough = first.is_some_and(|decimals| decimals > 1);
    enough && !row.label.contains(' ') && row.cells.iter().all(|cell| decimals(cell) == first)
}

/// Whether a whole number has leading zeros.
fn is_padded(figure: &Figure) -> bool {
    let digits = figure.text.bytes().all(|byte| byte.is_ascii_digit());
    digits && figure.text.len() > 1 && figure.text.starts_with('0')
}

/// The values of a row that lacks some. The place where a value ends determines its column.
fn by_place(cells: &[Placed], ends: &[usize]) -> Option<Vec<Cell>> {
    let mut row = vec![Cell::default(); ends.len()];
    let mut next = 0;
    for placed in cells {
        let column =
            (next..ends.len()).find(|column| ends[*column].abs_diff(placed.end) <= MAX_SHIFT)?;
        row[column] = placed.cell.clone();
        next = column + 1;
    }
    Some(row)
}
