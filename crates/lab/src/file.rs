//! The experiment file: TOML in, [`model::Experiment`] out, and errors that point at the line.

mod disks;
mod machine;
mod mode;
mod swap;
#[cfg(test)]
mod tests;
mod userspace;
mod workloads;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, NamedSource, SourceSpan};
use model::{
    Experiment, Limits, Millis, Mode, Profiling, Sampler, Setting, Share, Variant, WorkloadUse,
};
use serde::Deserialize;
use toml::Spanned;

use crate::sequential::{self, Unfit};
use crate::workloads::nearest;
use machine::MachineForm;
use mode::BootsForm;
use workloads::{WorkloadForm, read_manifest};

pub use mode::DEFAULT_SEEDS;
pub use write::{Written, file_name, write};

/// The shortest interval between samples.
pub const SHORTEST_INTERVAL: Millis = Millis(10);
const MINUTE: Millis = Millis(60_000);
/// The longest command line: of x86 it has 2048 bytes (`COMMAND_LINE_SIZE`,
/// `arch/x86/include/asm/setup.h`), and this leaves room for what we add.
const LONGEST_CMDLINE: usize = 1536;
/// Words such as `x=1` that the kernel does not know go to the environment of PID 1, which has room for 32
/// (`CONFIG_INIT_ENV_ARG_LIMIT`): two of its own, up to seven that a seed draws, and these.
const MOST_WORDS: usize = 20;
/// How long an iteration may take when the file does not say.
pub const DEFAULT_TIMEOUT: Millis = Millis(1_800_000);

/// An experiment file is wrong: where, what, and what to do about it.
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

/// What is wrong, before the file's text is attached.
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
    machine: Spanned<MachineForm>,
    #[serde(default)]
    sampler: Option<Spanned<Sampler>>,
    #[serde(rename = "variant")]
    variants: Spanned<Vec<VariantForm>>,
    #[serde(rename = "workload")]
    workloads: Spanned<Vec<Spanned<WorkloadForm>>>,
}

/// The default limits: a run may take as long as all iterations of its workloads together, plus a minute.
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
    modules: Vec<String>,
}

/// The value of a setting or a parameter as people write it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "this is no text, number, true or false; several values are one text: \"1,4\""
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

/// The name of an experiment of measured mode in exact mode, where it is another experiment.
pub fn exact_name(name: &str) -> String {
    format!("{name}-exact")
}

