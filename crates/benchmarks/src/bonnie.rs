//! The line of comma-separated figures that bonnie++ prints at its end.

use crate::number;

/// A test of bonnie++.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The metric of the rate, as tables call it.
    pub name: &'static str,
    /// The unit of the rate.
    pub unit: &'static str,
    /// The label of the latency and of the processor time.
    pub label: &'static str,
    /// The index of the rate among the figures of format 1.98 (`bon_csv2html.1`). Processor time in percent follows
    /// it. Formats 1.96 and 1.97 lack the two figures about seeks that 1.98 has before all rates.
    pub rate: usize,
    /// The index of the latency in format 1.98.
    pub latency: usize,
    /// The index of the rate in versions 1.03 and before (`bon_csv2html`).
    pub old_rate: usize,
}

const fn test(
    (name, unit): (&'static str, &'static str),
    label: &'static str,
    (rate, latency): (usize, usize),
    old_rate: usize,
) -> Test {
    Test { name, unit, label, rate, latency, old_rate }
}

/// The tests, in the order of the figures.
pub const TESTS: [Test; 12] = [
    test(("SeqOut char", "K/s"), "SeqOut:char", (9, 38), 2),
    test(("SeqOut block", "K/s"), "SeqOut:block", (11, 39), 4),
    test(("SeqOut rewrite", "K/s"), "SeqOut:rewrite", (13, 40), 6),
    test(("SeqIn char", "K/s"), "SeqIn:char", (15, 41), 8),
    test(("SeqIn block", "K/s"), "SeqIn:block", (17, 42), 10),
    test(("Random seeks", "ops/s"), "Random:seeks", (19, 43), 12),
    test(("SeqCreate ops", "ops/s"), "SeqCreate:create", (26, 44), 15),
    test(("SeqCreate read", "ops/s"), "SeqCreate:read", (28, 45), 17),
    test(("SeqCreate del", "ops/s"), "SeqCreate:del", (30, 46), 19),
    test(("RandCreate ops", "ops/s"), "RandCreate:create", (32, 47), 21),
    test(("RandCreate read", "ops/s"), "RandCreate:read", (34, 48), 23),
    test(("RandCreate del", "ops/s"), "RandCreate:del", (36, 49), 25),
];

/// bonnie++ prints this in place of a figure that would be meaningless. In narrow columns it is shorter.
const TOO_QUICK: &str = "+++++";

/// A rate or a processor time; `Some(None)` if the test was too quick to measure it. A rate of 0 was rounded down, so
/// it counts as too quick too. `None` if the text is neither.
pub fn measured(figure: &str) -> Option<Option<f64>> {
    if figure.starts_with("+++") && TOO_QUICK.starts_with(figure) {
        return Some(None);
    }
    Some(Some(number(figure)?).filter(|&number| number > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_ever_0() {
        assert_eq!(measured("0"), Some(None));
        assert_eq!(measured("+++"), Some(None));
        assert_eq!([measured(""), measured("+"), measured("++++++"), measured("inf")], [None; 4]);
        assert_eq!(measured("1.5"), Some(Some(1.5)));
    }
}
