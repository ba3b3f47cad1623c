//! Events that perf counts, by perf's names.

/// The largest number of events of an experiment.
pub const MAX_EVENTS: usize = 32;
/// The longest name of an event, in bytes.
pub const MAX_EVENT_NAME: usize = 56;

/// Software events, with their numbers (`include/uapi/linux/perf_event.h`, `enum perf_sw_ids`).
const SOFTWARE: [(&str, u64); 13] = [
    ("cpu-clock", 0),
    ("task-clock", 1),
    ("page-faults", 2),
    ("faults", 2),
    ("context-switches", 3),
    ("cs", 3),
    ("cpu-migrations", 4),
    ("migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
    ("alignment-faults", 7),
    ("emulation-faults", 8),
    ("cgroup-switches", 11),
];
/// Hardware events, with their numbers (`enum perf_hw_id`).
const HARDWARE: [(&str, u64); 12] = [
    ("cycles", 0),
    ("cpu-cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-instructions", 4),
    ("branch-misses", 5),
    ("bus-cycles", 6),
    ("stalled-cycles-frontend", 7),
    ("stalled-cycles-backend", 8),
    ("ref-cycles", 9),
];
/// Caches in the order of their numbers (`enum perf_hw_cache_id`).
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
/// Events of a cache, with the numbers of operation and result (`enum perf_hw_cache_op_id`, `enum
/// perf_hw_cache_op_result_id`).
const OPERATIONS: [(&str, u64); 6] = [
    ("loads", 0),
    ("load-misses", 1 << 16),
    ("stores", 1 << 8),
    ("store-misses", 1 << 8 | 1 << 16),
    ("prefetches", 2 << 8),
    ("prefetch-misses", 2 << 8 | 1 << 16),
];

/// An event that perf counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfEvent<'a> {
    /// A tracepoint, `system:name`.
    Tracepoint {
        /// The system, such as `tlb`.
        system: &'a str,
        /// The name within it, such as `tlb_flush`.
        name: &'a str,
    },
    /// An event of the kernel itself, by its number.
    Software(u64),
    /// An event of the processor, by its number.
    Hardware(u64),
    /// An event of one of the processor's caches, as perf encodes it.
    Cache(u64),
}

impl<'a> PerfEvent<'a> {
    /// The event of this name; `None` if perf has none. Any well-formed name of a tracepoint is accepted, whether a
    /// kernel has it or not.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_EVENT_NAME {
            return None;
        }
        if let Some((system, name)) = text.split_once(':') {
            let is_word = |word: &str| {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                !word.is_empty() && word.bytes().all(is_plain)
            };
            // `cycles:k` has a modifier, which is not supported.
            let is_tracepoint = is_word(system) && is_word(name) && Self::parse(system).is_none();
            return is_tracepoint.then_some(Self::Tracepoint { system, name });
        }
        let number = |table: &[(&str, u64)]| {
            table.iter().find(|(name, _)| *name == text).map(|(_, number)| *number)
        };
        let of_cache = || {
            (0..).zip(CACHES).find_map(|(cache, name)| {
                let operation = text.strip_prefix(name)?.strip_prefix('-')?;
                OPERATIONS.iter().find(|(it, _)| *it == operation).map(|(_, of)| cache | of)
            })
        };
        None.or_else(|| number(&SOFTWARE).map(Self::Software))
            .or_else(|| number(&HARDWARE).map(Self::Hardware))
            .or_else(|| of_cache().map(Self::Cache))
    }

    /// Whether its value is a time in nanoseconds instead of a number of events.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Software(0 | 1))
    }

    /// The names of all software events, or of all events of the processor and its caches.
    pub fn names(of_software: bool) -> Vec<String> {
        if of_software {
            return SOFTWARE.map(|(name, _)| name.to_owned()).into();
        }
        let of_caches = CACHES
            .iter()
            .flat_map(|cache| OPERATIONS.map(|(operation, _)| format!("{cache}-{operation}")));
        HARDWARE.iter().map(|(name, _)| (*name).to_owned()).chain(of_caches).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_perf() {
        use PerfEvent::{Cache, Hardware, Software, Tracepoint};
        let flush = Tracepoint { system: "tlb", name: "tlb_flush" };
        assert_eq!(PerfEvent::parse("tlb:tlb_flush"), Some(flush));
        assert_eq!(PerfEvent::parse("page-faults"), Some(Software(2)));
        assert_eq!(PerfEvent::parse("cycles"), Some(Hardware(0)));
        // perf's own example of the encoding: cache | operation << 8 | result << 16 (perf_event_open(2)).
        assert_eq!(PerfEvent::parse("dTLB-load-misses"), Some(Cache(0x1_0003)));
        assert_eq!(PerfEvent::parse("LLC-prefetches"), Some(Cache(0x202)));
        let long = format!("a:{}", "b".repeat(MAX_EVENT_NAME));
        for wrong in [
            "", "page-fault", "tlb:", ":tlb_flush", "tlb:a b", "a:b:c", "../x:id", "cycles:k",
            &long,
        ] {
            assert_eq!(PerfEvent::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_listed_name_is_an_event() {
        for name in PerfEvent::names(true).iter().chain(&PerfEvent::names(false)) {
            assert!(PerfEvent::parse(name).is_some(), "{name}");
        }
    }
}
