//! Finds the commit at which a figure changed, from readings of some commits of a range. The crate is pure: what to
//! read next is a function of the history and the readings so far. To continue an interrupted search, ask again.

mod contract;
pub mod exact;
mod findings;
mod history;
mod levels;
pub mod measured;
pub mod posterior;

pub use contract::Contracted;
pub use exact::{Exact, Step};
pub use findings::{
    Commit, Culprit, Findings, LevelChange, Phase, Proof, SearchEnding, Tried, short,
};
pub use history::{History, Node};
pub use levels::{level, reach};
pub use measured::{Likely, Measured};
pub use posterior::{Noisy, Weighed};
