//! Reads what `perf script` prints: one sample after another, each a line with command, process, time and event, and
//! a line for each function of its call chain, the innermost first.
//!
//! ```text
//! usemem  1234/1236 [003]  81.204715:   10101010 cpu-clock:
//!     ffffffff8128f1a3 clear_page_erms+0x13 ([kernel.kallsyms])
//!     ffffffff8126d0f4 do_anonymous_page+0x54 ([kernel.kallsyms])
//!               4011d6 touch+0x26 (/usr/bin/usemem)
//! ```

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use super::{Collector, KERNEL, MAX_LINE, PerfSamples, Sample, UNKNOWN, process, shortened};

/// Reads the output of `perf script`, line by line. Only samples of `event` count, or of the first event of the text.
///
/// # Errors
/// When `input` cannot be read.
pub fn perf_script(mut input: impl BufRead, event: Option<&str>) -> io::Result<PerfSamples> {
    let mut reader = Reader { event: event.map(shortened), ..Reader::default() };
    let (mut line, mut number) = (Vec::new(), 0);
    while read_line(&mut input, &mut line)? {
        number += 1;
        let text = String::from_utf8_lossy(&line);
        reader.line(text.trim_end_matches(['\r', '\n']), number);
    }
    reader.end();
    let samples = reader.collector.samples(reader.event.as_deref().unwrap_or_default());
    Ok(PerfSamples {
        release: reader.release,
        others: reader.others,
        unread: reader.unread,
        of_counts: reader.of_counts,
        ..samples
    })
}

/// Reads the next line, of which at most [`MAX_LINE`] bytes are kept. False at the end.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    input.by_ref().take(MAX_LINE).read_until(b'\n', line)?;
    if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}

/// Begins a comment of an export of Faultline's own that is not made of samples.
const OF_COUNTS: &str = "# Written by faultline from counts";
/// Begins the line of a header with the kernel's release.
const RELEASE: &str = "# os release :";

#[derive(Default)]
struct Reader {
    collector: Collector,
    /// The event whose samples count.
    event: Option<String>,
    /// The sample that is being read, and its event.
    sample: Option<(Sample, String)>,
    /// The kernel's release, from the header that `perf script --header` prints.
    release: String,
    others: BTreeMap<String, u64>,
    unread: Option<(usize, usize)>,
    of_counts: bool,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) {
        let is_indented = line.starts_with([' ', '\t']);
        let is_comment = line.starts_with('#');
        if line.trim().is_empty() {
            self.end();
        } else if let Some(Head { mut sample, event, rest }) = head(line) {
            // A first line can be indented too, and a command such as `cc1` looks like an address.
            self.end();
            // Without call chains, the function is on the same line.
            if let Some(frame) = frame(rest) {
                frame.add_to(&mut sample);
            }
            self.sample = Some((sample, shortened(event)));
        } else if let (true, Some((sample, _)), Some(frame)) =
            (is_indented, &mut self.sample, frame(line))
        {
            frame.add_to(sample);
        } else if let Some(release) = line.strip_prefix(RELEASE) {
            self.release = shortened(release.trim());
        } else if is_comment {
            self.of_counts |= line.starts_with(OF_COUNTS);
        } else {
            let (_, lines) = self.unread.get_or_insert((number, 0));
            *lines += 1;
        }
    }

    /// Adds the sample that has been read.
    fn end(&mut self) {
        let Some((sample, event)) = self.sample.take() else { return };
        if event == *self.event.get_or_insert_with(|| event.clone()) {
            self.collector.take(sample);
        } else {
            *self.others.entry(event).or_default() += 1;
        }
    }
}

/// The first line of a sample.
struct Head<'a> {
    sample: Sample,
    event: &'a str,
    /// What follows the event.
    rest: &'a str,
}

