//! The kernels of `faultline run` without a file, some of them built from source.

use std::path::Path;

use kernels::Source;
use lab::file;
use model::{Build, Variant};

use crate::args::BuildArgs;
use crate::failure::Failure;

/// The message for options of sources without a source.
pub const NO_SOURCE: &str = "these options are for kernels that are built from source: name one as \
                             git:COMMIT, worktree, src:PATH or debian-source:6.12";
/// The longest part of a name for what is changed.
const LONGEST: usize = 40;

/// The variants that options describe: each kernel, and after each source the same with its patches. With
/// `each`, the patches are a series, and each step of it is a variant.
pub fn variants(
    kernels: &[String],
    build: &BuildArgs,
    each: bool,
) -> Result<Vec<Variant>, Failure> {
    if kernels.iter().any(|kernel| kernel.trim().is_empty()) {
        let message = "a kernel has an empty name: separate names by one comma, such as 6.1,6.12";
        return Err(Failure::Usage(message.into()));
    }
    let mut variants: Vec<Variant> = Vec::new();
    let mut sources = 0;
    for kernel in kernels {
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
        if each {
            variants.extend(file::build::each(&with(plain.name.clone(), build.changed()))?);
            continue;
        }
        variants.push(with(plain.name.clone(), build.base()));
        if build.changes() {
            variants.push(with(format!("{}+{}", plain.name, changes(build)), build.changed()));
        }
    }
    if sources == 0 && build.is_given() {
        return Err(Failure::Usage(NO_SOURCE.into()));
    }
    let names: Vec<&str> = variants.iter().map(|variant| &*variant.name).collect();
    match names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
        Some((_, name)) => Err(Failure::Usage(format!("kernel `{name}` is named twice"))),
        None => Ok(variants),
    }
}

/// A kernel without settings.
pub fn variant(name: String, kernel: &str) -> Variant {
    Variant { name, kernel: kernel.into(), ..Variant::default() }
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
