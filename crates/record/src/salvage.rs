//! Handles the directories that an interrupted run left, each with the recording of a boot. A
//! recording is stored as a boot. If its experiment is unknown or does not fit, its directory is
//! renamed. No recording is deleted before it is stored.

use std::path::{Path, PathBuf};
use std::{fs, io};

use model::{Experiment, Mode, Outcome};
use plan::schedule::{MOST_BOOTS, Slot, files_of};
use store::{Archive, Detail, ExperimentId, Standing};

use crate::conclude::{Head, conclude, unknown_load};

/// Prefixes of directories of boots that repeat a stored boot or only read symbols. Such
/// directories are removed.
const AGAIN: [&str; 3] = ["again-", "replay-", "symbols"];
/// The prefix that a directory gets if its boot cannot be stored.
const ASIDE: &str = "unkept-";

/// Why a directory could not be handled.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// A file or directory cannot be read, renamed or removed.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Stores the boots that an interrupted run left in `scratch`, and removes or renames their
/// directories. The caller holds the lock on `scratch`. Passes a message for each stored or renamed
/// boot to `say`. Fails when a directory or the store cannot be read or written.
pub fn salvage(
    store: &mut dyn Archive,
    scratch: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(), SalvageError> {
    let at = |error| SalvageError::File { path: scratch.to_owned(), error };
    for entry in fs::read_dir(scratch).map_err(at)? {
        let directory = entry.map_err(at)?.path();
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if directory.is_dir() && AGAIN.iter().any(|prefix| name.starts_with(prefix)) {
            remove(&directory)?;
            continue;
        }
        // Other directories were renamed before, or are from a KVM probe.
        let of_boot = name.starts_with(|first: char| first.is_ascii_digit());
        if directory.is_dir() && of_boot {
            leftover(store, &directory, &name, say)?;
        }
    }
    Ok(())
}

fn leftover(
    store: &mut dyn Archive,
    directory: &Path,
    name: &str,
    say: &mut dyn FnMut(&str),
) -> Result<(), SalvageError> {
    // QEMU creates this file before the guest records anything. Without it there is nothing to
    // store.
    if !directory.join(machine::RECORDER_FILE).exists() {
        return remove(directory);
    }
    let known = owner(store, directory, name);
    let (experiment, head) = match known {
        Ok(known) => known,
        Err(why) => return set_aside(directory, name, &why, say),
    };
    if is_kept(store, experiment, &head)? {
        return remove(directory);
    }
    let (variant, of, mode) = (head.variant.clone(), head.experiment.clone(), head.mode);
    match conclude(head, directory, None, unknown_load(), None) {
        Ok(mut boot) => {
            // Exact counts need the kernel's symbols, which are not available here. So the boot is
            // repeated.
            if mode == Mode::Exact {
                boot.outcome = Outcome::Interrupted;
            }
            match boot.outcome {
                Outcome::Invalid(_) => store.keep(experiment, &boot, &[], Standing::Aside)?,
                _ => store.keep_boot(experiment, &boot)?,
            };
            let outcome = &boot.outcome;
            say(&format!(
                "Stored a boot of {variant} in {of} that an interrupted run left: {outcome}"
            ));
            remove(directory)
        }
        Err(error) => set_aside(directory, name, &error.to_string(), say),
    }
}

/// Finds the experiment and the description of the boot in this directory. The error says why they
/// are unknown or do not fit.
fn owner(
    store: &dyn Archive,
    directory: &Path,
    name: &str,
) -> Result<(ExperimentId, Head), String> {
    let head = Head::read(directory).map_err(|error| format!("boot.json: {error}"))?;
    let number = name.split('-').next().and_then(|number| number.parse().ok());
    let id = ExperimentId(number.ok_or("its name does not begin with an experiment's number")?);
    let experiment = store.experiment(id).map_err(|error| error.to_string())?;
    if experiment.name != head.experiment {
        return Err(format!(
            "it belongs to experiment `{}`, not `{}`",
            head.experiment, experiment.name
        ));
    }
    match misfit(&experiment, &head, |slot| files_of(id, slot) == name) {
        Some(what) => Err(format!("boot.json: {what} not of experiment `{}`", experiment.name)),
        None => Ok((id, head)),
    }
}

/// Checks that the description of a boot fits its experiment. Returns what does not fit, as the
/// start of a message; `None` if everything does. `is_place` tells whether the boot in a slot would
/// be in this directory.
fn misfit(
    experiment: &Experiment,
    head: &Head,
    is_place: impl Fn(Slot) -> bool,
) -> Option<&'static str> {
    let Head { boot_index, block, facts, .. } = head;
    let Some(number) = experiment.variants.iter().position(|it| it.name == head.variant) else {
        return Some("its variant is");
    };
    let variant = &experiment.variants[number];
    let slot = Slot { variant: number, boot_index: *boot_index, block: *block };
    if !is_place(slot) || boot_index != block || *boot_index >= MOST_BOOTS {
        return Some("the numbers of its boot are");
    }
    let workloads = &experiment.workloads;
    let is_same = workloads.len() == head.workloads.len()
        && workloads.iter().zip(&head.workloads).all(|(used, (name, iterations))| {
            // A workload that the kernel does not support has 0 iterations.
            used.manifest.name == *name && [0, used.repetitions()].contains(iterations)
        });
    if !is_same {
        return Some("its workloads or their iterations are");
    }
    let is_kernel = variant.kernel.digest.as_ref().is_none_or(|it| *it == facts.kernel_digest);
    if head.mode != experiment.mode
        || !is_kernel
        || facts.userspace_digest != experiment.userspace_digest
    {
        return Some("its kernel, its user space or its mode is");
    }
    None
}

