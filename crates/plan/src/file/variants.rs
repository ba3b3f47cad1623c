//! Reads the variants of an experiment.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use model::{Build, PatchStep, RUNNING_KERNEL, Setting, Variant, VariantReading};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::build::{self, BuildForm, ChangeForm};
use super::{Checked, NO_NAME, Value, fault, is_name, placeless};
use crate::request::VariantRequest;

/// The longest command line in bytes. On x86 it has 2048 bytes (`COMMAND_LINE_SIZE`,
/// `arch/x86/include/asm/setup.h`); this leaves room for the words that we add.
const LONGEST_CMDLINE: usize = 1536;
/// Words such as `x=1` that the kernel does not know go to the environment of PID 1, which has room for 32
/// (`CONFIG_INIT_ENV_ARG_LIMIT`): two of the kernel's own, up to seven that a seed draws, and these.
const MOST_WORDS: usize = 20;
/// What is wrong with a series without patches, and what to do.
pub(super) const NEEDS_PATCHES: [&str; 2] = [
    "`each = true` needs patches",
    "list the patches of the series in `patches`, or leave `each` out",
];

/// One `[[variant]]`.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VariantForm {
    /// Its name; by default that of its kernel.
    pub name: Option<Spanned<String>>,
    /// The kernel: a name in the cache, a package, a path or a source. A host's own is not named.
    #[serde(default = "unnamed", skip_serializing_if = "is_running")]
    pub kernel: Spanned<String>,
    pub(super) cmdline: Option<Spanned<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sysctl: BTreeMap<Spanned<String>, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sysfs: BTreeMap<Spanned<String>, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) modules: Vec<Spanned<String>>,
    /// Patches to apply before it is built.
    #[serde(default, skip_serializing)]
    pub patches: Vec<PathBuf>,
    /// Whether each patch makes a variant, with all patches up to it.
    #[serde(default, skip_serializing)]
    pub each: bool,
    /// Of a step of a series, how many patches it has.
    #[serde(skip)]
    pub(super) first: Option<usize>,
    #[serde(skip)]
    pub(super) step: Option<PatchStep>,
    /// Commits to revert before it is built.
    #[serde(default, skip_serializing)]
    pub revert: Vec<String>,
    /// Commits to apply before it is built.
    #[serde(default, skip_serializing)]
    pub pick: Vec<String>,
    /// How it is built, where that differs from other variants.
    #[serde(default, skip_serializing)]
    pub build: BuildForm,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) axes: Vec<Spanned<String>>,
}

/// The kernel of a variant that names none.
fn unnamed() -> Spanned<String> {
    placeless(String::new())
}

fn is_running(kernel: &Spanned<String>) -> bool {
    kernel.get_ref() == RUNNING_KERNEL
}

/// Gives variants their kernel where they name none: on a host the one that it runs. Other machines need a name.
pub(super) fn name_kernels(forms: &mut [VariantForm], is_host: bool) -> Checked<()> {
    for form in forms {
        let place = form.kernel.span();
        if is_host {
            check_on_host(form)?;
            form.kernel = Spanned::new(place, RUNNING_KERNEL.to_owned());
        } else if form.kernel.get_ref().is_empty() {
            let place = form.name.as_ref().map_or(place, Spanned::span);
            let hint = "add kernel = \"debian:6.12\", or kind = \"host\" to [machine]";
            return fault(place, "the variant has no kernel", hint);
        }
    }
    Ok(())
}

/// Checks that a variant has nothing that only VMs have.
fn check_on_host(form: &VariantForm) -> Checked<()> {
    let kernel = form.kernel.get_ref();
    if !kernel.is_empty() && kernel != RUNNING_KERNEL {
        let problem = format!("`{kernel}` is a kernel to boot, and this machine is a host");
        let hint = "leave the kernel out: the host's own is used. Settings make variants: --sysctl, --sysfs";
        return fault(form.kernel.span(), problem, hint);
    }
    let cmdline = form.cmdline.as_ref().filter(|it| !it.get_ref().is_empty());
    let given = [
        ("cmdline", cmdline.map(Spanned::span)),
        ("modules", form.modules.first().map(Spanned::span)),
    ];
    match given.into_iter().find_map(|(key, place)| Some((key, place?))) {
        None => Ok(()),
        Some((key, place)) => {
            let problem = format!("{key} is for VMs, and this machine is a host");
            fault(place, problem, "leave it out, or set it up yourself before the run")
        }
    }
}

/// What all kernels of a file are built from.
#[derive(Clone, Copy)]
pub(super) struct SourceForm<'a> {
    /// The tree of sources.
    pub tree: Option<&'a Path>,
    /// How kernels are built.
    pub build: &'a BuildForm,
    /// The directory of relative paths.
    pub directory: &'a Path,
}

