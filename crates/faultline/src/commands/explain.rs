//! `faultline explain`: which functions hold the difference between two variants of exact mode, and what a
//! counter means.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::others;
use lab::Explained;
use lab::explanation::Difference;

use super::{chosen, existing_store, print, write_out};
use crate::args::{ExplainArgs, ExplainFormat};
use crate::failure::Failure;

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
        if model::PerfEvent::parse(name).is_some() {
            let message = format!("`{name}` is an event of perf: `man perf-list` describes it");
            return Err(Failure::Usage(message));
        }
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
    let experiment = match &args.experiment {
        Some(named) => chosen::find(&store, Some(named))?,
        None => chosen::latest_exact(&store, [base, new])?,
    };
    let explained = Explained::of(
        &store,
        Difference {
            experiment,
            variants: [base, new].map(str::to_owned),
            workload: args.workload.clone(),
            phase: args.phase.clone(),
        },
    )?;
    let (explanation, phase) = (&explained.explanation, args.phase.as_deref());
    let text = match args.format {
        ExplainFormat::Text => {
            let rows = args.top.unwrap_or(TOP);
            report::explain(explanation, &explained.headlines(), phase, rows)
        }
        ExplainFormat::Json => {
            report::explain_json(explanation).map_err(|error| Failure::Host(error.to_string()))?
        }
        ExplainFormat::Html => {
            report::explain_html(explanation, &explained.headlines(), &explained.paths(), phase)
        }
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
