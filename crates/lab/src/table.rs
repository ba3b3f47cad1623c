//! A table in the making: the counters of one source as columns, a row a sample.

use std::collections::HashMap;

use model::Column;

/// No more values than this are kept of one source between two cuts.
const MAX_VALUES: usize = 64 << 20;
/// No more counters than this are kept of one source.
const MAX_COLUMNS: usize = 65_536;

/// Rows and columns of one source since the last cut.
#[derive(Debug, Default)]
pub struct Table {
    times: Vec<u64>,
    columns: Vec<Column>,
    index: HashMap<String, usize>,
    /// Which file of the source each column comes from.
    owners: Vec<usize>,
}

impl Table {
    /// Takes the counters of one file as sampled at `time`. Files of one source sampled at one
    /// time share a row; a file that says nothing new keeps its values. False when there was no
    /// room.
    pub fn sampled(&mut self, file: usize, counters: Vec<(String, i64)>, time: u64) -> bool {
        if self.times.last() != Some(&time) && !self.begin_row(time, true) {
            return false;
        }
        for (column, _) in self.columns.iter_mut().zip(&self.owners).filter(|(_, of)| **of == file)
        {
            set_last(column, None);
        }
        counters.into_iter().fold(true, |fits, (name, value)| self.set(file, name, value) && fits)
    }

    /// Takes one point of a series at `time`: into the row before if that has none of this series
    /// yet, for what is reported together belongs together.
    pub fn point(&mut self, name: &str, value: i64, time: u64) -> bool {
        let filled = match self.index.get(name) {
            Some(&column) => self.columns[column].values.last().is_none_or(Option::is_some),
            None => self.times.is_empty(),
        };
        (!filled || self.begin_row(time, false)) && self.set(0, name.to_owned(), value)
    }

    /// Takes all rows out. With `carry` the last row stays as the first of what follows.
    pub fn cut(&mut self, carry: bool) -> (Vec<u64>, Vec<Column>) {
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
        (times, columns)
    }

    fn begin_row(&mut self, time: u64, carry: bool) -> bool {
        if (self.times.len() + 1).saturating_mul(self.columns.len().max(1)) > MAX_VALUES {
            return false;
        }
        self.times.push(time);
        for column in &mut self.columns {
            let last = column.values.last().copied().flatten().filter(|_| carry);
            column.values.push(last);
        }
        true
    }

    fn set(&mut self, file: usize, name: String, value: i64) -> bool {
        if let Some(&column) = self.index.get(&name) {
            set_last(&mut self.columns[column], Some(value));
            return true;
        }
        let rows = self.times.len();
        let values = rows.saturating_mul(self.columns.len() + 1);
        if self.columns.len() >= MAX_COLUMNS || values > MAX_VALUES {
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
    fn files_of_one_time_share_a_row_and_silence_means_no_change() {
        let mut table = Table::default();
        table.sampled(0, counters(&[("node0 a", 1)]), 10);
        table.sampled(1, counters(&[("node1 a", 2)]), 10);
        table.sampled(0, counters(&[("node0 a", 3)]), 20);
        let (times, columns) = table.cut(true);
        assert_eq!(times, [10, 20]);
        assert_eq!(values(&columns, "node0 a"), [Some(1), Some(3)]);
        assert_eq!(values(&columns, "node1 a"), [Some(2), Some(2)]);
    }

    #[test]
    fn a_counter_that_comes_or_goes_is_missing_meanwhile() {
        let mut table = Table::default();
        table.sampled(0, counters(&[("a", 1)]), 10);
        table.sampled(0, counters(&[("b", 2)]), 20);
        let (_, columns) = table.cut(true);
        assert_eq!(values(&columns, "a"), [Some(1), None]);
        assert_eq!(values(&columns, "b"), [None, Some(2)]);
    }

    #[test]
    fn the_last_row_begins_the_next_phase() {
        let mut table = Table::default();
        table.sampled(0, counters(&[("a", 1)]), 10);
        table.sampled(0, counters(&[("a", 5)]), 20);
        table.cut(true);
        table.sampled(0, counters(&[("a", 9)]), 30);
        let (times, columns) = table.cut(true);
        assert_eq!((times, values(&columns, "a")), (vec![20, 30], vec![Some(5), Some(9)]));
    }

    #[test]
    fn points_reported_together_share_a_row() {
        let mut table = Table::default();
        for (name, value, time) in [("x", 1, 1), ("y", 2, 2), ("x", 3, 9), ("y", 4, 10)] {
            table.point(name, value, time);
        }
        let (times, columns) = table.cut(false);
        assert_eq!(times, [1, 9]);
        assert_eq!(values(&columns, "y"), [Some(2), Some(4)]);
        assert!(table.cut(false).0.is_empty());
        assert!(table.point("y", 5, 20));
        assert_eq!(values(&table.cut(false).1, "y"), [Some(5)]);
    }
}
