//! Boots a kernel of a search.

use lab::{Lab, RunError, RunOptions, RunSummary, Watch};
use model::{Experiment, Host, Kept, Mode, Outcome, Source};
use plan::Request;
use store::Detail;

/// Returns whether QEMU crashed by itself, according to a description of its end. A commit at which
/// it crashes in each boot has no figure.
fn is_crash(how: &str) -> bool {
    ["SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP"]
        .iter()
        .any(|it| how.contains(it))
}

/// An experiment that was run, with its boots from the store.
pub struct Booted {
    /// The result of the run.
    pub summary: RunSummary,
    /// The experiment as it ran, with digests.
    pub experiment: Experiment,
    /// The experiment's boots with the parts that figures need, by boot index.
    pub kept: Vec<Kept>,
}

/// Runs an experiment and reads its boots from the store. Fails when the host fails. It also fails
/// when a boot is invalid in each repetition: such a boot says nothing about the kernel, so the
/// search ends, and the next search repeats the boot. Crashes of QEMU are excepted.
pub fn booted(lab: &mut Lab, request: &Request, watch: &mut Watch<'_>) -> Result<Booted, RunError> {
    // All seeds are booted, even if one fails: a seed that fails alone must not leave a commit
    // without a figure. The search itself counts failures.
    let options = RunOptions { keep_going: true, ..RunOptions::default() };
    let summary = lab.run_locked(request, options, watch)?;
    let stored = lab.store.experiment(summary.experiment)?;
    let counters = [Source::Vmstat.name(), Source::NodeNumastat.name(), Source::Zoneinfo.name()];
    let detail = match stored.mode {
        Mode::Measured => Detail::Ends(&counters),
        Mode::Exact => Detail::Profiles(&counters),
    };
    let mut kept = lab.store.boots(summary.experiment, detail)?;
    kept.retain(|kept| !kept.superseded && kept.boot.boot_index < request.experiment.boots);
    // Parallel boots are stored in the order in which they end.
    kept.sort_by_key(|kept| kept.boot.boot_index);
    for Kept { boot, .. } in &kept {
        if let Outcome::Invalid(how) = &boot.outcome
            && !is_crash(how)
        {
            return Err(RunError::Invalid { variant: boot.variant.clone(), how: how.clone() });
        }
    }
    Ok(Booted { summary, experiment: stored, kept })
}

/// Keeps the boots whose figures can be compared with boots of this host, and returns them with the
/// number of the others. In measured mode boots of other hosts are left out; in exact mode none.
pub fn of_host(mut kept: Vec<Kept>, mode: Mode, host: &Host) -> (Vec<Kept>, u32) {
    let all = kept.len();
    let is_own = |kept: &Kept| kept.boot.facts.provenance.host.number() == host.number();
    kept.retain(|kept| mode == Mode::Exact || is_own(kept));
    let foreign = (all - kept.len()) as u32;
    (kept, foreign)
}

#[cfg(test)]
mod tests {
    use model::{Boot, BootId};

    use super::*;

    #[test]
    fn measured_boots_of_other_hosts_are_no_readings() {
        let host = |digit: &str| Host { id: digit.repeat(64), ..Host::default() };
        let kept = |number: i64, digit: &str| {
            let mut boot = Boot::default();
            boot.facts.provenance.host = host(digit);
            Kept { id: BootId(number), superseded: false, boot }
        };
        let all = || vec![kept(1, "1"), kept(2, "2"), kept(3, "1"), kept(4, "")];
        let of = |mode, digit| {
            let (own, foreign) = of_host(all(), mode, &host(digit));
            (own.iter().map(|it| it.id.0).collect::<Vec<_>>(), foreign)
        };
        assert_eq!(of(Mode::Measured, "1"), (vec![1, 3], 2));
        assert_eq!(of(Mode::Measured, "3"), (vec![], 4));
        assert_eq!(of(Mode::Exact, "3"), (vec![1, 2, 3, 4], 0));
    }
}
