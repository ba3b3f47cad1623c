//! Expands `[sweep]`: all variants run at each of several points.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use model::{
    Bytes, CpuSet, Experiment, Machine, Mode, Node, Point, PointChange, Topology, Variant,
    WorkloadReading, WorkloadUse,
};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::machine::{self, MachineForm};
use super::matrix::{List, MOST_VARIANTS};
use super::variants::contradiction;
use super::workloads::{self, WorkloadForm};
use super::{Checked, Fault, NO_NAME, Value, check_cmdline, fault, is_name};

/// What differs from point to point: one of these keys.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepForm {
    pub(super) cpus: Option<List<u32>>,
    pub(super) memory: Option<List<Bytes>>,
    pub(super) nodes: Option<List<u32>>,
    pub(super) node_memory: Option<List<String>>,
    pub(super) kernelcore: Option<List<String>>,
    pub(super) movablecore: Option<List<String>>,
    pub(super) cmdline: Option<List<String>>,
    pub(super) workload: Option<Spanned<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) parameters: BTreeMap<Spanned<String>, List<Value>>,
}

/// What a value sets.
#[derive(Clone)]
enum Set {
    Cpus(u32),
    Memory(Bytes),
    Nodes(u32),
    NodeMemory(Vec<Bytes>),
    Words(String),
    Parameter(Value),
}

/// A value of the key.
struct At {
    place: Range<usize>,
    written: String,
    set: Set,
}

/// A sweep whose values are not yet applied.
pub(super) struct Sweep {
    place: Range<usize>,
    key: Spanned<String>,
    /// The number of the workload whose parameter it sets.
    workload: Option<usize>,
    points: Vec<At>,
}

/// The machine and the workloads at a point.
#[derive(Clone)]
pub(super) struct Place {
    pub machine: Machine,
    pub workloads: Vec<WorkloadUse>,
    /// How the workloads are read, by name.
    pub readings: BTreeMap<String, WorkloadReading>,
}

impl SweepForm {
    /// All keys that are there, with their values.
    fn keys(self) -> Checked<Vec<(Spanned<String>, Vec<At>)>> {
        let mut keys = Vec::new();
        let number = |number: &u32| number.to_string();
        keys.extend(self.cpus.map(|it| values("cpus", it, number, Set::Cpus)));
        keys.extend(self.memory.map(|it| values("memory", it, Bytes::to_string, Set::Memory)));
        keys.extend(self.nodes.map(|it| values("nodes", it, number, Set::Nodes)));
        let words = |name: &'static str, list: Option<List<String>>| {
            let set = move |value| Set::Words(format!("{name}={value}"));
            list.map(|list| values(name, list, String::clone, set))
        };
        for (name, list) in [("kernelcore", self.kernelcore), ("movablecore", self.movablecore)] {
            let sizes = list.iter().flat_map(Spanned::get_ref);
            if let Some(odd) = sizes.into_iter().find(|it| !is_core(it.get_ref())) {
                let problem = format!("`{name}` cannot be \"{}\"", odd.get_ref());
                return fault(
                    odd.span(),
                    problem,
                    "use a size or a share, such as \"512M\" or \"50%\"",
                );
            }
            keys.extend(words(name, list));
        }
        keys.extend(self.cmdline.map(|it| {
            values(
                "cmdline",
                it,
                |words| words.trim().to_owned(),
                |words: String| Set::Words(words.trim().to_owned()),
            )
        }));
        if let Some(list) = self.node_memory {
            let span = list.span();
            let of = |text: Spanned<String>| {
                let sizes = text.get_ref().split(':').map(|size| size.trim().parse::<Bytes>());
                match sizes.collect::<Result<Vec<_>, _>>() {
                    Ok(sizes) => {
                        let written: Vec<String> = sizes.iter().map(Bytes::to_string).collect();
                        let (place, set) = (text.span(), Set::NodeMemory(sizes));
                        Ok(At { place, written: written.join(":"), set })
                    }
                    Err(error) => {
                        let hint = "write the memory of each node in order: \"512M:256M\"";
                        fault(text.span(), error.to_string(), hint)
                    }
                }
            };
            let points: Vec<At> = list.into_inner().into_iter().map(of).collect::<Checked<_>>()?;
            let parts = |at: &At| at.written.split(':').count();
            if let Some(odd) = points.iter().find(|it| parts(it) != parts(&points[0])) {
                let hint = "give all points as many nodes, or sweep over `nodes`";
                return fault(odd.place.clone(), "this point has another number of nodes", hint);
            }
            keys.push((Spanned::new(span, "node_memory".into()), points));
        }
        for (name, list) in self.parameters {
            let (_, points) = values("", list, |it| it.clone().into(), Set::Parameter);
            keys.push((name, points));
        }
        Ok(keys)
    }
}

