//! `faultline explain`: which functions hold the difference between two variants of exact mode, and what a
//! counter means.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::{VariantBoots, explain as explained, headlines, others, paths};
use model::{Experiment, Mode, Source, WorkloadUse};
use store::{Detail, ExperimentId, Store};

use super::{chosen, existing_store, print, write_out};
use crate::args::{ExplainArgs, ExplainFormat};
use crate::failure::Failure;
use kernels::Cache;
use lab::{code_difference, place_of};

pub fn explain(store: Option<PathBuf>, args: &ExplainArgs) -> Result<ExitCode, Failure> {
    match (&args.counter, &args.base, &args.new) {
        (Some(counter), ..) => explain_counter(counter),
        (None, Some(base), Some(new)) => explain_difference(store, args, [base, new]),
        // clap requires both.
        _ => Err(Failure::Usage("name two variants, or a counter with --counter".into())),
    }
}

fn explain_counter(name: &str) -> Result<ExitCode, Failure> {
    let Some(text) = report::counter(name) else {
        let near = kernelfiles::catalogue::near(name, &others(None));
        let meant = match near.is_empty() {
            true => String::new(),
            false => format!("; did you mean {}?", near.join(", ")),
        };
        return Err(Failure::Usage(format!("no counter or row is called `{name}`{meant}")));
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Rows of each ranking in the text.
const TOP: usize = 10;

fn explain_difference(
    store: Option<PathBuf>,
    args: &ExplainArgs,
    [base, new]: [&str; 2],
) -> Result<ExitCode, Failure> {
    if args.top.is_some() && args.format != ExplainFormat::Text {
        return Err(Failure::Usage(
            "--top needs --format text: other formats have all rows".into(),
        ));
    }
    if base == new {
        return Err(Failure::Usage(format!(
            "`{base}` is the same on both sides: name two variants"
        )));
    }
    let store = existing_store(store)?;
    let (id, experiment) = find(&store, args.experiment.as_deref(), [base, new])?;
    let places = [place_of(&experiment, base)?, place_of(&experiment, new)?];
    let used = workload(&experiment, args.workload.as_deref())?;
    let kept = store.boots(id, Detail::Profiles(&[Source::Vmstat.name()]))?;
    let [base, new] = places.map(|place| VariantBoots::of(&experiment.variants[place], &kept));
    let workload = &*used.manifest.name;
    let mut explanation = explained(&base, &new, used, experiment.boots);
    let kernels = places.map(|place| &experiment.variants[place].kernel);
    let difference = Cache::open().map_err(|error| error.to_string());
    match difference.and_then(|cache| code_difference(&cache, kernels)) {
        Ok(difference) => explanation.mark_code(&difference),
        Err(why) => explanation.unmarked = Some(why),
    }
    let of_phase = |phase: &str| paths(&base, &new, used, Some(phase));
    let headlines = || headlines(&explanation, used, of_phase);
    let phase = args.phase.as_deref();
    if explanation.all.is_none() {
        let lacking = [&explanation.base, &explanation.new].into_iter().find(|it| it.seeds == 0);
        let name = lacking.map_or(String::new(), |side| side.name.clone());
        return Err(Failure::Usage(format!(
            "`{name}` has no complete boot with a profile of {workload}: `faultline show {id}` shows \
             why, `faultline run` continues the experiment"
        )));
    }
    if explanation.section(phase).is_none() {
        let phases: Vec<String> = explanation
            .phases
            .iter()
            .flat_map(|section| &section.phase)
            .filter(|it| !it.is_empty())
            .cloned()
            .collect();
        let there = match &*phases {
            [] => ": it has no phases".to_owned(),
            phases => format!("; there are: {}", phases.join(", ")),
        };
        let phase = phase.unwrap_or_default();
        return Err(Failure::Usage(format!("{workload} has no phase `{phase}`{there}")));
    }
    let text = match args.format {
        ExplainFormat::Text => {
            report::explain(&explanation, &headlines(), phase, args.top.unwrap_or(TOP))
        }
        ExplainFormat::Json => {
            report::explain_json(&explanation).map_err(|error| Failure::Host(error.to_string()))?
        }
        ExplainFormat::Html => {
            let paths = paths(&base, &new, used, phase);
            report::explain_html(&explanation, &headlines(), &paths, phase)
        }
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The named experiment, or the latest one of exact mode with both variants and a complete boot.
fn find(
    store: &Store,
    named: Option<&str>,
    variants: [&str; 2],
) -> Result<(ExperimentId, Experiment), Failure> {
    let id = match named {
        Some(_) => chosen::find(store, named)?,
        None => latest(store, variants)?,
    };
    let experiment = store.experiment(id)?;
    if experiment.mode.is_measured() {
        let message = format!(
            "experiment {id} ran in measured mode, which does not count instructions: run it with \
             --mode exact"
        );
        return Err(Failure::Usage(message));
    }
    Ok((id, experiment))
}

fn latest(store: &Store, [base, new]: [&str; 2]) -> Result<ExperimentId, Failure> {
    let mut rows = Vec::new();
    for row in store.experiments()? {
        let has = |name: &str| row.variants.iter().any(|variant| variant == name);
        if has(base) && has(new) && store.experiment(row.id)?.mode == Mode::Exact {
            rows.push(row);
        }
    }
    chosen::with_results(&rows).ok_or_else(|| {
        Failure::Usage(format!(
            "no experiment of exact mode has both `{base}` and `{new}`: `faultline list` shows \
             experiments and their variants"
        ))
    })
}

fn workload<'a>(
    experiment: &'a Experiment,
    named: Option<&str>,
) -> Result<&'a WorkloadUse, Failure> {
    let found = match (named, experiment.workloads.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(named), all) => all.iter().find(|used| used.manifest.name == named),
    };
    found.ok_or_else(|| {
        let names = experiment.workloads.iter().map(|used| &*used.manifest.name);
        let names = names.collect::<Vec<_>>().join(", ");
        Failure::Usage(match named {
            Some(named) => format!("there is no workload `{named}`; there are: {names}"),
            None => format!("name one of the workloads with --workload: {names}"),
        })
    })
}
