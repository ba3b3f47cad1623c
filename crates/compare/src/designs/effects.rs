//! Effects of the axes of a matrix, where the variants are a full cross of two or more axes. All effects are
//! contrasts: sums of logarithms over the variants, each with a weight (Box, Hunter and Hunter, "Statistics for
//! Experimenters", 2nd edition, 2005, chapter 5).
//!
//! - The main effect of a value is its difference from the baseline's value, as the mean over all
//!   combinations of the other axes.
//! - The interaction of two values is the difference that one of them makes to the effect of the other, as
//!   the mean over all combinations of the other axes.
//!
//! In measured mode each block gives one sum, and Student's t is applied to the mean of the sums. So variants need
//! not scatter alike, and differences between blocks cancel. In exact mode seeds are independent samples
//! ([`Estimate::of_contrast`]). The effects on all rows of a table are one family (Holm).

use model::{Better, Reading};
use serde::Serialize;
use stats::{Estimate, holm};

use crate::explain::loops::LARGE;
use crate::figures::BootFigures;
use crate::verdicts::luck::{Seeds, reaches};
use crate::{Difference, Evidence, Judging, VariantBoots, Verdict, WithoutLoops};

/// An axis: its values, the baseline's first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The axis's name, such as `kernel`.
    pub name: String,
    /// The names of its values, at least one.
    pub values: Vec<String>,
}

/// The effects of axes on the rows of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effects {
    /// The axes that the variants are a full cross of.
    pub axes: Vec<Axis>,
    /// The effects, row by row, main effects first.
    pub effects: Vec<Effect>,
    /// Rows whose effects are not known: a variant lacks boots or seeds, or has a figure that is not above 0.
    pub unknown: Vec<usize>,
}

/// An effect on a row: of one value, or the interaction of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The row's number in the table.
    pub row: usize,
    /// The direction of the row's metric.
    pub better: Better,
    /// The values whose effect it is: one for a main effect, two for an interaction.
    pub of: Vec<Term>,
    /// The factor by which the figure changes. For an interaction, the factor by which the effect of the first
    /// value changes.
    pub ratio: f64,
    /// The evidence, in measured mode.
    pub evidence: Option<Evidence>,
    /// The luck floor in exact mode, as a share.
    pub floor: Option<f64>,
    /// The verdict. On an interaction it says whether the interaction makes figures worse or better.
    pub verdict: Verdict,
    /// For an interaction, two ratios of the first value: one where the second axis has the baseline's value, and one
    /// where it has the second value.
    pub apart: Option<[f64; 2]>,
    /// The effect without loops that copy and clear memory, if the verdict would be another one or they have a large part
    /// in the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_loops: Option<WithoutLoops>,
}

impl Effect {
    /// A ratio of this figure as a gain in percent; positive is better.
    pub fn gain(&self, ratio: f64) -> Option<f64> {
        stats::gain(self.better, ratio, 1.0)
    }
}

/// A value of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// The number of the axis.
    pub axis: usize,
    /// The number of the value, 1 or more; it is compared with value 0.
    pub value: usize,
}

/// The figures of one row, one entry per variant.
pub(crate) enum Sides<'a> {
    /// The boots of measured mode.
    Boots(Vec<BootFigures>),
    /// The seeds of exact mode, and their figures without loops that copy and clear memory. The latter are empty if they
    /// are not known.
    Seeds(&'a [Seeds], Vec<Seeds>),
}

/// Variants that are a full cross: one for each combination of values.
pub(crate) struct Cross {
    axes: Vec<Axis>,
    /// For each variant, the numbers of its values.
    cells: Vec<Vec<usize>>,
}

/// A contrast as each mode knows it.
enum Contrast {
    Boots(Evidence),
    Seeds(Estimate),
}

impl Contrast {
    fn ratio(&self) -> f64 {
        match self {
            Self::Boots(evidence) => evidence.ratio,
            Self::Seeds(estimate) => estimate.value.exp(),
        }
    }
}

