//! The value of `--names`: which names rows have.

use std::time::{SystemTime, UNIX_EPOCH};

use benchmarks::names::Month;
use model::date;

/// Parses `mmtests` or `mmtests:2015-03`.
pub fn names(text: &str) -> Result<Month, String> {
    match text.split_once(':') {
        None if text == "mmtests" => Ok(Month::LATEST),
        Some(("mmtests", month)) => past(month.parse()?),
        _ => Err("expected mmtests, or mmtests:YYYY-MM, such as mmtests:2015-03".into()),
    }
}

/// The month of mmtests' first commit, b4a2bbb0.
const BEGAN: &str = "2010-08";

/// The month, if mmtests existed and it is not in the future.
fn past(month: Month) -> Result<Month, String> {
    let [first, now] = [BEGAN.parse()?, date(now())[..BEGAN.len()].parse()?];
    match (first..=now).contains(&month) {
        true => Ok(month),
        false => Err(format!(
            "{month} is not between {first}, when mmtests began, and now ({now}); plain mmtests \
             means its names of today"
        )),
    }
}

/// The time now, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
