//! What of a phase's instructions is per page and per byte, where two kernels have pages of different sizes.

use compare::{ByPages, Headline};

use super::headline::phase_name;
use crate::ascii::{excerpt, few};
use crate::words::in_percent;

/// Most functions that a sentence names.
const MOST: usize = 3;

/// Returns a sentence on each phase whose instructions changed beyond luck, and what these mean. Empty if there are none,
/// or pages have one size.
pub fn sentences<'a>(headlines: impl Iterator<Item = &'a Headline>) -> Vec<String> {
    let is_changed = |it: &&Headline| it.kernel.beyond_luck() == Some(true) && !it.of_one_variant;
    let changed = headlines.filter(is_changed);
    let found: Vec<_> = changed.filter_map(|it| Some((&*it.phase, it.pages.as_ref()?))).collect();
    let meaning = found.first().map(|(_, pages)| meaning(pages));
    found.into_iter().map(|(phase, pages)| sentence(phase, pages)).chain(meaning).collect()
}

/// Returns a sentence on one phase.
fn sentence(phase: &str, pages: &ByPages) -> String {
    let ByPages { per_page, per_byte, by_bytes, .. } = pages;
    let neither = (1.0 - per_page - per_byte).max(0.0);
    let [page, byte, neither] = [*per_page, *per_byte, neither].map(|it| in_percent(it, 1));
    let names = few(MOST, by_bytes.iter().map(|name| excerpt(name))).join(", ");
    let names = if names.is_empty() { names } else { format!(" ({names})") };
    let phase = phase_name(phase);
    format!(
        "Phase {phase}, instructions before: {page} % per page, {byte} % per byte{names}, {neither} % neither."
    )
}

/// Returns what the sentences mean.
fn meaning(pages: &ByPages) -> String {
    let [base, new] = pages.sizes.map(|size| size >> 10);
    let times = match pages.factor() {
        0.25 => "a quarter as".to_owned(),
        less if less < 1.0 => format!("1/{} as", less.recip()),
        more => format!("{more} times as"),
    };
    format!(
        "Pages have {new} KiB instead of {base} KiB. Per page: functions that execute {times} many instructions now. Per \
         byte: functions that are entered {times} often now, and execute as many."
    )
}