impl Cross {
    /// The cross that the variants form; `None` if they form none.
    pub fn of(columns: &[VariantBoots<'_>], reading: &Reading) -> Option<Self> {
        let first = &reading.variant(columns.first()?.variant).axes;
        let mut axes: Vec<Axis> =
            first.iter().map(|(name, _)| Axis { name: name.clone(), values: Vec::new() }).collect();
        let mut cells: Vec<Vec<usize>> = Vec::new();
        for column in columns {
            let own = &reading.variant(column.variant).axes;
            if own.len() != axes.len() {
                return None;
            }
            let mut cell = Vec::new();
            for axis in &mut axes {
                let (_, value) = own.iter().find(|(name, _)| *name == axis.name)?;
                let known = axis.values.iter().position(|it| it == value);
                cell.push(known.unwrap_or(axis.values.len()));
                if known.is_none() {
                    axis.values.push(value.clone());
                }
            }
            if cells.contains(&cell) {
                return None;
            }
            cells.push(cell);
        }
        let crossed = axes.iter().filter(|axis| axis.values.len() > 1).count();
        let all = axes.iter().try_fold(1usize, |all, axis| all.checked_mul(axis.values.len()));
        (crossed > 1 && all == Some(cells.len())).then_some(Self { axes, cells })
    }

    /// The effects on rows, which are given by their numbers.
    pub fn effects<'a>(
        self,
        rows: impl Iterator<Item = (usize, Sides<'a>)>,
        better: impl Fn(usize) -> Better,
        judging: &Judging,
    ) -> Effects {
        let terms = self.terms();
        let mut found: Vec<(Effect, Contrast)> = Vec::new();
        let mut without: Vec<Option<Estimate>> = Vec::new();
        let mut unknown = Vec::new();
        for (row, sides) in rows {
            let of_row = terms.iter().map(|of| {
                let known = sides.contrast(&self.weights(of, None), judging)?;
                let apart = match of[..] {
                    [one, other] => {
                        let ratio = |value: usize| {
                            let fixed = Some(Term { value, ..other });
                            Some(sides.contrast(&self.weights(&[one], fixed), judging)?.ratio())
                        };
                        Some([ratio(0)?, ratio(other.value)?])
                    }
                    _ => None,
                };
                let effect = Effect {
                    row,
                    better: better(row),
                    of: of.clone(),
                    ratio: known.ratio(),
                    evidence: None,
                    floor: None,
                    verdict: Verdict::Undecided,
                    apart,
                    without_loops: None,
                };
                Some((effect, known))
            });
            match of_row.collect::<Option<Vec<_>>>() {
                Some(effects) => {
                    without.extend(terms.iter().map(|of| sides.without(&self.weights(of, None))));
                    found.extend(effects);
                }
                None => unknown.push(row),
            }
        }
        let mut effects = judged(found, judging);
        say_without_loops(&mut effects, &without, judging);
        Effects { axes: self.axes, effects, unknown }
    }

    /// All values but the baseline's, then all pairs of them on two axes.
    fn terms(&self) -> Vec<Vec<Term>> {
        let of_axis = |(axis, it): (usize, &Axis)| {
            (1..it.values.len()).map(move |value| Term { axis, value }).collect::<Vec<_>>()
        };
        let single: Vec<Term> = self.axes.iter().enumerate().flat_map(of_axis).collect();
        let pairs = single.iter().flat_map(|one| {
            let others = single.iter().filter(|other| other.axis > one.axis);
            others.map(|other| vec![*one, *other])
        });
        single.iter().map(|one| vec![*one]).chain(pairs).collect()
    }

    /// The weights of the variants in an effect. With `fixed`, only variants with this value count.
    fn weights(&self, of: &[Term], fixed: Option<Term>) -> Vec<f64> {
        let is_free = |axis: &usize| of.iter().chain(&fixed).all(|term| term.axis != *axis);
        let free = (0..self.axes.len()).filter(is_free);
        let combinations: usize = free.map(|axis| self.axes[axis].values.len()).product();
        let weight = |cell: &Vec<usize>| {
            if fixed.is_some_and(|term| cell[term.axis] != term.value) {
                return 0.0;
            }
            let sign = |term: &Term| match cell[term.axis] {
                0 => -1.0,
                value if value == term.value => 1.0,
                _ => 0.0,
            };
            of.iter().map(sign).product::<f64>() / combinations as f64
        };
        self.cells.iter().map(weight).collect()
    }
}

impl Sides<'_> {
    /// The sum of logarithms with these weights; `None` if a figure that counts is missing or not above 0.
    fn contrast(&self, weights: &[f64], judging: &Judging) -> Option<Contrast> {
        match self {
            Self::Boots(sides) => {
                let sides: Vec<_> = weights.iter().copied().zip(sides).collect();
                BootFigures::contrast(&sides, judging).map(Contrast::Boots)
            }
            Self::Seeds(sides, _) => of_seeds(weights, sides).map(Contrast::Seeds),
        }
    }

