//! Builds series: one row per reading, one column per counter. The column of a value is predicted from the previous
//! row, because monitors print the same names in the same order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::Deltas;

/// The largest number of columns of one source.
const MAX_COLUMNS: usize = 65_536;
/// Space is reserved in pieces of this many values.
const PIECE: usize = 1 << 14;

/// How many more values of a boot may be kept. The author of the logs decides how long they are, but must not decide
/// how much memory they take.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Budget {
    /// A budget of `values` numbers.
    pub fn new(values: usize) -> Self {
        Self(AtomicUsize::new(values))
    }

    /// Reserves space for `values` numbers; false if the limit is reached.
    fn take(&self, values: usize) -> bool {
        let less = |left: usize| left.checked_sub(values);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// The rows and columns that have been read.
#[derive(Debug)]
pub struct SeriesTable<'a> {
    times: Vec<u64>,
    columns: Vec<Deltas>,
    places: HashMap<String, usize>,
    /// The column that is expected next.
    next: usize,
    /// Whether there was space for the current row.
    open: bool,
    budget: &'a Budget,
    room: usize,
    overflowed: bool,
}

impl<'a> SeriesTable<'a> {
    /// A table without rows, which takes its space from `budget`.
    pub fn new(budget: &'a Budget) -> Self {
        Self {
            times: Vec::new(),
            columns: Vec::new(),
            places: HashMap::new(),
            next: 0,
            open: false,
            budget,
            room: 0,
            overflowed: false,
        }
    }

    /// Begins a row. Time never goes back: if a clock was set back, the row gets the time of the previous row.
    pub fn row(&mut self, time: u64) {
        self.next = 0;
        self.open = self.take(1 + self.columns.len());
        if self.open {
            self.times.push(time.max(self.times.last().copied().unwrap_or(0)));
        }
    }

    /// Sets values of the current row in the columns that are expected next, while these have none and `value`
    /// returns one for their names.
    pub fn go_on(&mut self, mut value: impl FnMut(&str) -> Option<i64>) {
        if !self.open {
            return;
        }
        let rows = self.times.len();
        for column in &mut self.columns[self.next..] {
            if column.len() + 1 != rows {
                return;
            }
            let Some(value) = value(column.name()) else {
                return;
            };
            column.push(value);
            self.next += 1;
        }
    }

    /// Sets a value of the current row. If a name occurs several times, its first value counts.
    pub fn set(&mut self, name: &str, value: i64) {
        let mut value = Some(value);
        self.go_on(|next| value.take_if(|_| next == name));
        let Some(value) = value else {
            return;
        };
        let Some(before) = self.times.len().checked_sub(1).filter(|_| self.open) else {
            return;
        };
        let Some(place) = self.place(name, before) else {
            self.overflowed = true;
            return;
        };
        let column = &mut self.columns[place];
        if column.len() <= before {
            column.pad(before);
            column.push(value);
            self.next = place + 1;
        }
    }

    /// The index of the column with this name. A new column has no values in earlier rows. `None` if there is no
    /// space for it.
    fn place(&mut self, name: &str, before: usize) -> Option<usize> {
        if let Some(&place) = self.places.get(name) {
            return Some(place);
        }
        if self.columns.len() == MAX_COLUMNS || !self.take(1 + before) {
            return None;
        }
        self.columns.push(Deltas::new(name));
        self.places.insert(name.to_owned(), self.columns.len() - 1);
        Some(self.columns.len() - 1)
    }

    /// Sets 0 in all columns that have no value in the current row.
    pub fn fill(&mut self) {
        let Some(before) = self.times.len().checked_sub(1).filter(|_| self.open) else {
            return;
        };
        for column in self.columns.iter_mut().filter(|column| column.len() <= before) {
            column.pad(before);
            column.push(0);
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// Whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether something was dropped because the limit was reached.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// The times and the columns. A column that ends early has no values after its end.
    pub fn finish(mut self) -> (Vec<u64>, Vec<Deltas>) {
        let rows = self.times.len();
        for column in &mut self.columns {
            column.pad(rows);
        }
        (self.times, self.columns)
    }

    fn take(&mut self, values: usize) -> bool {
        if self.room < values {
            let piece = values.max(PIECE);
            // After something was dropped, nothing is reserved, so that no row is kept in part.
            if self.overflowed || !self.budget.take(piece) {
                self.overflowed = true;
                return false;
            }
            self.room += piece;
        }
        self.room -= values;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(columns: &[Deltas], name: &str) -> Vec<Option<i64>> {
        columns.iter().find(|column| column.name() == name).unwrap().values()
    }

    #[test]
    fn a_counter_that_comes_and_goes_has_gaps() {
        let budget = Budget::new(1 << 20);
        let mut table = SeriesTable::new(&budget);
        let rows: [&[(&str, i64)]; 4] =
            [&[("a", 1), ("b", 2)], &[("b", 3)], &[("c", 4), ("a", 5), ("a", 6)], &[("a", 7)]];
        for (time, row) in rows.into_iter().enumerate() {
            table.row(time as u64);
            for (name, value) in row {
                table.set(name, *value);
            }
        }
        let (times, columns) = table.finish();
        assert_eq!(times, [0, 1, 2, 3]);
        assert_eq!(values(&columns, "a"), [Some(1), None, Some(5), Some(7)]);
        assert_eq!(values(&columns, "b"), [Some(2), Some(3), None, None]);
        assert_eq!(values(&columns, "c"), [None, None, Some(4), None]);
    }

    #[test]
    fn time_does_not_go_back() {
        let budget = Budget::new(1 << 20);
        let mut table = SeriesTable::new(&budget);
        for time in [5, 3, 9] {
            table.row(time);
        }
        assert_eq!(table.finish().0, [5, 5, 9]);
    }

    #[test]
    fn missing_values_may_mean_zero() {
        let budget = Budget::new(1 << 20);
        let mut table = SeriesTable::new(&budget);
        table.row(1);
        table.set("a", 1);
        table.row(2);
        table.set("b", 2);
        table.fill();
        let (_, columns) = table.finish();
        assert_eq!(values(&columns, "a"), [Some(1), Some(0)]);
        assert_eq!(values(&columns, "b"), [None, Some(2)]);
    }

    #[test]
    fn values_beyond_the_budget_are_dropped() {
        let budget = Budget::new(2 * PIECE);
        let mut table = SeriesTable::new(&budget);
        for time in 0..PIECE as u64 {
            table.row(time);
            table.set("a", 1);
            table.set("b", 1);
        }
        assert!(table.overflowed());
        let (times, columns) = table.finish();
        let kept: usize = columns.iter().map(Deltas::len).sum();
        assert!(times.len() < PIECE && kept < 2 * PIECE);
    }
}
