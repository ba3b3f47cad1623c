//! Builds and boots commits of a range, and reads the figure from their boots.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use compare::{Comparison, Difference, Judging, Results, Signal, check_cost, compare};
use culprit::{LevelChange, Phase, Tried, level, reach};
use kernels::{Commit, History, Inputs, image};
use lab::{Lab, Progress, RunError, Watch};
use model::{Execution, Experiment, INSTRUCTIONS, Kept, Kernel, Mode, Variant, count};
use plan::{Request, Search};
use stats::pooled_variance;

use crate::boots::{Booted, booted, of_host};
use crate::effort::Effort;
use crate::range::Range;
use crate::variants::{kernel_of, of_kernel, variant};

/// Failed boots of a commit that are made up for; of many boots a third.
const MOST_FAILED: u32 = 2;

/// A commit that was tried.
pub struct Trial {
    /// Its kernel, or why there is none.
    kernel: Result<Kernel, String>,
    /// The experiment of its boots, with the kernel's digest.
    experiment: Option<Experiment>,
    /// The complete boots of its kernel.
    boots: Vec<Kept>,
    /// Their figures, of those that have one.
    figures: Vec<f64>,
    /// Why it has no figure.
    problem: Option<String>,
    /// How many commits could be the culprit when it was chosen.
    left: usize,
    /// The digest of the code and data that its kernel loads.
    loaded: Option<String>,
    /// The place of the commit whose kernel loads the same.
    same_as: Option<usize>,
}

/// The commits that were tried so far, by their place in the history.
pub struct Trials<'a> {
    /// What obtains and boots kernels.
    pub lab: &'a mut Lab,
    /// What the search was asked.
    pub search: &'a Search,
    /// The commits and options between the ends.
    pub range: &'a Range,
    /// Its commits and changes of options.
    pub history: &'a History,
    /// The figure that tells the kernels apart.
    signal: Signal,
    all: BTreeMap<usize, Trial>,
    /// Their places, in the order in which they were first tried.
    order: Vec<usize>,
    /// How many commits can still be the culprit.
    pub left: usize,
    /// The files that builds of these kernels read; `None` if that is not known of one of them.
    pub inputs: Option<Inputs>,
    /// What was kept, and what the search has cost.
    pub effort: Effort,
}

impl Trial {
    /// Reads the figures of its boots.
    fn read(&mut self, signal: &Signal) {
        self.figures = self.figures_of(signal);
    }

    fn figures_of(&self, signal: &Signal) -> Vec<f64> {
        let Some(experiment) = &self.experiment else { return Vec::new() };
        let figures = self.boots.iter().filter_map(|kept| signal.of_boot(experiment, kept));
        figures.filter(|figure| figure.is_finite()).collect()
    }
}

impl<'a> Trials<'a> {
    /// The trials of a range, none so far.
    ///
    /// # Errors
    /// When the cache or the store cannot be read.
    pub fn new(lab: &'a mut Lab, search: &'a Search, range: &'a Range) -> Result<Self, RunError> {
        let effort = Effort::of(lab, &search.experiment)?;
        let history = &range.history;
        let (all, order, inputs) = (BTreeMap::new(), Vec::new(), Some(Inputs::default()));
        let left = range.bad();
        let signal = Signal::kernel(INSTRUCTIONS, None);
        Ok(Self { lab, search, range, history, signal, all, order, left, inputs, effort })
    }

    /// The place of the bad end.
    pub fn bad(&self) -> usize {
        self.range.bad()
    }

    /// Reads another figure from all boots.
    pub fn use_signal(&mut self, signal: Signal) {
        self.signal = signal;
        self.all.values_mut().for_each(|trial| trial.read(&self.signal));
    }

    /// The figure that is read.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Number of commits that were tried.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Builds the kernel of a commit.
    pub fn build(&mut self, place: usize, watch: &mut Watch<'_>) -> Result<&Trial, RunError> {
        if !self.all.contains_key(&place) {
            let kernel = self.kernel(place, watch)?;
            if let Ok(kernel) = &kernel {
                let own = self.lab.cache.inputs(kernel)?;
                self.inputs = self.inputs.take().zip(own).map(|(all, own)| all.and(own));
            }
            let loaded = kernel.as_ref().ok().map(loaded);
            let is_same = |trial: &Trial| {
                trial.same_as.is_none() && loaded.is_some() && trial.loaded == loaded
            };
            let same_as =
                self.all.iter().find(|(_, trial)| is_same(trial)).map(|(place, _)| *place);
            let problem = kernel.as_ref().err().cloned();
            let (experiment, boots, figures) = (None, Vec::new(), Vec::new());
            let left = self.left;
            let trial =
                Trial { kernel, experiment, boots, figures, problem, left, loaded, same_as };
            self.all.insert(place, trial);
            self.order.push(place);
        }
        Ok(&self.all[&place])
    }

