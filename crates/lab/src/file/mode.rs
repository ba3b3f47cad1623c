//! By which clock an experiment compares, and what only makes sense by that clock.

use model::{Accel, Mode, Profiling};
use toml::Spanned;

use super::{Checked, FileForm, fault};

/// Seeds of a variant in exact mode, where none are given.
pub const DEFAULT_SEEDS: u32 = 5;

/// Boots of each variant: `boots` in measured mode, `seeds` in exact mode.
pub fn check_boots(form: &FileForm) -> Checked<u32> {
    match (form.mode, &form.boots, &form.seeds) {
        (Mode::Measured, Some(boots), None) => positive(boots, "no boots", "3 say something"),
        (Mode::Exact, None, Some(seeds)) => positive(seeds, "no seeds", "5 are usual"),
        (Mode::Exact, None, None) => Ok(DEFAULT_SEEDS),
        (Mode::Measured, None, None) => {
            fault(0..0, "the number of boots is missing", "add boots = 3, or mode = \"exact\"")
        }
        (Mode::Measured, _, Some(seeds)) => {
            let hint = "measured mode has boots; for seeds add mode = \"exact\"";
            fault(seeds.span(), "seeds without exact mode", hint)
        }
        (Mode::Exact, Some(boots), _) => {
            let hint = "a boot with the same seed gives the same: use seeds = 5";
            fault(boots.span(), "boots in exact mode", hint)
        }
    }
}

fn positive(count: &Spanned<u32>, problem: &str, hint: &str) -> Checked<u32> {
    match *count.get_ref() {
        0 => fault(count.span(), problem, format!("ask for 1 or more; {hint}")),
        count => Ok(count),
    }
}

/// What is to be counted besides instructions.
pub fn check_profile(form: &FileForm) -> Checked<Profiling> {
    match &form.profile {
        Some(profile) if form.mode.is_measured() => {
            let hint = "only exact mode counts instructions: add mode = \"exact\"";
            fault(profile.span(), "a profile in measured mode", hint)
        }
        Some(profile) => Ok(*profile.get_ref()),
        None => Ok(Profiling::default()),
    }
}

/// Exact mode is emulation of its own kind.
pub fn check_accel(mode: Mode, accel: &Spanned<Accel>) -> Checked<Accel> {
    match *accel.get_ref() {
        Accel::Kvm if mode == Mode::Exact => {
            let hint = "real CPUs do not count so that two boots agree: leave accel out";
            fault(accel.span(), "exact mode under KVM", hint)
        }
        accel => Ok(accel),
    }
}
