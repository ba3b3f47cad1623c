//! What the kernel prints, as types: one small pure parser a file. Reading the files is left to
//! the guest's agent, keeping the counters to the store, and judging them to `compare`.
//!
//! Every parser takes any text: what it does not understand it skips, each line is looked at once,
//! and a name taken from the text is at most [`MAX_NAME`] printable ASCII characters, so that a
//! damaged or malicious guest can cost no more than the size of its text.
//!
//! Counters are `i64`. The kernel prints `unsigned long`; a value above `i64::MAX` wraps, which
//! gives back the small negative number that such a value nearly always was in the kernel.

pub mod buddyinfo;
pub mod catalogue;
pub mod config;
pub mod derived;
pub mod diskstats;
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

/// Names and values in the order of the file. A name may come twice where the kernel itself
/// prints two lines of one name (slab caches) or the text is damaged; the first counts.
pub type Counters = Vec<(String, i64)>;

/// The counters of one file. `part` tells the files of a source apart (`node0` of `node-vmstat`,
/// `cpu` of `pressure`) and stands before every name; it is empty where a source is one file.
/// A part that cannot be a name yields nothing.
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
