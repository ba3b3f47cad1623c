//! Splits names of columns that have run together.

use std::collections::BTreeSet;

/// Longest text that is split.
const MAX_LENGTH: usize = 300;
/// Most names in a text.
const MAX_NAMES: usize = 16;
/// Most names that are learnt from one text.
const MAX_KNOWN: usize = 64;

/// Unambiguous names over columns somewhere in the text.
#[derive(Debug, Default)]
pub struct KnownNames(BTreeSet<String>);

impl KnownNames {
    /// Whether no more names are learnt.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_KNOWN
    }

    pub fn learn(&mut self, name: &str) {
        if !self.is_full() && !name.is_empty() && name.len() <= MAX_LENGTH {
            self.0.insert(name.to_owned());
        }
    }
}

/// A text that holds several names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedNames<'a> {
    pub text: &'a str,
    /// How many names it holds.
    pub names: usize,
    /// The number of letters before the end of the first column, and whether the name in that column begins with
    /// space to spare, so that it cannot extend beyond the end.
    pub edge: Option<usize>,
}

/// Splits a text into names if they are known from elsewhere in the text; if they have the same beginning; if the
/// first name ends where its column ends; or if there are two names, and the only number before a letter ends the
/// first one. Otherwise `None`.
pub fn split(joined: &JoinedNames<'_>, known: &KnownNames) -> Option<Vec<String>> {
    let fits = (2..=MAX_NAMES).contains(&joined.names) && joined.text.len() <= MAX_LENGTH;
    if !fits || !joined.text.is_ascii() {
        return None;
    }
    let pieces = by_known(joined.text, joined.names, known)
        .or_else(|| by_prefix(joined.text, joined.names))
        .or_else(|| (joined.names == 2).then(|| by_edge(joined))?)
        .or_else(|| (joined.names == 2).then(|| by_number(joined.text))?)?;
    Some(pieces.into_iter().map(str::to_owned).collect())
}

fn by_known<'a>(text: &'a str, names: usize, known: &KnownNames) -> Option<Vec<&'a str>> {
    // Places from which the text cannot be split into that many names, so that no work is repeated.
    let mut hopeless = BTreeSet::new();
    let mut pieces = Vec::new();
    known_from(text, 0, names, known, &mut hopeless, &mut pieces).then_some(pieces)
}

fn known_from<'a>(
    text: &'a str,
    place: usize,
    names: usize,
    known: &KnownNames,
    hopeless: &mut BTreeSet<(usize, usize)>,
    pieces: &mut Vec<&'a str>,
) -> bool {
    if names == 0 || place == text.len() {
        return names == 0 && place == text.len();
    }
    if hopeless.contains(&(place, names)) {
        return false;
    }
    for name in known.0.iter().rev().filter(|name| text[place..].starts_with(name.as_str())) {
        let end = place + name.len();
        pieces.push(&text[place..end]);
        if known_from(text, end, names - 1, known, hopeless, pieces) {
            return true;
        }
        pieces.pop();
    }
    hopeless.insert((place, names));
    false
}

/// Splits names that have the same beginning up to their first dash, or that are identical.
fn by_prefix(text: &str, names: usize) -> Option<Vec<&str>> {
    if text.len().is_multiple_of(names) {
        let (first, length) = (&text[..text.len() / names], text.len() / names);
        if first.repeat(names) == text {
            return Some((0..names).map(|number| &text[number * length..][..length]).collect());
        }
    }
    let prefix = &text[..=text.find('-').filter(|dash| *dash >= 2)?];
    let starts: Vec<usize> = text.match_indices(prefix).map(|(start, _)| start).collect();
    if starts.len() != names {
        return None;
    }
    let ends = starts[1..].iter().copied().chain([text.len()]);
    Some(starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect())
}

fn by_edge<'a>(joined: &JoinedNames<'a>) -> Option<Vec<&'a str>> {
    let edge = joined.edge.filter(|edge| *edge > 0 && *edge < joined.text.len())?;
    let (first, second) = joined.text.split_at(edge);
    let digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
    let torn = digit(first.chars().last()) && digit(second.chars().next());
    (!torn).then(|| vec![first, second])
}

fn by_number(text: &str) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut cuts = (1..bytes.len()).filter(|place| {
        let (before, here) = (bytes[place - 1], bytes[*place]);
        let revision = here == b'r' && bytes.get(place + 1).is_some_and(u8::is_ascii_digit);
        before.is_ascii_digit() && here.is_ascii_alphabetic() && !revision
    });
    let cut = cuts.next()?;
    cuts.next().is_none().then(|| vec![&text[..cut], &text[cut..]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, names: usize, edge: Option<usize>, known: &[&str]) -> Option<String> {
        let mut learnt = KnownNames::default();
        known.iter().for_each(|name| learnt.learn(name));
        split(&JoinedNames { text, names, edge }, &learnt).map(|pieces| pieces.join(" "))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn known_names_are_found_in_a_run() {
        let known = ["base", "base-long", "fix-v2", "other"];
        assert_eq!(pieces("base-longfix-v2", 2, None, &known), some("base-long fix-v2"));
        assert_eq!(pieces("fix-v2basefix-v2", 3, None, &known), some("fix-v2 base fix-v2"));
    }

    #[test]
    fn names_that_begin_alike_are_cut_there() {
        assert_eq!(pieces("rc6-a-v1rc6-b-v2rc6-c", 3, None, &[]), some("rc6-a-v1 rc6-b-v2 rc6-c"));
        assert_eq!(pieces("benchbench", 2, None, &[]), some("bench bench"));
    }

    #[test]
    fn a_name_with_room_ends_where_its_column_does() {
        assert_eq!(pieces("vanillashrinker-v1", 2, Some(7), &[]), some("vanilla shrinker-v1"));
        assert_eq!(pieces("base-2016lru", 2, Some(7), &[]), some("base-2016 lru"));
    }

    #[test]
    fn a_number_ends_a_name_only_where_one_does() {
        assert_eq!(pieces("mm-20160623lru-v8", 2, None, &[]), some("mm-20160623 lru-v8"));
        assert_eq!(pieces("mm-20160623lru-v7r17", 2, None, &[]), some("mm-20160623 lru-v7r17"));
        assert_eq!(pieces("a1b2c", 2, None, &[]), None);
    }

    #[test]
    fn uncertain_runs_are_not_split() {
        assert_eq!(pieces("vanillapatched", 2, None, &[]), None);
        assert_eq!(pieces("abc", 3, None, &[]), None);
        assert_eq!(pieces(&"a".repeat(1000), 2, None, &[]), None);
    }

    #[test]
    fn hostile_runs_take_little_time() {
        let known: Vec<String> = (1..150).map(|length| "a".repeat(length)).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        assert_eq!(pieces(&format!("{}b", "a".repeat(290)), 16, None, &known), None);
    }
}
