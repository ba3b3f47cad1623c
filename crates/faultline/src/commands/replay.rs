//! `faultline replay`: a boot of exact mode once more.

use std::path::PathBuf;
use std::process::ExitCode;

use kernels::Cache;
use lab::{Guest, Lab, Libraries};
use store::BootId;

use super::run::scratch;
use super::{existing_store, print, store_path};
use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::progress::Display;

pub fn replay(store: Option<PathBuf>, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let path = store_path(store.clone())?;
    let store = existing_store(store)?;
    let lab = Lab {
        cache: Cache::open()?,
        guest: Guest::find()?,
        libraries: Libraries::find(),
        store,
        scratch: scratch(&path),
    };
    let id = BootId(args.boot);
    let mut display = Display::new(args.quiet);
    let replayed = lab.replay(id, args.keep.as_deref(), &mut |progress| display.show(progress));
    display.finish();
    match replayed? {
        None => {
            print(&format!("{id} replayed: the same to the bit\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(difference) => {
            Err(Failure::NotExact(format!("{id} is not what it was: {difference}")))
        }
    }
}
