//! Reads what `perf data convert --to-json` writes (`tools/perf/util/data-convert-json.c` of Linux).

use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};

use super::{Collector, KERNEL, PerfSamples, Sample, UNKNOWN, process, shortened};

/// The largest number of functions of a call chain that are read.
const MAX_CHAIN: usize = 1 << 12;

/// The version of the format.
const VERSION: u32 = 1;
/// Options of `perf record` that have a value (perf-record(1)), with their letters; `-` if there is none.
const WITH_VALUE: [(&str, char); 22] = [
    ("event", 'e'),
    ("filter", '-'),
    ("pid", 'p'),
    ("tid", 't'),
    ("realtime", 'r'),
    ("cpu", 'C'),
    ("count", 'c'),
    ("output", 'o'),
    ("freq", 'F'),
    ("mmap-pages", 'm'),
    ("call-graph", '-'),
    ("cgroup", 'G'),
    ("delay", 'D'),
    ("uid", 'u'),
    ("branch-filter", 'j'),
    ("clockid", 'k'),
    ("max-size", '-'),
    ("affinity", '-'),
    ("control", '-'),
    ("clang-path", '-'),
    ("switch-max-files", '-'),
    ("vmlinux", '-'),
];

#[derive(Deserialize)]
struct File {
    #[serde(rename = "linux-perf-json-version")]
    version: u32,
    #[serde(default)]
    headers: Headers,
    samples: Samples,
}

#[derive(Default, Deserialize)]
struct Headers {
    /// The command line of `perf record`.
    #[serde(default)]
    cmdline: Vec<Text>,
    #[serde(rename = "os-release", default)]
    release: Text,
}

/// Samples, summed up while they are read.
struct Samples(Collector);

#[derive(Deserialize)]
struct JsonSample {
    timestamp: u64,
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    comm: Text,
    #[serde(default)]
    callchain: Chain,
}

/// The first functions of a call chain.
#[derive(Default)]
struct Chain(Vec<Frame>);

#[derive(Deserialize)]
struct Frame {
    ip: Text,
    symbol: Option<Text>,
    dso: Option<Text>,
}

/// A text in which perf can write any bytes.
#[derive(Default)]
struct Text(String);

/// Reads what `perf data convert --to-json` writes. The samples do not have their event: it is that of the command
/// line in the file, or else `event`.
///
/// # Errors
/// When the text cannot be read, is not such a file, or was recorded with several events.
pub fn perf_json(input: impl Read, event: Option<&str>) -> Result<PerfSamples, String> {
    let file: File = serde_json::from_reader(input).map_err(|error| error.to_string())?;
    if file.version != VERSION {
        return Err(format!("its version is {}, but only {VERSION} is known", file.version));
    }
    let events = events(&file.headers.cmdline)?;
    let one = match &events[..] {
        [] => event.unwrap_or(UNKNOWN),
        [one] if !one.contains(['*', '?']) => one,
        _ => {
            return Err(format!(
                "it was recorded with the events {}, and does not tell which sample is of which: give the output of \
                 `perf script`",
                events.join(", ")
            ));
        }
    };
    let release = shortened(&file.headers.release.0);
    Ok(PerfSamples { release, ..file.samples.0.samples(one) })
}

/// The events of a command line of `perf record`. Words after its options are the program's.
fn events(cmdline: &[Text]) -> Result<Vec<&str>, String> {
    let mut words = cmdline.iter().map(|word| &*word.0).skip(1);
    match words.next() {
        None | Some("record") => {}
        Some(other) => {
            return Err(format!(
                "it was recorded by `perf {other}`, which can have several events: give the output of `perf script`"
            ));
        }
    }
    let mut events = Vec::new();
    while let Some(word) = words.next() {
        let (name, own) = match word.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (long_name(name), Some(value)),
                None => (long_name(long), None),
            },
            None => match word.strip_prefix('-') {
                Some(cluster) => short_name(cluster),
                None => break,
            },
        };
        let Some(name) = name else { continue };
        let value = own.or_else(|| words.next()).unwrap_or_default();
        if name == 'e' {
            events.extend(split(value));
        }
    }
    Ok(events)
}

