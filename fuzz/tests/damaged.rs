//! Runs each parser on its corpus, and on damaged copies of it for a time: a second, or FUZZ_SECONDS. A failing input is
//! reduced and printed.

use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

/// A change of an input: the place, the number of bytes that are replaced, and the bytes that replace them.
type Change = (Index, usize, Vec<u8>);

/// Words that parsers often fail on.
const WORDS: &[&str] = &[
    "\n", "\r\n", "\0", " ", "\t", "-1", "0", "18446744073709551615", "18446744073709551616",
    "1e999", "nan", "-inf", ",", ":", "=", "\"", "'''", "[", "]", "{", "}", "\u{1b}[2J",
    "\u{202e}", "../", "/", "%", "(", ")",
];

/// The bytes that are put into an input: a few bytes, a word, or one byte many times.
fn added() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..6),
        select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        (any::<u8>(), 1..3000_usize).prop_map(|(byte, times)| vec![byte; times]),
        vec(select(&[0, 1, 0x7f, 0x80, 0xff][..]), 1..9),
    ]
}

fn damaged(corpus: Vec<(String, Vec<u8>)>) -> impl Strategy<Value = (String, Vec<u8>)> {
    let change = (any::<Index>(), 0..40_usize, added());
    let cut = prop::option::weighted(0.2, any::<Index>());
    (select(corpus), vec(change, 1..6), cut).prop_map(|((name, mut bytes), changes, cut)| {
        let apply = |bytes: &mut Vec<u8>, (place, removed, added): Change| {
            let start = place.index(bytes.len() + 1);
            let end = (start + removed).min(bytes.len());
            bytes.splice(start..end, added);
        };
        changes.into_iter().for_each(|change| apply(&mut bytes, change));
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        (name, bytes)
    })
}

/// The files of the repository at these paths and below these directories, with their names. Files packed by zstd are
/// unpacked.
fn corpus(paths: &[&str]) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    let mut left: Vec<_> = paths.iter().map(|it| root.join(it)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        } else {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut bytes = fs::read(&path).unwrap();
            if name.ends_with(".zst") {
                bytes = zstd::decode_all(&*bytes).unwrap();
            }
            files.push((name, bytes));
        }
    }
    assert!(!files.is_empty(), "no file in {paths:?}");
    files.sort();
    files
}

fn check(read: fn(&str, &[u8]) -> bool, paths: &[&str]) {
    let corpus = corpus(paths);
    for (name, bytes) in &corpus {
        assert!(read(name, bytes), "nothing is read of {name}");
    }
    let seconds = env::var("FUZZ_SECONDS").map_or(1, |text| text.parse().expect("whole seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let config = Config { cases: 16, failure_persistence: None, ..Config::default() };
    let (mut runner, inputs) = (TestRunner::new(config), damaged(corpus));
    while Instant::now() < end {
        let read = |(name, bytes): (String, Vec<u8>)| {
            read(&name, &bytes);
            Ok(())
        };
        runner.run(&inputs, read).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A test for each parser, with its corpus.
macro_rules! parsers {
    ($($name:ident: $($path:literal),+;)*) => {
        $(#[test]
        fn $name() {
            check(fuzz::$name, &[$($path),+]);
        })*
    };
}

parsers! {
    kernel_files: "crates/kernelfiles/fixtures", "fuzz/corpus/log";
    protocol: "fuzz/corpus/protocol";
    mails: "crates/import/fixtures";
    perf_script: "fuzz/corpus/perf_script";
    perf_json: "fuzz/corpus/perf_json";
    mmtests_logs: "fuzz/corpus/mmtests";
    toml_files: "experiments/exact.toml", "experiments/matrix.toml", "experiments/sweep.toml", "fuzz/corpus/toml";
    images: "fuzz/corpus/images";
    packages: "fuzz/corpus/rpm", "fuzz/corpus/tar";
    events: "fuzz/corpus/recording";
    profile: "fuzz/corpus/profile";
    stores: "crates/store/src/tests/fixtures";
}
