//! Builds and boots the commits of a range, and reads the figure from their boots.

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

/// The number of failed boots of a commit that are replaced by further boots. It is a third of the
/// boots if that is more.
const MOST_FAILED: u32 = 2;

/// A place of the history that was tried: a commit or a change of an option.
pub struct Trial {
    /// The commit's kernel, or why it cannot be built.
    kernel: Result<Kernel, String>,
    /// The experiment of the commit's boots, with the kernel's digest; `None` before the first
    /// boot.
    experiment: Option<Experiment>,
    /// The boots of the kernel that count.
    boots: Vec<Kept>,
    /// The figures of these boots. Boots that lack the figure are left out.
    figures: Vec<f64>,
    /// Why the commit has no figure; `None` if it has one or was not booted.
    problem: Option<String>,
    /// The number of commits that could be the culprit when this one was chosen.
    left: usize,
    /// The digest of the code and data that the kernel loads; `None` if there is no kernel.
    loaded: Option<String>,
    /// The place of an earlier trial whose kernel loads the same code and data. Its boots count for
    /// this commit too.
    same_as: Option<usize>,
}

/// All commits that were tried so far, and what is needed to try more.
pub struct Trials<'a> {
    /// Obtains and boots kernels.
    pub lab: &'a mut Lab,
    /// What the user asked of the search.
    pub search: &'a Search,
    /// The commits and options between the ends.
    pub range: &'a Range,
    /// The commits of the range, followed by its changes of options.
    pub history: &'a History,
    /// The figure that is compared.
    signal: Signal,
    all: BTreeMap<usize, Trial>,
    /// The places that were tried, in the order of their first trial.
    order: Vec<usize>,
    /// The number of commits that can still be the culprit.
    pub left: usize,
    /// The files that the builds of the kernels read; `None` if that is not known for one of them.
    pub inputs: Option<Inputs>,
    /// What was there when the search began, and what it has cost since.
    pub effort: Effort,
}

impl Trial {
    /// Reads the figures of the trial's boots.
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
    /// Starts without any trial.
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

    /// Returns the place of the bad end.
    pub fn bad(&self) -> usize {
        self.range.bad()
    }

    /// Compares kernels by another figure, and reads it from all boots.
    pub fn use_signal(&mut self, signal: Signal) {
        self.signal = signal;
        self.all.values_mut().for_each(|trial| trial.read(&self.signal));
    }

    /// Returns the figure that is compared.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Returns the number of commits that were tried.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Builds the kernel of a commit if it was not tried yet. Fails when the host fails.
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

    /// Boots a commit until it has `boots` boots that count. If its kernel cannot be built or too
    /// many boots fail, it gets a problem instead. Fails when the host fails.
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

    /// Returns the trial whose boots count for a commit; `None` if the commit was not tried.
    pub fn trial(&self, place: usize) -> Option<&Trial> {
        let trial = self.all.get(&place)?;
        trial.same_as.map_or(Some(trial), |same| self.all.get(&same))
    }

    /// Returns pairs of a commit and a descendant that give the same kernel, if no commit tried
    /// between them gives another kernel.
    pub fn same(&self, whole: &culprit::History) -> Vec<[usize; 2]> {
        let is_ordered = |[first, last]: &[usize; 2]| {
            let is_another = |other: usize| {
                whole.has(other, *first)
                    && whole.has(*last, other)
                    && self.all[&other].loaded != self.all[first].loaded
            };
            // If the two ends give the same kernel, nothing is searched.
            let are_ends = [*first, *last] == [0, self.bad()];
            whole.has(*last, *first) && !are_ends && !self.all.keys().copied().any(is_another)
        };
        let pair = |(place, trial): (&usize, &Trial)| {
            let same = trial.same_as?;
            Some([same.min(*place), same.max(*place)])
        };
        self.all.iter().filter_map(pair).filter(is_ordered).collect()
    }

    /// Returns the figures of a commit's boots; empty if there are none.
    pub fn figures(&self, place: usize) -> &[f64] {
        self.trial(place).map_or(&[], |trial| &trial.figures)
    }

    /// Returns why a commit has no figure; `None` if it has one or was not tried.
    pub fn problem(&self, place: usize) -> Option<&str> {
        self.trial(place)?.problem.as_deref()
    }

    /// Records why a commit has no figure.
    pub fn lacks(&mut self, place: usize, why: String) {
        let place = self.all.get(&place).and_then(|trial| trial.same_as).unwrap_or(place);
        if let Some(trial) = self.all.get_mut(&place) {
            trial.problem = Some(why);
        }
    }

    /// Combines the boots of the two ends into one experiment with the variants `good` and `bad`.
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

    /// Compares the two ends.
    pub fn comparison(&self) -> Comparison {
        let (experiment, kept) = self.ends();
        let results = Results::of(&experiment, &self.search.reading, &kept);
        compare(&results, 0, &Judging::of(&results))
    }

