//! How likely readings are if those of one side scatter about one unknown level, and those of the other side about
//! another. The function integrates numerically over levels, spreads and shares of stray boots.

/// The largest gap between readings that counts, in spreads. A larger gap counts as this.
const GAP: f64 = 12.0;
/// The smallest range of levels, in spreads.
const RANGE: f64 = 10.0;
/// The smallest spread, as a share of the range of the readings.
const LEAST: f64 = 1e-4;
/// The largest numbers of grid points over the levels and over the spreads.
const MOST_LEVELS: usize = 400;
const MOST_SPREADS: usize = 10;
/// By how much the spreads of the two sides typically differ, as a logarithm of their ratio.
const UNEQUAL: f64 = 0.2;
/// Shares of stray boots. Such a boot has a figure anywhere in the range of all boots, whatever its kernel is: it is
/// an outlier, or belongs to another mode.
const STRAY: [f64; 5] = [0.0, 0.04, 0.2, 0.4, 0.6];
/// The weight of each share before any reading.
const PRIOR: [f64; 5] = [1.0, 0.5, 0.2, 0.05, 0.05];
/// The probability that the step changes the share of stray boots.
const CHANGES: f64 = 0.4;
/// The standard deviation, in spreads, with which the readings are smoothed to get the density of stray boots.
const SMOOTH: f64 = 0.5;
/// The number of points at which the next reading is predicted.
const POINTS: usize = 48;

/// The density of boots that do not stray: a normal one.
fn normal(deviation: f64, spread: f64) -> f64 {
    let square = (deviation / spread).powi(2);
    // This is far below the density of stray boots.
    if square > 80.0 {
        return 0.0;
    }
    (-0.5 * square).exp() / (std::f64::consts::TAU.sqrt() * spread)
}

/// The density of stray boots. It is about equally high in each mode of the readings, however many readings the mode
/// has.
struct Stray {
    /// The readings with their weights, which sum to 1.
    weighted: Vec<(f64, f64)>,
    spread: f64,
}

impl Stray {
    fn new(all: &[f64], spread: f64) -> Self {
        let spread = SMOOTH * spread;
        let alike: Vec<(f64, f64)> = all.iter().map(|it| (*it, 1.0)).collect();
        let even = Self { weighted: alike, spread };
        let weights: Vec<f64> = all.iter().map(|it| even.density(*it).recip()).collect();
        let sum: f64 = weights.iter().sum();
        let weighted = all.iter().zip(weights).map(|(it, weight)| (*it, weight / sum)).collect();
        Self { weighted, spread }
    }

    fn density(&self, at: f64) -> f64 {
        self.weighted.iter().map(|(it, weight)| weight * normal(at - it, self.spread)).sum()
    }
}

/// The readings of each kernel, and how likely each level, spread and tail makes them.
pub struct Levels {
    spreads: Vec<f64>,
    grid: Vec<f64>,
    /// Per kernel, the log-likelihood at each level for each shape. The first shapes are all spreads without stray
    /// boots; then follow all spreads with the next share of them, and so on.
    logs: Vec<Vec<f64>>,
    all: Vec<f64>,
    stray: Stray,
    /// The spread of boots of one kernel.
    spread: f64,
    /// The probability of the shape of one side, given the shape of the other.
    linked: Vec<f64>,
}

/// The likelihood of the readings of one side at each shape, integrated over the level, as a multiple of `exp(top)`.
pub struct Side {
    logs: Vec<f64>,
    top: f64,
    by_shape: Vec<f64>,
}

