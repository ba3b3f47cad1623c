//! Compares stored variants. Text, mail, page and JSON are made from the result ([`Analysis`]).

use std::collections::HashMap;

use benchmarks::names::Month;
use boot::code_difference;
use code::CodeDifference;
use compare::{
    Comparison, Explained, FailedBoot, Judging, Results, Sources, UserNote, add_paths, add_reasons,
    add_transfers, comparable, compare, cross_check, explained, with_phases,
};
use kernels::Cache;
use kernels::types::SLOTS;
use model::{BootId, Experiment, Kept, Mode, Reading, Source};
use plots::{PLOT_SOURCES, Plots, plots};
use store::{Archive, Detail, ExperimentId, ExperimentRow};

use crate::across::{Of, Stored, across};
use crate::error::AnalysisError;
use crate::layouts::layouts;
use crate::names::{rename_samples, use_mmtests_names};

/// The sources whose counters tables compare.
const COUNTED: [&str; 3] =
    [Source::Vmstat.name(), Source::NodeNumastat.name(), Source::Zoneinfo.name()];
/// These sources, and the distances of objects in slab caches.
const EXACT: [&str; 4] = [COUNTED[0], COUNTED[1], COUNTED[2], SLOTS];
/// The same, CPU times and events.
const EXACT_SAMPLED: [&str; 6] =
    [COUNTED[0], COUNTED[1], COUNTED[2], SLOTS, Source::Stat.name(), Source::Events.name()];
/// The sources of counters, CPU times and events. CPU times and events change with each sample, so they show when the
/// sampler ran.
const SAMPLED: [&str; 5] =
    [COUNTED[0], COUNTED[1], COUNTED[2], Source::Stat.name(), Source::Events.name()];

/// What the user asks of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The name of the variant in the first column; `None` for the experiment's first variant.
    pub baseline: Option<String>,
    /// The point of a sweep that is compared alone, by its name or value; `None` for all points.
    pub point: Option<String>,
    /// The phases that tables of counters cover; if empty, the measured phases.
    pub phases: Vec<String>,
    /// The margin; `None` for the experiment's margin.
    pub margin: Option<f64>,
    /// Whether warm-up counts; `None` for the experiment's setting.
    pub warm_up_counts: Option<bool>,
    /// The rows get the names that mmtests used in this month; `None` for our own names.
    pub names: Option<Month>,
}

/// The result of comparing experiments.
pub struct Analysis {
    /// The experiment that was compared; several experiments are combined into one.
    pub experiment: Experiment,
    /// How the figures of the experiment are read, with the requested phases.
    pub reading: Reading,
    /// The compared boots: tables, verdicts and notes.
    pub comparison: Comparison,
    /// The store's rows of the experiments, in the order in which they were named.
    pub rows: Vec<ExperimentRow>,
    /// The point of a sweep, if only one was compared.
    point: Option<String>,
    baseline: usize,
    /// The experiment, without warm-up iterations if the question makes them count.
    counted: Experiment,
    kept: Vec<Kept>,
}

impl Analysis {
    /// Compares the variants of one experiment, or of several that ran the same workloads on the
    /// same machine. Fails when they cannot be compared, when a name in the question does not
    /// exist, or when the store cannot be read.
    pub fn of(
        store: &dyn Archive,
        ids: &[ExperimentId],
        question: &Question,
    ) -> Result<Self, AnalysisError> {
        let Stored { experiment: whole, mut reading, mut kept } = read(store, ids, detail)?;
        let points = whole.points();
        let point = question.point.as_ref().map(|asked| point_of(&points, asked)).transpose()?;
        let experiment = at_point(whole.clone(), &mut kept, point);
        let baseline = match (&question.baseline, points.first()) {
            (None, _) => 0,
            (Some(asked), Some(first)) if point.is_none() => {
                place_of(&at_point(whole.clone(), &mut Vec::new(), Some(first)), asked)?
            }
            (Some(asked), _) => place_of(&experiment, asked)?,
        };
        let mut counted = experiment.clone();
        count_warm_up(&mut counted, question);
        if !question.phases.is_empty() {
            let boots = kept.iter().map(|kept| &kept.boot);
            reading = with_phases(&reading, &counted.workloads, boots, &question.phases)
                .map_err(AnalysisError::NoPhase)?;
        }
        let compared = |kept: &[Kept]| {
            let results = Results::of(&counted, &reading, kept);
            let shared = if point.is_some() { points.len() } else { 1 };
            compare(&results, baseline, &judging(&results, question).shared_by(shared))
        };
        let mut comparison = compared(&kept);
        // Only the boots show whether warm-up ends within a phase.
        if comparison.lacks_series() {
            kept = read(store, ids, |_| Detail::Series(&SAMPLED))?.kept;
            at_point(whole, &mut kept, point);
            comparison = compared(&kept);
        }
        let rows = ids.iter().map(|id| store.row(*id)).collect::<Result<Vec<_>, _>>()?;
        comparison.user_notes = user_notes(&rows);
        if let [id] = ids {
            let name = &experiment.variants[baseline].name;
            let own = (*id, &Results::of(&counted, &reading, &kept));
            cross_checked(store, own, name, question, &mut comparison)?;
        }
        if let Some(at) = question.names {
            use_mmtests_names(&mut comparison, &experiment, at);
        }
        let point = point.cloned();
        Ok(Self { experiment, reading, comparison, rows, point, baseline, counted, kept })
    }

