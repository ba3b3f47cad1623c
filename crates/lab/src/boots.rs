//! Does the boots of a run. In measured mode one boot runs at a time. In exact mode several run in
//! parallel, because counts do not depend on the host's load.

use std::collections::{HashSet, VecDeque};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use boot::Libraries;
use model::{Boot, NoteKind, Outcome};
use plan::schedule::files_of;
use record::metrics;
use record::salvage::remove;
use store::{ExperimentId, Standing};

use crate::context::RunContext;
use crate::due::{Due, Plan};
use crate::failures::Failed;
use crate::looks::Looks;
use crate::pace::Pace;
use crate::repeat::Repeats;
use crate::verify::{Verified, verify};
use crate::watch::{Progress, Watch};
use crate::worker::{Report, work};
use crate::{Lab, RunEnding, RunError, RunOptions, RunSummary};

/// A boot to do, and how often it was repeated so far.
#[derive(Clone, Copy)]
struct Attempt {
    due: Due,
    repeats: Repeats,
}

/// A boot that has ended.
struct Ended {
    boot: Boot,
    wall: Duration,
    verified: Option<Verified>,
}

/// The data that all threads of a run share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    context: &'a RunContext<'a>,
    libraries: &'a Libraries,
    scratch: &'a Path,
    id: ExperimentId,
    options: RunOptions,
}

impl Shared<'_> {
    /// Returns the directory of a boot's files until the boot is stored.
    fn directory(&self, due: Due) -> PathBuf {
        self.scratch.join(files_of(self.id, due.slot))
    }

    /// Does one boot. With `verify`, repeats it with the other way of counting, and compares. Runs in its own thread.
    fn boot(&self, due: Due, doing: &mut dyn FnMut(&str)) -> Result<Ended, RunError> {
        let start = Instant::now();
        let RunOptions { each, verify: repeats, .. } = self.options;
        let inputs = |each| self.context.exact_inputs(self.libraries, due.slot, each);
        let bootable = |inputs| self.context.bootable(due.slot, inputs);
        let directory = self.directory(due);
        let own = inputs(each);
        let boot = bootable(own.as_ref()).boot(due.slot, &directory, doing)?;
        let verified = match repeats && !matches!(boot.outcome, Outcome::Invalid(_)) {
            true => {
                let other = inputs(!each);
                let again = bootable(other.as_ref());
                Some(verify(self.scratch, self.id, &again, due.slot, doing)?)
            }
            false => None,
        };
        Ok(Ended { boot, wall: start.elapsed(), verified })
    }
}

impl Lab {
    /// Does the due boots in order, until all are done or a look ends the run. Stores each boot
    /// when it ends. After an error no further boot begins; running boots are completed and stored.
    /// If a boot fails in exact mode, no further boot of its variant begins, unless the option
    /// `keep_going` is set.
    pub(super) fn boot_all(
        &mut self,
        plan: &Plan,
        context: &RunContext<'_>,
        options: RunOptions,
        summary: &mut RunSummary,
        watch: &mut Watch<'_>,
    ) -> Result<RunEnding, RunError> {
        let begun = Instant::now();
        let mut looks =
            Looks::new((context.experiment, context.reading), summary.experiment, begun);
        if plan.later == 0 {
            looks.announce(watch);
        }
        let jobs = options.side_by_side(context.experiment);
        let mut queue: VecDeque<Attempt> =
            plan.due.iter().map(|&due| Attempt { due, repeats: Repeats::default() }).collect();
        let Self { store, libraries, scratch, .. } = self;
        let id = summary.experiment;
        let shared = Shared { context, libraries, scratch, id, options };
        let name = |due: Due| &*context.experiment.variants[due.slot.variant].name;
        let mut end: Option<Result<RunEnding, RunError>> = None;
        let (mut running, mut pace) = (0, Pace::new(jobs));
        let mut told_of = HashSet::new();
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            loop {
                while running < jobs && end.is_none() {
                    let Some(attempt) = queue.front().copied() else { break };
                    end = looks.before(attempt.due.slot.block, &**store, watch).transpose();
                    if end.is_some() {
                        break;
                    }
                    queue.pop_front();
                    let Due { number, .. } = attempt.due;
                    watch(Progress::Boot { number, variant: name(attempt.due) });
                    pace.begin(number, Instant::now());
                    let sender = sender.clone();
                    scope.spawn(move || {
                        work(attempt, &sender, |doing| shared.boot(attempt.due, doing));
                    });
                    running += 1;
                }
                if running == 0 {
                    break;
                }
                let (attempt, report) = receiver.recv().expect("this function has a sender");
                let Due { number, .. } = attempt.due;
                let ended = match report {
                    Report::Doing(what) => {
                        watch(Progress::Doing { number, what: &what });
                        continue;
                    }
                    Report::Ended(ended) => (*ended).unwrap_or_else(|panic| resume_unwind(panic)),
                };
                running -= 1;
                let directory = shared.directory(attempt.due);
                let kept = ended.and_then(|Ended { mut boot, wall, verified }| {
                    let differences = metrics::differences(context.experiment, &boot);
                    boot.notes.extend(differences.iter().map(|it| NoteKind::Remark.note(it)));
                    let mode = context.experiment.mode;
                    let mut repeats = attempt.repeats;
                    if let Some(why) = repeats.reason(mode, &boot) {
                        watch(Progress::Message(&format!("Retrying boot {number}: {why}")));
                        store.keep(id, &boot, &[], Standing::Aside)?;
                        queue.push_front(Attempt { repeats, ..attempt });
                        return Ok(remove(&directory)?);
                    }
                    for difference in differences {
                        if !told_of.contains(&difference) {
                            watch(Progress::Message(&difference));
                            told_of.insert(difference);
                        }
                    }
                    let standing = match options.retry_failed {
                        true => Standing::Instead,
                        false => Standing::Counts,
                    };
                    store.keep(id, &boot, &[], standing)?;
                    remove(&directory)?;
                    match verified {
                        Some(Verified::Same) => summary.verified += 1,
                        Some(Verified::Not(why)) => watch(Progress::Message(&why)),
                        None => {}
                    }
                    let slot = attempt.due.slot;
                    let failure = Failed::of(context.experiment, slot, &boot.outcome);
                    let given_up = failure.filter(|_| !options.keep_going).and_then(|failure| {
                        let all = queue.len();
                        queue.retain(|it| it.due.slot.variant != failure.variant);
                        failure.without(all - queue.len())
                    });
                    summary.boots += 1;
                    let failed = !boot.outcome.is_complete();
                    summary.failed += usize::from(failed);
                    summary.partial += usize::from(failed && boot.outcome.counts());
                    pace.end(number, wall);
                    let left = pace.left(queue.len() + plan.later, Instant::now());
                    watch(Progress::Kept {
                        number,
                        variant: name(attempt.due),
                        outcome: &boot.outcome,
                        wall,
                        left: Some(left).filter(|left| *left > Duration::ZERO && !looks.may_end()),
                    });
                    if let Some(given_up) = given_up {
                        given_up.announce(watch);
                        summary.given_up.push(given_up);
                    }
                    Ok(())
                });
                if let Err(error) = kept {
                    end.get_or_insert(Err(error));
                }
            }
        });
        match end {
            Some(end) => end,
            None => Ok(looks.look(&**store, watch)?.unwrap_or(RunEnding::Schedule)),
        }
    }
}
