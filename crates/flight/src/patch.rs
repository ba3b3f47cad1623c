//! Encodes a text as the difference from an earlier text.
//!
//! The sampler reads the same kernel files repeatedly, and few of their numbers change. It records only the changed
//! bytes. The host can restore every file exactly, and the guest does not parse files. Runs of digits and blanks are
//! replaced completely, because numbers grow and columns move.
//!
//! A patch is a list of edits: bytes to keep, bytes to drop, bytes to insert. The first two are LEB128
//! numbers; the third is preceded by its LEB128 length. The bytes after the last edit are kept.

use serde::{Deserialize, Serialize};

/// The longest recorded text of a file. The rest is not recorded.
pub const MAX_TEXT: usize = 1 << 20;

/// The contents of a file at a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record<'a> {
    /// The index of the file in the job's list of files.
    pub file: u16,
    /// Its text, or the difference from the previously recorded text.
    #[serde(borrow)]
    pub content: Content<'a>,
}

/// The text of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content<'a> {
    /// The complete text of the file.
    Whole(&'a [u8]),
    /// A patch of the previous text.
    Patch(&'a [u8]),
}

/// Writes the difference from `old` to `new` into `patch`. Returns false, with an undefined `patch`, if they differ
/// in more than numbers. The complete text should then be recorded.
pub fn difference(old: &[u8], new: &[u8], patch: &mut Vec<u8>) -> bool {
    patch.clear();
    let (mut from, mut to, mut kept) = (0, 0, 0);
    loop {
        let same = common(&old[from..], &new[to..]);
        from += same;
        to += same;
        if from == old.len() && to == new.len() {
            return true;
        }
        let start = new[..to].iter().rev().take(same).take_while(|byte| is_loose(**byte)).count();
        let (old_end, new_end) = (from + loose(&old[from..]), to + loose(&new[to..]));
        if old_end == from && new_end == to {
            return false;
        }
        number(patch, from - start - kept);
        number(patch, old_end - (from - start));
        number(patch, new_end - (to - start));
        patch.extend_from_slice(&new[to - start..new_end]);
        (from, to, kept) = (old_end, new_end, old_end);
    }
}

/// Applies `patch` to `old`. `None` if the patch does not fit or the result is too long.
pub fn apply(old: &[u8], mut patch: &[u8]) -> Option<Vec<u8>> {
    let mut new = Vec::with_capacity(old.len());
    let mut from = 0_usize;
    while !patch.is_empty() {
        let keep = take_number(&mut patch)?;
        let drop = take_number(&mut patch)?;
        let put = take_number(&mut patch)?;
        let kept = from.checked_add(keep)?;
        new.extend_from_slice(old.get(from..kept)?);
        from = kept.checked_add(drop).filter(|end| *end <= old.len())?;
        let (inserted, rest) = patch.split_at_checked(put)?;
        new.extend_from_slice(inserted);
        patch = rest;
        if new.len() > MAX_TEXT {
            return None;
        }
    }
    new.extend_from_slice(&old[from..]);
    (new.len() <= MAX_TEXT).then_some(new)
}

/// Whether two texts of one file may differ in this byte.
fn is_loose(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b' '
}

fn loose(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_loose(**byte)).count()
}

/// The length of the common prefix. Compares 8 bytes at a time, because most of a file does not change.
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut same = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        if a != b {
            break;
        }
        same += 8;
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

fn number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..28).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn patched(old: &str, new: &str) -> Option<usize> {
        let mut patch = Vec::new();
        difference(old.as_bytes(), new.as_bytes(), &mut patch).then(|| {
            let text = apply(old.as_bytes(), &patch).expect("a patch of our own");
            assert_eq!(String::from_utf8(text).unwrap(), new);
            patch.len()
        })
    }

    #[test]
    fn only_what_changed_is_recorded() {
        let old = "nr_free_pages 123456\npgfault 99\nnuma_hit 5\n";
        assert_eq!(patched(old, old), Some(0));
        let bytes = patched(old, "nr_free_pages 123456\npgfault 100\nnuma_hit 5\n");
        assert_eq!(bytes, Some(3 + " 100".len()));
    }

    #[test]
    fn columns_may_shift() {
        assert!(patched("  0:      9     10 timer\n", "  0:     10   1000 timer\n").is_some());
        assert!(patched("a 1", "a 22").is_some());
        assert!(patched("a 1 b 999", "a 1 b 1000").is_some());
    }

    #[test]
    fn another_form_is_no_patch() {
        assert_eq!(patched("a 1\n", "a 1\nb 2\n"), None);
        assert_eq!(patched("a 1\n", "b 1\n"), None);
        assert_eq!(patched("a -1\n", "a 1\n"), None);
    }

    fn file() -> impl Strategy<Value = Vec<(String, u32)>> {
        prop::collection::vec(("[a-z_ :]{0,12}", any::<u32>()), 0..30)
    }

    proptest! {
        #[test]
        fn a_patch_gives_the_new_text(lines in file(), values in prop::collection::vec(any::<u32>(), 30), widths in prop::collection::vec(0_usize..12, 30)) {
            let print = |numbers: Vec<u32>| -> String {
                lines.iter().zip(numbers).zip(&widths).map(|(((name, _), n), w)| format!("{name} {n:w$}\n")).collect()
            };
            let old = print(lines.iter().map(|line| line.1).collect());
            let new = print(values);
            prop_assert!(patched(&old, &new).is_some());
        }

        #[test]
        fn any_two_texts_are_patched_right_or_not_at_all(old in "[a1 ]{0,40}", new in "[a1 ]{0,40}") {
            let _ = patched(&old, &new);
        }

        #[test]
        fn a_hostile_patch_is_survived(old in prop::collection::vec(any::<u8>(), 0..64), patch in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = apply(&old, &patch);
        }
    }
}
