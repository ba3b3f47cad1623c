//! `faultline replay`: repeats boots of exact mode.

use std::path::PathBuf;
use std::process::ExitCode;

use lab::{Progress, Replayed, RunOptions};

use super::run::with_store;
use super::{existing_store, print, store_path};
use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::progress::Display;

pub fn replay(store: Option<PathBuf>, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    if args.keep.is_some() && args.boots.len() > 1 {
        return Err(Failure::Usage("--keep works with one boot only".into()));
    }
    let path = store_path(store.clone())?;
    let lab = with_store(existing_store(store)?, &path, args.turn)?;
    let mut ids = args.boots.clone();
    ids.sort();
    ids.dedup();
    let options = RunOptions { jobs: args.jobs, ..RunOptions::default() };
    let mut display = Display::new(args.quiet);
    let mut replayed = Vec::new();
    let ended = lab.replay(&ids, args.keep.as_deref(), options, &mut |progress| {
        if let Progress::Replayed(it) = progress {
            replayed.push(it.clone());
        }
        display.show(progress);
    });
    display.finish();
    // Results from before an error are printed as well.
    replayed.sort_by_key(|it| it.boot);
    let mut differ = Vec::new();
    for Replayed { boot, difference } in replayed {
        match difference {
            None => print(&format!("{boot} replayed: bit-identical\n"))?,
            Some(difference) => {
                differ.push(format!("{boot} differs from its replay: {difference}"))
            }
        }
    }
    match (differ.is_empty(), ended) {
        (true, Ok(_)) => Ok(ExitCode::SUCCESS),
        (true, Err(error)) => Err(error.into()),
        (false, _) => Err(Failure::NotExact(differ.join("; "))),
    }
}
