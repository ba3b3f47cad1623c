//! `faultline rm`, `faultline rename` and `faultline note`: changes experiments in the store.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use plan::file::check_name;
use report::escape;
use store::ExperimentId;

use super::{chosen, existing_path, print, run};
use crate::args::RmArgs;
use crate::failure::Failure;
use crate::output;

/// The longest note, in characters.
const MAX_NOTE: usize = 1000;

pub fn rm(store: Option<PathBuf>, args: &RmArgs) -> Result<ExitCode, Failure> {
    let path = existing_path(store)?;
    let mut store = store::open(&path)?;
    let mut wanted: Vec<ExperimentId> = Vec::new();
    for named in &args.experiments {
        let id = chosen::find(&*store, Some(named))?;
        if !wanted.contains(&id) {
            wanted.push(id);
        }
    }
    let rows = wanted.iter().map(|id| store.row(*id)).collect::<Result<Vec<_>, _>>()?;
    let line = |row: &store::ExperimentRow| {
        let boots = row.outcomes.values().sum::<u32>() + row.superseded;
        let boots = model::count(boots as usize, "boot");
        format!("experiment {} ({}) with {boots}", row.id, escape(&row.name))
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    if !args.yes && !agreed(&lines)? {
        print("nothing was removed\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = lab::lock(&run::scratch(&path))?;
    for (id, line) in wanted.iter().zip(lines) {
        store.remove_experiment(*id)?;
        print(&format!("removed {line}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks for confirmation. Without a terminal, `--yes` is needed.
fn agreed(lines: &[String]) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let message = format!(
            "this would remove {}: standard input is no terminal, so confirm with --yes",
            lines.join(", ")
        );
        return Err(Failure::Usage(message));
    }
    output::ask(&format!("remove {}? [y/N] ", lines.join(", ")))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

pub fn rename(store: Option<PathBuf>, named: &str, name: &str) -> Result<ExitCode, Failure> {
    check_name(name).map_err(|problem| Failure::Usage(escape(&problem)))?;
    let path = existing_path(store)?;
    let mut store = store::open(&path)?;
    let id = chosen::find(&*store, Some(named))?;
    let _lock = lab::lock(&run::scratch(&path))?;
    let before = store.experiment(id)?.name;
    store.rename_experiment(id, name)?;
    print(&format!(
        "experiment {id} is now {} (was {}); set the new name in its file to continue it\n",
        escape(name),
        escape(&before)
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub fn note(store: Option<PathBuf>, named: &str, text: &str) -> Result<ExitCode, Failure> {
    let text = text.trim();
    if text.chars().count() > MAX_NOTE || text.chars().any(char::is_control) {
        let message = format!("a note is one line of at most {MAX_NOTE} characters");
        return Err(Failure::Usage(message));
    }
    let mut store = store::open(&existing_path(store)?)?;
    let id = chosen::find(&*store, Some(named))?;
    store.note_experiment(id, text)?;
    Ok(ExitCode::SUCCESS)
}
