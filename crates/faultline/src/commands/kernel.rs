//! `faultline kernel`: the cache of kernels.

use std::process::{ExitCode, exit};

use kernels::{Cache, Files, Prune, Request, Source};
use model::{Architecture, Build, Kernel};
use report::escape;

use super::build::NO_SOURCE;
use super::{print, say};
use crate::args::{KernelAddArgs, KernelCommand, KernelPruneArgs};
use crate::failure::{Failure, INTERRUPTED};
use crate::list;

pub fn kernel(command: KernelCommand) -> Result<ExitCode, Failure> {
    let cache = Cache::open()?;
    match command {
        KernelCommand::Add(args) => add(&cache, *args)?,
        KernelCommand::List => print(&list::kernels(&cache.known(&say)?))?,
        KernelCommand::Remove { name } => cache.remove(&name, &say)?,
        KernelCommand::Prune(KernelPruneArgs { older, builds, dry_run }) => {
            let pruned = cache.prune(&Prune { older, builds, dry_run }, &say)?;
            print(&list::pruned(&pruned, dry_run))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn add(cache: &Cache, args: KernelAddArgs) -> Result<(), Failure> {
    let end = || {
        eprintln!("\nfaultline: interrupted. Run the same command again.");
        exit(INTERRUPTED);
    };
    ctrlc::set_handler(end).map_err(|error| Failure::Host(error.to_string()))?;
    let named = args.build.full_name(&together(&args.kernel)?);
    if let Ok(source) = named.parse::<Source>() {
        if args.suite.is_some() {
            return Err(Failure::Usage("--suite works only with debian:VERSION".into()));
        }
        if args.name.is_some() {
            let message =
                "--name does not work with sources, whose kernels are named by their digest";
            return Err(Failure::Usage(message.into()));
        }
        let build = Build { arch: Request::architecture(&named), ..args.build.changed() };
        let built = cache.build(&source, &build, &say)?;
        let kernel = built.map_err(|unbuilt| {
            unbuilt.output().lines().for_each(say);
            Failure::Usage(format!("{}: {}", escape(&named), escape(unbuilt.problem())))
        })?;
        return print(&added(&kernel));
    }
    if args.build.is_given() {
        return Err(Failure::Usage(NO_SOURCE.into()));
    }
    let request = request(args)?;
    print(&added(&cache.add(&request, &say)?))
}

fn request(args: KernelAddArgs) -> Result<Request, Failure> {
    if let Some(image) = args.image {
        let KernelAddArgs { modules, headers, config, map, name, .. } = args;
        return Ok(Request::Files(Files { image, modules, headers, config, map, name }));
    }
    let request: Request = together(&args.kernel)?.parse()?;
    let request = match args.name {
        Some(name) => request.named(name).ok_or_else(|| {
            Failure::Usage(
                "--name does not work with packages, which have the name of their release".into(),
            )
        })?,
        None => request,
    };
    match (request, args.suite) {
        (Request::Debian { version, arch, .. }, Some(suite)) => {
            Ok(Request::Debian { version, arch, suite: Some(suite) })
        }
        (_, Some(_)) => Err(Failure::Usage("--suite works only with debian:VERSION".into())),
        (request, None) => Ok(request),
    }
}

/// The one kernel that these words name: a single word, or packages.
fn together(words: &[String]) -> Result<String, Failure> {
    let are_packages = || words.iter().all(|word| Request::is_packages(word));
    if words.len() > 1 && !are_packages() {
        let message =
            "only packages of one kernel are added together: add other kernels one by one";
        return Err(Failure::Usage(message.into()));
    }
    Ok(words.join("+"))
}

fn added(kernel: &Kernel) -> String {
    let boots = match (kernel.arch, &kernel.vmlinux) {
        (Architecture::Arm64, _) => "for arm64",
        (_, Some(_)) => "boots through PVH",
        (_, None) => "boots as bzImage",
    };
    format!("{}: {}, {boots}\n", escape(&kernel.name), escape(&kernel.origin))
}
