//! The parsers against texts of real kernels, damaged ones, and anything else.

mod fixture;
mod hostile;
mod real;
mod versions;
