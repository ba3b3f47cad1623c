//! EP, "embarrassingly parallel": pairs of Gaussian deviates from random numbers by Marsaglia's
//! polar method, counted by how far from the origin they lie. Little memory, no communication.

use std::sync::Mutex;

use super::random::Random;
use super::stages::{Stage, Stages};
use super::team::Team;
use super::verify::check;
use super::{Class, Outcome};

const SEED: u64 = 271_828_183;
/// The number of pairs of a batch. A batch is drawn before it is used.
const BATCH: usize = 1 << 16;
const EPSILON: f64 = 1e-8;
/// The number of square annuli of width 1 around the origin.
const ANNULI: usize = 10;

/// The logarithm to the base 2 of the number of pairs.
fn exponent(class: Class) -> u32 {
    class.pick([24, 25, 28, 30, 32, 36])
}

/// The sums of all deviates, first and second of each pair.
fn official(class: Class) -> [f64; 2] {
    class.pick([
        [-3.24783465203474e3, -6.958407078382297e3],
        [-2.863319731645753e3, -6.320053679109499e3],
        [-4.295875165629892e3, -1.580732573678431e4],
        [4.033815542441498e4, -2.660669192809235e4],
        [4.764367927995374e4, -8.084072988043731e4],
        [1.982481200946593e5, -1.020596636361769e5],
    ])
}

/// The size of the batches of `threads` threads, in bytes.
pub fn bytes(threads: usize) -> u64 {
    (threads * 2 * BATCH * size_of::<f64>()) as u64
}

/// The result of one thread.
#[derive(Clone, Default)]
struct Tally {
    sums: [f64; 2],
    counts: [u64; ANNULI],
}

pub fn run(class: Class, team: &Team, stages: &Stages<'_>) -> Outcome {
    let batches = (1usize << exponent(class)) / BATCH;
    let tallies = Mutex::new(vec![Tally::default(); team.threads()]);
    team.run(|member| {
        stages.begin(member, Stage::Fill);
        let mut numbers = vec![-1e99; 2 * BATCH];
        stages.begin(member, Stage::Steady);
        let mut tally = Tally::default();
        for batch in member.share(batches) {
            let mut random = Random::new(SEED).skip((batch * 2 * BATCH) as u64);
            numbers.fill_with(|| random.draw());
            tally.add(&numbers);
        }
        tallies.lock().expect("nobody panics")[member.number] = tally;
        stages.begin(member, Stage::Verify);
    });
    let tallies = tallies.into_inner().expect("nobody panics");
    let official = official(class);
    let sum = |which: usize| tallies.iter().map(|tally| tally.sums[which]).sum::<f64>();
    let pairs: u64 = tallies.iter().flat_map(|tally| tally.counts).sum();
    Outcome {
        millions: 2.0 * f64::from(exponent(class)).exp2() / 1e6,
        verdict: check("the sum of first deviates", sum(0), official[0], EPSILON)
            .and_then(|()| check("the sum of second deviates", sum(1), official[1], EPSILON)),
        remark: format!("{pairs} Gaussian pairs"),
    }
}

impl Tally {
    /// Adds pairs of numbers. Those outside the unit circle have no deviates.
    fn add(&mut self, numbers: &[f64]) {
        for pair in numbers.chunks_exact(2) {
            let [x, y] = [2.0 * pair[0] - 1.0, 2.0 * pair[1] - 1.0];
            let square = x * x + y * y;
            if square <= 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                let deviates = [x * factor, y * factor];
                let annulus = deviates[0].abs().max(deviates[1].abs()) as usize;
                self.counts[annulus.min(ANNULI - 1)] += 1;
                self.sums[0] += deviates[0];
                self.sums[1] += deviates[1];
            }
        }
    }
}
