//! Figures of a program that does not know the metric protocol: what it used, and the lines `NAME VALUE UNIT` of its
//! output. Notes keep the beginning and the end of the output.

use std::collections::VecDeque;

use flight::Event;
use flight::event::Usage;
use flight::protocol::{MAX_NAME, is_name};
use guest::sys::Used;
use model::{NoteKind, count};

use super::lines::Lines;

/// The phase in which the program runs.
pub const PHASE: &str = "run";
/// The longest line that can be a figure, in bytes.
const MAX_FIGURE: usize = 200;
/// The largest number of figures of an iteration. A program that prints more prints data, not results.
const MAX_FIGURES: usize = 10_000;
/// How many lines are kept of the beginning of the output, and of its end.
const KEPT: usize = 20;
/// The longest part of a line that is kept, in characters.
const MAX_KEPT: usize = 200;

/// The output that a program has written so far.
#[derive(Default)]
pub struct Plain {
    lines: Lines,
    figures: Vec<Event>,
    /// The number of lines that look like figures and are none.
    odd: usize,
    printed: usize,
    first: Vec<String>,
    last: VecDeque<String>,
}

impl Plain {
    /// Adds output as the program writes it.
    pub fn feed(&mut self, output: &[u8]) {
        for line in self.lines.feed(output) {
            self.line(&line);
        }
    }

    /// The figures of the complete output, and its beginning and end as notes.
    pub fn events(mut self) -> Vec<Event> {
        let line = self.lines.rest();
        self.line(&line);
        let notes: Vec<Event> = self.notes().map(Event::Note).collect();
        [self.figures, notes].concat()
    }

    fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        self.printed += 1;
        let text = String::from_utf8_lossy(&line[..line.len().min(4 * MAX_KEPT)]);
        let kept: String = text.trim_end().chars().take(MAX_KEPT).collect();
        match self.first.len() < KEPT {
            true => self.first.push(kept),
            false => self.last.push_back(kept),
        }
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
        match figure(line) {
            Some(figure) if self.figures.len() < MAX_FIGURES => self.figures.push(figure),
            None if has_value(line) => self.odd += 1,
            _ => {}
        }
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let between = self.printed - self.first.len() - self.last.len();
        let between = (between > 0).then(|| format!("{between} more lines"));
        let excess = (self.figures.len() == MAX_FIGURES)
            .then(|| format!("its first {MAX_FIGURES} figures count, further ones do not"));
        let printed = |line: &String| format!("printed: {line}");
        let first = self.first.iter().map(printed);
        let last = self.last.iter().map(printed);
        let odd = (self.odd > 0).then(|| {
            format!(
                "{}{} of the output with a name, a value and a unit: the value is not finite, or name and \
                 unit are not ASCII or longer than {MAX_NAME} letters",
                NoteKind::NotRead.head(),
                count(self.odd, "line")
            )
        });
        first.chain(between).chain(last).chain(excess).chain(odd)
    }
}

/// The figure in a line: a name, which may end with a colon, a number and a unit. The metric is `rate`,
/// `time` or `figure`, by the unit; the label is name and unit.
fn figure(line: &[u8]) -> Option<Event> {
    if line.len() > MAX_FIGURE {
        return None;
    }
    let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_whitespace().collect();
    let [name, value, unit] = words[..] else { return None };
    let name = name.strip_suffix(':').unwrap_or(name);
    let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
    let begins_well =
        unit.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '%');
    let label = format!("{name}-{unit}");
    (begins_well && !name.is_empty() && is_name(&label)).then(|| Event::Sample {
        metric: metric(unit).to_owned(),
        label,
        value,
        ended: None,
    })
}

/// Whether a line has three words, the second of them a number.
fn has_value(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * MAX_KEPT)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    matches!(words[..], [_, value, unit] if value.parse::<f64>().is_ok() && unit.parse::<f64>().is_err())
}

/// What a unit measures: `rate` if more is better, `time` if less is, else `figure`.
fn metric(unit: &str) -> &'static str {
    const TIMES: [&str; 17] = [
        "s", "ms", "us", "ns", "ps", "sec", "secs", "second", "seconds", "msec", "usec", "nsec",
        "min", "mins", "minutes", "h", "hours",
    ];
    const RATES: [&str; 9] = ["ops", "iops", "tps", "qps", "rps", "fps", "bps", "kiops", "flops"];
    const UNWANTED: [&str; 5] = ["err", "miss", "fault", "stall", "fail"];
    let unit = unit.to_ascii_lowercase();
    let (measured, each) = unit.split_once('/').unwrap_or((&unit, ""));
    match () {
        // More of such an event is not better.
        () if UNWANTED.iter().any(|it| measured.contains(it)) => "figure",
        () if TIMES.contains(&each) => "rate",
        () if TIMES.contains(&measured) => "time",
        () if RATES.contains(&&*unit) => "rate",
        () => "figure",
    }
}

