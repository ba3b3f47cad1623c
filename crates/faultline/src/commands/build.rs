//! The kernels of `faultline run` without a file, some of them built from source.

use std::path::Path;

use kernels::Source;
use lab::file;
use model::{Build, Variant};

use super::run::variant;
use crate::args::{BuildArgs, RunArgs};
use crate::failure::Failure;

/// The message for options of sources without a source.
pub const NO_SOURCE: &str = "these options are for kernels that are built from source: name one as \
                             git:COMMIT, worktree, src:PATH or debian-source:6.12";
/// The longest part of a name for what is changed.
const LONGEST: usize = 40;

/// The variants that options describe: each kernel, and after each source the same with its patches.
pub fn variants(args: &RunArgs) -> Result<Vec<Variant>, Failure> {
    let build = &args.build;
    let mut variants = Vec::new();
    let mut sources = 0;
    for kernel in &args.kernels {
        let kernel = build.full_name(kernel);
        let plain = variant(file::default_name(&kernel), &kernel);
        if !Source::is(&kernel) {
            variants.push(plain);
            continue;
        }
        sources += 1;
        let with = |name: String, build: Build| Variant {
            name,
            build: Some(Box::new(build)),
            ..plain.clone()
        };
        if args.each {
            variants.extend(file::build::each(&with(plain.name.clone(), build.changed()))?);
            continue;
        }
        variants.push(with(plain.name.clone(), build.base()));
        if build.changes() {
            variants.push(with(format!("{}+{}", plain.name, changes(build)), build.changed()));
        }
    }
    match sources == 0 && build.is_given() {
        true => Err(Failure::Usage(NO_SOURCE.into())),
        false => Ok(variants),
    }
}

/// A short name for what is changed, such as `fix` for `--patch fix.patch`.
fn changes(build: &BuildArgs) -> String {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let patches = build.patches.iter().map(|path| stem(path));
    let reverts = build.revert.iter().map(|commit| format!("revert-{commit}"));
    let all: Vec<String> = reverts.chain(build.pick.iter().cloned()).chain(patches).collect();
    match all.join("+") {
        name if name.len() <= LONGEST => name,
        _ => format!("{} changes", all.len()),
    }
}
