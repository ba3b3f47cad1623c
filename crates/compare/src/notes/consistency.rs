//! Counters checked against each other: contradictions, figures that are easily misread, and counters that
//! columns count differently.
//!
//! Within a boot, laws must hold between counters of one kernel ([`rules`], [`places`]). Between columns, the
//! catalogue says which counters were renamed, split or moved ([`mod@counting`]). Each law has a tolerance, because
//! an event may be counted before a cut in one counter and after it in another.

mod counting;
mod places;
mod rules;

use std::collections::BTreeMap;

use kernelfiles::catalogue;
use kernelfiles::derived::Differences;
use model::{Boot, BootId, Source};
use serde::{Deserialize, Serialize};

use crate::VariantBoots;
use crate::figures::growth::{Growth, lost_series};

pub use counting::{Counting, Relation, counting};

/// Most names that a finding about decreasing event counters lists.
const MAX_NAMES: usize = 5;

/// A law between counters that boots of one variant break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// Whether it is impossible or only easily misread.
    pub severity: Severity,
    /// Name of the workload that was running.
    pub workload: String,
    /// The variant's name.
    pub variant: String,
    /// The boots in which it was found.
    pub boots: Vec<BootId>,
    /// The figures that break the law, from the first of these boots.
    pub found: String,
    /// Why the law should hold.
    pub why: &'static str,
    /// How a reader should interpret it.
    pub answer: &'static str,
}

/// How severe a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Impossible: a counter, its reader or the recording is wrong, or the law has an exception.
    #[default]
    Contradiction,
    /// Possible, and easily misread.
    Remark,
}

/// The growth of counters in one boot during a workload.
struct Counted<'a> {
    vmstat: Growth<'a>,
    numastat: Growth<'a>,
    zoneinfo: Growth<'a>,
    release: &'a str,
    cpus: f64,
    nodes: f64,
}

impl<'a> Counted<'a> {
    fn of(boot: &'a Boot, workload: &str) -> Self {
        let growth = |source: Source| {
            let chunks = boot.chunks.iter();
            Growth::of(chunks.filter(|it| it.workload == workload && it.is_of(source)))
        };
        Self {
            vmstat: growth(Source::Vmstat),
            numastat: growth(Source::NodeNumastat),
            zoneinfo: growth(Source::Zoneinfo),
            release: &boot.facts.release,
            cpus: f64::from(boot.facts.cpus.max(1)),
            nodes: f64::from(boot.facts.nodes.max(1)),
        }
    }

    fn value(&self, expr: &kernelfiles::derived::Expr) -> Option<f64> {
        let difference = |name: &str| self.vmstat.get(name).map(|grown| grown as f64);
        expr.value(&Differences { of: &difference, seconds: None })
    }
}

