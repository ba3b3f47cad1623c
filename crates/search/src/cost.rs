//! Estimates the boots and the time that a search takes, from the durations of earlier boots and
//! builds.

use std::time::Duration;

use kernels::Cache;
use lab::usual_wall;
use model::{Experiment, Mode};
use plan::Search;
use store::Archive;

use crate::proof::FEWEST;
use crate::range::Range;

/// Returns a line that estimates how many boots a search of one step in this range needs, and how
/// long it takes. Kernels and boots that are kept from an earlier search take no time, which the
/// estimate ignores.
///
/// # Errors
/// When the store cannot be read.
pub fn cost(
    search: &Search,
    range: &Range,
    store: Option<&dyn Archive>,
    cache: &Cache,
) -> Result<String, store::Error> {
    let kernels = range.kernels(search.prove);
    let boot = store.map(|store| usual_wall(&search.experiment, store)).transpose()?.flatten();
    let build = match range.options() {
        0 => cache.usual_build().ok_or("how long a build takes is not known yet"),
        // A change of an option can affect every file, so the duration of the last build says
        // little.
        _ => Err("a build with another option can take as long as a first one"),
    };
    Ok(text(boots(search, kernels), kernels, boot, build))
}

/// Returns the number of boots, and the words before it. In measured mode the number is a minimum,
/// because noise can make more necessary.
fn boots(search: &Search, kernels: u32) -> (&'static str, u32) {
    let Experiment { mode, boots, .. } = search.experiment;
    // `boots` boots of each end and one boot of each other kernel. The proof boots four kernels.
    let sought = 2 * boots + kernels.saturating_sub(2 + u32::from(search.prove));
    let proof = |fewest: u32| if search.prove { 4 * boots.max(fewest) } else { 0 };
    match mode {
        Mode::Exact => ("about", sought + proof(FEWEST[0])),
        Mode::Measured => ("at least", sought + proof(FEWEST[1])),
    }
}

fn text(
    (about, boots): (&str, u32),
    kernels: u32,
    boot: Option<Duration>,
    build: Result<Duration, &str>,
) -> String {
    let line = format!("{about} {boots} boots");
    let [boot_s, build_s] = [boot, build.ok()].map(|it| it.unwrap_or_default().as_secs());
    let all = span(boot.unwrap_or_default() * boots + build.unwrap_or_default() * kernels);
    match (boot, build) {
        (Some(_), Ok(_)) => format!(
            "{line}, {about} {all}: the last build took {build_s} s, a boot of this workload {boot_s} s"
        ),
        (Some(_), Err(why)) => format!(
            "{line}, {about} {all} and the builds: a boot of this workload took {boot_s} s; {why}"
        ),
        (None, Ok(_)) => format!(
            "{line}; builds: {about} {all}, the last took {build_s} s; how long a boot takes is not known yet"
        ),
        (None, Err(why)) => format!("{line}; how long a boot takes is not known yet; {why}"),
    }
}

/// Formats a duration in minutes, or in hours if it is two hours or longer.
fn span(duration: Duration) -> String {
    match duration.as_secs().div_ceil(60) {
        minutes @ ..120 => format!("{minutes} min"),
        minutes => format!("{} h", (minutes + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_estimated() {
        let of = |boot: Option<u64>, build: Option<u64>| {
            let [boot, build] = [boot, build].map(|it| it.map(Duration::from_secs));
            text(("about", 24), 7, boot, build.ok_or("builds are long"))
        };
        assert_eq!(
            [of(Some(10), Some(60)), of(Some(600), None), of(None, Some(60)), of(None, None)],
            [
                "about 24 boots, about 11 min: the last build took 60 s, a boot of this workload 10 s",
                "about 24 boots, about 4 h and the builds: a boot of this workload took 600 s; builds are \
                 long",
                "about 24 boots; builds: about 7 min, the last took 60 s; how long a boot takes is not known yet",
                "about 24 boots; how long a boot takes is not known yet; builds are long",
            ]
        );
    }
}
