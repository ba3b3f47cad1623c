//! Formulas of counters, and their evaluation.

/// Zone suffixes in names of counters (`include/linux/vm_event_item.h`).
pub const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// The growth of counters over a span of time.
pub struct Differences<'a> {
    /// The growth of a counter of `/proc/vmstat`; `None` if the kernel has no such counter.
    pub of: &'a dyn Fn(&str) -> Option<f64>,
    /// Length of the span in seconds; `None` if unknown.
    pub seconds: Option<f64>,
}

/// A formula. It has no value if the kernel lacks a counter that it needs.
#[derive(Debug)]
pub enum Expr {
    /// The growth of a counter.
    Counter(String),
    /// The sum of the growth of a counter and of its per-zone forms. The kernel must have at least one of them.
    Zones(String),
    /// The first of these that the kernel has.
    First(Vec<Expr>),
    /// The value, or 0 if the kernel lacks a counter that it needs.
    OrZero(Box<Expr>),
    /// A weighted sum; all terms must be known.
    Sum(Vec<(f64, Expr)>),
    /// A sum in millions.
    Millions(Box<Expr>),
    /// The first as a percentage of the second; no value if the second is 0.
    Percent(Box<Expr>, Box<Expr>),
    /// The value per second; none if the span has no length.
    PerSecond(Box<Expr>),
}

impl Expr {
    /// The value over a span; `None` if it has none.
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
            Self::Counter(name) => add(names, name.clone()),
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
