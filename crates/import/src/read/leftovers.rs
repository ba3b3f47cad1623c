//! Lists what looks like a table, or like a row of one, and was not read.

use super::{BETWEEN_WORDS, MailReader, NO_FIGURE, UNLABELLED};
use crate::block::{Lined, MAX_ODD};
use crate::figure::is_missing;
use crate::header;
use crate::kind;
use crate::mail::Role;
use crate::row::{Shape, figures};

const BARS: &str = "a bar chart";
const BASE64: &str = "a part in base64";

impl MailReader<'_> {
    /// Lists lines beside rows of tables that may be rows too.
    pub fn odd_rows(&mut self) {
        let is_row =
            |place: usize| self.used[place] && matches!(self.lines[place].shape, Shape::Row(_));
        let rows: Vec<usize> = (0..self.lines.len()).filter(|place| is_row(*place)).collect();
        for row in rows {
            let after = row + 1..self.lines.len().min(row + 1 + MAX_ODD);
            let before = (row.saturating_sub(MAX_ODD)..row).rev();
            for places in [after.collect::<Vec<_>>(), before.collect()] {
                let odd = |place: &usize| !self.used[*place] && self.is_odd(*place, row);
                let odd: Vec<usize> = places.into_iter().take_while(odd).collect();
                odd.into_iter().for_each(|place| self.unread(place, place, NO_FIGURE));
            }
        }
    }

    /// Lists whatever else looks like a table.
    pub fn leftovers(&mut self) {
        let mut open: Option<(usize, usize)> = None;
        for place in 0..self.lines.len() {
            let Lined { line, .. } = &self.lines[place];
            if line.role == Role::Encoded {
                let begins = place == 0 || self.lines[place - 1].line.role != Role::Encoded;
                if begins {
                    let run = self.lines[place..].iter();
                    let length = run.take_while(|it| it.line.role == Role::Encoded).count();
                    self.unread(place, place + length - 1, BASE64);
                }
                continue;
            }
            let headed = |above: usize| header::is_headed(&self.lines[above].line.text);
            if !self.used[place]
                && place.checked_sub(1).is_some_and(headed)
                && figures(&line.text) > 0
            {
                self.unread(place, place, NO_FIGURE);
            }
            let count = if self.used[place] { 0 } else { self.columns_of(place) };
            let goes_on = open.filter(|(_, before)| count > 0 && count.abs_diff(*before) <= 2);
            match goes_on {
                Some((first, _)) => open = Some((first, count)),
                None => {
                    self.close(open, place);
                    open = (count > 0).then_some((place, count));
                }
            }
        }
        self.close(open, self.lines.len());
    }

    /// Lists the lines of a run, from its beginning to `end`, if they look like a table.
    fn close(&mut self, open: Option<(usize, usize)>, end: usize) {
        let Some((first, _)) = open else {
            return;
        };
        let text = &self.lines[first].line.text;
        let bare = !text.contains(|letter: char| letter.is_alphabetic());
        if text.contains("|==") {
            self.unread(first, end - 1, BARS);
        } else if bare {
            self.unread(first, end - 1, UNLABELLED);
        } else if end - first > 1 || kind::begins_as_row(text) {
            self.unread(first, end - 1, BETWEEN_WORDS);
        }
    }

    /// The number of figures of a line, if they look like columns.
    fn columns_of(&self, place: usize) -> usize {
        let Lined { line, shape } = &self.lines[place];
        let text = line.text.trim();
        let bars = text.contains("|==");
        let bare = !text.contains(|letter: char| letter.is_alphabetic());
        let known = kind::has_known_label(text);
        let spaced = text.contains("  ") || text.contains('|') || bare || known;
        if line.role != Role::Text || !spaced || matches!(shape, Shape::Blank | Shape::Rule) {
            return 0;
        }
        let missing = text.split_whitespace().filter(|word| is_missing(word)).count();
        match (figures(text), missing) {
            (0, _) => 0,
            (count, _) if bars || known => count,
            (count, missing) if count + missing >= if bare { 3 } else { 2 } => count + missing,
            _ => 0,
        }
    }
}
