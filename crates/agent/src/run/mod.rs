//! Runs one iteration of a workload: starts its program, records the lines that it writes, cuts the counters
//! at its phases, and records its times or its failure.

mod child;
mod lines;
mod plain;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use flight::Event;
use flight::event::Usage;
use flight::job::{USERSPACE_PATH, Workload};
use flight::protocol::{self, LineError};
use guest::reason;
use guest::sys::used_by_children;
use model::Millis;
use rustix::process::WaitStatus;

use crate::recorder::RecordError;
use crate::watch::Watch;
use child::{Child, Prepared};
use lines::{Lines, Tail};
use plain::Plain;

/// The longest interval between reaping orphans.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// The largest number of lines of a failed program's output in an error.
const LINES: usize = 8;

/// Why an iteration failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program can't be started.
    #[error("{program} cannot be started ({})", reason(.error))]
    Start { program: String, error: io::Error },
    /// The program exited with a failure status.
    #[error("it exited with status {status}{}", printed(.output))]
    Status { status: i32, output: String },
    /// A signal killed the program.
    #[error("signal {signal} killed it{}", printed(.output))]
    Signal {
        /// The signal's number. The OOM killer sends 9.
        signal: i32,
        output: String,
    },
    /// The program exceeded its time limit, and was killed.
    #[error("it took longer than {limit}{}", printed(.output))]
    Timeout { limit: Millis, output: String },
    /// The workload has metrics, but the program reported no value.
    #[error("it exited with status 0 but printed no result{}", printed(.output))]
    NoFigure { output: String },
    /// In exact mode, the program did not wait until the counters of the previous phase were cut.
    #[error(
        "its phases are inexact: it did not read the byte that acknowledges `{0}`; see \
         docs/own-workload.md"
    )]
    Unread(String),
    /// A line does not belong to the metric protocol.
    #[error("it wrote a line that is not of the metric protocol: {0}")]
    Line(#[from] LineError),
    /// What the program reported cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The program cannot be watched.
    #[error("it cannot be watched ({})", reason(.0))]
    Watch(#[from] io::Error),
}

impl RunError {
    /// Whether the workload is at fault, not the recording.
    pub fn is_of_workload(&self) -> bool {
        !matches!(self, Self::Record(_) | Self::Watch(_))
    }
}

/// The largest number of letters of a program's output in a message.
const QUOTED: usize = 300;

/// The last lines of the output, joined.
fn printed(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(LINES)..] {
        [] => String::new(),
        last => {
            let last = last.join("; ");
            let start = last.char_indices().rev().nth(QUOTED).map_or(0, |(start, _)| start);
            format!("; its last output was: {}", &last[start..])
        }
    }
}

/// Runs iteration `iteration` of `workload`, which has number `index` in the job, and records it from `Begin` to
/// `End`. After a failure `End` is missing. For a plain workload, records the figures and the output too.
///
/// User and system time are those of all processes that the program started, including orphans if this is PID
/// 1.
///
/// Fails if the program cannot be run, fails, takes too long, or reports what cannot be recorded; if `exact`, also if
/// the program does not wait for the cuts at its phases.
pub fn run(
    watch: &Watch,
    index: u16,
    workload: &Workload,
    iteration: u32,
    exact: bool,
) -> Result<(), RunError> {
    watch.cut(&Event::Begin { workload: index, iteration })?;
    let unstarted = |error| RunError::Start {
        program: workload.command.first().cloned().unwrap_or_default(),
        error,
    };
    let root = workload.userspace.then_some(Path::new(USERSPACE_PATH));
    let prepared = Prepared::new(workload, root).map_err(unstarted)?;
    if workload.plain {
        watch.cut(&Event::Phase(plain::PHASE.to_owned()))?;
    }
    let (before, start) = (used_by_children(), Instant::now());
    let child = prepared.start().map_err(unstarted)?;
    let (lines, tail) = (Lines::default(), Tail::default());
    let plain = workload.plain.then(Plain::default);
    let mut attendant =
        Attendant { watch, child, lines, tail, plain, samples: 0, exact, phase: None };
    let ended = attendant.attend(start, workload.timeout);
    let elapsed = start.elapsed().as_secs_f64();
    if workload.plain {
        watch.cut(&Event::Phase(String::new()))?;
    }
    attendant.child.end();
    let judged = ended.and_then(|ended| attendant.judge(ended, workload));
    for event in attendant.plain.into_iter().flat_map(Plain::events) {
        watch.event(&event)?;
    }
    judged?;
    let used = used_by_children().since(before);
    let usage = Usage { user: used.time.user, system: used.time.system, elapsed };
    if workload.plain {
        for figure in plain::used(&usage, used) {
            watch.event(&figure)?;
        }
    }
    Ok(watch.cut(&Event::End(usage))?)
}