/// Returns whether the store already has this boot, or another boot in its place that need not be
/// repeated.
fn is_kept(store: &dyn Archive, id: ExperimentId, head: &Head) -> Result<bool, store::Error> {
    let of = (head.variant.clone(), head.boot_index);
    if store.done(id)?.contains(&of) {
        return Ok(true);
    }
    let boots = store.boots(id, Detail::Summary)?;
    let same = |boot: &model::Boot| {
        (boot.started, boot.boot_index) == (head.started, head.boot_index)
            && boot.variant == head.variant
    };
    Ok(boots.iter().any(|kept| same(&kept.boot)))
}

fn set_aside(
    directory: &Path,
    name: &str,
    why: &str,
    say: &mut dyn FnMut(&str),
) -> Result<(), SalvageError> {
    let mut aside = directory.with_file_name(format!("{ASIDE}{name}"));
    for number in 2.. {
        if !aside.exists() {
            break;
        }
        aside = directory.with_file_name(format!("{ASIDE}{name}-{number}"));
    }
    fs::rename(directory, &aside)
        .map_err(|error| SalvageError::File { path: aside.clone(), error })?;
    say(&format!(
        "An interrupted run left a recording, which is now in {}: {why}",
        aside.display()
    ));
    Ok(())
}

/// Removes the directory of a boot that is stored or never ran. The directory need not exist: a
/// boot whose kernel cannot be built has none.
pub fn remove(directory: &Path) -> Result<(), SalvageError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.map_err(|error| SalvageError::File { path: directory.to_owned(), error })
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Manifest, Millis, Pinned, Reading, Variant, WorkloadUse};

    use super::*;
    use crate::collect::tests::{job, recorded};
    use crate::conclude::tests::head;

    /// Returns the experiment of [`head`].
    fn experiment() -> Experiment {
        let kernel = Pinned::from("6.1").with_digest("5bd1");
        let [(name, iterations)] = job();
        let manifest = Manifest { name, ..Manifest::default() };
        Experiment {
            name: "e".into(),
            variants: vec![Variant { name: "v".into(), kernel, ..Variant::default() }],
            workloads: vec![WorkloadUse::new(manifest, iterations, Millis(1000))],
            boots: 5,
            ..Experiment::default()
        }
    }

    #[test]
    fn a_boot_is_stored_only_if_it_fits_its_experiment() {
        type Change = fn(&mut Head);
        let place = tempfile::tempdir().unwrap();
        let mut store = store::open(&place.path().join("x.db")).unwrap();
        let id = store.keep_experiment(&experiment(), Reading::USUAL).unwrap();
        let scratch = place.path().join("running");
        let name = format!("{id}-0-3");
        let mut left = |change: Change| {
            let directory = scratch.join(&name);
            fs::create_dir_all(&directory).unwrap();
            let mut head = head();
            change(&mut head);
            head.write(&directory).unwrap();
            fs::write(directory.join(machine::RECORDER_FILE), recorded()).unwrap();
            let mut said = String::new();
            salvage(&mut *store, &scratch, &mut |line| said += line).unwrap();
            (said, store.boots(id, Detail::Summary).unwrap().len())
        };
        let numbers = "the numbers of its boot are";
        let workloads = "its workloads or their iterations are";
        let machine = "its kernel, its user space or its mode is";
        let changes: [(Change, &str); 8] = [
            (|head| head.variant = "w".into(), "its variant is"),
            (|head| head.boot_index = 2, numbers),
            (|head| head.block = 2, numbers),
            (|head| head.workloads[0].1 = 1, workloads),
            (|head| head.workloads[0].0 = "b".into(), workloads),
            (|head| head.workloads.clear(), workloads),
            (|head| head.facts.kernel_digest = "5bd2".into(), machine),
            (|head| head.mode = Mode::Exact, machine),
        ];
        for (change, what) in changes {
            let (said, kept) = left(change);
            assert!(said.ends_with(&format!("boot.json: {what} not of experiment `e`")), "{said}");
            assert_eq!(kept, 0);
        }
        let (said, kept) = left(|_| ());
        assert_eq!(said, "Stored a boot of v in e that an interrupted run left: complete");
        assert_eq!(kept, 1);
        let aside = fs::read_dir(&scratch).unwrap().map(|it| it.unwrap().path());
        assert_eq!(aside.filter(|it| it.join(machine::RECORDER_FILE).exists()).count(), 8);
    }

    #[test]
    fn recordings_are_stored_or_renamed() {
        let place = tempfile::tempdir().unwrap();
        let mut store = store::open(&place.path().join("x.db")).unwrap();
        let scratch = place.path().join("running");
        for (name, file) in [("7-0-0", machine::RECORDER_FILE), ("8-0-0", "initramfs.cpio")] {
            fs::create_dir_all(scratch.join(name)).unwrap();
            fs::write(scratch.join(name).join(file), "recorded").unwrap();
        }
        for _ in 0..2 {
            let mut said = Vec::new();
            salvage(&mut *store, &scratch, &mut |line| said.push(line.to_owned())).unwrap();
            let aside = scratch.join("unkept-7-0-0").join(machine::RECORDER_FILE);
            assert_eq!(fs::read(aside).unwrap(), b"recorded");
            assert!(!scratch.join("8-0-0").exists() && !scratch.join("7-0-0").exists());
        }
    }
}
