//! A made-up BTF, by `Documentation/bpf/btf.rst`.

mod members;

use super::*;

const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VAR: u32 = 14;
const DATASEC: u32 = 15;

/// Types and their names. Types have numbers from 1.
#[derive(Default)]
struct Made {
    types: Vec<u8>,
    names: Vec<u8>,
    count: u32,
}

impl Made {
    fn name(&mut self, name: &str) -> u32 {
        if self.names.is_empty() {
            self.names.push(0);
        }
        if name.is_empty() {
            return 0;
        }
        let place = self.names.len() as u32;
        self.names.extend(name.bytes().chain([0]));
        place
    }

    /// Adds a type with its `rest`, and returns its number.
    fn add(&mut self, kind: u32, name: &str, length: usize, size: u32, rest: &[u32]) -> u32 {
        let name = self.name(name);
        let words = [name, kind << 24 | length as u32, size];
        self.types.extend(words.iter().chain(rest).flat_map(|word| word.to_le_bytes()));
        self.count += 1;
        self.count
    }

    /// A structure or union of members with a type and an offset in bytes.
    fn members(&mut self, kind: u32, name: &str, size: u32, members: &[(&str, u32, u32)]) -> u32 {
        let rest: Vec<u32> = members
            .iter()
            .flat_map(|(member, of, offset)| [self.name(member), *of, offset * 8])
            .collect();
        self.add(kind, name, members.len(), size, &rest)
    }

    fn constants(&mut self, name: &str, constants: &[(&str, u32)]) {
        let rest: Vec<u32> =
            constants.iter().flat_map(|(it, value)| [self.name(it), *value]).collect();
        self.add(ENUM, name, constants.len(), 4, &rest);
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, names) = (self.types.len() as u32, self.names.len() as u32);
        let header = [24, 0, types, types, names];
        let header = header.iter().flat_map(|word| word.to_le_bytes());
        [0x9f, 0xeb, 1, 0]
            .into_iter()
            .chain(header)
            .chain(self.types.clone())
            .chain(self.names.clone())
            .collect()
    }
}

/// Types of a kernel whose slabs are told by a type of page, or by a flag.
fn types(by_type: bool) -> Types {
    let mut made = Made::default();
    let int = made.add(INT, "int", 0, 4, &[32]);
    let long = made.add(INT, "long", 0, 8, &[64]);
    let counter = made.members(STRUCT, "", 8, &[("counter", long, 0)]);
    let atomic = made.add(TYPEDEF, "atomic_long_t", 0, counter, &[]);
    let lock =
        made.members(STRUCT, "rw_semaphore", 24, &[("count", atomic, 0), ("owner", atomic, 8)]);
    let pair = made.members(UNION, "", 8, &[("first", int, 0), ("both", long, 0)]);
    let events = made.add(ARRAY, "", 0, 0, &[counter, int, 4]);
    let spaced = made.members(
        STRUCT,
        "",
        48,
        &[("mmap_lock", lock, 0), ("", pair, 24), ("rss_stat", events, 32)],
    );
    made.members(STRUCT, "mm_struct", 72, &[("mm_count", int, 0), ("", spaced, 8)]);
    made.members(STRUCT, "task_struct", 24, &[("tgid", int, 0), ("comm", long, 8)]);
    made.members(
        STRUCT,
        "page",
        64,
        &[("flags", long, 0), ("compound_head", long, 8), ("page_type", int, 48)],
    );
    made.members(STRUCT, "slab", 64, &[("slab_cache", long, 8)]);
    made.members(STRUCT, "kmem_cache", 200, &[("size", int, 24), ("name", long, 96)]);
    made.members(STRUCT, "file", 16, &[("f_count", atomic, 8)]);
    made.members(STRUCT, "mem_cgroup_per_node", 16, &[("memcg", long, 8)]);
    made.members(STRUCT, "mem_cgroup", 256, &[("nr_charge_moving", int, 0)]);
    if by_type {
        made.constants(
            "pagetype",
            &[("PGTY_table", 0xf2), ("PGTY_slab", 0xf5), ("PGTY_mapcount_underflow", 0xff)],
        );
    }
    made.constants("pageflags", &[("PG_locked", 0), ("PG_slab", 9)]);
    let queue = made.add(VAR, "call_single_queue", 0, spaced, &[1]);
    let offset = made.add(VAR, "this_cpu_off", 0, long, &[1]);
    made.add(DATASEC, PER_CPU, 2, 0, &[queue, 64, 48, offset, 128, 8]);
    Types::read(&made.bytes()).unwrap()
}

#[test]
fn a_field_is_named_down_to_what_has_a_type_of_its_own() {
    let types = types(true);
    let field = |offset| types.field("mm_struct", offset);
    assert_eq!(field(0).unwrap(), "mm_struct.mm_count");
    // A hole.
    assert_eq!(field(4).unwrap(), "mm_struct");
    assert_eq!(field(8).unwrap(), "mm_struct.mmap_lock.count");
    assert_eq!(field(17).unwrap(), "mm_struct.mmap_lock.owner");
    // Two members of a union. The second one is larger.
    assert_eq!(field(32).unwrap(), "mm_struct.first");
    assert_eq!(field(36).unwrap(), "mm_struct.both");
    assert_eq!(field(48).unwrap(), "mm_struct.rss_stat[]");
    assert_eq!((field(72), types.field("nothing", 0)), (None, None));
}

#[test]
fn a_slab_cache_is_named_by_the_type_of_its_objects() {
    let types = types(true);
    assert_eq!(types.field_of_cache("mm_struct", 0).unwrap(), "mm_struct.mm_count");
    assert_eq!(types.field_of_cache("filp", 8).unwrap(), "file.f_count");
    assert_eq!(types.field_of_cache("kmalloc-64", 8), None);
    assert!(types.has_cache("filp") && !types.has_cache("kmalloc-64"));
}

#[test]
fn the_type_of_an_allocation_is_told_by_its_function_and_its_size() {
    let types = types(true);
    let of = |function, size| types.allocated(function, size);
    // The smaller type, the larger one, and this with an array behind it.
    let sizes = [15, 16, 255, 256, 256 + 64, 256 + 1024];
    let (node, group) = (Some("mem_cgroup_per_node"), Some("mem_cgroup"));
    let expected = [None, node, node, group, group, None];
    assert_eq!(sizes.map(|size| of("mem_cgroup_css_alloc", size)), expected);
    assert_eq!(
        (of("mem_cgroup_alloc", 16), of("kfree", 16), of("alloc_super", 16)),
        (None, None, None)
    );
    assert!(begins_at_line("mem_cgroup", 256) && !begins_at_line("mem_cgroup_per_node", 16));
    assert!(!begins_at_line("mm_struct", 256));
}

#[test]
fn per_cpu_variables_have_places_in_their_section() {
    let types = types(true);
    assert_eq!(types.per_cpu(), Some((128, 136)));
    assert_eq!(types.per_cpu_variable(64).unwrap(), "call_single_queue.mmap_lock.count");
    assert_eq!(types.per_cpu_variable(128).unwrap(), "this_cpu_off");
    assert_eq!([0, 112, 136].map(|place| types.per_cpu_variable(place)), [None, None, None]);
}

#[test]
fn slabs_are_told_by_a_type_of_page_or_by_a_flag() {
    let layout =
        |slab| MemoryLayout { page: 64, head: 8, kind: 48, slab, cache: 8, size: 24, name: 96 };
    assert_eq!(types(true).memory(), Some(layout(0xf5)));
    assert_eq!(types(false).memory(), Some(layout(256 + 9)));
}