    /// Returns the boots that were compared, as the crate `compare` reads them.
    pub fn results(&self) -> Results<'_> {
        Results::of(&self.counted, &self.reading, &self.kept)
    }

    /// Finds the functions that cause the changes, with the difference of the functions' code if the cache has both
    /// kernels. Empty in measured mode.
    pub fn explained(&self) -> Vec<Explained> {
        self.with_code(explained(&self.comparison, &self.results(), false))
    }

    /// Finds the functions that cause the changes, with the call paths that graphs draw.
    pub fn explained_with_paths(&self) -> Vec<Explained> {
        let mut explained = self.explained();
        add_paths(&mut explained, &self.comparison, &self.results());
        explained
    }

    /// Finds the same, with the change by system call, and with transfers of lines if they were counted, also where nothing
    /// changed.
    pub fn explained_with_reasons(&self) -> Vec<Explained> {
        let mut explained = explained(&self.comparison, &self.results(), true);
        add_reasons(&mut explained, &self.comparison, &self.results());
        add_transfers(&mut explained, &self.comparison, &self.results(), layouts);
        self.with_code(explained)
    }

    /// Adds the difference of the functions' code.
    fn with_code(&self, mut explained: Vec<Explained>) -> Vec<Explained> {
        let mut known = HashMap::<String, Result<CodeDifference, String>>::new();
        for it in &mut explained {
            let code = known.entry(it.variant.clone()).or_insert_with(|| self.code(&it.variant));
            it.add_code(code.clone());
        }
        explained
    }

    /// Finds the functions whose code differs between the baseline and a variant. The error says why that is not known.
    fn code(&self, variant: &str) -> Result<CodeDifference, String> {
        let base = self.comparison.variants.first().map_or("", |it| &it.name);
        let place = |name| place_of(&self.experiment, name).map_err(|error| error.to_string());
        code_of(&self.experiment, [place(base)?, place(variant)?])
    }

    /// Makes the data for the plots of each workload. Empty if all points of a sweep were compared.
    /// Fails when the store cannot be read, or an experiment has been removed.
    pub fn plots(&self, store: &dyn Archive) -> Result<Vec<Plots>, AnalysisError> {
        let ids: Vec<ExperimentId> = self.rows.iter().map(|row| row.id).collect();
        if !self.comparison.points.is_empty() {
            return Ok(Vec::new());
        }
        let Stored { experiment: whole, mut kept, .. } =
            read(store, &ids, |_| Detail::Series(&PLOT_SOURCES))?;
        at_point(whole, &mut kept, self.point.as_ref());
        let results = Results::of(&self.counted, &self.reading, &kept);
        let mut plots = plots(&results, self.baseline, &self.comparison.judging);
        if let Some(at) = self.comparison.names {
            plots.iter_mut().for_each(|it| rename_samples(it, &self.experiment, at));
        }
        Ok(plots)
    }

    /// Reads the consoles of the first `most` failed boots, each with the number of its boot. Fails
    /// when the store cannot be read.
    pub fn consoles(
        &self,
        store: &dyn Archive,
        most: usize,
    ) -> Result<Vec<(BootId, String)>, store::Error> {
        let failed = self.comparison.variants.iter().flat_map(|variant| &variant.failed);
        let console = |failed: &FailedBoot| {
            let (_, kept) = store.boot(failed.boot)?;
            Ok((kept.id, kept.boot.console))
        };
        failed.take(most).map(console).collect()
    }
}

