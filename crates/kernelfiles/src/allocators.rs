//! Names of the functions that allocate memory without a type.

/// Functions that return memory of `kmalloc`, and those that fill it before they return it. What they allocate is named
/// by who calls them. They are in `mm/slub.c`, `mm/slab_common.c`, `mm/util.c`, `lib/kasprintf.c` and `drivers/base/devres.c`
/// of Linux 5.10, 6.1, 6.12 and 7.3. Some are inlined there, and have no symbol. Since 6.10 many have the suffix `_noprof`.
const KMALLOC: [&str; 58] = [
    "___kmalloc_large_node", "__devm_kmalloc", "__kmalloc", "__kmalloc_cache",
    "__kmalloc_cache_node", "__kmalloc_flags", "__kmalloc_large", "__kmalloc_large_node",
    "__kmalloc_node", "__kmalloc_node_track_caller", "__kmalloc_nolock", "__kmalloc_track_caller",
    "__kvmalloc_node", "_kmalloc_nolock", "_kzalloc", "devm_kasprintf", "devm_kmalloc",
    "devm_kmemdup", "devm_krealloc", "devm_kstrdup", "devm_kvasprintf", "kasprintf", "kcalloc",
    "kmalloc", "kmalloc_array", "kmalloc_array_node", "kmalloc_large", "kmalloc_large_node",
    "kmalloc_node_trace", "kmalloc_nolock", "kmalloc_order", "kmalloc_order_trace",
    "kmalloc_trace", "kmem_cache_alloc_node_trace", "kmem_cache_alloc_trace", "kmemdup",
    "kmemdup_array", "kmemdup_nul", "krealloc", "krealloc_node_align", "kstrdup",
    "kstrdup_and_replace", "kstrdup_const", "kstrndup", "kvasprintf", "kvasprintf_const",
    "kvcalloc", "kvmalloc", "kvmalloc_array", "kvmalloc_node", "kvmemdup", "kvrealloc",
    "kvrealloc_node_align", "kzalloc", "memdup_user", "memdup_user_nul", "strndup_user",
    "vmemdup_user",
];

/// Functions that return per-CPU memory, whose size is their first argument (`mm/percpu.c` of the same versions).
const PER_CPU: [&str; 4] =
    ["__alloc_percpu", "__alloc_percpu_gfp", "__alloc_reserved_percpu", "pcpu_alloc"];

/// Whether a function, given without suffixes of compilers, returns memory of `kmalloc` or `kvmalloc`.
pub fn is_kmalloc(function: &str) -> bool {
    KMALLOC.contains(&without_suffix(function))
}

/// Whether a function, given without suffixes of compilers, returns per-CPU memory of the size of its first argument.
pub fn is_per_cpu(function: &str) -> bool {
    PER_CPU.contains(&without_suffix(function))
}

fn without_suffix(function: &str) -> &str {
    function.strip_suffix("_noprof").unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_return_memory_are_told_from_their_neighbours() {
        for name in
            ["__kmalloc", "kmalloc_trace", "__kmalloc_cache_noprof", "__kvmalloc_node_noprof"]
        {
            assert!(is_kmalloc(name), "{name}");
        }
        for name in ["kmalloc_slab", "kmalloc_reserve", "kmem_cache_alloc_noprof", "kfree", ""] {
            assert!(!is_kmalloc(name) && !is_per_cpu(name), "{name}");
        }
        let per_cpu = ["pcpu_alloc", "pcpu_alloc_noprof", "__alloc_percpu", "pcpu_alloc_area"];
        assert_eq!(per_cpu.map(is_per_cpu), [true, true, true, false]);
    }
}
