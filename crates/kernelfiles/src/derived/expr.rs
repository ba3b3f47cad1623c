//! The formula of a derived row, as data.

use std::fmt;

/// Zone suffixes in names of counters (`include/linux/vm_event_item.h`).
pub const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// What counters grew by over a span of time.
pub struct Differences<'a> {
    /// The growth of a counter of `/proc/vmstat`; none where the kernel has no such counter.
    pub of: &'a dyn Fn(&str) -> Option<f64>,
    /// Length of the span; none if unknown.
    pub seconds: Option<f64>,
}

/// A formula. It has no value if the kernel lacks a counter it needs.
#[derive(Debug)]
pub enum Expr {
    /// The growth of a counter.
    Counter(&'static str),
    /// The growth of a counter and of its per-zone forms, as many as the kernel has, at least one.
    Zones(&'static str),
    /// The first of these that the kernel has.
    First(&'static [Expr]),
    /// As it is, or 0 if the kernel lacks it.
    OrZero(&'static Expr),
    /// A weighted sum; all terms must be known.
    Sum(&'static [(f64, Expr)]),
    /// A sum in millions.
    Millions(&'static Expr),
    /// The first as a percentage of the second; none if the second is 0.
    Percent(&'static Expr, &'static Expr),
    /// Per second; none if the span has no length.
    PerSecond(&'static Expr),
}

impl Expr {
    /// Its value over a span.
    pub fn value(&self, differences: &Differences<'_>) -> Option<f64> {
        match self {
            Self::Counter(name) => (differences.of)(name),
            Self::Zones(name) => {
                let all = zone_forms(name).filter_map(|name| (differences.of)(&name));
                all.reduce(|sum, more| sum + more)
            }
            Self::First(choices) => choices.iter().find_map(|choice| choice.value(differences)),
            Self::OrZero(inner) => Some(inner.value(differences).unwrap_or(0.0)),
            Self::Sum(terms) => {
                let terms = terms.iter();
                terms.map(|(weight, term)| Some(weight * term.value(differences)?)).sum()
            }
            Self::Millions(inner) => Some(inner.value(differences)? / 1e6),
            Self::Percent(part, whole) => {
                let whole = whole.value(differences).filter(|whole| *whole > 0.0)?;
                Some(100.0 * part.value(differences)? / whole)
            }
            Self::PerSecond(inner) => {
                let seconds = differences.seconds.filter(|seconds| *seconds > 0.0)?;
                Some(inner.value(differences)? / seconds)
            }
        }
    }

    /// Every counter that it may use, in the order of the formula.
    pub fn counters(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect(&self, names: &mut Vec<String>) {
        match self {
            Self::Counter(name) => add(names, (*name).to_owned()),
            Self::Zones(name) => zone_forms(name).for_each(|name| add(names, name)),
            Self::First(choices) => choices.iter().for_each(|choice| choice.collect(names)),
            Self::Sum(terms) => terms.iter().for_each(|(_, term)| term.collect(names)),
            Self::OrZero(inner) | Self::Millions(inner) | Self::PerSecond(inner) => {
                inner.collect(names);
            }
            Self::Percent(part, whole) => {
                part.collect(names);
                whole.collect(names);
            }
        }
    }
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

/// A counter's name without a zone, and with each zone.
fn zone_forms(name: &str) -> impl Iterator<Item = String> {
    let zones = ZONES.into_iter().map(move |zone| format!("{name}_{zone}"));
    std::iter::once(name.to_owned()).chain(zones)
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(name) => f.write_str(name),
            Self::Zones(name) => write!(f, "{name}[_ZONE]"),
            Self::First(choices) => joined(f, choices, " or else "),
            Self::OrZero(inner) => write!(f, "[{inner}]"),
            Self::Sum(terms) => {
                for (place, (weight, term)) in terms.iter().enumerate() {
                    match (place, *weight < 0.0) {
                        (0, false) => {}
                        (0, true) => f.write_str("-")?,
                        (_, false) => f.write_str(" + ")?,
                        (_, true) => f.write_str(" - ")?,
                    }
                    match weight.abs() {
                        1.0 => write!(f, "{}", Term(term))?,
                        weight => write!(f, "{weight} x {}", Term(term))?,
                    }
                }
                Ok(())
            }
            Self::Millions(inner) => write!(f, "{} / 10^6", Term(inner)),
            Self::Percent(part, whole) => write!(f, "100 x {} / {}", Term(part), Term(whole)),
            Self::PerSecond(inner) => write!(f, "{} / seconds", Term(inner)),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, choices: &[Expr], between: &str) -> fmt::Result {
    for (place, choice) in choices.iter().enumerate() {
        let between = if place > 0 { between } else { "" };
        write!(f, "{between}{choice}")?;
    }
    Ok(())
}

/// In parentheses, unless it is a name.
struct Term<'a>(&'a Expr);

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            single @ (Expr::Counter(_) | Expr::Zones(_) | Expr::OrZero(_)) => single.fmt(f),
            more => write!(f, "({more})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: Expr = Expr::Sum(&[
        (1.0, Expr::Counter("a")),
        (-1.0, Expr::Counter("b")),
        (-7.0, Expr::OrZero(&Expr::Counter("c"))),
    ]);

    fn value(expr: &Expr, counters: &[(&str, f64)]) -> Option<f64> {
        let difference = |name: &str| {
            let found = counters.iter().find(|(counter, _)| *counter == name);
            found.map(|(_, value)| *value)
        };
        expr.value(&Differences { of: &difference, seconds: Some(2.0) })
    }

    #[test]
    fn a_formula_needs_its_counters() {
        assert_eq!(value(&WRITES, &[("a", 5.0), ("b", 1.0)]), Some(4.0));
        assert_eq!(value(&WRITES, &[("a", 5.0), ("b", 1.0), ("c", 2.0)]), Some(-10.0));
        assert_eq!(value(&WRITES, &[("a", 5.0)]), None);
    }

    #[test]
    fn zones_are_added_up() {
        const STALLS: Expr = Expr::Zones("allocstall");
        assert_eq!(value(&STALLS, &[("allocstall", 3.0)]), Some(3.0));
        let zones = [("allocstall_normal", 100.0), ("allocstall_movable", 16.0)];
        assert_eq!(value(&STALLS, &zones), Some(116.0));
        assert_eq!(value(&STALLS, &[("allocstall_moveable", 1.0)]), None);
    }

    #[test]
    fn a_share_of_0_has_no_value() {
        const SHARE: Expr = Expr::Percent(&Expr::Counter("a"), &Expr::Counter("b"));
        assert_eq!(value(&SHARE, &[("a", 1.0), ("b", 4.0)]), Some(25.0));
        assert_eq!(value(&SHARE, &[("a", 0.0), ("b", 0.0)]), None);
        assert_eq!(value(&SHARE, &[("a", 1.0), ("b", -4.0)]), None);
    }

    #[test]
    fn formulas_are_readable() {
        const RATE: Expr = Expr::PerSecond(&Expr::First(&[
            Expr::Counter("kswapd_steal"),
            Expr::Zones("pgsteal_kswapd"),
        ]));
        assert_eq!(WRITES.to_string(), "a - b - 7 x [c]");
        assert_eq!(RATE.to_string(), "(kswapd_steal or else pgsteal_kswapd[_ZONE]) / seconds");
        assert_eq!(RATE.counters()[..2], ["kswapd_steal", "pgsteal_kswapd"]);
        assert_eq!(RATE.counters().len(), 2 + ZONES.len());
    }
}
