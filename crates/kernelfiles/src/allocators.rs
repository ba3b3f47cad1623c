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

/// Functions of [`KMALLOC`] that do not have the size as their first argument, and which one it is; 0 if none is.
const SIZE: [(&str, u8); 6] = [
    ("__kmalloc_cache", 3),
    ("__kmalloc_cache_node", 4),
    ("kmalloc_node_trace", 4),
    ("kmalloc_trace", 3),
    ("kmem_cache_alloc_node_trace", 4),
    ("kmem_cache_alloc_trace", 3),
];
/// Parts of names of those whose size is none of the arguments, or is more than one.
const OTHER_SIZE: [&str; 6] = ["array", "asprintf", "calloc", "devm", "dup", "realloc"];

/// Whether a function, given without suffixes of compilers, returns memory of `kmalloc` or `kvmalloc`, and which of its
/// arguments is the size, from 1; 0 if none is.
pub fn kmalloc(function: &str) -> Option<u8> {
    let name = without_suffix(function);
    KMALLOC.contains(&name).then_some(())?;
    let known = SIZE.iter().find(|(of, _)| *of == name).map(|(_, argument)| *argument);
    let is_other = OTHER_SIZE.iter().any(|part| name.contains(part));
    Some(known.unwrap_or(u8::from(!is_other)))
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
            assert!(kmalloc(name).is_some(), "{name}");
        }
        for name in ["kmalloc_slab", "kmalloc_reserve", "kmem_cache_alloc_noprof", "kfree", ""] {
            assert!(kmalloc(name).is_none() && !is_per_cpu(name), "{name}");
        }
        let sized = ["__kmalloc_noprof", "kmalloc_node_trace", "__kmalloc_cache_noprof", "kcalloc"];
        assert_eq!(sized.map(kmalloc), [Some(1), Some(4), Some(3), Some(0)]);
        assert_eq!(["kasprintf", "kmemdup_noprof", "krealloc"].map(kmalloc), [Some(0); 3]);
        let per_cpu = ["pcpu_alloc", "pcpu_alloc_noprof", "__alloc_percpu", "pcpu_alloc_area"];
        assert_eq!(per_cpu.map(is_per_cpu), [true, true, true, false]);
    }
}
