//! The built-in workloads, and how a manifest becomes a command line.

use std::collections::BTreeMap;
use std::path::Path;

use flight::event::MAX_CUTS;
use flight::job::PROGRAMS_PATH;
use flight::protocol::{MAX_NAME, is_metric};
use guest::workloads as built_in_programs;
use model::{INSTRUCTIONS, Machine, Manifest, Pinned, Swap, WorkloadUse};

use crate::file::text;

/// The largest number of iterations of a boot, of all its workloads together. The begin and the end of each
/// iteration are cuts, and so is each phase in it.
pub const MOST_ITERATIONS: u32 = MAX_CUTS as u32 / 2;

/// The built-in manifests.
const BUILT_IN: &[&str] = &[
    include_str!("../../../workloads/autonuma.toml"),
    include_str!("../../../workloads/bonnie.toml"),
    include_str!("../../../workloads/fault.toml"),
    include_str!("../../../workloads/mprotect.toml"),
    include_str!("../../../workloads/nas.toml"),
    include_str!("../../../workloads/pagealloc.toml"),
    include_str!("../../../workloads/paralleldd.toml"),
    include_str!("../../../workloads/pgbench.toml"),
    include_str!("../../../workloads/stutter.toml"),
    include_str!("../../../workloads/tiobench.toml"),
    include_str!("../../../workloads/truncate.toml"),
    include_str!("../../../workloads/xfsrepair.toml"),
];

/// Why a manifest or its parameters cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// No built-in workload has this name.
    #[error("there is no workload `{name}`")]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The manifest does not have this parameter.
    #[error("workload `{workload}` has no parameter `{parameter}`")]
    Parameter {
        /// The workload's name.
        workload: String,
        /// The requested parameter.
        parameter: String,
        /// The existing parameters.
        known: Vec<String>,
    },
    /// The command names a placeholder that is neither a parameter nor a fact of the machine.
    #[error("the command of workload `{workload}` has `{{{placeholder}}}`, which is no parameter")]
    Placeholder {
        /// The workload's name.
        workload: String,
        /// The name between the braces.
        placeholder: String,
    },
    /// The command needs a disk, and the machine has none.
    #[error("workload `{workload}` needs a disk, and the machine has none")]
    NoDisk {
        /// The workload's name.
        workload: String,
    },
    /// The workload would reject the value of a parameter.
    #[error("workload `{workload}` cannot have {parameter} = \"{value}\"")]
    Value {
        /// The workload's name.
        workload: String,
        /// The parameter.
        parameter: String,
        /// Its value.
        value: String,
        /// The allowed values.
        why: String,
    },
    /// The workload would reject its command or the machine.
    #[error("workload `{workload}` cannot run: {why}")]
    Refused {
        /// The workload's name.
        workload: String,
        /// Why.
        why: String,
    },
}

impl WorkloadError {
    /// A hint; empty if the error needs none.
    pub fn hint(&self) -> String {
        let (wanted, known) = match self {
            Self::Unknown { name, known } => (name, known),
            Self::Parameter { parameter, known, .. } => (parameter, known),
            Self::Placeholder { .. } => {
                return "declare it under [parameters] of the manifest".into();
            }
            Self::NoDisk { .. } => {
                return "add a [[machine.disk]], such as size = \"4G\", filesystem = \"xfs\""
                    .into();
            }
            Self::Value { why, .. } => return why.clone(),
            Self::Refused { .. } => return String::new(),
        };
        match nearest(wanted, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        }
    }
}

/// The known name most similar to the wanted one, if one is similar.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Checks for errors that a workload would report in the guest, so that nothing is booted for them. Built-in
/// workloads check their own command line; for others only placeholders are checked.
///
/// # Errors
/// With the parameter at fault, if there is one.
pub fn check(used: &WorkloadUse, machine: &Machine) -> Result<(), WorkloadError> {
    let command = command_of(used, machine)?;
    built_in_programs::check(&command, machine).map_err(|error| refusal(&used.manifest, &error))
}

/// Translates a built-in program's message about its options into one about a manifest's parameters.
fn refusal(manifest: &Manifest, error: &built_in_programs::WorkloadError) -> WorkloadError {
    let workload = manifest.name.clone();
    if let built_in_programs::WorkloadError::Option(refused) = error {
        let is_meant = |name: &String| name.replace('_', "-") == refused.option;
        let mut all = manifest.parameters.iter();
        if let Some((parameter, value)) = all.find(|(name, _)| is_meant(name)) {
            let why = match *value == refused.value {
                true => refused.why.clone(),
                false => format!("{}: {}", refused.value, refused.why),
            };
            let (parameter, value) = (parameter.clone(), value.clone());
            return WorkloadError::Value { workload, parameter, value, why };
        }
    }
    WorkloadError::Refused { workload, why: error.to_string() }
}

/// The command of a workload, with the paths of the user's own programs.
pub fn command_of(workload: &WorkloadUse, machine: &Machine) -> Result<Vec<String>, WorkloadError> {
    let place = |program: &Pinned| program_path(&workload.manifest.name, program.path());
    let places: Vec<String> = workload.programs().map(place).collect();
    let places = (!places.is_empty()).then(|| places.join(","));
    command(&workload.manifest, machine, places.as_deref())
}

