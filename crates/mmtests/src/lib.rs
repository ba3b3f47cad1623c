//! Imports directories of logs that mmtests left. Its runs become variants, its benchmarks workloads. Only the
//! contents of the files are used, nothing that mmtests derives from them: no mean, no mark of significance.
//!
//! Reading has two steps, so that at most one boot is in memory. [`Directory::read`] reads all small files.
//! [`Directory::boot`] reads the monitors of one boot, several iterations in parallel.
//!
//! The modules: [`files`] opens files, [`layout`] finds runs and iterations, [`iteration`] reads one iteration
//! ([`state`], [`machine`], [`benchmark`]), [`reboots`] finds the iterations that share a boot, [`boot`] makes a boot
//! from them ([`monitor`], [`table`], [`blocks`]).
//!
//! The files are not trusted: sizes, depths and counts are bounded, unpacking is limited, and no link leads out of
//! the directory.

pub mod benchmark;
mod blocks;
mod boot;
mod files;
mod iteration;
mod layout;
mod machine;
mod missing;
mod monitor;
mod reboots;
mod state;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use model::{
    Boot, Experiment, Imported, Limits, Machine, Manifest, Metric, Millis, Sampler, Source,
    Topology, Variant, WorkloadUse,
};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use store::Series;

use files::{Entry, Root};
use iteration::Iteration;

/// The name of the tool in experiments.
pub const TOOL: &str = "mmtests";
/// The longest activity log that is read, in bytes.
const MAX_ACTIVITY: usize = 64 << 20;

/// The reason why a directory can't be imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory or a file in it can't be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The directory or the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The directory contains no run of mmtests.
    #[error(
        "{}: no run of mmtests is in it: give it work/log, or one run with iter-0 in it",
        path.display()
    )]
    NoRun {
        /// The directory that was searched.
        path: PathBuf,
    },
}

/// A directory of logs, without what its monitors wrote.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    runs: Vec<Run>,
    boots: Vec<BootIterations>,
    /// What belongs to no iteration and was not read, with the reason.
    unread: Told,
}

/// Statements, each a name and a text, with the places where they hold.
pub type Told = BTreeMap<(String, String), Places>;

/// The runs where a statement holds, each with the numbers of the iterations. A run without numbers means the run as
/// a whole. Empty if a statement is about no run.
pub type Places = BTreeMap<String, BTreeSet<u32>>;

#[derive(Debug)]
struct Run {
    name: String,
    started: Option<u64>,
    /// The exit status of the run, if reported and not zero.
    status: Option<i64>,
    iterations: Vec<Iteration>,
}

/// The iterations of one boot.
#[derive(Debug)]
struct BootIterations {
    run: usize,
    boot_index: u32,
    iterations: std::ops::Range<usize>,
}

/// What was read, for people. Series are counted once their boots are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The runs, in the order of the columns.
    pub runs: Vec<RunSummary>,
    /// The benchmarks, with the number of their samples.
    pub benchmarks: BTreeMap<String, usize>,
    /// The monitors that were read, with the numbers of their files and samples.
    pub monitors: BTreeMap<String, (usize, usize)>,
    /// Notes on a benchmark's figures.
    pub remarks: Told,
    /// What was not read, with the reason.
    pub unread: Told,
    /// Benchmarks that lack operations, and which operations these are.
    pub missing: Told,
}

/// What was read of a run, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The name of the run, which becomes the name of the variant.
    pub name: String,
    /// The release of the kernel; empty if unknown.
    pub kernel: String,
    /// When the run began, in seconds since 1970, if known.
    pub started: Option<u64>,
    /// For each boot, the numbers of its iterations.
    pub boots: Vec<Vec<u32>>,
    /// The benchmarks and iterations without a result, and why.
    pub left_out: Vec<String>,
}

