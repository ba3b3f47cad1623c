//! Elements common to several files: numbers, names, rows of named numbers, and the prefix
//! `Node 0, zone Normal` of the page allocator's files.

use crate::Counters;

/// The longest name that is read from a text: of a counter, a zone, a disk, a slab cache. The kernel has no longer
/// names.
pub const MAX_NAME: usize = 64;

/// A number as the kernel prints it, signed or not; `unsigned long` above `i64::MAX` wraps.
pub(crate) fn number(text: &str) -> Option<i64> {
    let unsigned = text.parse::<u64>().map(u64::cast_signed);
    unsigned.or_else(|_| text.parse()).ok()
}

/// The text, if it is a valid name: not empty, printable ASCII, at most [`MAX_NAME`] long.
pub(crate) fn name(text: &str) -> Option<&str> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    (printable && (1..=MAX_NAME).contains(&text.len())).then_some(text)
}

/// At most `limit` characters of the text, with those that are not printable ASCII replaced.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let safe = |character| match character {
        ' '..='~' => character,
        '\t' => ' ',
        _ => '?',
    };
    text.chars().take(limit).map(safe).collect()
}

/// Adds those words that are numbers as counters `owner name`. Words and names correspond by position.
pub(crate) fn add_fields<'a>(
    counters: &mut Counters,
    owner: &str,
    names: &[&str],
    words: impl Iterator<Item = &'a str>,
) {
    let fields = names.iter().zip(words);
    counters
        .extend(fields.filter_map(|(name, word)| Some((format!("{owner} {name}"), number(word)?))));
}

/// The zone prefix of a line of `mm/vmstat.c`.
pub(crate) struct Zone<'a> {
    /// Number of its node.
    pub node: u32,
    /// Its name, such as `Normal`.
    pub name: &'a str,
    /// The rest of the line.
    pub rest: &'a str,
}

/// Parses `Node 0, zone   Normal`, if the line starts so.
pub(crate) fn zone(line: &str) -> Option<Zone<'_>> {
    let (node, rest) = line.strip_prefix("Node")?.split_once(", zone")?;
    let rest = rest.trim_start();
    let (zone, rest) = rest.split_at(rest.find([' ', ',']).unwrap_or(rest.len()));
    Some(Zone { node: node.trim().parse().ok()?, name: name(zone)?, rest })
}

/// Counters as tests write them: `name value, name value`.
#[cfg(test)]
pub(crate) fn expected(counters: &str) -> Counters {
    let counter = |it: &str| {
        let (name, value) = it.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    counters.split(", ").map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_but_never_fail_on_what_the_kernel_prints() {
        assert_eq!(number("0"), Some(0));
        assert_eq!(number("18446744073709551615"), Some(-1));
        assert_eq!(number("-3"), Some(-3));
        for text in ["", "18446744073709551616", "1.5", "0x10", ">100000"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_short_and_printable() {
        assert_eq!(name("nr_free_pages"), Some("nr_free_pages"));
        for text in ["", "a\u{1b}[2J", "größe", &"x".repeat(MAX_NAME + 1)] {
            assert_eq!(name(text), None);
        }
    }

    #[test]
    fn what_is_not_printable_is_replaced() {
        assert_eq!(printable("a\tb\u{1b}[2J\u{202e}", 10), "a b?[2J?");
        assert_eq!(printable("long", 2), "lo");
    }

    #[test]
    fn zones_are_read_with_and_without_a_tail() {
        let bare = zone("Node 12, zone      DMA").unwrap();
        assert_eq!((bare.node, bare.name, bare.rest), (12, "DMA", ""));
        let typed = zone("Node    0, zone   Normal, type      Movable      1").unwrap();
        assert_eq!((typed.node, typed.name), (0, "Normal"));
        assert_eq!(typed.rest, ", type      Movable      1");
        for line in ["Node x, zone DMA", "Node 0, zone ", "zone DMA", "Node 0"] {
            assert!(zone(line).is_none(), "{line}");
        }
    }
}
