//! The kernels of `faultline run` without a file, some of them built from source.

use std::fs;
use std::path::{Path, PathBuf};

use kernels::{STANDARD_INPUT, Source};
use plan::file::{Input, VariantForm, default_names};
use report::escape;

use crate::args::BuildArgs;
use crate::failure::Failure;

/// The message if options are given that apply to sources, but no source is named.
pub const NO_SOURCE: &str = "these options are for kernels that are built from source: name one as \
                             git:COMMIT, worktree, src:PATH or debian-source:6.12";
/// The longest name of a change, in characters.
const LONGEST: usize = 40;

/// The variants that the options describe: each kernel, and after a source the same source with its patches. With
/// `each`, the patches are a series and each of its steps is a variant. `option` is the name of the option with the
/// kernels.
pub fn variants(
    input: &mut Input,
    (option, kernels): (&str, &[String]),
    build: &BuildArgs,
    each: bool,
) -> Result<Vec<VariantForm>, Failure> {
    if kernels.iter().any(|kernel| kernel.trim().is_empty()) {
        let message = "a kernel has an empty name: separate names by one comma, such as 6.1,6.12";
        return Err(Failure::Usage(message.into()));
    }
    let kernels: Vec<String> = kernels.iter().map(|kernel| build.full_name(kernel)).collect();
    if let Some(twice) = kernels.iter().enumerate().find(|(at, it)| kernels[..*at].contains(it)) {
        let kernel = escape(twice.1);
        let message = format!(
            "{kernel} is named twice: seeds of one kernel are compared by `faultline explain {kernel} {kernel} --seeds 0,1`"
        );
        return Err(Failure::Usage(message));
    }
    if build.is_given() && !kernels.iter().any(|kernel| Source::is(kernel)) {
        return Err(Failure::Usage(NO_SOURCE.into()));
    }
    for patch in build.patches.iter().filter(|it| **it != Path::new(STANDARD_INPUT)) {
        if let Err(error) = fs::metadata(patch) {
            let path = escape(&patch.display().to_string());
            return Err(Failure::Usage(format!("--patch {path} cannot be read: {error}")));
        }
    }
    let mut variants = Vec::new();
    let names = default_names(&kernels.iter().map(String::as_str).collect::<Vec<_>>());
    let is_only = kernels.len() == 1;
    for (kernel, name) in kernels.into_iter().zip(names) {
        let mut form = || VariantForm::new(input.option(option, kernel.clone()));
        let is_changed = build.changes() && Source::is(&kernel);
        if !(is_changed && each) {
            variants.push(form());
        }
        if is_changed {
            let mut changed = form();
            changed.each = each;
            changed.patches = build.patches.clone();
            changed.revert = build.revert.clone();
            changed.pick = build.pick.clone();
            if !each {
                let base = if is_only { "" } else { &*name };
                let name = format!("{base}+{}", changes(build)?);
                changed.name = Some(input.option(option, name));
            }
            variants.push(changed);
        }
    }
    Ok(variants)
}

/// A short name for what is changed, such as `fix` for `--patch fix.patch`. Patches of standard input are named by
/// their subject.
fn changes(build: &BuildArgs) -> Result<String, Failure> {
    let stem = |path: &PathBuf| match path == Path::new(STANDARD_INPUT) {
        true => kernels::name_of_patches(std::slice::from_ref(path)),
        false => Ok(path.file_stem().unwrap_or_default().to_string_lossy().into_owned()),
    };
    let patches: Vec<String> = build.patches.iter().map(stem).collect::<Result<_, _>>()?;
    let reverts = build.revert.iter().map(|commit| format!("revert-{commit}"));
    let all: Vec<String> = reverts.chain(build.pick.iter().cloned()).chain(patches).collect();
    Ok(match all.join("+") {
        name if name.len() <= LONGEST => name,
        _ => format!("{} changes", all.len()),
    })
}
