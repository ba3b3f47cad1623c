//! mmtests' notes about its benchmarks: when each began and ended and what it took (`tests-timestamp`), and the texts
//! of kernel files at these times (`tests-sysstate`). Old logs have both in one file, so one function reads both.

use std::collections::BTreeMap;

/// mmtests' notes on a benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// When it began, in seconds since 1970.
    pub begin: Option<u64>,
    /// When it had ended and its monitors were stopped, in seconds since 1970.
    pub end: Option<u64>,
    /// The exit status of its driver.
    pub status: Option<i64>,
    /// User, system and elapsed seconds of its driver, as GNU time measured them.
    pub spent: Option<[f64; 3]>,
    /// The text of each kernel file before the benchmark began, by path.
    pub before: BTreeMap<String, String>,
    /// The text of each kernel file after the benchmark had ended, by path.
    pub after: BTreeMap<String, String>,
}

/// mmtests' notes on an iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// When the iteration began, in seconds since 1970.
    pub start: Option<u64>,
    /// When its last benchmark had ended, in seconds since 1970.
    pub finish: Option<u64>,
    /// The exit status of the whole run. Only old logs have it.
    pub status: Option<i64>,
    /// The benchmarks by name.
    pub tests: BTreeMap<String, Test>,
    /// The output of tools about the machine, by the tool's name: `numactl`, `lscpu`. Only old logs have it.
    pub machine: BTreeMap<String, String>,
}

/// Where lines go that are not marks.
enum Into {
    Nothing,
    File { test: String, path: String, after: bool },
    Machine(String),
}

/// Reads a file of marks and texts. Other lines are skipped.
pub fn parse(text: &str) -> State {
    let mut state = State::default();
    let mut current = String::new();
    let mut into = Into::Nothing;
    for line in text.split_inclusive('\n') {
        let mark = line.trim_end().split_once(" :: ").filter(|(mark, _)| is_mark(mark));
        let Some((mark, rest)) = mark else {
            match &into {
                Into::Nothing => {}
                Into::Machine(tool) => *state.machine.entry(tool.clone()).or_default() += line,
                Into::File { test, path, after } => {
                    let test = state.tests.entry(test.clone()).or_default();
                    let texts = if *after { &mut test.after } else { &mut test.before };
                    *texts.entry(path.clone()).or_default() += line;
                }
            }
            continue;
        };
        into = Into::Nothing;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |place: usize| words.get(place)?.parse().ok();
        match mark {
            "start" => state.start = state.start.or(number(0)),
            "finish" => state.finish = number(0),
            "status" => state.status = words.first().and_then(|word| word.parse().ok()),
            "numactl" | "lscpu" => into = Into::Machine(mark.to_owned()),
            "file start" | "file end" => {
                let (test, path) = (current.clone(), rest.to_owned());
                into = Into::File { test, path, after: mark == "file end" };
            }
            "test begin" => {
                current = words.first().copied().unwrap_or_default().to_owned();
                let test = state.tests.entry(current.clone()).or_default();
                *test = Test { begin: number(1), ..Test::default() };
            }
            "test end" => {
                let test = state.tests.entry(words.first().copied().unwrap_or_default().into());
                let test = test.or_default();
                test.end = number(1);
                test.status = words.get(2).and_then(|word| word.parse().ok());
            }
            "time" => {
                if let Some((test, spent)) = time(&words) {
                    state.tests.entry(test.to_owned()).or_default().spent = Some(spent);
                }
            }
            _ => {}
        }
    }
    state.tests.remove("");
    state
}

/// Words that precede ` :: ` at the head of a line.
fn is_mark(mark: &str) -> bool {
    const MARKS: &str = "start, finish, status, test begin, test end, time, file start, file end, \
        version, arch, mount, /proc/mounts, numactl, lscpu, cpupower";
    MARKS.split(", ").any(|it| it == mark)
}

/// Reads `BENCHMARK 1.00 user 2.00 system 3.00 elapsed`. `None` for invalid times.
fn time<'a>(words: &[&'a str]) -> Option<(&'a str, [f64; 3])> {
    let [test, user, "user", system, "system", elapsed, "elapsed"] = words else {
        return None;
    };
    let mut spent = [0.0; 3];
    for (second, word) in spent.iter_mut().zip([user, system, elapsed]) {
        *second = word.parse().ok().filter(|second: &f64| second.is_finite() && *second >= 0.0)?;
    }
    Some((test, spent))
}