/// Parses `command PID[/TID] [CPU] SECONDS.FRACTION: [PERIOD] EVENT:`. Commands can have spaces.
fn head(line: &str) -> Option<Head<'_>> {
    let (place, nanoseconds) =
        words(line).find_map(|(place, word)| Some((place, nanoseconds(word)?)))?;
    let mut before = line[..place].trim_end();
    if let Some((rest, cpu)) = before.rsplit_once(' ')
        && cpu.starts_with('[')
        && cpu.ends_with(']')
    {
        before = rest.trim_end();
    }
    let (command, ids) = before.rsplit_once(' ')?;
    let id = process(ids.split('/').next()?.parse().ok()?);
    let after = &line[place..].split_once(':')?.1;
    // An event can have colons of its own: tlb:tlb_flush, cycles:ppp.
    let (at, event) = words(after).find(|(_, word)| word.ends_with(':'))?;
    let rest = &after[at + event.len()..];
    let command = command.trim();
    let event = event.trim_end_matches(':');
    (!command.is_empty() && !event.is_empty()).then(|| Head {
        sample: Sample::new(command, id, nanoseconds),
        event,
        rest,
    })
}

/// Nanoseconds of a time such as `SECONDS.FRACTION:`.
fn nanoseconds(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let (seconds, rest): (u64, u64) = (seconds.parse().ok()?, digits.parse().ok()?);
    is_number(fraction).then(|| seconds.checked_mul(1_000_000_000)?.checked_add(rest)).flatten()
}

/// The words of a line, with their places.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_ascii_whitespace().map(|word| (word.as_ptr().addr() - line.as_ptr().addr(), word))
}

/// A function of a call chain.
struct Frame<'a> {
    is_kernel: bool,
    name: &'a str,
    object: &'a str,
}

impl Frame<'_> {
    fn add_to(&self, sample: &mut Sample) {
        sample.add(self.is_kernel, self.name, self.object);
    }
}

/// Parses `ADDRESS NAME[+OFFSET] (OBJECT)`.
fn frame(line: &str) -> Option<Frame<'_>> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    // The object of a deleted file is printed as `(/bin/a (deleted))`.
    let rest = rest.find(" (deleted))").map_or(rest, |end| &rest[..end]);
    let (name, object) = rest.trim().rsplit_once(" (")?;
    let object = object.split(')').next()?;
    let name = match name.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|it| it.is_ascii_hexdigit()) => name,
        _ => name,
    };
    let is_kernel = address >= KERNEL || object.starts_with("[kernel");
    let name = if name.trim().is_empty() { UNKNOWN } else { name.trim() };
    Some(Frame { is_kernel, name, object })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perf::taken;

    fn read(text: &str, event: Option<&str>) -> PerfSamples {
        perf_script(text.as_bytes(), event).unwrap()
    }

    /// Lines of `perf script` from perf 6.1, with names changed.
    const TEXT: &str = "\
# ========
usemem  1234/1236 [003]  81.204715:   10101010 cpu-clock:
\tffffffff8128f1a3 clear_page_erms+0x13 ([kernel.kallsyms])
\tffffffff8126d0f4 do_anonymous_page+0x54 ([kernel.kallsyms])
\t          4011d6 touch+0x26 (/usr/bin/usemem)

V8 Worker  77 [000]  81.304715:   10101010 cpu-clock:
\t          4011d6 [unknown] (/memfd:node (deleted))
\t          4021d6 main+0x6 (/usr/bin/node)
\t              80 [unknown] ([unknown])

swapper     0 [001]  81.4:   10101010 cpu-clock:
\tffffffff81a3b1c5 default_idle+0x5 ([kernel.kallsyms])

usemem  1234 [003]  82.204715:   10101010 cpu-clock:
\tffffffff8128f1a9 clear_page_erms+0x19 ([kernel.kallsyms])
\tffffffff8126d0f4 do_anonymous_page+0x54 ([kernel.kallsyms])

usemem  1234 [003]  82.3:   1 tlb:tlb_flush: pages:1 reason:3
\tffffffff8128f1a9 flush_tlb_mm_range+0x19 ([kernel.kallsyms])

