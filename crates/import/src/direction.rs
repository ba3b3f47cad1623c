//! Infers the direction of each row, first from the printed percentages of the table, then from names.

use model::Better;

use crate::check::{allowed, follows};
use crate::kind::is_spread;
use crate::table::{Baseline, Cell, Kind, Row, Signs, Table};

/// The share of votes that decides for rows without votes, and for the meaning of all signs.
const MAJORITY: f64 = 0.75;

/// Sets [`Row::better`] of each row, and [`Table::signs`].
///
/// A percentage votes for the direction that it follows from, if it follows from only one. The votes of a row decide,
/// unless nearly all other votes of its class (means and the like, or spreads) contradict a single vote: mmtests has
/// one direction per table. Without votes, names decide. Means of rates (`Hmean`) are better when higher. Times and
/// spreads are better when lower, and so are the rest of mmtests' statistics in tables without such means. Other rows
/// have no direction. If a table has percentages, rows without one get no direction, because their author gave none.
///
/// `gains` says that the table itself calls its percentages gains.
pub fn infer(table: &mut Table, gains: bool) {
    table.signs = signs(table, gains);
    let bases = bases(table);
    let votes: Vec<[usize; 2]> = table.rows.iter().map(|row| votes(table, &bases, row)).collect();
    let class = |spread: bool| {
        let rows = table.rows.iter().zip(&votes).filter(|(row, _)| is_spread(row) == spread);
        let sum = rows.fold([0, 0], |sum, (_, row)| [sum[0] + row[0], sum[1] + row[1]]);
        decide(sum, MAJORITY)
    };
    let classes = [class(false), class(true)];
    let rates = table.rows.iter().any(|row| row.statistic.contains("Hmean"));
    let better: Vec<Option<Better>> = table
        .rows
        .iter()
        .zip(&votes)
        .map(|(row, votes)| {
            if table.signs.is_some() && row.cells.iter().all(|cell| cell.percent.is_none()) {
                return None;
            }
            let by_name = by_name(row, table.kind, rates);
            if table.signs == Some(Signs::Change) {
                return by_name;
            }
            let class = classes[usize::from(is_spread(row))];
            match (decide(*votes, 1.0), class) {
                (Some(own), Some(class)) if own != class => {
                    let stands = by_name == Some(own) || votes[0] + votes[1] > 1;
                    Some(if stands { own } else { class })
                }
                (own, class) => own.or(class).or(by_name),
            }
        })
        .collect();
    for (row, better) in table.rows.iter_mut().zip(better) {
        row.better = better;
    }
}

/// Whether positive percentages mean more or better. In mmtests they mean better, and 0.00 % is printed beside the
/// baseline. They mean more if plus signs are printed, or nothing beside the baseline, and nearly all percentages
/// follow from "more is positive".
fn signs(table: &Table, gains: bool) -> Option<Signs> {
    let base = match table.baseline {
        Some(Baseline::Column(base)) => base,
        _ => {
            let percents =
                table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.percent.is_some());
            return percents.then_some(Signs::Gain);
        }
    };
    let bases = bases(table);
    let compared = || {
        table.rows.iter().flat_map(|row| {
            let others = row.cells.iter().enumerate().filter(move |(column, _)| *column != base);
            others.map(|(column, cell)| (&row.cells[bases[column].unwrap_or(base)], cell))
        })
    };
    let plus = |cell: &Cell| cell.percent.as_ref().is_some_and(|it| it.text.starts_with('+'));
    let more = |(base, new): (&Cell, &Cell)| match follows(Better::Higher, base, new)? {
        true => Some(true),
        false => Some(by_sign(base, new) == Some(Better::Higher)),
    };
    let told: Vec<bool> = compared().filter_map(more).collect();
    let most = told.iter().filter(|more| **more).count() as f64 >= MAJORITY * told.len() as f64;
    let bare = table.rows.iter().all(|row| row.cells[base].percent.is_none());
    let change = !gains && most && (bare || compared().any(|(_, cell)| plus(cell)));
    Some(if change { Signs::Change } else { Signs::Gain })
}

/// For each column, the column that its percentages compare with.
fn bases(table: &Table) -> Vec<Option<usize>> {
    (0..table.columns.len()).map(|column| table.base_of(column)).collect()
}

/// The numbers of a row's percentages that vote for lower and for higher.
fn votes(table: &Table, bases: &[Option<usize>], row: &Row) -> [usize; 2] {
    let Some(Baseline::Column(base)) = table.baseline else {
        return [0, 0];
    };
    let mut votes = [0, 0];
    for (column, cell) in row.cells.iter().enumerate().filter(|(column, _)| *column != base) {
        let base = &row.cells[bases[column].unwrap_or(base)];
        let follows = |better| follows(better, base, cell) == Some(true);
        let vote = match (follows(Better::Lower), follows(Better::Higher)) {
            (true, false) => Some(Better::Lower),
            (false, true) => Some(Better::Higher),
            (false, false) => by_sign(base, cell),
            (true, true) => None,
        };
        match vote {
            Some(Better::Lower) => votes[0] += 1,
            Some(Better::Higher) => votes[1] += 1,
            None => {}
        }
    }
    votes
}

/// The direction in which the sign of a percentage is right, whatever its size.
fn by_sign(base: &Cell, new: &Cell) -> Option<Better> {
    let percent = new.percent.as_ref()?.value;
    let right = |better: &Better| {
        allowed(*better, base, new)
            .is_some_and(|(low, high)| percent > 0.0 && low > 0.0 || percent < 0.0 && high < 0.0)
    };
    [Better::Lower, Better::Higher].into_iter().find(right)
}

/// The direction that has at least `share` of the votes.
fn decide([lower, higher]: [usize; 2], share: f64) -> Option<Better> {
    let all = (lower + higher) as f64;
    let enough = |votes: usize| votes > 0 && votes as f64 >= share * all;
    match (enough(lower), enough(higher)) {
        (true, false) => Some(Better::Lower),
        (false, true) => Some(Better::Higher),
        _ => None,
    }
}

/// The direction by the names of a row, in a table with or without means of rates.
fn by_name(row: &Row, kind: Kind, rates: bool) -> Option<Better> {
    let statistic = row.statistic.as_str();
    let label = row.label.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
    match kind {
        Kind::Counters | Kind::Monitor => return None,
        Kind::Duration | Kind::Times => return Some(Better::Lower),
        Kind::Metrics | Kind::Commits | Kind::Figures => {}
    }
    if is_spread(row) {
        return Some(Better::Lower);
    }
    if statistic.contains("Hmean") || matches!(statistic, "MB/sec" | "Samples") {
        return Some(Better::Higher);
    }
    if statistic.contains("Amean") || statistic == "Time" {
        return Some(Better::Lower);
    }
    if has(&[
        "/sec", "/s ", "b/s)", "ops/s)", "throughput", "bandwidth", "tps", "trans", "score", "teps",
    ]) {
        return Some(Better::Higher);
    }
    if has(&["elapsed", "latency", " time", "elsp", "syst-", "user-", "real-"]) {
        return Some(Better::Lower);
    }
    let of_mmtests = ["Min", "Max", "Mean", "Best", "Pctile", "Percentage"];
    let ranked = of_mmtests[..5].iter().any(|name| statistic.starts_with(name));
    let statistic_row = ranked || statistic.ends_with("-qrtle");
    statistic_row.then_some(if rates { Better::Higher } else { Better::Lower })
}
