//! Verdicts: how large and how certain a difference is, in both modes.

pub mod evidence;
pub mod exact;
pub mod independent;
pub mod judge;
pub mod luck;
pub mod sequential;
