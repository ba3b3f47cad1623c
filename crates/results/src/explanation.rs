//! Explains the difference between two stored variants of exact mode. Text, page and JSON are made
//! from the result ([`Explained`]).

use boot::{ChangedPlaces, changed_places};
use compare::{
    Code, Contribution, Explanation, Headline, Paths, Section, Subject, VariantBoots, check_cost,
    classes, explain, fields, headlines, paths, reasons,
};
use kernels::Cache;
use kernels::types::SLOTS;
use model::{
    Class, Experiment, INSTRUCTIONS, Kept, Point, Profile, Source, WorkloadUse, is_by_path,
};
use store::{Archive, Detail, ExperimentId};

use crate::across::Stored;
use crate::analysis::{code_of, place_of, read};
use crate::error::AnalysisError;
use crate::layouts::layouts;

/// The sources that explanations use.
const COUNTED: [&str; 2] = [Source::Vmstat.name(), SLOTS];

/// Most functions whose lines are looked for.
const MOST_PLACED: usize = 3;

/// Asks which functions a difference between two variants belongs to.
#[derive(Clone, Debug)]
pub struct ExplanationQuestion {
    /// The number of the experiment.
    pub experiment: ExperimentId,
    /// The names of the baseline and of the other variant.
    pub variants: [String; 2],
    /// The name of the workload. It can be `None` if the experiment has only one.
    pub workload: Option<String>,
    /// The name of the phase; `None` for the measured phases together.
    pub phase: Option<String>,
    /// The name of the cost; `None` for instructions.
    pub cost: Option<String>,
    /// Whether the kernel's cost is also asked for by system call and other reasons.
    pub by_system_call: bool,
    /// The only seed of each side; `None` for all seeds. With seeds, both sides can be one variant.
    pub seeds: Option<[u32; 2]>,
}

/// The explanation of a difference, and the boots that it explains.
pub struct Explained {
    /// Which functions the change belongs to.
    pub explanation: Explanation,
    pub(super) phase: Option<String>,
    pub(super) used: WorkloadUse,
    pub(super) experiment: Experiment,
    pub(super) places: [usize; 2],
    pub(super) kept: Vec<Kept>,
}

impl Explained {
    /// Explains a difference. If the cache has both kernels, functions whose code differs are
    /// marked. Fails when the experiment is not of exact mode, a name in the question does not
    /// exist, a variant has no profile, or the store cannot be read.
    pub fn of(store: &dyn Archive, asked: ExplanationQuestion) -> Result<Self, AnalysisError> {
        let id = asked.experiment;
        let (phase, cost) = (asked.phase.clone(), asked.cost.clone());
        let (variant, by_system_call) = (asked.variants[1].clone(), asked.by_system_call);
        let of_one_variant = asked.variants[0] == asked.variants[1];
        let Compared { experiment, kept, places, used } = find(store, asked)?;
        if experiment.mode.is_measured() {
            return Err(AnalysisError::NotCounted(id));
        }
        let cost = cost.as_deref().unwrap_or(INSTRUCTIONS);
        if by_system_call && !is_by_path(cost) {
            return Err(AnalysisError::NotByPath(cost.to_owned()));
        }
        check_cost(cost, profiles_of(&used, &kept))?;
        let [base, new] = sides(&experiment, places, &kept);
        let mut explanation = explain(&base, &new, &used, experiment.boots, cost);
        explanation.of_one_variant = of_one_variant;
        // To compare the code of two kernels takes much longer.
        check(&explanation, id, phase.as_deref())?;
        if cost == INSTRUCTIONS {
            explanation.classes = classes(&base, &new, &used, phase.as_deref());
        }
        explanation.fields = fields(&base, &new, &used, (phase.as_deref(), cost));
        if cost == Class::Transfer.name() {
            let counted = explain(&base, &new, &used, experiment.boots, INSTRUCTIONS);
            explanation.instructions = counted.section(phase.as_deref()).map(|it| it.totals.kernel);
        }
        explanation = explanation.with_layouts(|types| layouts([&base, &new], types));
        if by_system_call {
            explanation.reasons = reasons(&base, &new, &used, (phase.as_deref(), cost));
            if explanation.reasons.is_none() {
                return Err(AnalysisError::NotFollowed(id));
            }
        }
        if let Some(build) = &mut explanation.build {
            // A seed is not built.
            build.variant = variant;
        }
        let explanation = explanation.with_code(code_of(&experiment, places));
        Ok(Self { explanation, phase, used, experiment, places, kept })
    }

