//! Patterns that a mean hides: outlying boots and iterations, several modes, a warm-up, and boots that never
//! become steady. They are reported; no boot is excluded because of them.

use std::collections::BTreeMap;

use model::{Better, BootId, Mean, Metric};
use serde::Serialize;
use stats::{Mode, RepeatedValue, Steady, Summary, modes, order, outliers, steady};

use crate::VariantBoots;
use crate::figures::operations::{BootSamples, Operation, mean_of};

/// Fewest iterations of a boot in which outliers are sought.
const MIN_ITERATIONS: usize = 3;
/// Fewest boots in which modes are sought: a few boots that differ are not modes.
const MIN_FOR_MODES: usize = 8;

/// Something odd in the values of an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Oddity {
    /// The operation, as rows name it.
    pub metric: String,
    /// Name of the variant whose boots have it.
    pub variant: String,
    /// The pattern that was found.
    #[serde(flatten)]
    pub what: Odd,
}

/// A pattern that a mean hides. Values are in the metric's unit. The value of an iteration is its samples in the mean
/// that the metric declares.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Odd {
    /// A boot that lies far from the others ([`stats::outliers`]).
    OutlyingBoot {
        /// The boot's number.
        boot: BootId,
        /// The boot's figure.
        value: f64,
        /// The median of all boots' figures.
        median: f64,
    },
    /// An iteration that lies farther from its boot's mean than other iterations do from theirs.
    OutlyingIteration {
        /// The boot's number.
        boot: BootId,
        /// Number of the iteration, from 0.
        iteration: u32,
        /// The iteration's value.
        value: f64,
        /// The median of the boot's iterations.
        median: f64,
    },
    /// Boots lie about several values ([`stats::modes`]).
    Modes {
        /// The modes, by ascending value.
        modes: Vec<Peak>,
    },
    /// The first iterations of a boot differ from the steady rest ([`stats::steady`]).
    WarmUp {
        /// The boot's number.
        boot: BootId,
        /// Number of these first iterations.
        iterations: usize,
        /// Mean of these first iterations.
        first: f64,
        /// Mean of the other iterations.
        steady: f64,
    },
    /// A boot still changes in its last quarter.
    NeverSteady {
        /// The boot's number.
        boot: BootId,
    },
}

/// One of several modes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The median of its boots.
    pub centre: f64,
    /// The boots that lie in it.
    pub boots: Vec<BootId>,
}

/// The values of a boot's iterations.
struct Iterations {
    boot: BootId,
    /// Number and value of each iteration, in order.
    values: Vec<(u32, f64)>,
    /// The boot's figure: the mean of its samples.
    figure: f64,
}

impl Iterations {
    fn values(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }
}

/// The oddities in the operations of `columns`, operation by operation and column by column.
pub fn oddities(operations: &[Operation<'_>], columns: &[VariantBoots<'_>]) -> Vec<Oddity> {
    let mut all = Vec::new();
    for operation in operations {
        for (column, samples) in columns.iter().zip(&operation.columns) {
            let metric = &operation.metric;
            let boots = samples.iter().filter_map(|boot| iterations(boot, metric.mean));
            let boots: Vec<Iterations> = boots.collect();
            let odd = outlying_boots(&boots)
                .into_iter()
                .chain(outlying_iterations(&boots))
                .chain(several_modes(&boots))
                .chain(boots.iter().filter_map(|boot| unsteady(boot, metric)));
            all.extend(odd.map(|what| Oddity {
                metric: operation.name.clone(),
                variant: column.name().to_owned(),
                what,
            }));
        }
    }
    all
}

/// The iterations of a boot; `None` if the figure of one of them or of the boot is undefined.
fn iterations(samples: &BootSamples<'_>, mean: Mean) -> Option<Iterations> {
    let mut values: BTreeMap<u32, Vec<RepeatedValue>> = BTreeMap::new();
    for (iteration, value) in samples.counted.iterations.iter().zip(&samples.counted.values) {
        values.entry(*iteration).or_default().push(*value);
    }
    let figures = values.into_iter().map(|(number, it)| Some((number, mean_of(&it, mean)?)));
    let values = figures.collect::<Option<Vec<_>>>()?;
    let figure = samples.mean(mean)?;
    Some(Iterations { boot: samples.id, values, figure })
}

