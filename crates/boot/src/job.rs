//! Composes the input of a guest: the job, and the initramfs that has the job.

use std::fs;
use std::path::{Path, PathBuf};

use flight::job::{self, Job};
use kernels::Userspace;
use kernels::initramfs::Archive;
use kernels::modules::{self, Module};
use model::{Bytes, Disk, Experiment, Kernel, Variant, WorkloadUse};
use plan::workloads::{self, WorkloadError};

use crate::disks::{self, Contents};
use crate::guest::Guest;
use crate::out_of_tree::OutOfTree;
use crate::{swap, userspace};

/// The size of the recorder, which holds the recording of one boot. Its file is sparse, so only
/// what is written takes space.
pub const RECORDER: Bytes = Bytes::mib(256);

/// Why a variant cannot be booted.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The kernel does not have a module, or the module cannot be read.
    #[error(transparent)]
    Module(#[from] modules::Error),
    /// The command of a workload cannot be composed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A program that goes into the guest cannot be read.
    #[error(
        "{path}: {error}{}",
        if path.is_relative() { "; the path is relative to the directory in which the experiment was run" } else { "" }
    )]
    Read {
        /// The program that cannot be read.
        path: PathBuf,
        /// What the system reported.
        error: std::io::Error,
    },
}

/// Returns the job of a variant and the modules that the job loads. A workload that the kernel does
/// not support gets 0 iterations. Fails when the kernel lacks a module or a workload's command
/// cannot be composed.
pub fn job(
    experiment: &Experiment,
    variant: &Variant,
    kernel: &Kernel,
    out_of_tree: &OutOfTree,
    userspace: Option<&Userspace>,
) -> Result<(Job, Vec<Module>), JobError> {
    let workloads = experiment.workloads.iter();
    let mut wanted: Vec<&str> = workloads.flat_map(|it| out_of_tree.of_kernel(it)).collect();
    wanted.extend(variant.modules.iter().map(String::as_str));
    let disks = &experiment.machine.disks;
    if kernel.modules.is_some() {
        // A kernel without modules must have these drivers built in. If it lacks one, its boots
        // report that.
        wanted.extend(disks::modules(disks));
        if userspace.is_some() {
            wanted.extend(userspace::modules(experiment.mode));
        }
        wanted.extend(swap::modules(experiment.machine.swap.as_ref(), kernel)?);
    }
    let mut modules = modules::choose(kernel, &wanted)?;
    modules.extend(out_of_tree.modules().cloned());
    let workloads = experiment.workloads.iter().map(|workload| {
        Ok(job::Workload {
            name: workload.manifest.name.clone(),
            command: workloads::command_of(workload, &experiment.machine)?,
            iterations: iterations(workload, out_of_tree),
            timeout: workload.timeout,
            metrics: !workload.manifest.metrics.is_empty(),
            userspace: !workload.manifest.packages.is_empty(),
            plain: workload.manifest.plain,
            directory: workload.manifest.directory.clone(),
        })
    });
    let on_host = !experiment.machine.kind.is_vm();
    let job = Job {
        modules: modules.iter().map(|module| loaded(module, disks)).collect(),
        disks: disks::of_job(disks),
        userspace: userspace.map(|image| userspace::of_job(image, experiment)),
        swap: swap::of_job(&experiment.machine),
        // A host's settings are put back, which is not the agent's work.
        settings: if on_host { Vec::new() } else { variant.settings.clone() },
        workloads: workloads.collect::<Result<_, WorkloadError>>()?,
        sampler: experiment.sampler.clone(),
        seed: None,
        symbols: false,
        frequency: experiment.profile.samples(),
        shell: false,
        on_host,
    };
    Ok((job, modules))
}

/// Returns the number of iterations of a workload on a kernel; 0 if the kernel does not support the
/// workload.
pub fn iterations(workload: &WorkloadUse, out_of_tree: &OutOfTree) -> u32 {
    out_of_tree.missing(workload).map_or(workload.repetitions(), |_| 0)
}

/// Describes a module for the agent.
fn loaded(module: &Module, disks: &[Disk]) -> job::Module {
    job::Module {
        path: module_path(module),
        parameters: disks::parameters(&module.name, disks),
        optional: module.optional,
    }
}

/// Returns the path of a module in the guest.
fn module_path(module: &Module) -> String {
    format!("{}/{}.ko", job::MODULES_PATH, module.name)
}

/// The largest padding in the initramfs of exact mode, in bytes.
const MOST_PADDING: usize = 1 << 20;

/// Composes the initramfs: agent, workloads, modules, users' programs, contents of RAM disks, and
/// the job. The same inputs give the same bytes. Fails when a file cannot be read.
pub fn initramfs(
    guest: &Guest,
    job: &Job,
    modules: &[Module],
    workloads: &[WorkloadUse],
    contents: &[Contents],
    shell: Option<&Path>,
) -> Result<Vec<u8>, JobError> {
    let mut archive = Archive::new();
    for directory in ["/dev", "/proc", "/sys", "/tmp"] {
        archive.directory(directory);
    }
    archive.console();
    if let Some(seed) = job.seed {
        // The padding moves everything after it to other pages, depending on the seed.
        let mut rng = fastrand::Rng::with_seed(seed.into());
        archive.file("/faultline/padding", &vec![0; rng.usize(..MOST_PADDING)]);
    }
    archive.program(job::AGENT_PATH, &read(&guest.agent)?);
    archive.program(job::WORKLOADS_PATH, &read(&guest.workloads)?);
    for module in modules {
        archive.file(&module_path(module), &module.read()?);
    }
    for Contents { directory, extents } in contents {
        archive.directory(directory);
        for (offset, bytes) in extents {
            archive.file(&format!("{directory}/{offset:x}"), bytes);
        }
    }
    for workload in workloads {
        for program in workload.programs() {
            let path = program.path();
            archive.program(&workloads::program_path(&workload.manifest.name, path), &read(path)?);
        }
    }
    if let Some(shell) = shell {
        archive.program(job::SHELL_PATH, &read(shell)?);
    }
    let job = serde_json::to_vec_pretty(job).expect("a job has only plain data");
    archive.file(job::JOB_PATH, &job);
    let mut bytes = archive.finish();
    // The kernel unpacks archives that follow each other, so the user's archive is appended.
    for own in workloads.iter().filter_map(|used| used.archive.as_ref()) {
        bytes.extend(read(own.path())?);
    }
    Ok(bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, JobError> {
    fs::read(path).map_err(|error| JobError::Read { path: path.to_owned(), error })
}

/// Returns the image that is booted: `vmlinux` if there is one, because the guest need not
/// decompress it (PVH), otherwise the kernel's own image.
pub fn image(kernel: &Kernel) -> &Path {
    kernel.vmlinux.as_ref().unwrap_or(&kernel.image)
}
