//! Names of the functions by which x86-64 kernels are entered (`arch/x86/entry`).

/// Functions that every system call, every exception or every new task passes.
const ENTRIES: [&str; 12] = [
    "do_syscall_64", "x64_sys_call", "ia32_sys_call", "do_int80_emulation", "do_fast_syscall_32",
    "do_SYSENTER_32", "__do_fast_syscall_32", "error_entry", "ret_from_fork", "ret_from_fork_asm",
    "kthread", "asm_common_interrupt",
];
/// Beginnings of the names of such functions.
const FIRST: [&str; 5] =
    ["entry_SYSCALL_", "entry_SYSENTER_", "entry_INT80_", "asm_exc_", "asm_sysvec_"];
/// Beginnings of the names of the functions of system calls (`arch/x86/include/asm/syscall_wrapper.h`).
/// One without arguments has its other name at the same address.
const SYSTEM_CALLS: [&str; 4] = ["__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "__do_sys_"];

/// Returns whether a function only leads to what is asked of the kernel: every system call, every exception, or
/// every kernel thread passes it.
pub fn is_entry(function: &str) -> bool {
    ENTRIES.contains(&function) || FIRST.iter().any(|first| function.starts_with(first))
}

/// Returns the name of the system call that a function carries out, such as `openat` for `__x64_sys_openat`. `None`
/// for other functions.
pub fn system_call(function: &str) -> Option<&str> {
    SYSTEM_CALLS.iter().find_map(|first| function.strip_prefix(first)).filter(|it| !it.is_empty())
}

/// Returns what made a processor execute a path of the kernel, outermost function first: the innermost interrupt or
/// softirq, otherwise the system call, otherwise the exception, otherwise the kernel thread by its function. `None` for
/// other paths, such as those of the idle task. A softirq is one reason, whether an interrupt or `ksoftirqd` handles it.
/// Work that a task left for the end of its system call (`task_work_add`), such as the last `fput` of a file, is one of
/// its own.
pub fn reason(path: &[&str]) -> Option<String> {
    let mut places = (0..path.len()).rev();
    let interrupt =
        places.find_map(|place| interrupt(path[place]).or_else(|| softirq(&path[place..])));
    let call = || path.iter().find_map(|it| system_call(it));
    let exception = || path.iter().find_map(|it| it.strip_prefix("asm_exc_"));
    let thread = || {
        let begin = path.iter().position(|it| *it == "kthread")?;
        path.get(begin + 1).copied().filter(|it| !is_entry(it))
    };
    let named = |kind: &str, name: &str| format!("{kind} {name}");
    interrupt
        .or_else(|| call().map(|it| named("system call", it)))
        .or_else(|| exception().map(|it| named("exception", it)))
        .or_else(|| thread().map(|it| named("kernel thread", it)))
        .or_else(|| path.contains(&"task_work_run").then(|| TASK_WORK.to_owned()))
        .or_else(|| path.iter().any(|it| is_of_call(it)).then(|| CALLS.to_owned()))
}

/// The reason for work that system calls leave for their end.
const TASK_WORK: &str = "task work at the end of system calls";
/// The reason for what every system call executes.
const CALLS: &str = "entry and exit of system calls";

/// Whether every system call passes a function.
fn is_of_call(function: &str) -> bool {
    let entries = ["do_syscall_64", "do_int80_emulation", "do_fast_syscall_32"];
    let first = ["entry_SYSCALL_", "entry_SYSENTER_", "entry_INT80_", "syscall_return_"];
    entries.contains(&function) || first.iter().any(|first| function.starts_with(first))
}

/// Returns the interrupt by which a function is entered.
fn interrupt(function: &str) -> Option<String> {
    match function {
        "asm_common_interrupt" => Some("interrupt of a device or the HPET".to_owned()),
        _ => function.strip_prefix("asm_sysvec_").map(|it| format!("interrupt {it}")),
    }
}

/// The functions that handle softirqs, each with the softirq's name in `/proc/softirqs` (`kernel/softirq.c`).
const SOFTIRQS: [(&str, &str); 13] = [
    ("tasklet_hi_action", "HI"),
    ("run_timer_softirq", "TIMER"),
    ("net_tx_action", "NET_TX"),
    ("net_rx_action", "NET_RX"),
    ("blk_done_softirq", "BLOCK"),
    ("irq_poll_softirq", "IRQ_POLL"),
    ("tasklet_action", "TASKLET"),
    ("tasklet_action_common", "TASKLET"),
    ("run_rebalance_domains", "SCHED"),
    ("sched_balance_softirq", "SCHED"),
    ("hrtimer_run_softirq", "HRTIMER"),
    ("rcu_core", "RCU"),
    ("rcu_core_si", "RCU"),
];

/// Returns the softirq that a path begins to handle. `None` if its first function does not handle softirqs.
fn softirq(path: &[&str]) -> Option<String> {
    let (&first, rest) = path.split_first()?;
    let handler = rest.first().copied().unwrap_or_default();
    let known = SOFTIRQS.iter().find(|(function, _)| *function == handler);
    let name = known.map_or("in general", |(_, name)| name);
    ["handle_softirqs", "__do_softirq"].contains(&first).then(|| format!("softirq {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_reason() {
        let call = ["entry_SYSCALL_64", "do_syscall_64", "__x64_sys_clone", "kernel_clone"];
        let timer = ["asm_sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt"];
        let fault = ["asm_exc_page_fault", "exc_page_fault"];
        let thread = ["ret_from_fork_asm", "ret_from_fork", "kthread", "ksm_scan_thread", "x"];
        let both = |one: &[&'static str], other: &[&'static str]| [one, other].concat();
        for (path, expected) in [
            (call.to_vec(), Some("system call clone")),
            (both(&call, &fault), Some("system call clone")),
            (both(&call, &timer), Some("interrupt apic_timer_interrupt")),
            (
                both(&both(&fault, &timer), &["asm_common_interrupt"]),
                Some("interrupt of a device or the HPET"),
            ),
            (fault.to_vec(), Some("exception page_fault")),
            (both(&timer, &["handle_softirqs", "rcu_core", "x"]), Some("softirq RCU")),
            (
                both(&thread[..3], &["smpboot_thread_fn", "__do_softirq"]),
                Some("softirq in general"),
            ),
            (
                both(&["handle_softirqs", "run_timer_softirq"], &timer),
                Some("interrupt apic_timer_interrupt"),
            ),
            (thread.to_vec(), Some("kernel thread ksm_scan_thread")),
            (thread[..3].to_vec(), None),
            (call[..2].to_vec(), Some("entry and exit of system calls")),
            (
                both(&call[..2], &["syscall_exit_to_user_mode", "task_work_run", "____fput"]),
                Some("task work at the end of system calls"),
            ),
            (
                vec!["entry_SYSCALL_64", "do_syscall_64", "__do_sys_getppid"],
                Some("system call getppid"),
            ),
            (vec!["do_idle"], None),
            (vec![], None),
        ] {
            assert_eq!(reason(&path).as_deref(), expected, "{path:?}");
        }
    }

    #[test]
    fn entries_and_system_calls_are_told_from_other_functions() {
        for entry in
            ["entry_SYSCALL_64_after_hwframe", "x64_sys_call", "asm_exc_page_fault", "kthread"]
        {
            assert!(is_entry(entry), "{entry}");
        }
        for other in ["__x64_sys_clone", "exc_page_fault", "kthread_stop", "kernel", ""] {
            assert!(!is_entry(other), "{other}");
        }
        assert_eq!(system_call("__x64_sys_exit_group"), Some("exit_group"));
        assert_eq!(system_call("__ia32_compat_sys_execve"), Some("execve"));
        assert_eq!(system_call("__ia32_sys_brk"), Some("brk"));
        assert_eq!(system_call("__x64_sys_"), None);
        assert_eq!(system_call("x64_sys_call"), None);
    }
}