    /// Returns the figure of the row with this name.
    ///
    /// # Errors
    /// When the boots of the good end do not have this row; the error lists the rows that they
    /// have.
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

    /// Returns the cost by which the search compares kernels in exact mode: the one that was asked
    /// for, or instructions.
    ///
    /// # Errors
    /// When the boots of the good end do not have this cost; the error lists the costs that they
    /// have.
    pub fn cost(&self) -> Result<&str, RunError> {
        let asked = self.search.asked.cost.as_deref().unwrap_or(INSTRUCTIONS);
        let boots = self.trial(0).into_iter().flat_map(|trial| &trial.boots);
        let profiles = boots.flat_map(|kept| &kept.boot.profiles);
        check_cost(asked, profiles)?;
        Ok(asked)
    }

    /// Returns the commit, or the change of an option, at a place.
    pub fn commit(&self, place: usize) -> culprit::Commit {
        let Commit { id, subject, .. } = self.history.commits[place].clone();
        culprit::Commit { id, subject, place }
    }

    /// Returns the level of a commit's figures; NaN if it has none.
    pub fn level(&self, place: usize) -> f64 {
        level(self.figures(place)).unwrap_or(f64::NAN)
    }

    /// Returns the variance of the boots of one kernel, pooled over all kernels; 0 if it is not
    /// known.
    pub fn variance(&self) -> f64 {
        pooled_variance(&self.by_kernel()).map_or(0.0, |(variance, _)| variance)
    }

    /// Returns the figures of each trial.
    fn by_kernel(&self) -> Vec<Vec<f64>> {
        self.all.values().map(|trial| trial.figures.clone()).collect()
    }

    /// Returns the date and the author of a commit.
    pub fn author(&self, place: usize) -> Result<String, RunError> {
        Ok(self.history.author(&self.history.commits[place].id)?)
    }

    /// Boots another commit, which need not be in the range, and returns its level. `None` if it
    /// cannot be built or booted; a message says why.
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

    /// Returns all trials in the order in which they were first tried.
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

    /// Returns the difference between the ends; `None` if one of them has no figures.
    pub fn change(&self) -> Option<Difference> {
        Difference::of(self.figures(0), self.figures(self.bad()))
    }

    /// Returns how the cost of all kernel code changes between the ends, in the phase of the
    /// function that is the figure. `None` if the figure is not of a function, or the user named
    /// the function.
    pub fn phase(&self) -> Option<Phase> {
        let Signal::Function { cost, phase, .. } = &self.signal else { return None };
        if self.search.asked.function.is_some() {
            // The function's share of the phase's change is not known.
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

    /// Returns whether boots of measured mode were emulated, so that their times say nothing about
    /// performance.
    pub fn is_emulated(&self) -> bool {
        let mut boots = self.all.values().flat_map(|trial| &trial.boots);
        self.search.experiment.mode == Mode::Measured
            && boots.any(|kept| kept.boot.facts.provenance.execution == Some(Execution::Tcg))
    }

    /// Returns the number of kernels that were built or found in the cache.
    pub fn kernels(&self) -> usize {
        self.all.values().filter(|trial| trial.kernel.is_ok()).count()
    }

    /// Returns the number of boots that count.
    pub fn boots(&self) -> usize {
        self.all.values().map(|trial| trial.boots.len()).sum()
    }

    /// Describes how much of the search was done before it began.
    pub fn effort(&self) -> String {
        self.effort.text(self.all.values().filter_map(|trial| trial.kernel.as_ref().ok()))
    }

    /// Builds the kernel of a commit, or says why it cannot be built. Reports the kernel's number
    /// and the commits left.
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

    /// Returns a message about further boots of a commit; `None` if the commit was not tried yet.
    pub fn again(&self, place: usize, boots: u32) -> Option<String> {
        let done = self.trial(place)?.boots.len();
        let more = count((boots as usize).saturating_sub(done), "more boot");
        Some(format!("{more} of {}, {} left", self.commit(place).short(), self.left))
    }

    /// Makes the request to boot one kernel. Its experiment is named after the commit, so that
    /// another search finds the boots.
    fn request(&self, place: usize, kernel: &Kernel, boots: u32) -> Request {
        let commit = self.commit(place);
        let name = if commit.is_option() { &kernel.name } else { commit.short() };
        let variant = of_kernel(self.range.variant_at(self.search, place).variant, kernel);
        self.search.request(name, vec![variant], boots)
    }
}

/// Returns the digest of the code and data that a kernel loads, or the digest of its whole image if
/// they cannot be read.
fn loaded(kernel: &Kernel) -> String {
    let bytes = kernel.vmlinux.as_ref().and_then(|path| fs::read(path).ok());
    bytes.and_then(|bytes| image::loaded(&bytes)).unwrap_or_else(|| kernel.digest.clone())
}
