//! Parses the output of `fs_mark`: remarks, names of columns, then a line for each round.

/// One round of creating files.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The number of files so far, including those of earlier rounds.
    pub count: u64,
    /// The number of files created per second.
    pub rate: f64,
}

/// The columns, in order.
const COLUMNS: [&str; 5] = ["FSUse%", "Count", "Size", "Files/sec", "App Overhead"];
/// The largest number of rounds that are read.
const MAX_ROUNDS: usize = 10_000;

/// Reads the rounds. If the text is not output of `fs_mark`, the error says what is wrong with it.
pub fn rounds(text: &str) -> Result<Vec<Round>, String> {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let header = lines.next().unwrap_or_default();
    if !header.split_whitespace().eq(COLUMNS.iter().flat_map(|name| name.split(' '))) {
        return Err(format!("its output lacks the columns {}", COLUMNS.join(", ")));
    }
    let rounds: Option<Vec<Round>> = lines.take(MAX_ROUNDS).map(round).collect();
    rounds.ok_or_else(|| "its output has a line that is not a round".into())
}

fn round(line: &str) -> Option<Round> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, count, _, rate, _] = words.as_slice() else {
        return None;
    };
    let rate: f64 = rate.parse().ok()?;
    (rate.is_finite() && rate > 0.0).then_some(Round { count: count.parse().ok()?, rate })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Printed by version 3.3.
    const TEXT: &str = "
#  fs_mark  -D  10  -N  32  -S0  -n  160  -s  1  -L  2  -d  big/0  -d  big/1  -d  big/2  -d  big/3 
#	Version 3.3, 4 thread(s) starting at Sat Nov 21 18:22:05 2026
#	Sync method: NO SYNC: Test does not issue sync() or fsync() calls.
#	Directories:  Round Robin between directories across 10 subdirectories with 32 files per subdirectory.
#	File names: 40 bytes long, (16 initial bytes of time stamp with 24 random bytes at end of name)
#	Files info: size 1 bytes, written with an IO size of 16384 bytes per write
#	App overhead is time in microseconds spent in the test not doing file writing related system calls.

FSUse%        Count         Size    Files/sec     App Overhead
     0          640            1      16480.5           155590
     0         1280            1      75351.0             1848
";

    #[test]
    fn rounds_are_read() {
        let round = |count, rate| Round { count, rate };
        assert_eq!(rounds(TEXT), Ok(vec![round(640, 16480.5), round(1280, 75351.0)]));
    }

    #[test]
    fn other_texts_are_refused() {
        assert!(rounds("").unwrap_err().starts_with("its output lacks the columns FSUse%, Count"));
        assert!(
            rounds("Usage: fs_mark\n").unwrap_err().starts_with("its output lacks the columns")
        );
        for line in ["0 1 1 nan 5", "0 1 1 -2 5", "0 -1 1 2.0 5", "0 1 1 2.0", "Killed"] {
            assert_eq!(
                rounds(&format!("{TEXT}{line}\n")),
                Err("its output has a line that is not a round".into())
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}", lines in "([0-9.\\- ]{0,30}\n){0,9}") {
            let _ = rounds(&text);
            for round in rounds(&format!("{TEXT}{lines}")).unwrap_or_default() {
                prop_assert!(round.rate.is_finite() && round.rate > 0.0);
            }
        }
    }
}