impl Directory {
    /// Reads all small files in the directory at `path`: everything but the files of monitors. Fails if a directory
    /// can't be read, or if there is no run.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
        let root = Root::open(path).map_err(unreadable)?;
        let layout = layout::find(&root).map_err(unreadable)?;
        if layout.runs.is_empty() {
            return Err(Error::NoRun { path: path.to_owned() });
        }
        let mut runs: Vec<Run> = layout.runs.par_iter().map(run).collect();
        runs.sort_by(|a, b| {
            let key = |run: &Run| (run.started.unwrap_or(u64::MAX), run.name.clone());
            key(a).cmp(&key(b))
        });
        let mut unread = Told::new();
        for (name, why) in layout.passed_over {
            unread.entry((name, why.to_owned())).or_default();
        }
        for run in &layout.runs {
            for (name, why) in &run.passed_over {
                let places = unread.entry((name.clone(), (*why).to_owned())).or_default();
                places.entry(run.name.clone()).or_default();
            }
        }
        let boots = boots(&runs);
        Ok(Self { path: root.path().to_owned(), runs, boots, unread })
    }

    /// The experiment of these runs, named `name` or after the directory. A digest of all files is part of it.
    pub fn experiment(&self, name: Option<&str>) -> Experiment {
        let most = self.boots.iter().map(|boot| boot.boot_index + 1).max();
        Experiment {
            name: name.map_or_else(|| own_name(&self.path), str::to_owned),
            variants: self.runs.iter().map(variant).collect(),
            machine: Machine {
                topology: self.topology(),
                limits: Limits { boot: Millis(0), run: Millis(0), shutdown: Millis(0) },
                ..Machine::default()
            },
            workloads: self.workloads(),
            sampler: Sampler { interval: Millis(0), sources: self.sources(), events: Vec::new() },
            boots: most.unwrap_or(0),
            imported: Some(Imported {
                tool: TOOL.to_owned(),
                directory: self.path.clone(),
                digest: self.digest(),
            }),
            ..Experiment::default()
        }
    }

    /// The variant and the boot index of each boot.
    pub fn boots(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.boots.iter().map(|boot| (&*self.runs[boot.run].name, boot.boot_index))
    }

    /// Reads a boot and its series, which take the place of chunks. `number` is the index among [`Directory::boots`].
    /// Adds what was read of the monitors to `summary`.
    pub fn boot(&self, number: usize, summary: &mut Summary) -> (Boot, Vec<Series>) {
        let BootIterations { run, boot_index, iterations } = &self.boots[number];
        let run = &self.runs[*run];
        let origin = format!("imported from {} ({TOOL})", self.path.display());
        let header = boot::BootHeader {
            variant: &run.name,
            boot_index: *boot_index,
            block: number as u32,
            origin: &origin,
            status: run.status,
        };
        let iterations: Vec<&Iteration> = run.iterations[iterations.clone()].iter().collect();
        let (boot, watched) = boot::boot(header, &iterations);
        for (name, (files, samples)) in watched.monitors {
            let known = summary.monitors.entry(name).or_default();
            *known = (known.0 + files, known.1 + samples);
        }
        for (number, what) in watched.unread {
            tell(&mut summary.unread, what, run, number);
        }
        (boot, watched.series)
    }

    /// What was read so far, without the monitors.
    pub fn summary(&self) -> Summary {
        let mut benchmarks: BTreeMap<String, usize> = BTreeMap::new();
        let (mut remarks, mut unread, mut missing) =
            (Told::new(), self.unread.clone(), Told::new());
        for run in &self.runs {
            for it in &run.iterations {
                for (name, read) in &it.benchmarks {
                    let samples = read.iter().flat_map(|parsed| &parsed.samples);
                    let samples: usize = samples.map(|sample| sample.count.get() as usize).sum();
                    *benchmarks.entry(name.clone()).or_default() += samples;
                    for remark in read.iter().flat_map(|parsed| &parsed.remarks) {
                        tell(&mut remarks, (name.clone(), remark.clone()), run, it.number);
                    }
                }
                let logs = it.unread_logs.iter();
                let logs = logs.map(|[name, file, why]| (format!("{name}: {file}"), why.clone()));
                for what in logs.chain(it.unread.iter().cloned()) {
                    tell(&mut unread, what, run, it.number);
                }
                for what in &it.missing {
                    tell(&mut missing, what.clone(), run, it.number);
                }
            }
        }
        let runs = self.runs.iter().enumerate().map(|(number, run)| RunSummary {
            name: run.name.clone(),
            kernel: release(run),
            started: run.started,
            boots: self
                .boots
                .iter()
                .filter(|boot| boot.run == number)
                .map(|it| {
                    run.iterations[it.iterations.clone()].iter().map(|it| it.number).collect()
                })
                .collect(),
            left_out: left_out(run),
        });
        Summary {
            runs: runs.collect(),
            benchmarks,
            monitors: BTreeMap::new(),
            remarks,
            unread,
            missing,
        }
    }

    fn iterations(&self) -> impl Iterator<Item = &Iteration> {
        self.runs.iter().flat_map(|run| &run.iterations)
    }

    /// The machine, if all runs report the same one; otherwise a machine without nodes.
    fn topology(&self) -> Topology {
        let mut all = self.iterations().map(|it| it.topology.as_ref());
        let first = all.next().flatten();
        let same = first.filter(|first| all.all(|other| other == Some(first)));
        same.cloned().unwrap_or(Topology { nodes: Vec::new() })
    }

    /// A workload for each benchmark, with the metrics of all iterations.
    fn workloads(&self) -> Vec<WorkloadUse> {
        let mut metrics: BTreeMap<&str, Vec<Metric>> = BTreeMap::new();
        for (name, read) in self.iterations().flat_map(|it| &it.benchmarks) {
            let known = metrics.entry(name).or_default();
            // A metric that earlier iterations lack comes after the metrics that precede it in its own iteration.
            let mut next = 0;
            for metric in read.iter().flat_map(|parsed| &parsed.metrics) {
                let place = known.iter().position(|it| it.name == metric.name);
                let place = place.unwrap_or_else(|| {
                    known.insert(next, metric.clone());
                    next
                });
                next = next.max(place + 1);
            }
        }
        let workloads = metrics.into_iter().map(|(name, metrics)| {
            let ran = |run: &Run| {
                run.iterations.iter().filter(|it| it.benchmarks.contains_key(name)).count()
            };
            let iterations = self.runs.iter().map(ran).max().unwrap_or(0);
            let manifest = Manifest {
                name: name.to_owned(),
                description: format!("{name}, as {TOOL} ran it"),
                metrics,
                ..Manifest::default()
            };
            WorkloadUse::new(manifest, iterations as u32, Millis(0))
        });
        workloads.collect()
    }

    /// The kernel files that monitors printed repeatedly.
    fn sources(&self) -> Vec<Source> {
        let monitors = self.iterations().flat_map(|it| &it.monitors);
        let names: BTreeSet<&str> = monitors.map(|found| found.monitor.source()).collect();
        Source::ALL.iter().copied().filter(|source| names.contains(source.name())).collect()
    }

    /// The SHA-256 over the digests of all iterations, in hexadecimal.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for run in &self.runs {
            digest.update(run.name.as_bytes());
            digest.update([0]);
            for iteration in &run.iterations {
                digest.update(iteration.number.to_le_bytes());
                digest.update(iteration.digest);
            }
        }
        format!("{:x}", digest.finalize())
    }
}

