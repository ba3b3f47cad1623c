//! Reads the experiment file: TOML in, [`model::Experiment`] out, and errors that point at the line.

pub mod binaries;
pub mod build;
mod disks;
pub mod lock;
mod machine;
mod mode;
mod swap;
#[cfg(test)]
mod tests;
pub mod text;
mod userspace;
mod workloads;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, NamedSource, SourceSpan};
use model::{
    Experiment, Limits, MAX_CPUS, MAX_NODES, Millis, Mode, Profiling, Sampler, Setting, Share,
    Variant, WorkloadUse,
};
use serde::Deserialize;
use toml::Spanned;

use crate::schedule::MOST_BOOTS;
use crate::sequential::{self, Unfit};
use crate::workloads::{MOST_ITERATIONS, nearest};
use build::{BuildForm, ChangeForm};
use machine::MachineForm;
use mode::BootsForm;
use workloads::{WorkloadForm, read_manifest};

pub use mode::DEFAULT_SEEDS;
pub use write::{Written, file_name, write};

/// The shortest interval between samples.
pub const SHORTEST_INTERVAL: Millis = Millis(10);
const MINUTE: Millis = Millis(60_000);
/// The longest command line in bytes. On x86 it has 2048 bytes (`COMMAND_LINE_SIZE`,
/// `arch/x86/include/asm/setup.h`); this leaves room for the words that we add.
const LONGEST_CMDLINE: usize = 1536;
/// The longest name of an experiment or a variant, in bytes.
const LONGEST_NAME: usize = 200;
/// What is wrong with a name that is none.
const NO_NAME: &str =
    "is empty, longer than 200 bytes, begins or ends with a blank, or has control characters";
/// Words such as `x=1` that the kernel does not know go to the environment of PID 1, which has room for 32
/// (`CONFIG_INIT_ENV_ARG_LIMIT`): two of the kernel's own, up to seven that a seed draws, and these.
const MOST_WORDS: usize = 20;
/// The default time limit of an iteration.
pub const DEFAULT_TIMEOUT: Millis = Millis(1_800_000);

/// An error in an experiment file: where, what, and a hint.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
pub struct FileError {
    problem: String,
    #[source_code]
    source_code: NamedSource<String>,
    #[label("here")]
    place: Option<SourceSpan>,
    #[help]
    hint: Option<String>,
}

/// An error before the file's text is attached.
struct Fault {
    problem: String,
    place: Option<Range<usize>>,
    hint: Option<String>,
}

type Checked<T> = Result<T, Fault>;

fn fault<T>(
    place: Range<usize>,
    problem: impl Into<String>,
    hint: impl Into<String>,
) -> Checked<T> {
    let hint = Some(hint.into()).filter(|hint| !hint.is_empty());
    Err(Fault { problem: problem.into(), place: Some(place), hint })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    name: Spanned<String>,
    #[serde(default)]
    mode: Mode,
    boots: Option<Spanned<BootsForm>>,
    at_most: Option<Spanned<u32>>,
    margin: Option<Spanned<Share>>,
    budget: Option<Spanned<Millis>>,
    seeds: Option<Spanned<u32>>,
    profile: Option<Spanned<Profiling>>,
    userspace: Option<Spanned<PathBuf>>,
    tree: Option<PathBuf>,
    #[serde(default)]
    build: BuildForm,
    machine: Spanned<MachineForm>,
    #[serde(default)]
    sampler: Option<Spanned<Sampler>>,
    #[serde(rename = "variant")]
    variants: Spanned<Vec<VariantForm>>,
    #[serde(rename = "workload")]
    workloads: Spanned<Vec<Spanned<WorkloadForm>>>,
}

