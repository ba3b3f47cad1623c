//! Names of variants over their columns, on two lines if need be.

/// A name cut in two. The dash at the cut is not printed; the second part may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// For the first line.
    pub top: String,
    /// For the second line.
    pub bottom: String,
}

impl Name {
    /// Cuts `name` for a column of `room` letters: after the version, as mmtests does, at the first dash or
    /// the one after `-rcN`; otherwise where the longer part is shortest. A part may still be too long: no
    /// letter is ever dropped.
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

    /// Length of the longer part.
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
