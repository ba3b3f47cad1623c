//! How noisy this host is: short sessions of a fixed work, as runs on the host make them.

use model::{Boot, Host, Kept, MachineKind, Mode, Note, NoteKind, StatesFound, count};
use plan::file::{BootsForm, FileForm, Input, MachineForm, VariantForm, placeless};
use stats::{Design, Summary, required};
use store::Detail;

use crate::args::TurnArgs;
use crate::commands::options;
use crate::commands::run::with_store;
use crate::failure::Failure;
use lab::RunOptions;

/// Sessions, of which two that follow each other are a pair.
pub const SESSIONS: u32 = 20;
/// The workload, and the memory that it touches in MiB.
const WORKLOAD: &str = "pagefault";
const MEMORY: f64 = 64.0;
/// How often it maps, touches and unmaps its memory in a session.
const ROUNDS: &str = "5";
/// The level of a test and the probability with which it sees a change, as for verdicts.
const LEVEL: f64 = 0.05;
const POWER: f64 = 0.8;

/// The sessions that complete.
pub struct Noise {
    boots: Vec<Boot>,
}

impl Noise {
    /// Runs the sessions, in a store that is removed afterwards.
    pub fn measure(host: &Host) -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("noise.db");
        let mebibytes = host.memory.iter().sum::<u64>() as f64 / f64::from(1 << 20);
        let share = (100.0 * MEMORY / mebibytes).clamp(0.001, 40.0);
        let set = [
            ("tests", "anonymous".to_owned()),
            ("by", "processes".to_owned()),
            ("tasks", "1".to_owned()),
            ("rounds", ROUNDS.to_owned()),
            ("share", format!("{share:.3}")),
        ];
        let set = set.map(|(name, value)| (name.to_owned(), value));
        let mut input = Input::default();
        let workload = options::workload(&mut input, ("--workload", WORKLOAD), &set)?;
        let mut machine = MachineForm::default();
        machine.kind = Some(placeless(MachineKind::Host));
        let variant = VariantForm::new(placeless(model::RUNNING_KERNEL.to_owned()));
        let mut form = FileForm::new(machine, vec![variant], workload);
        form.mode = Mode::Measured;
        form.boots = Some(placeless(BootsForm::Number(SESSIONS)));
        let request = input.request(form)?;
        let mut lab = with_store(store::open(&path)?, &path, TurnArgs { no_wait: false })?;
        let id = lab.run(&request, RunOptions::default(), &mut |_| ())?.experiment;
        let kept = lab.store.boots(id, Detail::Summary)?;
        let boots = kept.into_iter().map(|Kept { boot, .. }| boot);
        Ok(Self { boots: boots.filter(|it| it.outcome.is_complete()).collect() })
    }

    /// The states of memory management that the sessions found.
    pub fn states(&self) -> Vec<(&'static str, String)> {
        let notes = self.boots.first().map_or(&[][..], |boot| &boot.notes);
        let found = notes.iter().filter(|it: &&Note| it.kind == NoteKind::Found);
        let found = found.filter_map(StatesFound::of_note).flat_map(|it| it.states);
        found.map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// The mean rate of each session.
    fn rates(&self) -> Vec<f64> {
        let rate = |boot: &Boot| {
            let values: Vec<f64> = boot.samples.iter().map(|it| it.value).collect();
            Some(Summary::of(&values)?.amean)
        };
        self.boots.iter().filter_map(rate).collect()
    }

    /// How much sessions differ, and how many of them show a change.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let how = format!(
            "{} of the workload {WORKLOAD}: one process maps, touches and unmaps {MEMORY} MiB of anonymous memory {ROUNDS} \
             times, and the mean rate is the figure of a session",
            count(self.boots.len(), "session")
        );
        let steal = self.boots.iter().map(|boot| 100.0 * boot.host.steal);
        let steal = steal.filter(|it| it.is_finite()).fold(0.0, f64::max);
        let mut lines = vec![("measured by", how)];
        match spread(&self.rates()) {
            None => lines.push(("spread", "not known: sessions failed".to_owned())),
            Some(Spread { between, paired }) => {
                lines.push((
                    "spread",
                    format!("{:.1} % between sessions (standard deviation)", 100.0 * between),
                ));
                for (change, topic) in
                    [(0.01, "1 % takes"), (0.05, "5 % takes"), (0.2, "20 % takes")]
                {
                    lines.push((topic, sessions(paired, change)));
                }
            }
        }
        lines.push(("stolen by its host", format!("at most {steal:.1} % of CPU time")));
        lines.push(("note", "another workload can be more or less noisy than this one".to_owned()));
        lines
    }
}

/// The spread of figures, as shares.
struct Spread {
    /// The standard deviation between sessions.
    between: f64,
    /// The standard deviation of the differences between two sessions that follow each other.
    paired: f64,
}

/// The spread of the logarithms; `None` with fewer than two pairs.
fn spread(rates: &[f64]) -> Option<Spread> {
    let logarithms: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let pairs: Vec<f64> = logarithms.chunks_exact(2).map(|pair| pair[1] - pair[0]).collect();
    let [between, paired] = [&logarithms, &pairs].map(|it| Summary::of(it)?.stddev);
    Some(Spread { between: between?, paired: paired? })
}

/// How many sessions of each variant show a change of this share, by the paired test of verdicts.
fn sessions(paired: f64, change: f64) -> String {
    match required(Design::Paired, paired, change.ln_1p(), LEVEL, POWER) {
        Some(number) => {
            // Verdicts need three boots of each side.
            let number = count(rounded(number.max(3)), "session");
            format!("about {number} of each variant, in four of five cases")
        }
        None => "more than a million sessions of each variant".to_owned(),
    }
}

/// The number with two digits that count, rounded up: ten pairs tell the spread only roughly.
fn rounded(number: usize) -> usize {
    let unit = 10_usize.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_drift_does_not_widen_pairs() {
        let drifting: Vec<f64> = (0..20).map(|number| 1.1_f64.powi(number)).collect();
        let Spread { between, paired } = spread(&drifting).unwrap();
        assert!(between > 0.5 && paired < 1e-9, "{between} {paired}");
        assert!(spread(&drifting[..3]).is_none());
    }

    /// 10 pairs for an effect of one standard deviation: by statsmodels, as in the tests of `stats::power`.
    #[test]
    fn the_number_of_sessions_is_that_of_the_power_calculation() {
        let sd = 0.01_f64.ln_1p();
        assert!(sessions(sd, 0.01).starts_with("about 10 sessions of each variant"));
        assert!(sessions(0.01_f64.ln_1p() / 5.0, 0.01).starts_with("about 3 sessions"));
        assert_eq!([3, 10, 99, 101, 11_869].map(rounded), [3, 10, 99, 110, 12_000]);
        assert!(sessions(1e9, 0.01).starts_with("more than a million"));
    }
}
