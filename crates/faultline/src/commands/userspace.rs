//! `faultline userspace`: images of Debian packages that workloads run in.

use std::path::PathBuf;
use std::process::ExitCode;

use boot::Guest;
use kernels::Cache;
use model::{BootId, UserspaceLock};
use plan::file::lock;
use plan::workloads;

use super::run::refused;
use super::{existing_store, print, say, write_out};
use crate::args::UserspaceCommand;
use crate::failure::Failure;
use crate::list;

pub fn userspace(store: Option<PathBuf>, command: UserspaceCommand) -> Result<ExitCode, Failure> {
    let cache = Cache::open()?;
    match command {
        UserspaceCommand::Lock(args) => {
            let lock = match args.boot {
                Some(boot) => of_boot(store, boot, &cache)?,
                None => cache.userspace_lock(&packages(&args.workloads)?, &say)?,
            };
            write_out(&lock::write(&lock), args.output.as_deref())?;
        }
        UserspaceCommand::List => print(&list::userspaces(&cache.userspaces(&say)?))?,
        UserspaceCommand::Renew { workloads } => {
            let Guest { mkfs: library, .. } = Guest::find()?;
            let mkfs = boot::userspace::mkfs_with(&library);
            let renewed = cache.renew_userspaces(&packages(&workloads)?, &mkfs, &say)?;
            print(&renewed.iter().map(list::renewed).collect::<String>())?;
        }
        UserspaceCommand::Remove { image } => cache.remove_userspace(&image, &say)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The packages that all these workloads need together.
fn packages(workloads: &[String]) -> Result<Vec<String>, Failure> {
    let manifests = workloads.iter().map(|named| workloads::named(named).map_err(refused));
    let manifests = manifests.collect::<Result<Vec<_>, _>>()?;
    if let Some(manifest) = manifests.iter().find(|manifest| manifest.packages.is_empty()) {
        let message = format!("workload `{}` needs no packages", manifest.name);
        return Err(Failure::Usage(message));
    }
    Ok(manifests.into_iter().flat_map(|manifest| manifest.packages).collect())
}

/// The packages of a stored boot.
fn of_boot(store: Option<PathBuf>, id: BootId, cache: &Cache) -> Result<UserspaceLock, Failure> {
    let facts = existing_store(store)?.boot(id)?.1.boot.facts;
    if facts.userspace.is_empty() {
        return Err(Failure::Usage(format!("boot {id} ran no workload that needs packages")));
    }
    Ok(cache.userspace_lock_again(&facts.userspace_digest, &facts.userspace, &say)?)
}
