//! What options of the configuration and the compiler add to functions everywhere: calls that the source of the
//! function does not have, targets of indirect calls, and other instructions of an architecture.

use std::collections::BTreeSet;

use serde::Serialize;

/// The name of indirect branch tracking: functions begin with `endbr64`, an instruction at which indirect calls may
/// arrive (`CONFIG_X86_KERNEL_IBT`, `-fcf-protection=branch`).
pub const IBT: &str = "IBT";

/// Beginnings of the names of called functions, and what their calls come from. Sources: the symbols that GCC and
/// Clang document for `-fstack-protector`, `-mindirect-branch`, `-mfunction-return`, `-fsanitize` and
/// `-fsanitize-coverage`, and `include/linux/{rcupdate,preempt,lockdep,kernel}.h` of the kernel.
const CALLS: [(&str, &str); 18] = [
    ("__stack_chk_fail", "the stack protector"),
    ("__asan_", "KASAN"),
    ("__kasan_check_", "KASAN"),
    ("__tsan_", "KCSAN"),
    ("__kcsan_check_", "KCSAN"),
    ("__msan_", "KMSAN"),
    ("__ubsan_handle_", "UBSAN"),
    ("__sanitizer_cov_", "KCOV"),
    ("__gcov_", "GCOV"),
    ("__x86_indirect_thunk", "retpolines"),
    ("__x86_return_thunk", "return thunks"),
    ("lock_acquire", "lockdep"),
    ("lock_release", "lockdep"),
    ("__rcu_read_lock", "preemptible RCU"),
    ("__rcu_read_unlock", "preemptible RCU"),
    ("preempt_schedule", "kernel preemption"),
    ("__SCT__preempt_schedule", "kernel preemption"),
    ("__phys_addr", "checked physical addresses"),
];
/// What a function gains or loses with its own source too, such as `retpolines` by a call of a pointer. It counts only
/// if the other kernel has no such function to call.
const OF_SOURCE: [&str; 6] = [
    "retpolines", "return thunks", "lockdep", "preemptible RCU", "kernel preemption",
    "checked physical addresses",
];

/// The instrumentation for which a kernel has functions to call, by the names of its functions.
pub(crate) fn known<'a>(functions: impl Iterator<Item = &'a str>) -> BTreeSet<&'static str> {
    functions.filter_map(kind).collect()
}

/// What the code of only one kernel is instrumented with, such as `the stack protector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Instrumentation {
    /// What only the other kernel's code has.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub gained: BTreeSet<&'static str>,
    /// What only the baseline's code has.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub lost: BTreeSet<&'static str>,
}

impl Instrumentation {
    /// Compares what a function is instrumented with in the baseline and in the other kernel. `known` is what each
    /// kernel has functions for.
    pub(crate) fn of(
        [base, new]: [BTreeSet<&'static str>; 2],
        known: &[BTreeSet<&'static str>; 2],
    ) -> Self {
        let only = |of: &BTreeSet<&'static str>, other: &BTreeSet<_>, place: usize| {
            let is_sure = |kind: &&&str| !OF_SOURCE.contains(kind) || !known[place].contains(*kind);
            (of - other).iter().filter(is_sure).copied().collect()
        };
        Self { gained: only(&new, &base, 0), lost: only(&base, &new, 1) }
    }
}

/// What a call of this function comes from; `None` if the function's own source can have it.
fn kind(called: &str) -> Option<&'static str> {
    CALLS.iter().find(|(begin, _)| called.starts_with(begin)).map(|(_, kind)| *kind)
}
