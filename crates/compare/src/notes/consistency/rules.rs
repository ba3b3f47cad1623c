//! Laws between counters of one kernel.
//!
//! # Slack
//!
//! A snapshot is not atomic: `/proc/vmstat` is read while other CPUs go on counting, and a cut may fall between two
//! counts of one code path. Each law has slack for that at both ends:
//!
//! - [`Slack::Events`]: events are counted per CPU and summed when read (`sum_vm_events()` in `mm/vmstat.c`), so none
//!   are held back. But the counts of scanned and of freed pages are up to a batch of some 64 pages apart
//!   (`MIN_LRU_BATCH`), and a migration of up to 512 pages is counted after its fault. The slack is 1024 per CPU,
//!   because several tasks may be in that state, and 0.1 %.
//! - [`Slack::Begun`]: work begins before the first cut and is counted after it. The slack is a batch per CPU.
//! - [`Slack::Folded`]: figures of nodes and zones stay in per-CPU differentials until they exceed a threshold of at
//!   most 125 (`calculate_normal_threshold()`), unless folded earlier (`vm.stat_refresh`). The slack is twice that
//!   for each CPU and node, and 0.1 %.
//! - [`Slack::TwoFiles`]: two files are read one after the other. The slack is twice 125 for each CPU and node, and 2
//!   %.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kernelfiles::catalogue::Version;
use kernelfiles::derived::Formula;
use serde::Deserialize;

use super::{Broken, Counted, Severity};

/// A law between sums of counters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    name: &'static str,
    law: Law,
    /// Counters that may cause the first sum instead of the second.
    #[serde(default)]
    or: Vec<String>,
    #[serde(default)]
    slack: Slack,
    #[serde(default)]
    severity: Severity,
    /// The first release in which the law holds; `None` if it holds in all.
    since: Option<Version>,
    why: &'static str,
    #[serde(default = "unexplained")]
    answer: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Law {
    /// The first sum is at most the second.
    AtMost(Formula, Formula),
    /// Both sums are equal.
    Equal(Formula, Formula),
    /// The first sum is 0 if the second sum and all of [`Rule::or`] are.
    NotWithout(Formula, Formula),
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slack {
    /// For events, summed when read.
    #[default]
    Events,
    /// For events that begin before the first cut and are counted after it.
    Begun,
    /// For figures of nodes and zones.
    Folded,
    /// For figures of two files.
    TwoFiles,
}

impl Slack {
    /// The largest difference that a law allows for a figure of this size.
    pub fn of(self, counted: &Counted<'_>, figure: f64) -> f64 {
        let (each, share) = match self {
            Self::Events => (1024.0, 0.001),
            Self::Begun => (64.0, 0.0),
            Self::Folded => (2.0 * 125.0 * counted.nodes, 0.001),
            Self::TwoFiles => (2.0 * 125.0 * counted.nodes, 0.02),
        };
        each * counted.cpus + share * figure.abs()
    }
}

/// The answer to a broken law that nothing explains.
const fn unexplained() -> &'static str {
    "No explanation is known: rely on neither figure."
}

/// The laws that hold between counters of `/proc/vmstat`.
pub static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    // The file is part of this program, and tests read it, so it cannot fail here.
    let mut laws: BTreeMap<&str, Vec<Rule>> =
        toml::from_str(include_str!("rules.toml")).expect("sound laws");
    laws.remove("law").unwrap_or_default()
});

impl Rule {
    pub fn broken_by(&self, counted: &Counted<'_>) -> Option<Broken> {
        if !self.applies_to(counted.release) {
            return None;
        }
        let value = |formula: &Formula| counted.value(&formula.expr);
        let found = match &self.law {
            Law::AtMost(less, more) => {
                let (small, large) = (value(less)?, value(more)?);
                let broken = small - large > self.slack.of(counted, small);
                broken.then(|| format!("{less} = {small} exceeds {more} = {large}"))
            }
            Law::Equal(one, other) => {
                let (first, second) = (value(one)?, value(other)?);
                let broken = (first - second).abs() > self.slack.of(counted, first.max(second));
                broken.then(|| format!("{one} = {first} differs from {other} = {second}"))
            }
            Law::NotWithout(effect, cause) => {
                let (number, without) = (value(effect)?, value(cause)?);
                let otherwise = self.or.iter().any(|it| counted.vmstat.get(it).unwrap_or(0) > 0);
                let broken = number > self.slack.of(counted, 0.0) && without == 0.0 && !otherwise;
                broken.then(|| format!("{effect} = {number} without any {cause}"))
            }
        };
        Some(self.broken(found?))
    }

