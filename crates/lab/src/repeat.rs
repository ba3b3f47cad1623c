//! Decides which boots are repeated, because they say nothing about the kernel.

use model::{Boot, Execution, Mode, Outcome};

/// The number of times that an invalid boot is repeated.
const REPEATS: usize = 2;
/// The messages of a kernel whose RCU thread does not run although it is due (`rcu_check_gp_kthread_starvation` and
/// `rcu_check_gp_kthread_expired_fqs_timer` in `kernel/rcu/tree_stall.h`).
const NOT_WOKEN: [&str; 2] = ["kthread starved for", "kthread timer wakeup didn't happen"];

/// Returns why a boot that was repeated this often is repeated once more; `None` if it is not. Invalid boots are
/// repeated, and a boot that timed out once if the emulator may have lost an interrupt. The second time the kernel is
/// to blame.
pub fn reason(mode: Mode, boot: &Boot, repeats: usize) -> Option<String> {
    match &boot.outcome {
        Outcome::Invalid(how) if repeats < REPEATS => Some(how.clone()),
        Outcome::TimedOut(how) if repeats == 0 && mode.is_measured() && lost_interrupt(boot) => {
            let why =
                "the kernel's RCU thread was not woken, as if the emulator had lost an interrupt";
            Some(format!("{how}; {why}"))
        }
        _ => None,
    }
}

/// Whether QEMU may have lost an interrupt, which happens now and then if each emulated CPU has its own thread. With QEMU
/// 10.0, about 1 of 100 boots of Linux 5.10 on 4 CPUs hung so: one CPU was halted while its local APIC had the timer's
/// interrupt in service, so no interrupt reached it any more.
fn lost_interrupt(boot: &Boot) -> bool {
    let is_not_woken = |text: &str| NOT_WOKEN.iter().any(|it| text.contains(it));
    boot.facts.provenance.execution == Some(Execution::Tcg)
        && boot.problems.iter().any(|problem| is_not_woken(&problem.text))
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
            ..Boot::default()
        }
    }

    #[test]
    fn invalid_boots_are_repeated_twice() {
        let boot = Boot { outcome: Outcome::Invalid("killed".into()), ..Boot::default() };
        let reasons = [0, 1, 2].map(|repeats| reason(Mode::Exact, &boot, repeats));
        assert_eq!(reasons, [Some("killed".into()), Some("killed".into()), None]);
    }

    #[test]
    fn a_boot_in_which_the_emulator_may_have_lost_an_interrupt_is_repeated_once() {
        let starved = "rcu: rcu_sched kthread starved for 5250 jiffies! g-1127 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x402 ->cpu=1";
        let expired =
            "rcu: rcu_preempt kthread timer wakeup didn't happen for 5245 jiffies! g-1175 f0x0";
        for text in [starved, expired] {
            let boot = timed_out(Execution::Tcg, text);
            let why = reason(Mode::Measured, &boot, 0).unwrap();
            assert!(
                why.starts_with("the agent did not start within 3m; the kernel's RCU"),
                "{why}"
            );
            assert_eq!(reason(Mode::Measured, &boot, 1), None);
            assert_eq!(reason(Mode::Exact, &boot, 0), None);
            assert_eq!(reason(Mode::Measured, &timed_out(Execution::Kvm, text), 0), None);
        }
        let lockup = "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [cat:71]";
        assert_eq!(reason(Mode::Measured, &timed_out(Execution::Tcg, lockup), 0), None);
        let failed =
            Boot { outcome: Outcome::Failed("no".into()), ..timed_out(Execution::Tcg, starved) };
        assert_eq!(reason(Mode::Measured, &failed, 0), None);
    }
}
