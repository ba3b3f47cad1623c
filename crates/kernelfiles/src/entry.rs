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
const SYSTEM_CALLS: [&str; 3] = ["__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_"];

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

#[cfg(test)]
mod tests {
    use super::*;

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
