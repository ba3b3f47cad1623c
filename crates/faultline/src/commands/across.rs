//! `faultline compare ONE OTHER`: variants of several experiments side by side.

use std::process::ExitCode;

use ::compare::Results;
use lab::{Across, across};
use model::Mode;
use report::escape;
use store::{Detail, ExperimentId, ExperimentRow, Store};

use super::compare::{SAMPLED, as_counted, baseline, counted_detail, judging_of, user_notes};
use super::{chosen, write_out};
use crate::args::{CompareArgs, Format};
use crate::failure::Failure;
use crate::list::moment;

pub fn compare(store: &Store, named: &str, args: &CompareArgs) -> Result<ExitCode, Failure> {
    if !matches!(args.format, Format::Text | Format::Json) {
        let message = "several experiments can only be compared with --format text or json: mail and page tell \
                       how to reproduce one experiment";
        return Err(Failure::Usage(message.into()));
    }
    let mut ids: Vec<ExperimentId> = Vec::new();
    for named in &args.experiments {
        let id = chosen::find(store, Some(named))?;
        if ids.contains(&id) {
            return Err(Failure::Usage(format!("experiment {id} is named twice")));
        }
        ids.push(id);
    }
    let read = |detail: &dyn Fn(Mode) -> Detail<'static>| -> Result<Vec<Across>, Failure> {
        let all = ids.iter().map(|id| {
            let experiment = store.experiment(*id)?;
            let kept = store.boots(*id, detail(experiment.mode))?;
            Ok((*id, experiment, kept))
        });
        all.collect()
    };
    let all = read(&counted_detail)?;
    let rows = store.experiments()?;
    let head = head(&rows, &all);
    let (experiment, mut kept) = across(&all).map_err(|wrong| refusal(&ids, &wrong))?;
    let baseline = baseline(&experiment, args)?;
    let experiment = as_counted(&experiment, &kept, args)?;
    let compared = |kept: &[model::Kept]| {
        let results = Results::of(&experiment, kept);
        ::compare::compare(&results, baseline, &judging_of(&results, args))
    };
    let mut comparison = compared(&kept);
    if comparison.lacks_series() {
        (_, kept) =
            across(&read(&|_| Detail::Series(&SAMPLED))?).map_err(|wrong| refusal(&ids, &wrong))?;
        comparison = compared(&kept);
    }
    comparison.user_notes = user_notes(&rows, &ids);
    if let Some(at) = args.names {
        comparison.use_mmtests_names(&experiment, at);
    }
    let text = match args.format {
        Format::Json => {
            eprint!("{head}");
            report::json(&comparison).map_err(|error| Failure::Host(error.to_string()))?
        }
        _ if args.full => format!("{head}\n{}", report::text(&comparison)),
        _ => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let full = format!("faultline{named} compare {} --full", ids.join(" "));
            format!("{head}\n{}", report::brief(&comparison, &full))
        }
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Which experiments are compared, and how far such a comparison goes.
fn head(rows: &[ExperimentRow], all: &[Across]) -> String {
    let mut text = String::new();
    for (id, experiment, _) in all {
        let row = rows.iter().find(|row| row.id == *id);
        let kept =
            row.map_or(String::new(), |row| format!(", created {} UTC", moment(row.created)));
        let variants: Vec<&str> = experiment.variants.iter().map(|it| &*it.name).collect();
        let variants = variants.join(", ");
        let line = format!("Experiment {id}: {} ({variants}){kept}", experiment.name);
        text.push_str(&escape(&line));
        text.push('\n');
    }
    let is_exact = all.iter().all(|(_, experiment, _)| experiment.mode == Mode::Exact);
    text.push_str(if is_exact {
        "Counts depend only on a boot's inputs, so boots of different experiments are comparable.\n"
    } else {
        "Boots of different experiments were not interleaved, so they form no pairs. A change of the host between\n\
         the experiments looks like a difference between variants.\n"
    });
    text
}

fn refusal(ids: &[ExperimentId], wrong: &[String]) -> Failure {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let lines: String = wrong.iter().map(|line| format!("\n  {}", escape(line))).collect();
    Failure::Usage(format!("experiments {} cannot be compared:{lines}", ids.join(", ")))
}