/// Records that `what` holds for this iteration.
fn tell(told: &mut Told, what: (String, String), run: &Run, iteration: u32) {
    told.entry(what).or_default().entry(run.name.clone()).or_default().insert(iteration);
}

fn run(files: &layout::Run) -> Run {
    let mut iterations: Vec<Iteration> = files.iterations.par_iter().map(iteration::read).collect();
    for (missing, iteration) in missing::missing(&iterations).into_iter().zip(&mut iterations) {
        iteration.missing = missing;
    }
    let activity = files.files.get("mmtests-activity").and_then(|Entry { path, .. }| {
        let text = files::read(path, MAX_ACTIVITY).ok()?;
        Some(state::activity(&String::from_utf8_lossy(&text)))
    });
    let (active, status) = activity.unwrap_or_default();
    let of_old = iterations.iter().find_map(|it| it.state.status);
    let started = iterations.iter().filter_map(|it| it.started).chain(active).min();
    Run {
        name: files.name.clone(),
        started,
        status: status.or(of_old).filter(|status| *status != 0),
        iterations,
    }
}

/// The boots of all runs. Each consists of consecutive iterations.
fn boots(runs: &[Run]) -> Vec<BootIterations> {
    let mut boots = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let anew = |pair: &[Iteration]| {
            reboots::rebooted(&pair[0].traces, &pair[1].traces).unwrap_or(false)
        };
        let mut begin = 0;
        let ends = (1..run.iterations.len()).filter(|end| anew(&run.iterations[end - 1..=*end]));
        for (boot_index, end) in ends.chain([run.iterations.len()]).enumerate() {
            let boot_index = boot_index as u32;
            boots.push(BootIterations { run: number, boot_index, iterations: begin..end });
            begin = end;
        }
    }
    boots
}

fn variant(run: &Run) -> Variant {
    Variant { name: run.name.clone(), kernel: release(run).into(), ..Variant::default() }
}

/// The release of the kernel, if an iteration has it.
fn release(run: &Run) -> String {
    let mut releases = run.iterations.iter().map(|it| &it.facts.release);
    releases.find(|release| !release.is_empty()).cloned().unwrap_or_default()
}

fn left_out(run: &Run) -> Vec<String> {
    let results = run.iterations.iter().flat_map(|it| {
        let number = it.number;
        it.benchmarks.iter().map(move |(name, read)| (number, name, read))
    });
    let left_out = results.filter_map(|(number, name, read)| {
        let why = read.as_ref().err()?;
        Some(format!("{name}, iteration {number}: {why}"))
    });
    left_out.collect()
}

/// The name of the directory. For `work/log`, which every checkout has, it is the name of the checkout.
fn own_name(path: &Path) -> String {
    let names = path.ancestors().filter_map(Path::file_name);
    let own = names.map(|name| name.to_string_lossy()).find(|name| name != "log" && name != "work");
    own.map_or_else(|| TOOL.to_owned(), |name| name.into_owned())
}
