//! Parses the plugin's arguments, which say what to count.

mod shape;

use std::ops::Range;

use flight::profile::MAX_NODES;

pub use shape::{CacheShape, Shape, TlbShape};

/// The arguments on QEMU's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// `node=NUMBER:START-END`, any number of times: physical memory of a node. END is not included. A node below and
    /// above the hole under 4 GiB has two ranges. Loads and stores are counted if there is at least one node.
    pub nodes: Vec<(u16, Range<u64>)>,
    /// `switch=ADDRESS:TGID:COMM`: count user instructions by process.
    pub switch: Option<Switch>,
    /// `stacks=on`: count kernel instructions by call path.
    pub stacks: bool,
    /// `each=on`: call back at each instruction, as a reference. The counts are the same.
    pub each: bool,
    /// `turn=NUMBER`: a CPU's turn ends at the first branch after this many instructions. Without it QEMU
    /// ends turns at the guest's next timer.
    pub turn: Option<u64>,
    /// `caches=SHAPE`: count what misses in a model of caches and TLBs ([`Shape::parse`]).
    pub caches: Option<Shape>,
    /// `transfers=NODE.NODE...`, the node of each CPU: count the lines that CPUs take from each other.
    pub transfers: Option<Vec<u16>>,
    /// `layout=PAGE:HEAD:KIND:SLAB:CACHE:SIZE:NAME`: the kernel's descriptors of memory.
    pub layout: Option<Layout>,
    /// `per-cpu=BASE:SIZE`: the kernel's per-CPU variables.
    pub per_cpu: Option<PerCpu>,
    /// `allocators=ADDRESS:ARGUMENT:ADDRESS:ARGUMENT...`: the kernel's functions that return memory of `kmalloc`, and which
    /// argument is its size, from 1; 0 if none is.
    pub allocators: Vec<(u64, u8)>,
    /// `per-cpu-allocators=ADDRESS:ADDRESS...`: those that return per-CPU memory. Their first argument is its size.
    pub per_cpu_allocators: Vec<u64>,
}

/// Offsets in the kernel's descriptors of memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The size of `struct page`.
    pub page: u64,
    /// The offset of `compound_head` in it.
    pub head: u64,
    /// The offset of `page_type` in it.
    pub kind: u64,
    /// How a slab is told from other pages.
    pub slab: SlabMark,
    /// The offset of `slab_cache` in the first descriptor of a slab (`struct slab`).
    pub cache: u64,
    /// The offset of `size` in `struct kmem_cache`.
    pub size: u64,
    /// The offset of `name` in `struct kmem_cache`.
    pub name: u64,
}

/// How a slab is told from other pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlabMark {
    /// The upper 8 bits of `page_type` have this value.
    Type(u8),
    /// This bit is set in `flags`, the first word.
    Flag(u8),
}

/// The kernel's per-CPU variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerCpu {
    /// The place of the variable `this_cpu_off`, in which each CPU has the base address of its copies.
    pub base: u64,
    /// The bytes of all variables together.
    pub size: u64,
}

/// The kernel's task switch, and the fields that identify tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Address of `__switch_to_asm`, which is called with the previous and the next task. Not used on arm64, where a
    /// register tells the running task.
    pub address: u64,
    /// Offset of `tgid` in `struct task_struct`.
    pub tgid: u64,
    /// Offset of `comm` in `struct task_struct`.
    pub comm: u64,
}

/// An invalid argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// The argument is unknown or has an invalid value.
    #[error(
        "`{0}` is not one of node=NUMBER:START-END, switch=ADDRESS:TGID:COMM, stacks=on|off, each=on|off, turn=NUMBER, \
         caches=SHAPE, transfers=NODE.NODE..., layout=PAGE:HEAD:KIND:SLAB:CACHE:SIZE:NAME, per-cpu=BASE:SIZE, \
         allocators=ADDRESS:ARGUMENT..., per-cpu-allocators=ADDRESS:ADDRESS..."
    )]
    Unknown(String),
}

impl Arguments {
    /// Reads the arguments, `KEY=VALUE` each. Numbers may be hexadecimal, with `0x`. Fails when an argument
    /// is unknown or invalid.
    pub fn parse(words: &[String]) -> Result<Self, ArgumentError> {
        let (mut nodes, mut switch, mut turn) = (Vec::new(), None, None);
        let (mut caches, mut transfers, mut layout, mut per_cpu) = (None, None, None, None);
        let (mut allocators, mut per_cpu_allocators) = (Vec::new(), Vec::new());
        let (mut stacks, mut each) = (false, false);
        for word in words {
            let unknown = || ArgumentError::Unknown(word.clone());
            let (key, value) = word.split_once('=').ok_or_else(unknown)?;
            match (key, value) {
                ("node", value) => nodes.push(node(value).ok_or_else(unknown)?),
                ("switch", value) => switch = Some(self::switch(value).ok_or_else(unknown)?),
                ("stacks", "on") => stacks = true,
                ("stacks", "off") => stacks = false,
                ("each", "on") => each = true,
                ("each", "off") => each = false,
                ("turn", value) => turn = Some(self::turn(value).ok_or_else(unknown)?),
                ("caches", value) => caches = Some(Shape::parse(value).ok_or_else(unknown)?),
                ("transfers", value) => transfers = Some(homes(value).ok_or_else(unknown)?),
                ("layout", value) => layout = Some(self::layout(value).ok_or_else(unknown)?),
                ("per-cpu", value) => per_cpu = Some(self::per_cpu(value).ok_or_else(unknown)?),
                ("allocators", value) => allocators = sized(value).ok_or_else(unknown)?,
                ("per-cpu-allocators", value) => {
                    per_cpu_allocators = numbers(value).ok_or_else(unknown)?;
                }
                _ => return Err(unknown()),
            }
        }
        Ok(Self {
            nodes,
            switch,
            stacks,
            each,
            turn,
            caches,
            transfers,
            layout,
            per_cpu,
            allocators,
            per_cpu_allocators,
        })
    }
}