/// The letter of a long option that has a value. Options can be shortened.
fn long_name(name: &str) -> Option<char> {
    let is_it = |(long, _): &&(&str, char)| !name.is_empty() && long.starts_with(name);
    WITH_VALUE.iter().find(is_it).map(|(_, letter)| *letter)
}

/// The option with a value in a cluster of letters such as `age`, and the value if it is in the same word.
fn short_name(cluster: &str) -> (Option<char>, Option<&str>) {
    let is_it = |letter: char| WITH_VALUE.iter().any(|it| it.1 == letter);
    let Some((place, letter)) = cluster.char_indices().find(|(_, letter)| is_it(*letter)) else {
        return (None, None);
    };
    let value = &cluster[place + letter.len_utf8()..];
    (Some(letter), Some(value).filter(|value| !value.is_empty()))
}

/// The events of a list. `cpu/event=0x3c,umask=0/` has commas of its own.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut in_slashes = false;
    let parts = list.split(move |letter: char| {
        in_slashes ^= letter == '/';
        letter == ',' && !in_slashes
    });
    parts.map(|event| event.trim_matches(['{', '}'])).filter(|event| !event.is_empty())
}

impl From<JsonSample> for Sample {
    fn from(json: JsonSample) -> Self {
        let mut sample = Self::new(&json.comm.0, process(json.pid), json.timestamp);
        for Frame { ip, symbol, dso } in json.callchain.0 {
            let address = u64::from_str_radix(ip.0.trim_start_matches("0x"), 16).unwrap_or(0);
            let object = dso.unwrap_or_default().0;
            let is_kernel = address >= KERNEL || object.starts_with("[kernel");
            sample.add(is_kernel, symbol.as_ref().map_or(UNKNOWN, |it| &it.0), &object);
        }
        sample
    }
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Collector;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of samples")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut collector = Collector::default();
                while let Some(sample) = all.next_element::<JsonSample>()? {
                    collector.take(sample.into());
                }
                Ok(collector)
            }
        }
        deserializer.deserialize_seq(Each).map(Self)
    }
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct First;
        impl<'de> Visitor<'de> for First {
            type Value = Vec<Frame>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of functions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MAX_CHAIN
                    && let Some(frame) = all.next_element()?
                {
                    first.push(frame);
                }
                while all.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }
        }
        deserializer.deserialize_seq(First).map(Self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
                Ok(String::from_utf8_lossy(bytes).into_owned())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
                Ok(text.to_owned())
            }
        }
        deserializer.deserialize_bytes(Bytes).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perf::taken;

    /// In the form of perf 6.1.
    const TEXT: &str = r#"{
	"linux-perf-json-version": 1,
	"headers": {
		"header-version": 1,
		"os-release": "6.1.0-44-amd64",
		"cmdline": ["/usr/bin/perf", "record", "-a", "-g", "-e", "cpu-clock", "--", "bash", "-e", "x"]
	},
	"samples": [
		{ "timestamp": 1000000000, "pid": 12, "tid": 14, "cpu": 0, "comm": "usemem", "callchain": [
			{ "ip": "0xffffffff8128f1a3", "symbol": "clear_page_erms", "dso": "[kernel.kallsyms]" },
			{ "ip": "0xffffffff8126d0f4", "symbol": "do_anonymous_page", "dso": "[kernel.kallsyms]" },
			{ "ip": "0x4011d6", "symbol": "touch", "dso": "usemem" } ] },
		{ "timestamp": 1500000000, "pid": 7, "tid": 7, "comm": "a \"b\"", "callchain": [
			{ "ip": "0x4011d6", "symbol": "touch", "dso": "a" },
			{ "ip": "0x7f14dd1089b8" } ] },
		{ "timestamp": 1600000000, "pid": 0, "tid": 0, "comm": "swapper", "callchain": [] },
		{ "timestamp": 3000000000, "pid": -1, "tid": -1, "comm": ":-1", "callchain": [
			{ "ip": "0xffffffffc0201010" } ] }
	]
}"#;

    #[test]
    fn samples_are_those_of_the_kernel_by_path_and_of_processes() {
        let PerfSamples { profile, idle, dropped, release, .. } =
            perf_json(TEXT.as_bytes(), None).unwrap();
        assert_eq!(release, "6.1.0-44-amd64");
        let expected =
            ["[unknown]: 1", "do_anonymous_page;clear_page_erms: 1", "7 a \"b\" touch: 1"];
        assert_eq!(taken(&profile), expected);
        let sampled = profile.sampled.unwrap();
        assert_eq!((&*sampled.event, idle, dropped), ("cpu-clock", 1, 0));
        assert_eq!(sampled.seconds(), 2.0);
    }

    #[test]
    fn several_events_are_refused() {
        let read = |words: &str, event| {
            let words: Vec<_> = words.split(' ').map(|word| format!("{word:?}")).collect();
            let own = "\"record\", \"-a\", \"-g\", \"-e\", \"cpu-clock\", \"--\", \"bash\", \"-e\", \"x\"";
            let samples = perf_json(TEXT.replace(own, &words.join(", ")).as_bytes(), event)?;
            Ok::<_, String>(samples.profile.sampled.unwrap().event)
        };
        for several in [
            "record -e a,b", "record -e a -e b", "record -age a,b", "record --ev=a,b",
            "record -e {a,b}", "record -e cpu/x=1,y=2/,b", "record -e syscalls:*", "sched record",
        ] {
            assert!(read(several, None).is_err(), "{several}");
        }
        for (one, event) in [
            ("record -ge a x", "a"),
            ("record -agea", "a"),
            ("record -o -e -e a", "a"),
            ("record -F 99 --event a ./work -e b", "a"),
            ("record --call-graph fp -e a", "a"),
            ("record -e cpu/x=1,y=2/", "cpu/x=1,y=2/"),
            ("record -a ./work -e b", UNKNOWN),
            ("record -e  -a", UNKNOWN),
        ] {
            assert_eq!(read(one, None).unwrap(), event, "{one}");
        }
        assert_eq!(read("record -a", Some("cycles")).unwrap(), "cycles");
        assert!(perf_json(TEXT.replace("version\": 1", "version\": 2").as_bytes(), None).is_err());
    }

    #[test]
    fn other_bytes_are_survived() {
        let mut text = TEXT.replace("usemem\", \"callchain", "?\", \"callchain").into_bytes();
        let place = text.windows(3).position(|it| it == b"\"?\"").unwrap() + 1;
        text[place] = 0xff;
        assert_eq!(perf_json(&text[..], None), perf_json(TEXT.as_bytes(), None));
        let frame = r#"{ "ip": "0x1", "symbol": "f", "dso": "a" },"#;
        let deep = TEXT.replacen("{ \"ip\"", &format!("{} {{ \"ip\"", frame.repeat(9000)), 1);
        let read = perf_json(deep.as_bytes(), None).unwrap();
        assert!(taken(&read.profile).iter().any(|it| it.matches(';').count() == 127));
    }

    proptest! {
        #[test]
        fn hostile_text_is_survived(at in 0..TEXT.len(), with in "\\PC{0,3}", cut in 0..40_usize) {
            let text = format!("{}{with}{}", &TEXT[..at], &TEXT[(at + cut).min(TEXT.len())..]);
            if let Ok(read) = perf_json(text.as_bytes(), None) {
                let part = read.profile.since(0).unwrap();
                prop_assert_eq!(part, read.profile);
            }
            prop_assert!(perf_json(&TEXT.as_bytes()[..at], None).is_err());
        }
    }
}
