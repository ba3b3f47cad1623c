//! Sweeps: all variants of an experiment run at each of several points, which differ in the machine, in a word
//! of the kernel's command line, or in a parameter of a workload.

use serde::{Deserialize, Serialize};

use crate::{Experiment, Topology, Variant};

/// The point of a sweep at which a variant runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The name that its variant has at all points.
    pub variant: String,
    /// The key that differs from point to point, as in the experiment file.
    pub key: String,
    /// The key's value at this point.
    pub value: String,
    /// The effect of the value.
    pub change: PointChange,
}

/// The effect of a point's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PointChange {
    /// It replaces the topology of the machine by this one.
    Topology(Topology),
    /// It adds these words to the end of the variant's command line. The stored command line has them already.
    Cmdline(String),
    /// It sets the parameter [`Point::key`] of the workload with this name.
    Parameter(String),
}

impl Point {
    /// The point's name, such as `memory=1G`.
    pub fn name(&self) -> String {
        match self.value.is_empty() {
            true => format!("no {}", self.key),
            false => format!("{}={}", self.key, self.value),
        }
    }
}

impl Experiment {
    /// The names of the points of its sweep, in order; empty if it is not a sweep.
    pub fn points(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.variants.iter().filter_map(|variant| Some(variant.point.as_ref()?.name()))
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The experiment as this variant runs it: on the machine and with the parameters of its point.
    pub fn seen_by(&self, variant: &Variant) -> Self {
        let mut own = self.clone();
        let Some(point) = &variant.point else { return own };
        match &point.change {
            PointChange::Topology(topology) => own.machine.topology = topology.clone(),
            PointChange::Cmdline(_) => {}
            PointChange::Parameter(workload) => {
                let mut manifests = own.workloads.iter_mut().map(|used| &mut used.manifest);
                let manifest = manifests.find(|manifest| manifest.name == *workload);
                let parameters = manifest.map(|manifest| &mut manifest.parameters);
                if let Some(parameter) = parameters.and_then(|it| it.get_mut(&point.key)) {
                    parameter.value.clone_from(&point.value);
                }
            }
        }
        own
    }

    /// The part of a sweep at one point, as an experiment that is not a sweep. Its variants have their short names.
    /// `None` if no variant runs there.
    pub fn at_point(&self, name: &str) -> Option<Self> {
        let is_there =
            |variant: &&Variant| variant.point.as_ref().is_some_and(|point| point.name() == name);
        let there: Vec<&Variant> = self.variants.iter().filter(is_there).collect();
        let mut own = self.seen_by(there.first()?);
        let variants = there.into_iter().cloned().map(|variant| match variant.point {
            Some(Point { variant: name, .. }) => Variant { name, point: None, ..variant },
            None => variant,
        });
        own.variants = variants.collect();
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Machine, Manifest, Millis, WorkloadUse};

    fn variant(name: &str, value: &str, change: PointChange) -> Variant {
        let key = "memory".to_owned();
        let point = Point { variant: name.into(), key, value: value.into(), change };
        let name = format!("{name} {}", point.name());
        Variant { name, point: Some(point), ..Variant::default() }
    }

    #[test]
    fn a_point_is_an_experiment_on_its_own_machine() {
        let topology = |mib| Topology::even(1, Bytes::mib(mib), 1).unwrap();
        let at = |name, value, mib| variant(name, value, PointChange::Topology(topology(mib)));
        let variants = vec![
            at("a", "256M", 256),
            at("b", "256M", 256),
            at("a", "1G", 1024),
            at("b", "1G", 1024),
        ];
        let machine = Machine::new(topology(256));
        let sweep = Experiment { variants, machine, ..Experiment::default() };
        assert_eq!(sweep.points(), ["memory=256M", "memory=1G"]);
        let point = sweep.at_point("memory=1G").unwrap();
        assert_eq!(point.machine.topology, topology(1024));
        let names: Vec<_> = point.variants.iter().map(|it| &*it.name).collect();
        assert_eq!((names, point.points()), (vec!["a", "b"], vec![]));
        assert_eq!(sweep.at_point("memory=2G"), None);
        assert_eq!(sweep.seen_by(&sweep.variants[3]).machine, point.machine);
        assert_eq!(sweep.seen_by(&sweep.variants[3]).variants, sweep.variants);
    }

    #[test]
    fn a_point_sets_the_parameter_of_one_workload() {
        let used = |name: &str| {
            let parameters = [("memory".to_owned(), "1".into())].into();
            let manifest = Manifest { name: name.into(), parameters, ..Manifest::default() };
            WorkloadUse::new(manifest, 1, Millis(1))
        };
        let variants = vec![variant("a", "7", PointChange::Parameter("two".into()))];
        let workloads = vec![used("one"), used("two")];
        let sweep = Experiment { variants, workloads, ..Experiment::default() };
        let point = sweep.at_point("memory=7").unwrap();
        let values: Vec<_> =
            point.workloads.iter().map(|used| &*used.manifest.parameters["memory"].value).collect();
        assert_eq!(values, ["1", "7"]);
    }
}
