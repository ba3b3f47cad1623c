//! Parsers for the kernel's text files: one small pure parser for each file. The guest's agent reads the
//! files, the store keeps the counters, and `compare` judges them.
//!
//! Every parser accepts any text. It skips unknown parts, reads each line once, and cuts names to at most
//! [`MAX_NAME`] printable ASCII characters. So the cost of a text from a damaged or malicious guest is bounded by its
//! size.
//!
//! Counters are `i64`. The kernel prints `unsigned long`. A value above `i64::MAX` nearly always was a small negative
//! number in the kernel, and wraps to it.

pub mod allocators;
pub mod buddyinfo;
pub mod catalogue;
pub mod config;
pub mod cpuinfo;
pub mod derived;
pub mod diskstats;
pub mod entry;
pub mod events;
pub mod interrupts;
pub mod kallsyms;
pub mod klog;
pub mod meminfo;
pub mod pagetypeinfo;
pub mod pressure;
mod scan;
pub mod schedstat;
pub mod slabinfo;
pub mod stat;
pub mod vmstat;
pub mod zoneinfo;

use model::Source;

pub use scan::MAX_NAME;

/// Names and values in the order of the file. A name may occur twice if the kernel prints two lines of one name (slab
/// caches), or the text is damaged. Then the first counts.
pub type Counters = Vec<(String, i64)>;

/// The counters of one file. `part` distinguishes the files of a source (`node0` of `node-vmstat`, `cpu` of
/// `pressure`) and is prepended to every name; it is empty if a source is one file. A part that is not a
/// valid name yields nothing.
///
/// ```
/// let counters = kernelfiles::counters(model::Source::NodeVmstat, "node0", "nr_free_pages 7\n");
/// assert_eq!(counters, [("node0 nr_free_pages".to_owned(), 7)]);
/// ```
pub fn counters(source: Source, part: &str, text: &str) -> Counters {
    let counters = match source {
        Source::Vmstat | Source::NodeVmstat | Source::NodeNumastat => vmstat::parse(text),
        Source::Zoneinfo => zoneinfo::parse(text),
        Source::NodeMeminfo | Source::Meminfo => meminfo::parse(text),
        Source::Stat => stat::parse(text),
        Source::Schedstat => schedstat::parse(text),
        Source::Pressure => pressure::parse(text),
        Source::Interrupts | Source::Softirqs => interrupts::parse(text),
        Source::Diskstats => diskstats::parse(text),
        Source::Buddyinfo => buddyinfo::parse(text),
        Source::Pagetypeinfo => pagetypeinfo::parse(text),
        Source::Slabinfo => slabinfo::parse(text),
        Source::Events => events::parse(text),
    };
    if part.is_empty() {
        return counters;
    }
    let Some(part) = scan::name(part) else {
        return Vec::new();
    };
    let named = |(name, value)| (format!("{part} {name}"), value);
    counters.into_iter().map(named).collect()
}
