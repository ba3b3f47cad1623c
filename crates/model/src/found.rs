//! The states of the kernel that a workload found. A boot keeps them as a note.

use crate::{Note, NoteKind};

/// The states of memory management that change a workload's figures.
pub const STATES: [&str; 10] = [
    "THP", "THP defrag", "THP of shmem", "mTHP", "MGLRU", "NUMA balancing", "swap", "zswap", "KSM",
    "DAMON",
];

/// Separators between states, and between a name and its value.
const NEXT: &str = "; ";
const IS: &str = " = ";
/// The longest value of a state, in bytes.
const MAX_VALUE: usize = 200;

/// The states that a workload found before its first iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatesFound<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// Names of [`STATES`] with their values, in that order. A kernel may lack some.
    pub states: Vec<(&'static str, &'a str)>,
}

impl<'a> StatesFound<'a> {
    /// Selects the states with known names. Values that are not short ASCII text are left out.
    pub fn new(workload: &'a str, states: &'a [(String, String)]) -> Self {
        let value = |name| states.iter().find(|(it, _)| it == name).map(|(_, value)| &**value);
        let known = STATES.into_iter().filter_map(|name| Some((name, value(name)?)));
        Self { workload, states: known.filter(|(_, value)| is_value(value)).collect() }
    }

    /// Reads a note; `None` if it is of another kind.
    pub fn of_note(note: &'a Note) -> Option<Self> {
        let (workload, states) =
            (note.kind == NoteKind::Found).then_some((&*note.workload, &*note.text))?;
        let state = |text: &'a str| {
            let (name, value) = text.split_once(IS)?;
            Some((STATES.into_iter().find(|it| *it == name)?, value))
        };
        Some(Self { workload, states: states.split(NEXT).map(state).collect::<Option<_>>()? })
    }

    /// The note that a boot keeps of these states.
    pub fn note(&self) -> Note {
        let states: Vec<String> =
            self.states.iter().map(|(name, value)| format!("{name}{IS}{value}")).collect();
        Note { workload: self.workload.to_owned(), ..NoteKind::Found.note(states.join(NEXT)) }
    }
}

fn is_value(value: &str) -> bool {
    let plain = |letter: char| matches!(letter, ' '..='~') && !matches!(letter, ':' | ';' | '=');
    (1..=MAX_VALUE).contains(&value.len()) && value.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let states =
            [("KSM", "0"), ("THP", "madvise"), ("mTHP", "16 to 1024 kB never, 2048 kB inherit")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let found = StatesFound::new("a: b = c; d", &states);
        assert_eq!(
            found.states.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["THP", "mTHP", "KSM"]
        );
        let other = Note { kind: NoteKind::Left, ..found.note() };
        assert_eq!(StatesFound::of_note(&other), None);
        assert_eq!(StatesFound::of_note(&found.note()), Some(found));
    }

    #[test]
    fn states_of_a_hostile_guest_are_left_out() {
        let long = "x".repeat(MAX_VALUE + 1);
        let values = ["", "a; THP = always", "x: y", "\u{1b}[2J", &long];
        for value in values {
            let states =
                [("THP".to_owned(), value.to_owned()), ("other".to_owned(), "1".to_owned())];
            assert_eq!(StatesFound::new("w", &states).states, [], "{value:?}");
        }
    }
}