impl Levels {
    /// `readings` are those of each kernel that was read.
    pub fn new(readings: &[Vec<f64>]) -> Self {
        let readings = scaled(readings);
        let spread = spread(&readings);
        let readings = squeezed(&readings, GAP * spread.middle);
        let count: usize = readings.iter().map(Vec::len).sum();
        let all = || readings.iter().flatten().copied();
        let least = all().fold(f64::INFINITY, f64::min);
        let most = all().fold(f64::NEG_INFINITY, f64::max);
        // All levels in this range are equally likely.
        let beyond = spread.middle.max(0.5 * (RANGE * spread.middle - (most - least)));
        let (low, high) = (least - beyond, most + beyond);
        // The error of the integral is small while `step` is smaller than the standard error of a level.
        let step = 1.6 * spread.middle / (count as f64).sqrt();
        let levels = (((high - low) / step).ceil() as usize).clamp(24, MOST_LEVELS);
        let step = (high - low) / levels as f64;
        let grid: Vec<f64> = (0..levels).map(|number| low + step * (number as f64 + 0.5)).collect();
        let spreads = spread.grid(count);
        let linked = linked(&spreads);
        let flat: Vec<f64> = all().collect();
        let stray = Stray::new(&flat, spread.middle);
        let logs = readings.iter().map(|of_kernel| {
            let stray = |reading: &f64| (*reading, stray.density(*reading));
            let of_kernel: Vec<(f64, f64)> = of_kernel.iter().map(stray).collect();
            log_likelihood(&of_kernel, &grid, &spreads)
        });
        let logs: Vec<Vec<f64>> = logs.collect();
        let mut all = vec![0.0; STRAY.len() * spreads.len() * grid.len()];
        for of_kernel in &logs {
            add(&mut all, of_kernel);
        }
        Self { spreads, grid, logs, all, stray, spread: spread.middle, linked }
    }

    /// For each set of kernels, the side outside of it and the side inside of it.
    pub fn sides(&self, sets: &[Vec<bool>]) -> Vec<[Side; 2]> {
        let mut high = vec![0.0; self.all.len()];
        let mut before = vec![false; self.logs.len()];
        let mut sides = Vec::with_capacity(sets.len());
        for set in sets {
            for ((logs, inside), before) in self.logs.iter().zip(set).zip(&mut before) {
                match (*before, *inside) {
                    (false, true) => add(&mut high, logs),
                    (true, false) => subtract(&mut high, logs),
                    _ => {}
                }
                *before = *inside;
            }
            let mut low = self.all.clone();
            subtract(&mut low, &high);
            sides.push([self.side(low), self.side(high.clone())]);
        }
        sides
    }

    /// The side of the kernels that are in `more` and not in `less`.
    pub fn between(&self, more: &Side, less: &Side) -> Side {
        let mut logs = more.logs.clone();
        subtract(&mut logs, &less.logs);
        self.side(logs)
    }

    fn side(&self, logs: Vec<f64>) -> Side {
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let levels = self.grid.len();
        let mean = |logs: &[f64]| {
            let likely = logs.iter().map(|log| log - top).filter(|log| *log > -40.0);
            likely.map(f64::exp).sum::<f64>() / levels as f64
        };
        let by_shape = logs.chunks_exact(levels).map(mean).collect();
        Side { logs, top, by_shape }
    }

    /// The log-likelihood of readings whose sides have different levels. Readings in `third` have the spread of
    /// `high`.
    pub fn together(&self, low: &Side, high: &Side, third: Option<&Side>) -> f64 {
        let mut sum = 0.0;
        for (shape, of_low) in low.by_shape.iter().enumerate() {
            let third = |at: usize| third.map_or(1.0, |third| third.by_shape[at]);
            let link = self.link(shape).iter().enumerate();
            let of_high: f64 = link.map(|(at, link)| link * high.by_shape[at] * third(at)).sum();
            sum += self.prior(shape) * of_low * of_high;
        }
        sum.ln() + low.top + high.top + third.map_or(0.0, |third| third.top)
    }

    /// The log-likelihood of all readings with one level.
    pub fn one_level(&self) -> f64 {
        let side = self.side(self.all.clone());
        let by_shape = side.by_shape.iter().enumerate();
        by_shape.map(|(shape, likely)| self.prior(shape) * likely).sum::<f64>().ln() + side.top
    }

    /// The probability of a shape before the readings.
    fn prior(&self, shape: usize) -> f64 {
        let spreads = self.spreads.len();
        PRIOR[shape / spreads] / PRIOR.iter().sum::<f64>() / spreads as f64
    }

    fn link(&self, shape: usize) -> &[f64] {
        let shapes = STRAY.len() * self.spreads.len();
        &self.linked[shape * shapes..][..shapes]
    }

