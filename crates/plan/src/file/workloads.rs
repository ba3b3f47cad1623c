//! Checks the workloads of an experiment file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use benchmarks::names::{others, ours};
use model::{Machine, Manifest, Millis, Pinned, WorkloadReading, WorkloadUse};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Checked, DEFAULT_TIMEOUT, Value, fault, some_time};
use crate::workloads::binaries;
use crate::workloads::{self, MOST_ITERATIONS, WorkloadError};

/// The longest name of a workload in bytes.
const LONGEST_NAME: usize = 100;

/// Values of parameters by name.
pub type Parameters = BTreeMap<Spanned<String>, Spanned<Value>>;

/// One `[[workload]]`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadForm {
    /// A manifest that no file has, in place of a name.
    #[serde(skip)]
    pub made: Option<Manifest>,
    /// The name of a built-in workload, or of a manifest of the user's.
    pub name: Option<Spanned<String>>,
    #[serde(rename = "as")]
    pub(super) called: Option<Spanned<String>>,
    /// The file of its manifest, in place of a name.
    pub manifest: Option<Spanned<PathBuf>>,
    pub(super) program: Option<Spanned<PathBuf>>,
    pub(super) binaries: Option<Spanned<PathBuf>>,
    pub(super) archive: Option<Spanned<PathBuf>>,
    /// Iterations in each boot.
    pub iterations: Option<Spanned<u32>>,
    pub(super) warmup: Option<u32>,
    /// The time limit of an iteration.
    pub timeout: Option<Spanned<Millis>>,
    pub(super) primary: Option<Spanned<Vec<Spanned<String>>>>,
    /// Values of parameters that differ from the manifest's.
    pub parameters: Option<Parameters>,
}

/// Checks all workloads. Returns them, and how they are read, by name.
pub(super) fn check_all(
    forms: Vec<Spanned<WorkloadForm>>,
    directory: &Path,
    machine: &Machine,
) -> Checked<(Vec<WorkloadUse>, BTreeMap<String, WorkloadReading>)> {
    let mut workloads: Vec<WorkloadUse> = Vec::new();
    let mut readings = BTreeMap::new();
    let mut repetitions: u32 = 0;
    for form in forms {
        let place = form.span();
        let iterations = form.get_ref().iterations.as_ref().map_or(place.clone(), Spanned::span);
        let (used, reading) = form.into_inner().check(place.clone(), directory, machine)?;
        let name = &used.manifest.name;
        if workloads.iter().any(|other| other.manifest.name == *name) {
            let hint = "give one another name, such as as = \"large\"; reports use it as the head of tables";
            return fault(place, format!("two workloads have the name `{name}`"), hint);
        }
        repetitions = repetitions.saturating_add(used.repetitions());
        if repetitions > MOST_ITERATIONS {
            let problem =
                format!("{repetitions} iterations of a boot, including warm-up, are too many");
            let hint = format!(
                "a boot has room for {MOST_ITERATIONS} of all workloads, and for fewer with phases: boot \
                 more often"
            );
            return fault(iterations, problem, hint);
        }
        readings.insert(name.clone(), reading);
        workloads.push(used);
    }
    Ok((workloads, readings))
}

impl WorkloadForm {
    /// Whether this is its name in the experiment.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.called.as_ref().or(self.name.as_ref()).is_some_and(|own| own.get_ref() == name)
    }

    /// The name of the built-in workload, or the path of the manifest.
    pub(super) fn source(&self, directory: &Path) -> String {
        match &self.manifest {
            Some(manifest) => directory.join(manifest.get_ref()).display().to_string(),
            None => self.name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default(),
        }
    }

    fn check(
        self,
        place: Range<usize>,
        directory: &Path,
        machine: &Machine,
    ) -> Checked<(WorkloadUse, WorkloadReading)> {
        let (mut manifest, place) = match (self.made, self.name, self.manifest) {
            (Some(made), ..) => (made, place),
            (None, Some(name), None) => {
                let found = workloads::find(name.get_ref(), directory);
                (found.or_else(|error| refuse(name.span(), &error))?, name.span())
            }
            (None, None, Some(path)) => {
                let found = workloads::read(&directory.join(path.get_ref()));
                (found.or_else(|error| refuse(path.span(), &error))?, path.span())
            }
            (None, Some(name), Some(_)) => {
                return fault(
                    name.span(),
                    "the workload has both name and manifest",
                    "leave one of them out",
                );
            }
            (None, None, None) => {
                let hint = "add name = \"autonuma\", or manifest = \"FILE.toml\"";
                return fault(place, "the workload has no name and no manifest", hint);
            }
        };
        let called = match self.called {
            Some(name) => (name.span(), name.into_inner()),
            None => (place.clone(), manifest.name.clone()),
        };
        let called = check_name(called.0, called.1)?;
        let iterations = self.iterations.as_ref().map_or(1, |count| *count.get_ref());
        if iterations == 0 {
            let span = self.iterations.map_or(place, |count| count.span());
            return fault(span, "iterations is 0", "use 1 or more");
        }
        let (mut values, mut places) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in self.parameters.unwrap_or_default() {
            places.insert(name.get_ref().clone(), (name.span(), value.span()));
            values.insert(name.into_inner(), value.into_inner().into());
        }
        workloads::set_parameters(&mut manifest, values).or_else(|error| match &error {
            WorkloadError::Parameter { parameter, .. } => {
                refuse(places[parameter].0.clone(), &error)
            }
            _ => refuse(place.clone(), &error),
        })?;
        let binaries = match &self.binaries {
            None => Vec::new(),
            Some(path) if self.program.is_some() => {
                let hint =
                    "leave one of them out: program is a file, binaries a directory of files";
                return fault(path.span(), "the workload has both program and binaries", hint);
            }
            Some(path) => binaries::find(&manifest, &directory.join(path.get_ref()))
                .or_else(|(problem, hint)| fault(path.span(), problem, hint))?,
        };
        let primary = check_primary(self.primary, &manifest)?;
        let programs = self.program.as_ref().or(self.binaries.as_ref()).map(Spanned::span);
        let own = workloads::take_program(&mut manifest)
            .or_else(|error| refuse(place.clone(), &error))?;
        let program = match self.program {
            Some(path) => Some(
                binaries::program(&directory.join(path.get_ref()))
                    .or_else(|(problem, hint)| fault(path.span(), problem, hint))?,
            ),
            None => own.filter(|_| binaries.is_empty()),
        };
        let archive = self.archive.map(|path| {
            binaries::program(&directory.join(path.get_ref()))
                .or_else(|(problem, hint)| fault(path.span(), problem, hint))
        });
        let timeout = some_time(self.timeout, DEFAULT_TIMEOUT)?;
        let mut used = WorkloadUse {
            program,
            binaries,
            archive: archive.transpose()?,
            warmup: self.warmup.unwrap_or_default(),
            ..WorkloadUse::new(manifest, iterations, timeout)
        };
        let is_list = |program: &&Pinned| {
            let name = program.path().file_name().unwrap_or_default();
            name.as_encoded_bytes().contains(&b',')
        };
        if let Some(program) = used.programs().find(is_list) {
            let problem = format!("{program}: the name of a program cannot have a comma");
            let hint =
                "rename it, or link to it; the guest's list of programs is separated by commas";
            return fault(programs.unwrap_or(place), problem, hint);
        }
        workloads::check(&used, machine).or_else(|error| {
            let given = match &error {
                WorkloadError::Value { parameter, .. } => places.remove(parameter),
                _ => None,
            };
            refuse(given.map_or(place, |(_, value)| value), &error)
        })?;
        used.manifest.name = called;
        Ok((used, WorkloadReading { primary, left_out: None }))
    }
}

