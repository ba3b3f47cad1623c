//! The types of memory that `kmalloc` returned.

use super::Types;

/// Functions, and a type that each allocates. What an inlined function allocates has the name of its caller. They are in
/// `mm/memcontrol.c`, `kernel/sched/fair.c`, `fs/super.c`, `fs/pipe.c` and `fs/file.c` of Linux 5.10, 6.1, 6.12 and 7.3.
const ALLOCATED: [(&str, &str); 13] = [
    ("alloc_fair_sched_group", "cfs_rq"),
    ("alloc_fair_sched_group", "sched_entity"),
    ("alloc_fdtable", "fdtable"),
    ("alloc_mem_cgroup_per_node_info", "lruvec_stats"),
    ("alloc_mem_cgroup_per_node_info", "mem_cgroup_per_node"),
    ("alloc_pipe_info", "pipe_inode_info"),
    ("alloc_super", "super_block"),
    ("mem_cgroup_alloc", "mem_cgroup"),
    ("mem_cgroup_css_alloc", "lruvec_stats"),
    ("mem_cgroup_css_alloc", "mem_cgroup"),
    ("mem_cgroup_css_alloc", "mem_cgroup_per_node"),
    ("mem_cgroup_css_alloc", "memcg_vmstats"),
    ("mem_cgroup_css_online", "obj_cgroup"),
];
/// What can be behind a type's own fields: an array, of an element for each node.
const MOST_BEHIND: u64 = 1024;
/// Larger objects of `kmalloc` have a power of two as distance, and begin at a multiple of it (`mm/slab_common.c`,
/// `kmalloc_info`).
const LARGEST_OTHER: u64 = 192;

impl Types {
    /// The type of an object of this many bytes that this function allocated: the largest of its types that fits. `None` if
    /// none is known, or the object is larger than an array behind it explains.
    pub fn allocated(&self, function: &str, size: u64) -> Option<&'static str> {
        let own = ALLOCATED.iter().filter(|(of, _)| *of == function).map(|(_, name)| *name);
        let sizes = own.filter_map(|name| Some((self.size(&self.structure(name)?)?, name)));
        let fits = |it: &(u64, &str)| (it.0..it.0 + MOST_BEHIND).contains(&size);
        sizes.filter(fits).max().map(|(_, name)| name)
    }
}

/// Whether objects of a type with this size are allocated by `kmalloc` alone, so that each begins at a line.
pub fn begins_at_line(name: &str, size: u64) -> bool {
    size > LARGEST_OTHER && ALLOCATED.iter().any(|(_, of)| *of == name)
}