    /// The sum of logarithms of figures without loops that copy and clear memory; `None` if they are not known.
    fn without(&self, weights: &[f64]) -> Option<Estimate> {
        match self {
            Self::Seeds(_, without) if !without.is_empty() => of_seeds(weights, without),
            Self::Boots(_) | Self::Seeds(..) => None,
        }
    }
}

/// The sum of logarithms of these figures with these weights; `None` if one that counts is missing or not above 0.
fn of_seeds(weights: &[f64], sides: &[Seeds]) -> Option<Estimate> {
    let used = weights.iter().zip(sides).filter(|(weight, _)| **weight != 0.0);
    let logarithms = used.clone().map(|(weight, seeds)| {
        let seeds = seeds.shared(used.clone().map(|(_, seeds)| seeds));
        let is_known = seeds.is_complete() && seeds.values().iter().all(|it| *it > 0.0);
        let values: Vec<f64> = seeds.values().iter().map(|value| value.ln()).collect();
        is_known.then_some((*weight, values))
    });
    let logarithms: Vec<(f64, Vec<f64>)> = logarithms.collect::<Option<_>>()?;
    let samples: Vec<(f64, &[f64])> =
        logarithms.iter().map(|(weight, values)| (*weight, &values[..])).collect();
    Estimate::of_contrast(&samples)
}

/// The effects with their verdicts, all adjusted for each other.
fn judged(found: Vec<(Effect, Contrast)>, judging: &Judging) -> Vec<Effect> {
    let estimate = |contrast: &Contrast| match contrast {
        Contrast::Boots(_) => None,
        Contrast::Seeds(estimate) => Some(*estimate),
    };
    let alone = |contrast: &Contrast| match contrast {
        Contrast::Boots(evidence) => Some(evidence.p_alone),
        Contrast::Seeds(_) => None,
    };
    let estimates: Vec<Estimate> = found.iter().filter_map(|(_, it)| estimate(it)).collect();
    let p: Vec<f64> = found.iter().filter_map(|(_, it)| alone(it)).collect();
    let (mut reaches, mut p) =
        (reaches(&estimates, judging.luck).into_iter(), holm(&p).into_iter());
    let judged = found.into_iter().map(|(effect, known)| match known {
        Contrast::Boots(mut evidence) => {
            evidence.p = p.next().unwrap_or(1.0);
            let verdict = evidence.verdict(effect.better, judging);
            Effect { evidence: Some(evidence), verdict, ..effect }
        }
        Contrast::Seeds(estimate) => {
            let difference = share(estimate, reaches.next().unwrap_or(f64::INFINITY));
            let verdict = Verdict::of(effect.better, Some(&difference), judging.margin);
            Effect { floor: difference.floor, verdict, ..effect }
        }
    });
    judged.collect()
}

/// A sum of logarithms as a change from 1. Its floor is the change that luck makes in its direction within `reach`.
fn share(estimate: Estimate, reach: f64) -> Difference {
    let floor = if estimate.value < 0.0 { -(-reach).exp_m1() } else { reach.exp_m1() };
    Difference { base: 1.0, new: estimate.value.exp(), floor: Some(floor) }.of_total()
}

/// Adds what decided effects are without loops that copy and clear memory, if the verdict would be another one or the
/// loops have a [`LARGE`] share of the logarithm. The floors of these figures are joint as well.
fn say_without_loops(effects: &mut [Effect], without: &[Option<Estimate>], judging: &Judging) {
    let known: Vec<Estimate> = without.iter().copied().flatten().collect();
    let mut reaches = reaches(&known, judging.luck).into_iter();
    for (effect, estimate) in effects.iter_mut().zip(without) {
        let Some(estimate) = *estimate else { continue };
        let difference = share(estimate, reaches.next().unwrap_or(f64::INFINITY));
        let verdict = Verdict::of(effect.better, Some(&difference), judging.margin);
        let all = effect.ratio.ln();
        let is_said = match effect.verdict {
            Verdict::Undecided => false,
            Verdict::Same => verdict != Verdict::Same && verdict != Verdict::Undecided,
            own => verdict != own || (all - estimate.value).abs() >= LARGE * all.abs(),
        };
        let is_luck = difference.beyond_luck() != Some(true);
        let share = difference.change();
        effect.without_loops = is_said.then_some(WithoutLoops { share, is_luck });
    }
}

#[cfg(test)]
mod tests;
