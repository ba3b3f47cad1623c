//! Designs: what is compared with what, beyond variants with a baseline.

pub mod cross_check;
pub mod effects;
pub mod selftest;
pub mod split;
pub mod steps;
pub mod sweep;
