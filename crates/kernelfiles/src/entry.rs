//! Names of the functions by which kernels are entered, of each architecture.

mod arm64;
mod x86_64;

/// The functions of an architecture by which the kernel is entered.
struct Entries {
    /// Functions that every system call, every exception or every new task passes.
    passed: &'static [&'static str],
    /// Beginnings of the names of such functions.
    beginnings: &'static [&'static str],
    /// Beginnings of the names of the functions of system calls.
    system_calls: &'static [&'static str],
    /// Beginnings of the names of functions that every system call passes, and no exception.
    calls: &'static [&'static str],
    /// Functions that system calls and exceptions pass before and after all others.
    shared: &'static [&'static str],
    /// The name of the exception that a function begins to handle.
    exception: fn(&str) -> Option<&str>,
    /// The name of the interrupt that a function begins to handle.
    interrupt: fn(&str) -> Option<&str>,
}

/// The architectures. Their names differ, so one list serves for all.
const ALL: [Entries; 2] = [x86_64::ENTRIES, arm64::ENTRIES];

/// Returns whether a function only leads to what is asked of the kernel: every system call, every exception, every
/// softirq, or every kernel thread passes it.
pub fn is_entry(function: &str) -> bool {
    let is_of = |it: &Entries| {
        it.shared.contains(&function)
            || it.passed.contains(&without_suffix(function))
            || it.beginnings.iter().any(|first| function.starts_with(first))
    };
    SOFTIRQ_ENTRIES.contains(&function) || ALL.iter().any(is_of)
}

/// A function's name without what a compiler adds to that of a changed copy, such as `.constprop.0`.
fn without_suffix(function: &str) -> &str {
    function.split_once('.').map_or(function, |(name, _)| name)
}

/// Returns the name of the system call that a function carries out, such as `openat` for `__x64_sys_openat`. `None`
/// for other functions.
pub fn system_call(function: &str) -> Option<&str> {
    let mut beginnings = ALL.iter().flat_map(|it| it.system_calls);
    beginnings.find_map(|first| function.strip_prefix(first)).filter(|it| !it.is_empty())
}

/// What made a processor execute a path of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Its kind and name, such as `system call clone`.
    pub name: String,
    /// The place in the path of the function with which it begins.
    pub begin: usize,
}

/// Returns what made a processor execute a path of the kernel, outermost function first: the innermost interrupt, softirq
/// or end of a task switch, otherwise signals, otherwise the system call, otherwise the exception, otherwise the kernel
/// thread by its function, otherwise the idle task of any CPU. `None` for other paths. A softirq is one reason, whether
/// an interrupt or `ksoftirqd` handles it. Work that a task left for the end of its system call (`task_work_add`), such
/// as the last `fput` of a file, is one of its own.
pub fn reason(path: &[&str]) -> Option<Reason> {
    let at = |name: fn(&[&str]) -> Option<String>, begin: usize| {
        Some(Reason { name: name(&path[begin..])?, begin })
    };
    let first = |name| (0..path.len()).find_map(|begin| at(name, begin));
    let inner = |begin| at(interrupt, begin).or_else(|| at(switch, begin));
    let others = [signal, call, exception, thread, task_work, calls, shared, idle];
    (0..path.len()).rev().find_map(inner).or_else(|| others.into_iter().find_map(first))
}

/// How the names of reasons that are system calls begin; the call's name follows.
pub const SYSTEM_CALL: &str = "system call ";
/// How the names of reasons that are exceptions begin; its name follows.
pub const EXCEPTION: &str = "exception ";

/// How the names of reasons that are kernel threads begin; the thread's function follows.
pub const THREAD: &str = "kernel thread ";

/// Returns the system call whose function a path begins with.
fn call(path: &[&str]) -> Option<String> {
    system_call(path.first()?).map(|it| format!("{SYSTEM_CALL}{it}"))
}

/// Returns the exception by which a path is entered.
fn exception(path: &[&str]) -> Option<String> {
    let function = path.first()?;
    ALL.iter().find_map(|it| (it.exception)(function)).map(|it| format!("{EXCEPTION}{it}"))
}

/// Returns the reason that a function begins if it is a system call or an exception, such as `system call clone`. `None`
/// for other functions.
pub fn asked(function: &str) -> Option<String> {
    let path = [function];
    call(&path).or_else(|| exception(&path))
}

/// Returns the kernel thread that a path begins.
fn thread(path: &[&str]) -> Option<String> {
    match path {
        ["kthread", function, ..] if !is_entry(function) => Some(format!("{THREAD}{function}")),
        _ => None,
    }
}

/// Returns the reason of a path that begins in the loop of the idle task (`kernel/sched/idle.c`), which the boot CPU
/// enters by `start_kernel`, and others by a function of their own.
fn idle(path: &[&str]) -> Option<String> {
    (path.first() == Some(&"cpu_startup_entry")).then(|| "idle task".to_owned())
}

/// Returns the reason of a path that begins what a task switch does for the task that ran before, such as freeing its
/// address space after its exit (`finish_task_switch` of `kernel/sched/core.c`). The task that runs now has no part in it.
fn switch(path: &[&str]) -> Option<String> {
    let is_one = without_suffix(path.first()?) == "finish_task_switch" && path.len() > 1;
    is_one.then(|| "end of a task switch".to_owned())
}

/// Returns the reason of a path that begins to handle signals (`kernel/signal.c`), which a task does before it returns to
/// its program.
fn signal(path: &[&str]) -> Option<String> {
    let is_one = ["arch_do_signal_or_restart", "do_signal", "get_signal"].contains(path.first()?);
    let name = if path.contains(&"do_group_exit") { "exit by a signal" } else { "signals" };
    is_one.then(|| name.to_owned())
}

