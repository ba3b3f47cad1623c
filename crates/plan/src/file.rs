//! Reads the experiment file: TOML in, [`model::Experiment`] out, and errors that point at the line. Options make the
//! same form as a file ([`Input`]), so both are checked here.

mod architecture;
mod build;
mod culprit;
mod disks;
mod input;
pub mod lock;
mod machine;
mod matrix;
mod mode;
mod sampler;
mod swap;
mod sweep;
#[cfg(test)]
mod tests;
mod userspace;
mod variants;
mod workloads;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, SourceSpan};
use model::{
    Experiment, LOCAL_DISTANCE, Limits, MAX_CPUS, MAX_NODES, Millis, Mode, Profiling, Reading,
    Sampler, Share, Variant, WorkloadUse,
};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::form;
use crate::form::excerpt::{Excerpt, brief};
use crate::form::mistake::{Kind, Mistake};
use crate::request::{Request, VariantRequest};
use crate::schedule::MOST_BOOTS;
use crate::sequential::{self, Unfit};
use crate::workloads::MOST_ITERATIONS;
use sweep::{Place, Sweep, SweepForm};

pub use build::BuildForm;
pub use culprit::CulpritForm;
pub use disks::DiskForm;
pub use input::{Input, InputError};
pub use machine::{ArchForm, MachineForm};
pub use matrix::{MatrixForm, SettingValues};
pub use mode::{Auto, BootsForm, check_profiling};
use variants::SourceForm;
pub use variants::{VariantForm, check_cmdline, default_names};
pub use workloads::WorkloadForm;
pub use write::{Written, file_name, write};

const MINUTE: Millis = Millis(60_000);
/// The longest name of an experiment or a variant, in bytes.
const LONGEST_NAME: usize = 200;
/// What is wrong with a name that is none.
const NO_NAME: &str =
    "is empty, longer than 200 bytes, begins or ends with a blank, or has control characters";
/// The default time limit of an iteration.
const DEFAULT_TIMEOUT: Millis = Millis(1_800_000);

/// An error in an experiment file: where, what, and a hint. What it quotes is bounded and in visible letters.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
pub struct FileError {
    problem: String,
    #[source_code]
    excerpt: Option<Excerpt>,
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

/// An experiment as its file has it. What is written names kernels in the cache, not how they were built.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileForm {
    name: Option<Spanned<String>>,
    #[serde(default, skip_serializing_if = "Mode::is_measured")]
    /// The clock by which kernels are compared.
    pub mode: Mode,
    /// Measured mode: boots of each variant.
    pub boots: Option<Spanned<BootsForm>>,
    /// With automatic boots: their largest number.
    pub at_most: Option<Spanned<u32>>,
    /// With automatic boots: differences up to this share count as none.
    pub margin: Option<Spanned<Share>>,
    /// With automatic boots: no further block starts after this time.
    pub budget: Option<Spanned<Millis>>,
    /// Exact mode: seeds of each variant.
    pub seeds: Option<Spanned<u32>>,
    /// What a profile has.
    pub profile: Option<Spanned<Profiling>>,
    userspace: Option<Spanned<PathBuf>>,
    /// The git repository of kernels.
    #[serde(skip_serializing)]
    pub tree: Option<PathBuf>,
    /// How kernels are built.
    #[serde(default, skip_serializing)]
    pub build: BuildForm,
    machine: Spanned<MachineForm>,
    /// What the agent samples, and how often.
    pub sampler: Option<Spanned<Sampler>>,
    #[serde(rename = "variant")]
    variants: Option<Spanned<Vec<VariantForm>>>,
    /// Kernels and settings that make the variants.
    #[serde(skip_serializing)]
    pub matrix: Option<Spanned<MatrixForm>>,
    /// Which change a search looks for.
    #[serde(skip_serializing)]
    pub culprit: Option<Spanned<CulpritForm>>,
    sweep: Option<Spanned<SweepForm>>,
    #[serde(rename = "workload")]
    workloads: Spanned<Vec<Spanned<WorkloadForm>>>,
}

/// The default limits. A run may take the sum of the limits of all iterations, plus a minute.
fn usual_limits(workloads: &[WorkloadUse]) -> Limits {
    let iterations =
        workloads.iter().map(|used| used.timeout.0.saturating_mul(used.repetitions().into()));
    let run = iterations.fold(MINUTE.0, u64::saturating_add);
    Limits { run: Millis(run), ..Limits::default() }
}