fn outlying_boots(boots: &[Iterations]) -> Vec<Odd> {
    let figures: Vec<f64> = boots.iter().map(|boot| boot.figure).collect();
    let Some(median) = order::median(&figures) else { return Vec::new() };
    let outlier =
        |at: usize| Odd::OutlyingBoot { boot: boots[at].boot, value: figures[at], median };
    outliers(&figures).into_iter().map(outlier).collect()
}

/// Finds outlying iterations in all boots together, each boot relative to its own mean, because one boot has too few
/// iterations. An outlier shifts the mean of its boot, so iterations on both sides of the mean may lie far from it.
/// Only the farther side is reported.
fn outlying_iterations(boots: &[Iterations]) -> Vec<Odd> {
    let mut places: Vec<(&Iterations, u32, f64)> = Vec::new();
    let mut residuals = Vec::new();
    for boot in boots.iter().filter(|boot| boot.values.len() >= MIN_ITERATIONS) {
        let Some(Summary { amean, .. }) = Summary::of(&boot.values()) else { continue };
        for (iteration, value) in &boot.values {
            places.push((boot, *iteration, *value));
            residuals.push(value - amean);
        }
    }
    let far = outliers(&residuals);
    let is_meant = |&at: &usize| {
        let own = far.iter().filter(|&&other| places[other].0.boot == places[at].0.boot);
        let farthest = own.map(|&other| residuals[other]);
        let farthest = farthest.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
        residuals[at] * farthest > 0.0
    };
    let outlier = |&at: &usize| {
        let (boot, iteration, value) = places[at];
        let median = order::median(&boot.values())?;
        Some(Odd::OutlyingIteration { boot: boot.boot, iteration, value, median })
    };
    far.iter().filter(|at| is_meant(at)).filter_map(outlier).collect()
}

/// Finds modes with one value per boot. Iterations of one boot lie close together, so with their values boots that
/// merely differ would look like modes.
fn several_modes(boots: &[Iterations]) -> Option<Odd> {
    if boots.len() < MIN_FOR_MODES {
        return None;
    }
    let figures: Vec<f64> = boots.iter().map(|boot| boot.figure).collect();
    let found = modes(&figures).filter(|found| found.count() > 1)?;
    let mut ascending: Vec<&Iterations> = boots.iter().collect();
    ascending.sort_by(|a, b| a.figure.total_cmp(&b.figure));
    let mut below = 0;
    let peak = |&Mode { centre, n }: &Mode| {
        let mut own: Vec<&Iterations> = ascending[below..below + n].to_vec();
        below += n;
        own.sort_by_key(|boot| boots.iter().position(|it| it.boot == boot.boot));
        Peak { centre, boots: own.into_iter().map(|boot| boot.boot).collect() }
    };
    Some(Odd::Modes { modes: found.modes.iter().map(peak).collect() })
}

/// Finds a warm-up, or a boot that never becomes steady. Iterations before the steady state may be better or worse
/// than those in it.
fn unsteady(boot: &Iterations, metric: &Metric) -> Option<Odd> {
    let values = boot.values();
    let sign = if metric.better == Some(Better::Higher) { -1.0 } else { 1.0 };
    let signed: Vec<f64> = values.iter().map(|value| sign * value).collect();
    let name = boot.boot;
    match steady(&signed)? {
        Steady::Flat => None,
        Steady::None => Some(Odd::NeverSteady { boot: name }),
        Steady::Warmup { until } | Steady::Slowdown { until } => Some(Odd::WarmUp {
            boot: name,
            iterations: until,
            first: mean_of(&values[..until], metric.mean)?,
            steady: mean_of(&values[until..], metric.mean)?,
        }),
    }
}

#[cfg(test)]
mod tests {
    use model::{Boot, Mode};

    use super::*;
    use crate::figures::operations::operations;
    use crate::testing::{boot, columns, deviations, manifest, named, sample, used, variant};

    /// What is odd in boots of these iterations, named `b0` and so on.
    fn odd(metric: &str, boots: &[Vec<f64>]) -> Vec<Odd> {
        let of = |(number, values): (u32, &Vec<f64>)| {
            let samples = (0..).zip(values).map(|(it, value)| sample(metric, "", it, *value));
            Boot { samples: samples.collect(), block: number, ..boot(number) }
        };
        let boots: Vec<Boot> = (0..).zip(boots).map(of).collect();
        let (variants, used) = ([variant("6.1")], used(manifest()));
        let columns = columns(&variants, &[&boots]);
        let operations = operations(&used, &columns, Mode::Measured);
        let found = oddities(&operations, &columns);
        assert!(found.iter().all(|it| it.variant == "6.1" && it.metric == metric));
        found.into_iter().map(|it| it.what).collect()
    }

