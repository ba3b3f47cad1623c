//! Names of variants above their columns, broken into two lines if necessary.

/// A name that is broken into two lines. The dash at the break is not printed. The second line can be
/// empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The part on the first line.
    pub top: String,
    /// The part on the second line; empty if the name was not broken.
    pub bottom: String,
}

impl Name {
    /// Breaks `name` for a column of `room` characters. As in mmtests, the break is after the version: at
    /// the first dash, or at the one after `-rcN`. If a line is too long then, the break is at the dash
    /// that makes the longer line shortest. A line can still be too long: no character is dropped.
    pub fn cut(name: &str, room: usize) -> Self {
        let custom = after_version(name);
        if custom.longer() <= room {
            return custom;
        }
        let dashes = name.match_indices('-');
        let cuts = dashes.map(|(place, _)| Self::at(name, place));
        cuts.filter(|cut| !cut.top.is_empty() && !cut.bottom.is_empty())
            .min_by_key(Self::longer)
            .unwrap_or(custom)
    }

    /// Returns the length of the longer line.
    pub fn longer(&self) -> usize {
        self.top.len().max(self.bottom.len())
    }

    fn at(name: &str, dash: usize) -> Self {
        Self { top: name[..dash].to_owned(), bottom: name[dash + 1..].to_owned() }
    }
}

fn after_version(name: &str) -> Name {
    let whole = || Name { top: name.to_owned(), bottom: String::new() };
    let Some(first) = name.find('-') else {
        return whole();
    };
    let rest = &name[first + 1..];
    let candidate = rest
        .strip_prefix("rc")
        .filter(|number| number.starts_with(|digit: char| digit.is_ascii_digit()));
    let cut = match candidate {
        Some(_) => rest.find('-').map(|next| first + 1 + next),
        None => Some(first),
    };
    match cut {
        Some(dash) if dash > 0 && dash + 1 < name.len() => Name::at(name, dash),
        _ => whole(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(name: &str, room: usize) -> [String; 2] {
        let Name { top, bottom } = Name::cut(name, room);
        [top, bottom]
    }

    #[test]
    fn names_are_cut_after_the_version() {
        assert_eq!(cut("6.1", 20), ["6.1", ""]);
        assert_eq!(cut("3.19.0-vanilla", 20), ["3.19.0", "vanilla"]);
        assert_eq!(cut("4.0.0-rc1-slowscan-v2", 20), ["4.0.0-rc1", "slowscan-v2"]);
        assert_eq!(cut("6.1-rc10-foo", 20), ["6.1-rc10", "foo"]);
        assert_eq!(cut("4.0.0-rc1", 20), ["4.0.0-rc1", ""]);
        assert_eq!(cut("TEST_RUN", 20), ["TEST_RUN", ""]);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(cut("6.12-numa-balancing-off-thp", 20), ["6.12-numa", "balancing-off-thp"]);
        assert_eq!(cut("4.16.0-rc4-schedtip-20180309", 11), ["4.16.0-rc4", "schedtip-20180309"]);
    }

    #[test]
    fn dashes_at_the_ends_cut_nothing() {
        for name in ["-", "a-", "-a", ""] {
            assert_eq!(cut(name, 0), [name, ""]);
        }
        assert_eq!(cut("a--", 0), ["a", "-"]);
    }
}
