//! Finds the commit at which a figure changed, from readings of some commits of a range. Pure: what is to be
//! read next is a function of the history and the readings so far, so an interrupted search continues by
//! asking again.

mod history;

pub use history::{History, Node};
