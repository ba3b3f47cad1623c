//! Plants ten instructions at the entry of one function after another, and checks that `explain` names each function
//! first. Some are entered often, some rarely, and some are inlined. Runs in `make check-long`.

use std::fmt::Write;

use crate::common::{Bench, quoted};

/// Functions of `mm/`: the file, the name, and the source up to the body's first line.
const FUNCTIONS: [(&str, &str, &str); 20] = [
    (
        "memory.c",
        "handle_mm_fault",
        "\t\t\t   unsigned int flags, struct pt_regs *regs)\n{\n\tvm_fault_t ret;\n",
    ),
    (
        "memory.c",
        "do_anonymous_page",
        "static vm_fault_t do_anonymous_page(struct vm_fault *vmf)\n{\n\
         \tstruct vm_area_struct *vma = vmf->vma;\n",
    ),
    (
        "memory.c",
        "do_wp_page",
        "\t__releases(vmf->ptl)\n{\n\tconst bool unshare = vmf->flags & FAULT_FLAG_UNSHARE;\n",
    ),
    (
        "memory.c",
        "zap_pte_range",
        "static unsigned long zap_pte_range(struct mmu_gather *tlb,\n\
         \t\t\t\tstruct vm_area_struct *vma, pmd_t *pmd,\n\
         \t\t\t\tunsigned long addr, unsigned long end,\n\
         \t\t\t\tstruct zap_details *details)\n{\n\tstruct mm_struct *mm = tlb->mm;\n",
    ),
    (
        "page_alloc.c",
        "__alloc_pages",
        "struct page *__alloc_pages(gfp_t gfp, unsigned int order, int preferred_nid,\n\
         \t\t\t\t\t\t\tnodemask_t *nodemask)\n{\n\tstruct page *page;\n",
    ),
    (
        "page_alloc.c",
        "rmqueue",
        "struct page *rmqueue(struct zone *preferred_zone,\n\
         \t\t\tstruct zone *zone, unsigned int order,\n\
         \t\t\tgfp_t gfp_flags, unsigned int alloc_flags,\n\
         \t\t\tint migratetype)\n{\n\tstruct page *page;\n",
    ),
    (
        "swap.c",
        "folio_add_lru",
        "void folio_add_lru(struct folio *folio)\n{\n\tstruct folio_batch *fbatch;\n",
    ),
    ("swap.c", "release_pages", "void release_pages(struct page **pages, int nr)\n{\n\tint i;\n"),
    (
        "memcontrol.c",
        "__mem_cgroup_charge",
        "int __mem_cgroup_charge(struct folio *folio, struct mm_struct *mm, gfp_t gfp)\n{\n\
         \tstruct mem_cgroup *memcg;\n",
    ),
    (
        "rmap.c",
        "page_remove_rmap",
        "\tstruct vm_area_struct *vma, bool compound)\n{\n\tlock_page_memcg(page);\n",
    ),
    (
        "rmap.c",
        "anon_vma_clone",
        "int anon_vma_clone(struct vm_area_struct *dst, struct vm_area_struct *src)\n{\n\
         \tstruct anon_vma_chain *avc, *pavc;\n",
    ),
    (
        "mmap.c",
        "find_vma",
        "struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long addr)\n{\n\
         \tunsigned long index = addr;\n",
    ),
    ("mmap.c", "exit_mmap", "void exit_mmap(struct mm_struct *mm)\n{\n\tstruct mmu_gather tlb;\n"),
    (
        "mmap.c",
        "mmap_region",
        "\t\t\t  unsigned long len, vm_flags_t vm_flags, unsigned long pgoff,\n\
         \t\t\t  struct list_head *uf)\n{\n\tunsigned long ret;\n",
    ),
    (
        "mmap.c",
        "__split_vma",
        "int __split_vma(struct mm_struct *mm, struct vm_area_struct *vma,\n\
         \t\tunsigned long addr, int new_below)\n{\n\tstruct vm_area_struct *new;\n",
    ),
    (
        "mmap.c",
        "vma_merge",
        "\t\t\tstruct anon_vma_name *anon_name)\n{\n\
         \tpgoff_t pglen = (end - addr) >> PAGE_SHIFT;\n",
    ),
    (
        "slub.c",
        "kmem_cache_alloc",
        "void *kmem_cache_alloc(struct kmem_cache *s, gfp_t gfpflags)\n{\n\
         \treturn __kmem_cache_alloc_lru(s, NULL, gfpflags);\n",
    ),
    (
        "filemap.c",
        "filemap_map_pages",
        "vm_fault_t filemap_map_pages(struct vm_fault *vmf,\n\
         \t\t\t     pgoff_t start_pgoff, pgoff_t end_pgoff)\n{\n\
         \tstruct vm_area_struct *vma = vmf->vma;\n",
    ),
    (
        "mempolicy.c",
        "do_set_mempolicy",
        "static long do_set_mempolicy(unsigned short mode, unsigned short flags,\n\
         \t\t\t     nodemask_t *nodes)\n{\n\tstruct mempolicy *new, *old;\n",
    ),
    (
        "shmem.c",
        "shmem_fault",
        "static vm_fault_t shmem_fault(struct vm_fault *vmf)\n{\n\
         \tstruct vm_area_struct *vma = vmf->vma;\n",
    ),
];