    /// Does `boots` complete boots of a commit. If its kernel cannot be built or too many boots fail, it has a
    /// problem instead.
    pub fn boot(
        &mut self,
        place: usize,
        boots: u32,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        let (begun, booted, tried) = (Instant::now(), self.effort.booted, self.len());
        self.build_and_boot(place, boots, watch)?;
        let is_cached = |kernel: &Kernel| self.effort.is_cached(kernel);
        let is_built = tried < self.len() && !self.all[&place].kernel.as_ref().is_ok_and(is_cached);
        if self.effort.booted > booted || is_built {
            self.effort.add(begun.elapsed(), is_built);
        }
        Ok(())
    }

    fn build_and_boot(
        &mut self,
        place: usize,
        boots: u32,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        let is_new = !self.all.contains_key(&place);
        let same_as = self.build(place, watch)?.same_as;
        if let Some(same) = same_as.filter(|_| is_new) {
            let [one, other] = [place, same].map(|it| self.commit(it).short().to_owned());
            watch(Progress::Message(&format!(
                "{one} has the code and data of {other}: not booted"
            )));
        }
        let place = same_as.unwrap_or(place);
        let trial = &self.all[&place];
        let Ok(kernel) = trial.kernel.clone() else { return Ok(()) };
        if trial.problem.is_some() || trial.boots.len() >= boots as usize {
            return Ok(());
        }
        let (mut failed, most_failed) = (0, MOST_FAILED.max(boots / 3));
        let mut elsewhere = 0;
        loop {
            let request = self.request(place, &kernel, boots + failed + elsewhere);
            let (experiment, kept, why) = match booted(self.lab, &request, watch) {
                Ok(Booted { summary, experiment, kept }) => {
                    self.effort.booted += summary.boots;
                    (Some(experiment), kept, None)
                }
                Err(RunError::Unsupported { why, .. }) => (None, Vec::new(), Some(why)),
                Err(error) => return Err(error),
            };
            let (kept, foreign) = of_host(kept, self.search.experiment.mode, &self.lab.host);
            if foreign > elsewhere {
                elsewhere = foreign;
                let foreign = count(foreign as usize, "boot");
                let commit = self.commit(place);
                let commit = commit.short();
                watch(Progress::Message(&format!(
                    "{foreign} of {commit} left out: of another host"
                )));
                continue;
            }
            let (complete, others): (Vec<Kept>, Vec<Kept>) =
                kept.into_iter().partition(|kept| kept.boot.outcome.counts());
            let lost = others.len() as u32;
            let is_enough = complete.len() >= boots as usize;
            if !is_enough && why.is_none() && lost > failed && lost <= most_failed {
                failed = lost;
                continue;
            }
            let outcome = || others.first().map(|kept| kept.boot.outcome.to_string());
            let trial = self.all.get_mut(&place).expect("it was built");
            trial.boots = complete;
            trial.experiment = experiment;
            trial.read(&self.signal);
            if !is_enough {
                trial.problem = why.or_else(outcome).or(Some("has too few boots".into()));
            }
            return Ok(());
        }
    }

    /// The trial whose boots count for a commit.
    pub fn trial(&self, place: usize) -> Option<&Trial> {
        let trial = self.all.get(&place)?;
        trial.same_as.map_or(Some(trial), |same| self.all.get(&same))
    }

    /// Commits that give the same kernel, each with a descendant, if no kernel between them is another.
    pub fn same(&self, whole: &culprit::History) -> Vec<[usize; 2]> {
        let is_ordered = |[first, last]: &[usize; 2]| {
            let is_another = |other: usize| {
                whole.has(other, *first)
                    && whole.has(*last, other)
                    && self.all[&other].loaded != self.all[first].loaded
            };
            // If the ends give the same kernel, nothing is searched.
            let are_ends = [*first, *last] == [0, self.bad()];
            whole.has(*last, *first) && !are_ends && !self.all.keys().copied().any(is_another)
        };
        let pair = |(place, trial): (&usize, &Trial)| {
            let same = trial.same_as?;
            Some([same.min(*place), same.max(*place)])
        };
        self.all.iter().filter_map(pair).filter(is_ordered).collect()
    }