pub(super) fn check_all(
    forms: Vec<VariantForm>,
    source: SourceForm<'_>,
) -> Checked<Vec<VariantRequest>> {
    let mut variants: Vec<VariantRequest> = Vec::new();
    let kernels: Vec<&str> = forms.iter().map(|form| &**form.kernel.get_ref()).collect();
    let names = default_names(&kernels);
    let is_only = forms.len() == 1;
    for (mut form, name) in forms.into_iter().zip(names) {
        let place = form.name.as_ref().map_or(form.kernel.span(), Spanned::span);
        let is_series = form.each;
        if is_series && form.patches.is_empty() {
            return fault(place, NEEDS_PATCHES[0], NEEDS_PATCHES[1]);
        }
        let name = form.name.take().map_or(name, Spanned::into_inner);
        let request = form.check(source, (place.clone(), name))?;
        let all = match is_series {
            true => build::each(&request, is_only)
                .or_else(|error| fault(place.clone(), error.to_string(), ""))?,
            false => vec![request],
        };
        for request in all {
            let name = &request.variant.name;
            if variants.iter().any(|other| other.variant.name == *name) {
                let problem = format!("two variants have the name `{name}`");
                return fault(
                    place,
                    problem,
                    "give each variant its own name; reports use it as the head of a column",
                );
            }
            variants.push(request);
        }
    }
    Ok(variants)
}

impl VariantForm {
    /// A kernel without any change.
    pub fn new(kernel: Spanned<String>) -> Self {
        Self {
            name: None,
            kernel,
            cmdline: None,
            sysctl: BTreeMap::new(),
            sysfs: BTreeMap::new(),
            modules: Vec::new(),
            patches: Vec::new(),
            each: false,
            first: None,
            step: None,
            revert: Vec::new(),
            pick: Vec::new(),
            build: BuildForm::default(),
            axes: Vec::new(),
        }
    }

    /// Whether its kernel's source is changed, or built in its own way.
    pub fn is_changed(&self) -> bool {
        self.name.is_some() || self.each
    }

    /// Checks the form. `name` is the variant's, with its place.
    fn check(
        self,
        source: SourceForm<'_>,
        (place, name): (Range<usize>, String),
    ) -> Checked<VariantRequest> {
        let SourceForm { tree, build: general, directory } = source;
        let change = ChangeForm { patches: self.patches, revert: self.revert, pick: self.pick };
        let source = (&self.kernel, tree);
        let build = build::check(source, (general, self.build), change, directory)?;
        let build = build.map(|build| Build { first: self.first, ..build });
        let kernel = self.kernel.into_inner();
        if !is_name(&name) {
            return fault(
                place,
                format!("the variant's name {NO_NAME}"),
                "reports use it as the head of a column",
            );
        }
        let cmdline = match self.cmdline {
            Some(words) => {
                let span = words.span();
                check_cmdline(words.get_ref())
                    .or_else(|(problem, hint)| fault(span, problem, hint))?;
                words.into_inner()
            }
            None => String::new(),
        };
        let (mut settings, mut places) = (Vec::new(), Vec::new());
        for (name, value) in self.sysctl {
            // Separated by dots, or by slashes if a part contains dots itself (sysctl(8)).
            if name.get_ref().split(['.', '/']).any(|part| part.trim().is_empty()) {
                let problem = format!("`{}` is not a sysctl", name.get_ref());
                return fault(name.span(), problem, "write it like \"kernel.numa_balancing\"");
            }
            places.push(name.span());
            settings.push(Setting::Sysctl { name: name.into_inner(), value: value.into() });
        }
        for (path, value) in self.sysfs {
            let below = path.get_ref().strip_prefix("/sys/").unwrap_or_default();
            if below.split('/').any(|part| ["", ".", ".."].contains(&part.trim())) {
                let problem = format!("`{}` is not a file below /sys", path.get_ref());
                return fault(
                    path.span(),
                    problem,
                    "use a path such as \"/sys/kernel/mm/...\"; files below /proc/sys are sysctls",
                );
            }
            places.push(path.span());
            settings.push(Setting::Sysfs { path: path.into_inner(), value: value.into() });
        }
        let files: Vec<String> = settings.iter().map(Setting::file).collect();
        let twice = (0..files.len()).find(|place| files[..*place].contains(&files[*place]));
        if let Some(place) = twice {
            let problem = format!("`{}` is set twice", files[place]);
            return fault(places.swap_remove(place), problem, "set each file once");
        }
        if let Some(module) = self.modules.iter().find(|it| it.get_ref().trim().is_empty()) {
            let hint = "name a module, such as \"loop\", or leave it out";
            return fault(module.span(), "the name of a module is empty", hint);
        }
        let axes = self.axes.into_iter().map(|text| match text.get_ref().split_once('=') {
            Some((axis, value)) if is_name(axis) && is_name(value) => {
                Ok((axis.to_owned(), value.to_owned()))
            }
            _ => {
                let problem =
                    format!("`{}` is not a value on an axis", text.get_ref().escape_debug());
                fault(text.span(), problem, "write the axis and the value, such as \"thp=never\"")
            }
        });
        let axes = axes.collect::<Checked<_>>()?;
        let modules = self.modules.into_iter().map(Spanned::into_inner).collect();
        let kernel = build::kernel(directory, &kernel).into();
        let variant = Variant { name, kernel, cmdline, settings, modules, point: None };
        let reading = VariantReading { axes, step: self.step };
        Ok(VariantRequest { variant, reading, build })
    }
}