/// Reads experiments from the store and combines several into one. `detail` says which parts of
/// their boots are read. Fails when they cannot be combined, or the store cannot be read.
pub(super) fn read(
    store: &dyn Archive,
    ids: &[ExperimentId],
    detail: impl Fn(&Experiment) -> Detail<'static>,
) -> Result<Stored, AnalysisError> {
    let of = |id: &ExperimentId| -> Result<Of, AnalysisError> {
        let experiment = store.experiment(*id)?;
        let reading = store.reading(*id)?;
        let kept = store.boots(*id, detail(&experiment))?;
        Ok((*id, Stored { experiment, reading, kept }))
    };
    let mut all = ids.iter().map(of).collect::<Result<Vec<Of>, _>>()?;
    match all.len() {
        1 => Ok(all.remove(0).1),
        _ => across(&all)
            .map_err(|differences| AnalysisError::Different { ids: ids.to_vec(), differences }),
    }
}

/// Finds the point with this name, such as `memory=1G`, or value, such as `1G`. Fails when there is
/// none.
fn point_of<'a>(points: &'a [String], asked: &str) -> Result<&'a String, AnalysisError> {
    let is_it = |point: &&String| {
        *point == asked || point.split_once('=').is_some_and(|(_, value)| value == asked)
    };
    points
        .iter()
        .find(is_it)
        .ok_or_else(|| AnalysisError::NoPoint { asked: asked.to_owned(), known: points.to_vec() })
}

/// Returns the experiment at one point of its sweep, with the variants' names without the point,
/// and keeps only the boots of the point. Without a point nothing changes.
fn at_point(whole: Experiment, kept: &mut Vec<Kept>, point: Option<&String>) -> Experiment {
    let Some(part) = point.and_then(|point| whole.at_point(point)) else { return whole };
    kept.retain_mut(|kept| {
        let own = whole.variants.iter().find(|variant| variant.name == kept.boot.variant);
        match own.and_then(|variant| variant.point.as_ref()) {
            Some(own) if Some(&own.name()) == point => {
                kept.boot.variant.clone_from(&own.variant);
                true
            }
            _ => false,
        }
    });
    part
}

/// Returns which parts of boots the tables need.
fn detail(experiment: &Experiment) -> Detail<'static> {
    match (experiment.mode, &*experiment.sampler.events) {
        (Mode::Measured, []) => Detail::Ends(&COUNTED),
        (Mode::Measured, _) => Detail::Series(&SAMPLED),
        (Mode::Exact, []) => Detail::Profiles(&EXACT),
        (Mode::Exact, _) => Detail::Profiles(&EXACT_SAMPLED),
    }
}

/// Finds the functions whose code differs between the kernels of two variants, by their indexes. Nothing is fetched. The
/// error says why that is not known.
pub(super) fn code_of(
    experiment: &Experiment,
    places: [usize; 2],
) -> Result<CodeDifference, String> {
    let cache = Cache::open().map_err(|error| error.to_string())?;
    code_difference(&cache, places.map(|place| &experiment.variants[place].kernel))
}

/// Returns the index of the variant with this name. Fails when there is none.
pub fn place_of(experiment: &Experiment, asked: &str) -> Result<usize, AnalysisError> {
    let mut names = experiment.variants.iter().map(|variant| &variant.name);
    names.position(|name| name == asked).ok_or_else(|| AnalysisError::NoVariant {
        asked: asked.to_owned(),
        known: experiment.variants.iter().map(|variant| variant.name.clone()).collect(),
    })
}

fn count_warm_up(experiment: &mut Experiment, question: &Question) {
    if question.warm_up_counts == Some(true) {
        experiment.workloads.iter_mut().for_each(|used| used.warmup = 0);
    }
}

fn judging(results: &Results<'_>, question: &Question) -> Judging {
    let usual = Judging::of(results);
    Judging {
        margin: question.margin.unwrap_or(usual.margin),
        warm_up_counts: question.warm_up_counts.unwrap_or(usual.warm_up_counts),
        ..usual
    }
}

/// Returns the user's notes on the experiments. A note has the number of its experiment if there
/// are several.
fn user_notes(rows: &[ExperimentRow]) -> Vec<UserNote> {
    let noted = rows.iter().filter(|row| !row.note.is_empty());
    let number = |row: &ExperimentRow| (rows.len() > 1).then_some(row.id.0);
    noted.map(|row| UserNote { experiment: number(row), text: row.note.clone() }).collect()
}

