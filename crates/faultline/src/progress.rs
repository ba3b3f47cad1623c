//! Progress of a run: on a terminal one updated line for each running boot, elsewhere plain lines when a boot
//! begins and when it ends.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::{Progress, Replayed};
use model::{BootId, count};

use crate::log;
use crate::output::SAID;

/// A boot whose progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Running {
    /// A boot of the schedule, by its number.
    Boot(usize),
    Replay(BootId),
}

/// Prints the progress of a run to standard error.
pub struct Display {
    bars: MultiProgress,
    plain: bool,
    boots: usize,
    /// The boots that run now, each with its text and its line.
    running: BTreeMap<Running, (String, ProgressBar)>,
    left: Option<Duration>,
    /// How many boots were stored since this display was made.
    pub kept: Arc<AtomicUsize>,
}

impl Display {
    /// Progress on standard error; none if `quiet`.
    pub fn new(quiet: bool) -> Self {
        // Other output on the terminal would break the bars.
        let plain = !quiet && (!stderr().is_terminal() || log::is_verbose());
        let target = match quiet || plain {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bars = MultiProgress::with_draw_target(target);
        let (running, kept) = (BTreeMap::new(), Arc::default());
        Self { bars, plain, boots: 0, running, left: None, kept }
    }

    /// Shows one piece of progress.
    pub fn show(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Message(text) => self.line(text),
            Progress::Plan { boots, done, at_most, time } => {
                self.boots = boots;
                let most = if at_most { "at most " } else { "" };
                let boots = count(boots, "boot");
                let boots = match done {
                    0 => format!("{most}{boots} to do"),
                    _ => format!("{most}{boots}, {done} already done"),
                };
                let time =
                    time.map_or(String::new(), |time| format!("; {most}about {}", span(time)));
                self.line(&format!("{boots}{time}"));
            }
            Progress::Boot { number, variant } => {
                let name = format!("boot {number} of {}: {variant}", self.boots);
                self.begin(Running::Boot(number), name);
            }
            Progress::Doing { number, what } => self.doing(Running::Boot(number), what),
            Progress::Replaying { boot, what } => self.doing(Running::Replay(boot), what),
            Progress::Replayed(Replayed { boot, .. }) => self.end(Running::Replay(*boot)),
            Progress::Kept { number, variant, outcome, wall, left } => {
                self.end(Running::Boot(number));
                self.kept.fetch_add(1, Relaxed);
                self.left = left;
                let left = left.map_or(String::new(), |left| format!(", {} left", span(left)));
                let wall = span(wall);
                let boots = self.boots;
                // The reason of a failure can end with the words of a program.
                let said = match outcome.is_complete() {
                    true => format!("{outcome} in {wall}"),
                    false => format!("after {wall} {outcome}"),
                };
                self.line(&format!("boot {number} of {boots}: {variant}: {said}{left}"));
            }
        }
    }

    /// Whether the number of boots was shown.
    pub fn has_plan(&self) -> bool {
        self.boots > 0
    }

    /// Removes the updated lines from the terminal.
    pub fn finish(&self) {
        self.running.values().for_each(|(_, bar)| bar.finish_and_clear());
    }

    fn end(&mut self, boot: Running) {
        if let Some((_, bar)) = self.running.remove(&boot) {
            bar.finish_and_clear();
        }
    }

    fn begin(&mut self, boot: Running, name: String) {
        let name = report::escape(&name);
        let bar = self.bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        self.running.insert(boot, (name, bar));
    }

    fn doing(&mut self, boot: Running, what: &str) {
        if let Running::Replay(id) = boot
            && !self.running.contains_key(&boot)
        {
            self.begin(boot, format!("replay of {id}"));
        }
        let Some((name, bar)) = self.running.get(&boot) else { return };
        let begins = bar.message().is_empty();
        let what = report::escape(what);
        let left = self.left.map_or(String::new(), |left| format!(" ({} left)", span(left)));
        bar.set_message(format!("{name}: {what}{left}"));
        if self.plain && begins {
            eprintln!("{name}: {what}");
        }
    }

    /// Prints a line, which may have text from a guest.
    fn line(&self, text: &str) {
        let text = report::escape(text);
        if self.plain {
            return eprintln!("{text}");
        }
        tracing::info!(target: SAID, "{text}");
        if self.bars.println(&text).is_err() {
            eprintln!("{text}");
        }
    }
}

/// A duration as text: `48 s`, `3 min 20 s`, `2 h 5 min`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_text() {
        let written = [0, 48, 200, 7500].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(written, ["0 s", "48 s", "3 min 20 s", "2 h 5 min"]);
    }
}
