//! Compares the machine code of two kernels' functions, without their addresses. A function that only moved, or whose
//! callees only moved, is the same. The crate is pure. Its input files are hostile.

mod arch;
mod difference;
mod image;
mod instruction;
mod instrumentation;
mod lines;
mod listing;
mod place;
mod sources;
mod symbol;

pub use difference::{Change, CodeDifference, Function, Size, difference};
pub use image::{Error, Image};
pub use instrumentation::{IBT, Instrumentation};
pub use listing::{At, Line, Listing, listings, whole_listings};
pub use place::{ChangedLine, ChangedPlace, changed_place, differs};
pub use sources::{Origin, has_debug_information};
pub use symbol::{Piece, Symbol};
