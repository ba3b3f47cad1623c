//! Checks whether the printed percentages follow from the printed values.

use model::Better;

use crate::table::{Cell, Figure, Signs, Table};

/// Tolerance for floating-point arithmetic, in percent.
const SLACK: f64 = 1e-9;

/// The result of checking a table's percentages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Check {
    /// How many percentages are printed.
    pub printed: usize,
    /// How many follow from the values.
    pub derived: usize,
    /// How many of these follow only if they were truncated instead of rounded. It is counted only for a table all of
    /// whose percentages are explained so.
    pub cut: usize,
    /// How many cannot be checked: rounding left nothing of the baseline, a value is missing, or the baseline is not
    /// in the table.
    pub untold: usize,
    /// The percentages that do not follow.
    pub findings: Vec<Finding>,
}

/// A printed percentage that does not follow from the values beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The number of the line in the text, counted from 1.
    pub line: usize,
    /// The index of the row in the table.
    pub row: usize,
    /// The index of the column in the table.
    pub column: usize,
    /// What is printed, without the percent sign.
    pub printed: String,
    /// The percentages that can follow, given that the values are rounded.
    pub follows: (f64, f64),
    /// Other values that the percentage would follow from.
    pub clue: Option<Clue>,
}

/// An explanation of a percentage that does not follow from the values beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clue {
    /// It follows from the values in the other direction. The sign is wrong, or the direction of the row differs from
    /// the rest.
    OtherDirection,
    /// It follows from the values if it was truncated instead of rounded.
    CutOff,
    /// It follows from the baseline plus one, by which some scripts divide because that is never 0.
    BaselinePlusOne,
}

/// Recomputes every percentage of a table. Values and percentages are rounded, so two values determine an interval of
/// percentages, and a printed percentage also stands for an interval. A percentage is derived if the two intervals
/// touch. A row without a direction is right if either direction fits.
pub fn check(table: &Table) -> Check {
    let mut check = Check::default();
    // Whether all percentages that can be checked were truncated.
    let mut all_cut = true;
    let bases: Vec<Option<usize>> =
        (0..table.columns.len()).map(|column| table.base_of(column)).collect();
    for (row_place, row) in table.rows.iter().enumerate() {
        for (column, cell) in row.cells.iter().enumerate() {
            let Some(percent) = &cell.percent else {
                continue;
            };
            check.printed += 1;
            let directions = match (table.signs, row.better) {
                (Some(Signs::Change), _) => vec![Better::Higher],
                (_, Some(better)) => vec![better],
                (_, None) => vec![Better::Lower, Better::Higher],
            };
            let base = bases[column].map(|base| &row.cells[base]);
            let told = directions.iter().map(|better| follows(*better, base?, cell));
            let told: Vec<Option<bool>> = told.collect();
            let cut = |better: &Better| base.is_some_and(|base| cut_off(*better, base, cell));
            all_cut &= told.iter().all(Option::is_none) || directions.iter().any(cut);
            match (told.contains(&Some(true)), told.contains(&None)) {
                (true, _) => check.derived += 1,
                (false, true) => check.untold += 1,
                (false, false) => {
                    let better = directions[0];
                    check.findings.push(Finding {
                        line: row.line,
                        row: row_place,
                        column,
                        printed: percent.text.clone(),
                        follows: base
                            .and_then(|base| {
                                hidden(better, base, cell).or_else(|| allowed(better, base, cell))
                            })
                            .unwrap_or_default(),
                        clue: base.and_then(|base| clue(better, base, cell)),
                    });
                }
            }
        }
    }
    let is_cut = |finding: &Finding| finding.clue == Some(Clue::CutOff);
    if all_cut && check.findings.iter().all(is_cut) {
        check.cut = check.findings.len();
        check.derived += check.cut;
        check.findings.clear();
    }
    check
}