/// The default limits. A run may take the sum of the limits of all iterations, plus a minute.
pub fn usual_limits(workloads: &[WorkloadUse]) -> Limits {
    let iterations =
        workloads.iter().map(|used| used.timeout.0.saturating_mul(used.repetitions().into()));
    let run = iterations.fold(MINUTE.0, u64::saturating_add);
    Limits { run: Millis(run), ..Limits::default() }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantForm {
    name: Option<Spanned<String>>,
    kernel: Spanned<String>,
    cmdline: Option<Spanned<String>>,
    #[serde(default)]
    sysctl: BTreeMap<Spanned<String>, Value>,
    #[serde(default)]
    sysfs: BTreeMap<Spanned<String>, Value>,
    #[serde(default)]
    modules: Vec<Spanned<String>>,
    #[serde(default)]
    patches: Vec<PathBuf>,
    #[serde(default)]
    each: bool,
    #[serde(default)]
    revert: Vec<String>,
    #[serde(default)]
    pick: Vec<String>,
    #[serde(default)]
    build: BuildForm,
}

/// The value of a setting or a parameter as a user writes it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a string, a number, true or false; write several values as one string: \"1,4\""
)]
enum Value {
    Text(String),
    Number(i64),
    Decimal(f64),
    Flag(bool),
}

