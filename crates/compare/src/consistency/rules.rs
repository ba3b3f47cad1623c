//! Laws between counters of one kernel.
//!
//! # Slack
//!
//! A snapshot is not atomic: `/proc/vmstat` is read while other CPUs go on counting, and a cut may fall
//! between two counts of one path. Each law allows for that at both ends:
//!
//! - [`Slack::Events`]: events are counted per CPU and summed when read (`sum_vm_events()` in
//!   `mm/vmstat.c`), so none are held back. But reclaim counts scanned and freed pages up to a batch of some
//!   64 pages apart (`MIN_LRU_BATCH`), and counts a migration of up to 512 pages after its fault. 1024 per
//!   CPU, because several tasks may be in that state, and 0.1 %.
//! - [`Slack::Begun`]: work begun before the first cut and counted after it. A batch per CPU.
//! - [`Slack::Folded`]: figures of nodes and zones stay in per-CPU differentials until they exceed a
//!   threshold of at most 125 (`calculate_normal_threshold()`), unless folded earlier (`vm.stat_refresh`).
//!   Twice that for each CPU and node, and 0.1 %.
//! - [`Slack::TwoFiles`]: two files are read one after the other. Twice 125 for each CPU and node, and 2 %.

use kernelfiles::catalogue::Version;
use kernelfiles::derived::Expr::{self, Counter, OrZero, Sum, Zones};

use super::{Broken, Counted, Severity};

/// A law between sums of counters.
pub struct Rule {
    name: &'static str,
    law: Law,
    slack: Slack,
    severity: Severity,
    /// The first release in which it holds; empty if it always did.
    since: &'static str,
    why: &'static str,
    answer: &'static str,
}

enum Law {
    /// The first is at most the second.
    AtMost(Expr, Expr),
    /// Both are the same.
    Equal(Expr, Expr),
    /// The first stays 0 as long as the second and all of the others do.
    NotWithout(Expr, Expr, &'static [&'static str]),
}

#[derive(Clone, Copy)]
pub enum Slack {
    /// For events, summed when read.
    Events,
    /// For events that begin before the first cut and are counted after it.
    Begun,
    /// For figures of nodes and zones.
    Folded,
    /// For figures of two files.
    TwoFiles,
}

