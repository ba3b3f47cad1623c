//! Proves a culprit: measures it and its parent again, and reverts it on the bad end.

use std::collections::BTreeMap;

use boot::{BootError, code_difference};
use compare::{Difference, Signal};
use culprit::{LevelChange, Proof};
use lab::{Progress, RunError, Watch};
use model::{Experiment, INSTRUCTIONS, Kept, Mode, Pinned, Variant};
use plan::Request;

use crate::boots::{Booted, booted};
use crate::range::BuiltVariant;
use crate::trial::Trials;
use crate::variants::{kernel_of, of_kernel, variant};

/// The smallest number of boots of each kernel, in exact mode and in measured mode.
pub const FEWEST: [u32; 2] = [3, 5];
/// The largest number of boots of each kernel in measured mode, unless the user wants more.
const MOST: f64 = 40.0;
/// The size of a step, in standard errors, that exceeds a floor of 1 % in 9 of 10 proofs: the sum
/// of the normal quantiles of 0.995 and of 0.9.
const REACH: f64 = 2.576 + 1.282;
/// The option that aligns all functions to 64 bytes (`lib/Kconfig.debug`, since 5.14).
const ALIGNED: &str = "CONFIG_DEBUG_FORCE_FUNCTION_ALIGN_64B";

const PARENT: &str = "parent";
const CULPRIT: &str = "culprit";
const BAD: &str = "bad";
const REVERTED: &str = "reverted";

/// Measures again the change at `place`, whose step has these levels, and reverts it on the bad
/// end. Returns `None` if the commit has no parent. Fails when the host fails.
pub fn prove(
    trials: &mut Trials<'_>,
    place: usize,
    levels: [f64; 2],
    watch: &mut Watch<'_>,
) -> Result<Option<Proof>, RunError> {
    let (search, range, history) = (trials.search, trials.range, trials.history);
    let signal = &trials.signal().clone();
    let commit = trials.commit(place);
    let parents = &history.commits[place].parents;
    let (parent, before) = match parents.first() {
        Some(parent) => (parent, variant(search, parent)),
        None if commit.is_option() => {
            (&history.commits[place - 1].id, range.variant_at(search, place - 1))
        }
        None => return Ok(None),
    };
    let boots = boots(trials, levels);
    let before_it = if commit.is_option() { "the change before" } else { "its parent" };
    watch(Progress::Message(&format!("Measuring {} and {before_it} again", commit.short())));
    let pair = [(PARENT, before), (CULPRIT, range.variant_at(search, place))];
    let mut kernels = Kernels::default();
    for (name, variant) in pair.clone() {
        kernels.add(trials, name, variant, watch)?;
    }
    let built = Kernels(kernels.0.clone());
    let mut why = match parents.len() {
        0 if place == trials.bad() => {
            Some("it is the last change; without it the bad end is the change before")
        }
        1 if place == trials.bad() => {
            Some("it is the bad end; its parent is the bad end without it")
        }
        0 | 1 => None,
        _ => Some("a merge is not one change"),
    }
    .map(String::from);
    if why.is_none() {
        why = match range.without(search, place, &trials.lab.cache, watch)? {
            Ok(variant) => kernels.add(trials, REVERTED, variant, watch)?,
            Err(why) => Some(why),
        };
        if why.is_none() {
            kernels.add(trials, BAD, range.variant_at(search, trials.bad()), watch)?;
        }
    }
    let request = search.request(&format!("{}-proof", commit.short()), kernels.0, boots);
    let fresh = Fresh::measure(trials, &request, watch)?;
    let step = fresh.change(PARENT, CULPRIT, signal);
    let [instructions, aligned] = match request.experiment.mode {
        Mode::Measured if step.is_some_and(|step| step.is_beyond()) => {
            let measured = ProofPair { request: &request, pair, built, signal };
            layout(trials, measured, watch)?
        }
        _ => [None, None],
    };
    // In measured mode the symbols may not be known until the instructions were counted, so this
    // comes after it.
    let functions = match (fresh.kernel(PARENT), fresh.kernel(CULPRIT)) {
        (Some(parent), Some(culprit)) => code_difference(&trials.lab.cache, [parent, culprit]),
        _ => Err("one of the two kernels cannot be built".into()),
    };
    Ok(Some(Proof {
        experiment: fresh.id,
        parent: parent.clone(),
        step,
        reverted: match why {
            Some(why) => Err(why),
            None => fresh.change(BAD, REVERTED, signal).ok_or("no boot of it is complete".into()),
        },
        functions: functions.map(|it| it.functions.into_iter().map(|it| it.name).collect()),
        instructions,
        aligned,
    }))
}