fn node(value: &str) -> Option<(u16, Range<u64>)> {
    let (node, range) = value.split_once(':')?;
    let (start, end) = range.split_once('-')?;
    let node = node.parse().ok().filter(|node| *node < MAX_NODES)?;
    let range = number(start)?..number(end)?;
    (!range.is_empty()).then_some((node, range))
}

fn switch(value: &str) -> Option<Switch> {
    match numbers(value)?.as_slice() {
        &[address, tgid, comm] => Some(Switch { address, tgid, comm }),
        _ => None,
    }
}

fn homes(value: &str) -> Option<Vec<u16>> {
    value.split('.').map(|node| node.parse().ok().filter(|node| *node < MAX_NODES)).collect()
}

/// The slab's mark is a type, or 256 and the number of a flag.
fn layout(value: &str) -> Option<Layout> {
    let &[page, head, kind, slab, cache, size, name] = numbers(value)?.as_slice() else {
        return None;
    };
    let slab = match slab {
        0..256 => SlabMark::Type(slab as u8),
        256..320 => SlabMark::Flag((slab - 256) as u8),
        _ => return None,
    };
    let is_sound = page > 0 && [page, head, kind, cache, size, name].iter().all(|it| *it < 4096);
    is_sound.then_some(Layout { page, head, kind, slab, cache, size, name })
}

fn per_cpu(value: &str) -> Option<PerCpu> {
    match numbers(value)?.as_slice() {
        &[base, size] if base < size => Some(PerCpu { base, size }),
        _ => None,
    }
}

fn numbers(value: &str) -> Option<Vec<u64>> {
    value.split(':').map(number).collect()
}

/// Pairs of the beginning of a function and the number of its argument.
fn sized(value: &str) -> Option<Vec<(u64, u8)>> {
    let numbers = numbers(value)?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    let pairs = pairs.iter().map(|[begin, size]| Some((*begin, u8::try_from(*size).ok()?)));
    pairs.collect::<Option<_>>().filter(|_| rest.is_empty())
}

fn turn(value: &str) -> Option<u64> {
    number(value).filter(|turn| *turn > 0)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Arguments, ArgumentError> {
        Arguments::parse(&words.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn all_arguments_are_read() {
        let words = "node=0:0-0xc0000000 node=0:0x100000000-0x140000000 \
                     switch=0xffffffff81002000:2456:3032 stacks=on each=on turn=1000 \
                     caches=0.0:64.8:1024.16.0:2048.11:3.16.4/7.128.12 transfers=0.1 layout=64:8:0x30:0xf5:8:24:96 \
                     per-cpu=0x10:0x1000 allocators=0x20:1:0x30:0 per-cpu-allocators=0x40";
        let node = |start, end| (0, start..end);
        assert_eq!(
            parse(words),
            Ok(Arguments {
                nodes: vec![node(0, 0xc000_0000), node(0x1_0000_0000, 0x1_4000_0000)],
                switch: Some(Switch { address: 0xffff_ffff_8100_2000, tgid: 2456, comm: 3032 }),
                stacks: true,
                each: true,
                turn: Some(1000),
                caches: Some(Shape {
                    homes: vec![0, 0],
                    l1: CacheShape { sets: 64, ways: 8 },
                    l2: CacheShape { sets: 1024, ways: 16 },
                    inclusive: false,
                    last: CacheShape { sets: 2048, ways: 11 },
                    dtlb: vec![TlbShape { sizes: 3, sets: 16, ways: 4 }],
                    stlb: vec![TlbShape { sizes: 7, sets: 128, ways: 12 }],
                }),
                transfers: Some(vec![0, 1]),
                layout: Some(Layout {
                    page: 64,
                    head: 8,
                    kind: 48,
                    slab: SlabMark::Type(0xf5),
                    cache: 8,
                    size: 24,
                    name: 96,
                }),
                per_cpu: Some(PerCpu { base: 0x10, size: 0x1000 }),
                allocators: vec![(0x20, 1), (0x30, 0)],
                per_cpu_allocators: vec![0x40],
            })
        );
    }

    #[test]
    fn an_invalid_argument_is_named() {
        for wrong in [
            "node=0:5-5",
            "node=x:0-1",
            "node=128:0-1",
            "accesses=on",
            "out=p",
            "switch=1:2",
            "stacks=1",
            "turn=0",
            "x",
            "transfers=0.x",
            "layout=0:8:48:245:8:24:96",
            "layout=64:8:48:400:8:24:96",
            "per-cpu=2:2",
            "allocators=x",
            "allocators=0x20:1:0x30",
            "caches=0",
            "caches=1:64.8:1024.16.0:2048.11:3.16.4/7.128.12",
            "caches=0:0.8:1024.16.0:2048.11:3.16.4/7.128.12",
            "caches=0:64.8:1024.16:2048.11:3.16.4/7.128.12",
            "caches=0:64.8:1024.16.0:2048.11:3.16.4/8.1.1",
        ] {
            let error = Err(ArgumentError::Unknown(wrong.into()));
            assert_eq!(parse(&format!("stacks=on {wrong}")), error);
        }
    }
}
