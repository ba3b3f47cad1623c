//! The reading of an experiment: how its figures are read.

use std::collections::BTreeMap;

use crate::workload::matches;
use crate::{Manifest, Metric, Variant, WorkloadUse};

/// How the figures of an experiment are read, besides what its manifests say. It is not part of the experiment's
/// identity, because the same boots can be read in several ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Readings by the short names of variants ([`Variant::short_name`]). A variant without an entry has no axes.
    pub variants: BTreeMap<String, VariantReading>,
    /// Readings by the names of workloads. A workload without an entry is read as its manifest says.
    pub workloads: BTreeMap<String, WorkloadReading>,
}

/// The relation of a variant to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariantReading {
    /// Its place in a matrix of variants: the names of the axes and its value on each.
    pub axes: Vec<(String, String)>,
    /// The patch that it adds, if it is a step of a series of patches.
    pub step: Option<PatchStep>,
}

/// A step of a series of patches.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PatchStep {
    /// The name of the variant before it; in a sweep its short name ([`Variant::short_name`]).
    pub after: String,
    /// The subject of the patch that it adds.
    pub patch: String,
}

/// The figures of a workload that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadReading {
    /// The rows of its tables on which verdicts rest ([`WorkloadReading::covers`]); if empty, those that the
    /// manifest names.
    pub primary: Vec<String>,
    /// Phases left out of its tables of counters; `None` for the phases that only prepare, by the manifest.
    pub left_out: Option<Vec<String>>,
}

impl Reading {
    /// The reading without axes, and as manifests say.
    pub const USUAL: &Self = &Self { variants: BTreeMap::new(), workloads: BTreeMap::new() };

    /// The reading of a variant.
    pub fn variant(&self, variant: &Variant) -> &VariantReading {
        self.variants.get(variant.short_name()).unwrap_or(VariantReading::USUAL)
    }

    /// The reading of a workload.
    pub fn workload(&self, used: &WorkloadUse) -> &WorkloadReading {
        self.workloads.get(&used.manifest.name).unwrap_or(WorkloadReading::USUAL)
    }
}

impl VariantReading {
    const USUAL: &Self = &Self { axes: Vec::new(), step: None };
}

impl WorkloadReading {
    const USUAL: &Self = &Self { primary: Vec::new(), left_out: None };

    /// Whether tables of counters leave out this phase of the workload with this manifest.
    pub fn leaves_out(&self, manifest: &Manifest, phase: &str) -> bool {
        match &self.left_out {
            Some(phases) => phases.iter().any(|it| it == phase),
            None => manifest.prepares(phase),
        }
    }

    /// Whether verdicts rest on `row`, one of the table's rows of `metric`.
    pub fn is_primary(&self, manifest: &Manifest, metric: &Metric, row: &str) -> bool {
        metric.better.is_some()
            && match self.primary.as_slice() {
                [] => manifest.is_primary(metric),
                chosen => chosen.iter().any(|one| Self::covers(one, row)),
            }
    }

    /// Whether `chosen` selects a row by its name, or by a prefix of the name that ends before a `-`. A `*` matches
    /// anything.
    pub fn covers(chosen: &str, row: &str) -> bool {
        matches(chosen, row) || matches(&format!("{chosen}-*"), row)
    }
}
