//! `faultline store`: the store as a file.

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
        print(&format!("{} and {} series: all are whole\n", totals.join(", "), checked.series))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&list::lost(&checked.lost))?;
    Err(Failure::Host(format!(
        "{}: {} damaged: take a copy of the file that is whole, or set it aside and measure anew into \
         another (--store)",
        path.display(),
        count(checked.lost.len(), "part"),
    )))
}
