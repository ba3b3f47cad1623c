//! The figure of a boot by which a search for a commit tells kernels apart.

use std::fmt;

use model::{ENTRIES, Experiment, Kept, Mode, Reading, WorkloadUse};

use crate::explain::{
    Contribution, Explanation, Identity, Section, Span, Subject, Tally, profiles,
};
use crate::verdicts::luck::RESOLUTION;
use crate::{Comparison, Judging, Kind, Results, Row, VariantBoots, Verdict, compare};

/// A function is the signal if it has at least this share of its phase's change.
const HALF: f64 = 0.5;

/// A figure of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A row of means in a table of metrics, or a counter.
    Row(String),
    /// A cost of the kernel.
    Kernel {
        /// The name of the cost.
        cost: String,
        /// The phase; `None` for the measured phases together.
        phase: Option<String>,
    },
    /// A function's own cost per entry. If the cost is entries, their number.
    Function {
        /// The name of the cost.
        cost: String,
        /// The function.
        name: String,
        /// The phase; `None` for the measured phases together.
        phase: Option<String>,
    },
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = |phase: &Option<String>| match phase {
            Some(phase) => format!(" in phase {phase}"),
            None => String::new(),
        };
        match self {
            Self::Row(row) => f.write_str(row),
            Self::Kernel { cost, phase: at } => write!(f, "kernel {cost}{}", phase(at)),
            Self::Function { cost, name, phase: at } => {
                let each = if cost == ENTRIES { "" } else { " per entry" };
                write!(f, "{cost} of {name}{each}{}", phase(at))
            }
        }
    }
}

impl Signal {
    /// The cost of this name of the kernel, in a phase or in the measured phases together.
    pub fn kernel(cost: &str, phase: Option<String>) -> Self {
        Self::Kernel { cost: cost.to_owned(), phase }
    }

    /// The figure of a boot; `None` if the boot has none, such as for a function that was not entered.
    pub fn of_boot(&self, experiment: &Experiment, kept: &Kept) -> Option<f64> {
        let used = experiment.workloads.first()?;
        let tally = |cost: &str, phase: &Option<String>| {
            let measured = || Span::measured([&kept.boot].into_iter(), used);
            let span = phase.as_deref().map_or_else(measured, Span::Phase);
            Tally::of(profiles(&kept.boot, used, span), cost)
        };
        match self {
            Self::Row(name) => {
                let comparison = of_one(experiment, kept);
                rows(&comparison).find(|row| row.metric == *name)?.value(0)
            }
            Self::Kernel { cost, phase } => {
                Some(tally(cost, phase).kernel as f64).filter(|sum| *sum > 0.0)
            }
            Self::Function { cost, name, phase } => {
                let executed = tally(cost, phase).executed(Identity { name, module: "" });
                let sum = executed.cost as f64;
                match cost == ENTRIES {
                    true => Some(sum).filter(|entries| *entries > 0.0),
                    false => (executed.entries > 0).then(|| sum / executed.entries as f64),
                }
            }
        }
    }

    /// The smallest change that counts at a level of the figure. A function's cost per entry is exact to the unit.
    /// Totals also differ a little by what no seed draws.
    pub fn least(&self, level: f64) -> f64 {
        match self {
            Self::Function { cost, .. } if cost != ENTRIES => 0.0,
            Self::Row(_) | Self::Kernel { .. } | Self::Function { .. } => RESOLUTION * level.abs(),
        }
    }

    /// The names of all rows of a boot: means of metrics, and counters.
    pub fn rows(experiment: &Experiment, kept: &Kept) -> Vec<String> {
        rows(&of_one(experiment, kept)).map(|row| row.metric.clone()).collect()
    }

