//! Checks the mode of an experiment, and the keys that only one mode allows.

use std::ops::Range;

use model::{Accel, Architecture, MAX_FREQUENCY, Machine, Mode, Profiling, Sequential};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Checked, FileForm, fault};
use crate::schedule::MOST_BOOTS;
use crate::sequential;

/// The default number of seeds of a variant in exact mode.
pub(super) const DEFAULT_SEEDS: u32 = 5;

/// The largest number of functions whose instructions are kept.
const MOST_LINES: usize = 100;

/// The number of boots: a number, or `auto` for as many as the verdicts need.
#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a number of boots from 1 to 10000, or \"auto\"")]
pub enum BootsForm {
    /// A fixed number of boots.
    Number(u32),
    /// As many as the verdicts need.
    Word(Auto),
}

/// The word for boots until every verdict is decided.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// The word `auto`: boots go on until verdicts are decided.
    Auto,
}

/// The boots of each variant: `boots` in measured mode, `seeds` in exact mode. With `boots = "auto"`, the
/// largest number of boots, and when they end.
pub(super) fn check_boots(form: &FileForm) -> Checked<(u32, Option<Sequential>)> {
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
            let hint = "use boots in measured mode, or add mode = \"exact\" or --mode exact";
            fault(seeds.span(), "seeds are only for exact mode", hint)
        }
        (Mode::Exact, Some(boots), _) => {
            let hint =
                "use seeds, such as seeds = 5 or --seeds 5; boots with the same seed are identical";
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
            let hint = match form.mode {
                Mode::Measured => "leave it out, or use boots = \"auto\" or --boots auto",
                Mode::Exact => "leave it out: exact mode boots each seed once",
            };
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

/// Checks what a profile has.
pub(super) fn check_profile(form: &FileForm) -> Checked<Profiling> {
    let Some(profile) = &form.profile else {
        return Ok(Profiling::default());
    };
    let mut checked = profile.get_ref().clone();
    let arch = form.machine.get_ref().arch();
    if let Some(model) = &checked.memory_model {
        let hint = "docs/memory-model.md has an example, and `milan-2s` is a model that is known";
        if let Some(problem) = model.problem() {
            return fault(profile.span(), format!("memory model: {problem}"), hint);
        }
        if arch == Some(Architecture::Arm64) {
            let hint = "leave it out, or use x86_64";
            return fault(profile.span(), "memory models are not used on arm64 yet", hint);
        }
    }
    match check_profiling(form.mode, &mut checked) {
        Ok(()) => Ok(checked),
        Err((problem, hint)) => fault(profile.span(), problem, hint),
    }
}

/// Checks what a profile has in a mode, and sorts its lists.
///
/// # Errors
/// The problem, and a hint.
pub fn check_profiling(
    mode: Mode,
    profile: &mut Profiling,
) -> Result<(), (&'static str, &'static str)> {
    profile.lines.sort();
    profile.lines.dedup();
    let Profiling { accesses, stacks, transfers, memory_model, lines, sampled, frequency } =
        profile;
    if mode.is_measured() && memory_model.is_some() {
        let hint = "leave it out, or add mode = \"exact\" or --mode exact";
        return Err(("a memory model is only for exact mode", hint));
    }
    if mode.is_measured() && (*accesses || *stacks || *transfers || !lines.is_empty()) {
        let hint = "use sampled = true, or add mode = \"exact\" or --mode exact";
        return Err(("accesses, stacks, transfers and lines are only for exact mode", hint));
    }
    if lines.len() > MOST_LINES || !lines.iter().all(|name| is_function(name)) {
        let hint = "such as lines = [\"do_wp_page\"], without a suffix such as .isra.0";
        return Err(("lines is not a list of at most 100 names of functions", hint));
    }
    if mode == Mode::Exact && *sampled {
        let hint = "leave it out, or use stacks = true: exact mode counts every instruction";
        return Err(("sampled is only for measured mode", hint));
    }
    match frequency {
        Some(_) if !*sampled => {
            Err(("frequency is only for samples", "leave it out, or add sampled = true"))
        }
        Some(frequency) if !(1..=MAX_FREQUENCY).contains(frequency) => {
            Err(("the frequency is not from 1 to 10000", "such as frequency = 99"))
        }
        _ => Ok(()),
    }
}

/// Checks that CPUs can take lines from each other, if that is to be counted: on each of these machines.
pub(super) fn check_transfers<'a>(
    profile: &Profiling,
    mut machines: impl Iterator<Item = &'a Machine>,
    place: Range<usize>,
) -> Checked<()> {
    let problem = |machine: &Machine| match (machine.arch, machine.topology.cpus(), machine.turn) {
        (Architecture::Arm64, ..) => Some((
            "transfers of lines are not counted on arm64 yet",
            "leave transfers out, or use x86_64",
        )),
        (_, 2..=MOST_CPUS, Some(_)) => None,
        (_, 2..=MOST_CPUS, None) => Some((
            "with QEMU's turns CPUs take hardly any lines from each other",
            "leave turn out, or use a number of instructions",
        )),
        _ => Some((
            "transfers of lines are counted on 2 to 64 CPUs",
            "leave transfers out, or use another number of CPUs",
        )),
    };
    match machines.find_map(problem).filter(|_| profile.transfers) {
        Some((problem, hint)) => fault(place, problem, hint),
        None => Ok(()),
    }
}

/// The largest number of CPUs between which transfers of lines are counted.
const MOST_CPUS: u32 = 64;

/// Whether a text can be the name of a function in C.
fn is_function(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_letter) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// Checks the accelerator. Exact mode always uses emulation.
pub(super) fn check_accel(mode: Mode, accel: &Spanned<Accel>) -> Checked<Accel> {
    match *accel.get_ref() {
        Accel::Kvm if mode == Mode::Exact => {
            let hint = "leave it out; real CPUs do not count instructions reproducibly";
            fault(accel.span(), "exact mode cannot use KVM", hint)
        }
        accel => Ok(accel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_its_own_profile() {
        let said = |mode, keys: &str| {
            let mut profile: Profiling = toml::from_str(keys).unwrap();
            check_profiling(mode, &mut profile).err().map(|(problem, _)| problem)
        };
        use Mode::{Exact, Measured};
        assert_eq!(said(Measured, "sampled = true\nfrequency = 250"), None);
        assert_eq!(said(Measured, ""), None);
        assert_eq!(said(Exact, "memory_model = \"milan-2s\""), None);
        assert_eq!(said(Exact, "stacks = true\nlines = [\"do_wp_page\"]"), None);
        for (mode, keys, problem) in [
            (
                Measured,
                "stacks = true",
                "accesses, stacks, transfers and lines are only for exact mode",
            ),
            (
                Measured,
                "lines = [\"f\"]",
                "accesses, stacks, transfers and lines are only for exact mode",
            ),
            (
                Exact,
                "lines = [\"f.isra.0\"]",
                "lines is not a list of at most 100 names of functions",
            ),
            (Exact, "lines = [\"\"]", "lines is not a list of at most 100 names of functions"),
            (Measured, "memory_model = \"milan-2s\"", "a memory model is only for exact mode"),
            (Exact, "sampled = true", "sampled is only for measured mode"),
            (Measured, "frequency = 9", "frequency is only for samples"),
            (Measured, "sampled = true\nfrequency = 0", "the frequency is not from 1 to 10000"),
            (Measured, "sampled = true\nfrequency = 10001", "the frequency is not from 1 to 10000"),
        ] {
            assert_eq!(said(mode, keys), Some(problem), "{keys}");
        }
    }
}