impl State {
    /// Adds what `other` has and `self` lacks.
    pub fn complete(&mut self, other: Self) {
        self.start = self.start.or(other.start);
        self.finish = self.finish.or(other.finish);
        self.status = self.status.or(other.status);
        for (name, known) in other.tests {
            let test = self.tests.entry(name).or_default();
            test.begin = test.begin.or(known.begin);
            test.end = test.end.or(known.end);
            test.status = test.status.or(known.status);
            test.spent = test.spent.or(known.spent);
            for (texts, more) in [(&mut test.before, known.before), (&mut test.after, known.after)]
            {
                for (path, text) in more {
                    texts.entry(path).or_insert(text);
                }
            }
        }
        for (tool, text) in other.machine {
            self.machine.entry(tool).or_insert(text);
        }
    }
}

/// The earliest time of an activity log, whose lines begin with seconds since 1970, and the exit status of the whole
/// run, if the last line has one.
pub fn activity(text: &str) -> (Option<u64>, Option<i64>) {
    let mut earliest = None;
    let mut status = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(time) = words.next().and_then(|word| word.parse::<u64>().ok()) else {
            continue;
        };
        earliest = Some(earliest.map_or(time, |known: u64| known.min(time)));
        if words.next() == Some("status") && words.next() == Some("::") {
            status = words.next().and_then(|word| word.parse().ok());
        }
    }
    (earliest, status)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "start :: 1000\nversion :: 1.2\narch :: x86_64\n1: lo\nmount :: start\n/ \n\
        test begin :: pgbench 1002\nfile start :: /proc/vmstat\npgfault 1\n\
        file start :: /proc/meminfo\nMemTotal: 4 kB\nfile end :: /proc/vmstat\npgfault 9\n\
        test end :: pgbench 1900 0\ntime :: pgbench 1.00 user 2.50 system 880.01 elapsed\n\
        finish :: 1901\n";

    #[test]
    fn marks_and_texts() {
        let state = parse(TEXT);
        assert_eq!((state.start, state.finish, state.status), (Some(1000), Some(1901), None));
        let test = &state.tests["pgbench"];
        assert_eq!((test.begin, test.end, test.status), (Some(1002), Some(1900), Some(0)));
        assert_eq!(test.spent, Some([1.0, 2.5, 880.01]));
        assert_eq!(test.before["/proc/vmstat"], "pgfault 1\n");
        assert_eq!(test.before["/proc/meminfo"], "MemTotal: 4 kB\n");
        assert_eq!(test.after["/proc/vmstat"], "pgfault 9\n");
    }

    #[test]
    fn machines_of_old_logs() {
        let state =
            parse("start :: 1\nnumactl :: configuration\nnode 0 cpus: 0\nlscpu :: x\nCPU: 1\n");
        assert_eq!(state.machine["numactl"], "node 0 cpus: 0\n");
        assert_eq!(state.machine["lscpu"], "CPU: 1\n");
    }

    #[test]
    fn two_files_complete_each_other() {
        let mut state = parse("start :: 7\ntest begin :: nas 8\n");
        state.complete(parse("start :: 9\ntest end :: nas 20 1\n"));
        let test = &state.tests["nas"];
        assert_eq!((state.start, test.begin, test.end), (Some(7), Some(8), Some(20)));
        assert_eq!(test.status, Some(1));
    }

    #[test]
    fn invalid_times_are_skipped() {
        for time in
            ["a 1 user 2 system", "a -1 user 2 system 3 elapsed", "a x user 1 system 1 elapsed"]
        {
            assert_eq!(parse(&format!("time :: {time}\n")).tests.len(), 0, "{time}");
        }
    }

    #[test]
    fn a_run_starts_when_its_activities_do() {
        let text = "1700 run-mmtests: Start\nodd\n1600 x\n1800 status :: 1\n";
        assert_eq!(activity(text), (Some(1600), Some(1)));
        assert_eq!(activity(""), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>(), lines in prop::collection::vec(
            "(test begin|test end|time|start|file start|file end|status) :: [a-z0-9 .-]{0,30}", 0..20,
        )) {
            parse(&text);
            activity(&text);
            let mut state = parse(&lines.join("\n"));
            state.complete(parse(&lines.concat()));
        }
    }
}
