//! Blocks that may be tables, with their headers.

use std::collections::HashSet;

use crate::block::{Block, Lined, blocks};
use crate::header::{self, Geometry, Header};
use crate::row::Placed;

/// A block that may be a table, with its header.
pub struct Candidate {
    pub block: Block,
    /// The names over them, if there are any.
    pub header: Option<Header>,
    /// The positions of its columns; `None` if unknown.
    pub geometry: Option<Geometry>,
}

/// All candidates of a text.
pub fn candidates(lines: &[Lined<'_>]) -> Vec<Candidate> {
    let mut top = 0;
    let found = blocks(lines).into_iter().filter(|block| !is_versions(block, lines));
    let found = found.map(|mut block| {
        while block.rows.len() > 1 && !block.percent && is_header_row(&block, lines, top) {
            block.rows.remove(0);
        }
        let shapes =
            block.widths().into_iter().filter_map(|width| Geometry::of(&block, lines, width));
        let mut shapes: Vec<Geometry> = shapes.collect();
        let with_header = shapes.iter().enumerate().find_map(|(place, geometry)| {
            Some((place, header::find(lines, block.first(), top, geometry)?))
        });
        let (geometry, header) = match with_header {
            Some((place, header)) => (Some(shapes.swap_remove(place)), Some(header)),
            None => (headless(&block, lines, shapes), None),
        };
        let lone = block.rows.len() == 1 && block.rows[0].1.len() == 1;
        if !lone && (header.is_some() || block.rows.len() > 1) {
            top = block.last() + 1;
        }
        Candidate { block, header, geometry }
    });
    let mut kept = Vec::<Candidate>::new();
    for candidate in found {
        kept.pop_if(|before| is_names(before, &candidate, lines));
        kept.push(candidate);
    }
    kept
}

/// Whether a single row holds the names over the next one, as in `kernel 6.10 6.12`.
fn is_names(row: &Candidate, next: &Candidate, lines: &[Lined<'_>]) -> bool {
    let [(place, cells)] = row.block.rows.as_slice() else {
        return false;
    };
    let label = lines[*place].line.text[..cells[0].start].trim();
    let over = next.header.as_ref().is_some_and(|header| header.places().contains(place));
    over && row.header.is_none() && header::is_heading(label)
}

/// Whether a block is a line of versions, as in `4.16.0-rc4 3.19`. These are names of columns, although all but the
/// first look like figures.
fn is_versions(block: &Block, lines: &[Lined<'_>]) -> bool {
    let version =
        |word: &str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    match block.rows.as_slice() {
        [(place, _)] if !block.percent => lines[*place].line.text.split_whitespace().all(version),
        _ => false,
    }
}

/// Whether the first row of a block holds names of columns that look like figures, as in `config 3.19 4.0`. A line
/// that could also be a row holds names if it is below as many names, which are not above `top`.
fn is_header_row(block: &Block, lines: &[Lined<'_>], top: usize) -> bool {
    let Some((place, cells)) = block.rows.first() else {
        return false;
    };
    let word = lines[*place].line.text[..cells[0].start].trim();
    let is_named = || {
        let geometry = Geometry::of(block, lines, cells.len());
        geometry.is_some_and(|geometry| header::find(lines, *place, top, &geometry).is_some())
    };
    let ambiguous = header::is_ambiguous(word);
    header::is_heading(word) && !(ambiguous && (!are_counts(cells) || is_named()))
}

/// Whether figures may be names of columns, as numbers of threads are: they ascend.
fn are_counts(cells: &[Placed]) -> bool {
    let value = |placed: &Placed| placed.cell.value.as_ref().map(|figure| figure.value);
    cells.windows(2).all(|two| value(&two[0]) < value(&two[1]))
}

/// The columns of a block without names. If rows have percentages, these rows determine the number of columns.
/// Otherwise the widest rows do, unless numbers before the values belong to labels that are all different.
fn headless(block: &Block, lines: &[Lined<'_>], shapes: Vec<Geometry>) -> Option<Geometry> {
    let least = block.rows.iter().map(|(_, cells)| cells.len()).min()?;
    let widest = block.percent || !block.may_end_with_numbers(least);
    let differ = |width| {
        let full = block.rows.iter().filter(|(_, cells)| cells.len() >= width);
        let label = |(place, cells): &(usize, Vec<Placed>)| {
            lines[*place].line.text[..cells[cells.len() - width].start].trim_end()
        };
        let labels: Vec<&str> = full.map(label).collect();
        labels.iter().collect::<HashSet<_>>().len() == labels.len()
    };
    let mut shapes = shapes.into_iter();
    shapes.find(|shape| widest || shape.width <= least || differ(shape.width))
}
