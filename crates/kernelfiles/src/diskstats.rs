//! `/proc/diskstats`: I/O statistics of each block device and partition (`block/genhd.c`,
//! `Documentation/admin-guide/iostats.rst`).
//!
//! Sectors are 512 bytes, times are milliseconds. Linux 5.5 and newer print 17 fields, 4.18 to 5.4 print 15
//! (no flushes), older ones 11 (no discards).

use crate::{Counters, scan};

const FIELDS: [&str; 17] = [
    "reads", "reads_merged", "sectors_read", "read_ms", "writes", "writes_merged",
    "sectors_written", "write_ms", "in_flight", "io_ms", "weighted_io_ms", "discards",
    "discards_merged", "sectors_discarded", "discard_ms", "flushes", "flush_ms",
];

/// The counters, such as `vda sectors_read`; `in_flight` is a gauge.
pub fn parse(text: &str) -> Counters {
    let mut counters = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        if let Some(disk) = words.next().and_then(scan::name) {
            scan::add_fields(&mut counters, disk, &FIELDS, words);
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_name() {
        let text = " 254       0 vda 70661 12602 11852450 51735 42374 33478 4877088 8383 0 12512 \
            61342 10012 24 865144 715 12488 507\n";
        let counters = parse(text);
        assert_eq!(counters.len(), 17);
        for (name, value) in [
            ("vda reads", 70661),
            ("vda write_ms", 8383),
            ("vda io_ms", 12512),
            ("vda discards", 10012),
            ("vda flush_ms", 507),
        ] {
            assert!(counters.contains(&(name.to_owned(), value)), "{name}");
        }
    }

    #[test]
    fn older_kernels_print_fewer() {
        assert_eq!(parse("8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8\n8 0\n").len(), 11);
    }
}
