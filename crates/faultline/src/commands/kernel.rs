//! `faultline kernel`: the cache of kernels.

use std::process::ExitCode;

use kernels::{Cache, Files, Request};
use model::Kernel;

use super::print;
use crate::args::{KernelAddArgs, KernelCommand};
use crate::failure::Failure;
use crate::list;

pub fn kernel(command: KernelCommand) -> Result<ExitCode, Failure> {
    let cache = Cache::open()?;
    match command {
        KernelCommand::Add(args) => add(&cache, args)?,
        KernelCommand::List => print(&list::kernels(&cache.list()?))?,
        KernelCommand::Remove { name } => cache.remove(&name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn add(cache: &Cache, args: KernelAddArgs) -> Result<(), Failure> {
    let request = request(args)?;
    let kernel = cache.add(&request, &|line| eprintln!("{line}"))?;
    print(&added(&kernel))
}

fn request(args: KernelAddArgs) -> Result<Request, Failure> {
    if let Some(image) = args.image {
        let KernelAddArgs { modules, headers, config, map, name, .. } = args;
        return Ok(Request::Files(Files { image, modules, headers, config, map, name }));
    }
    let request: Request = args.kernel.unwrap_or_default().parse()?;
    match (request, args.suite) {
        (Request::Debian { version, .. }, Some(suite)) => {
            Ok(Request::Debian { version, suite: Some(suite) })
        }
        (_, Some(_)) => Err(Failure::Usage("--suite works only with debian:VERSION".into())),
        (request, None) => Ok(request),
    }
}

fn added(kernel: &Kernel) -> String {
    let boots = match kernel.vmlinux {
        Some(_) => "boots through PVH",
        None => "boots as bzImage",
    };
    format!("{}: {}, {boots}\n", kernel.name, kernel.origin)
}