/// Adds cross-checks with the other mode, if the same variants ran in it.
fn cross_checked(
    store: &dyn Archive,
    (id, own): (ExperimentId, &Results<'_>),
    baseline: &str,
    question: &Question,
    comparison: &mut Comparison,
) -> Result<(), AnalysisError> {
    let Some(Counterpart { id: other_id, experiment: mut other, kept }) =
        counterpart(store, own.experiment)?
    else {
        return Ok(());
    };
    count_warm_up(&mut other, question);
    // All rows are cross-checked, so the usual reading is used.
    let other = Results::of(&other, Reading::USUAL, &kept);
    let [own_name, other_name] = [(id, own), (other_id, &other)]
        .map(|(id, results)| format!("{} (number {id})", results.experiment.name));
    let (measured, exact, sources) = match own.experiment.mode {
        Mode::Measured => (own, &other, Sources { measured: own_name, exact: other_name }),
        Mode::Exact => (&other, own, Sources { measured: other_name, exact: own_name }),
    };
    let judging = judging(measured, question);
    comparison.cross_checks = cross_check(measured, exact, baseline, &judging);
    comparison.cross_check_sources = Some(sources);
    Ok(())
}

/// An experiment of the other mode, with its boots.
struct Counterpart {
    id: ExperimentId,
    experiment: Experiment,
    kept: Vec<Kept>,
}

/// Finds the latest experiment of the other mode that has the same variants, at least two of them
/// with complete boots; `None` if there is none.
fn counterpart(
    store: &dyn Archive,
    experiment: &Experiment,
) -> Result<Option<Counterpart>, store::Error> {
    let mode = match experiment.mode {
        Mode::Measured => Mode::Exact,
        Mode::Exact => Mode::Measured,
    };
    for id in store.kin(mode, experiment)? {
        let other = store.experiment(id)?;
        if !comparable(&other, experiment) {
            continue;
        }
        let kept = store.boots(id, Detail::Ends(&COUNTED))?;
        if Results::of(&other, Reading::USUAL, &kept).has_two_sides() {
            return Ok(Some(Counterpart { id, experiment: other, kept }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{Boot, Outcome};

    use super::*;
    use plan::file;

    const SWEEP: &str = "name = \"x\"\nboots = 1\nmachine = { cpus = 1 }\n\
                         variant = [{ kernel = \"6.1\" }, { kernel = \"6.12\" }]\n\
                         workload = [{ name = \"mprotect\" }]\nsweep = { memory = [\"1G\", \"2G\"] }\n";

    /// Returns a store with the sweep, in which each variant was booted once at each point.
    fn swept(directory: &Path) -> (Box<dyn Archive>, ExperimentId) {
        let mut store = store::open(&directory.join("store.db")).unwrap();
        let experiment = file::parse(Path::new("x.toml"), SWEEP, None).unwrap().experiment;
        let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
        for variant in &experiment.variants {
            let boot = Boot {
                variant: variant.name.clone(),
                outcome: Outcome::Complete,
                ..Boot::default()
            };
            store.keep_boot(id, &boot).unwrap();
        }
        (store, id)
    }

    #[test]
    fn a_point_is_compared_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (store, id) = swept(directory.path());
        let ask = |point: Option<&str>, baseline: Option<&str>| {
            let [point, baseline] = [point, baseline].map(|it| it.map(str::to_owned));
            Analysis::of(&*store, &[id], &Question { point, baseline, ..Question::default() })
        };
        let whole = ask(None, Some("6.12")).unwrap();
        assert_eq!(whole.comparison.points.len(), 2);
        for spot in &whole.comparison.points {
            assert_eq!(spot.comparison.variants[0].name, "6.12");
            assert!(spot.comparison.variants.iter().all(|variant| variant.complete == 1));
        }
        for asked in ["memory=2G", "2G"] {
            let point = ask(Some(asked), None).unwrap();
            assert!(point.comparison.points.is_empty());
            assert_eq!(point.experiment.machine.topology.memory().to_string(), "2G");
            let boots: Vec<_> = point.kept.iter().map(|kept| &*kept.boot.variant).collect();
            assert_eq!(boots, ["6.1", "6.12"]);
            // The error level is the same as in a comparison of all points.
            let judging = whole.comparison.points[1].comparison.judging;
            assert_eq!(point.comparison.judging, judging);
        }
        let error = ask(Some("3G"), None).err().unwrap().to_string();
        assert_eq!(error, "there is no point `3G`; there are: memory=1G, memory=2G");
        let error = ask(None, Some("6.1 memory=1G")).err().unwrap().to_string();
        assert_eq!(error, "there is no variant `6.1 memory=1G`; there are: 6.1, 6.12");
    }
}