/// Whether the kernel takes this for `kernelcore` (`cmdline_parse_core`, `mm/mm_init.c`).
fn is_core(text: &str) -> bool {
    let number = text.strip_suffix(|unit: char| "KMGTPEkmgtpe%".contains(unit)).unwrap_or(text);
    !number.is_empty() && number.len() < 20 && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn values<T>(
    key: &str,
    list: List<T>,
    written: impl Fn(&T) -> String,
    set: impl Fn(T) -> Set,
) -> (Spanned<String>, Vec<At>) {
    let key = Spanned::new(list.span(), key.to_owned());
    let of = |value: Spanned<T>| {
        let (place, written) = (value.span(), written(value.get_ref()));
        At { place, written, set: set(value.into_inner()) }
    };
    (key, list.into_inner().into_iter().map(of).collect())
}

impl Sweep {
    pub fn of(form: Spanned<SweepForm>, workloads: &[Spanned<WorkloadForm>]) -> Checked<Self> {
        let place = form.span();
        let mut form = form.into_inner();
        let workload = form.workload.take();
        let mut keys = form.keys()?.into_iter();
        let Some((key, points)) = keys.next() else {
            let hint = "name what differs from point to point, such as memory = [\"512M\", \"1G\"]";
            return fault(place, "the sweep has no values", hint);
        };
        if let Some((other, _)) = keys.next() {
            let [one, two] = [&key, &other].map(Spanned::get_ref);
            let problem = format!("the sweep is over both `{one}` and `{two}`");
            let hint = "keep one of them: points lie on one line; settings are crossed in [matrix]";
            return fault(other.span(), problem, hint);
        }
        if points.len() < 2 {
            let problem = format!(
                "the sweep has {} of `{}`",
                model::count(points.len(), "value"),
                key.get_ref()
            );
            let hint = "give it two or more, or set the value outside of [sweep]";
            return fault(key.span(), problem, hint);
        }
        let is_twice = |at: usize| points[..at].iter().any(|it| it.written == points[at].written);
        if let Some(at) = (0..points.len()).find(|at| is_twice(*at)) {
            let problem = format!("`{}` is there twice", points[at].written);
            return fault(points[at].place.clone(), problem, "give each value once");
        }
        let workload = match (&points[0].set, &workload) {
            (Set::Parameter(_), named) => Some(swept(&key, named.as_ref(), workloads)?),
            (_, Some(workload)) => {
                let hint = "leave it out: every workload runs at each point";
                return fault(workload.span(), "`workload` is only for `parameters`", hint);
            }
            (_, None) => None,
        };
        Ok(Self { place, key, workload, points })
    }

    /// The machine and the workloads at each point.
    pub fn places(
        &self,
        machine: &Spanned<MachineForm>,
        workloads: &[Spanned<WorkloadForm>],
        (mode, directory): (Mode, &Path),
    ) -> Checked<Vec<Place>> {
        let at = |at: &At| {
            let mut machine = machine.clone();
            let mut workloads = workloads.to_vec();
            let form = machine.get_mut();
            match (at.set.clone(), self.workload) {
                (Set::Cpus(cpus), _) => form.cpus = Some(Spanned::new(at.place.clone(), cpus)),
                (Set::Memory(memory), _) => {
                    form.memory = Some(Spanned::new(at.place.clone(), memory));
                }
                (Set::Nodes(nodes), _) => form.nodes = Some(Spanned::new(at.place.clone(), nodes)),
                (Set::NodeMemory(sizes), _) => divide(form, &sizes, &at.place)?,
                (Set::Parameter(value), Some(swept)) => {
                    let parameters = &mut workloads[swept].get_mut().parameters;
                    let value = Spanned::new(at.place.clone(), value);
                    // The place of a key is not part of its identity.
                    let parameters = parameters.get_or_insert_default();
                    parameters.remove(&self.key);
                    parameters.insert(self.key.clone(), value);
                }
                _ => {}
            }
            let machine = machine::check(machine, mode)?;
            let (workloads, readings) = workloads::check_all(workloads, directory, &machine)?;
            Ok(Place { machine, workloads, readings })
        };
        let named = |point: &At, fault: Fault| {
            let problem =
                format!("with {}={}: {}", self.key.get_ref(), point.written, fault.problem);
            Fault { problem, place: Some(point.place.clone()), ..fault }
        };
        let mut places = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            // What is wrong at the first point may be wrong at all.
            let place = at(point).map_err(|fault| match number {
                0 => fault,
                _ => named(point, fault),
            })?;
            places.push(place);
        }
        Ok(places)
    }

    /// The variants of `experiment` at each of these places, point by point.
    pub fn expand(&self, experiment: &Experiment, places: &[Place]) -> Checked<Vec<Variant>> {
        if experiment.variants.len() * self.points.len() > MOST_VARIANTS {
            let problem = format!(
                "the sweep has more than {MOST_VARIANTS} combinations of variant and point"
            );
            return fault(self.place.clone(), problem, "name fewer of them");
        }
        let mut variants: Vec<Variant> = Vec::new();
        for (at, Place { machine, workloads, .. }) in self.points.iter().zip(places) {
            for variant in &experiment.variants {
                let variant = self.variant(variant, at, machine, workloads)?;
                let own = experiment.seen_by(&variant);
                if (&own.machine.topology, &own.workloads) != (&machine.topology, workloads) {
                    let problem =
                        format!("`{}` also changes which programs run", self.key.get_ref());
                    let hint = "use another parameter, or an experiment for each value";
                    return fault(at.place.clone(), problem, hint);
                }
                if variants.iter().any(|other| other.name == variant.name) {
                    let problem = format!("two variants have the name `{}`", variant.name);
                    return fault(at.place.clone(), problem, "give the variants other names");
                }
                variants.push(variant);
            }
        }
        Ok(variants)
    }

    fn variant(
        &self,
        base: &Variant,
        at: &At,
        machine: &Machine,
        workloads: &[WorkloadUse],
    ) -> Checked<Variant> {
        let mut variant = base.clone();
        let change = match (&at.set, self.workload) {
            (_, Some(swept)) => PointChange::Parameter(workloads[swept].manifest.name.clone()),
            (Set::Words(words), _) => {
                let words_of = |text: &str| -> Vec<String> {
                    text.split_whitespace().map(str::to_owned).collect()
                };
                let [own, more] = [&base.cmdline, words].map(|text| words_of(text));
                if let Some([one, two]) = contradiction(&own, &more) {
                    let name = &base.name;
                    let problem = format!("`{two}` contradicts `{one}` of the variant `{name}`");
                    return fault(at.place.clone(), problem, "leave one of them out");
                }
                variant.cmdline = format!("{} {words}", base.cmdline.trim()).trim().to_owned();
                check_cmdline(&variant.cmdline)
                    .or_else(|(problem, hint)| fault(at.place.clone(), problem, hint))?;
                PointChange::Cmdline(words.clone())
            }
            _ => PointChange::Topology(machine.topology.clone()),
        };
        let (key, value) = (self.key.get_ref().clone(), at.written.clone());
        let point = Point { variant: base.name.clone(), key, value, change };
        variant.name = format!("{} {}", base.name, point.name());
        variant.point = Some(point);
        match is_name(&variant.name) {
            true => Ok(variant),
            false => fault(
                at.place.clone(),
                format!("the name of a variant at this point {NO_NAME}"),
                "use shorter names; the name of a point follows that of a variant",
            ),
        }
    }
}

