//! The names of x86-64 (`arch/x86/entry`).

use super::Entries;

pub const ENTRIES: Entries = Entries {
    passed: &[
        "do_syscall_64", "x64_sys_call", "ia32_sys_call", "do_int80_emulation",
        "do_fast_syscall_32", "do_SYSENTER_32", "__do_fast_syscall_32", "error_entry",
        "ret_from_fork", "ret_from_fork_asm", "kthread", "asm_common_interrupt",
    ],
    beginnings: &["entry_SYSCALL_", "entry_SYSENTER_", "entry_INT80_", "asm_exc_", "asm_sysvec_"],
    // One without arguments has its other name at the same address (`arch/x86/include/asm/syscall_wrapper.h`).
    system_calls: &["__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "__do_sys_"],
    calls: &[
        "do_syscall_64", "do_int80_emulation", "do_fast_syscall_32", "entry_SYSCALL_",
        "entry_SYSENTER_", "entry_INT80_", "syscall_return_",
    ],
    shared: &[],
    exception: |function| function.strip_prefix("asm_exc_"),
    interrupt: |function| match function {
        "asm_common_interrupt" => Some("of a device or the HPET"),
        _ => function.strip_prefix("asm_sysvec_"),
    },
};