/// The figures of what a program used.
pub fn used(usage: &Usage, used: Used) -> impl Iterator<Item = Event> {
    let figures = [
        ("wall", usage.elapsed),
        ("user", usage.user),
        ("system", usage.system),
        ("minor-faults", used.minor_faults as f64),
        ("major-faults", used.major_faults as f64),
        ("max-resident", used.resident as f64),
    ];
    figures.into_iter().map(|(metric, value)| Event::Sample {
        metric: metric.to_owned(),
        label: String::new(),
        value,
        ended: None,
    })
}

#[cfg(test)]
mod tests {
    use model::is_reserved;
    use proptest::prelude::*;

    use super::*;

    fn read(line: &[u8]) -> Option<(String, String, f64)> {
        match figure(line)? {
            Event::Sample { metric, label, value, ended: None } => {
                assert!(!is_reserved(&metric), "{metric}");
                Some((metric, label, value))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_with_a_name_a_number_and_a_unit_are_figures() {
        for (line, metric, label, value) in [
            ("throughput 812.5 MB/s", "rate", "throughput-MB/s", 812.5),
            ("throughput: 812.5 MB/s", "rate", "throughput-MB/s", 812.5),
            ("  reads\t1e3   iops ", "rate", "reads-iops", 1000.0),
            ("lat 12 us", "time", "lat-us", 12.0),
            ("fault -3 ns/page", "time", "fault-ns/page", -3.0),
            ("hits 99.5 %", "figure", "hits-%", 99.5),
            ("pages 17 pages", "figure", "pages-pages", 17.0),
            ("speed 3 ops/ms", "rate", "speed-ops/ms", 3.0),
            ("misses 3 misses/s", "figure", "misses-misses/s", 3.0),
            ("all 2 hours", "time", "all-hours", 2.0),
            ("instructions 9 instructions", "figure", "instructions-instructions", 9.0),
            ("wall: 9 s", "time", "wall-s", 9.0),
        ] {
            let expected = (metric.to_owned(), label.to_owned(), value);
            assert_eq!(read(line.as_bytes()), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_figures() {
        let long = format!("{} 1 s", "x".repeat(70));
        for line in [
            "", "throughput 12", "throughput is 12 s", "12 s", "a b s", "a nan s", "a inf s",
            "a 1 2", ": 1 s", "sample Elapsed 1.5", "phase fill", "note \"1 2 s\"", "a\u{e9} 1 s",
            &long,
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
        assert_eq!(read(b"a\xff 1 s"), None);
        assert_eq!(read(b"a\0 1 s"), None);
    }

    /// The figures and the notes.
    fn events(plain: Plain) -> (Vec<Event>, Vec<String>) {
        let (mut figures, mut notes) = (Vec::new(), Vec::new());
        for event in plain.events() {
            match event {
                Event::Note(text) => notes.push(text),
                figure => figures.push(figure),
            }
        }
        (figures, notes)
    }

    #[test]
    fn the_begin_and_the_end_of_the_output_are_kept() {
        let mut plain = Plain::default();
        for line in 0..100 {
            plain.feed(format!("line {line}\n\n").as_bytes());
        }
        plain.feed(b"x 1 s\ny 2 ");
        plain.feed(b"s");
        let (figures, notes) = events(plain);
        let expected = [figure(b"x 1 s"), figure(b"y 2 s")];
        assert_eq!(figures, expected.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(notes.len(), 2 * KEPT + 1);
        let middle = ["printed: line 19", "62 more lines", "printed: line 82"];
        assert_eq!(notes[KEPT - 1..=KEPT + 1], middle);
        assert_eq!(notes[2 * KEPT], "printed: y 2 s");
    }

    #[test]
    fn lines_that_look_like_figures_are_noted() {
        let mut plain = Plain::default();
        plain.feed(b"lat inf ms\nlat 1e999 ms\na\xc3\xa9 1 s\nlat 5 ms\nsome other words\n1 2 3\n");
        let (figures, notes) = events(plain);
        assert_eq!(figures.len(), 1);
        let odd = "not read: 3 lines of the output with a name, a value and a unit";
        assert!(notes.last().unwrap().starts_with(odd), "{notes:?}");
    }

    #[test]
    fn figures_without_end_are_limited() {
        let mut plain = Plain::default();
        plain.feed("x 1 s\n".repeat(MAX_FIGURES + 5).as_bytes());
        let (figures, notes) = events(plain);
        assert_eq!(figures.len(), MAX_FIGURES);
        let last = "its first 10000 figures count, further ones do not";
        assert_eq!(notes.last().unwrap(), last);
    }

    proptest! {
        #[test]
        fn any_output_is_survived(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let mut plain = Plain::default();
            for piece in pieces {
                plain.feed(&piece);
            }
            let (_, notes) = events(plain);
            prop_assert!(notes.iter().all(|note| note.len() <= 5 * MAX_KEPT));
        }
    }
}
