//! Finds out which boots of an experiment the store has and how long such boots take, and
//! determines the digests of the experiment's inputs.

use std::time::Duration;
use std::{fs, io};

use boot::{Guest, out_of_tree};
use kernels::{Cache, digest};
use model::{
    CountedBy, Experiment, Host, Kernel, Machine, Manifest, Mode, Pinned, Profiling, Variant,
};
use plan::workloads::binaries;
use store::{Archive, Detail, ExperimentId};

use crate::due::Plan;
use crate::failures::{self, GivenUp};
use crate::hosts::{self, LeftOut};
use crate::{RunError, RunOptions};

/// The boots of an experiment that a run would not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The number of boots that are done.
    pub done: usize,
    /// The boots that would be left out, because another host began their blocks.
    pub of_other_hosts: LeftOut,
    /// The variants whose boots would be left out, because one boot failed.
    pub given_up: Vec<GivenUp>,
}

/// The guest's programs, and the versions of what counts instructions.
pub type Own<'a> = (&'a Guest, CountedBy);

/// Finds the boots that a run of this experiment would not do, before anything is fetched. The
/// store may have the same experiment. To find it, unknown digests are taken from the stored
/// experiment: of kernels, packages and file systems that only a run fetches or makes, and without
/// `own` also of the programs in the guest and of what counts instructions. Fails when the store,
/// the cache or a user's program cannot be read.
pub fn known(
    experiment: &Experiment,
    store: &dyn Archive,
    cache: &Cache,
    own: Option<&Own<'_>>,
    host: &Host,
    options: RunOptions,
) -> Result<Known, RunError> {
    for row in store.rows(Some(&experiment.name))?.iter().rev() {
        let id = row.id;
        let kept = store.experiment(id)?;
        if store::runs_the_same(&assumed(experiment, &kept, cache, own)?, &kept) {
            let done = done(store, id, options)?;
            let mut plan = Plan::of(experiment, experiment.boots, &done);
            let all = plan.due.len();
            let of_other_hosts =
                hosts::leave_out_kept(&mut plan, host, (store, id), (experiment.mode, &done))?;
            let failed = failures::before(experiment, options, (store, id))?;
            let (done, given_up) = (plan.boots - all, plan.give_up(failed));
            return Ok(Known { done, of_other_hosts, given_up });
        }
    }
    Ok(Known::default())
}

/// Returns the experiment with all digests. Unknown ones are taken from the stored experiment
/// `kept`.
fn assumed(
    experiment: &Experiment,
    kept: &Experiment,
    cache: &Cache,
    own: Option<&Own<'_>>,
) -> Result<Experiment, RunError> {
    let mut assumed = experiment.clone();
    for (variant, kept) in assumed.variants.iter_mut().zip(&kept.variants) {
        match cache.get(&variant.kernel.name)? {
            Some(kernel) => pin_kernel(variant, &kernel),
            None => variant.kernel = kept.kernel.clone(),
        }
    }
    pin_programs(&mut assumed)?;
    for (disk, kept) in assumed.machine.disks.iter_mut().zip(&kept.machine.disks) {
        if let (Some(format), Some(kept)) = (&mut disk.format, &kept.format) {
            format.digest.clone_from(&kept.digest);
        }
    }
    if !experiment.packages().is_empty() {
        assumed.userspace_digest.clone_from(&kept.userspace_digest);
    }
    if experiment.mode == Mode::Exact {
        (assumed.guest_digest, assumed.counted_by) = match own {
            Some((guest, counted_by)) => {
                (out_of_tree::pinned(guest.digest(), experiment), counted_by.clone())
            }
            None => (kept.guest_digest.clone(), kept.counted_by.clone()),
        };
    }
    Ok(assumed)
}

/// Sets the name and the digest of the kernel that a variant boots.
pub(super) fn pin_kernel(variant: &mut Variant, kernel: &Kernel) {
    variant.kernel = Pinned::from(&*kernel.name).with_digest(&*kernel.digest);
}

