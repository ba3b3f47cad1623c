//! Notes of a boot: remarks of workloads, missing figures, and states that workloads found and left.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::StatesFound;

/// The subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// A remark of a workload, or on its figures.
    Remark,
    /// The kernel's log of an imported boot was not kept.
    NoLog,
    /// Results that could not be read.
    NotRead,
    /// Operations that an imported iteration lacks.
    Missing,
    /// Operations that were too quick to be measured.
    TooQuick,
    /// Events that the kernel or the processor does not count.
    NotCounted,
    /// Gaps in a profile, or disturbances of it.
    Profile,
    /// The states that a workload found: see [`StatesFound`].
    Found,
    /// State that a workload left, and that the next ones found.
    Left,
}

/// A note of a boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// The subject of the note.
    pub kind: NoteKind,
    /// The workload's name; empty if the note is of no workload, or its text names the workload.
    pub workload: String,
    /// The text of the note.
    pub text: String,
}

impl NoteKind {
    /// The kinds that can be recognized by the first words of a text.
    const SHOWN: [Self; 7] = [
        Self::NotRead,
        Self::Missing,
        Self::TooQuick,
        Self::NotCounted,
        Self::Profile,
        Self::Found,
        Self::Left,
    ];

    /// The first words of a note of this kind, which programs in the guest write too.
    pub const fn head(self) -> &'static str {
        match self {
            Self::Remark | Self::NoLog => "",
            Self::NotRead => "not read: ",
            Self::Missing => "missing: ",
            Self::TooQuick => "too quick to be measured: ",
            Self::NotCounted => "events: ",
            Self::Profile => "profile: ",
            Self::Found => "found by ",
            Self::Left => "left by ",
        }
    }

    /// A note of this kind that is of no workload.
    pub fn note(self, text: impl Into<String>) -> Note {
        Note { kind: self, workload: String::new(), text: text.into() }
    }
}

impl Note {
    /// The note of an imported boot whose kernel's log was not kept.
    pub fn no_log() -> Self {
        NoteKind::NoLog.note("no kernel log: whether the kernel complained is not known")
    }

    fn of_workload(kind: NoteKind, parts: Option<(&str, &str)>) -> Option<Self> {
        let (workload, text) = parts?;
        Some(Self { kind, workload: workload.into(), text: text.into() })
    }
}

impl From<&str> for Note {
    /// Parses the printed form of a [`Note`].
    fn from(text: &str) -> Self {
        let shown = NoteKind::SHOWN.into_iter();
        let known = shown.filter_map(|kind| Some((kind, text.strip_prefix(kind.head())?))).next();
        match known {
            // Names of workloads may have a colon; states have none.
            Some((kind @ NoteKind::Found, rest)) => {
                let found = Self::of_workload(kind, rest.rsplit_once(": "));
                found.filter(|note| StatesFound::of_note(note).is_some())
            }
            Some((kind @ NoteKind::Left, rest)) => Self::of_workload(kind, rest.split_once(": ")),
            Some((kind, rest)) => Some(kind.note(rest)),
            None => Some(Self::no_log()).filter(|it| it.text == text),
        }
        .unwrap_or_else(|| NoteKind::Remark.note(text))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.kind.head();
        match self.kind {
            NoteKind::Found | NoteKind::Left => write!(f, "{head}{}: {}", self.workload, self.text),
            _ => write!(f, "{head}{}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_is_printed() {
        for text in [
            "created 40 files",
            "no kernel log: whether the kernel complained is not known",
            "not read: pgbench, iteration 0: x.log: cut off",
            "missing: pgbench, iteration 0: txn-4",
            "too quick to be measured: SeqRead-1",
            "events: none",
            "profile: functions have no names",
            "found by a: b = c; d: THP = never; KSM = 0",
            "found by none",
            "found by gcc: 3 problems",
            "left by fill: 312 MiB of memory in use",
            "left by gcc",
        ] {
            assert_eq!(Note::from(text).to_string(), text);
        }
        let left = Note::from("left by fill: a: b");
        assert_eq!((left.kind, &*left.workload, &*left.text), (NoteKind::Left, "fill", "a: b"));
        for text in ["left by gcc", "found by gcc: 3 problems", "created 40 files"] {
            assert_eq!(Note::from(text).kind, NoteKind::Remark);
        }
    }
}
