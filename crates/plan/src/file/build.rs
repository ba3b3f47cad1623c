//! Reads how kernels are built from source.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use kernels::{Request, Source};
use model::{Build, Compiler, PatchStep, Variant, VariantReading};
use serde::Deserialize;
use toml::Spanned;

use super::{Checked, Value, fault};
use crate::request::VariantRequest;

/// The table `[build]`, and the same keys of a variant, which replace those of the table.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildForm {
    /// The configuration: a file, or a kernel's.
    pub config: Option<Spanned<String>>,
    /// Files with options that replace those of the configuration.
    pub fragments: Option<Vec<PathBuf>>,
    set: Option<BTreeMap<String, Value>>,
    /// The compiler, such as `gcc-14`.
    pub compiler: Option<Spanned<String>>,
    /// Whether modules are built too.
    pub modules: Option<bool>,
}

/// The keys of a variant that change its source.
pub(super) struct ChangeForm {
    pub patches: Vec<PathBuf>,
    pub revert: Vec<String>,
    pub pick: Vec<String>,
}

/// Expands `~/` at the start of a path, and makes a relative one relative to `directory`.
pub(super) fn path(directory: &Path, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), env::var_os("HOME")) {
        (Ok(below), Some(home)) => Path::new(&home).join(below),
        _ => directory.join(path),
    }
}

/// The path of a patch. `-` is standard input.
pub(super) fn patch(directory: &Path, patch: &Path) -> PathBuf {
    match patch == Path::new(kernels::STANDARD_INPUT) {
        true => patch.to_owned(),
        false => path(directory, patch),
    }
}

/// A configuration: that of a package, or a file with its path made absolute.
pub(super) fn config(directory: &Path, name: &str) -> String {
    match name.starts_with("debian:") {
        true => name.to_owned(),
        false => path(directory, Path::new(name)).display().to_string(),
    }
}

/// The name of a kernel or a source with its paths made absolute.
pub(super) fn kernel(directory: &Path, kernel: &str) -> String {
    kernels::with_paths(kernel, &|place| path(directory, place))
}

/// How the kernel of a variant is built; `None` for a kernel that is not built from source.
pub(super) fn check(
    (kernel, tree): (&Spanned<String>, Option<&Path>),
    (general, own): (&BuildForm, BuildForm),
    change: ChangeForm,
    directory: &Path,
) -> Checked<Option<Build>> {
    let ChangeForm { patches, revert, pick } = change;
    let has_own = own.config.is_some()
        || own.fragments.is_some()
        || own.set.is_some()
        || own.compiler.is_some()
        || own.modules.is_some();
    let Ok(source) = kernel.get_ref().parse::<Source>() else {
        if !patches.is_empty() || !revert.is_empty() || !pick.is_empty() || has_own {
            return fault(
                kernel.span(),
                "only a kernel built from source can have patches or a configuration of its own",
                "name a source: \"git:v6.12\", \"worktree\", \"src:DIRECTORY\" or \"debian-source:6.12\"",
            );
        }
        return Ok(None);
    };
    let needs_tree = source.needs_tree() || !revert.is_empty() || !pick.is_empty();
    if tree.is_none() && needs_tree {
        return fault(
            kernel.span(),
            "a commit needs the git repository that has it",
            "name it with --tree, or at the top of the file: tree = \"~/linux\"",
        );
    }
    let compiler = own.compiler.as_ref().or(general.compiler.as_ref());
    let compiler = match compiler {
        None => Compiler::default(),
        Some(text) => {
            text.get_ref().parse().or_else(|problem: String| fault(text.span(), problem, ""))?
        }
    };
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Flag(flag) => if *flag { "y" } else { "n" }.to_owned(),
    };
    let given = own.config.as_ref().or(general.config.as_ref());
    let config = given.map(|name| self::config(directory, name.get_ref()));
    let set = own.set.as_ref().or(general.set.as_ref());
    let fragments = own.fragments.as_ref().or(general.fragments.as_ref());
    let place = |it: &PathBuf| path(directory, it);
    Ok(Some(Build {
        arch: Request::architecture(kernel.get_ref()),
        tree: tree.map(Path::to_owned),
        revert,
        pick,
        patches: patches.iter().map(|it| patch(directory, it)).collect(),
        config,
        fragments: fragments.into_iter().flatten().map(place).collect(),
        set: set.into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect(),
        compiler,
        with_modules: own.modules.or(general.modules).unwrap_or(false),
        ..Build::default()
    }))
}