    /// The points at which readings are predicted.
    pub fn predictor(&self) -> Predictor<'_> {
        let reach = 3.0 * self.spread;
        let (low, high) = (self.grid[0] - reach, self.grid[self.grid.len() - 1] + reach);
        let points: Vec<f64> = (0..POINTS)
            .map(|point| low + (high - low) * point as f64 / (POINTS - 1) as f64)
            .collect();
        let stray = points.iter().map(|point| self.stray.density(*point)).collect();
        let mut densities = Vec::with_capacity(self.spreads.len() * self.grid.len() * POINTS);
        for spread in &self.spreads {
            for level in &self.grid {
                densities.extend(points.iter().map(|point| normal(point - level, *spread)));
            }
        }
        Predictor { levels: self, densities, stray }
    }
}

/// Predicts the next reading of a kernel.
pub struct Predictor<'a> {
    levels: &'a Levels,
    /// The density of boots that do not stray, for each level and spread.
    densities: Vec<f64>,
    /// The density of stray boots.
    stray: Vec<f64>,
}

/// The probabilities that the next reading is near each of these points.
pub type Predicted = [f64; POINTS];

impl Predictor<'_> {
    /// The distributions of the next reading, if the kernel is on the low side and if it is on the high side.
    pub fn predict(&self, low: &Side, high: &Side) -> [Predicted; 2] {
        [self.of_side(low, high), self.of_side(high, low)]
    }

    fn of_side(&self, side: &Side, other: &Side) -> Predicted {
        let size = self.levels.grid.len();
        let mut weights = vec![0.0; self.levels.spreads.len() * size];
        let mut astray = 0.0;
        for shape in 0..side.by_shape.len() {
            let spreads = self.levels.spreads.len();
            let share = STRAY[shape / spreads];
            let link = self.levels.link(shape).iter().zip(&other.by_shape);
            let others: f64 = link.map(|(link, other)| link * other).sum();
            let weight = self.levels.prior(shape) * others;
            let of_spread = weights[shape % spreads * size..].iter_mut();
            for (sum, log) in of_spread.zip(&side.logs[shape * size..][..size]) {
                if log - side.top > -20.0 {
                    let weight = weight * (log - side.top).exp();
                    *sum += (1.0 - share) * weight;
                    astray += share * weight;
                }
            }
        }
        let mut predicted = [0.0; POINTS];
        predicted.iter_mut().zip(&self.stray).for_each(|(sum, stray)| *sum = astray * stray);
        let points = weights.iter().zip(self.densities.chunks_exact(POINTS));
        for (weight, densities) in points.filter(|(weight, _)| **weight > 0.0) {
            for (sum, density) in predicted.iter_mut().zip(densities) {
                *sum += weight * density;
            }
        }
        let sum: f64 = predicted.iter().sum();
        predicted.map(|density| density / sum)
    }
}

/// What is known about the spread of the boots of one kernel.
struct Spread {
    middle: f64,
    low: f64,
    high: f64,
}

impl Spread {
    /// The spreads over which to integrate. They are about as far apart as `count` readings can tell them apart.
    fn grid(&self, count: usize) -> Vec<f64> {
        let span = (self.high / self.low).ln();
        let apart = 1.2 / (2.0 * count as f64).sqrt();
        let points = ((span / apart).ceil() as usize + 1).clamp(2, MOST_SPREADS);
        let at = |point| self.low * (span * point as f64 / (points - 1) as f64).exp();
        (0..points).map(at).collect()
    }
}

/// The readings in units of their range, so that no density of them overflows in any unit.
fn scaled(readings: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let all = || readings.iter().flatten().copied();
    let least = all().fold(f64::INFINITY, f64::min);
    let range = all().fold(f64::NEG_INFINITY, f64::max) - least;
    let unit = if range > 0.0 { range } else { 1.0 };
    let scale = |reading: &f64| (reading - least) / unit;
    readings.iter().map(|of_kernel| of_kernel.iter().map(scale).collect()).collect()
}