impl Slack {
    /// By how much figures as large as `figure` may disagree.
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

const KSWAPD_SCANNED: Expr = Zones("pgscan_kswapd");
const DIRECT_SCANNED: Expr = Zones("pgscan_direct");
const STALLS: Expr = Zones("allocstall");
const ALLOCATIONS: Expr = Sum(&[(1.0, Counter("numa_hit")), (1.0, Counter("numa_miss"))]);
const HINT_FAULTS: Expr = Counter("numa_hint_faults");
const MIGRATED: Expr = Counter("numa_pages_migrated");

/// Before this release, a scanned huge page counted as one page, and a freed one as its base pages.
const WHOLE_SCANS: &str = "5.4";
const COUNTED_BEFORE: &str = "What is freed was scanned, and is counted when it was.";
const NO_EXPLANATION: &str = "No explanation is known: rely on neither figure.";

const fn contradiction(
    name: &'static str,
    law: Law,
    slack: Slack,
    why: &'static str,
    answer: &'static str,
) -> Rule {
    Rule { name, law, slack, severity: Severity::Contradiction, since: "", why, answer }
}

const fn remark(
    name: &'static str,
    law: Law,
    slack: Slack,
    why: &'static str,
    answer: &'static str,
) -> Rule {
    Rule { severity: Severity::Remark, ..contradiction(name, law, slack, why, answer) }
}

/// The laws that hold between counters of `/proc/vmstat`.
pub static RULES: &[Rule] = &[
    remark(
        "direct scans come with stalls",
        Law::NotWithout(DIRECT_SCANNED, STALLS, &["zone_reclaim_failed", "zone_reclaim_success"]),
        Slack::Begun,
        "An allocation that reclaims counts a stall first (do_try_to_free_pages() in mm/vmscan.c).",
        "Reclaim of one node (vm.zone_reclaim_mode) scans without a stall. In figures of another \
         tool it may not know that stalls are counted by zone since 4.8.",
    ),
    remark(
        "stalls come with direct scans",
        Law::NotWithout(STALLS, DIRECT_SCANNED, &[]),
        Slack::Begun,
        "An allocation that stalls goes on to scan the lists.",
        "There was nothing on the lists that it could take: memory was anonymous without swap, \
         locked, slab, or out of the allocation's zones.",
    ),
    Rule {
        since: WHOLE_SCANS,
        ..contradiction(
            "kswapd reclaims what it scans",
            Law::AtMost(Zones("pgsteal_kswapd"), KSWAPD_SCANNED),
            Slack::Events,
            COUNTED_BEFORE,
            NO_EXPLANATION,
        )
    },
    Rule {
        since: WHOLE_SCANS,
        ..contradiction(
            "direct reclaim frees what it scans",
            Law::AtMost(Zones("pgsteal_direct"), DIRECT_SCANNED),
            Slack::Events,
            COUNTED_BEFORE,
            NO_EXPLANATION,
        )
    },
    contradiction(
        "khugepaged reclaims what it scans",
        Law::AtMost(Counter("pgsteal_khugepaged"), Counter("pgscan_khugepaged")),
        Slack::Events,
        COUNTED_BEFORE,
        NO_EXPLANATION,
    ),
    contradiction(
        "proactive reclaim frees what it scans",
        Law::AtMost(Counter("pgsteal_proactive"), Counter("pgscan_proactive")),
        Slack::Events,
        COUNTED_BEFORE,
        NO_EXPLANATION,
    ),
    contradiction(
        "every scan is of anonymous or of file pages",
        Law::AtMost(
            Sum(&[
                (1.0, KSWAPD_SCANNED),
                (1.0, DIRECT_SCANNED),
                (1.0, OrZero(&Counter("pgscan_khugepaged"))),
                (1.0, OrZero(&Counter("pgscan_proactive"))),
            ]),
            Sum(&[(1.0, Counter("pgscan_anon")), (1.0, Counter("pgscan_file"))]),
        ),
        Slack::Events,
        "Each scan is counted by who scans and by what is scanned; for memory cgroups by what alone.",
        NO_EXPLANATION,
    ),
    contradiction(
        "local hint faults are hint faults",
        Law::AtMost(Counter("numa_hint_faults_local"), HINT_FAULTS),
        Slack::Events,
        "Every hinting fault is counted, and some of them as local.",
        NO_EXPLANATION,
    ),
    contradiction(
        "NUMA migrations are migrations",
        Law::AtMost(MIGRATED, Counter("pgmigrate_success")),
        Slack::Events,
        "What balancing migrates goes through migrate_pages(), which counts it too.",
        NO_EXPLANATION,
    ),
    contradiction(
        "NUMA migrations come from hint faults",
        Law::NotWithout(MIGRATED, HINT_FAULTS, &[]),
        Slack::Events,
        "Balancing migrates a page when a hinting fault tells who uses it.",
        NO_EXPLANATION,
    ),
    contradiction(
        "promotions are NUMA migrations",
        Law::AtMost(Counter("pgpromote_success"), MIGRATED),
        Slack::Folded,
        "A page is promoted by migrating it, which is counted too.",
        NO_EXPLANATION,
    ),
    Rule {
        // Before, one fault could look at all entries of a page table.
        since: "3.13",
        ..contradiction(
            "hint faults are faults",
            Law::AtMost(HINT_FAULTS, Counter("pgfault")),
            Slack::Events,
            "A hinting fault is a page fault.",
            NO_EXPLANATION,
        )
    },
    contradiction(
        "major faults are faults",
        Law::AtMost(Counter("pgmajfault"), Counter("pgfault")),
        Slack::Events,
        "A major fault is a page fault.",
        "Since 6.4 a fault that is tried again is counted once in pgfault, and may be more often in \
         pgmajfault.",
    ),
    contradiction(
        "huge pages come from faults",
        Law::AtMost(
            Sum(&[(1.0, Counter("thp_fault_alloc")), (1.0, Counter("thp_fault_fallback"))]),
            Counter("pgfault"),
        ),
        Slack::Events,
        "A fault gets a huge page, or falls back, at most once.",
        NO_EXPLANATION,
    ),
    contradiction(
        "fallbacks for want of charge are fallbacks",
        Law::AtMost(Counter("thp_fault_fallback_charge"), Counter("thp_fault_fallback")),
        Slack::Events,
        "A fault that cannot be charged is counted as a fallback too.",
        NO_EXPLANATION,
    ),
    contradiction(
        "compaction stalls end one way",
        Law::AtMost(
            Sum(&[(1.0, Counter("compact_success")), (1.0, Counter("compact_fail"))]),
            Counter("compact_stall"),
        ),
        Slack::Events,
        "A stall is counted, and then whether it helped.",
        NO_EXPLANATION,
    ),
    contradiction(
        "kcompactd's scans are compaction's",
        Law::AtMost(Counter("compact_daemon_migrate_scanned"), Counter("compact_migrate_scanned")),
        Slack::Events,
        "What kcompactd scans is counted for it and for compaction as a whole.",
        NO_EXPLANATION,
    ),
    Rule {
        // Before, a huge page that was written counted as one.
        since: "5.18",
        ..remark(
            "reclaim writes what goes to swap",
            Law::AtMost(
                Sum(&[
                    (1.0, Counter("pswpout")),
                    (1.0, OrZero(&Counter("zswpout"))),
                    (1.0, OrZero(&Counter("swpout_zero"))),
                    (-1.0, OrZero(&Counter("zswpwb"))),
                ]),
                Counter("nr_vmscan_write"),
            ),
            Slack::Folded,
            "Pages go to swap because reclaim writes them.",
            "zswap wrote back pages that it had stored before, which kernels before 6.8 do not tell, \
             or a driver wrote its own. Page writes file is too small then.",
        )
    },
    contradiction(
        "every allocation takes a page",
        Law::AtMost(ALLOCATIONS, Zones("pgalloc")),
        Slack::Folded,
        "numa_hit and numa_miss count allocations, pgalloc_ZONE their pages.",
        NO_EXPLANATION,
    ),
    contradiction(
        "allocations are local or not",
        Law::Equal(ALLOCATIONS, Sum(&[(1.0, Counter("numa_local")), (1.0, Counter("numa_other"))])),
        Slack::Folded,
        "Each allocation is counted as hit or miss, and as local or other.",
        NO_EXPLANATION,
    ),
    contradiction(
        "a miss here is foreign there",
        Law::Equal(Counter("numa_miss"), Counter("numa_foreign")),
        Slack::Folded,
        "An allocation that another node took is a miss of that node and foreign to the wanted one.",
        NO_EXPLANATION,
    ),
];

impl Rule {
    pub fn broken_by(&self, counted: &Counted<'_>) -> Option<Broken> {
        if !self.applies_to(counted.release) {
            return None;
        }
        let value = |expr: &Expr| counted.value(expr);
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
            Law::NotWithout(effect, cause, others) => {
                let (number, without) = (value(effect)?, value(cause)?);
                let otherwise = others.iter().any(|name| counted.vmstat.get(name).unwrap_or(0) > 0);
                let broken = number > self.slack.of(counted, 0.0) && without == 0.0 && !otherwise;
                broken.then(|| format!("{effect} = {number} without any {cause}"))
            }
        };
        Some(self.broken(found?))
    }

    /// Whether the law holds in this release; false for an unknown one.
    fn applies_to(&self, release: &str) -> bool {
        let known = |text: &str| text.parse::<Version>().ok();
        self.since.is_empty()
            || known(self.since).zip(known(release)).is_some_and(|(since, own)| since <= own)
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
    use crate::consistency::tests::{NEW, OLD, found, reclaiming, rules, set};

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
        for rule in RULES {
            let (small, large) = match &rule.law {
                Law::AtMost(small, large) | Law::Equal(small, large) => (small, large),
                Law::NotWithout(effect, cause, _) => (effect, cause),
            };
            let mut boot = reclaiming(NEW, "7.3");
            let raised = small.counters()[0].clone();
            for name in large.counters() {
                if name != raised && !small.counters().contains(&name) {
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
