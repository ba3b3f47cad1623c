//! A sentence on locks that more or fewer CPUs waited for.

use compare::{Contribution, Section, Subject};

use super::figures;
use super::headline::phase_name;
use crate::ascii::few;

/// The functions that wait for a lock that another task holds (kernel/locking/, mm/mmap_lock.c).
const SLOW_PATHS: [&str; 8] = [
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "__mutex_lock",
    "__mutex_lock_slowpath",
    "native_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
];
/// Entries are told if one side has at least this many, and the other at least this share fewer.
const MANY: f64 = 100.0;
const NOTABLE: f64 = 0.1;
/// Most functions that are named.
const MOST: usize = 3;

/// Returns how often the slow paths of locks ran on both sides of a phase, where that changed beyond luck. `None` if it did
/// not.
pub fn sentence(section: &Section, phase: &str) -> Option<String> {
    let entries = |it: &Contribution| {
        let Subject::Function { name, .. } = &it.subject else { return None };
        let entries = it.calls.as_ref()?.entries;
        let most = entries.base.max(entries.new);
        let is_told = SLOW_PATHS.contains(&&**name)
            && it.instructions.beyond_luck() == Some(true)
            && most >= MANY
            && entries.change().abs() >= NOTABLE * most;
        let said = || figures::sides([entries.base, entries.new].map(whole), "");
        is_told.then(|| (entries.change().abs(), format!("{name} {}", said())))
    };
    let mut told: Vec<(f64, String)> = section.contributions.iter().filter_map(entries).collect();
    told.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let named = few(MOST, told.into_iter().map(|(_, it)| it)).join("; ");
    (!named.is_empty()).then(|| {
        format!(
            "Phase {}: entries of functions that wait for a lock: {named}. How long they wait is not modelled, because \
             CPUs take turns.",
            phase_name(phase)
        )
    })
}

fn whole(entries: f64) -> String {
    crate::words::figure(entries, 0)
}
