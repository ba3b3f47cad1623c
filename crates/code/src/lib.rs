//! Compares the machine code of two kernels' functions, without their addresses: a function that only moved,
//! or whose callees only moved, is the same. Pure; the files are hostile.

mod difference;
mod image;
mod instruction;
mod listing;
mod sources;
mod symbol;

pub use difference::{Change, CodeDifference, Function, Size, difference};
pub use image::{Error, Image};
pub use listing::{Line, Listing, listings};
pub use symbol::{Piece, Symbol};
