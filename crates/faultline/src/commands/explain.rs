//! `faultline explain`: where the difference between two variants of exact mode went.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::{VariantBoots, explain as explained, paths};
use model::{Experiment, Mode, Source};
use store::{Detail, ExperimentId, Store};

use super::compare::{column, place_of};
use super::{existing_store, write_out};
use crate::args::{ExplainArgs, ExplainFormat};
use crate::failure::Failure;

pub fn explain(store: Option<PathBuf>, args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let (id, experiment) = find(&store, args)?;
    let workload = workload(&experiment, args.workload.as_deref())?;
    let kept = store.boots(id, Detail::Profiles(&[Source::Vmstat.name()]))?;
    let side = |name: &str| -> Result<VariantBoots<'_>, Failure> {
        Ok(column(&experiment.variants[place_of(&experiment, name)?], &kept))
    };
    let (base, new) = (side(&args.base)?, side(&args.new)?);
    let explanation = explained(&base, &new, workload, experiment.boots);
    let phase = args.phase.as_deref();
    if explanation.all.is_some() && explanation.section(phase).is_none() {
        let phases: Vec<String> =
            explanation.phases.iter().flat_map(|section| &section.phase).cloned().collect();
        let message = format!(
            "{workload} has no phase `{}`; there are: {}",
            phase.unwrap_or_default(),
            phases.join(", ")
        );
        return Err(Failure::Usage(message));
    }
    let text = match args.format {
        ExplainFormat::Text => report::explain(&explanation, phase),
        ExplainFormat::Json => {
            report::explain_json(&explanation).map_err(|error| Failure::Host(error.to_string()))?
        }
        ExplainFormat::Html => {
            report::explain_html(&explanation, &paths(&base, &new, workload, phase), phase)
        }
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The experiment that was named, or the last one used that is of exact mode and has both variants.
fn find(store: &Store, args: &ExplainArgs) -> Result<(ExperimentId, Experiment), Failure> {
    let id = match &args.experiment {
        Some(named) => store.find_experiment(named)?,
        None => latest(store, args)?,
    };
    let experiment = store.experiment(id)?;
    if experiment.mode.is_measured() {
        let message = format!(
            "experiment {id} is of measured mode, in which instructions are not counted: run it \
             with --mode exact"
        );
        return Err(Failure::Usage(message));
    }
    Ok((id, experiment))
}

fn latest(store: &Store, args: &ExplainArgs) -> Result<ExperimentId, Failure> {
    for row in store.experiments()?.into_iter().rev() {
        let has = |name: &String| row.variants.contains(name);
        if has(&args.base) && has(&args.new) && store.experiment(row.id)?.mode == Mode::Exact {
            return Ok(row.id);
        }
    }
    Err(Failure::Usage(format!(
        "no experiment of exact mode has both `{}` and `{}`: `faultline list` shows what there is",
        args.base, args.new
    )))
}

fn workload<'a>(experiment: &'a Experiment, named: Option<&str>) -> Result<&'a str, Failure> {
    let names: Vec<&str> = experiment.workloads.iter().map(|used| &*used.manifest.name).collect();
    let found = match (named, names.as_slice()) {
        (None, [only]) => Some(*only),
        (None, _) => None,
        (Some(named), _) => names.iter().copied().find(|name| *name == named),
    };
    found.ok_or_else(|| {
        let names = names.join(", ");
        Failure::Usage(format!("name one of the workloads with --workload: {names}"))
    })
}