    /// `boots` boots of `iterations` iterations around 100.
    fn normal(boots: usize, iterations: usize) -> Vec<Vec<f64>> {
        let mut deviations = deviations();
        let mut value = || 100.0 + deviations.next().unwrap();
        (0..boots).map(|_| (0..iterations).map(|_| value()).collect()).collect()
    }

    #[test]
    fn what_is_normal_is_not_odd() {
        for (boots, iterations) in [(0, 0), (1, 1), (2, 2), (3, 1), (5, 3), (6, 10), (3, 25)] {
            assert_eq!(odd("Elapsed", &normal(boots, iterations)), []);
        }
    }

    #[test]
    fn an_outlying_boot_is_named() {
        let mut boots = normal(6, 2);
        boots[4] = vec![140.0, 141.0];
        let [Odd::OutlyingBoot { boot, value, median }] = &odd("Elapsed", &boots)[..] else {
            panic!("{:?}", odd("Elapsed", &boots));
        };
        assert_eq!((*boot, *value), (BootId(4), 140.5));
        assert!((median - 100.0).abs() < 1.5);
    }

    #[test]
    fn an_outlying_iteration_is_named_and_not_its_neighbours() {
        // Boots far from each other, so that the iteration lies within what all boots span.
        let mut boots = normal(5, 3);
        for (boot, far) in boots.iter_mut().zip([0.0, 40.0, 80.0, 120.0, 160.0]) {
            boot.iter_mut().for_each(|value| *value += far);
        }
        boots[2][1] += 30.0;
        let found = odd("Elapsed", &boots);
        let [Odd::OutlyingIteration { boot, iteration, value, .. }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((*boot, *iteration, *value), (BootId(2), 1, boots[2][1]));
    }

    #[test]
    fn boots_that_merely_differ_have_no_modes() {
        let mut boots = normal(8, 10);
        for (boot, far) in boots.iter_mut().zip([0.0, 9.0, -14.0, 4.0, 21.0, -6.0, 15.0, -2.0]) {
            boot.iter_mut().for_each(|value| *value += far);
        }
        assert_eq!(odd("Elapsed", &boots), []);
    }

    #[test]
    fn modes_say_which_boots_they_hold() {
        let mut boots = normal(8, 4);
        for boot in boots.iter_mut().step_by(2) {
            boot.iter_mut().for_each(|value| *value += 50.0);
        }
        let found = odd("Rate", &boots);
        let [Odd::Modes { modes }] = &found[..] else { panic!("{found:?}") };
        let said: Vec<_> = modes.iter().map(|it| named(&it.boots)).collect();
        assert_eq!(said, ["b1 b3 b5 b7", "b0 b2 b4 b6"]);
        assert!((modes[1].centre - 150.0).abs() < 1.0);
    }

    #[test]
    fn warm_up_iterations_are_separated_from_the_steady_state() {
        let mut boots = normal(3, 30);
        for value in &mut boots[1][..3] {
            *value += 60.0;
        }
        let warm = |metric: &str| {
            let found = odd(metric, &boots);
            let is_warm = |it: &&Odd| matches!(it, Odd::WarmUp { .. });
            found.iter().find(is_warm).cloned().unwrap_or_else(|| panic!("{found:?}"))
        };
        for metric in ["Elapsed", "CPU"] {
            let Odd::WarmUp { boot, iterations, first, steady } = warm(metric) else { panic!() };
            assert_eq!((boot, iterations), (BootId(1), 3));
            assert!((first - 160.0).abs() < 2.0 && (steady - 100.0).abs() < 1.0);
        }
    }

    #[test]
    fn a_boot_that_never_becomes_steady_is_reported() {
        let mut boots = normal(1, 40);
        (0..).zip(&mut boots[0]).for_each(|(at, value)| *value += 5.0 * f64::from(at));
        assert!(odd("Elapsed", &boots).contains(&Odd::NeverSteady { boot: BootId(0) }));
    }

    #[test]
    fn hostile_values_are_survived() {
        let odd_values = [f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MAX, f64::MIN];
        for value in odd_values {
            let mut boots = normal(4, 22);
            boots[1] = vec![value; 22];
            boots[3][7] = value;
            odd("Elapsed", &boots);
            odd("Rate", &boots);
        }
    }
}
