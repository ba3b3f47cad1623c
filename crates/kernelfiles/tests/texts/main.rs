//! The parsers on texts of real kernels, damaged texts, and arbitrary ones.

mod fixture;
mod hostile;
mod real;
mod versions;