    /// Finds the lines at which the functions named first differ. Objects of a kernel that was built here
    /// without debug information are compiled again, which `say` tells.
    pub fn with_places(mut self, say: &dyn Fn(&str)) -> Self {
        let causes = self.explanation.section(self.phase.as_deref()).map(Section::causes);
        let changed = causes.into_iter().flatten().filter(|it| it.code == Some(Code::Differs));
        let functions: Vec<String> = changed.filter_map(function_of).take(MOST_PLACED).collect();
        if functions.is_empty() {
            return self;
        }
        let kernels = self.places.map(|place| &self.experiment.variants[place].kernel);
        let cache = Cache::open().map_err(|error| error.to_string());
        let found = cache.and_then(|cache| changed_places(&cache, kernels, &functions, say));
        let ChangedPlaces { places, unlined } = found
            .unwrap_or_else(|why| ChangedPlaces { unlined: vec![why], ..ChangedPlaces::default() });
        self.explanation = self.explanation.with_places(&places, unlined);
        self
    }

    /// Returns one headline for each measured phase: the change of the kernel's cost, and the
    /// function that holds it.
    pub fn headlines(&self) -> Vec<Headline> {
        headlines(&self.explanation, &self.used, |phase| self.of_phase(Some(phase)))
    }

    /// Returns the call paths of the phase that was asked for.
    pub fn paths(&self) -> Paths {
        self.of_phase(self.phase.as_deref())
    }

    fn of_phase(&self, phase: Option<&str>) -> Paths {
        let [base, new] = sides(&self.experiment, self.places, &self.kept);
        paths(&base, &new, &self.used, (phase, &self.explanation.cost.name))
    }
}

/// Returns the name of a function of the kernel itself.
pub(super) fn function_of(it: &Contribution) -> Option<String> {
    match &it.subject {
        Subject::Function { name, module } if module.is_empty() => Some(name.clone()),
        _ => None,
    }
}

/// The two variants that a question compares, the workload, and the boots of the experiment.
pub(super) struct Compared {
    pub experiment: Experiment,
    pub kept: Vec<Kept>,
    /// The indexes of the two variants in the experiment.
    pub places: [usize; 2],
    pub used: WorkloadUse,
}

/// Finds the variants and the workload, and reads the experiment's boots. Fails when a name does
/// not exist, the variants ran at different points of a sweep, or the store cannot be read.
pub(super) fn find(
    store: &dyn Archive,
    asked: ExplanationQuestion,
) -> Result<Compared, AnalysisError> {
    let ExplanationQuestion { experiment: id, variants, workload, seeds, .. } = asked;
    let Stored { mut experiment, mut kept, .. } =
        read(store, &[id], |_| Detail::Profiles(&COUNTED))?;
    let places = [place_of(&experiment, &variants[0])?, place_of(&experiment, &variants[1])?];
    let point = |place: usize| experiment.variants[place].point.as_ref().map(Point::name);
    if point(places[0]) != point(places[1]) {
        return Err(AnalysisError::OtherPoint(variants));
    }
    let used = used(&experiment, workload.as_deref())?.clone();
    if let Some(seeds) = seeds {
        one_seed_each(&mut experiment, &mut kept, places, seeds)?;
        return Ok(Compared { experiment, kept, places: [0, 1], used });
    }
    Ok(Compared { experiment, kept, places, used })
}

