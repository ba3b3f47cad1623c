//! The files of one benchmark, looked up by name.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The files that a benchmark left in one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// The unpacked contents of each file, by its path below `iter-N/BENCHMARK/logs`; in old layouts below the
    /// benchmark's directory.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Directories that mmtests once had between the directory of a benchmark and its logs.
const OUTER: [&str; 5] = ["logs/", "noprofile/", "default/", "base/", "transhuge/"];

impl Logs {
    /// The logs, without the directories of profilers and monitors next to them.
    fn named(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().filter_map(|(path, bytes)| {
            let mut name = path.as_str();
            for outer in OUTER {
                name = name.strip_prefix(outer).unwrap_or(name);
            }
            for packed in [".gz", ".xz"] {
                name = name.strip_suffix(packed).unwrap_or(name);
            }
            (!name.contains('/')).then_some((name, bytes.as_slice()))
        })
    }

    /// The text of the log of this name.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.named().find(|(known, _)| *known == name).map(|(_, bytes)| text(bytes))
    }

    /// The logs whose names have this prefix and suffix, in the order of tables. Each comes with the part of the name
    /// between the two.
    pub(super) fn between(&self, prefix: &str, suffix: &str) -> Vec<(&str, Cow<'_, str>)> {
        let between = |(name, bytes)| {
            let middle = part(name, prefix, suffix)?;
            Some((middle, text(bytes)))
        };
        let mut found: Vec<_> = self.named().filter_map(between).collect();
        found.sort_by(|(a, _), (b, _)| in_order(a, b));
        found
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The part of a name between `prefix` and `suffix`; `None` if it is empty.
fn part<'a>(name: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    name.strip_prefix(prefix)?.strip_suffix(suffix).filter(|part| !part.is_empty())
}

/// The order of labels in a table, which is that of `sort -n`: by a leading number, then by letters.
pub(super) fn in_order(a: &str, b: &str) -> std::cmp::Ordering {
    let number = |label: &str| {
        let digits = label.bytes().take_while(u8::is_ascii_digit).count();
        label[..digits].parse::<f64>().unwrap_or(0.0)
    };
    number(a).total_cmp(&number(b)).then_with(|| a.cmp(b))
}