/// The value of a setting or a parameter as a user writes it.
#[derive(Clone, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "expected a string, a number, true or false; write several values as one string: \"1,4\""
)]
pub enum Value {
    /// A string, such as a size with its unit.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A number with a fraction or an exponent.
    Decimal(f64),
    /// True or false.
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

/// The name of an experiment: its own, or one made from its workloads and variants, so that the same options make the
/// same experiment.
fn named(
    name: Option<Spanned<String>>,
    mode: Mode,
    variants: &[Variant],
    workloads: &[WorkloadUse],
) -> String {
    if let Some(name) = name {
        return name.into_inner();
    }
    let workloads = workloads.iter().map(|used| &*used.manifest.name);
    let parts = workloads.chain(variants.iter().map(|variant| &*variant.name));
    // The name of a change begins with its own mark.
    let name =
        parts.fold(String::new(), |name, part| match name.is_empty() || part.starts_with('+') {
            true => name + part,
            false => name + "-" + part,
        });
    if mode == Mode::Exact { exact_name(&name) } else { name }
}

/// The name of a measured experiment's copy in exact mode, which is a separate experiment.
fn exact_name(name: &str) -> String {
    format!("{name}-exact")
}

/// Checks the name of an experiment. The error says why the name is not allowed: it is no name at all, or is
/// the number of an experiment or a boot.
pub fn check_name(name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!("the name of an experiment {NO_NAME}"));
    }
    let digits = name.strip_prefix('b').unwrap_or(name);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
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
/// ([`exact_name`]) and the default number of seeds. The error has the line and the key at fault, and a hint.
pub fn parse(path: &Path, text: &str, mode: Option<Mode>) -> Result<Request, Box<FileError>> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let in_mode = |form: FileForm| match mode {
        Some(mode) => form.in_mode(mode),
        None => form,
    };
    read(text).and_then(|form| in_mode(form).check(directory)).map_err(|fault| fault.at(path, text))
}

