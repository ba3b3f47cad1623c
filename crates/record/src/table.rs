//! Builds the table of one source: its counters are the columns, its samples are the rows.

use std::collections::HashMap;

use model::Column;

/// What a column takes from the budget at each cut, in values, because its name is stored again.
const COLUMN_COST: usize = 8;
/// The largest number of counters of one source.
const MAX_COLUMNS: usize = 65_536;

/// The number of values that may still be stored for a boot. A guest controls how many counters it
/// prints and how often phases are cut; it must not control the host's memory.
#[derive(Debug)]
pub struct Budget {
    left: usize,
}

impl Budget {
    /// Creates a budget of `values` values.
    pub fn new(values: usize) -> Self {
        Self { left: values }
    }

    /// Reserves space for `values` values; false if the limit is reached. After a failure no space
    /// is left.
    fn take(&mut self, values: usize) -> bool {
        let fits = values <= self.left;
        self.left = if fits { self.left - values } else { 0 };
        fits
    }
}

/// The rows and columns of one source since the last cut.
#[derive(Debug, Default)]
pub struct SeriesTable {
    times: Vec<u64>,
    columns: Vec<Column>,
    index: HashMap<String, usize>,
    /// The index of the file that each column comes from.
    owners: Vec<usize>,
}

impl SeriesTable {
    /// Adds the counters of one file, sampled at `time`. Files of one source sampled at the same
    /// time share a row; a file that did not change keeps its values. False if the limit is
    /// reached.
    pub fn sampled(
        &mut self,
        file: usize,
        counters: Vec<(String, i64)>,
        time: u64,
        budget: &mut Budget,
    ) -> bool {
        if self.times.last() != Some(&time) && !self.begin_row(time, true, budget) {
            return false;
        }
        for (column, _) in self.columns.iter_mut().zip(&self.owners).filter(|(_, of)| **of == file)
        {
            set_last(column, None);
        }
        counters
            .into_iter()
            .fold(true, |fits, (name, value)| self.set(file, name, value, budget) && fits)
    }

    /// Adds one point of a series at `time`. It goes into the previous row if that row has no point
    /// of this series, because figures reported together belong together. False if the limit is
    /// reached.
    pub fn point(&mut self, name: &str, value: i64, time: u64, budget: &mut Budget) -> bool {
        let filled = match self.index.get(name) {
            Some(&column) => self.columns[column].values.last().is_none_or(Option::is_some),
            None => self.times.is_empty(),
        };
        (!filled || self.begin_row(time, false, budget))
            && self.set(0, name.to_owned(), value, budget)
    }

    /// Removes and returns all rows: their times and their columns. With `carry` the last row also
    /// begins the next phase. `None` if the limit is reached; the rows are lost then.
    pub fn cut(&mut self, carry: bool, budget: &mut Budget) -> Option<(Vec<u64>, Vec<Column>)> {
        if !budget.take(COLUMN_COST * self.columns.len()) {
            *self = Self::default();
            return None;
        }
        let kept = self.times.last().copied().filter(|_| carry);
        let times = std::mem::take(&mut self.times);
        self.times.extend(kept);
        let columns = self.columns.iter_mut().map(|column| {
            let last = column.values.last().copied().filter(|_| kept.is_some());
            let values = std::mem::take(&mut column.values);
            column.values.extend(last);
            Column { name: column.name.clone(), values }
        });
        let columns = columns.filter(|column| column.values.iter().any(Option::is_some)).collect();
        Some((times, columns))
    }

    fn begin_row(&mut self, time: u64, carry: bool, budget: &mut Budget) -> bool {
        if !budget.take(self.columns.len() + 1) {
            return false;
        }
        self.times.push(time);
        for column in &mut self.columns {
            let last = column.values.last().copied().flatten().filter(|_| carry);
            column.values.push(last);
        }
        true
    }