/// The findings in the complete boots of `columns` during `workload`, contradictions first.
pub fn findings(workload: &str, columns: &[VariantBoots<'_>]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for column in columns {
        let mut of_column: BTreeMap<&str, Finding> = BTreeMap::new();
        let complete = column.standing().filter(|kept| kept.boot.outcome.counts());
        for kept in complete.filter(|kept| !lost_series(kept.boot)) {
            for broken in broken(&Counted::of(kept.boot, workload)) {
                let finding = of_column.entry(broken.rule).or_insert_with(|| Finding {
                    rule: broken.rule,
                    severity: broken.severity,
                    workload: workload.to_owned(),
                    variant: column.name().to_owned(),
                    boots: Vec::new(),
                    found: broken.found,
                    why: broken.why,
                    answer: broken.answer,
                });
                finding.boots.push(kept.id);
            }
        }
        findings.extend(of_column.into_values());
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// A rule that one boot breaks.
struct Broken {
    rule: &'static str,
    severity: Severity,
    found: String,
    why: &'static str,
    answer: &'static str,
}

fn broken(counted: &Counted<'_>) -> Vec<Broken> {
    let mut broken: Vec<Broken> =
        rules::RULES.iter().filter_map(|rule| rule.broken_by(counted)).collect();
    broken.extend(backwards(counted));
    broken.extend(places::sums(counted));
    broken.extend(places::untouched_zones(counted));
    broken
}

/// Finds counters of events since boot that decreased.
fn backwards(counted: &Counted<'_>) -> Option<Broken> {
    let is_event = |name: &str| catalogue::find(name).is_some_and(|counter| !counter.gauge);
    let negative = counted.vmstat.iter().filter_map(|(name, grown)| {
        let grown = grown.filter(|grown| *grown < 0 && is_event(name))?;
        Some(format!("{name} grew by {grown}"))
    });
    let negative: Vec<String> = negative.collect();
    let mut found = negative.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if negative.len() > MAX_NAMES {
        found.push_str(&format!(", and {} more", negative.len() - MAX_NAMES));
    }
    (!negative.is_empty()).then_some(Broken {
        rule: "events run forwards",
        severity: Severity::Contradiction,
        found,
        why: "Events are counted since boot and never taken back.",
        answer: "The counter wrapped or was reset, or its text was damaged: ignore its rows.",
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{Chunk, Column};

    use super::*;
    use crate::testing::{boot, columns, variant};

    /// The growth that a real boot had of the counters of one source.
    fn recorded(text: &str, source: Source) -> Chunk {
        let prefix = format!("{}: ", source.name());
        let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
        let column = |line: &str| {
            let (name, grown) = line.rsplit_once(' ').unwrap();
            let grown: i64 = grown.parse().unwrap();
            Column { name: name.to_owned(), values: vec![Some(1 << 40), Some((1 << 40) + grown)] }
        };
        Chunk {
            workload: "autonuma".into(),
            iteration: 0,
            phase: String::new(),
            source: source.name().into(),
            times: vec![0, 1_000_000_000],
            columns: lines.map(column).collect(),
        }
    }

    /// A boot that filled its memory with a file and then with anonymous pages, with swap.
    pub fn reclaiming(text: &str, release: &str) -> Boot {
        let mut boot = boot(0);
        boot.facts.release = release.into();
        boot.facts.cpus = 2;
        boot.facts.nodes = 2;
        boot.chunks = vec![recorded(text, Source::Vmstat), recorded(text, Source::NodeNumastat)];
        boot
    }

    pub const OLD: &str = include_str!("../../fixtures/reclaim-5.10.txt");
    pub const NEW: &str = include_str!("../../fixtures/reclaim-7.3.txt");

    /// Lets a counter grow by `grown`.
    pub fn set(boot: &mut Boot, source: Source, name: &str, grown: i64) {
        let mut chunks = boot.chunks.iter_mut();
        let chunk = chunks.find(|chunk| chunk.is_of(source)).unwrap();
        chunk.columns.retain(|column| column.name != name);
        let values = vec![Some(1 << 40), Some((1 << 40) + grown)];
        chunk.columns.push(Column { name: name.into(), values });
    }

    pub fn found(boots: &[Boot]) -> Vec<Finding> {
        findings("autonuma", &columns(&[variant("a")], &[boots]))
    }

    pub fn rules(boots: &[Boot]) -> Vec<&'static str> {
        found(boots).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn real_kernels_keep_every_law() {
        let boots = [reclaiming(OLD, "5.10.0-46"), reclaiming(NEW, "7.3.4+deb13")];
        for boot in &boots {
            assert!(boot.chunks.iter().all(|chunk| chunk.columns.len() > 10));
        }
        assert_eq!(found(&boots), []);
    }

    #[test]
    fn decreasing_event_counters_are_named() {
        let mut boots = [reclaiming(NEW, "7.3"), reclaiming(NEW, "7.3")];
        set(&mut boots[1], Source::Vmstat, "oom_kill", -3);
        set(&mut boots[1], Source::Vmstat, "nr_dirty", -300);
        set(&mut boots[1], Source::Vmstat, "unheard_of", -1);
        let found = found(&boots);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, "events run forwards");
        assert_eq!(found[0].found, "oom_kill grew by -3");
        assert_eq!(found[0].boots, [BootId(1)]);
    }

    #[test]
    fn boots_that_lost_series_are_not_checked() {
        let mut boot = reclaiming(NEW, "7.3");
        set(&mut boot, Source::Vmstat, "oom_kill", -3);
        let kind = model::ProblemKind::SeriesDropped;
        boot.problems.push(model::Problem { kind, text: String::new() });
        assert_eq!(found(&[boot]), []);
    }
}
