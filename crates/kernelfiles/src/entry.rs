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

/// Returns whether a function only leads to what is asked of the kernel: every system call, every exception, every
/// softirq, or every kernel thread passes it.
pub fn is_entry(function: &str) -> bool {
    ENTRIES.contains(&function)
        || SOFTIRQ_ENTRIES.contains(&function)
        || FIRST.iter().any(|first| function.starts_with(first))
}

/// Returns the name of the system call that a function carries out, such as `openat` for `__x64_sys_openat`. `None`
/// for other functions.
pub fn system_call(function: &str) -> Option<&str> {
    SYSTEM_CALLS.iter().find_map(|first| function.strip_prefix(first)).filter(|it| !it.is_empty())
}

/// What made a processor execute a path of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Its kind and name, such as `system call clone`.
    pub name: String,
    /// The place in the path of the function with which it begins.
    pub begin: usize,
}

/// Returns what made a processor execute a path of the kernel, outermost function first: the innermost interrupt or
/// softirq, otherwise the system call, otherwise the exception, otherwise the kernel thread by its function. `None` for
/// other paths, such as those of the idle task. A softirq is one reason, whether an interrupt or `ksoftirqd` handles it.
/// Work that a task left for the end of its system call (`task_work_add`), such as the last `fput` of a file, is one of
/// its own.
pub fn reason(path: &[&str]) -> Option<Reason> {
    let at = |name: fn(&[&str]) -> Option<String>, begin: usize| {
        Some(Reason { name: name(&path[begin..])?, begin })
    };
    let first = |name| (0..path.len()).find_map(|begin| at(name, begin));
    let interrupt = (0..path.len()).rev().find_map(|begin| at(interrupt, begin));
    interrupt.or_else(|| [call, exception, thread, task_work, calls].into_iter().find_map(first))
}

/// Returns the system call whose function a path begins with.
fn call(path: &[&str]) -> Option<String> {
    system_call(path.first()?).map(|it| format!("system call {it}"))
}

/// Returns the exception by which a path is entered.
fn exception(path: &[&str]) -> Option<String> {
    path.first()?.strip_prefix("asm_exc_").map(|it| format!("exception {it}"))
}

/// Returns the kernel thread that a path begins.
fn thread(path: &[&str]) -> Option<String> {
    match path {
        ["kthread", function, ..] if !is_entry(function) => {
            Some(format!("kernel thread {function}"))
        }
        _ => None,
    }
}

/// Returns the reason of a path that begins work which system calls leave for their end.
fn task_work(path: &[&str]) -> Option<String> {
    let is_one = path.first() == Some(&"task_work_run");
    is_one.then(|| "task work at the end of system calls".to_owned())
}

/// Returns the reason of a path that begins with a function that every system call passes.
fn calls(path: &[&str]) -> Option<String> {
    let entries = ["do_syscall_64", "do_int80_emulation", "do_fast_syscall_32"];
    let beginnings = ["entry_SYSCALL_", "entry_SYSENTER_", "entry_INT80_", "syscall_return_"];
    let function = path.first()?;
    let is_one = entries.contains(function) || beginnings.iter().any(|it| function.starts_with(it));
    is_one.then(|| "entry and exit of system calls".to_owned())
}

/// Returns the interrupt by which a path is entered, or the softirq that it begins to handle.
fn interrupt(path: &[&str]) -> Option<String> {
    match path {
        ["asm_common_interrupt", ..] => Some("interrupt of a device or the HPET".to_owned()),
        [function, rest @ ..] if SOFTIRQ_ENTRIES.contains(function) => {
            let known = SOFTIRQS.iter().find(|(handler, _)| rest.first() == Some(handler));
            let name = known.map_or("in general", |(_, name)| name);
            Some(format!("softirq {name}"))
        }
        [function, ..] => function.strip_prefix("asm_sysvec_").map(|it| format!("interrupt {it}")),
        [] => None,
    }
}

/// The functions that every softirq passes (`kernel/softirq.c`), by kernel.
const SOFTIRQ_ENTRIES: [&str; 2] = ["handle_softirqs", "__do_softirq"];
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
            let found = reason(&path).map(|it| it.name);
            assert_eq!(found.as_deref(), expected, "{path:?}");
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
