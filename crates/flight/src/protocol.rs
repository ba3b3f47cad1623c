//! The metric protocol: lines that a workload writes to the file descriptor whose number is in
//! `FAULTLINE_FD`.
//!
//! ```text
//! phase fill
//! sample Elapsed 12.345
//! sample latency p99 0.000123
//! sample latency 0.000045 @81.250
//! series memory-node0 0.52
//! note "created 40000 files"
//! ```
//!
//! A phase ends the previous one. After a `phase` without a name, no phase is active. The text of a note may be in
//! quotation marks. The name of a metric may contain blanks if it is in quotation marks, as in `sample "SeqIn block"
//! 21504`.
//!
//! Faultline fills some metrics itself. A line with one of their names, or with a phase whose rows would have such a
//! name, is an error ([`is_reserved`], [`is_reserved_phase`]).
//!
//! A sample that ends with `@` and seconds of `CLOCK_BOOTTIME` gives the end of the measured operation. The line
//! itself may come later.
//!
//! After each `phase` line a program should wait until the counters are cut: it reads one byte from the descriptor in
//! `FAULTLINE_ACK_FD`. In exact mode it must wait.

use model::{is_reserved, is_reserved_phase};

use crate::Event;

/// The variable that names the descriptor to write to.
pub const FD_VARIABLE: &str = "FAULTLINE_FD";
/// The variable that names the descriptor from which a byte is read after each `phase`.
pub const ACK_VARIABLE: &str = "FAULTLINE_ACK_FD";
/// The longest line in bytes. Longer ones are rejected.
pub const MAX_LINE: usize = 4096;
/// The longest name of a phase, metric, label or series, in bytes.
pub const MAX_NAME: usize = 64;

/// The reason why a line is not of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The first word is not `phase`, `sample`, `series` or `note`.
    #[error("unknown word `{0}`: use phase, sample, series or note")]
    Verb(String),
    /// The line has too few or too many words.
    #[error("`{0}` needs `{1}`")]
    Words(String, &'static str),
    /// A value is not a finite number.
    #[error("`{0}` is not a finite number")]
    Value(String),
    /// A name is empty or too long, or has characters other than letters, digits and `._:+/%-`.
    #[error("`{0}` is not a name: 1 to 64 letters, digits and ._:+/%-")]
    Name(String),
    /// The name is that of a metric that Faultline fills itself, or of a phase whose rows would have such a name.
    #[error("`{0}`: Faultline fills the rows of this name itself; use another name")]
    Reserved(String),
    /// The line is longer than [`MAX_LINE`], or not UTF-8.
    #[error("a line is not text, or longer than 4096 bytes")]
    Text,
}

/// Parses one line, without its newline, into the event that records it. The caller must skip empty lines.
/// Fails when it is no line of the protocol.
pub fn parse(line: &[u8]) -> Result<Event, LineError> {
    let text = std::str::from_utf8(line).map_err(|_| LineError::Text)?.trim();
    if text.len() > MAX_LINE {
        return Err(LineError::Text);
    }
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    match (verb, words.as_slice()) {
        ("phase", []) => Ok(Event::Phase(String::new())),
        ("phase", [phase]) if is_reserved_phase(phase) => {
            Err(LineError::Reserved(format!("phase {}", name(phase)?)))
        }
        ("phase", [phase]) => Ok(Event::Phase(name(phase)?)),
        ("phase", _) => Err(LineError::Words(verb.into(), "phase [NAME]")),
        ("sample", _) => sample(rest.trim()),
        ("series", [series, figure]) => {
            Ok(Event::Point { series: name(series)?, value: value(figure)? })
        }
        ("series", _) => Err(LineError::Words(verb.into(), "series NAME VALUE")),
        ("note", _) => Ok(Event::Note(rest.trim().trim_matches('"').to_owned())),
        _ => Err(LineError::Verb(verb.chars().take(MAX_NAME).collect())),
    }
}

/// Whether `word` is a valid name of a phase, metric, label or series: 1 to 64 letters, digits and
/// `._:+/%-`.
pub fn is_name(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._:+/%-".contains(c);
    (1..=MAX_NAME).contains(&word.len()) && word.chars().all(fits)
}

/// Whether `text` is a valid name of a metric: names separated by single blanks, in total no longer than
/// one name.
pub fn is_metric(text: &str) -> bool {
    text.len() <= MAX_NAME && text.split(' ').all(is_name)
}