fn clue(better: Better, base: &Cell, new: &Cell) -> Option<Clue> {
    let other = match better {
        Better::Lower => Better::Higher,
        Better::Higher => Better::Lower,
    };
    if follows(other, base, new) == Some(true) {
        return Some(Clue::OtherDirection);
    }
    if cut_off(better, base, new) {
        return Some(Clue::CutOff);
    }
    let mut base = base.clone();
    let value = base.value.as_mut()?;
    // The value is compared with the true baseline, so it is shifted too.
    let shifted = Figure { value: value.value + 1.0, ..value.clone() };
    let mut new = new.clone();
    let moved = new.value.as_mut()?;
    moved.value += 1.0;
    *value = shifted;
    (follows(better, &base, &new) == Some(true)).then_some(Clue::BaselinePlusOne)
}

/// Whether the percentage of `new` follows from the values, if it was truncated.
pub(crate) fn cut_off(better: Better, base: &Cell, new: &Cell) -> bool {
    let (Some(percent), Some((low, high))) = (&new.percent, allowed(better, base, new)) else {
        return false;
    };
    let Figure { value, half, .. } = percent;
    // Truncation is towards 0, and by less than a step of the last digit.
    let (least, most) = match *value {
        0.0 => (-2.0 * half, 2.0 * half),
        below if below < 0.0 => (below - 2.0 * half, below),
        above => (above, above + 2.0 * half),
    };
    least - SLACK <= high && low <= most + SLACK
}

/// Whether the percentage of `new` follows from its value and that of the baseline; `None` if that cannot be checked.
pub(crate) fn follows(better: Better, base: &Cell, new: &Cell) -> Option<bool> {
    let Figure { value, half, .. } = new.percent.as_ref()?;
    let within =
        |(low, high): (f64, f64)| value + half + SLACK >= low && value - half - SLACK <= high;
    let told = allowed(better, base, new).map(within);
    match hidden(better, base, new) {
        // Digits that are not printed can explain this percentage, and nearly any other too.
        Some(range) if told != Some(true) => (!within(range)).then_some(false),
        _ => told,
    }
}

/// The percentages that unprinted digits can explain, where rounding left nothing of the baseline. The baseline may
/// be arbitrarily small, so only one side is bounded. mmtests prints -99 or 100 for a percentage of nothing; those
/// have the right sign.
fn hidden(better: Better, base: &Cell, new: &Cell) -> Option<(f64, f64)> {
    let (base, new) = (base.value.as_ref()?, new.value.as_ref()?);
    if base.value.abs() > base.half || base.half == 0.0 || new.value < 0.0 {
        return None;
    }
    let ratio = ((new.value - new.half) / base.half).clamp(0.0, 1.0);
    Some(match better {
        Better::Lower => (f64::NEG_INFINITY, 100.0 - 100.0 * ratio),
        Better::Higher => (100.0 * ratio - 100.0, f64::INFINITY),
    })
}

/// The percentages that can follow from two rounded values; `None` if the baseline may be 0 and the two figures
/// differ.
pub(crate) fn allowed(better: Better, base: &Cell, new: &Cell) -> Option<(f64, f64)> {
    let (base, new) = (base.value.as_ref()?, new.value.as_ref()?);
    if base.value <= base.half {
        // mmtests prints 0 for two zeros.
        return (base == new && base.value == 0.0).then_some((0.0, 0.0));
    }
    let least = new.value - new.half;
    let most = new.value + new.half;
    let ratio = |new: f64| {
        let by = if new < 0.0 {
            [base.value - base.half, base.value + base.half]
        } else {
            [base.value + base.half, base.value - base.half]
        };
        (new / by[0], new / by[1])
    };
    let (low, high) = (100.0 * ratio(least).0, 100.0 * ratio(most).1);
    let (low, high) = match better {
        Better::Lower => (100.0 - high, 100.0 - low),
        Better::Higher => (low - 100.0, high - 100.0),
    };
    Some((low, high))
}