/// Sets the digests of the user's own files: programs and archives of workloads. Fails when a file
/// cannot be read, is not a cpio archive where one is wanted, or is a program that lacks something
/// it needs in the guest.
pub(super) fn pin_programs(experiment: &mut Experiment) -> Result<(), RunError> {
    let Machine { arch, kind, .. } = experiment.machine;
    for used in &mut experiment.workloads {
        let Manifest { packages, command, .. } = &used.manifest;
        let is_passed = command.iter().skip(1).any(|word| word.contains("{program}"));
        // A host has what its programs need, or they fail.
        let is_alone = kind.is_vm() && packages.is_empty() && !is_passed && used.archive.is_none();
        let archive = used.archive.clone();
        for file in used.files_mut() {
            let wrong = |error| RunError::Program { path: file.path().to_owned(), error };
            let bytes = fs::read(file.path()).map_err(wrong)?;
            let lack = match archive.as_ref() == Some(&*file) {
                true => (!bytes.starts_with(ARCHIVE)).then_some(NO_ARCHIVE),
                false => binaries::lack(&bytes, arch).filter(|_| is_alone),
            };
            if let Some(lack) = lack {
                return Err(wrong(io::Error::other(lack)));
            }
            file.digest = Some(digest(&bytes));
        }
    }
    Ok(())
}

/// The first bytes of a cpio archive that the kernel can unpack
/// (`Documentation/driver-api/early-userspace/buffer-format.rst`).
const ARCHIVE: &[u8] = b"070701";
/// The error for a file that is not such an archive.
const NO_ARCHIVE: &str = "it is not an archive of cpio: make one with `cpio -o -H newc`";

/// Returns the boots of a stored experiment that need no repetition, as variant and boot index.
/// With the option `retry_failed`, failed boots are not among them.
pub(super) fn done(
    store: &dyn Archive,
    id: ExperimentId,
    options: RunOptions,
) -> Result<Vec<(String, u32)>, store::Error> {
    let mut done = store.done(id)?;
    if options.retry_failed {
        let failed = store.failed(id)?;
        done.retain(|it| !failed.contains(it));
    }
    Ok(done)
}

/// Explains to the user why an exact experiment is not continued. Returns one line if the latest
/// stored experiment of the same name differs only in the programs that determine counts. `None` if
/// it differs in something else, if the store has this very experiment, or in measured mode. Fails
/// when the store cannot be read.
pub(super) fn recounted(
    pinned: &Experiment,
    store: &dyn Archive,
) -> Result<Option<String>, RunError> {
    let mut latest = None;
    if pinned.mode == Mode::Exact {
        for row in store.rows(Some(&pinned.name))?.iter().rev() {
            let kept = store.experiment(row.id)?;
            if store::runs_the_same(pinned, &kept) {
                return Ok(None);
            }
            latest.get_or_insert((row.id, kept));
        }
    }
    Ok(latest.and_then(|(id, kept)| {
        let changes = changes(pinned, &kept)?;
        Some(format!("a new experiment, since boots of {id} were counted otherwise: {changes}"))
    }))
}

/// Lists the programs that determine counts and differ between two experiments; `None` if anything
/// else differs.
fn changes(pinned: &Experiment, kept: &Experiment) -> Option<String> {
    let (guest_digest, counted_by) = (kept.guest_digest.clone(), kept.counted_by.clone());
    let otherwise = Experiment { guest_digest, counted_by, ..pinned.clone() };
    let programs = |it: &Experiment| {
        let CountedBy { emulator, plugin, clock, machine } = it.counted_by.clone();
        [emulator, plugin, clock, machine, it.guest_digest.clone()]
    };
    let names = ["emulator", "plugin", "clock library", "machine", "programs in the guest"];
    let (was, is) = (programs(kept), programs(pinned));
    let all = names.iter().zip(was.iter().zip(&is)).filter(|(_, (was, is))| was != is);
    let all = all.map(|(name, (was, is))| format!("{name} was {}, is {}", short(was), short(is)));
    store::runs_the_same(&otherwise, kept).then(|| all.collect::<Vec<_>>().join("; "))
}

/// Returns the first 12 digits of a digest, `unknown` for an empty text, and any other text
/// unchanged.
fn short(text: &str) -> &str {
    match text {
        "" => "unknown",
        digest if digest.len() == 64 => digest.get(..12).unwrap_or(digest),
        other => other,
    }
}

/// Returns whether two experiments have the same mode, topology, points and profile, and run the
/// same workloads with the same numbers of iterations. Kernels, settings and the functions whose lines are kept may
/// differ.
pub fn are_alike(one: &Experiment, other: &Experiment) -> bool {
    let work = |it: &Experiment| -> Vec<_> {
        it.workloads.iter().map(|used| (used.manifest.as_run(), used.iterations)).collect()
    };
    let profile = |it: &Experiment| Profiling { lines: Vec::new(), ..it.profile.clone() };
    one.mode == other.mode
        && one.machine.topology == other.machine.topology
        && one.machine.turn == other.machine.turn
        && one.points() == other.points()
        && profile(one) == profile(other)
        && work(one) == work(other)
}

