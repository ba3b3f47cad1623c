//! Checks the mode of an experiment, and the keys that only one mode allows.

use model::{Accel, Mode, Profiling, Sequential};
use serde::Deserialize;
use toml::Spanned;

use super::{Checked, FileForm, fault};
use crate::schedule::MOST_BOOTS;
use crate::sequential;

/// The default number of seeds of a variant in exact mode.
pub const DEFAULT_SEEDS: u32 = 5;

/// The number of boots: a number, or `auto` for as many as the verdicts need.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of boots from 1 to 10000, or \"auto\"")]
pub enum BootsForm {
    Number(u32),
    Word(Auto),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    Auto,
}

/// The boots of each variant: `boots` in measured mode, `seeds` in exact mode. With `boots = "auto"`, the
/// largest number of boots, and when they end.
pub fn check_boots(form: &FileForm) -> Checked<(u32, Option<Sequential>)> {
    let boots = match (form.mode, &form.boots, &form.seeds) {
        (Mode::Measured, Some(boots), None) => match *boots.get_ref() {
            BootsForm::Number(number) => positive(boots, number, "boots is 0", "such as 3"),
            BootsForm::Word(Auto::Auto) => return check_sequential(form),
        },
        (Mode::Exact, None, Some(seeds)) => {
            positive(seeds, *seeds.get_ref(), "seeds is 0", "such as 5")
        }
        (Mode::Exact, None, None) => Ok(DEFAULT_SEEDS),
        (Mode::Measured, None, None) => {
            fault(0..0, "the number of boots is missing", "add boots = 3, or mode = \"exact\"")
        }
        (Mode::Measured, _, Some(seeds)) => {
            let hint = "use boots in measured mode, or add mode = \"exact\"";
            fault(seeds.span(), "seeds are only for exact mode", hint)
        }
        (Mode::Exact, Some(boots), _) => {
            let hint = "use seeds, such as seeds = 5; boots with the same seed are identical";
            fault(boots.span(), "boots is only for measured mode", hint)
        }
    }?;
    let keys = [
        ("at_most", form.at_most.as_ref().map(Spanned::span)),
        ("margin", form.margin.as_ref().map(Spanned::span)),
        ("budget", form.budget.as_ref().map(Spanned::span)),
    ];
    match keys.into_iter().find_map(|(key, span)| Some((key, span?))) {
        Some((key, span)) => {
            let hint = "leave it out, or use boots = \"auto\"";
            fault(span, format!("{key} is only for boots = \"auto\""), hint)
        }
        None => Ok((boots, None)),
    }
}

fn positive<T>(place: &Spanned<T>, count: u32, problem: &str, hint: &str) -> Checked<u32> {
    match count {
        0 => fault(place.span(), problem, format!("use 1 or more, {hint}")),
        count => not_too_many(place, count),
    }
}

fn not_too_many<T>(place: &Spanned<T>, count: u32) -> Checked<u32> {
    match count {
        0..=MOST_BOOTS => Ok(count),
        _ => {
            let hint = format!("a variant has at most {MOST_BOOTS} boots");
            fault(place.span(), format!("{count} boots are too many"), hint)
        }
    }
}

fn check_sequential(form: &FileForm) -> Checked<(u32, Option<Sequential>)> {
    let at_most = match &form.at_most {
        Some(boots) if *boots.get_ref() < sequential::FEWEST => {
            let problem = format!("at_most = {} is too small", boots.get_ref());
            fault(boots.span(), problem, sequential::TOO_FEW)
        }
        Some(boots) => not_too_many(boots, *boots.get_ref()),
        None => Ok(sequential::AT_MOST),
    }?;
    let margin = match &form.margin {
        Some(margin) if !sequential::is_margin(*margin.get_ref()) => fault(
            margin.span(),
            format!("the margin {} is invalid", margin.get_ref()),
            sequential::NO_MARGIN,
        ),
        margin => Ok(margin.as_ref().map_or(sequential::MARGIN, |margin| *margin.get_ref())),
    }?;
    let budget = form.budget.as_ref().map(|budget| *budget.get_ref());
    Ok((sequential::last(at_most), Some(Sequential { margin: margin.0, budget })))
}

/// Checks what is counted besides instructions.
pub fn check_profile(form: &FileForm) -> Checked<Profiling> {
    match &form.profile {
        Some(profile) if form.mode.is_measured() => {
            let hint = "leave it out, or add mode = \"exact\"";
            fault(profile.span(), "profile is only for exact mode", hint)
        }
        Some(profile) => Ok(*profile.get_ref()),
        None => Ok(Profiling::default()),
    }
}

/// Checks the accelerator. Exact mode always uses emulation.
pub fn check_accel(mode: Mode, accel: &Spanned<Accel>) -> Checked<Accel> {
    match *accel.get_ref() {
        Accel::Kvm if mode == Mode::Exact => {
            let hint = "leave accel out: real CPUs do not count instructions reproducibly";
            fault(accel.span(), "exact mode cannot use KVM", hint)
        }
        accel => Ok(accel),
    }
}
