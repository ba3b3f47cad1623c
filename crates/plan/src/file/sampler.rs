//! Checks the table `[sampler]`.

use model::{MAX_EVENTS, Millis, PerfEvent, Sampler, Source};
use toml::Spanned;

use super::{Checked, fault};
use crate::form::near::nearest;

/// The shortest interval between samples.
const SHORTEST_INTERVAL: Millis = Millis(10);

pub fn check(sampler: Option<Spanned<Sampler>>) -> Checked<Sampler> {
    let Some(sampler) = sampler else {
        return Ok(Sampler::default());
    };
    let Sampler { interval, sources, events } = sampler.get_ref();
    if *interval < SHORTEST_INTERVAL {
        let problem = format!("the interval of {interval} is too short");
        return fault(sampler.span(), problem, "the shortest interval is 10ms");
    }
    if let Some(source) = twice(sources) {
        let problem = format!("`{}` is sampled twice", source.name());
        return fault(sampler.span(), problem, "name each source once");
    }
    if sources.contains(&Source::Events) {
        let hint = "name the events: events = [\"page-faults\"]";
        return fault(sampler.span(), "`events` is not a file", hint);
    }
    match check_events(events) {
        Ok(()) => Ok(sampler.into_inner()),
        Err((problem, hint)) => fault(sampler.span(), problem, hint),
    }
}

fn twice<T: PartialEq>(named: &[T]) -> Option<&T> {
    named.iter().enumerate().find(|(place, it)| named[..*place].contains(it)).map(|(_, it)| it)
}

/// Checks names of events. The error is the problem, and a hint. Which tracepoints a kernel has is not checked.
fn check_events(events: &[String]) -> Result<(), (String, String)> {
    if events.len() > MAX_EVENTS {
        let problem = format!("{} events are too many", events.len());
        return Err((problem, format!("count at most {MAX_EVENTS}")));
    }
    if let Some(event) = twice(events) {
        return Err((format!("the event `{event}` is there twice"), "name each event once".into()));
    }
    match events.iter().find(|event| PerfEvent::parse(event).is_none()) {
        None => Ok(()),
        Some(event) => {
            let names = [PerfEvent::names(true), PerfEvent::names(false)].concat();
            let hint = match nearest(event, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a tracepoint is system:name, such as tlb:tlb_flush".into(),
            };
            Err((format!("perf has no event `{}`", event.escape_debug()), hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(events: &[&str]) -> Option<(String, String)> {
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        check_events(&events).err()
    }

    #[test]
    fn events_are_no_file_to_sample() {
        let text = "sampler = { sources = ['vmstat', 'events'] }";
        let mut table: std::collections::BTreeMap<String, Spanned<Sampler>> =
            toml::from_str(text).unwrap();
        let problem = check(table.remove("sampler")).err().unwrap().problem;
        assert_eq!(problem, "`events` is not a file");
    }

    #[test]
    fn names_of_events_are_checked() {
        assert_eq!(said(&["tlb:tlb_flush", "page-faults", "dTLB-load-misses"]), None);
        let of = |problem: &str, hint: &str| Some((problem.to_owned(), hint.to_owned()));
        assert_eq!(
            said(&["page-fault"]),
            of("perf has no event `page-fault`", "did you mean `page-faults`?")
        );
        assert_eq!(
            said(&["???"]),
            of("perf has no event `???`", "a tracepoint is system:name, such as tlb:tlb_flush")
        );
        assert_eq!(
            said(&["cycles", "cycles"]),
            of("the event `cycles` is there twice", "name each event once")
        );
        let names = PerfEvent::names(false);
        let many: Vec<&str> = names.iter().map(String::as_str).take(MAX_EVENTS + 1).collect();
        assert_eq!(said(&many), of("33 events are too many", "count at most 32"));
    }
}