/// Returns the mean wall time of the store's boots of experiments that are alike ([`are_alike`]),
/// if their figures count; `None` if there are none. Fails when the store cannot be read.
pub fn usual_wall(
    experiment: &Experiment,
    store: &dyn Archive,
) -> Result<Option<Duration>, store::Error> {
    let mut walls = Vec::new();
    for row in store.experiments()? {
        let other = store.experiment(row.id)?;
        if are_alike(&other, experiment) {
            let boots = store.boots(row.id, Detail::Summary)?;
            let complete = boots.iter().filter(|kept| kept.boot.outcome.counts());
            walls.extend(complete.map(|kept| kept.boot.host.wall));
        }
    }
    let mean = walls.iter().sum::<f64>() / walls.len() as f64;
    Ok(mean.is_finite().then(|| Duration::from_secs_f64(mean.max(0.0))))
}

#[cfg(test)]
mod tests {
    use model::{Millis, Reading, WorkloadUse};

    use super::*;

    #[test]
    fn another_program_that_decides_counts_makes_another_experiment_and_is_named() {
        let place = tempfile::tempdir().unwrap();
        let mut store = store::open(&place.path().join("x.db")).unwrap();
        let counted_by = CountedBy {
            emulator: "QEMU 10.0.2".into(),
            plugin: "ab".repeat(32),
            clock: "cd".repeat(32),
            machine: String::new(),
        };
        let kept = Experiment {
            name: "x".into(),
            mode: Mode::Exact,
            guest_digest: "ef".repeat(32),
            counted_by: counted_by.clone(),
            ..Experiment::default()
        };
        assert_eq!(recounted(&kept, &*store).unwrap(), None);
        let id = store.keep_experiment(&kept, Reading::USUAL).unwrap();
        assert_eq!(recounted(&kept, &*store).unwrap(), None);
        let more = Experiment { boots: 9, ..kept.clone() };
        assert_eq!(recounted(&more, &*store).unwrap(), None);
        let mut other = kept.clone();
        other.counted_by.plugin = "12".repeat(32);
        other.counted_by.emulator = "QEMU 10.0.3".into();
        other.counted_by.machine = "56".repeat(32);
        let said = "a new experiment, since boots of 1 were counted otherwise: \
                    emulator was QEMU 10.0.2, is QEMU 10.0.3; plugin was abababababab, is 121212121212; \
                    machine was unknown, is 565656565656";
        assert_eq!(recounted(&other, &*store).unwrap().as_deref(), Some(said));
        assert_ne!(store.keep_experiment(&other, Reading::USUAL).unwrap(), id);
        // The programs are those of the stored experiment again.
        assert_eq!(recounted(&kept, &*store).unwrap(), None);
        let work = Experiment { userspace_digest: "34".into(), ..other };
        assert_eq!(recounted(&work, &*store).unwrap(), None);
        let measured = Experiment { mode: Mode::Measured, ..kept };
        assert_eq!(recounted(&measured, &*store).unwrap(), None);
    }

    #[test]
    fn boots_that_keep_lines_take_as_long_as_others() {
        let usual = Experiment { mode: Mode::Exact, ..Experiment::default() };
        let mut again = usual.clone();
        again.profile.lines = vec!["do_wp_page".into()];
        assert!(are_alike(&usual, &again));
        again.profile.stacks = true;
        assert!(!are_alike(&usual, &again));
    }

    #[test]
    fn an_archive_of_the_users_is_pinned_or_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let archive = Some(Pinned::from(file.path().to_str().unwrap()));
        let used = WorkloadUse { archive, ..WorkloadUse::new(Manifest::default(), 1, Millis(1)) };
        let mut experiment = Experiment { workloads: vec![used], ..Experiment::default() };
        let error = pin_programs(&mut experiment).unwrap_err().to_string();
        assert!(error.contains(NO_ARCHIVE), "{error}");
        fs::write(file.path(), "070701...").unwrap();
        pin_programs(&mut experiment).unwrap();
        let pinned = experiment.workloads[0].archive.as_ref().unwrap();
        assert_eq!(pinned.digest, Some(digest(b"070701...")));
    }
}