    /// The figures of a commit's boots.
    pub fn figures(&self, place: usize) -> &[f64] {
        self.trial(place).map_or(&[], |trial| &trial.figures)
    }

    /// Why a commit has no figure.
    pub fn problem(&self, place: usize) -> Option<&str> {
        self.trial(place)?.problem.as_deref()
    }

    /// Notes that a commit has no figure.
    pub fn lacks(&mut self, place: usize, why: String) {
        let place = self.all.get(&place).and_then(|trial| trial.same_as).unwrap_or(place);
        if let Some(trial) = self.all.get_mut(&place) {
            trial.problem = Some(why);
        }
    }

    /// The two ends as one experiment.
    pub fn ends(&self) -> (Experiment, Vec<Kept>) {
        let (mut variants, mut kept) = (Vec::new(), Vec::new());
        for (end, name) in [(0, "good"), (self.bad(), "bad")] {
            let Some(trial) = self.trial(end) else { continue };
            let Some(own) = &trial.experiment else { continue };
            variants.push(Variant { name: name.into(), ..own.variants[0].clone() });
            let mut boots = trial.boots.clone();
            boots.iter_mut().for_each(|kept| kept.boot.variant = name.into());
            kept.append(&mut boots);
        }
        (Experiment { variants, ..self.search.experiment.clone() }, kept)
    }

    /// The comparison of the two ends.
    pub fn comparison(&self) -> Comparison {
        let (experiment, kept) = self.ends();
        let results = Results::of(&experiment, &self.search.reading, &kept);
        compare(&results, 0, &Judging::of(&results))
    }

    /// The row of this name.
    ///
    /// # Errors
    /// When the good end has none; the error lists those that it has.
    pub fn row(&self, name: &str) -> Result<Signal, RunError> {
        let trial = self
            .trial(0)
            .and_then(|trial| Some((trial.experiment.as_ref()?, trial.boots.first()?)));
        let Some((experiment, kept)) = trial else { return Ok(Signal::Row(name.into())) };
        let known = Signal::rows(experiment, kept);
        match known.iter().any(|row| row == name) {
            true => Ok(Signal::Row(name.into())),
            false => Err(RunError::NoRow { name: name.into(), known: known.join(", ") }),
        }
    }

    /// The cost by which the search compares kernels in exact mode.
    ///
    /// # Errors
    /// When the boots of the good end lack it; the error lists those that they have.
    pub fn cost(&self) -> Result<&str, RunError> {
        let asked = self.search.asked.cost.as_deref().unwrap_or(INSTRUCTIONS);
        let boots = self.trial(0).into_iter().flat_map(|trial| &trial.boots);
        let profiles = boots.flat_map(|kept| &kept.boot.profiles);
        check_cost(asked, profiles)?;
        Ok(asked)
    }

    /// The commit at a place.
    pub fn commit(&self, place: usize) -> culprit::Commit {
        let Commit { id, subject, .. } = self.history.commits[place].clone();
        culprit::Commit { id, subject, place }
    }

    /// The level of a commit.
    pub fn level(&self, place: usize) -> f64 {
        level(self.figures(place)).unwrap_or(f64::NAN)
    }

    /// The variance of boots of one kernel, from all of them.
    pub fn variance(&self) -> f64 {
        pooled_variance(&self.by_kernel()).map_or(0.0, |(variance, _)| variance)
    }

    /// The figures of each kernel.
    fn by_kernel(&self) -> Vec<Vec<f64>> {
        self.all.values().map(|trial| trial.figures.clone()).collect()
    }

    /// The author of a commit.
    pub fn author(&self, place: usize) -> Result<String, RunError> {
        Ok(self.history.author(&self.history.commits[place].id)?)
    }