    /// In measured mode, the row with the largest gain among regressions and improvements, or else the first row with
    /// a verdict.
    pub fn of_comparison(comparison: &Comparison) -> Option<Self> {
        let is_change = |it| matches!(it, Verdict::Regression | Verdict::Improvement);
        let verdicts: Vec<_> = comparison.verdicts(1).collect();
        let changed = verdicts.iter().filter(|it| is_change(it.verdict));
        let size = |row: &Row| row.cells[1].gain.unwrap_or(0.0).abs();
        let largest = changed.max_by(|one, other| size(one.row).total_cmp(&size(other.row)));
        largest.or(verdicts.first()).map(|it| Self::Row(it.row.metric.clone()))
    }

    /// The figures of exact mode that tell the two kernels of an explanation apart, the best first. First is the
    /// function whose cost holds most of the change of a phase, then the phase, each with its share of the phase's
    /// change. If no phase changes beyond luck, the function is the one whose code differs and whose cost changed
    /// most; it has no share.
    pub fn of_explanation(
        explanation: &Explanation,
        used: &WorkloadUse,
    ) -> Vec<(Self, Option<f64>)> {
        let is_measured = |name: &str| Span::Measured.has(name, used);
        let sections: Vec<&Section> = explanation
            .phases
            .iter()
            .filter(|section| section.phase.as_deref().is_some_and(is_measured))
            .collect();
        let excess = |section: &Section| section.totals.kernel.excess();
        let largest = sections.iter().max_by(|one, other| excess(one).total_cmp(&excess(other)));
        let cost = &*explanation.cost.name;
        let Some(section) = largest else { return vec![(Self::kernel(cost, None), Some(1.0))] };
        let kernel = &section.totals.kernel;
        let function = if kernel.beyond_luck() == Some(false) {
            most_changed_cause(cost, &sections).map(|function| (function, None))
        } else {
            let holds = |place: &usize| {
                let contribution = &section.contributions[*place];
                let by_cost = contribution.calls.as_ref()?.split?.by_cost;
                let share = explanation.instructions(by_cost) / kernel.change();
                let function = Self::of_function(cost, contribution, section)?;
                (share >= HALF).then_some((function, Some(share)))
            };
            section.per_entry.iter().find_map(holds)
        };
        let phase = Self::kernel(cost, section.phase.clone());
        function.into_iter().chain([(phase, Some(1.0))]).collect()
    }

    /// The cost of a function in a phase; `None` if it is not a function of the kernel's image.
    fn of_function(cost: &str, contribution: &Contribution, section: &Section) -> Option<Self> {
        match &contribution.subject {
            Subject::Function { name, module } if module.is_empty() => {
                let (cost, name) = (cost.to_owned(), name.clone());
                Some(Self::Function { cost, name, phase: section.phase.clone() })
            }
            _ => None,
        }
    }
}

/// Of the functions whose code differs, the one whose cost changed most beyond its luck floor.
fn most_changed_cause(cost: &str, sections: &[&Section]) -> Option<Signal> {
    let causes = sections.iter().flat_map(|section| {
        let ranked = section.per_entry.iter().map(|place| &section.contributions[*place]);
        ranked.filter(|it| it.is_cause()).map(move |it| (it, *section))
    });
    let size = |it: &Contribution| it.cost_at_equal_work(true);
    let (function, section) = causes.max_by(|one, other| size(one.0).total_cmp(&size(other.0)))?;
    Signal::of_function(cost, function, section)
}

fn of_one(experiment: &Experiment, kept: &Kept) -> Comparison {
    let own = experiment.variants.iter().filter(|variant| variant.name == kept.boot.variant);
    let kept = std::slice::from_ref(kept);
    let variants = own.map(|variant| VariantBoots::of(variant, kept)).collect();
    // A figure does not depend on which rows have verdicts.
    let results = Results { experiment, reading: Reading::USUAL, variants };
    compare(&results, 0, &Judging::of(&results))
}

