//! `faultline compare`: the tables of an experiment.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::{Comparison, VariantBoots};
use model::{Boot, Experiment, Manifest, Source};
use store::{Detail, Store};

use super::{existing_store, print};
use crate::args::{CompareArgs, Format};
use crate::failure::Failure;

pub fn compare(store: Option<PathBuf>, args: &CompareArgs) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let id = find(&store, args.experiment.as_deref())?;
    let experiment = store.experiment(id)?;
    let baseline = baseline(&experiment, args.baseline.as_deref())?;
    let kept = store.boots(id, Detail::Series(&[Source::Vmstat.name()]))?;
    let boots: Vec<Boot> = kept.into_iter().map(|(_, boot)| boot).collect();
    let comparison = compared(&experiment, boots, baseline);
    print(&match args.format {
        Format::Text => report::text(&comparison),
        Format::Json => {
            report::json(&comparison).map_err(|error| Failure::Host(error.to_string()))?
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The experiment that was named, or the one last used.
pub fn find(store: &Store, named: Option<&str>) -> Result<store::ExperimentId, Failure> {
    match named {
        Some(name) => Ok(store.find_experiment(name)?),
        None => match store.experiments()?.last() {
            Some(latest) => Ok(latest.id),
            None => Err(Failure::Usage("the store holds no experiment yet".into())),
        },
    }
}

fn baseline(experiment: &Experiment, named: Option<&str>) -> Result<usize, Failure> {
    let Some(named) = named else { return Ok(0) };
    let names: Vec<&str> = experiment.variants.iter().map(|variant| &*variant.name).collect();
    names.iter().position(|name| *name == named).ok_or_else(|| {
        let names = names.join(", ");
        Failure::Usage(format!("there is no variant `{named}`; there are: {names}"))
    })
}

fn compared(experiment: &Experiment, boots: Vec<Boot>, baseline: usize) -> Comparison {
    let of_variant = |name: &str| -> Vec<Boot> {
        boots.iter().filter(|boot| boot.variant == name).cloned().collect()
    };
    let names = experiment.variants.iter().map(|variant| &*variant.name);
    let groups: Vec<(&str, Vec<Boot>)> = names.map(|name| (name, of_variant(name))).collect();
    let columns: Vec<VariantBoots> =
        groups.iter().map(|(name, boots)| VariantBoots { name, boots }).collect();
    let workloads: Vec<Manifest> =
        experiment.workloads.iter().map(|used| used.manifest.clone()).collect();
    ::compare::compare(&workloads, &columns, baseline)
}