impl From<Value> for String {
    fn from(value: Value) -> Self {
        match value {
            Value::Text(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Decimal(number) => number.to_string(),
            Value::Flag(flag) => u8::from(flag).to_string(),
        }
    }
}

/// The name of a measured experiment's copy in exact mode, which is a separate experiment.
pub fn exact_name(name: &str) -> String {
    format!("{name}-exact")
}

/// Checks the name of an experiment.
///
/// # Errors
/// Why the name is not allowed: it is no name at all, or is the number of an experiment or a boot.
pub fn check_name(name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!("the name of an experiment {NO_NAME}"));
    }
    if name.strip_prefix('b').unwrap_or(name).bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{name}` cannot be a name: it would mean the experiment or boot of that number"
        ));
    }
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    if is_number(name) || name.rsplit_once('~').is_some_and(|(_, place)| is_number(place)) {
        return Err(format!("`{name}` cannot be a name, because it refers to another experiment"));
    }
    Ok(())
}

/// Whether this can be the name of an experiment or a variant.
fn is_name(name: &str) -> bool {
    let is_short = (1..=LONGEST_NAME).contains(&name.len());
    is_short && name.trim() == name && !name.chars().any(char::is_control)
}

/// Reads an experiment from a file's text. Paths in it are relative to the file's directory. If `mode` is
/// exact, an experiment of measured mode is read as one of exact mode, with a name of its own
/// ([`exact_name`]) and the default number of seeds.
///
/// # Errors
/// With the line and the key at fault, and a hint.
pub fn parse(path: &Path, text: &str, mode: Option<Mode>) -> Result<Experiment, Box<FileError>> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let form: Result<FileForm, Fault> = toml::from_str(text).map_err(|error| Fault {
        problem: in_plain_words(error.message(), error.span().and_then(|at| key(text, at.start))),
        place: error.span(),
        hint: did_you_mean(error.message()),
    });
    form.and_then(|form| form.in_mode(mode).check(directory)).map_err(|fault| fault.at(path, text))
}

/// The error for an experiment file whose manifest wants `package`, which Debian does not have; `problem`
/// describes it. `None` if no manifest wants the package.
pub fn package_error(
    path: &Path,
    text: &str,
    package: &str,
    problem: &str,
) -> Option<Box<FileError>> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let form: FileForm = toml::from_str(text).ok()?;
    let mut manifests =
        form.workloads.into_inner().into_iter().filter_map(|it| it.into_inner().manifest);
    let of_it = manifests.find(|named| {
        let manifest = read_manifest(named, directory);
        manifest.is_ok_and(|manifest| manifest.packages.iter().any(|it| it == package))
    })?;
    let file = directory.join(of_it.get_ref());
    let fault = Fault {
        problem: format!("{}: {problem}", file.display()),
        place: Some(of_it.span()),
        hint: Some("https://packages.debian.org lists the names of packages".into()),
    };
    Some(fault.at(path, text))
}

impl Fault {
    /// Attaches the file's text to the error.
    fn at(self, path: &Path, text: &str) -> Box<FileError> {
        Box::new(FileError {
            problem: self.problem,
            source_code: NamedSource::new(path.display().to_string(), text.to_owned()),
            place: self.place.map(SourceSpan::from),
            hint: self.hint,
        })
    }
}

impl FileForm {
    /// The same experiment in the requested mode. Exact mode has no numbers of boots and no accelerators.
    fn in_mode(mut self, mode: Option<Mode>) -> Self {
        if mode == Some(Mode::Exact) && self.mode.is_measured() {
            self.mode = Mode::Exact;
            (self.boots, self.at_most, self.margin, self.budget) = (None, None, None, None);
            *self.name.get_mut() = exact_name(self.name.get_ref());
        }
        self
    }

    fn check(self, directory: &Path) -> Checked<Experiment> {
        let name = self.name.get_ref();
        if let Err(problem) = check_name(name) {
            return fault(self.name.span(), problem, "use a name with letters, such as \"numa\"");
        }
        let boots_span = self.boots.as_ref().map(Spanned::span);
        let (boots, sequential) = mode::check_boots(&self)?;
        let profile = mode::check_profile(&self)?;
        let sampler = check_sampler(self.sampler)?;
        let (mut machine, limits) = machine::check(self.machine, self.mode)?;
        let tree = self.tree.map(|tree| build::path(directory, &tree));
        let source = (tree.as_deref(), &self.build, directory);
        let variants = check_variants(self.variants, source)?;
        let span = self.workloads.span();
        let forms = self.workloads.into_inner();
        if forms.is_empty() {
            return fault(
                span,
                "there is no workload",
                "add a [[workload]], such as name = \"autonuma\"",
            );
        }
        let sources: Vec<String> =
            forms.iter().map(|form| form.get_ref().source(directory)).collect();
        let workloads = workloads::check_all(forms, directory, &machine)?;
        let userspace = userspace::check(self.userspace, directory, &workloads, &sources)?;
        machine.limits = limits.complete(&workloads)?;
        let experiment = Experiment {
            name: self.name.into_inner(),
            mode: self.mode,
            profile,
            userspace,
            variants,
            machine,
            workloads,
            sampler,
            boots,
            sequential,
            ..Experiment::default()
        };
        match sequential::unfit(&experiment) {
            Some(Unfit { problem, remedy }) => {
                fault(boots_span.unwrap_or_default(), problem, remedy)
            }
            None => Ok(experiment),
        }
    }
}

/// A limit, or the default. A limit cannot be zero.
fn some_time(limit: Option<Spanned<Millis>>, usual: Millis) -> Checked<Millis> {
    match limit {
        Some(limit) if limit.get_ref().0 == 0 => fault(
            limit.span(),
            "the time limit is zero",
            format!("leave it out for the default, {usual}"),
        ),
        limit => Ok(limit.map_or(usual, Spanned::into_inner)),
    }
}

fn check_sampler(sampler: Option<Spanned<Sampler>>) -> Checked<Sampler> {
    let Some(sampler) = sampler else {
        return Ok(Sampler::default());
    };
    if sampler.get_ref().interval < SHORTEST_INTERVAL {
        let problem = format!("the interval of {} is too short", sampler.get_ref().interval);
        return fault(sampler.span(), problem, "the shortest interval is 10ms");
    }
    let sources = &sampler.get_ref().sources;
    let twice = sources.iter().enumerate().find(|(place, it)| sources[..*place].contains(it));
    if let Some((_, source)) = twice {
        let problem = format!("`{}` is sampled twice", source.name());
        return fault(sampler.span(), problem, "name each source once");
    }
    Ok(sampler.into_inner())
}

/// The tree of sources, how kernels are built, and the directory of relative paths.
type SourceForm<'a> = (Option<&'a Path>, &'a BuildForm, &'a Path);

fn check_variants(
    forms: Spanned<Vec<VariantForm>>,
    source: SourceForm<'_>,
) -> Checked<Vec<Variant>> {
    let span = forms.span();
    let forms = forms.into_inner();
    if forms.is_empty() {
        return fault(span, "there is no variant", "add a [[variant]] with a kernel");
    }
    let mut variants: Vec<Variant> = Vec::new();
    for form in forms {
        let place = form.name.as_ref().map_or(form.kernel.span(), Spanned::span);
        let is_series = form.each;
        let variant = form.check(source)?;
        let all = match is_series {
            true => build::each(&variant)
                .or_else(|error| fault(place.clone(), error.to_string(), ""))?,
            false => vec![variant],
        };
        for variant in all {
            if variants.iter().any(|other| other.name == variant.name) {
                let problem = format!("two variants have the name `{}`", variant.name);
                return fault(
                    place,
                    problem,
                    "give each variant its own name; reports use it as the head of a column",
                );
            }
            variants.push(variant);
        }
    }
    Ok(variants)
}

impl VariantForm {
    fn check(self, (tree, general, directory): SourceForm<'_>) -> Checked<Variant> {
        let place = self.name.as_ref().map_or(self.kernel.span(), Spanned::span);
        let change = ChangeForm { patches: self.patches, revert: self.revert, pick: self.pick };
        let source = (&self.kernel, tree);
        let build = build::check(source, (general, self.build), change, directory)?.map(Box::new);
        let kernel = self.kernel.into_inner();
        let name = self.name.map_or_else(|| default_name(&kernel), Spanned::into_inner);
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
        let modules = self.modules.into_iter().map(Spanned::into_inner).collect();
        let kernel = build::source(directory, kernel).into();
        Ok(Variant { name, kernel, cmdline, settings, modules, build })
    }
}

/// Checks the words that a variant adds to the kernel's command line.
///
/// # Errors
/// What is wrong, and what to do.
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

/// The default name of a variant: its kernel's, without `debian:` or `git:`.
pub fn default_name(kernel: &str) -> String {
    let prefixes = ["debian:", "git:"];
    prefixes.iter().find_map(|it| kernel.strip_prefix(it)).unwrap_or(kernel).to_owned()
}

/// serde's message in our words, with the key of the wrong value and, for a number, the allowed range.
fn in_plain_words(message: &str, key: Option<&str>) -> String {
    let range = match key {
        Some("boots" | "seeds" | "at_most") => format!("from 1 to {MOST_BOOTS}"),
        Some("iterations") => format!("from 1 to {MOST_ITERATIONS}"),
        Some("warmup") => format!("from 0 to {MOST_ITERATIONS}"),
        Some("cpus") => format!("from 1 to {MAX_CPUS}"),
        Some("nodes") => format!("from 1 to {MAX_NODES}"),
        Some("disk") => "from 0".to_owned(),
        _ => format!("from {} to {}", i64::MIN, i64::MAX),
    };
    let range = format!("expected a whole number {range}");
    let message = message
        // Here "variant" means something else.
        .replace("unknown variant", "unknown value")
        .replace(" as i128, expected any value", &format!(", {range}"))
        .replace("expected u8", "expected a whole number from 0 to 255")
        .replace("expected usize", &range)
        .replace("expected u32", &range);
    match key {
        Some(key) => format!("{key}: {message}"),
        None => message,
    }
}

/// The key whose value begins at `start`; `None` if no value begins there.
fn key(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?.trim_end().strip_suffix('=')?.trim_end();
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let key = &before[before.trim_end_matches(is_bare).len()..];
    Some(key).filter(|key| !key.is_empty())
}

/// A hint for serde's "invalid type: integer `1`, expected a string", for its "unknown field `a`, expected one of
/// `b`, `c`", and for similar messages.
fn did_you_mean(message: &str) -> Option<String> {
    if message.ends_with("expected a string") {
        return Some("write it in quotation marks, with its unit if it has one: \"1G\"".into());
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wanted = quoted.next().filter(|_| message.starts_with("unknown"))?;
    nearest(wanted, quoted).map(|near| format!("did you mean `{near}`?"))
}
