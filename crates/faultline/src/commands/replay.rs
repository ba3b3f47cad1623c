//! `faultline replay`: a boot of exact mode once more.

use std::path::PathBuf;
use std::process::ExitCode;

use kernels::Cache;
use lab::{Guest, Lab, Libraries};
use store::{BootId, Store};

use super::run::scratch;
use super::{print, store_path};
use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::progress::Display;

pub fn replay(store: Option<PathBuf>, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let path = store_path(store)?;
    let lab = Lab {
        cache: Cache::open()?,
        guest: Guest::find()?,
        libraries: Libraries::find(),
        store: Store::open(&path)?,
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
        Some(difference) => Err(Failure::Host(format!("{id} is not what it was: {difference}"))),
    }
}
