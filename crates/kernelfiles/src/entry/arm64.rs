//! The names of arm64 (`arch/arm64/kernel/entry.S`, `entry-common.c` and `syscall.c`).

use super::Entries;

pub const ENTRIES: Entries = Entries {
    passed: &[
        "el0_svc", "do_el0_svc", "el0_svc_common", "invoke_syscall", "do_mem_abort",
        "el1_interrupt", "el0_interrupt", "do_interrupt_handler", "call_on_irq_stack",
    ],
    beginnings: &[
        "el0t_64_irq", "el1h_64_irq", "el0t_64_fiq", "el1h_64_fiq", "el0_da", "el0_ia", "el1_abort",
    ],
    // `arch/arm64/include/asm/syscall_wrapper.h`.
    system_calls: &["__arm64_sys_", "__arm64_compat_sys_"],
    calls: &["el0_svc", "do_el0_svc", "invoke_syscall"],
    shared: &[
        "vectors", "el0t_64_sync", "el0t_64_sync_handler", "el1h_64_sync", "el1h_64_sync_handler",
        "ret_to_user", "ret_to_kernel",
    ],
    exception,
    interrupt: |function| {
        let name = function.strip_prefix("el0t_64_").or_else(|| function.strip_prefix("el1h_64_"));
        name.filter(|it| ["irq", "fiq"].contains(it))
    },
};

/// Aborts have one name, because compilers inline the functions before `do_mem_abort`.
fn exception(function: &str) -> Option<&str> {
    match function {
        "el0_da" | "el0_ia" | "el1_abort" | "do_mem_abort" => Some("mem_abort"),
        _ => OTHERS.contains(&function).then(|| &function["el0_".len()..]),
    }
}

/// Functions of other exceptions (`el0t_64_sync_handler`, `el1h_64_sync_handler`).
const OTHERS: [&str; 17] = [
    "el0_fpsimd_acc", "el0_sve_acc", "el0_sme_acc", "el0_fpsimd_exc", "el0_sys", "el0_sp",
    "el0_pc", "el0_undef", "el0_bti", "el0_mops", "el0_gcs", "el0_fpac", "el0_dbg", "el1_undef",
    "el1_bti", "el1_dbg", "el1_pc",
];