/// Returns the reason of a path that begins work which system calls leave for their end.
fn task_work(path: &[&str]) -> Option<String> {
    let is_one = path.first() == Some(&"task_work_run");
    is_one.then(|| "task work at the end of system calls".to_owned())
}

/// Returns the reason of a path that begins with a function that system calls and exceptions pass.
fn shared(path: &[&str]) -> Option<String> {
    let function = path.first()?;
    let is_one = ALL.iter().any(|it| it.shared.contains(function));
    is_one.then(|| "entry and exit of system calls and exceptions".to_owned())
}

/// Returns the reason of a path that begins with a function that every system call passes.
fn calls(path: &[&str]) -> Option<String> {
    let function = path.first()?;
    let is_one = ALL.iter().flat_map(|it| it.calls).any(|first| function.starts_with(first));
    is_one.then(|| "entry and exit of system calls".to_owned())
}

/// Returns the interrupt by which a path is entered, or the softirq that it begins to handle.
fn interrupt(path: &[&str]) -> Option<String> {
    match path {
        [function, rest @ ..] if SOFTIRQ_ENTRIES.contains(function) => {
            let known = SOFTIRQS.iter().find(|(handler, _)| rest.first() == Some(handler));
            let name = known.map_or("in general", |(_, name)| name);
            Some(format!("softirq {name}"))
        }
        [function, ..] => {
            ALL.iter().find_map(|it| (it.interrupt)(function)).map(|it| format!("interrupt {it}"))
        }
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
        let arm64 =
            ["el0t_64_sync", "el0t_64_sync_handler", "el0_svc", "invoke_syscall.constprop.0"];
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
            (vec!["start_kernel", "rest_init", "cpu_startup_entry", "do_idle"], Some("idle task")),
            (vec!["start_secondary", "cpu_startup_entry", "do_idle"], Some("idle task")),
            (call[..2].to_vec(), Some("entry and exit of system calls")),
            (
                both(&call[..2], &["syscall_exit_to_user_mode", "task_work_run", "____fput"]),
                Some("task work at the end of system calls"),
            ),
            (both(&call, &["__schedule", "finish_task_switch.isra.0"]), Some("system call clone")),
            (
                both(&call, &["__schedule", "finish_task_switch.isra.0", "__mmdrop"]),
                Some("end of a task switch"),
            ),
            (
                both(&both(&call, &["finish_task_switch", "x"]), &timer),
                Some("interrupt apic_timer_interrupt"),
            ),
            (
                both(&both(&call, &timer), &["schedule", "finish_task_switch", "x"]),
                Some("end of a task switch"),
            ),
            (
                both(&fault, &["irqentry_exit_to_user_mode", "arch_do_signal_or_restart", "x"]),
                Some("signals"),
            ),
            (
                both(&call[..2], &["get_signal", "do_group_exit", "do_exit", "x"]),
                Some("exit by a signal"),
            ),
            (
                vec!["entry_SYSCALL_64", "do_syscall_64", "__do_sys_getppid"],
                Some("system call getppid"),
            ),
            (arm64.to_vec(), Some("entry and exit of system calls")),
            (both(&arm64, &["__arm64_sys_munmap", "x"]), Some("system call munmap")),
            (both(&arm64[..2], &["el0_da", "do_mem_abort", "x"]), Some("exception mem_abort")),
            (both(&arm64[..2], &["do_mem_abort", "x"]), Some("exception mem_abort")),
            (both(&arm64[..2], &["el0_fpsimd_acc"]), Some("exception fpsimd_acc")),
            (both(&arm64, &["el1h_64_irq", "el1_interrupt"]), Some("interrupt irq")),
            (
                both(&["el0t_64_irq", "el0_interrupt"], &["handle_softirqs"]),
                Some("softirq in general"),
            ),
            (arm64[..2].to_vec(), Some("entry and exit of system calls and exceptions")),
            (vec!["do_idle"], None),
            (vec![], None),
        ] {
            let found = reason(&path).map(|it| it.name);
            assert_eq!(found.as_deref(), expected, "{path:?}");
        }
    }

    #[test]
    fn entries_and_system_calls_are_told_from_other_functions() {
        for entry in [
            "entry_SYSCALL_64_after_hwframe",
            "x64_sys_call",
            "asm_exc_page_fault",
            "kthread",
            "el0_svc_common.constprop.0",
            "el0t_64_sync_handler",
            "el0t_64_irq_handler",
            "el0_da",
        ] {
            assert!(is_entry(entry), "{entry}");
        }
        for other in
            ["__x64_sys_clone", "exc_page_fault", "kthread_stop", "kernel", "", "do_page_fault"]
        {
            assert!(!is_entry(other), "{other}");
        }
        assert_eq!(system_call("__x64_sys_exit_group"), Some("exit_group"));
        assert_eq!(system_call("__arm64_sys_exit_group"), Some("exit_group"));
        assert_eq!(system_call("__ia32_compat_sys_execve"), Some("execve"));
        assert_eq!(system_call("__ia32_sys_brk"), Some("brk"));
        assert_eq!(system_call("__x64_sys_"), None);
        assert_eq!(system_call("x64_sys_call"), None);
        for (function, expected) in [
            ("__x64_sys_brk", Some("system call brk")),
            ("asm_exc_page_fault", Some("exception page_fault")),
            ("exc_page_fault", None),
            ("asm_sysvec_apic_timer_interrupt", None),
        ] {
            assert_eq!(asked(function).as_deref(), expected);
        }
    }
}
