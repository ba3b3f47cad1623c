//! The rows of a metric in its table, and their values.

use model::{Better, Mean, Metric, Rows};
use stats::{Counted, RepeatedValue, Summary, order};

use crate::Statistic;

/// `BAmean.95` and `BHmean.95` are means of this share of the values, the best ones, in percent.
const BEST: f64 = 95.0;

/// The statistics that are printed for a metric, in the order of the kernel's lists (mmtests). Best values
/// need a direction.
pub fn statistics(metric: &Metric) -> Vec<Statistic> {
    use Statistic::{Best, BestMean, CoeffVar, HCoeffVar, HStddev, Max, Min, Quantile, Stddev};
    let [mean, stddev, coeffvar] = match metric.mean {
        Mean::Amean => [Statistic::Amean, Stddev, CoeffVar],
        Mean::Hmean => [Statistic::Hmean, HStddev, HCoeffVar],
        Mean::Gmean => [Statistic::Gmean, Stddev, CoeffVar],
    };
    let (mut rows, best) = match metric.rows {
        Rows::Usual => (vec![Min, mean, stddev, coeffvar, Max], vec![Best(metric.mean)]),
        Rows::Brief => (vec![Min, mean], Vec::new()),
        Rows::Mean => (vec![mean], Vec::new()),
        Rows::Distribution => {
            let quantiles = [25, 50, 75, 90, 93, 95, 99].map(Quantile);
            let rows = [Min].into_iter().chain(quantiles).chain([Max, Statistic::Mean]);
            (rows.collect(), [99, 95, 90, 50, 10, 5, 1].map(BestMean).to_vec())
        }
    };
    if metric.better.is_some() {
        rows.extend(best);
    }
    rows
}

/// Values of one column, and their statistics.
pub struct Figures {
    better: Better,
    /// The values, the best first.
    values: Vec<RepeatedValue>,
    summary: Summary,
}

impl Figures {
    /// The statistics of `values`; `None` without values.
    pub fn of<V: Counted>(
        values: impl IntoIterator<Item = V>,
        better: Option<Better>,
    ) -> Option<Self> {
        let better = better.unwrap_or(Better::Lower);
        let mut values: Vec<RepeatedValue> = values.into_iter().map(Counted::run).collect();
        // The rounding of a sum depends on the order. Like mmtests, sums start with the best value, so the last
        // digits agree.
        values.sort_by(|a, b| match better {
            Better::Lower => a.value.total_cmp(&b.value),
            Better::Higher => b.value.total_cmp(&a.value),
        });
        let summary = Summary::of(&values)?;
        Some(Self { better, values, summary })
    }

    /// The arithmetic mean of the values.
    pub fn amean(&self) -> f64 {
        self.summary.amean
    }

    pub fn value(&self, statistic: Statistic) -> Option<f64> {
        let Self { better, values, summary } = self;
        match statistic {
            Statistic::Min => Some(summary.min),
            Statistic::Amean | Statistic::Mean => Some(summary.amean),
            Statistic::Hmean => summary.hmean,
            Statistic::Gmean => summary.gmean,
            Statistic::Stddev => summary.stddev,
            Statistic::CoeffVar => summary.coeffvar,
            Statistic::HStddev => summary.hstddev,
            Statistic::HCoeffVar => summary.hcoeffvar,
            Statistic::Max => Some(summary.max),
            Statistic::Quantile(percent) => order::quartile(values, percent.into()),
            Statistic::Best(mean) => order::best_mean(values, *better, BEST, mean),
            // This percentage of too few values is less than one value. Older tables have the mean of all values
            // here.
            Statistic::BestMean(percent) if summary.n * usize::from(percent) < 100 => None,
            Statistic::BestMean(percent) => match better {
                Better::Lower => order::smallest_mean(values, percent.into()),
                Better::Higher => order::best_mean(values, *better, percent.into(), Mean::Amean),
            },
            Statistic::Equal | Statistic::Luck => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(mean: Mean, better: Option<Better>, rows: Rows) -> Metric {
        Metric {
            name: "Latency".into(),
            unit: "ms".into(),
            better,
            mean,
            rows,
            ..Metric::default()
        }
    }

    fn names(metric: &Metric) -> String {
        let names: Vec<String> = statistics(metric).iter().map(Statistic::to_string).collect();
        names.join(" ")
    }

    #[test]
    fn rates_have_the_rows_of_harmonic_means() {
        let rate = metric(Mean::Hmean, Some(Better::Higher), Rows::Usual);
        assert_eq!(names(&rate), "Min Hmean HStddev HCoeffVar Max BHmean.95");
        let time = metric(Mean::Amean, Some(Better::Lower), Rows::Usual);
        assert_eq!(names(&time), "Min Amean Stddev CoeffVar Max BAmean.95");
        assert_eq!(names(&Metric { rows: Rows::Brief, ..time }), "Min Amean");
        assert_eq!(names(&Metric { rows: Rows::Mean, ..rate }), "Hmean");
    }

    /// The labels of the table "stutter" of "Move LRU page reclaim from zones to nodes v8" (Mel
    /// Gorman, 2016).
    #[test]
    fn distributions_have_the_rows_of_the_lists() {
        let latency = metric(Mean::Amean, Some(Better::Lower), Rows::Distribution);
        assert_eq!(
            names(&latency),
            "Min 1st-qrtle 2nd-qrtle 3rd-qrtle Max-90% Max-93% Max-95% Max-99% Max Mean \
             Best99%Mean Best95%Mean Best90%Mean Best50%Mean Best10%Mean Best5%Mean Best1%Mean"
        );
    }

    #[test]
    fn without_a_direction_nothing_is_best() {
        assert_eq!(names(&metric(Mean::Amean, None, Rows::Usual)), "Min Amean Stddev CoeffVar Max");
        let rows = statistics(&metric(Mean::Amean, None, Rows::Distribution));
        assert_eq!(rows.last(), Some(&Statistic::Mean));
    }

    #[test]
    fn the_best_are_the_lowest_times_and_the_highest_rates() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let best = |better, statistic| Figures::of(values.clone(), better)?.value(statistic);
        let lower = Some(Better::Lower);
        assert_eq!(best(lower, Statistic::Best(Mean::Amean)), Some(10.0));
        assert_eq!(best(lower, Statistic::BestMean(5)), Some(1.5));
        assert_eq!(best(Some(Better::Higher), Statistic::BestMean(5)), Some(20.0));
        assert_eq!(best(lower, Statistic::BestMean(1)), None);
        let harmonic = best(Some(Better::Higher), Statistic::Best(Mean::Hmean)).unwrap();
        let expected = 19.0 / (2..=20).map(|rate| 1.0 / f64::from(rate)).sum::<f64>();
        assert!((harmonic - expected).abs() < 1e-12);
    }
}