/// Serves a running program until it ends.
struct Attendant<'a> {
    watch: &'a Watch,
    child: Child,
    lines: Lines,
    tail: Tail,
    /// Collects the output, if the workload is plain.
    plain: Option<Plain>,
    /// The number of samples that the program reported.
    samples: u64,
    /// Whether the program must wait for each cut.
    exact: bool,
    /// The phase in which the program is, if it has begun one.
    phase: Option<String>,
}

impl Attendant<'_> {
    /// Serves the program until it has ended, or until `timeout` after `start`; then there is no status.
    fn attend(&mut self, start: Instant, timeout: Millis) -> Result<Option<WaitStatus>, RunError> {
        let limit = Duration::from_millis(timeout.0);
        loop {
            let left = limit.saturating_sub(start.elapsed());
            self.child.wait(left.min(REAP_INTERVAL))?;
            let status = self.child.ended();
            self.serve()?;
            if status.is_some() || left.is_zero() {
                return Ok(status);
            }
        }
    }

    /// Records what the program has written since the last call.
    fn serve(&mut self) -> Result<(), RunError> {
        let output = self.child.output()?;
        self.tail.feed(output);
        if let Some(plain) = &mut self.plain {
            plain.feed(output);
        }
        let bytes = self.child.lines()?;
        for line in self.lines.feed(bytes) {
            self.record(&line)?;
        }
        Ok(())
    }

    /// Decides whether the program succeeded. It and its descendants have ended.
    fn judge(&mut self, status: Option<WaitStatus>, workload: &Workload) -> Result<(), RunError> {
        // No process can write any more. At most one pipe buffer is left, which one read returns.
        self.serve()?;
        let output = self.tail.text();
        let Some(status) = status else {
            return Err(RunError::Timeout { limit: workload.timeout, output });
        };
        if let Some(signal) = status.terminating_signal() {
            return Err(RunError::Signal { signal, output });
        }
        match status.exit_status() {
            Some(0) | None => {
                let rest = self.lines.rest();
                self.record(&rest)?;
                self.check_waited()?;
                match workload.metrics && !workload.plain && self.samples == 0 {
                    true => Err(RunError::NoFigure { output }),
                    false => Ok(()),
                }
            }
            Some(status) => Err(RunError::Status { status, output }),
        }
    }

    fn record(&mut self, line: &[u8]) -> Result<(), RunError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        match protocol::parse(line)? {
            Event::Phase(phase) => {
                self.check_waited()?;
                self.watch.cut(&Event::Phase(phase.clone()))?;
                self.child.acknowledge();
                self.phase = Some(phase);
            }
            event => {
                self.watch.event(&event)?;
                self.samples += u64::from(matches!(event, Event::Sample { .. }));
            }
        }
        Ok(())
    }

    /// Checks that the program waited for the last cut, if it had to.
    fn check_waited(&self) -> Result<(), RunError> {
        match &self.phase {
            Some(phase) if self.exact && self.child.is_unread()? => {
                Err(RunError::Unread(format!("phase {phase}").trim_end().to_owned()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::{Entry, Log};

    /// Runs a shell script as a workload, and returns the recording and the result.
    fn script(script: &str, timeout: u64) -> (Vec<Event>, Result<(), String>) {
        carry_out(script, timeout, false, false)
    }

    /// Runs a shell script as a workload with metrics.
    fn measured(script: &str) -> (Vec<Event>, Result<(), String>) {
        carry_out(script, 60_000, true, false)
    }

    fn workload(command: &[&str]) -> Workload {
        Workload {
            name: "script".into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            iterations: 1,
            timeout: Millis(60_000),
            metrics: false,
            userspace: false,
            plain: false,
            directory: String::new(),
        }
    }

    fn carry_out(
        script: &str,
        timeout: u64,
        metrics: bool,
        exact: bool,
    ) -> (Vec<Event>, Result<(), String>) {
        let log = Log::new(1 << 20);
        let root = tempfile::tempdir().unwrap();
        let watch = Watch::new(log.recorder.clone(), root.path());
        let workload =
            Workload { timeout: Millis(timeout), metrics, ..workload(&["/bin/sh", "-c", script]) };
        let result = run(&watch, 7, &workload, 2, exact).map_err(|error| error.to_string());
        let kernel_log = |event: &Event| matches!(event, Event::Log(_));
        (log.events().into_iter().filter(|event| !kernel_log(event)).collect(), result)
    }

    #[test]
    fn every_line_is_recorded_in_order() {
        let (events, result) = script(
            "exec >&$FAULTLINE_FD; echo phase fill; read ok <&$FAULTLINE_ACK_FD; \
             echo sample Elapsed 1.5; echo; echo series share 0.25; printf 'note \"done\"'",
            60_000,
        );
        assert_eq!(result, Ok(()));
        let (metric, label) = ("Elapsed".into(), String::new());
        let sample = Event::Sample { metric, label, value: 1.5, ended: None };
        let expected = [
            Event::Begin { workload: 7, iteration: 2 },
            Event::Phase("fill".into()),
            sample,
            Event::Point { series: "share".into(), value: 0.25 },
            Event::Note("done".into()),
        ];
        let (last, before) = events.split_last().unwrap();
        assert_eq!(before, expected);
        assert!(matches!(last, Event::End(usage) if usage.elapsed > 0.0 && usage.user >= 0.0));
    }

    #[test]
    fn a_program_cannot_report_faultlines_own_figures() {
        let (events, result) = script(
            "exec >&$FAULTLINE_FD; echo sample x 1; echo sample instructions kernel 100000000",
            60_000,
        );
        let told = "it wrote a line that is not of the metric protocol: `sample instructions`: Faultline \
                    fills the rows of this name itself; use another name";
        assert_eq!(result, Err(told.into()));
        let metrics = events.iter().filter_map(|event| match event {
            Event::Sample { metric, .. } => Some(metric.as_str()),
            _ => None,
        });
        assert_eq!(metrics.collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn the_program_continues_after_its_counters_were_cut() {
        let log = Log::new(1 << 20);
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("proc/stat");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "before\n").unwrap();
        let watch = Watch::new(log.recorder.clone(), root.path());
        let sources = vec![model::Source::Stat];
        let wanted = model::Sampler { sources, ..model::Sampler::default() };
        watch.open(&wanted, None).unwrap();
        let script =
            "echo phase p >&$FAULTLINE_FD; read ok <&$FAULTLINE_ACK_FD; echo after > \"$0\"";
        let workload = workload(&["/bin/sh", "-c", script, file.to_str().unwrap()]);
        run(&watch, 0, &workload, 0, false).unwrap();
        let entries = log.entries();
        let at_phase = entries.iter().position(|e| matches!(e, Entry::Event(_, Event::Phase(_))));
        let after =
            entries.iter().position(|e| matches!(e, Entry::Whole(_, 0, text) if text == "after\n"));
        assert!(at_phase.unwrap() < after.unwrap(), "{entries:?}");
    }

    #[test]
    fn a_program_of_exact_mode_waits_for_each_cut_or_has_failed() {
        let told = |text: &str, exact| {
            let text =
                format!("exec >&$FAULTLINE_FD; await() {{ read ok <&$FAULTLINE_ACK_FD; }}; {text}");
            carry_out(&text, 60_000, false, exact).1.err()
        };
        let unread = |line: &str| {
            Some(format!(
                "its phases are inexact: it did not read the byte that acknowledges `{line}`; see \
                 docs/own-workload.md"
            ))
        };
        assert_eq!(told("echo phase a; await; echo phase b; await; echo phase; await", true), None);
        assert_eq!(told("echo sample x 1", true), None);
        let hasty = "echo phase a; echo phase b";
        assert_eq!(told(hasty, true), unread("phase a"));
        assert_eq!(told(hasty, false), None);
        assert_eq!(told("echo phase a; await; echo phase b", true), unread("phase b"));
        assert_eq!(told("echo phase a; await; printf phase", true), unread("phase"));
        let failed = told("echo phase a; exit 3", true).unwrap();
        assert!(failed.starts_with("it exited with status 3"), "{failed}");
    }

    #[test]
    fn a_plain_program_is_measured_in_its_directory() {
        let log = Log::new(1 << 20);
        let root = tempfile::tempdir().unwrap();
        let watch = Watch::new(log.recorder.clone(), root.path());
        let run_plain = |script: &str| {
            let workload = Workload {
                metrics: true,
                plain: true,
                directory: "/usr".into(),
                ..workload(&["/bin/sh", "-c", script])
            };
            let result = run(&watch, 0, &workload, 0, true).map_err(|error| error.to_string());
            let before = log.events().iter().rposition(|it| matches!(it, Event::Begin { .. }));
            (log.events().split_off(before.unwrap() + 1), result)
        };
        let (events, result) = run_plain("pwd; echo sample x 1; echo phase y; echo speed 3 GB/s");
        assert_eq!(result, Ok(()));
        let value = |wanted: &str| {
            events.iter().find_map(|event| match event {
                Event::Sample { metric, label, value, .. }
                    if format!("{metric}-{label}") == wanted =>
                {
                    Some(*value)
                }
                _ => None,
            })
        };
        assert_eq!(value("rate-speed-GB/s"), Some(3.0));
        for metric in ["wall-", "minor-faults-", "max-resident-"] {
            assert!(value(metric).unwrap() > 0.0, "{metric}");
        }
        assert!(value("user-").unwrap() + value("system-").unwrap() >= 0.0);
        assert!(events.contains(&Event::Note("printed: /usr".into())), "{events:?}");
        let phases = events.iter().filter_map(|event| match event {
            Event::Phase(name) => Some(name.as_str()),
            _ => None,
        });
        assert_eq!(phases.collect::<Vec<_>>(), ["run", ""]);
        // A plain program has no descriptors of the protocol.
        let silent = "test -z \"$FAULTLINE_FD$FAULTLINE_ACK_FD\" && test ! -e /proc/self/fd/3";
        assert_eq!(run_plain(silent).1, Ok(()));
        let long = run_plain("printf '%02000d' 7; exit 4").1.unwrap_err();
        assert!(long.len() < 400 && long.ends_with("0007"), "{long}");
        let (events, result) = run_plain("echo worse; exit 4");
        assert_eq!(result, Err("it exited with status 4; its last output was: worse".into()));
        assert!(events.contains(&Event::Note("printed: worse".into())), "{events:?}");
    }

    #[test]
    fn failures_quote_the_output() {
        let told = |text: &str, timeout| script(text, timeout).1.unwrap_err();
        assert_eq!(
            told("echo no disk >&2; exit 3", 60_000),
            "it exited with status 3; its last output was: no disk"
        );
        assert_eq!(
            told("for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo; done; exit 1", 60_000),
            "it exited with status 1; its last output was: 2; 3; 4; 5; 6; 7; 8; 9"
        );
        assert_eq!(told("kill -9 $$", 60_000), "signal 9 killed it");
        assert!(told("sleep 100", 300).starts_with("it took longer than 300ms"));
        assert_eq!(
            told("echo fase fill >&$FAULTLINE_FD; sleep 100", 60_000),
            "it wrote a line that is not of the metric protocol: unknown word `fase`: use phase, \
             sample, series or note"
        );
    }

    #[test]
    fn a_workload_with_metrics_reports_samples_or_has_failed() {
        let told = |text: &str| measured(text).1.err();
        let silent = "it exited with status 0 but printed no result";
        assert_eq!(told("echo note done >&$FAULTLINE_FD"), Some(silent.into()));
        assert_eq!(told("echo 12 MB/s"), Some(format!("{silent}; its last output was: 12 MB/s")));
        assert_eq!(told("printf 'sample x 1' >&$FAULTLINE_FD"), None);
        let (events, _) = measured("true");
        assert!(matches!(events.as_slice(), [Event::Begin { .. }]), "{events:?}");
    }

    #[test]
    fn a_failed_iteration_has_no_end() {
        let (events, _) = script("echo sample x 1 >&$FAULTLINE_FD; exit 1", 60_000);
        assert!(matches!(events.as_slice(), [Event::Begin { .. }, Event::Sample { .. }]));
    }

    #[test]
    fn processes_of_an_ended_program_are_killed() {
        let (events, result) = script("sleep 1000 & echo note $! >&$FAULTLINE_FD", 60_000);
        assert_eq!(result, Ok(()));
        let Event::Note(pid) = &events[1] else { panic!("{events:?}") };
        // The orphan disappears soon, or is a zombie until its new parent reaps it. Otherwise this test does not end.
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            std::thread::yield_now();
        }
    }

    #[test]
    fn much_output_is_read() {
        let (_, result) =
            script("head -c 3000000 /dev/zero; echo sample x 1 >&$FAULTLINE_FD", 60_000);
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn a_missing_program_is_named() {
        let log = Log::new(1 << 20);
        let watch = Watch::new(log.recorder.clone(), std::path::Path::new("/nonexistent"));
        let workload = workload(&["/nonexistent/program"]);
        let error = run(&watch, 0, &workload, 0, false).unwrap_err().to_string();
        assert_eq!(error, "/nonexistent/program cannot be started (No such file or directory)");
    }
}
