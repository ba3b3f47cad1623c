//! One name for each kernel of a mail. Names that move, such as `newest`, are replaced by the version that booted.

use std::collections::{BTreeMap, BTreeSet};

use compare::{BUILT_AS, Comparison, Explained, Results, VariantBoots};
use model::{Reading, Variant};

use super::{kernel, reproduce};

/// Names the newest kernel of Debian's archive.
const NEWEST: &str = "newest";

/// The versions of kernels that are named by their series or as the newest one, by these names.
pub struct Versions(BTreeMap<String, String>);

impl Versions {
    /// Returns the versions that booted. `None` if no name moves, or if variants would get the same name.
    pub fn of(results: &Results<'_>) -> Option<Self> {
        let mut versions = BTreeMap::<String, BTreeSet<String>>::new();
        for it in &results.variants {
            if let Some((name, version)) = moving(it) {
                versions.entry(name.to_owned()).or_default().insert(version);
            }
        }
        // A kernel can have another version in another experiment.
        let sure = versions.into_iter().filter(|(_, versions)| versions.len() == 1);
        let sure = sure
            .flat_map(|(name, versions)| versions.into_iter().map(move |it| (name.clone(), it)));
        let versions = Self(sure.collect());
        let names: BTreeSet<String> =
            results.variants.iter().map(|it| versions.renamed(&it.variant.name)).collect();
        let is_distinct = names.len() == results.variants.len();
        (!versions.0.is_empty() && is_distinct).then_some(versions)
    }

    /// Returns a variant's name with the versions of its kernels.
    fn renamed(&self, name: &str) -> String {
        let renamed = name.split(BUILT_AS).map(|part| {
            let (kernel, rest) = part.split_at(end_of_kernel(part));
            format!("{}{rest}", self.0.get(kernel).map_or(kernel, String::as_str))
        });
        renamed.collect::<Vec<_>>().join(BUILT_AS)
    }

    /// Renames the variants of a comparison.
    pub fn rename(&self, comparison: &mut Comparison) {
        let by = |name: &mut String| *name = self.renamed(name);
        comparison.variants.iter_mut().for_each(|it| by(&mut it.name));
        for table in &mut comparison.tables {
            table.oddities.iter_mut().for_each(|it| by(&mut it.variant));
            let axes = table.effects.iter_mut().flat_map(|it| &mut it.axes);
            axes.flat_map(|it| &mut it.values).for_each(by);
        }
        comparison.cross_checks.iter_mut().for_each(|it| by(&mut it.variant));
        let notes = &mut comparison.notes;
        notes.config.iter_mut().for_each(|it| by(&mut it.variant));
        notes.builds.iter_mut().for_each(|it| by(&mut it.variant));
        notes.mixed.iter_mut().for_each(|it| by(&mut it.variant));
        notes.complaints.iter_mut().for_each(|it| by(&mut it.variant));
        notes.without_log.iter_mut().for_each(by);
        notes.unmeasured.iter_mut().chain(&mut notes.left).for_each(|it| by(&mut it.variant));
        notes.host.iter_mut().for_each(|it| by(&mut it.variant));
        notes.findings.iter_mut().for_each(|it| by(&mut it.variant));
        notes.counting.iter_mut().for_each(|it| by(&mut it.variant));
        comparison.steps.iter_mut().for_each(|it| self.rename(&mut it.comparison));
        comparison.points.iter_mut().for_each(|it| self.rename(&mut it.comparison));
    }

    /// Returns variants by their new names.
    pub fn variants(&self, results: &Results<'_>) -> Vec<Variant> {
        let renamed = results.variants.iter().map(|it| {
            let mut variant = it.variant.clone();
            variant.name = self.renamed(&variant.name);
            if let Some(point) = &mut variant.point {
                point.variant = self.renamed(&point.variant);
            }
            variant
        });
        renamed.collect()
    }

    /// Returns a reading of the renamed variants.
    pub fn reading(&self, reading: &Reading) -> Reading {
        let own = reading.variants.iter().map(|(name, own)| {
            let mut own = own.clone();
            if let Some(step) = &mut own.step {
                step.after = self.renamed(&step.after);
            }
            (self.renamed(name), own)
        });
        Reading { variants: own.collect(), workloads: reading.workloads.clone() }
    }

    /// Returns what was explained, of the renamed variants.
    pub fn explained(&self, explained: &[Explained]) -> Vec<Explained> {
        let mut explained = explained.to_vec();
        let by = |name: &mut String| *name = self.renamed(name);
        for it in &mut explained {
            by(&mut it.variant);
            for explanation in [&mut it.explanation].into_iter().chain(&mut it.transfers) {
                [&mut explanation.base.name, &mut explanation.new.name].into_iter().for_each(by);
            }
            it.by_kernel.iter_mut().flat_map(|it| &mut it.kernels).for_each(|it| by(&mut it.0));
        }
        explained
    }
}

/// Returns the name of a variant's kernel and the version that booted, if the name moves. That of a package of Debian is
/// the package's, because its release may end in `.0`.
fn moving<'a>(booted: &VariantBoots<'a>) -> Option<(&'a str, String)> {
    let version = version(booted)?;
    let name = &booted.variant.name;
    let kernel = &name[..end_of_kernel(name)];
    let is_series =
        kernel.contains('.') && version.strip_prefix(kernel).is_some_and(|it| it.starts_with('.'));
    let moves = kernel == NEWEST || (is_package(booted) && is_series);
    moves.then_some((kernel, version))
}

/// Returns where the kernel's name ends that a variant's name begins with.
fn end_of_kernel(name: &str) -> usize {
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '.';
    name.find(is_other).unwrap_or(name.len())
}

fn is_package(booted: &VariantBoots<'_>) -> bool {
    reproduce::facts(booted).and_then(kernel::package).is_some()
}

/// Returns the upstream version of the kernel that booted: `7.3.4` of the release `7.3.4+deb13-cloud-amd64`.
fn version(booted: &VariantBoots<'_>) -> Option<String> {
    let facts = reproduce::facts(booted)?;
    let version = kernel::package(facts).unwrap_or(&facts.release);
    // A candidate's package sorts before the release: 6.13~rc7-1.
    let version = version.replacen("~rc", "-rc", 1);
    let mut ends = version.match_indices(['+', '-', '~']).map(|(end, _)| end);
    let end = ends.find(|end| !version[*end..].starts_with("-rc"));
    let version = &version[..end.unwrap_or(version.len())];
    (!version.is_empty()).then(|| version.to_owned())
}

/// Returns the name of a variant for a subject: one that begins with the version of a package says whose.
pub fn of_subject(booted: &VariantBoots<'_>) -> String {
    let name = &booted.variant.name;
    let version = version(booted).filter(|_| is_package(booted));
    let rest = version.as_ref().and_then(|it| name.strip_prefix(it.as_str()));
    let is_its =
        rest.is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '.'));
    if is_its { format!("Debian {name}") } else { name.clone() }
}
