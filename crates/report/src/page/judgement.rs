//! Compares a figure of a variant with the baseline's, as a row of a table with a little plot.

use compare::{Comparison, Evidence, Row, Statistic, Table, Verdict};
use maud::html;
use model::{Better, Mode};

use super::short;
use crate::ascii::excerpt;
use crate::document::{self, Block, Cell, Column, Holds, note};
use crate::exact;
use crate::forest::{Gain, forest, gain_word, ruler};
use crate::table::signed;
use crate::verdicts;
use crate::words::{decimal, in_percent, name, probability};

/// A figure of a variant compared with the baseline's.
#[derive(Clone, Copy)]
pub struct Judgement<'a> {
    pub comparison: &'a Comparison,
    pub table: &'a Table,
    pub row: &'a Row,
    pub column: usize,
    /// The name of the point, in a sweep. The table prints it in place of the metric's name.
    pub point: Option<&'a str>,
}

impl Judgement<'_> {
    pub fn verdict(&self) -> Option<Verdict> {
        self.row.verdict(self.column)
    }

    fn evidence(&self) -> Option<Evidence> {
        self.row.evidence(self.column)
    }

    pub fn is_known(&self) -> bool {
        self.row.value(0).is_some() && self.row.value(self.column).is_some()
    }

    /// Returns the gain in percent with its interval; in exact mode, the change with its luck floor.
    pub fn gain(&self) -> Option<Gain> {
        Gain::of(self.row, self.column, self.comparison.mode)
    }

    /// Returns the cell with the name of the figure, and below it the unit and the good direction.
    fn name(&self) -> Cell {
        let Row { unit, better, statistic, .. } = self.row;
        let equal = *statistic == Statistic::Equal;
        if let Some(point) = self.point {
            let below = equal.then(|| note("at equal entries")).into_iter().collect();
            return Cell { said: excerpt(point), below, ..Cell::default() };
        }
        let better = match better {
            Some(Better::Higher) => "higher is better",
            _ => "lower is better",
        };
        let below = match unit.is_empty() {
            true => better.to_owned(),
            false => format!("{}, {better}", excerpt(unit)),
        };
        let said = excerpt(&name(self.comparison, self.table, self.row));
        Cell { said, below: vec![note(below)], ..Cell::default() }
    }

    fn value(&self, column: usize) -> String {
        decimal(self.row.value(column), self.row.decimals)
    }

    fn change(&self) -> String {
        match self.comparison.mode {
            Mode::Exact => exact::change(self.row, self.column, 2).unwrap_or("-".to_owned()),
            Mode::Measured => match signed(self.gain().map(|gain| gain.gain), self.verdict()) {
                none if none == "-" => none,
                gain => format!("{gain} %"),
            },
        }
    }

    /// Formats the interval of the gain, or the luck floor; a dash if there is neither.
    fn uncertainty(&self) -> String {
        match (self.evidence(), self.gain(), exact::floor_percent(self.row, self.column)) {
            (Some(_), Some(Gain { low, high, .. }), _) => {
                let [low, high] = [low, high].map(|end| decimal(Some(end), 2));
                format!("{low} to {high} %")
            }
            (None, _, Some(floor)) => format!("{} %", decimal(Some(floor), 3)),
            _ => "-".to_owned(),
        }
    }

    /// Returns the cell with the verdict. Below it are the p-value, the smallest change that could have
    /// been detected, and how many boots or seeds a decision needs.
    fn found(&self) -> Cell {
        let verdict = self.verdict();
        let said = verdict.map_or("not judged", Verdict::name).to_owned();
        Cell { said, verdict, below: self.more().into_iter().map(note).collect() }
    }

    fn more(&self) -> Vec<String> {
        let Some(evidence) = self.evidence() else {
            let without =
                exact::change_without_loops(self.row, self.column, 2, exact::WITHOUT_LOOPS);
            return self.lack().into_iter().chain(without).collect();
        };
        let p = format!("p {}", probability(evidence.p));
        let visible = evidence.visible.filter(|visible| visible.is_finite());
        let seen = visible.map_or(String::new(), |visible| {
            format!("; detects changes from {} %", in_percent(visible, 2))
        });
        verdicts::needed(&evidence, self.comparison).into_iter().chain([p + &seen]).collect()
    }

    /// Returns why there is no evidence. In exact mode, returns what an undecided verdict lacks; `None` for
    /// other verdicts.
    fn lack(&self) -> Option<String> {
        let &Self { comparison, row, column, .. } = self;
        if comparison.mode == Mode::Exact {
            let undecided = self.verdict() == Some(Verdict::Undecided);
            let lacking = [0, column].into_iter().find(|side| row.value(*side).is_none());
            if let Some(lacking) = lacking {
                return Some(exact::no_value(comparison, lacking));
            }
            let more = || exact::more(row, comparison, column);
            return undecided
                .then(|| more().unwrap_or_else(|| "2 seeds of both sides are needed".to_owned()));
        }
        Some(verdicts::lack(Some(row.no_evidence(column)?), comparison, column))
    }
}

/// Lays out a row for each judgement; `None` if there are no judgements. The little plots range from
/// `-reach` to `reach` percent.
pub fn table(judgements: &[Judgement<'_>], reach: f64) -> Option<Block> {
    let Judgement { comparison, point, .. } = judgements.first()?;
    let several = comparison.variants.len() > 2;
    let uncertain = match comparison.mode {
        Mode::Measured => "Interval",
        Mode::Exact => "Luck floor",
    };
    let variant = several.then(|| Column::on_page(Holds::Sentences, "Variant"));
    let rest = [
        Column::figures("Baseline"),
        Column::figures("New"),
        Column::on_page(Holds::Gains, gain_word(comparison)),
        Column::on_page(Holds::Intervals, uncertain),
        Column::drawings(ruler(reach, comparison)),
        Column::on_page(Holds::Verdicts, "Verdict"),
    ];
    let first = Column::words(if point.is_some() { "Point" } else { "Metric" });
    let columns: Vec<Column> = [first].into_iter().chain(variant).chain(rest).collect();
    let rows = judgements.iter().map(|it| {
        let class = it.verdict().map_or("none", Verdict::name);
        let plot = it.gain().map(|gain| forest(gain, reach, class, it.comparison));
        let name = || short(&it.comparison.variants[it.column].name);
        let variant = several.then(|| Some(html! { (name()) }).into());
        let rest = [
            it.value(0).into(),
            it.value(it.column).into(),
            it.change().into(),
            it.uncertainty().into(),
            plot.into(),
            it.found(),
        ];
        [it.name()].into_iter().chain(variant).chain(rest).collect()
    });
    Some(document::table::<Cell>(columns, rows.collect()))
}
