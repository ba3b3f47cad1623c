//! Decides how a machine executes: with KVM if a guest boots under it, else by emulation.

use std::fs;
use std::path::Path;

use flight::Job;
use kernels::Cache;
use machine::{Emulator, Engine, KVM_LIMIT, Probe};
use model::{Accel, Architecture, Kernel};

use crate::error::{BootError, in_file};
use crate::guest::Guest;
use crate::job::{self, image};

/// Returns the engine for `accel`. If the cache does not know whether KVM works on this host,
/// `kernel` is booted under KVM with an empty job in `directory`, and the cache keeps the result.
/// `say` gets a line if emulation is used instead. Guests of other architectures are emulated. Fails when
/// KVM was requested by name and does not work, or the files of the probe cannot be used.
pub fn choose(
    accel: Accel,
    emulator: &Emulator,
    (kernel, guest): (&Kernel, &Guest),
    cache: &Cache,
    directory: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Engine<'static>, BootError> {
    if accel == Accel::Tcg || emulator.arch() != Architecture::X86_64 {
        return Ok(Engine::Tcg);
    }
    fs::create_dir_all(directory).map_err(in_file(directory))?;
    let initramfs = directory.join("probe.cpio");
    let bytes = job::initramfs(guest, &Job::default(), &[], &[], &[], None)?;
    fs::write(&initramfs, bytes).map_err(in_file(&initramfs))?;
    let probe = Probe {
        emulator,
        image: image(kernel),
        initramfs: &initramfs,
        directory: &directory.join("probe"),
        answers: &cache.root().join("kvm.json"),
        limit: KVM_LIMIT,
    };
    let engine = probe.choose(accel, say)?;
    fs::remove_file(&initramfs).map_err(in_file(&initramfs))?;
    Ok(engine)
}