    /// Whether the law holds in this release; false if the release cannot be parsed.
    fn applies_to(&self, release: &str) -> bool {
        let within = |since: &Version| release.parse::<Version>().is_ok_and(|own| *since <= own);
        self.since.as_ref().is_none_or(within)
    }

    fn broken(&self, found: String) -> Broken {
        let Self { name, severity, why, answer, .. } = *self;
        Broken { rule: name, severity, found, why, answer }
    }
}

#[cfg(test)]
mod tests {
    use model::Source;

    use super::*;
    use crate::notes::consistency::tests::{NEW, OLD, found, reclaiming, rules, set};

    #[test]
    fn names_are_unique_and_answers_are_given() {
        let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
        assert!(RULES.iter().all(|rule| rule.why.ends_with('.') && rule.answer.ends_with('.')));
        assert!(RULES.iter().all(|rule| rule.applies_to("7.3")));
    }

    /// "Move LRU page reclaim from zones to nodes v8": the tiobench table's nodelru-v8 column, as
    /// its tool saw the kernel.
    #[test]
    fn scans_without_stalls_as_in_the_node_lru_thread() {
        let mut boot = reclaiming(NEW, "4.7.0-rc4");
        for zone in ["dma", "dma32", "normal", "movable", "device"] {
            set(&mut boot, Source::Vmstat, &format!("allocstall_{zone}"), 0);
        }
        set(&mut boot, Source::Vmstat, "pgscan_direct", 54_504);
        set(&mut boot, Source::Vmstat, "pgsteal_direct", 54_504);
        set(&mut boot, Source::Vmstat, "pgscan_kswapd", 93_250_583);
        set(&mut boot, Source::Vmstat, "pgscan_file", 94_000_000);
        let found = found(&[boot.clone()]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].rule, "direct scans come with stalls");
        assert_eq!(found[0].severity, Severity::Remark);
        assert_eq!(found[0].found, "pgscan_direct[_ZONE] = 54504 without any allocstall[_ZONE]");
        set(&mut boot, Source::Vmstat, "zone_reclaim_failed", 1);
        assert_eq!(rules(&[boot]), [""; 0]);
    }

    /// A law, the counters that break it by 1000 and by 10 %, and those that are its limit.
    #[test]
    fn every_law_can_be_broken() {
        for rule in &*RULES {
            let (small, large) = match &rule.law {
                Law::AtMost(small, large) | Law::Equal(small, large) => (small, large),
                Law::NotWithout(effect, cause) => (effect, cause),
            };
            let mut boot = reclaiming(NEW, "7.3");
            let raised = small.expr.counters()[0].clone();
            for name in large.expr.counters() {
                if name != raised && !small.expr.counters().contains(&name) {
                    set(&mut boot, Source::Vmstat, &name, 0);
                }
            }
            set(&mut boot, Source::Vmstat, &raised, 100_000_000);
            assert!(rules(&[boot]).contains(&rule.name), "{}", rule.name);
        }
    }

    #[test]
    fn events_in_progress_at_a_cut_break_no_law() {
        let mut boot = reclaiming(NEW, "7.3");
        set(&mut boot, Source::Vmstat, "pgsteal_direct", 66_825 + 2000);
        set(&mut boot, Source::Vmstat, "numa_foreign", 33_374 + 900);
        assert_eq!(rules(&[boot.clone()]), [""; 0]);
        set(&mut boot, Source::Vmstat, "pgsteal_direct", 66_825 + 9000);
        assert_eq!(rules(&[boot]), ["direct reclaim frees what it scans"]);
    }

    #[test]
    fn swap_is_set_against_reclaim_where_huge_pages_count_whole() {
        for (release, expected) in
            [("5.10", &[][..]), ("", &[]), ("6.12", &["reclaim writes what goes to swap"])]
        {
            let mut boot = reclaiming(OLD, release);
            set(&mut boot, Source::Vmstat, "pswpout", 100_000);
            assert_eq!(rules(&[boot]), expected, "{release}");
        }
    }
}