/// The number of the workload whose parameter a sweep sets.
fn swept(
    key: &Spanned<String>,
    named: Option<&Spanned<String>>,
    workloads: &[Spanned<WorkloadForm>],
) -> Checked<usize> {
    match named {
        None if workloads.len() == 1 => Ok(0),
        None => {
            let problem = format!("which workload has the parameter `{}`?", key.get_ref());
            fault(key.span(), problem, "name it: workload = \"NAME\"")
        }
        Some(named) => {
            let is_it = |form: &Spanned<WorkloadForm>| form.get_ref().is_called(named.get_ref());
            workloads.iter().position(is_it).map_or_else(
                || {
                    let problem = format!("there is no workload `{}`", named.get_ref());
                    let hint = "give its `name`, or its `as` if it has one";
                    fault(named.span(), problem, hint)
                },
                Ok,
            )
        }
    }
}

/// Divides the memory of the machine as the sweep says.
fn divide(form: &mut MachineForm, sizes: &[Bytes], place: &Range<usize>) -> Checked<()> {
    if form.node.is_empty() {
        let all = sizes.iter().map(|size| size.0).fold(0, u64::saturating_add);
        let Some(cpus) = form.cpus.take() else {
            let hint = "set cpus, or list each [[machine.node]]";
            return fault(place.clone(), "the machine has no CPUs", hint);
        };
        let has = form.nodes.take().map_or(sizes.len(), |nodes| *nodes.get_ref() as usize);
        check_number(has, sizes, place)?;
        form.memory = None;
        // CPUs are divided as if memory were divided evenly.
        let blocks = Bytes(all.next_multiple_of((sizes.len() as u64) << 27));
        let even = Topology::even(*cpus.get_ref(), blocks, sizes.len() as u32);
        let even = even.or_else(|error| fault(cpus.span(), error.problem, error.hint))?;
        form.node = even.nodes.into_iter().map(|node| Spanned::new(place.clone(), node)).collect();
    }
    check_number(form.node.len(), sizes, place)?;
    for (node, memory) in form.node.iter_mut().zip(sizes) {
        let Node { cpus: CpuSet(cpus), distances, .. } = node.get_ref().clone();
        *node =
            Spanned::new(place.clone(), Node { cpus: CpuSet(cpus), memory: *memory, distances });
    }
    Ok(())
}

fn check_number(has: usize, sizes: &[Bytes], place: &Range<usize>) -> Checked<()> {
    if has == sizes.len() {
        return Ok(());
    }
    let problem = format!("the machine has {}, not {}", model::count(has, "node"), sizes.len());
    fault(place.clone(), problem, "write the memory of each node in order: \"512M:256M\"")
}

#[cfg(test)]
mod tests;