/// The path of a user's program in the guest. It includes the workload, because two workloads may have
/// programs with the same name.
pub fn program_path(workload: &str, program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    format!("{PROGRAMS_PATH}/{workload}/{name}")
}

/// All built-in manifests.
pub fn built_in() -> Vec<Manifest> {
    let read = |text: &str| toml::from_str(text).expect("a manifest of our own, tested");
    BUILT_IN.iter().map(|text| read(text)).collect()
}

/// The built-in manifest with this name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<Manifest, WorkloadError> {
    let mut all = built_in();
    match all.iter().position(|manifest| manifest.name == name) {
        Some(place) => Ok(all.swap_remove(place)),
        None => Err(WorkloadError::Unknown {
            name: name.into(),
            known: all.into_iter().map(|manifest| manifest.name).collect(),
        }),
    }
}

/// Reads the manifest in a user's file.
///
/// # Errors
/// When it cannot be read or has an invalid name; the message begins with the file's name.
pub fn read(path: &Path) -> Result<Manifest, String> {
    let told = |problem: String| format!("{}: {}", path.display(), problem.trim_end());
    let text = text::read(path).map_err(|error| told(error.to_string()))?;
    let manifest = toml::from_str(&text).map_err(|error| told(error.to_string()))?;
    check_names(&manifest).map_err(|(problem, hint)| told(format!("{problem}: {hint}")))?;
    Ok(manifest)
}

/// Checks the names of a manifest's metrics and packages.
///
/// # Errors
/// A problem and a hint, if one is invalid.
pub fn check_names(manifest: &Manifest) -> Result<(), (String, String)> {
    let mut metrics = manifest.metrics.iter().map(|metric| &*metric.name);
    if let Some(wrong) = metrics.find(|name| !is_metric(name) || *name == INSTRUCTIONS) {
        let hint = match wrong {
            INSTRUCTIONS => "exact mode adds a metric with this name to every workload".to_owned(),
            _ => format!(
                "use 1 to {MAX_NAME} letters, digits and ._:+/%- in words separated by single blanks"
            ),
        };
        let wrong = wrong.escape_debug();
        return Err((format!("`{wrong}` cannot be the name of a metric"), hint));
    }
    match manifest.packages.iter().find(|name| !kernels::is_package_name(name)) {
        Some(wrong) => {
            let hint = "the name of a package has lower-case letters, digits and + - .";
            Err((format!("`{wrong}` is not the name of a package"), hint.to_owned()))
        }
        None => Ok(()),
    }
}

/// Sets parameters of a manifest.
///
/// # Errors
/// When the manifest does not have one of them.
pub fn set_parameters(
    manifest: &mut Manifest,
    values: BTreeMap<String, String>,
) -> Result<(), WorkloadError> {
    for (parameter, value) in values {
        match manifest.parameters.get_mut(&parameter) {
            Some(place) => *place = value,
            None => {
                return Err(WorkloadError::Parameter {
                    workload: manifest.name.clone(),
                    parameter,
                    known: manifest.parameters.keys().cloned().collect(),
                });
            }
        }
    }
    Ok(())
}

/// The command of a manifest for this machine, with placeholders filled in. `program` is the path of a user's
/// own program in the guest. It replaces `{program}`, or the first word if the command does not have that
/// placeholder.
///
/// # Errors
/// When a placeholder has no value.
pub fn command(
    manifest: &Manifest,
    machine: &Machine,
    program: Option<&str>,
) -> Result<Vec<String>, WorkloadError> {
    let topology = &machine.topology;
    let value = |placeholder: &str| match placeholder {
        "disk" => {
            let taken = machine.swap.as_ref().and_then(Swap::taken);
            let mut disks = machine.disks.iter().enumerate();
            let free = disks.find(|(number, _)| Some(*number) != taken);
            free.map(|(number, disk)| disk.place(number))
        }
        "cpus" => Some(topology.cpus().to_string()),
        "nodes" => Some(topology.nodes.len().to_string()),
        "memory" => Some(topology.memory().0.to_string()),
        "program" => Some(program.unwrap_or_default().to_owned()),
        name => manifest.parameters.get(name).cloned(),
    };
    let fill = |word: &String| {
        let workload = manifest.name.clone();
        fill(word, value).map_err(|placeholder| match placeholder.as_str() {
            "disk" => WorkloadError::NoDisk { workload },
            _ => WorkloadError::Placeholder { workload, placeholder },
        })
    };
    let mut command = manifest.command.iter().map(fill).collect::<Result<Vec<_>, _>>()?;
    if let Some(program) = program
        && !manifest.command.iter().any(|word| word.contains("{program}"))
    {
        command.splice(..command.len().min(1), [program.to_owned()]);
    }
    Ok(command)
}