/// A culprit and its parent, measured again.
struct ProofPair<'a> {
    request: &'a Request,
    /// The parent and the culprit by name.
    pair: [(&'static str, BuiltVariant); 2],
    /// The kernels that were built of them.
    built: Kernels,
    signal: &'a Signal,
}

/// Distinguishes a change of the executed code from a change of layout or caches. First compares
/// the kernel's instructions. If they do not change, measures again with all functions aligned to
/// 64 bytes. Returns both changes, or why they are not known; `None` for what was not tried or has
/// no figures.
fn layout(
    trials: &mut Trials<'_>,
    measured: ProofPair<'_>,
    watch: &mut Watch<'_>,
) -> Result<[Option<Result<LevelChange, String>>; 2], RunError> {
    let ProofPair { request: measured, pair, built, signal } = measured;
    let request = |what: &str, kernels: Kernels| {
        let mut request = measured.clone();
        request.experiment.name += &format!("-{what}");
        request.experiment.variants = kernels.0;
        request
    };
    let mut exact = request("instructions", built);
    (exact.experiment.mode, exact.experiment.boots) = (Mode::Exact, FEWEST[0]);
    watch(Progress::Message("Counting the instructions of both"));
    let counted = match Fresh::measure(trials, &exact, watch) {
        Err(error) if is_not_exact(&error) => Err(error.to_string()),
        counted => {
            let change = counted?.change(PARENT, CULPRIT, &Signal::kernel(INSTRUCTIONS, None));
            change.ok_or("no boot of both is complete".into())
        }
    };
    let is_layout = counted.as_ref().is_ok_and(|change| !change.is_beyond());
    if !is_layout {
        return Ok([Some(counted), None]);
    }
    watch(Progress::Message("Measuring both with all functions aligned to 64 bytes"));
    let mut kernels = Kernels::default();
    for (name, mut variant) in pair {
        variant.build.set.insert(ALIGNED.into(), "y".into());
        if let Some(why) = kernels.add(trials, name, variant, watch)? {
            return Ok([Some(counted), Some(Err(why))]);
        }
    }
    let aligned = request("aligned", kernels);
    let change = Fresh::measure(trials, &aligned, watch)?.change(PARENT, CULPRIT, signal);
    Ok([Some(counted), change.map(Ok)])
}

/// Returns whether the error says that exact mode does not support the machine or this QEMU.
fn is_not_exact(error: &RunError) -> bool {
    let (RunError::Machine(error) | RunError::Boot(BootError::Machine(error))) = error else {
        return false;
    };
    matches!(error, machine::Error::HostDisk { .. } | machine::Error::UnfitForExact { .. })
}

/// Returns the number of boots of each kernel that the proof of a step of this size needs. In
/// measured mode it depends on the variance of the boots so far.
fn boots(trials: &Trials<'_>, [before, after]: [f64; 2]) -> u32 {
    let wanted = trials.search.experiment.boots;
    if trials.search.experiment.mode == Mode::Exact {
        return wanted.max(FEWEST[0]);
    }
    let variance = trials.variance() / (after - before).powi(2);
    let number = (2.0 * REACH * REACH * variance).ceil() + 1.0;
    wanted.max(FEWEST[1]).max(number.clamp(0.0, MOST) as u32)
}

/// The kernels of a proof as named variants.
#[derive(Default)]
struct Kernels(Vec<Variant>);

impl Kernels {
    /// Obtains a kernel and adds it under this name. Returns why there is none; `None` if it was
    /// added.
    fn add(
        &mut self,
        trials: &Trials<'_>,
        name: &str,
        of: BuiltVariant,
        watch: &mut Watch<'_>,
    ) -> Result<Option<String>, RunError> {
        Ok(match kernel_of(trials.lab, trials.search, &of, watch)? {
            Ok(kernel) => {
                self.0.push(Variant { name: name.into(), ..of_kernel(of.variant, &kernel) });
                None
            }
            Err(why) => Some(why),
        })
    }
}

/// The experiment of a proof, with its boots that count, by variant.
struct Fresh {
    id: i64,
    experiment: Experiment,
    kept: BTreeMap<String, Vec<Kept>>,
}

impl Fresh {
    fn measure(
        trials: &mut Trials<'_>,
        request: &Request,
        watch: &mut Watch<'_>,
    ) -> Result<Self, RunError> {
        let Booted { summary, experiment, kept: all } = booted(trials.lab, request, watch)?;
        let mut kept: BTreeMap<String, Vec<Kept>> = BTreeMap::new();
        for boot in all.into_iter().filter(|kept| kept.boot.outcome.counts()) {
            kept.entry(boot.boot.variant.clone()).or_default().push(boot);
        }
        Ok(Self { id: summary.experiment.0, experiment, kept })
    }

    fn kernel(&self, name: &str) -> Option<&Pinned> {
        let variant = self.experiment.variants.iter().find(|variant| variant.name == name);
        variant.map(|variant| &variant.kernel)
    }

    fn change(&self, one: &str, other: &str, signal: &Signal) -> Option<LevelChange> {
        let figures = |name: &str| -> Vec<f64> {
            let own = self.kept.get(name).into_iter().flatten();
            own.filter_map(|kept| signal.of_boot(&self.experiment, kept)).collect()
        };
        let Difference { base, new, floor } = Difference::of(&figures(one), &figures(other))?;
        let least = match self.experiment.mode {
            Mode::Exact => signal.least(base),
            Mode::Measured => 0.0,
        };
        Some(LevelChange { levels: [base, new], floor: floor.map(|floor| floor.max(least)) })
    }
}
