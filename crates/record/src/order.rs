//! Checks that the frames of a recording follow each other as the agent writes them. Workloads run
//! as root in the guest, so they can write into the recorder's memory.

use flight::Event;
use flight::event::Usage;

/// What the agent was doing at a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The agent has not started.
    #[default]
    Before,
    /// The agent runs no workload.
    Idle,
    /// The agent runs an iteration that began at this time, in nanoseconds.
    Iteration(u64),
    /// The agent failed and is about to end.
    Failed,
    /// The agent has reported its end.
    Ended,
}

/// The state of the agent after the frames so far.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The names of the job's workloads, each with its number of iterations.
    workloads: &'a [(String, u32)],
    stage: Stage,
    /// The index of the workload, and the iteration, that runs or comes next. After the last
    /// iteration, the index is the number of workloads.
    due: (usize, u32),
    /// Whether the list of sampled files was recorded.
    has_files: bool,
    /// The latest time of a frame so far, in nanoseconds.
    time: u64,
}

impl<'a> Order<'a> {
    /// Begins the check of a recording. `workloads` are the names of the job's workloads, each with
    /// its number of iterations.
    pub fn new(workloads: &'a [(String, u32)]) -> Self {
        let mut order =
            Self { workloads, stage: Stage::default(), due: (0, 0), has_files: false, time: 0 };
        order.skip();
        order
    }

    /// Checks the next frame. `event` is `None` for a sampled file. Fails when the agent would not
    /// write this frame here; the error gives the reason.
    pub fn take(&mut self, time: u64, event: Option<&Event>) -> Result<(), String> {
        // A panicking agent takes the time, then waits for the recorder. Another thread can record
        // a later frame meanwhile.
        let last_words = self.stage == Stage::Failed || matches!(event, Some(Event::Failed(_)));
        if time < self.time && !last_words {
            let (before, now) = (seconds(self.time), seconds(time));
            return Err(format!("its time goes back from {before} to {now}"));
        }
        self.time = self.time.max(time);
        let out_of_place = || format!("{} is out of place", what(event));
        match (event, self.stage) {
            (_, Stage::Ended) => return Err(format!("{} follows the agent's end", what(event))),
            (Some(Event::Hello(_)), Stage::Before) => self.stage = Stage::Idle,
            (Some(Event::Failed(_)), _) => self.stage = Stage::Failed,
            (_, Stage::Before) => {
                return Err(format!("{} precedes the agent's start", what(event)));
            }
            (Some(Event::Begin { workload, iteration }), Stage::Idle) => {
                if (usize::from(*workload), *iteration) != self.due || self.is_done() {
                    return Err(out_of_place());
                }
                self.stage = Stage::Iteration(time);
            }
            (Some(Event::End(usage)), Stage::Iteration(begun)) => {
                check(usage, time - begun)?;
                self.due.1 += 1;
                self.leave();
            }
            (Some(Event::WorkloadFailed(_)), Stage::Iteration(_)) => {
                self.due = (self.due.0 + 1, 0);
                self.leave();
            }
            (
                Some(Event::Phase(_) | Event::Sample { .. } | Event::Point { .. }),
                Stage::Iteration(_),
            ) => {}
            (Some(Event::Found { workload, .. }), Stage::Idle)
                if (usize::from(*workload), 0) == self.due => {}
            (Some(Event::Left(_)), Stage::Idle) => {}
            (Some(Event::Files(_)), Stage::Idle) if !self.has_files => self.has_files = true,
            (Some(Event::Symbols(_)), Stage::Idle) if self.is_done() => {}
            (Some(Event::Bye { .. }), Stage::Failed) => self.stage = Stage::Ended,
            (Some(Event::Bye { .. }), Stage::Idle) if self.is_done() => self.stage = Stage::Ended,
            (
                None
                | Some(
                    Event::Note(_)
                    | Event::Log(_)
                    | Event::SeriesDropped
                    | Event::Sampling { .. }
                    | Event::Samples(_),
                ),
                _,
            ) => {}
            _ => return Err(out_of_place()),
        }
        Ok(())
    }