/// The spread, from differences between readings of the same kernel; if there are none, between successive kernels.
fn spread(readings: &[Vec<f64>]) -> Spread {
    let mut apart: Vec<f64> =
        readings.iter().flat_map(|of_kernel| differences(of_kernel)).collect();
    let mut freedom = readings.iter().map(|of_kernel| of_kernel.len().saturating_sub(1)).sum();
    let all: Vec<f64> = readings.iter().flatten().copied().collect();
    if apart.is_empty() {
        apart = differences(&all);
        freedom = 1;
    }
    apart.sort_by(f64::total_cmp);
    // The median difference of two normal figures is 0.9539 standard deviations.
    let median = apart.get(apart.len() / 2).map_or(0.0, |apart| apart / 0.9539);
    let mean_square = apart.iter().map(|apart| apart * apart / 2.0).sum::<f64>();
    let root = (mean_square / apart.len().max(1) as f64).sqrt();
    let middle = [median, root].into_iter().find(|it| *it > 0.0).unwrap_or(0.0).max(LEAST);
    let error = 1.2 / (freedom as f64).sqrt();
    Spread {
        middle,
        low: middle * (-2.5 * error.min(0.8)).exp(),
        high: root.min(4.0 * middle).max(middle * (2.5 * error.min(0.8)).exp()),
    }
}

fn differences(readings: &[f64]) -> Vec<f64> {
    let apart = |lag: usize| readings.iter().zip(readings.iter().skip(lag));
    (1..=4).flat_map(apart).map(|(a, b)| (a - b).abs()).collect()
}

/// The readings in ascending order, with no gap above `most`.
fn squeezed(readings: &[Vec<f64>], most: f64) -> Vec<Vec<f64>> {
    let mut sorted: Vec<f64> = readings.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let mut place = 0.0;
    let mut places = vec![0.0];
    for pair in sorted.windows(2) {
        place += (pair[1] - pair[0]).min(most);
        places.push(place);
    }
    let place = |reading: &f64| places[sorted.partition_point(|other| other < reading)];
    readings.iter().map(|of_kernel| of_kernel.iter().map(place).collect()).collect()
}

/// The log-likelihood of readings, each given with the density of stray boots at it: for each level, each spread, and
/// each share of stray boots.
fn log_likelihood(readings: &[(f64, f64)], grid: &[f64], spreads: &[f64]) -> Vec<f64> {
    let mut logs = vec![0.0; STRAY.len() * spreads.len() * grid.len()];
    let points = spreads.iter().flat_map(|spread| grid.iter().map(move |level| (spread, level)));
    for (point, (spread, level)) in points.enumerate() {
        // One logarithm of a product replaces 16 logarithms. The product does not vanish, since the density of stray
        // boots does not.
        for some in readings.chunks(16) {
            let mut products = [1.0; STRAY.len()];
            let mut squares = 0.0;
            for (reading, stray) in some {
                let normal = normal(reading - level, *spread);
                squares += ((reading - level) / spread).powi(2);
                for (product, share) in products.iter_mut().zip(STRAY).skip(1) {
                    *product *= (1.0 - share) * normal + share * stray;
                }
            }
            logs[point] += some.len() as f64 * normal(0.0, *spread).ln() - 0.5 * squares;
            for (number, product) in products.iter().enumerate().skip(1) {
                logs[number * spreads.len() * grid.len() + point] += product.ln();
            }
        }
    }
    logs
}

/// The matrix of [`Levels::linked`]. Each row is for a shape of one side, and sums to 1 over the shapes of the other
/// side.
fn linked(spreads: &[f64]) -> Vec<f64> {
    let of_spreads = |one: f64| -> Vec<f64> {
        let weight = |other: &f64| (-0.5 * ((one / other).ln() / UNEQUAL).powi(2)).exp();
        let weights: Vec<f64> = spreads.iter().map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    };
    let of_shares = |one: usize| {
        let others = PRIOR.iter().sum::<f64>() - PRIOR[one];
        (0..PRIOR.len()).map(move |other| match other == one {
            true => 1.0 - CHANGES,
            false => CHANGES * PRIOR[other] / others,
        })
    };
    let shapes = (0..STRAY.len()).flat_map(|share| spreads.iter().map(move |it| (share, *it)));
    let row = |(share, spread)| {
        let of_spreads = of_spreads(spread);
        of_shares(share).flat_map(move |it| of_spreads.clone().into_iter().map(move |of| it * of))
    };
    shapes.flat_map(row).collect()
}

fn add(sum: &mut [f64], other: &[f64]) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
}

fn subtract(sum: &mut [f64], other: &[f64]) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum -= other);
}
