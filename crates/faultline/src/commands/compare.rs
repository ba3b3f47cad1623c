//! `faultline compare`: the tables of an experiment.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::{Comparison, KeptBoot, Results, VariantBoots};
use model::{Experiment, Source, Variant};
use store::{Detail, Kept, Store};

use super::{existing_store, print};
use crate::args::{CompareArgs, Format};
use crate::failure::Failure;

pub fn compare(store: Option<PathBuf>, args: &CompareArgs) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let id = find(&store, args.experiment.as_deref())?;
    let experiment = store.experiment(id)?;
    let baseline = baseline(&experiment, args.baseline.as_deref())?;
    let kept = store.boots(id, Detail::Series(&[Source::Vmstat.name()]))?;
    let comparison = compared(&experiment, &kept, baseline);
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

fn compared(experiment: &Experiment, kept: &[Kept], baseline: usize) -> Comparison {
    let variants = experiment.variants.iter().map(|variant| column(variant, kept)).collect();
    ::compare::compare(&Results { experiment, variants }, baseline)
}

fn column<'a>(variant: &'a Variant, kept: &'a [Kept]) -> VariantBoots<'a> {
    let own = kept.iter().filter(|kept| kept.boot.variant == variant.name);
    let boots = own.map(|Kept { id, superseded, boot }| KeptBoot {
        name: id.to_string(),
        superseded: *superseded,
        boot,
    });
    VariantBoots { variant, boots: boots.collect() }
}