/// Leaves one boot of each side, as the only seeds of two variants of their own. Fails when a side has no complete boot
/// of its seed.
fn one_seed_each(
    experiment: &mut Experiment,
    kept: &mut Vec<Kept>,
    places: [usize; 2],
    seeds: [u32; 2],
) -> Result<(), AnalysisError> {
    let mut variants = Vec::new();
    let mut boots = Vec::new();
    for (place, seed) in places.into_iter().zip(seeds) {
        let mut variant = experiment.variants[place].clone();
        let is_complete = |it: &&Kept| {
            it.boot.variant == variant.name && !it.superseded && it.boot.outcome.counts()
        };
        let complete: Vec<&Kept> = kept.iter().filter(is_complete).collect();
        let own = complete.iter().find(|it| it.boot.boot_index == seed);
        let Some(mut one) = own.map(|it| (*it).clone()) else {
            let known = complete.iter().map(|it| it.boot.boot_index).collect();
            return Err(AnalysisError::NoSeed { variant: variant.name, seed, known });
        };
        variant.name = format!("{}, seed {seed}", variant.name);
        one.boot.variant.clone_from(&variant.name);
        one.boot.boot_index = 0;
        variants.push(variant);
        boots.push(one);
    }
    (experiment.variants, experiment.boots, *kept) = (variants, 1, boots);
    Ok(())
}

pub(super) fn sides<'a>(
    experiment: &'a Experiment,
    places: [usize; 2],
    kept: &'a [Kept],
) -> [VariantBoots<'a>; 2] {
    places.map(|place| VariantBoots::of(&experiment.variants[place], kept))
}

fn used<'a>(
    experiment: &'a Experiment,
    asked: Option<&str>,
) -> Result<&'a WorkloadUse, AnalysisError> {
    let found = match (asked, experiment.workloads.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(asked), all) => all.iter().find(|used| used.manifest.name == asked),
    };
    let known = || experiment.workloads.iter().map(|used| used.manifest.name.clone()).collect();
    found.ok_or_else(|| AnalysisError::NoWorkload {
        asked: asked.map(str::to_owned),
        known: known(),
    })
}

/// Returns the profiles of a workload in all boots.
pub(super) fn profiles_of<'a>(
    used: &'a WorkloadUse,
    kept: &'a [Kept],
) -> impl Iterator<Item = &'a Profile> {
    let profiles = kept.iter().flat_map(|kept| &kept.boot.profiles);
    profiles.filter(|profile| profile.workload == used.manifest.name)
}

/// Checks that both variants have profiles and that the phase exists.
fn check(
    explanation: &Explanation,
    experiment: ExperimentId,
    phase: Option<&str>,
) -> Result<(), AnalysisError> {
    let workload = explanation.workload.clone();
    if explanation.all.is_none() {
        let lacking = [&explanation.base, &explanation.new].into_iter().find(|it| it.seeds == 0);
        let variant = lacking.map_or(String::new(), |side| side.name.clone());
        return Err(AnalysisError::NoProfile { variant, workload, experiment });
    }
    if explanation.section(phase).is_none() {
        let phases = explanation.phases.iter().flat_map(|section| section.phase.as_deref());
        return Err(AnalysisError::no_phase_of(workload, phase.unwrap_or_default(), phases));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::{Manifest, Millis, Mode, Reading, Variant};

    use super::*;

    #[test]
    fn what_cannot_be_explained_is_refused_with_what_there_is() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store::open(&directory.path().join("store.db")).unwrap();
        let named = |name: &str| Variant { name: name.into(), ..Variant::default() };
        let used = |name: &str| {
            WorkloadUse::new(Manifest { name: name.into(), ..Manifest::default() }, 1, Millis(1))
        };
        let mut experiment = Experiment {
            name: "x".into(),
            mode: Mode::Exact,
            variants: ["old", "new"].map(named).into(),
            workloads: ["fault", "nas"].map(used).into(),
            boots: 1,
            ..Experiment::default()
        };
        let exact = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
        experiment.mode = Mode::Measured;
        let measured = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
        for (experiment, new, workload, told) in [
            (
                measured,
                "new",
                Some("nas"),
                "experiment 2 ran in measured mode, which does not count",
            ),
            (exact, "newer", None, "there is no variant `newer`; there are: old, new"),
            (exact, "new", None, "name one of the workloads with --workload: fault, nas"),
            (exact, "new", Some("ns"), "there is no workload `ns`; there are: fault, nas"),
            (
                exact,
                "new",
                Some("nas"),
                "`old` has no complete boot with a profile of nas: `faultl",
            ),
        ] {
            let variants = ["old", new].map(str::to_owned);
            let workload = workload.map(str::to_owned);
            let asked = ExplanationQuestion {
                experiment,
                variants,
                workload,
                phase: None,
                cost: None,
                by_system_call: false,
                seeds: None,
            };
            let error = Explained::of(&*store, asked).err().unwrap().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