perf  9 [000]  82.5:  1 cpu-clock:  ffffffffc0201010 ext4_read+0x10 ([ext4])
lost its head
";

    #[test]
    fn samples_are_those_of_the_kernel_by_path_and_of_processes() {
        let PerfSamples { profile, release, others, idle, dropped, nowhere, unread, of_counts } =
            read(TEXT, None);
        assert_eq!(release, "");
        let expected = [
            "do_anonymous_page;clear_page_erms: 2",
            "ext4_read: 1",
            "77 V8 Worker main;[unknown]: 1",
        ];
        assert_eq!(taken(&profile), expected);
        let sampled = profile.sampled.unwrap();
        assert_eq!((&*sampled.event, idle, dropped), ("cpu-clock", 1, 0));
        assert!((sampled.seconds() - 1.295285).abs() < 1e-9);
        assert_eq!(others, BTreeMap::from([("tlb:tlb_flush".to_owned(), 1)]));
        assert_eq!((nowhere, unread, of_counts), (0, Some((23, 1)), false));
        let own = format!("{TEXT}{OF_COUNTS} of instructions: one sample a path\n");
        assert!(read(&own, None).of_counts);
        let bare = "usemem  1234 [003]  81.204715:   10101010 cpu-clock:\n";
        assert_eq!(read(bare, None).nowhere, 1);
    }

    #[test]
    fn first_lines_may_be_indented() {
        let line = "  1 [000]  1.5:  1 page-faults:  ffffffff81000010 clear_page+0x10 ([kernel])\n";
        let text = format!("     cc1 {line}      dd {line}     :-1    -{}", line.trim_start());
        let profile = read(&text, None).profile;
        assert_eq!(taken(&profile), ["clear_page: 3"]);
    }

    #[test]
    fn another_event_than_the_first_can_count() {
        let PerfSamples { profile, others, .. } = read(TEXT, Some("tlb:tlb_flush"));
        assert_eq!(taken(&profile)[0], "flush_tlb_mm_range: 1");
        assert_eq!(others, BTreeMap::from([("cpu-clock".to_owned(), 5)]));
        assert_eq!(read(TEXT, Some("cycles")).profile.totals().total(), 0);
    }

    #[test]
    fn a_text_without_samples_has_none() {
        let script = read("Dear all,\n\nplease find attached\n", None);
        assert_eq!((script.profile.totals().total(), script.unread), (0, Some((1, 2))));
        assert_eq!(read("", None).unread, None);
    }

    #[test]
    fn long_lines_and_other_bytes_are_survived() {
        let mut text = "x".repeat(3 << 16).into_bytes();
        text.extend(b"\n\xff\xfe\n");
        text.extend(TEXT.as_bytes());
        let script = perf_script(&text[..], None).unwrap();
        assert_eq!(script.profile, read(TEXT, None).profile);
        assert_eq!(script.unread, Some((1, 3)));
        let name = "y".repeat(5000);
        let long = format!("{name}  7 [000]  1.5:  1 {name}:\n");
        let PerfSamples { profile, .. } = read(&long.repeat(2), None);
        let name = "y".repeat(super::super::MAX_NAME);
        assert_eq!(taken(&profile)[0].split(' ').nth(1), Some(&*name));
        assert!(taken(&profile)[0].ends_with(": 2"));
    }

    proptest! {
        #[test]
        fn hostile_text_is_survived(
            lines in prop::collection::vec(
                "(a b|x) [0-9]{1,11}(/1)? (\\[1\\] )?[0-9]{1,20}\\.[0-9]{0,10}: [0-9]{0,3} ?(e|:|a:b):.{0,9}\
                 |\t[0-9a-f]{0,18} .{0,9}(\\+0x.{0,2})? \\(.{0,3}\\)|\\PC{0,20}|", 0..20),
        ) {
            let script = read(&lines.join("\n"), None);
            let part = script.profile.since(0).unwrap();
            prop_assert_eq!(part, script.profile);
        }
    }
}