/// Checks the words that a variant adds to the kernel's command line. The error says what is wrong, and what
/// to do.
pub fn check_cmdline(words: &str) -> Result<(), (String, String)> {
    if words.chars().any(char::is_control) {
        let problem = "the command line has a control character";
        return Err((problem.into(), "separate words by spaces".into()));
    }
    if words.len() > LONGEST_CMDLINE {
        let problem = format!("the command line has {} bytes", words.len());
        let hint = format!(
            "use up to {LONGEST_CMDLINE}; the kernel reads 2047, including words that faultline adds"
        );
        return Err((problem, hint));
    }
    let unknown = |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.contains('.'));
    let number = words.split_whitespace().filter(unknown).count();
    if number > MOST_WORDS {
        let problem = format!("the command line has {number} words with a value");
        let hint = format!(
            "use up to {MOST_WORDS}; the kernel panics at 32 unknown ones, including those that faultline adds"
        );
        return Err((problem, hint));
    }
    Ok(())
}

/// Words of the command line that may be there several times, each with its own meaning.
const REPEATED: [&str; 5] = ["console", "earlycon", "hugepages", "hugepagesz", "memmap"];

/// The first two words of these that give one parameter different values.
pub(super) fn contradiction<'a>(one: &'a [String], other: &'a [String]) -> Option<[&'a str; 2]> {
    // The kernel takes dashes and underscores as equal.
    let name = |word: &str| word.split('=').next().unwrap_or_default().replace('-', "_");
    let contradicts =
        |a: &&String, b: &&String| a != b && name(a) == name(b) && !REPEATED.contains(&&*name(a));
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    pairs.into_iter().find(|(a, b)| contradicts(a, b)).map(|(a, b)| [&**a, &**b])
}

/// The default names of variants of these kernels: short, but those of different kernels differ.
pub fn default_names(kernels: &[&str]) -> Vec<String> {
    let long = kernels.iter().map(|kernel| {
        let kernel = kernels::without_architecture(kernel);
        kernel.strip_prefix("debian:").unwrap_or(kernel)
    });
    let both: Vec<(&str, String)> = long.map(|long| (long, short_name(long))).collect();
    let name = |(long, short): &(&str, String)| {
        let is_shared = |it: &(&str, String)| it.1 == *short && it.0 != *long;
        if both.iter().any(is_shared) { (*long).to_owned() } else { short.clone() }
    };
    both.iter().map(name).collect()
}

/// A kernel's name without what says how to get it: `6.1` for `debian-source:6.1`. A path gives its last component;
/// several packages give that of the first one.
fn short_name(kernel: &str) -> String {
    const VERSIONS: [&str; 3] = ["debian:", "git:", "debian-source:"];
    const PATHS: [&str; 2] = ["dir:", "src:"];
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    if let Ok(kernels::Request::Packages { files, .. }) = kernel.parse() {
        return last(&files[0]).unwrap_or_else(|| kernel.to_owned());
    }
    let without = |of: &[&str]| of.iter().find_map(|it| kernel.strip_prefix(it)).map(str::to_owned);
    let path = without(&PATHS).and_then(|path| last(Path::new(&path)));
    without(&VERSIONS).or(path).unwrap_or_else(|| kernel.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_unless_two_kernels_would_share_one() {
        for (kernels, names) in [
            (&["debian:6.1", "6.12"][..], &["6.1", "6.12"][..]),
            (&["debian-source:6.1", "git:v6.12"], &["6.1", "v6.12"]),
            (&["debian-source:6.1", "6.1"], &["debian-source:6.1", "6.1"]),
            (&["dir:/a/linux", "src:/b/next/"], &["linux", "next"]),
            (&["dir:/a/linux", "dir:/b/linux"], &["dir:/a/linux", "dir:/b/linux"]),
            (&["/tmp/kernel-6.1.deb", "worktree"], &["kernel-6.1.deb", "worktree"]),
            (&["debian:6.1", "6.1"], &["6.1", "6.1"]),
            (&["debian:6.1@arm64", "dir:/a/x@arm64"], &["6.1", "x@arm64"]),
        ] {
            assert_eq!(default_names(kernels), names, "{kernels:?}");
        }
    }
}