    /// The level of another commit.
    pub fn reference(
        &mut self,
        name: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Option<f64>, RunError> {
        let built = variant(self.search, name);
        let measured = match kernel_of(self.lab, self.search, &built, watch)? {
            Err(why) => Err(why),
            Ok(kernel) => {
                let variant = Variant { name: name.into(), ..of_kernel(built.variant, &kernel) };
                let boots = self.search.experiment.boots;
                let request = self.search.request("reference", vec![variant], boots);
                match booted(self.lab, &request, watch) {
                    Err(RunError::Unsupported { why, .. }) => Err(why),
                    measured => Ok(measured?),
                }
            }
        };
        let Booted { experiment, kept, .. } = match measured {
            Ok(measured) => measured,
            Err(why) => {
                watch(Progress::Message(&format!("{name}: {why}")));
                return Ok(None);
            }
        };
        let complete = kept.iter().filter(|kept| kept.boot.outcome.counts());
        let figures: Vec<f64> =
            complete.filter_map(|kept| self.signal.of_boot(&experiment, kept)).collect();
        Ok(level(&figures))
    }

    /// All trials in their order.
    pub fn tried(&self) -> Vec<Tried> {
        let all = self.by_kernel();
        let is_exact = self.search.experiment.mode == Mode::Exact;
        let tried = |place: &usize| {
            let figures = self.figures(*place).to_vec();
            Tried {
                commit: self.commit(*place),
                reach: reach(figures.len(), &all, is_exact),
                figures,
                problem: self.problem(*place).map(String::from),
                left: self.all[place].left,
                same_as: self.all[place].same_as.map(|same| self.history.commits[same].id.clone()),
            }
        };
        self.order.iter().map(tried).collect()
    }

    /// The difference between the ends.
    pub fn change(&self) -> Option<Difference> {
        Difference::of(self.figures(0), self.figures(self.bad()))
    }

    /// The change of the kernel's instructions between the ends in the phase of a function that is the figure.
    pub fn phase(&self) -> Option<Phase> {
        let Signal::Function { cost, phase, .. } = &self.signal else { return None };
        if self.search.asked.function.is_some() {
            // Its share of the phase is not known.
            return None;
        }
        let signal = Signal::kernel(cost, phase.clone());
        let ends =
            [0, self.bad()].map(|end| self.trial(end).map(|trial| trial.figures_of(&signal)));
        let [Some(good), Some(bad)] = ends else { return None };
        let Difference { base, new, floor } = Difference::of(&good, &bad)?;
        let floor = floor.map(|floor| floor.max(signal.least(base)));
        Some(Phase {
            signal: signal.to_string(),
            change: LevelChange { levels: [base, new], floor },
        })
    }

    /// Whether the boots were emulated without exact mode, so that their times are not performance.
    pub fn is_emulated(&self) -> bool {
        let mut boots = self.all.values().flat_map(|trial| &trial.boots);
        self.search.experiment.mode == Mode::Measured
            && boots.any(|kept| kept.boot.facts.provenance.execution == Some(Execution::Tcg))
    }

    /// Number of kernels that were built or found in the cache.
    pub fn kernels(&self) -> usize {
        self.all.values().filter(|trial| trial.kernel.is_ok()).count()
    }

    /// Number of boots that count.
    pub fn boots(&self) -> usize {
        self.all.values().map(|trial| trial.boots.len()).sum()
    }

    /// How much of the search was done before it began.
    pub fn effort(&self) -> String {
        self.effort.text(self.all.values().filter_map(|trial| trial.kernel.as_ref().ok()))
    }

    /// The kernel of a commit, or why there is none.
    fn kernel(
        &self,
        place: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Result<Kernel, String>, RunError> {
        let number = self.all.len() + 1;
        let (commit, left) = (self.commit(place), self.left);
        let time = self.effort.time_left(left);
        let time =
            time.map_or(String::new(), |time| format!(", about {time} min before the proof"));
        watch(Progress::Message(&format!("kernel {number}, {left} left{time}: {commit}")));
        kernel_of(self.lab, self.search, &self.range.variant_at(self.search, place), watch)
    }

    /// A line about further boots of a commit; `None` if its kernel was not booted yet.
    pub fn again(&self, place: usize, boots: u32) -> Option<String> {
        let done = self.trial(place)?.boots.len();
        let more = count((boots as usize).saturating_sub(done), "more boot");
        Some(format!("{more} of {}, {} left", self.commit(place).short(), self.left))
    }

    /// The request to boot one kernel. Its experiment is named by the commit, so that another search finds its boots.
    fn request(&self, place: usize, kernel: &Kernel, boots: u32) -> Request {
        let commit = self.commit(place);
        let name = if commit.is_option() { &kernel.name } else { commit.short() };
        let variant = of_kernel(self.range.variant_at(self.search, place).variant, kernel);
        self.search.request(name, vec![variant], boots)
    }
}

/// The digest of the code and data that a kernel loads, or of its whole image if they cannot be read.
fn loaded(kernel: &Kernel) -> String {
    let bytes = kernel.vmlinux.as_ref().and_then(|path| fs::read(path).ok());
    bytes.and_then(|bytes| image::loaded(&bytes)).unwrap_or_else(|| kernel.digest.clone())
}
