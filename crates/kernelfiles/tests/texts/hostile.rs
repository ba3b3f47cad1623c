//! Arbitrary text, and damaged texts of real kernels. Parsers must not panic, and must not return more than the size
//! of the text.

use std::sync::LazyLock;

use kernelfiles::{MAX_NAME, config, klog};
use model::Source;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::fixture::{Fixture, fixtures};

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(fixtures);

/// Pieces that lead parsers beyond the first line.
const PIECES: &[&str] = &[
    "\n", " ", ":", "=", ",", "0", "7", "18446744073709551615", "99999999999999999999", "-1",
    "Node 0, zone   Normal", ", type Movable", "per-node stats", "pages free", "pagesets",
    "cpu: 0", "cpu0", "cpu", "domain0", "version 15\n", "version 17\n", "CPU0 CPU1\n", "LOC",
    "some", "total=", "avg10=1.00", "softirq", "Number of blocks type", " : tunables",
    " : slabdata", "[", "]", "<4>", "WARNING: ", "BUG: ", "Kernel panic - not syncing", "CONFIG_",
    ") (", "(", "ü", "\u{1b}",
];

fn check(source: Source, part: &str, text: &str) {
    let counters = kernelfiles::counters(source, part, text);
    assert!(counters.len() <= text.len());
    for (name, _) in counters {
        assert!(name.len() <= 4 * MAX_NAME, "{name}");
        assert!(name.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{name}");
    }
}

fn check_all(text: &str) {
    for &source in Source::ALL {
        check(source, "", text);
        check(source, text, text);
    }
    for problem in klog::problems(text) {
        assert!(problem.text.len() <= klog::MAX_TEXT + " (18446744073709551615 times)".len());
        assert!(problem.text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    }
    klog::panic_line(text);
    klog::tsc_doubt(text);
    config::compiler(text);
    let config = config::parse(text);
    config::hz(&config);
    config::preemption(&config);
    assert!(config::differences(&config, &config).is_empty());
}

proptest! {
    #[test]
    fn any_text(text in "\\PC*|(?s).*") {
        check_all(&text);
    }

    #[test]
    fn the_kernel_s_words_in_any_order(words in prop::collection::vec(select(PIECES), 0..200)) {
        check_all(&words.concat());
        check_all(&words.join(" "));
    }

    #[test]
    fn damaged_fixtures(
        which in any::<Index>(),
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 1..40),
        cut in any::<Index>(),
    ) {
        let fixture = which.get(&FIXTURES[..]);
        let mut bytes = fixture.text.clone().into_bytes();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let text = String::from_utf8_lossy(&bytes);
        for &source in Source::ALL {
            check(source, &fixture.part, &text);
        }
    }

    #[test]
    fn flags(flags: u64) {
        prop_assert_eq!(klog::taint(flags).is_none(), flags == 0);
    }
}

/// A name as long as the text must not be copied for each line or each CPU.
#[test]
fn long_names_are_not_multiplied() {
    let long = "0".repeat(1 << 20);
    let lines = "domain0 1 2\n".repeat(1 << 16);
    check(Source::Schedstat, "", &format!("cpu{long}1 5\n{lines}"));
    check(Source::Schedstat, "", &format!("cpu1 5\ndomain{long} 1 2\n{lines}"));
    let cpus = "CPU1 ".repeat(1 << 16);
    let counts = "1 ".repeat(1 << 16);
    check(Source::Interrupts, "", &format!("{cpus}\n{long}: {counts}\n"));
    check(Source::Buddyinfo, "", &format!("Node 0, zone {long} {counts}\n"));
    check(Source::Pagetypeinfo, "", &format!("Node 0, zone A, type {long} {counts}\n"));
    check(Source::Vmstat, &long, &"a 1\n".repeat(1 << 16));
}
