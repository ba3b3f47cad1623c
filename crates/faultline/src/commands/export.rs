//! `faultline export`: samples and series of an experiment, or the profile of a boot, for other
//! tools.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use export::{Export, Filter, Format, Rows};
use model::{Mode, Profile};
use store::{BootId, Detail, ExperimentId, Store};

use super::compare::find;
use super::{existing_store, write_out};
use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;

pub fn export(store: Option<PathBuf>, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let what = args.what.as_deref();
    let boot = what.and_then(|what| what.strip_prefix('b')?.parse().ok().map(BootId));
    match (tidy(args.format), boot) {
        (Some(format), None) => rows(&store, find(&store, what)?, format, args)?,
        (None, Some(boot)) => profile(&store, boot, args)?,
        (Some(_), Some(boot)) => {
            let message = format!(
                "{boot} is a boot, of which the profile is written: --format collapsed or \
                 perf-script; parquet, csv and json are of an experiment"
            );
            return Err(Failure::Usage(message));
        }
        (None, None) => {
            let message = "a profile is of one boot: name it, such as b12; of an experiment there \
                           are --format parquet, csv and json";
            return Err(Failure::Usage(message.into()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The form of tidy data; none for one of profiles.
fn tidy(format: ExportFormat) -> Option<Format> {
    match format {
        ExportFormat::Parquet => Some(Format::Parquet),
        ExportFormat::Csv => Some(Format::Csv),
        ExportFormat::Json => Some(Format::Json),
        ExportFormat::Collapsed | ExportFormat::PerfScript => None,
    }
}

/// Writes the samples or the series of an experiment.
fn rows(store: &Store, id: ExperimentId, format: Format, args: &ExportArgs) -> Result<(), Failure> {
    let experiment = store.experiment(id)?;
    let (rows, detail) = match args.series {
        true => (Rows::Series, Detail::AllSeries),
        false => (Rows::Samples, Detail::Summary),
    };
    let filter = Filter { workload: args.workload.clone(), phase: args.phase.clone() };
    let out: Box<dyn Write + Send> = match &args.output {
        Some(path) => Box::new(
            File::create(path)
                .map_err(|error| Failure::Host(format!("{}: {error}", path.display())))?,
        ),
        None if format == Format::Parquet && io::stdout().is_terminal() => {
            let message = "Parquet is not for a terminal: add -o FILE";
            return Err(Failure::Usage(message.into()));
        }
        None => Box::new(io::stdout()),
    };
    let mut export = Export::new(format, rows, filter, out)?;
    store.each_boot(id, detail, |kept| {
        export.boot(&experiment, &kept.id.to_string(), &kept.boot)
    })??;
    Ok(export.finish()?)
}

/// Writes the profile of a boot.
fn profile(store: &Store, id: BootId, args: &ExportArgs) -> Result<(), Failure> {
    if args.series {
        let message = "--series is of an experiment: name it instead of a boot";
        return Err(Failure::Usage(message.into()));
    }
    let boot = store.boot(id)?.boot;
    let wanted = |profile: &&Profile| {
        args.workload.as_ref().is_none_or(|name| *name == profile.workload)
            && args.phase.as_ref().is_none_or(|name| *name == profile.phase)
    };
    let profiles: Vec<&Profile> = boot.profiles.iter().filter(wanted).collect();
    if profiles.is_empty() {
        let message = match boot.profiles.len() {
            0 if boot.facts.accel == Mode::Exact.name() => {
                format!("{id} has no profile: `faultline show {id}` tells how it ended")
            }
            0 => format!("{id} has no profile: only boots of exact mode have one"),
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
