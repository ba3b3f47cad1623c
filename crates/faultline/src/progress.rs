//! Progress of a run: one line for each boot under way, rewritten on a terminal; plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::Progress;
use model::count;

/// Where progress is shown, and how.
pub struct Display {
    bars: MultiProgress,
    plain: bool,
    boots: usize,
    /// The boots under way, by number.
    running: BTreeMap<Option<usize>, (String, ProgressBar)>,
    left: Option<Duration>,
}

impl Display {
    /// Progress on standard error; nothing at all if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let plain = !quiet && !stderr().is_terminal();
        let target = match quiet || plain {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bars = MultiProgress::with_draw_target(target);
        Self { bars, plain, boots: 0, running: BTreeMap::new(), left: None }
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
                let name = format!("boot {number} of {}: {variant}", self.boots);
                self.begin(Some(number), name);
            }
            Progress::Doing { number, what } => self.doing(number, what),
            Progress::Kept { number, variant, outcome, wall, left } => {
                if let Some((_, bar)) = self.running.remove(&Some(number)) {
                    bar.finish_and_clear();
                }
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

    /// Takes the lines that are rewritten off the terminal.
    pub fn finish(&self) {
        self.running.values().for_each(|(_, bar)| bar.finish_and_clear());
    }

    fn begin(&mut self, number: Option<usize>, name: String) {
        let bar = self.bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        self.running.insert(number, (name, bar));
    }

    fn doing(&mut self, number: Option<usize>, what: &str) {
        if !self.running.contains_key(&number) {
            self.begin(number, "boot".to_owned());
        }
        let (name, bar) = &self.running[&number];
        let what = report::escape(what);
        let left = self.left.map_or(String::new(), |left| format!(" ({} left)", span(left)));
        bar.set_message(format!("{name}: {what}{left}"));
        if self.plain {
            eprintln!("{name}: {what}");
        }
    }

    /// A line of its own. What a guest said may be in it.
    fn line(&self, text: &str) {
        let text = report::escape(text);
        if self.plain || self.bars.println(&text).is_err() {
            eprintln!("{text}");
        }
    }
}

/// A duration for people: `48 s`, `3 min 20 s`, `2 h 5 min`.
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
    fn spans_are_written_for_people() {
        let written = [0, 48, 200, 7500].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(written, ["0 s", "48 s", "3 min 20 s", "2 h 5 min"]);
    }
}
