//! The random numbers of the NAS Parallel Benchmarks: `x' = 5^13 x mod 2^46`, scaled to (0, 1)
//! (RNR-94-007, section 2.3).

const MULTIPLIER: u64 = 1_220_703_125;
const MASK: u64 = (1 << 46) - 1;
const SCALE: f64 = 1.0 / (1u64 << 46) as f64;

/// A position in the sequence.
#[derive(Clone, Copy)]
pub struct Random(u64);

impl Random {
    /// The sequence that follows `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// This sequence without its next `count` numbers. The time is logarithmic in `count`.
    pub fn skip(self, count: u64) -> Self {
        let (mut state, mut factor, mut left) = (self.0, MULTIPLIER, count);
        while left > 0 {
            if left % 2 == 1 {
                state = multiply(state, factor);
            }
            factor = multiply(factor, factor);
            left /= 2;
        }
        Self(state)
    }

    /// Draws the next number, from 0 to 1.
    pub fn draw(&mut self) -> f64 {
        self.0 = multiply(self.0, MULTIPLIER);
        self.0 as f64 * SCALE
    }
}

/// The last 46 bits of a product. They do not depend on bits beyond the 64th.
fn multiply(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b) & MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_numbers_are_those_not_drawn() {
        let mut drawn = Random::new(271_828_183);
        for count in 0..100 {
            let mut skipped = Random::new(271_828_183).skip(count);
            assert_eq!(skipped.draw(), drawn.draw(), "{count}");
        }
    }

    /// Compares with arithmetic that does not wrap.
    #[test]
    fn products_are_exact() {
        let exact = |a: u64, b: u64| (u128::from(a) * u128::from(b) % (1 << 46)) as u64;
        for (a, b) in [(MASK, MASK), (MULTIPLIER, MASK - 2), (314_159_265, MULTIPLIER)] {
            assert_eq!(multiply(a, b), exact(a, b));
        }
    }
}