/// Checks that workloads need only what a host has.
pub fn check_host(workloads: &[WorkloadUse], place: Range<usize>) -> Checked<()> {
    for WorkloadUse { manifest, archive, .. } in workloads {
        let needs = [
            (!manifest.packages.is_empty(), "packages, which Faultline installs only for VMs"),
            (!manifest.modules.is_empty(), "kernel modules, which Faultline loads only in VMs"),
            (archive.is_some(), "an archive, which the kernel of a VM unpacks"),
        ];
        if let Some((_, what)) = needs.into_iter().find(|(needs, _)| *needs) {
            let problem =
                format!("workload `{}` needs {what}, and this machine is a host", manifest.name);
            let hint = "run it in a VM, or write a manifest whose program the host has";
            return fault(place, problem, hint);
        }
    }
    Ok(())
}

/// The rows that decide verdicts, by our names. The file may use mmtests' names. Metrics are known before a
/// boot, labels and phases are not.
fn check_primary(
    chosen: Option<Spanned<Vec<Spanned<String>>>>,
    manifest: &Manifest,
) -> Checked<Vec<String>> {
    let Some(chosen) = chosen else { return Ok(Vec::new()) };
    let metrics = manifest.metrics.iter().filter(|metric| metric.better.is_some());
    let metrics: Vec<&str> = metrics.map(|metric| &*metric.name).collect();
    let name = &manifest.name;
    let hint = match metrics.as_slice() {
        [] => "leave primary out: the manifest has no metric with `better`".to_owned(),
        metrics => format!(
            "the metrics of {name} that can be judged are {}{}; append a label as in tables, or * for any label",
            metrics.join(", "),
            match others(Some(manifest)).as_slice() {
                [] => String::new(),
                others => format!(", in mmtests also {}", others.join(", ")),
            }
        ),
    };
    if chosen.get_ref().is_empty() {
        return fault(chosen.span(), "primary is empty", hint);
    }
    let is_known = |row: &str| {
        let mut metrics = metrics.iter();
        metrics.any(|metric| {
            WorkloadReading::covers(row, metric) || WorkloadReading::covers(metric, row)
        })
    };
    let own = |row: Spanned<String>| {
        let theirs = row.get_ref();
        let names = [ours(theirs, Some(manifest)), Some(theirs.clone())];
        match names.into_iter().flatten().find(|name| is_known(name)) {
            Some(name) => Ok(name),
            None => {
                let problem = format!("`{theirs}` does not match a metric that can be judged");
                fault(row.span(), problem, hint.clone())
            }
        }
    };
    chosen.into_inner().into_iter().map(own).collect()
}

/// Checks the name of a workload. An empty name means samples outside workloads, and in the guest the name is
/// part of a path in a comma-separated list of programs.
fn check_name(place: Range<usize>, name: String) -> Checked<String> {
    let is_short = !name.trim().is_empty() && name.len() <= LONGEST_NAME;
    let fits = |letter: char| !letter.is_control() && !"/,".contains(letter);
    if is_short && name.chars().all(fits) && ![".", ".."].contains(&&*name) {
        return Ok(name);
    }
    let problem = format!("`{}` cannot be the name of a workload", name.escape_debug());
    let hint =
        format!("use 1 to {LONGEST_NAME} bytes without / and comma; the name is also a directory");
    fault(place, problem, hint)
}

/// Reports the error of a workload at `place`.
fn refuse<T>(place: Range<usize>, error: &WorkloadError) -> Checked<T> {
    fault(place, error.to_string(), error.hint())
}