/// What a step of a series, with this number of patches, adds to a variant's name.
pub(super) fn suffix(step: usize) -> String {
    match step {
        0 => String::new(),
        1 => "+1".to_owned(),
        _ => format!("+1..{step}"),
    }
}

/// The variants of a series of patches: without patches, with the first, with the first two, and so on. If the
/// series `is_only` what the experiment compares, only the first name has the kernel's. Fails when a patch cannot be
/// read.
pub(super) fn each(
    series: &VariantRequest,
    is_only: bool,
) -> Result<Vec<VariantRequest>, kernels::Error> {
    let VariantRequest { variant, reading, build: Some(build) } = series else {
        return Ok(vec![series.clone()]);
    };
    let subjects = kernels::subjects(&build.patches)?;
    let name = |step: usize| match step > 0 && is_only {
        true => suffix(step),
        false => variant.name.clone() + &suffix(step),
    };
    let step = |step: usize| VariantRequest {
        variant: Variant { name: name(step), ..variant.clone() },
        reading: VariantReading {
            step: step
                .checked_sub(1)
                .map(|last| PatchStep { after: name(last), patch: subjects[last].clone() }),
            ..reading.clone()
        },
        build: Some(Build { first: Some(step), ..build.clone() }),
    };
    Ok((0..=subjects.len()).map(step).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_step_of_a_series_names_its_patch_and_the_step_before() {
        let directory = tempfile::tempdir().unwrap();
        let patches = ["1.patch", "2.patch"].map(|name| directory.path().join(name));
        for patch in &patches {
            fs::write(patch, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n").unwrap();
        }
        let build = Some(Build { patches: patches.into(), ..Build::default() });
        let variant = Variant { name: "v6.12".into(), ..Variant::default() };
        let reading = VariantReading::default();
        let series = VariantRequest { variant, reading, build };
        let names = |steps: &[VariantRequest]| -> Vec<String> {
            steps.iter().map(|it| it.variant.name.clone()).collect()
        };
        assert_eq!(names(&each(&series, true).unwrap()), ["v6.12", "+1", "+1..2"]);
        let steps = each(&series, false).unwrap();
        assert_eq!(names(&steps), ["v6.12", "v6.12+1", "v6.12+1..2"]);
        assert_eq!(steps[0].reading.step, None);
        let last = PatchStep { after: "v6.12+1".into(), patch: "2.patch".into() };
        assert_eq!(steps[2].reading.step, Some(last));
    }

    #[test]
    fn a_variants_own_keys_replace_those_of_all() {
        let text = "name = 'x'\nboots = 1\ntree = '/linux'\nworkload = [{ name = 'mprotect' }]\n\
                    build = { modules = true, set = { CONFIG_ZRAM = 'm' } }\n\
                    machine = { cpus = 1, memory = '512M' }\n[[variant]]\nkernel = 'git:a'\n\
                    [[variant]]\nkernel = 'git:b'\nbuild = { modules = false, set = {} }\n";
        let builds = crate::file::parse(Path::new("x.toml"), text, None).unwrap().builds;
        let built: Vec<_> = builds.values().map(|it| (it.with_modules, it.set.len())).collect();
        assert_eq!(built, [(true, 1), (false, 0)]);
    }

    #[test]
    fn paths_of_kernels_are_relative_to_the_file() {
        let text = "name = 'x'\nboots = 1\nworkload = [{ name = 'mprotect' }]\n\
                    machine = { cpus = 1, memory = '512M' }\n[[variant]]\nkernel = 'dir:linux'\n\
                    [[variant]]\nkernel = '/a/b.deb+c.rpm'\n[[variant]]\nkernel = 'mine'\n";
        let read = crate::file::parse(Path::new("/e/x.toml"), text, None).unwrap();
        let variants = read.experiment.variants.iter();
        let kernels: Vec<_> = variants.map(|it| (&*it.name, &*it.kernel.name)).collect();
        let expected =
            [("linux", "dir:/e/linux"), ("b.deb", "/a/b.deb+/e/c.rpm"), ("mine", "mine")];
        assert_eq!(kernels, expected);
    }
}