/// Parses the words after `sample`.
fn sample(text: &str) -> Result<Event, LineError> {
    let quoted = text.strip_prefix('"').and_then(|text| text.split_once('"'));
    let (metric, rest) = match quoted {
        Some((metric, rest)) if is_metric(metric) => (metric.to_owned(), rest),
        Some((metric, _)) => return Err(no_name(metric)),
        None => {
            let (metric, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            (name(metric)?, rest)
        }
    };
    if is_reserved(&metric) {
        return Err(LineError::Reserved(format!("sample {metric}")));
    }
    let mut rest: Vec<&str> = rest.split_whitespace().collect();
    let ended = rest.pop_if(|last| last.starts_with('@')).map(instant).transpose()?;
    let (label, figure) = match rest.as_slice() {
        [figure] => (String::new(), figure),
        [label, figure] => (name(label)?, figure),
        _ => {
            let wanted = "sample METRIC [LABEL] VALUE [@SECONDS]";
            return Err(LineError::Words("sample".into(), wanted));
        }
    };
    Ok(Event::Sample { metric, label, value: value(figure)?, ended })
}

/// The nanoseconds of a word such as `@81.250`.
fn instant(word: &str) -> Result<u64, LineError> {
    let seconds = value(word.strip_prefix('@').unwrap_or(word))?;
    if seconds < 0.0 {
        return Err(LineError::Value(word.chars().take(MAX_NAME).collect()));
    }
    Ok((1e9 * seconds).round() as u64)
}

fn name(word: &str) -> Result<String, LineError> {
    if is_name(word) { Ok(word.to_owned()) } else { Err(no_name(word)) }
}

fn no_name(text: &str) -> LineError {
    LineError::Name(text.chars().take(MAX_NAME).collect())
}

fn value(word: &str) -> Result<f64, LineError> {
    let value = word.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| LineError::Value(word.chars().take(MAX_NAME).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_line_is_read() {
        let sample = |label: &str, value| Event::Sample {
            metric: "latency".into(),
            label: label.into(),
            value,
            ended: None,
        };
        assert_eq!(parse(b"phase fill"), Ok(Event::Phase("fill".into())));
        assert_eq!(parse(b"phase"), Ok(Event::Phase(String::new())));
        assert_eq!(parse(b"sample latency 2"), Ok(sample("", 2.0)));
        assert_eq!(parse(b"sample latency p99 0.000123\r"), Ok(sample("p99", 0.000123)));
        assert_eq!(parse(b"note \"40000 files\""), Ok(Event::Note("40000 files".into())));
        let metric = "SeqIn block".into();
        let quoted = Event::Sample { metric, label: "x".into(), value: 2.0, ended: None };
        assert_eq!(parse(b"sample \"SeqIn block\" x 2"), Ok(quoted));
        for (line, label) in
            [("sample latency 2 @81.25", ""), ("sample latency p99 2 @81.25", "p99")]
        {
            let Ok(Event::Sample { label: read, ended, .. }) = parse(line.as_bytes()) else {
                panic!()
            };
            assert_eq!((&*read, ended), (label, Some(81_250_000_000)));
        }
        let point = Event::Point { series: "memory-node0".into(), value: 0.5 };
        assert_eq!(parse(b"series memory-node0 0.5"), Ok(point));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        assert_eq!(parse(b"fase fill"), Err(LineError::Verb("fase".into())));
        assert_eq!(parse(b"sample x nan"), Err(LineError::Value("nan".into())));
        assert_eq!(parse(b"phase a/../\"b"), Err(LineError::Name("a/../\"b".into())));
        assert!(matches!(parse(b"sample x"), Err(LineError::Words(..))));
        assert!(matches!(parse(b"sample x @2"), Err(LineError::Words(..))));
        for instant in ["@", "@-1", "@inf", "@2s", "@@@5"] {
            let parsed = parse(format!("sample x 1 {instant}").as_bytes());
            assert!(matches!(parsed, Err(LineError::Value(_))), "{instant}");
        }
        assert!(matches!(parse(b"sample \"a b\""), Err(LineError::Words(..))));
        for metric in ["a  b", " a", "", "a\tb", "x ".repeat(32).trim(), &"x y".repeat(22)] {
            let parsed = parse(format!("sample \"{metric}\" 2").as_bytes());
            assert_eq!(parsed.is_ok(), metric.len() == 63, "{metric}");
        }
        assert_eq!(parse(b"sample \"a b 2"), Err(LineError::Name("\"a".into())));
        assert_eq!(parse(b"\xff"), Err(LineError::Text));
        assert_eq!(parse(&[b'x'; 5000]), Err(LineError::Text));
    }

    #[test]
    fn names_of_faultlines_own_rows_are_errors() {
        let refused = |line: &str, name: &str| {
            assert_eq!(parse(line.as_bytes()), Err(LineError::Reserved(name.to_owned())));
        };
        refused("sample instructions kernel 100000000", "sample instructions");
        refused("sample instructions-kernel 1", "sample instructions-kernel");
        refused("sample \"entries-a b\" 1 @2", "sample entries-a b");
        refused("phase no-phase", "phase no-phase");
        refused("phase fill-equal-entries", "phase fill-equal-entries");
        for line in ["sample instructional x 1", "sample x instructions 1", "phase entries"] {
            assert!(parse(line.as_bytes()).is_ok(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }
    }
}