    /// Ends the iteration and its phase.
    fn leave(&mut self) {
        self.stage = Stage::Idle;
        self.skip();
    }

    /// Skips workloads that have no iterations left.
    fn skip(&mut self) {
        while self.workloads.get(self.due.0).is_some_and(|(_, most)| self.due.1 >= *most) {
            self.due = (self.due.0 + 1, 0);
        }
    }

    /// Returns whether all iterations have ended.
    fn is_done(&self) -> bool {
        self.due.0 >= self.workloads.len()
    }
}

/// Checks the times of an iteration whose frames are `nanoseconds` apart. Its elapsed time must not
/// be longer.
fn check(usage: &Usage, nanoseconds: u64) -> Result<(), String> {
    // Frames and the elapsed time come from clocks with the same rate, rounded to nanoseconds.
    let most = nanoseconds as f64 / 1e9 + 1e-6;
    let Usage { user, system, elapsed } = *usage;
    let sound = [user, system, elapsed].iter().all(|time| time.is_finite() && *time >= 0.0);
    if sound && elapsed <= most {
        return Ok(());
    }
    Err(format!(
        "an iteration of {} by its frames has the times {user}, {system} and {elapsed} s",
        seconds(nanoseconds)
    ))
}

fn seconds(nanoseconds: u64) -> String {
    format!("{:.3} s", nanoseconds as f64 / 1e9)
}

