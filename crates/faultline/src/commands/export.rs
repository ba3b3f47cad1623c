//! `faultline export`: samples and series of an experiment, or the profile of a boot, for other tools.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use compare::NoPhase;
use export::{Export, Filter, Format, Rows};
use model::{BootId, Experiment, Kept, Mode, Profile};
use results::AnalysisError;
use store::{Archive, Detail, ExperimentId};

use super::chosen::find_with_results;
use super::{WriteError, existing_store, write_file, write_out};
use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::output;

pub fn export(store: Option<PathBuf>, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let what = args.what.as_deref();
    let boot: Option<BootId> = what.and_then(|what| what.parse().ok());
    match (tidy(args.format), boot) {
        (Some(format), None) => rows(&*store, find_with_results(&*store, what)?, format, args)?,
        (None, Some(boot)) => profile(&*store, boot, args)?,
        (Some(_), Some(boot)) => {
            let message = format!(
                "{boot} is a boot: export its profile with --format collapsed or perf-script. \
                 parquet, csv and json export an experiment"
            );
            return Err(Failure::Usage(message));
        }
        (None, None) => {
            let message = "collapsed and perf-script export the profile of one boot: name it, such as \
                           b12. For an experiment use --format parquet, csv or json";
            return Err(Failure::Usage(message.into()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The format of samples or series; `None` for formats of profiles.
fn tidy(format: ExportFormat) -> Option<Format> {
    match format {
        ExportFormat::Parquet => Some(Format::Parquet),
        ExportFormat::Csv => Some(Format::Csv),
        ExportFormat::Json => Some(Format::Json),
        ExportFormat::Collapsed | ExportFormat::PerfScript => None,
    }
}

/// Writes the samples or the series of an experiment.
fn rows(
    store: &dyn Archive,
    id: ExperimentId,
    format: Format,
    args: &ExportArgs,
) -> Result<(), Failure> {
    let experiment = store.experiment(id)?;
    let (rows, detail) = match args.series {
        true => (Rows::Series, Detail::AllSeries),
        false => (Rows::Samples, Detail::Summary),
    };
    check_names(store, id, &experiment, detail, args)?;
    let filter = Filter { workload: args.workload.clone(), phase: args.phase.clone() };
    let write = |out: Box<dyn Write + Send>| -> Result<(), WriteError> {
        let mut export = Export::new(format, rows, filter, out)?;
        let mut written = Ok(());
        store.each_boot(id, detail, &mut |kept| {
            written = export.boot(&experiment, &kept);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        written?;
        Ok(export.finish()?)
    };
    match &args.output {
        Some(path) => write_file(path, |file| write(Box::new(file.try_clone()?))),
        None if format == Format::Parquet && io::stdout().is_terminal() => {
            let message = "Parquet is binary: add -o FILE";
            Err(Failure::Usage(message.into()))
        }
        None => write(Box::new(output::results()?)).map_err(|error| match error {
            WriteError::Output(error) => error.into(),
            WriteError::Other(failure) => failure,
        }),
    }
}

/// Refuses unknown workloads and phases, which would leave nothing to export.
fn check_names(
    store: &dyn Archive,
    id: ExperimentId,
    experiment: &Experiment,
    detail: Detail<'_>,
    args: &ExportArgs,
) -> Result<(), Failure> {
    let names = || experiment.workloads.iter().map(|used| &*used.manifest.name);
    let wants = |workload: &str| args.workload.as_ref().is_none_or(|it| it == workload);
    if let Some(workload) = &args.workload
        && !names().any(wants)
    {
        let names = names().collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(format!(
            "there is no workload `{workload}`; there are: {names}"
        )));
    }
    let Some(asked) = &args.phase else { return Ok(()) };
    let mut known = BTreeSet::new();
    store.each_boot(id, detail, &mut |Kept { boot, .. }| {
        let samples = boot.samples.into_iter().map(|it| (it.workload, it.phase));
        let chunks = boot.chunks.into_iter().map(|it| (it.workload, it.phase));
        let own = samples.chain(chunks).filter(|(workload, _)| wants(workload));
        known.extend(own.map(|(_, phase)| phase));
        // The search ends at the first boot that has the name: reading all series takes long.
        if known.contains(asked) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match known.contains(asked) {
        true => Ok(()),
        false => {
            let known = known.into_iter().filter(|phase| !phase.is_empty()).collect();
            Err(AnalysisError::NoPhase(NoPhase { asked: asked.clone(), known }).into())
        }
    }
}

/// Writes the profile of a boot.
fn profile(store: &dyn Archive, id: BootId, args: &ExportArgs) -> Result<(), Failure> {
    if args.series {
        let message = "--series exports an experiment: name one instead of a boot";
        return Err(Failure::Usage(message.into()));
    }
    let (experiment, kept) = store.boot(id)?;
    let (boot, experiment) = (kept.boot, store.experiment(experiment)?);
    let wanted = |profile: &&Profile| {
        args.workload.as_ref().is_none_or(|name| *name == profile.workload)
            && args.phase.as_ref().is_none_or(|name| *name == profile.phase)
    };
    let profiles: Vec<&Profile> = boot.profiles.iter().filter(wanted).collect();
    if profiles.is_empty() {
        let message = match boot.profiles.len() {
            0 if experiment.mode == Mode::Exact => {
                format!("{id} has no profile: `faultline show {id}` tells how it ended")
            }
            0 => {
                format!("{id} has no profile: boots of exact mode and those with samples have one")
            }
            _ => format!("{id} has no profile of that workload and phase"),
        };
        return Err(Failure::Usage(message));
    }
    let text = match args.format {
        ExportFormat::PerfScript => report::perf_script(profiles),
        _ => report::collapsed(profiles),
    };
    write_out(&text, args.output.as_deref())
}
