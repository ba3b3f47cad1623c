//! Parses the output of benchmark programs, both in the guest that runs them and in imported logs, and knows what
//! mmtests calls their rows. No I/O.

pub mod bonnie;
pub mod names;
pub mod nas;

/// A number in a program's output: digits, optionally with a point and more digits. Never negative.
pub fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let short = text.len() <= 40;
    text.parse().ok().filter(|_| plain && short)
}
