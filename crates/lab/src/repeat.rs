//! Decides which boots are repeated, because they say nothing about the kernel.

use kernelfiles::klog::is_rcu_not_woken;
use model::{Boot, Execution, Mode, Outcome};

/// The number of times that an invalid boot is repeated.
const REPEATS: usize = 2;

/// How often a boot was repeated so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Because it was invalid.
    invalid: usize,
    /// Because its guest hung.
    hung: usize,
}

impl Repeats {
    /// Returns why the boot is repeated once more, and counts that; `None` if it is not. Invalid boots are repeated, and a
    /// boot that timed out once if the emulator may have lost an interrupt. A second time it counts.
    pub fn reason(&mut self, mode: Mode, boot: &Boot) -> Option<String> {
        match &boot.outcome {
            Outcome::Invalid(how) if self.invalid < REPEATS => {
                self.invalid += 1;
                Some(how.clone())
            }
            Outcome::TimedOut(how) if self.hung == 0 && mode.is_measured() => {
                let why = emulator(boot)?;
                self.hung += 1;
                Some(format!("{how}; {why}, as if the emulator had lost an interrupt"))
            }
            _ => None,
        }
    }
}

/// Returns the sign that QEMU may have lost an interrupt, which happens now and then if each emulated CPU has its own
/// thread. With QEMU 10.0, about 1 of 100 boots of Linux 5.10 on 4 CPUs hung so: one CPU was halted while its local APIC
/// had the timer's interrupt in service, so no interrupt reached it any more. Early in a boot nothing complains.
fn emulator(boot: &Boot) -> Option<&'static str> {
    let is_emulated = boot.facts.provenance.execution == Some(Execution::Tcg);
    let is_silent = boot.console.trim().is_empty();
    match boot.problems.iter().any(is_rcu_not_woken) {
        _ if !is_emulated => None,
        true => Some("the kernel's RCU thread was not woken"),
        false => is_silent.then_some("the kernel printed nothing"),
    }
}

#[cfg(test)]
mod tests {
    use model::{BootFacts, Problem, ProblemKind, Provenance};

    use super::*;

    /// A boot that timed out under an emulator, with a line of its console.
    fn timed_out(execution: Execution, text: &str) -> Boot {
        let provenance = Provenance { execution: Some(execution), ..Provenance::default() };
        Boot {
            outcome: Outcome::TimedOut("the agent did not start within 3m".into()),
            facts: BootFacts { provenance, ..BootFacts::default() },
            problems: vec![Problem { kind: ProblemKind::Stall, text: text.into() }],
            console: text.into(),
            ..Boot::default()
        }
    }

    /// Why a boot that was not repeated so far is repeated.
    fn reason(mode: Mode, boot: &Boot) -> Option<String> {
        Repeats::default().reason(mode, boot)
    }

    const STARVED: &str =
        "rcu: rcu_sched kthread starved for 5250 jiffies! g-1127 f0x0 RCU_GP_WAIT_FQS(5) ->cpu=1";

    #[test]
    fn invalid_boots_are_repeated_twice_and_hung_ones_once() {
        let invalid = Boot { outcome: Outcome::Invalid("killed".into()), ..Boot::default() };
        let hung = timed_out(Execution::Tcg, STARVED);
        let mut repeats = Repeats::default();
        for (boot, is_repeated) in
            [(&invalid, true), (&hung, true), (&hung, false), (&invalid, true), (&invalid, false)]
        {
            assert_eq!(repeats.reason(Mode::Measured, boot).is_some(), is_repeated, "{repeats:?}");
        }
        assert_eq!(reason(Mode::Exact, &invalid).as_deref(), Some("killed"));
    }

    #[test]
    fn a_boot_is_repeated_if_the_emulator_may_have_lost_an_interrupt() {
        let expired =
            "rcu: rcu_preempt kthread timer wakeup didn't happen for 5245 jiffies! g-1175 f0x0";
        for text in [STARVED, expired] {
            let boot = timed_out(Execution::Tcg, text);
            let why = reason(Mode::Measured, &boot).unwrap();
            assert!(
                why.starts_with("the agent did not start within 3m; the kernel's RCU"),
                "{why}"
            );
            assert_eq!(reason(Mode::Exact, &boot), None);
            assert_eq!(reason(Mode::Measured, &timed_out(Execution::Kvm, text)), None);
        }
        let lockup = "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [cat:71]";
        assert_eq!(reason(Mode::Measured, &timed_out(Execution::Tcg, lockup)), None);
        let silent = Boot { console: "\n".into(), ..timed_out(Execution::Tcg, lockup) };
        let why = reason(Mode::Measured, &silent).unwrap();
        assert!(why.contains("; the kernel printed nothing, as if"), "{why}");
        let hung = timed_out(Execution::Tcg, STARVED);
        let failed = Boot { outcome: Outcome::Failed("no".into()), ..hung };
        assert_eq!(reason(Mode::Measured, &failed), None);
    }
}
