//! Whether the boots that are there are enough, where they may end early: looked at when there are as
//! many blocks of them as was fixed before. What a look says depends on the boots that are kept and
//! on nothing else, so a run that was killed goes on as if it had not been.

use std::time::{Duration, Instant};

use compare::{Comparison, Judging, Look, Verdict};
use model::{Experiment, count};
use store::{Detail, ExperimentId, Store};

use super::{Ending, RunError};
use crate::results::results;
use crate::watch::{Progress, Watch};

/// The looks of one run.
pub struct Looks<'a> {
    experiment: &'a Experiment,
    id: ExperimentId,
    begun: Instant,
    /// The block whose boots are being done.
    block: Option<u32>,
    /// The number of the last look.
    looked: u32,
}

impl<'a> Looks<'a> {
    /// For a run that began then.
    pub fn new(experiment: &'a Experiment, id: ExperimentId, begun: Instant) -> Self {
        Self { experiment, id, begun, block: None, looked: 0 }
    }

    /// Whether boots may end before all are done, so that nobody knows how long they take.
    pub fn may_end(&self) -> bool {
        self.experiment.sequential.is_some()
    }

    /// Why there is to be no boot of this block; none if there is to be one. All boots of the blocks
    /// before it are done.
    pub fn before(
        &mut self,
        block: u32,
        store: &Store,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Ending>, RunError> {
        if self.block.replace(block) == Some(block) {
            return Ok(None);
        }
        let decided = self.look(store, watch)?;
        let budget = self.experiment.sequential.and_then(|sequential| sequential.budget);
        let spent = budget.is_some_and(|it| self.begun.elapsed() >= Duration::from_millis(it.0));
        Ok(decided.or(spent.then_some(Ending::Budget)))
    }

    /// Looks at the boots that are kept, if a look is due. Gives why there need be no more of them;
    /// none if there need.
    pub fn look(
        &mut self,
        store: &Store,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Ending>, RunError> {
        if !self.may_end() {
            return Ok(None);
        }
        let kept = store.boots(self.id, Detail::Summary)?;
        let results = results(self.experiment, &kept);
        let judging = Judging::of(&results);
        let Some(look) = judging.look.filter(|look| look.number > self.looked) else {
            return Ok(None);
        };
        self.looked = look.number;
        let comparison = compare::compare(&results, 0, &judging);
        if let Some(variant) = comparison.variants.iter().find(|variant| variant.complete == 0) {
            watch(Progress::Remark(&format!("{} has no complete boot", variant.name)));
            return Ok(Some(Ending::Fruitless));
        }
        let verdicts = verdicts(&comparison);
        for line in lines(&look, &judging, &verdicts) {
            watch(Progress::Remark(&line));
        }
        let is_decided = |judged: &Judged| judged.verdict != Verdict::Undecided;
        let decided = !verdicts.is_empty() && verdicts.iter().all(is_decided);
        Ok(decided.then_some(Ending::Verdicts))
    }
}

/// A verdict, and what it is on.
struct Judged {
    /// Variant, workload and metric.
    name: String,
    verdict: Verdict,
    gain: Option<f64>,
}

fn verdicts(comparison: &Comparison) -> Vec<Judged> {
    let columns = comparison.variants.iter().enumerate().skip(1);
    let judged = columns.flat_map(|(column, variant)| {
        comparison.verdicts(column).map(move |(table, row, verdict)| Judged {
            name: format!("{}: {} {}", variant.name, table.workload, row.metric),
            verdict,
            gain: row.gains[column],
        })
    });
    judged.collect()
}

/// What a look found, for people: what is decided, and what is not.
fn lines(look: &Look, judging: &Judging, verdicts: &[Judged]) -> Vec<String> {
    let open = verdicts.iter().filter(|judged| judged.verdict == Verdict::Undecided).count();
    let level = 100.0 * judging.alpha();
    let head = format!(
        "look {} of {}, at {} of each variant, level {level:.2} %: {} of {} decided",
        look.number,
        look.of,
        count(look.boots as usize, "boot"),
        verdicts.len() - open,
        count(verdicts.len(), "verdict"),
    );
    let line = |judged: &Judged| {
        let gain = judged.gain.map_or(String::new(), |gain| format!(" ({gain:+.2}%)"));
        format!("  {}: {}{gain}", judged.name, judged.verdict.name())
    };
    [head].into_iter().chain(verdicts.iter().map(line)).collect()
}