/// Gives `mm/` debug information, by which changes are followed into inlined functions. Everything else is compiled
/// as for other tests.
const DEBUG: &str = "--- a/mm/Makefile\n+++ b/mm/Makefile\n@@ -3,4 +3,5 @@\n # Makefile for the linux \
                     memory manager.\n #\n \n+ccflags-y += -g\n KASAN_SANITIZE_slab_common.o := n\n";

/// A patch that plants ten instructions, which change nothing, at the entry of a function. git finds the place by the
/// source, not by line numbers.
pub fn patch(file: &str, source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let mut patch = format!("--- a/mm/{file}\n+++ b/mm/{file}\n");
    writeln!(patch, "@@ -1000,{} +1000,{} @@", lines.len(), lines.len() + 1).unwrap();
    for line in &lines {
        writeln!(patch, " {line}").unwrap();
        if *line == "{" {
            patch += "+\tasm volatile(\".rept 10; lea (%rsp), %rsp; .endr\");\n";
        }
    }
    patch
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn each_planted_function_is_named_first() {
    let bench = Bench::new();
    let debug = bench.write("debug.patch", DEBUG);
    let variant = |name: &str, more: &str| {
        let patches = quoted(&debug) + more;
        format!(
            "[[variant]]\nname = \"{name}\"\nkernel = \"debian-source:6.1\"\n\
             patches = [{patches}]\n"
        )
    };
    let mut variants = variant("base", "");
    for (file, function, source) in FUNCTIONS {
        let path = bench.write(&format!("{function}.patch"), &patch(file, source));
        variants += &variant(function, &format!(", {}", quoted(&path)));
    }
    bench
        .run(&format!(
            "name = \"entries\"\nmode = \"exact\"\nseeds = 1\n\
             [machine]\ncpus = 2\nmemory = \"512M\"\nnodes = 2\n{variants}\
             [[workload]]\nname = \"autonuma\"\n\
             parameters = {{ programs = \"NUMA01\", scale = 0.02 }}\n"
        ))
        .expect(0);
    let mut missed = Vec::new();
    for (_, function, _) in FUNCTIONS {
        let explained = bench.json(&["explain", "base", function]);
        let section = &explained["all"];
        let first = &section["contributions"][section["per_entry"][0].as_u64().unwrap() as usize];
        let (name, inlined) = (&first["name"], &first["inlined"]);
        let calls = &first["calls"];
        let (entries, change) = (&calls["entries"]["new"], &calls["per_entry"]["change"]);
        println!("{function}: {name}, inlined {inlined}, {entries} entries, {change} per entry");
        if name != function && inlined != function {
            missed.push(function);
        }
    }
    assert_eq!(missed, [] as [&str; 0]);
}