fn read(text: &str) -> Checked<FileForm> {
    let form: FileForm = form::read(text)?;
    match form.name {
        Some(_) => Ok(form),
        None => fault(0..0, "the experiment has no name", "add a name, such as name = \"numa\""),
    }
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
    let form: FileForm = form::read(text).ok()?;
    let mut manifests =
        form.workloads.into_inner().into_iter().filter_map(|it| it.into_inner().manifest);
    let of_it = manifests.find(|named| {
        let manifest = crate::workloads::read(&directory.join(named.get_ref()));
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

/// The mistake with the key of the wrong value and, for a number, the allowed range.
impl From<Mistake> for Fault {
    fn from(mut mistake: Mistake) -> Self {
        if mistake.kind == Kind::Number {
            let range = match mistake.key() {
                Some("boots" | "seeds" | "at_most") => format!("from 1 to {MOST_BOOTS}"),
                Some("iterations") => format!("from 1 to {MOST_ITERATIONS}"),
                Some("warmup") => format!("from 0 to {MOST_ITERATIONS}"),
                Some("cpus") => format!("from 1 to {MAX_CPUS}"),
                Some("nodes") => format!("from 1 to {MAX_NODES}"),
                Some("distances") => format!("from {LOCAL_DISTANCE} to {}", u8::MAX),
                Some("disk") => "from 0".to_owned(),
                _ => format!("from {} to {}", i64::MIN, i64::MAX),
            };
            mistake.expected = Some(format!("a whole number {range}"));
        }
        let (problem, hint) = (mistake.with_key(&mistake.to_string()), mistake.hint());
        // What is missing at the top is missing in the first line.
        Self { problem, place: Some(mistake.place.unwrap_or(0..0)), hint }
    }
}

impl Fault {
    /// Attaches the file's text to the error.
    fn at(self, path: &Path, text: &str) -> Box<FileError> {
        let excerpt = self.place.map(|place| Excerpt::new(path, text, place));
        Box::new(FileError {
            problem: brief(&self.problem),
            place: excerpt.as_ref().map(Excerpt::place),
            excerpt,
            hint: self.hint.as_deref().map(brief),
        })
    }
}

impl FileForm {
    /// An experiment with one workload.
    pub fn new(machine: MachineForm, variants: Vec<VariantForm>, workload: WorkloadForm) -> Self {
        let variants = Some(variants).filter(|variants| !variants.is_empty());
        Self {
            name: None,
            mode: Mode::default(),
            boots: None,
            at_most: None,
            margin: None,
            budget: None,
            seeds: None,
            profile: None,
            userspace: None,
            tree: None,
            build: BuildForm::default(),
            machine: placeless(machine),
            sampler: None,
            variants: variants.map(placeless),
            matrix: None,
            culprit: None,
            sweep: None,
            workloads: placeless(vec![placeless(workload)]),
        }
    }

    /// Lists its variants.
    pub fn variants(&mut self, variants: Vec<VariantForm>) {
        self.variants = Some(placeless(variants));
    }

    /// The same experiment in the requested mode. Exact mode has no numbers of boots, no accelerators and no samples.
    pub fn in_mode(mut self, mode: Mode) -> Self {
        if mode == Mode::Exact && self.mode.is_measured() {
            self.mode = Mode::Exact;
            (self.boots, self.at_most, self.margin, self.budget) = (None, None, None, None);
            self.name = self.name.map(|name| Spanned::new(name.span(), exact_name(name.get_ref())));
            if let Some(profile) = &mut self.profile {
                let profile = profile.get_mut();
                (profile.sampled, profile.frequency) = (false, None);
            }
        }
        self
    }

    fn check(mut self, directory: &Path) -> Checked<Request> {
        if let Some(name) = &self.name
            && let Err(problem) = check_name(name.get_ref())
        {
            return fault(name.span(), problem, "use a name with letters, such as \"numa\"");
        }
        let boots_span = self.boots.as_ref().map(Spanned::span);
        let (boots, sequential) = mode::check_boots(&self)?;
        let profile = mode::check_profile(&self)?;
        let profile_span = self.profile.as_ref().map(Spanned::span).unwrap_or_default();
        let sampler = sampler::check(self.sampler)?;
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
        let is_host = self.machine.get_ref().is_host();
        if let Some(matrix) = self.matrix.as_mut().filter(|_| is_host) {
            matrix.get_mut().on_host();
        }
        let mut variant_forms = matrix::variants(self.variants, self.matrix, directory)?;
        variants::name_kernels(&mut variant_forms, is_host)?;
        architecture::settle(self.machine.get_mut(), &mut variant_forms)?;
        let limits = self.machine.get_ref().limits.clone().unwrap_or_default();
        let sweep = self.sweep.map(|sweep| Sweep::of(sweep, &forms)).transpose()?;
        let places = match &sweep {
            Some(sweep) => sweep.places(&self.machine, &forms, (self.mode, directory))?,
            None => {
                let machine = machine::check(self.machine, self.mode)?;
                let (workloads, readings) = workloads::check_all(forms, directory, &machine)?;
                vec![Place { machine, workloads, readings }]
            }
        };
        let machines = places.iter().map(|place| &place.machine);
        mode::check_transfers(&profile, machines, profile_span)?;
        let tree = self.tree.map(|tree| build::path(directory, &tree));
        let source = SourceForm { tree: tree.as_deref(), build: &self.build, directory };
        let Place { mut machine, workloads, readings } = places[0].clone();
        if is_host {
            workloads::check_host(&workloads, span)?;
        }
        let mut reading = Reading { workloads: readings, ..Reading::default() };
        let (mut variants, mut builds) = (Vec::new(), BTreeMap::new());
        for request in variants::check_all(variant_forms, source)? {
            let VariantRequest { variant, reading: own, build } = request;
            reading.variants.insert(variant.name.clone(), own);
            builds.extend(build.map(|build| (variant.name.clone(), build)));
            variants.push(variant);
        }
        let userspace = userspace::check(self.userspace, directory, &workloads, &sources)?;
        machine.limits = limits.complete(&workloads)?;
        let mut experiment = Experiment {
            name: named(self.name, self.mode, &variants, &workloads),
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
        if let Some(sweep) = &sweep {
            experiment.variants = sweep.expand(&experiment, &places)?;
        }
        match sequential::unfit(&experiment, &reading) {
            Some(Unfit { problem, remedy }) => {
                fault(boots_span.unwrap_or_default(), problem, remedy)
            }
            None => Ok(Request { experiment, reading, builds }),
        }
    }
}

/// A value without a place in a file, and of no option.
pub fn placeless<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
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
