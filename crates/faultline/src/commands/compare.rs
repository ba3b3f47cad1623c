//! `faultline compare`: the tables of an experiment.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::{
    Comparison, FailedBoot, Judging, NoPhase, PLOT_SOURCES, Results, Sources, UserNote, Verdict,
    explain, headlines, paths, plots, with_phases,
};
use lab::file::{self, Written};
use model::{Experiment, Kept, Mode, Source};
use report::{Console, Explained, Page, Recipe};
use store::{Detail, ExperimentId, ExperimentRow, Store};

use super::chosen::find;
use super::{across, existing_store, store_option, write_out};
use crate::args::{CompareArgs, Format, Warmup};
use crate::failure::Failure;

/// The counters that are compared.
const COUNTED: [&str; 3] =
    [Source::Vmstat.name(), Source::NodeNumastat.name(), Source::Zoneinfo.name()];
/// The same with processor times. These change with each sample, so they show when the sampler ran.
pub const SAMPLED: [&str; 4] = [COUNTED[0], COUNTED[1], COUNTED[2], Source::Stat.name()];

pub fn compare(store: Option<PathBuf>, args: &CompareArgs) -> Result<ExitCode, Failure> {
    if args.full && args.format != Format::Text {
        return Err(Failure::Usage(
            "--full needs --format text: other formats are always complete".into(),
        ));
    }
    if args.phase.len() > 1 && args.phase.iter().any(|phase| phase == ::compare::ALL_PHASES) {
        return Err(Failure::Usage(
            "--phase all already means every phase: leave the others out".into(),
        ));
    }
    let named = store_option(store.as_ref());
    let store = existing_store(store)?;
    if args.experiments.len() > 1 {
        return across::compare(&store, &named, args);
    }
    let id = find(&store, args.experiments.first().map(String::as_str))?;
    let experiment = store.experiment(id)?;
    let baseline = baseline(&experiment, args)?;
    let kept = results(&store, id, experiment.mode)?;
    let counted = as_counted(&experiment, &kept, args)?;
    let mut own = Results::of(&counted, &kept);
    let mut judging = judging_of(&own, args);
    let mut comparison = ::compare::compare(&own, baseline, &judging);
    let series;
    if comparison.lacks_series() {
        series = store.boots(id, Detail::Series(&SAMPLED))?;
        own = Results::of(&counted, &series);
        judging = judging_of(&own, args);
        comparison = ::compare::compare(&own, baseline, &judging);
    }
    if let Some((other_id, mut other, kept)) = counterpart(&store, &experiment)? {
        as_asked(&mut other, args);
        let other = Results::of(&other, &kept);
        let [own_name, other_name] = [(id, &own), (other_id, &other)]
            .map(|(id, results)| format!("{} (number {id})", results.experiment.name));
        let (measured, exact, measured_name, exact_name) = match experiment.mode {
            Mode::Measured => (&own, &other, own_name, other_name),
            Mode::Exact => (&other, &own, other_name, own_name),
        };
        let baseline = &experiment.variants[baseline].name;
        let judging = judging_of(measured, args);
        comparison.cross_checks = ::compare::cross_check(measured, exact, baseline, &judging);
        comparison.cross_check_sources =
            Some(Sources { measured: measured_name, exact: exact_name });
    }
    comparison.user_notes = user_notes(&store.experiments()?, &[id]);
    if let Some(at) = args.names {
        comparison.use_mmtests_names(&experiment, at);
    }
    let text = match args.format {
        Format::Text if !args.full => {
            report::brief(&comparison, &format!("faultline{named} compare {id} --full"))
        }
        Format::Text => report::text(&comparison),
        Format::Json => {
            report::json(&comparison).map_err(|error| Failure::Host(error.to_string()))?
        }
        Format::Mail => report::mail(&comparison, &own, &recipe(&files(&experiment))),
        Format::Html => {
            let drawn = store.boots(id, Detail::Series(&PLOT_SOURCES))?;
            let mut plots = plots(&Results::of(&counted, &drawn), baseline, &judging);
            if let Some(at) = args.names {
                plots.iter_mut().for_each(|plots| plots.use_mmtests_names(&experiment, at));
            }
            report::page(&Page {
                comparison: &comparison,
                results: &own,
                plots: &plots,
                explained: &explained(&comparison, &counted, &kept),
                consoles: &consoles(&store, &comparison)?,
                recipe: &recipe(&files(&experiment)),
            })
        }
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Which functions hold the changes that have a verdict, in exact mode.
fn explained(comparison: &Comparison, experiment: &Experiment, kept: &[Kept]) -> Vec<Explained> {
    if comparison.mode.is_measured() {
        return Vec::new();
    }
    let mut kept = kept.to_vec();
    for used in &experiment.workloads {
        kept.iter_mut().for_each(|kept| used.keep_counted(&mut kept.boot));
    }
    let results = Results::of(experiment, &kept);
    let boots = |column: usize| {
        let name = &comparison.variants[column].name;
        results.variants.iter().find(|it| it.variant.name == *name)
    };
    let mut explained = Vec::new();
    for column in 1..comparison.variants.len() {
        let (Some(base), Some(new)) = (boots(0), boots(column)) else { continue };
        for used in &experiment.workloads {
            let workload = &*used.manifest.name;
            let is_change = |verdict| matches!(verdict, Verdict::Regression | Verdict::Improvement);
            let mut verdicts = comparison.verdicts(column);
            if !verdicts.any(|(table, _, verdict)| table.workload == workload && is_change(verdict))
            {
                continue;
            }
            let explanation = explain(base, new, workload, experiment.boots);
            let of_phase = |phase: &str| paths(base, new, workload, Some(phase));
            let mut headlines = headlines(&explanation, used, of_phase);
            headlines.retain(|it| it.kernel.beyond_luck() == Some(true));
            let (workload, variant) = (workload.to_owned(), new.variant.name.clone());
            explained.push(Explained { workload, variant, headlines });
        }
    }
    explained
}

/// The user's notes on experiments.
pub fn user_notes(rows: &[ExperimentRow], ids: &[ExperimentId]) -> Vec<UserNote> {
    let rows = ids.iter().filter_map(|id| rows.iter().find(|row| row.id == *id));
    let noted = rows.filter(|row| !row.note.is_empty());
    let number = |row: &ExperimentRow| (ids.len() > 1).then_some(row.id.0);
    noted.map(|row| UserNote { experiment: number(row), text: row.note.clone() }).collect()
}

/// With `--warmup include`, counts iterations of warm-up.
fn as_asked(experiment: &mut Experiment, args: &CompareArgs) {
    if args.warmup == Some(Warmup::Include) {
        experiment.workloads.iter_mut().for_each(|used| used.warmup = 0);
    }
}

/// How differences in `results` are judged, with the options in `args`.
pub fn judging_of(results: &Results<'_>, args: &CompareArgs) -> Judging {
    let judging = Judging::of(results);
    let asked = args.warmup.map(|warmup| warmup == Warmup::Include);
    Judging {
        margin: args.margin.map_or(judging.margin, |margin| margin.0),
        warm_up_counts: asked.unwrap_or(judging.warm_up_counts),
        ..judging
    }
}

/// The index of the baseline: the first variant, unless `--baseline` names another.
pub fn baseline(experiment: &Experiment, args: &CompareArgs) -> Result<usize, Failure> {
    args.baseline.as_ref().map_or(Ok(0), |name| place_of(experiment, name))
}

/// The experiment, counting the phases and iterations that the options choose.
pub fn as_counted(
    experiment: &Experiment,
    kept: &[Kept],
    args: &CompareArgs,
) -> Result<Experiment, Failure> {
    let mut counted = match args.phase.as_slice() {
        [] => experiment.clone(),
        phases => with_phases(experiment, kept.iter().map(|kept| &kept.boot), phases)
            .map_err(|no| no_phase(&no))?,
    };
    as_asked(&mut counted, args);
    Ok(counted)
}

/// The error for an unknown phase.
pub fn no_phase(no: &NoPhase) -> Failure {
    let known = no.known.join(", ");
    Failure::Usage(format!("no workload has a phase `{}`; there are: {known}", no.asked))
}

/// The files that reproduce an experiment, the experiment file first.
fn files(experiment: &Experiment) -> Vec<(String, String)> {
    let Written { text, others } = file::write(experiment);
    let own = (file::file_name(&experiment.name), text);
    [own].into_iter().chain(others).collect()
}

fn recipe(files: &[(String, String)]) -> Recipe<'_> {
    Recipe { version: env!("CARGO_PKG_VERSION"), files }
}

/// The index of the variant of this name.
pub fn place_of(experiment: &Experiment, named: &str) -> Result<usize, Failure> {
    let names: Vec<&str> = experiment.variants.iter().map(|variant| &*variant.name).collect();
    names.iter().position(|name| *name == named).ok_or_else(|| {
        let names = names.join(", ");
        Failure::Usage(format!("there is no variant `{named}`; there are: {names}"))
    })
}

/// An experiment's boots with what `compare` needs; in exact mode profiles too.
fn results(store: &Store, id: ExperimentId, mode: Mode) -> Result<Vec<Kept>, store::Error> {
    store.boots(id, counted_detail(mode))
}

/// Which parts of boots the tables need.
pub fn counted_detail(mode: Mode) -> Detail<'static> {
    match mode {
        Mode::Measured => Detail::Ends(&COUNTED),
        Mode::Exact => Detail::Profiles(&COUNTED),
    }
}

/// The consoles of failed boots, as many as are shown.
fn consoles(store: &Store, comparison: &Comparison) -> Result<Vec<Console>, store::Error> {
    let failed = comparison.variants.iter().flat_map(|variant| &variant.failed);
    let console = |failed: &FailedBoot| {
        let Kept { id, boot, .. } = store.boot(failed.boot)?;
        Ok(Console { boot: id, text: boot.console })
    };
    failed.take(report::MAX_CONSOLES).map(console).collect()
}

/// The latest experiment of the other mode with the same variants and complete boots of two of them.
fn counterpart(
    store: &Store,
    experiment: &Experiment,
) -> Result<Option<(ExperimentId, Experiment, Vec<Kept>)>, store::Error> {
    for row in store.experiments()?.into_iter().rev() {
        let other = store.experiment(row.id)?;
        if other.mode == experiment.mode || !::compare::comparable(&other, experiment) {
            continue;
        }
        let kept = results(store, row.id, Mode::Measured)?;
        if Results::of(&other, &kept).has_two_sides() {
            return Ok(Some((row.id, other, kept)));
        }
    }
    Ok(None)
}
