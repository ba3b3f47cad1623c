//! Progress of a run: a line that is rewritten on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::Progress;
use model::count;

/// Where progress is shown, and how.
pub struct Display {
    bar: ProgressBar,
    plain: bool,
    boots: usize,
    current: String,
    left: Option<Duration>,
}

impl Display {
    /// Progress on standard error; nothing at all if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let plain = !quiet && !stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if quiet || plain {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        Self { bar, plain, boots: 0, current: String::new(), left: None }
    }

    /// Shows one piece of progress.
    pub fn show(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Remark(text) => self.line(text),
            Progress::Plan { boots, done } => {
                self.boots = boots;
                self.line(&match done {
                    0 => format!("{} to do", count(boots, "boot")),
                    _ => format!("{}, {done} done before", count(boots, "boot")),
                });
            }
            Progress::Boot { number, variant } => {
                self.current = format!("boot {number} of {}: {variant}", self.boots);
                self.bar.reset_elapsed();
                self.bar.enable_steady_tick(Duration::from_millis(200));
            }
            Progress::Doing(what) => self.doing(what),
            Progress::Kept { number, variant, outcome, wall, left } => {
                self.left = left;
                let left = left.map_or(String::new(), |left| format!(", {} left", span(left)));
                let wall = span(wall);
                let boots = self.boots;
                self.line(&format!(
                    "boot {number} of {boots}: {variant}: {outcome} in {wall}{left}"
                ));
            }
        }
    }

    /// Takes the line that is rewritten off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn doing(&self, what: &str) {
        let what = report::escape(what);
        let left = self.left.map_or(String::new(), |left| format!(" ({} left)", span(left)));
        self.bar.set_message(format!("{}: {what}{left}", self.current));
        if self.plain {
            eprintln!("{}: {what}", self.current);
        }
    }

    /// A line of its own. What a guest said may be in it.
    fn line(&self, text: &str) {
        let text = report::escape(text);
        if self.plain {
            eprintln!("{text}");
        } else {
            self.bar.println(&text);
        }
    }
}

/// A duration for people: `48 s`, `3 min 20 s`, `2 h 5 min`.
fn span(duration: Duration) -> String {
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
    fn spans_are_written_for_people() {
        let written = [0, 48, 200, 7500].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(written, ["0 s", "48 s", "3 min 20 s", "2 h 5 min"]);
    }
}
