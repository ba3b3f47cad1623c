//! Reads what `perf data convert --to-json` writes (`tools/perf/util/data-convert-json.c` of Linux).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{SeqAccess, Visitor};

use super::{Collector, KERNEL, PerfSamples, Sample, UNKNOWN};

#[derive(Deserialize)]
struct File<'a> {
    #[serde(rename = "linux-perf-json-version")]
    _version: u32,
    #[serde(borrow, default)]
    headers: Headers<'a>,
    #[serde(borrow)]
    samples: Samples<'a>,
}

#[derive(Default, Deserialize)]
struct Headers<'a> {
    /// The command line of `perf record`.
    #[serde(borrow, default)]
    cmdline: Vec<Cow<'a, str>>,
}

/// Samples, summed up while they are read.
struct Samples<'a>(Collector<'a>);

#[derive(Deserialize)]
struct JsonSample<'a> {
    timestamp: u64,
    #[serde(default)]
    pid: i64,
    #[serde(borrow, default)]
    comm: Cow<'a, str>,
    #[serde(borrow, default)]
    callchain: Vec<Frame<'a>>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    ip: Cow<'a, str>,
    #[serde(borrow)]
    symbol: Option<Cow<'a, str>>,
    #[serde(borrow)]
    dso: Option<Cow<'a, str>>,
}

/// Reads what `perf data convert --to-json` writes. The samples do not have their event: it is that of the
/// command line in the file.
///
/// # Errors
/// When the text is not such a file, or was recorded with several events.
pub fn perf_json(text: &str) -> Result<PerfSamples, String> {
    let file: File<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let events = events(&file.headers.cmdline);
    if let [one, other, ..] = events[..] {
        return Err(format!(
            "it has samples of {one} and {other}, and does not tell which is of which: give the output of `perf script`"
        ));
    }
    Ok(file.samples.0.samples(events.first().unwrap_or(&UNKNOWN)))
}

/// The events of a command line of `perf record`. An event like `cpu/event=0x3c,umask=0/` has commas of its own.
fn events<'a>(cmdline: &'a [Cow<'_, str>]) -> Vec<&'a str> {
    let mut events = Vec::new();
    let own = cmdline.iter().take_while(|word| **word != "--");
    for (place, word) in own.enumerate() {
        let next = || cmdline.get(place + 1).map(|word| &**word);
        let list = match &**word {
            "-e" | "--event" => next(),
            word => word.strip_prefix("--event=").or_else(|| word.strip_prefix("-e")),
        };
        match list {
            Some(list) if list.contains('/') => events.push(list),
            Some(list) => events.extend(list.split(',').map(|it| it.trim_matches(['{', '}']))),
            None => {}
        }
    }
    events
}

impl<'a> From<JsonSample<'a>> for Sample<'a> {
    fn from(json: JsonSample<'a>) -> Self {
        let id = json.pid.try_into().unwrap_or(u32::MAX);
        let mut sample = Self::new(json.comm, id, json.timestamp);
        for Frame { ip, symbol, dso } in json.callchain {
            let address = u64::from_str_radix(ip.trim_start_matches("0x"), 16).unwrap_or(0);
            let is_kernel =
                address >= KERNEL || dso.is_some_and(|object| object.starts_with("[kernel"));
            sample.add(is_kernel, symbol.unwrap_or(UNKNOWN.into()));
        }
        sample
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Samples<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Collector<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of samples")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut collector = Collector::default();
                while let Some(sample) = all.next_element::<JsonSample<'de>>()? {
                    collector.take(sample.into());
                }
                Ok(collector)
            }
        }
        deserializer.deserialize_seq(Each).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In the form of perf 6.1.
    const TEXT: &str = r#"{
	"linux-perf-json-version": 1,
	"headers": {
		"header-version": 1,
		"cmdline": ["/usr/bin/perf", "record", "-a", "-g", "-e", "cpu-clock", "--", "bash", "-e", "x"]
	},
	"samples": [
		{ "timestamp": 1000000000, "pid": 12, "tid": 14, "cpu": 0, "comm": "usemem", "callchain": [
			{ "ip": "0xffffffff8128f1a3", "symbol": "clear_page_erms", "dso": "[kernel.kallsyms]" },
			{ "ip": "0xffffffff8126d0f4", "symbol": "do_anonymous_page", "dso": "[kernel.kallsyms]" },
			{ "ip": "0x4011d6", "symbol": "touch", "dso": "usemem" } ] },
		{ "timestamp": 1500000000, "pid": 7, "tid": 7, "comm": "a \"b\"", "callchain": [
			{ "ip": "0x7f14dd1089b8" } ] },
		{ "timestamp": 1600000000, "pid": 0, "tid": 0, "comm": "swapper", "callchain": [] },
		{ "timestamp": 3000000000, "pid": -1, "tid": -1, "comm": ":-1", "callchain": [
			{ "ip": "0xffffffffc0201010" } ] }
	]
}"#;

    #[test]
    fn samples_are_those_of_the_kernel_by_path_and_of_processes() {
        let PerfSamples { profile, idle, dropped, .. } = perf_json(TEXT).unwrap();
        let stacks = profile.stacks.iter().map(|it| (it.functions.join(";"), it.instructions));
        let expected = [("[unknown]", 1), ("do_anonymous_page;clear_page_erms", 1)];
        assert_eq!(
            stacks.collect::<Vec<_>>(),
            expected.map(|(path, samples)| (path.to_owned(), samples))
        );
        let processes = profile.processes.iter().map(|it| (it.id, &*it.name, it.instructions[0]));
        assert_eq!(processes.collect::<Vec<_>>(), [(7, "a \"b\"", 1)]);
        let sampled = profile.sampled.unwrap();
        assert_eq!((&*sampled.event, idle, dropped), ("cpu-clock", 1, 0));
        assert_eq!(sampled.seconds(), 2.0);
    }

    #[test]
    fn several_events_are_refused() {
        let with = |events: &str| perf_json(&TEXT.replace("cpu-clock", events));
        let refused = with("{cycles,tlb:tlb_flush}").unwrap_err();
        assert!(refused.starts_with("it has samples of cycles and tlb:tlb_flush"), "{refused}");
        let one = with("cpu/event=0x3c,umask=0/").unwrap().profile.sampled.unwrap();
        assert_eq!(one.event, "cpu/event=0x3c,umask=0/");
        let none = perf_json(&TEXT.replace("\"-e\",", "")).unwrap().profile.sampled.unwrap();
        assert_eq!(none.event, UNKNOWN);
    }

    proptest! {
        #[test]
        fn hostile_text_is_survived(at in 0..TEXT.len(), with in "\\PC{0,3}", cut in 0..40_usize) {
            let text = format!("{}{with}{}", &TEXT[..at], &TEXT[(at + cut).min(TEXT.len())..]);
            if let Ok(read) = perf_json(&text) {
                let part = read.profile.since(0).unwrap();
                prop_assert_eq!(part, read.profile);
            }
            prop_assert!(perf_json(&TEXT[..at]).is_err());
        }
    }
}
