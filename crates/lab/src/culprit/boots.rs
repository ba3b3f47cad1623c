//! Boots a kernel of a search.

use model::{Experiment, Kept, Mode, Outcome, Source};
use store::Detail;

use crate::run::watch::Watch;
use crate::run::{Lab, RunError, RunOptions, RunSummary};

/// Whether QEMU ended by a fault of its own. A commit at which it does so each time has no reading.
fn is_crash(how: &str) -> bool {
    ["SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP"]
        .iter()
        .any(|it| how.contains(it))
}

/// Runs an experiment, and reads it as it ran and its boots with what figures need. A boot that the host spoilt each
/// time ends the search: it says nothing about the kernel, and the next search repeats it.
pub fn booted(
    lab: &mut Lab,
    experiment: &Experiment,
    watch: &mut Watch<'_>,
) -> Result<(RunSummary, Experiment, Vec<Kept>), RunError> {
    // A seed that fails alone must not leave a commit without a reading. The search itself counts failures.
    let options = RunOptions { keep_going: true, ..RunOptions::default() };
    let summary = lab.run_locked(experiment, options, watch)?;
    let stored = lab.store.experiment(summary.experiment)?;
    let counters = [Source::Vmstat.name(), Source::NodeNumastat.name(), Source::Zoneinfo.name()];
    let detail = match experiment.mode {
        Mode::Measured => Detail::Ends(&counters),
        Mode::Exact => Detail::Profiles(&counters),
    };
    let mut kept = lab.store.boots(summary.experiment, detail)?;
    kept.retain(|kept| !kept.superseded && kept.boot.replicate < experiment.boots);
    // Boots in parallel are stored as they end.
    kept.sort_by_key(|kept| kept.boot.replicate);
    for Kept { boot, .. } in &kept {
        if let Outcome::Invalid(how) = &boot.outcome
            && !is_crash(how)
        {
            return Err(RunError::Invalid { variant: boot.variant.clone(), how: how.clone() });
        }
    }
    Ok((summary, stored, kept))
}