/// Describes a frame for an error message.
fn what(event: Option<&Event>) -> String {
    match event {
        None => "a sampled file".to_owned(),
        Some(Event::Hello(_)) => "the agent's start".to_owned(),
        Some(Event::Files(_)) => "the list of sampled files".to_owned(),
        Some(Event::Begin { workload, iteration }) => {
            format!("the begin of iteration {iteration} of workload {workload}")
        }
        Some(Event::Phase(_)) => "a phase".to_owned(),
        Some(Event::Sample { .. }) => "a sample".to_owned(),
        Some(Event::Point { .. }) => "a point of a series".to_owned(),
        Some(Event::Note(_)) => "a note".to_owned(),
        Some(Event::End(_)) => "the end of an iteration".to_owned(),
        Some(Event::Log(_)) => "a part of the kernel's log".to_owned(),
        Some(Event::SeriesDropped) => "the note of a full recorder".to_owned(),
        Some(Event::Failed(_)) => "the failure of the job".to_owned(),
        Some(Event::Bye { .. }) => "the agent's end".to_owned(),
        Some(Event::Symbols(_)) => "a list of symbols".to_owned(),
        Some(Event::WorkloadFailed(_)) => "the failure of a workload".to_owned(),
        Some(Event::Sampling { .. }) => "the begin of the profile".to_owned(),
        Some(Event::Samples(_)) => "a part of the profile".to_owned(),
        Some(Event::Found { workload, .. }) => {
            format!("the list of states that workload {workload} found")
        }
        Some(Event::Left(_)) => "a note on what a workload left".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use flight::event::Hello;
    use proptest::prelude::*;

    use super::*;

    fn job() -> [(String, u32); 3] {
        [("a", 2), ("none", 0), ("b", 1)].map(|(name, iterations)| (name.to_owned(), iterations))
    }

    const USAGE: Usage = Usage { user: 0.0, system: 0.0, elapsed: 5e-9 };

    /// Returns the frames of [`job`], without their times.
    fn written() -> Vec<Event> {
        let iteration = |workload, iteration| {
            let sample =
                Event::Sample { metric: "x".into(), label: "".into(), value: 1.0, ended: None };
            [
                Event::Begin { workload, iteration },
                Event::Phase("p".into()),
                sample,
                Event::End(USAGE),
            ]
        };
        let mut events = vec![Event::Hello(Hello::default()), Event::Files(Vec::new())];
        let found = |workload| [Event::Found { workload, states: Vec::new() }];
        events.extend(found(0));
        events.extend([iteration(0, 0), iteration(0, 1)].into_iter().flatten());
        events.push(Event::Left("left by a: a mount".into()));
        events.extend(found(2));
        events.extend(iteration(2, 0));
        events.extend([Event::Symbols("f".into()), Event::Bye { tainted: 0 }]);
        events
    }

    /// Checks these frames, ten nanoseconds apart. Returns whether the job is complete.
    fn take(events: &[Event]) -> Result<bool, String> {
        let job = job();
        let mut order = Order::new(&job);
        for (time, event) in (0..).step_by(10).zip(events) {
            order.take(time, Some(event))?;
        }
        Ok(order.stage == Stage::Ended)
    }

    /// Returns whether the number and the order of such frames are fixed. They are not for samples,
    /// for example.
    fn is_structure(event: &Event) -> bool {
        !matches!(
            event,
            Event::Sample { .. }
                | Event::Phase(_)
                | Event::Files(_)
                | Event::Found { .. }
                | Event::Left(_)
                | Event::Symbols(_)
        )
    }

    #[test]
    fn a_recording_as_the_agent_writes_it_is_sound() {
        assert_eq!(take(&written()), Ok(true));
        let failed = Event::WorkloadFailed("it exited with status 1".into());
        let mut events = written();
        events.splice(5..11, [failed.clone()]);
        assert_eq!(take(&events), Ok(true), "{events:?}");
        let last_words = [Event::Failed("panic".into()), Event::Bye { tainted: 0 }];
        for length in 0..events.len() - 1 {
            assert_eq!(take(&[&events[..length], &last_words].concat()), Ok(true), "{length}");
        }
    }

    #[test]
    fn the_reason_names_the_frame() {
        let why = |events: &[Event]| take(events).unwrap_err();
        let events = written();
        assert_eq!(
            why(&events[3..]),
            "the begin of iteration 0 of workload 0 precedes the agent's start"
        );
        assert_eq!(
            why(&[&events[..7], &events[3..]].concat()),
            "the begin of iteration 0 of workload 0 is out of place"
        );
        assert_eq!(why(&[&events[..], &events[4..5]].concat()), "a phase follows the agent's end");
        let long = Event::End(Usage { elapsed: 1.5, ..USAGE });
        assert_eq!(
            why(&[&events[..6], &[long]].concat()),
            "an iteration of 0.000 s by its frames has the times 0, 0 and 1.5 s"
        );
        let mut order = Order::new(&[]);
        order.take(2_000_000_000, Some(&events[0])).unwrap();
        let why = order.take(1_000_000_000, None).unwrap_err();
        assert_eq!(why, "its time goes back from 2.000 s to 1.000 s");
    }

    proptest! {
        /// If frames are removed, repeated or moved, the job is complete only if its structure is
        /// the same.
        #[test]
        fn no_other_order_is_complete(
            changes in prop::collection::vec((0..4, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
        ) {
            let mut events = written();
            for (change, one, other) in changes {
                let (one, other) = (one.index(events.len()), other.index(events.len()));
                match change {
                    0 => drop(events.remove(one)),
                    1 => events.insert(other, events[one].clone()),
                    2 => events.swap(one, other),
                    _ => events[one] = events[other].clone(),
                }
            }
            let structure = |events: Vec<Event>| -> Vec<Event> {
                events.into_iter().filter(is_structure).collect()
            };
            if take(&events) == Ok(true) {
                prop_assert_eq!(structure(events), structure(written()));
            }
        }

        /// A frame with an earlier time than the one before it is refused.
        #[test]
        fn no_time_goes_back(times in prop::collection::vec(0..50_u64, 2..10)) {
            let mut order = Order::new(&[]);
            let mut taken = times.iter().enumerate().map(|(number, time)| {
                order.take(*time, (number == 0).then_some(&Event::Hello(Hello::default())))
            });
            let is_sound = taken.all(|taken| taken.is_ok());
            prop_assert_eq!(is_sound, times.is_sorted());
        }
    }
}