/// Rows of means of metrics, and counters.
fn rows(comparison: &Comparison) -> impl Iterator<Item = &Row> {
    let is_exact = comparison.mode == Mode::Exact;
    comparison.tables.iter().flat_map(move |table| {
        table.rows.iter().filter(move |row| match table.kind {
            Kind::Metrics => row.statistic.is_mean() && !(is_exact && row.cells[0].value.is_none()),
            Kind::Duration | Kind::Counters => true,
            Kind::Events => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use code::{Change, CodeDifference, Function, Instrumentation, Size};
    use model::{Boot, INSTRUCTIONS};

    use super::*;
    use crate::explain::explain;
    use crate::testing::{boot, columns, executing, manifest, used, variant};

    /// Luck decides how often `f` is entered. Each entry costs 1 % more.
    #[test]
    fn a_cause_that_luck_hides_in_the_total_is_the_figure() {
        let seeds = |cost: u64| {
            let seed = |(entries, boot_index): (u64, u32)| Boot {
                profiles: vec![executing(0, "run", &[("f", "", entries, entries * cost)])],
                boot_index,
                ..boot(0)
            };
            [1000, 3000, 2000, 1500, 2500].into_iter().zip(0..).map(seed).collect::<Vec<_>>()
        };
        let (base, new) = (seeds(100), seeds(101));
        let variants = ["6.1", "6.12"].map(variant);
        let columns = columns(&variants, &[&base, &new]);
        let used = used(manifest());
        let signals = |change: Option<Change>| {
            let differs = |change| Function {
                name: "f".into(),
                change,
                base: Size::default(),
                new: Size::default(),
                removed: 0,
                added: 0,
                inlined: None,
                instrumentation: Instrumentation::default(),
            };
            let same = if change.is_none() { vec!["f".to_owned()] } else { Vec::new() };
            let code = CodeDifference {
                functions: change.into_iter().map(differs).collect(),
                same: same.into_iter().collect(),
            };
            let explanation =
                explain(&columns[0], &columns[1], &used, 5, INSTRUCTIONS).with_code(Ok(code));
            assert_eq!(explanation.phases[0].totals.kernel.beyond_luck(), Some(false));
            Signal::of_explanation(&explanation, &used)
        };
        let phase = (Signal::kernel(INSTRUCTIONS, Some("run".into())), Some(1.0));
        assert_eq!(signals(None), std::slice::from_ref(&phase));
        let function = (function(INSTRUCTIONS, "f"), None);
        assert_eq!(signals(Some(Change::Changed)), [function, phase]);
    }

    fn function(cost: &str, name: &str) -> Signal {
        Signal::Function { cost: cost.into(), name: name.into(), phase: Some("run".into()) }
    }

    #[test]
    fn a_signal_has_its_cost() {
        let profiles = vec![executing(0, "run", &[("f", "", 20, 300), ("g", "", 5, 100)])];
        let kept =
            Kept { id: model::BootId(1), superseded: false, boot: Boot { profiles, ..boot(0) } };
        let workloads = vec![used(manifest())];
        let experiment = Experiment { mode: Mode::Exact, workloads, ..Experiment::default() };
        let told = |signal: &Signal| (signal.to_string(), signal.of_boot(&experiment, &kept));
        let run = || Some("run".to_owned());
        for (signal, name, figure) in [
            (Signal::kernel(INSTRUCTIONS, run()), "kernel instructions in phase run", Some(400.0)),
            (Signal::kernel(ENTRIES, run()), "kernel entries in phase run", Some(25.0)),
            (Signal::kernel("misses", run()), "kernel misses in phase run", None),
            (function(INSTRUCTIONS, "f"), "instructions of f per entry in phase run", Some(15.0)),
            (function(ENTRIES, "f"), "entries of f in phase run", Some(20.0)),
        ] {
            assert_eq!(told(&signal), (name.to_owned(), figure));
        }
        assert_eq!(function(INSTRUCTIONS, "f").least(20.0), 0.0);
        assert!(function(ENTRIES, "f").least(20.0) > 0.0);
    }
}
