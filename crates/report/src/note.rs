//! Notes on variants, and how they are laid out.

use crate::document::{Block, Column, part, table};

/// A note on one variant, or on all.
#[derive(Clone, PartialEq)]
pub struct Note {
    /// What the note is about.
    pub topic: &'static str,
    /// The name of the variant; `None` if the note is on all of them.
    pub variant: Option<String>,
    /// The text of the note.
    pub text: String,
}

impl Note {
    pub fn on(topic: &'static str, variant: &str, text: String) -> Self {
        Self { topic, variant: Some(variant.to_owned()), text }
    }

    /// Creates a note on all variants.
    pub fn on_all(topic: &'static str, text: String) -> Self {
        Self { topic, variant: None, text }
    }
}

/// Lays out notes: the topic, which is printed once, then the variant, then the text.
pub fn block(title: &str, notes: &[Note]) -> Block {
    let rows = notes.iter().map(|Note { topic, variant, text }| {
        let cells = [Some(&(*topic).to_owned()), variant.as_ref(), Some(text)];
        cells.into_iter().flatten().cloned().collect()
    });
    let columns = [Column::topics(), Column::words(""), Column::sentences("")];
    part(title, [table(columns, rows.collect())])
}