/// Replaces each `{name}` in `word` by its value; an unknown name is the error. Braces around anything but a
/// name remain, because programs use them.
fn fill(word: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let is_name = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        !text.is_empty() && text.bytes().all(plain)
    };
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, from)) = rest.split_once('{') {
        filled.push_str(before);
        match from.split_once('}') {
            Some((name, after)) if is_name(name) => {
                filled.push_str(&value(name).ok_or_else(|| name.to_owned())?);
                rest = after;
            }
            _ => {
                filled.push('{');
                rest = from;
            }
        }
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use flight::job::WORKLOADS_PATH;
    use model::{Accel, Bytes, Disk, DiskKind, Limits, Millis, Topology};

    use super::*;

    fn machine(disks: Vec<Disk>) -> Machine {
        let topology = Topology::even(4, Bytes::mib(2048), 2).unwrap();
        Machine { topology, disks, swap: None, accel: Accel::Tcg, limits: Limits::default() }
    }

    #[test]
    fn every_built_in_manifest_has_a_command_that_fills() {
        for manifest in built_in() {
            let disk = Disk { kind: DiskKind::Pmem, size: Bytes::mib(2), format: None };
            let command = command(&manifest, &machine(vec![disk]), None).unwrap();
            assert!(command.iter().all(|word| !word.contains('{')), "{command:?}");
        }
    }

    #[test]
    fn parameters_are_set_or_refused() {
        let mut manifest = find("autonuma").unwrap();
        let (name, _) = manifest.parameters.first_key_value().unwrap();
        let name = name.clone();
        set_parameters(&mut manifest, [(name.clone(), "7".into())].into()).unwrap();
        assert_eq!(manifest.parameters[&name], "7");
        let wrong = set_parameters(&mut manifest, [("no-such".into(), "7".into())].into());
        assert!(matches!(wrong, Err(WorkloadError::Parameter { .. })));
        assert!(matches!(find("autonum"), Err(WorkloadError::Unknown { .. })));
    }

    #[test]
    fn invalid_parameters_are_found_before_the_boot() {
        let told = |manifest: Manifest, program: Option<&str>| {
            let program = program.map(Into::into);
            let used = WorkloadUse { program, ..WorkloadUse::new(manifest, 1, Millis(1)) };
            let error = check(&used, &machine(Vec::new())).err()?;
            Some(format!("{error}: {}", error.hint()))
        };
        let mut manifest = find("nas").unwrap();
        assert_eq!(told(manifest.clone(), None), None);
        manifest.parameters.insert("benchmarks".into(), "ep,ft".into());
        let all = "not one of ep, is, cg, mg, lu";
        let expected = format!("workload `nas` cannot have benchmarks = \"ep,ft\": ft: {all}");
        assert_eq!(told(manifest.clone(), None), Some(expected));
        // If the parameter has another name, the message has the option's name.
        manifest.parameters = [("which".into(), "ft".into())].into();
        manifest.command =
            [WORKLOADS_PATH, "nas", "--benchmarks", "{which}"].map(str::to_owned).into();
        let told_of_option = told(manifest.clone(), None).unwrap();
        let expected = format!("workload `nas` cannot run: --benchmarks ft: {all}: ");
        assert_eq!(told_of_option, expected);
        // A user's program is not ours to check.
        assert_eq!(told(manifest, Some("bin/own")), None);
    }

    #[test]
    fn a_disk_is_filled_in_or_missing() {
        let mut manifest = find("fault").unwrap();
        manifest.command = vec!["cat".into(), "{disk}".into()];
        let raw = Disk { kind: DiskKind::Pmem, size: Bytes::mib(2), format: None };
        let filled = command(&manifest, &machine(vec![raw.clone()]), None).unwrap();
        assert_eq!(filled, ["cat", "/dev/disk0"]);
        let two = Machine { swap: Some(Swap::Disk { disk: 0 }), ..machine(vec![raw.clone(), raw]) };
        assert_eq!(command(&manifest, &two, None).unwrap(), ["cat", "/dev/disk1"]);
        let error = command(&manifest, &machine(Vec::new()), None).unwrap_err();
        assert_eq!(error, WorkloadError::NoDisk { workload: "fault".into() });
    }

    #[test]
    fn a_users_program_replaces_its_placeholder_or_the_first_word() {
        let mut manifest = find("fault").unwrap();
        let mut filled = |words: &[&str], program| {
            manifest.command = words.iter().map(|word| (*word).to_owned()).collect();
            command(&manifest, &machine(Vec::new()), program).unwrap().join(" ")
        };
        let own = Some("/programs/own");
        assert_eq!(filled(&["run", "{program}"], own), "run /programs/own");
        assert_eq!(filled(&["run", "{program}"], None), "run ");
        assert_eq!(filled(&["program", "-n"], own), "/programs/own -n");
        assert_eq!(filled(&[], own), "/programs/own");
    }

    #[test]
    fn placeholders_are_filled() {
        let value = |name: &str| (name == "a").then(|| "1".to_owned());
        assert_eq!(fill("x{a}y{a}", value), Ok("x1y1".into()));
        assert_eq!(fill("{b}", value), Err("b".into()));
        for word in ["{", "{ a; }", "{}", "${a", "}{"] {
            assert_eq!(fill(word, value), Ok(word.into()));
        }
    }
}
