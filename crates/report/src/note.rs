//! Notes on variants: what one says, and how several are laid out.

use crate::document::{Block, Column, part, table};

/// What is to be known of a variant, or of all.
pub struct Note {
    /// What it is about.
    pub topic: &'static str,
    /// The name of its variant; `None` if it holds for all.
    pub variant: Option<String>,
    /// The sentence of the note.
    pub text: String,
}

impl Note {
    pub fn on(topic: &'static str, variant: &str, text: String) -> Self {
        Self { topic, variant: Some(variant.to_owned()), text }
    }

    /// On all of them.
    pub fn on_all(topic: &'static str, text: String) -> Self {
        Self { topic, variant: None, text }
    }
}

/// Notes with topics to the left, each printed once; then the variant; then the text.
pub fn block(title: &str, notes: &[Note]) -> Block {
    let rows = notes.iter().map(|Note { topic, variant, text }| {
        let cells = [Some(&(*topic).to_owned()), variant.as_ref(), Some(text)];
        cells.into_iter().flatten().cloned().collect()
    });
    let columns = [Column::topics(), Column::words(""), Column::sentences("")];
    part(title, [table(columns, rows.collect())])
}