/// Checks the name of an experiment; otherwise says why it is not allowed.
///
/// # Errors
/// When the name is empty, has control characters, or is the number of an experiment or a boot.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err("a name of an experiment has letters, and no control characters".into());
    }
    if name.strip_prefix('b').unwrap_or(name).bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{name}` is no name: it would mean the experiment or boot of that number"
        ));
    }
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    if is_number(name) || name.rsplit_once('~').is_some_and(|(_, place)| is_number(place)) {
        return Err(format!("`{name}` stands for another experiment wherever one is named"));
    }
    Ok(())
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

/// The error of an experiment file with a manifest that wants a package that Debian does not have, as
/// `problem` says; `None` if no manifest wants it.
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
        hint: Some("https://packages.debian.org tells the names of packages".into()),
    };
    Some(fault.at(path, text))
}

impl Fault {
    /// The error for people, with the file's text.
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
    /// The same experiment in the requested mode. Numbers of boots do not apply to seeds, nor accelerators
    /// to exact mode.
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
            return fault(self.name.span(), problem, "give it a name of letters");
        }
        let boots_span = self.boots.as_ref().map(Spanned::span);
        let (boots, sequential) = mode::check_boots(&self)?;
        let profile = mode::check_profile(&self)?;
        let sampler = check_sampler(self.sampler)?;
        let (mut machine, limits) = machine::check(self.machine, self.mode)?;
        let variants = check_variants(self.variants)?;
        let span = self.workloads.span();
        let forms = self.workloads.into_inner();
        if forms.is_empty() {
            return fault(span, "no workload", "add a [[workload]], such as name = \"autonuma\"");
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
            guest_digest: String::new(),
            userspace_digest: String::new(),
            userspace,
            variants,
            machine,
            workloads,
            sampler,
            boots,
            sequential,
            imported: None,
        };
        match sequential::unfit(&experiment) {
            Some(Unfit { problem, remedy }) => {
                fault(boots_span.unwrap_or_default(), problem, remedy)
            }
            None => Ok(experiment),
        }
    }
}

/// A limit, or the default: no limit can be zero.
fn some_time(limit: Option<Spanned<Millis>>, usual: Millis) -> Checked<Millis> {
    match limit {
        Some(limit) if limit.get_ref().0 == 0 => {
            fault(limit.span(), "no time at all", format!("leave it out for {usual}"))
        }
        limit => Ok(limit.map_or(usual, Spanned::into_inner)),
    }
}

fn check_sampler(sampler: Option<Spanned<Sampler>>) -> Checked<Sampler> {
    let Some(sampler) = sampler else {
        return Ok(Sampler::default());
    };
    if sampler.get_ref().interval < SHORTEST_INTERVAL {
        let problem = format!("a sample every {}", sampler.get_ref().interval);
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

fn check_variants(forms: Spanned<Vec<VariantForm>>) -> Checked<Vec<Variant>> {
    let span = forms.span();
    let forms = forms.into_inner();
    if forms.is_empty() {
        return fault(span, "no variant", "add a [[variant]] with a kernel");
    }
    let mut variants: Vec<Variant> = Vec::new();
    for form in forms {
        let place = form.name.as_ref().map_or(form.kernel.span(), Spanned::span);
        let variant = form.check()?;
        if variants.iter().any(|other| other.name == variant.name) {
            let problem = format!("two variants are called `{}`", variant.name);
            return fault(place, problem, "a variant's name heads a column: give each its own");
        }
        variants.push(variant);
    }
    Ok(variants)
}

impl VariantForm {
    fn check(self) -> Checked<Variant> {
        let place = self.name.as_ref().map_or(self.kernel.span(), Spanned::span);
        let kernel = self.kernel.into_inner();
        let name = self.name.map_or_else(|| default_name(&kernel), Spanned::into_inner);
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return fault(place, "a variant without a name", "its name heads a column");
        }
        let cmdline = self.cmdline.map(check_cmdline).transpose()?.unwrap_or_default();
        let mut settings = Vec::new();
        for (name, value) in self.sysctl {
            // Parted by dots, or by slashes where a part holds dots itself (sysctl(8)).
            if name.get_ref().split(['.', '/']).any(|part| part.trim().is_empty()) {
                let problem = format!("`{}` is not a sysctl", name.get_ref());
                return fault(name.span(), problem, "such as \"kernel.numa_balancing\"");
            }
            settings.push(Setting::Sysctl { name: name.into_inner(), value: value.into() });
        }
        for (path, value) in self.sysfs {
            if !path.get_ref().starts_with("/sys/") || path.get_ref().contains("..") {
                let problem = format!("`{}` is not a file below /sys", path.get_ref());
                return fault(path.span(), problem, "use its whole path; other files are sysctls");
            }
            settings.push(Setting::Sysfs { path: path.into_inner(), value: value.into() });
        }
        Ok(Variant { name, kernel: kernel.into(), cmdline, settings, modules: self.modules })
    }
}

/// Words for the kernel's command line.
fn check_cmdline(cmdline: Spanned<String>) -> Checked<String> {
    let words = cmdline.get_ref();
    if words.chars().any(char::is_control) {
        return fault(cmdline.span(), "a command line with a control character", "use blanks");
    }
    if words.len() > LONGEST_CMDLINE {
        let problem = format!("a command line of {} bytes", words.len());
        let hint = format!("the kernel reads 2047, ours among them: use up to {LONGEST_CMDLINE}");
        return fault(cmdline.span(), problem, hint);
    }
    let unknown = |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.contains('.'));
    let number = words.split_whitespace().filter(unknown).count();
    if number > MOST_WORDS {
        let problem = format!("{number} words with a value");
        let hint = format!(
            "the kernel panics at 32 that it does not know, ours among them: use up to {MOST_WORDS}"
        );
        return fault(cmdline.span(), problem, hint);
    }
    Ok(cmdline.into_inner())
}

/// A variant's name where none is given: its kernel's, without the distribution's.
pub fn default_name(kernel: &str) -> String {
    kernel.strip_prefix("debian:").unwrap_or(kernel).to_owned()
}

/// serde's message, with the key whose value is wrong.
fn in_plain_words(message: &str, key: Option<&str>) -> String {
    let message = message
        // "Variant" has a meaning of its own here.
        .replace("unknown variant", "unknown value")
        .replace("expected usize", "expected a whole number")
        .replace("expected u32", "expected a whole number");
    match key {
        Some(key) => format!("{key}: {message}"),
        None => message,
    }
}

/// The key of the value that begins at `start`; none if none begins there.
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
