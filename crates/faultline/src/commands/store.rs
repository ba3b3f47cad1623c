//! `faultline store`: checks the store.

use std::path::PathBuf;
use std::process::ExitCode;

use model::count;

use super::{existing_store, print, store_path};
use crate::args::StoreCommand;
use crate::failure::Failure;
use crate::list;

pub fn store(store: Option<PathBuf>, command: &StoreCommand) -> Result<ExitCode, Failure> {
    let StoreCommand::Check = command;
    let path = store_path(store)?;
    let checked = existing_store(Some(path.clone()))?.check()?;
    if checked.lost.is_empty() {
        let totals = [
            count(checked.experiments, "experiment"),
            count(checked.boots, "boot"),
            count(checked.samples, "sample"),
        ];
        print(&format!("{} and {} series: no damage found\n", totals.join(", "), checked.series))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&list::lost(&checked.lost))?;
    Err(Failure::Host(format!(
        "{}: {} damaged: restore the file from a backup, or measure again into a new store \
         (--store FILE)",
        path.display(),
        count(checked.lost.len(), "part"),
    )))
}