    fn set(&mut self, file: usize, name: String, value: i64, budget: &mut Budget) -> bool {
        if let Some(&column) = self.index.get(&name) {
            set_last(&mut self.columns[column], Some(value));
            return true;
        }
        let rows = self.times.len();
        if self.columns.len() >= MAX_COLUMNS || !budget.take(rows) {
            return false;
        }
        self.index.insert(name.clone(), self.columns.len());
        self.owners.push(file);
        let mut values = vec![None; rows - 1];
        values.push(Some(value));
        self.columns.push(Column { name, values });
        true
    }
}

fn set_last(column: &mut Column, value: Option<i64>) {
    if let Some(last) = column.values.last_mut() {
        *last = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn values(columns: &[Column], name: &str) -> Vec<Option<i64>> {
        columns.iter().find(|column| column.name == name).unwrap().values.clone()
    }

    #[test]
    fn files_sampled_together_share_a_row() {
        let (mut table, mut budget) = (SeriesTable::default(), Budget::new(1000));
        table.sampled(0, counters(&[("node0 a", 1)]), 10, &mut budget);
        table.sampled(1, counters(&[("node1 a", 2)]), 10, &mut budget);
        table.sampled(0, counters(&[("node0 a", 3)]), 20, &mut budget);
        let (times, columns) = table.cut(true, &mut budget).unwrap();
        assert_eq!(times, [10, 20]);
        assert_eq!(values(&columns, "node0 a"), [Some(1), Some(3)]);
        assert_eq!(values(&columns, "node1 a"), [Some(2), Some(2)]);
    }

    #[test]
    fn a_counter_that_appears_or_disappears_has_gaps() {
        let (mut table, mut budget) = (SeriesTable::default(), Budget::new(1000));
        table.sampled(0, counters(&[("a", 1)]), 10, &mut budget);
        table.sampled(0, counters(&[("b", 2)]), 20, &mut budget);
        let (_, columns) = table.cut(true, &mut budget).unwrap();
        assert_eq!(values(&columns, "a"), [Some(1), None]);
        assert_eq!(values(&columns, "b"), [None, Some(2)]);
    }

    #[test]
    fn the_last_row_begins_the_next_phase() {
        let (mut table, mut budget) = (SeriesTable::default(), Budget::new(1000));
        table.sampled(0, counters(&[("a", 1)]), 10, &mut budget);
        table.sampled(0, counters(&[("a", 5)]), 20, &mut budget);
        table.cut(true, &mut budget);
        table.sampled(0, counters(&[("a", 9)]), 30, &mut budget);
        let (times, columns) = table.cut(true, &mut budget).unwrap();
        assert_eq!((times, values(&columns, "a")), (vec![20, 30], vec![Some(5), Some(9)]));
    }

    #[test]
    fn points_reported_together_share_a_row() {
        let (mut table, mut budget) = (SeriesTable::default(), Budget::new(1000));
        for (name, value, time) in [("x", 1, 1), ("y", 2, 2), ("x", 3, 9), ("y", 4, 10)] {
            table.point(name, value, time, &mut budget);
        }
        let (times, columns) = table.cut(false, &mut budget).unwrap();
        assert_eq!(times, [1, 9]);
        assert_eq!(values(&columns, "y"), [Some(2), Some(4)]);
        assert!(table.cut(false, &mut budget).unwrap().0.is_empty());
        assert!(table.point("y", 5, 20, &mut budget));
        assert_eq!(values(&table.cut(false, &mut budget).unwrap().1, "y"), [Some(5)]);
    }

    #[test]
    fn counters_over_the_budget_are_dropped() {
        let (mut table, mut budget) = (SeriesTable::default(), Budget::new(40));
        let mut rows = 0;
        while table.sampled(0, counters(&[("a", 1), ("b", 2)]), rows, &mut budget) {
            rows += 1;
        }
        assert_eq!(rows, 13);
        assert!(table.cut(true, &mut budget).is_none());
        assert!(!table.sampled(0, counters(&[("a", 1)]), 99, &mut budget));
    }
}
