//! Simulated boots with a known truth.

use compare::BootFigures;
use stats::Summary;

/// The mean of all figures.
const MEAN: f64 = 100.0;
/// The standard deviation of a run within its boot.
const RUN: f64 = 1.0;
/// The random difference between blocks, and the drift from one to the next.
const BLOCK: f64 = 2.0;
const DRIFT: f64 = 0.5;
/// The correlation of a run with the one before it, where runs are autocorrelated.
const CORRELATION: f64 = 0.8;

/// The distribution of figures. All have the mean 0 and the standard deviation 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Normal,
    /// Lognormal: `exp z` with a normal `z`, less its mean, by its standard deviation.
    Skewed,
    /// Two equally likely modes.
    Bimodal,
    /// Two modes, the higher one with a probability of one in five.
    RareMode,
    /// Normal, each run correlated with the previous one in the same boot.
    Autocorrelated,
    /// Lognormal, of an autocorrelated normal figure.
    AutocorrelatedSkewed,
}

impl Shape {
    pub const ALL: [Self; 5] =
        [Self::Normal, Self::Skewed, Self::Bimodal, Self::RareMode, Self::Autocorrelated];
    /// The distributions of consecutive runs within a boot.
    pub const WITHIN: [Self; 6] = [
        Self::Normal,
        Self::Skewed,
        Self::Bimodal,
        Self::RareMode,
        Self::Autocorrelated,
        Self::AutocorrelatedSkewed,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Skewed => "skewed",
            Self::Bimodal => "bimodal 50:50",
            Self::RareMode => "bimodal 80:20",
            Self::Autocorrelated => "autocorrelated",
            Self::AutocorrelatedSkewed => "skewed autocorr.",
        }
    }
}

/// A simulated experiment: the sides may have different numbers of boots.
#[derive(Clone, Copy)]
pub struct World {
    pub shape: Shape,
    /// The standard deviation of a boot, in units of that of a run.
    pub boot: f64,
    /// Boots of either side.
    pub boots: [u32; 2],
    /// Runs of each boot.
    pub runs: usize,
    /// Whether boots of both sides are in blocks, which have a drift and random differences.
    pub blocks: bool,
    /// The standard deviation of the second side relative to the first.
    pub wider: f64,
    /// The true figure of the second side divided by that of the first.
    pub ratio: f64,
}

/// The runs of each boot of one side, with its block.
pub type Side = Vec<(u32, Vec<f64>)>;

impl World {
    /// A different seed for each part of each simulation (FNV-1a over all its parameters).
    pub fn seed(&self, part: u64) -> u64 {
        let Self { shape, boot, boots, runs, blocks, wider, ratio } = *self;
        let words = [
            shape as u64,
            boot.to_bits(),
            u64::from(boots[0]),
            u64::from(boots[1]),
            runs as u64,
            u64::from(blocks),
            wider.to_bits(),
            ratio.to_bits(),
            part,
        ];
        let bytes = words.into_iter().flat_map(u64::to_le_bytes);
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    /// Both sides of one experiment.
    pub fn experiment(&self, chance: &mut Chance) -> [Side; 2] {
        let most = self.boots[0].max(self.boots[1]);
        let block = |number: u32| DRIFT * f64::from(number) + BLOCK * chance.normal();
        let blocks: Vec<f64> = match self.blocks {
            true => (0..most).map(block).collect(),
            false => vec![0.0; most as usize],
        };
        let mut side = |number: usize, wider: f64, ratio: f64| -> Side {
            let boot = |boot: u32| {
                let about = MEAN + blocks[boot as usize];
                let own = self.boot * RUN * chance.draw(self.shape);
                let runs = chance.runs(self.shape, self.runs);
                let runs = runs.map(|run| ratio * (about + wider * (own + RUN * run)));
                // Without blocks, no boot of one side is in a block of the other.
                let place = if self.blocks { boot } else { 1000 * number as u32 + boot };
                (place, runs.collect())
            };
            (0..self.boots[number]).map(boot).collect()
        };
        [side(0, 1.0, 1.0), side(1, self.wider, self.ratio)]
    }
}

/// One figure per boot, as a comparison computes it for a metric with an arithmetic mean.
pub fn figures(side: &Side) -> BootFigures {
    let mean = |runs: &Vec<f64>| Some(Summary::of(runs)?.amean);
    BootFigures::new(side.iter().map(|(block, runs)| (*block, mean(runs))))
}

/// A source of random numbers, which are the same for the same seed.
pub struct Chance(fastrand::Rng);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// True with this probability.
    pub fn happens(&mut self, share: f64) -> bool {
        self.0.f64() < share
    }

    /// A number from the uniform distribution from 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        self.0.f64()
    }

    /// A normal number of mean 0 and standard deviation 1 (Box and Muller, "A note on the generation of random normal
    /// deviates", 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.0.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.0.f64()).cos()
    }

    /// A figure of this shape, of mean 0 and standard deviation 1.
    pub fn draw(&mut self, shape: Shape) -> f64 {
        match shape {
            Shape::Normal | Shape::Autocorrelated => self.normal(),
            Shape::Skewed | Shape::AutocorrelatedSkewed => skewed(self.normal()),
            Shape::Bimodal => self.modes(0.5),
            Shape::RareMode => self.modes(0.2),
        }
    }

    /// Two modes, each a tenth as wide as the whole, where the higher one has this probability.
    fn modes(&mut self, higher: f64) -> f64 {
        const WIDTH: f64 = 0.1;
        let apart = ((1.0 - WIDTH * WIDTH) / (higher * (1.0 - higher))).sqrt();
        let mode = if self.0.f64() < higher { 1.0 } else { 0.0 };
        (mode - higher) * apart + WIDTH * self.normal()
    }

    /// The figures of `count` consecutive runs of one boot.
    pub fn runs(&mut self, shape: Shape, count: usize) -> impl Iterator<Item = f64> {
        let mut last = None;
        (0..count).map(move |_| match shape {
            Shape::Autocorrelated => self.following(&mut last),
            Shape::AutocorrelatedSkewed => skewed(self.following(&mut last)),
            _ => self.draw(shape),
        })
    }

    /// A normal figure correlated with the last one.
    fn following(&mut self, last: &mut Option<f64>) -> f64 {
        let fresh = self.normal();
        let run = match *last {
            Some(last) => CORRELATION * last + (1.0 - CORRELATION * CORRELATION).sqrt() * fresh,
            None => fresh,
        };
        *last = Some(run);
        run
    }
}

/// A lognormal figure of mean 0 and standard deviation 1, from a normal one.
fn skewed(normal: f64) -> f64 {
    let e = std::f64::consts::E;
    (normal.exp() - e.sqrt()) / (e * (e - 1.0)).sqrt()
}
