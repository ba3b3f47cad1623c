//! Workloads, and how a manifest becomes a command line.

pub mod binaries;
mod find;
mod floors;
mod meaning;
mod mistakes;

use std::collections::BTreeMap;
use std::path::{Path, absolute};

use flight::event::MAX_CUTS;
use flight::job::PROGRAMS_PATH;
use model::{Architecture, Disk, Machine, MachineKind, Manifest, Pinned, Swap, WorkloadUse};

use crate::form::near::nearest;
pub use find::{Known, all, built_in, find, named, read, take_program};
pub use floors::{Floors, PhaseFloors, WorkloadFloors, floors};

/// The largest number of iterations of a boot, of all its workloads together. The begin and the end of each
/// iteration are cuts, and so is each phase in it.
pub const MOST_ITERATIONS: u32 = MAX_CUTS as u32 / 2;

/// The names that a command may have in braces besides parameters.
const PLACEHOLDERS: [&str; 5] = ["disk", "cpus", "nodes", "memory", "program"];

/// Why a manifest or its parameters cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// No workload has this name.
    #[error("there is no workload `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names of all workloads that are found.
        known: Vec<String>,
    },
    /// Another file was named in place of a manifest.
    #[error("{path} is not the manifest of a workload")]
    NoManifest {
        /// The path of the file that was named.
        path: String,
    },
    /// A manifest cannot be read, or is wrong.
    #[error("{problem}")]
    Manifest {
        /// The file and what is wrong.
        problem: String,
        /// A hint; may be empty.
        hint: String,
    },
    /// The manifest does not have this parameter.
    #[error("workload `{workload}` has no parameter `{parameter}`")]
    Parameter {
        /// The name of the workload.
        workload: String,
        /// The parameter that was asked for.
        parameter: String,
        /// The parameters that the manifest has.
        known: Vec<String>,
    },
    /// The command names a placeholder that is neither a parameter nor a fact of the machine.
    #[error("the command of workload `{workload}` has `{{{placeholder}}}`, which is no parameter")]
    Placeholder {
        /// The name of the workload.
        workload: String,
        /// The name between the braces.
        placeholder: String,
    },
    /// Neither the command nor the user names a program.
    #[error("the command of workload `{workload}` names no program")]
    NoProgram {
        /// The name of the workload.
        workload: String,
    },
    /// The command needs a disk, and the machine has none.
    #[error("workload `{workload}` needs a disk, and the machine has none")]
    NoDisk {
        /// The name of the workload.
        workload: String,
    },
    /// The workload needs a file system, and the disk has none.
    #[error("workload `{workload}` needs a disk with a file system, and disk {disk} has none")]
    RawDisk {
        /// The name of the workload.
        workload: String,
        /// The number of the disk.
        disk: usize,
    },
    /// The workload needs packages, which are for x86-64, and the machine is another one.
    #[error("workload `{workload}` needs packages, which are for x86_64 machines so far")]
    ForX86 {
        /// The name of the workload.
        workload: String,
    },
    /// The workload needs swap space, and the machine has none.
    #[error("workload `{workload}` needs swap space, and the machine has none")]
    NoSwap {
        /// The name of the workload.
        workload: String,
    },
    /// The value of a parameter is not of its type, or is too large for the disk.
    #[error("workload `{workload}` cannot have {parameter} = \"{value}\"")]
    Value {
        /// The name of the workload.
        workload: String,
        /// The name of the parameter.
        parameter: String,
        /// The value that was asked for.
        value: String,
        /// Which values the parameter can have.
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
            Self::NoProgram { .. } => {
                return "write it as the first word of `command`, or give `program`".into();
            }
            Self::NoDisk { .. } => {
                return "add a [[machine.disk]], such as size = \"4G\", filesystem = \"xfs\"; without a file: --disk 4G,xfs"
                    .into();
            }
            Self::RawDisk { .. } => {
                return "give it one, such as filesystem = \"xfs\"".into();
            }
            Self::NoSwap { .. } => {
                return "add swap to the machine in an experiment file: [machine.swap] with kind = \"zram\", size = \"256M\""
                    .into();
            }
            Self::ForX86 { .. } => {
                return "use a workload without packages, or an x86_64 machine".into();
            }
            Self::Value { why: hint, .. } | Self::Manifest { hint, .. } => return hint.clone(),
            Self::NoManifest { .. } => {
                return "name a workload, or its manifest, FILE.toml; `faultline workload new NAME` writes one \
                        for a program"
                    .into();
            }
        };
        match nearest(wanted, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        }
    }
}

/// Checks the command and the parameters, so that nothing is booted for a wrong one. What a manifest cannot
/// say, the workload checks in the guest. The error has the parameter at fault, if there is one.
pub fn check(used: &WorkloadUse, machine: &Machine) -> Result<(), WorkloadError> {
    let manifest = &used.manifest;
    if machine.arch != Architecture::X86_64 && !manifest.packages.is_empty() {
        return Err(WorkloadError::ForX86 { workload: manifest.name.clone() });
    }
    command_of(used, machine)?;
    if manifest.swap && machine.swap.is_none() {
        return Err(WorkloadError::NoSwap { workload: manifest.name.clone() });
    }
    // The user's programs have other values of these.
    let pattern = manifest.binaries.as_ref().filter(|_| used.programs().next().is_some());
    let is_free = |name: &str| pattern.is_some_and(|it| it.contains(&format!("{{{name}}}")));
    for (name, parameter) in &manifest.parameters {
        let refused = |why: String| WorkloadError::Value {
            workload: manifest.name.clone(),
            parameter: name.clone(),
            value: parameter.value.clone(),
            why,
        };
        if !is_free(name) {
            parameter.check(machine.topology.cpus()).map_err(|(wrong, allowed)| {
                let of_several = if wrong == parameter.value { "" } else { &format!("{wrong}: ") };
                refused(
                    format!("{of_several}use {allowed}. {}", parameter.meaning).trim_end().into(),
                )
            })?;
        }
        let (Some(times), Some((number, disk))) = (parameter.disk, disk(machine)) else { continue };
        let Some(format) = &disk.format else {
            return Err(WorkloadError::RawDisk { workload: manifest.name.clone(), disk: number });
        };
        let percent: f64 = parameter.value.parse().unwrap_or_default();
        let wanted = (machine.topology.memory().0 as f64 * times * percent / 100.0) as u64;
        if wanted > disk.size.0 && !format.options.contains("compress") {
            let wanted = wanted.div_ceil(1 << 20);
            let has = disk.size.0 >> 20;
            return Err(refused(format!(
                "that takes {wanted} MiB of disk {number}, which has {has}"
            )));
        }
    }
    Ok(())
}

/// The command of a workload, with the paths of the user's own programs.
pub fn command_of(workload: &WorkloadUse, machine: &Machine) -> Result<Vec<String>, WorkloadError> {
    let place = |program: &Pinned| match machine.kind {
        MachineKind::Vm => program_path(&workload.manifest.name, program.path()),
        // On a host it is where it is.
        MachineKind::Host => {
            let path = absolute(program.path()).unwrap_or_else(|_| program.path().to_owned());
            path.to_string_lossy().into_owned()
        }
    };
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

/// Sets parameters of a manifest. Fails when the manifest does not have one of them.
pub fn set_parameters(
    manifest: &mut Manifest,
    values: BTreeMap<String, String>,
) -> Result<(), WorkloadError> {
    for (parameter, value) in values {
        match manifest.parameters.get_mut(&parameter) {
            Some(parameter) => parameter.value = value,
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
/// placeholder. Fails when a placeholder has no value, or nothing names the program.
pub fn command(
    manifest: &Manifest,
    machine: &Machine,
    program: Option<&str>,
) -> Result<Vec<String>, WorkloadError> {
    let topology = &machine.topology;
    let value = |placeholder: &str| match placeholder {
        "disk" => disk(machine).map(|(number, disk)| disk.place(number)),
        "cpus" => Some(topology.cpus().to_string()),
        "nodes" => Some(topology.nodes.len().to_string()),
        "memory" => Some(topology.memory().0.to_string()),
        "program" => Some(program.unwrap_or_default().to_owned()),
        name => manifest.parameters.get(name).map(|it| it.value.clone()),
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
    match command.first() {
        Some(first) if !first.is_empty() => Ok(command),
        _ => Err(WorkloadError::NoProgram { workload: manifest.name.clone() }),
    }
}

/// The disk of workloads: the first that is not swap.
fn disk(machine: &Machine) -> Option<(usize, &Disk)> {
    let taken = machine.swap.as_ref().and_then(Swap::taken);
    machine.disks.iter().enumerate().find(|(number, _)| Some(*number) != taken)
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
    use model::{Accel, Bytes, DiskKind, FileSystem, Format, Millis, Topology};

    use super::*;

    fn machine(disks: Vec<Disk>) -> Machine {
        let topology = Topology::even(4, Bytes::mib(2048), 2).unwrap();
        Machine { disks, accel: Accel::Tcg, ..Machine::new(topology) }
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
        let mut manifest = find("autonuma", Path::new("")).unwrap();
        let (name, _) = manifest.parameters.first_key_value().unwrap();
        let name = name.clone();
        set_parameters(&mut manifest, [(name.clone(), "7".into())].into()).unwrap();
        assert_eq!(manifest.parameters[&name].value, "7");
        let wrong = set_parameters(&mut manifest, [("no-such".into(), "7".into())].into());
        assert!(matches!(wrong, Err(WorkloadError::Parameter { .. })));
        assert!(matches!(find("autonum", Path::new("")), Err(WorkloadError::Unknown { .. })));
    }

    /// What is wrong with a value of a parameter on a machine with this disk.
    fn told(name: &str, parameter: &str, value: &str, disk: Disk) -> Option<String> {
        let mut manifest = find(name, Path::new("")).unwrap();
        set_parameters(&mut manifest, [(parameter.into(), value.into())].into()).unwrap();
        let used = WorkloadUse::new(manifest, 1, Millis(1));
        let error = check(&used, &machine(vec![disk])).err()?;
        Some(format!("{error}: {}", error.hint()))
    }

    fn formatted(filesystem: FileSystem, options: &str) -> Disk {
        let (mount, options) = ("/mnt/disk0".into(), options.into());
        let format = Format { filesystem, mkfs: Vec::new(), mount, options, digest: None };
        Disk { kind: DiskKind::VirtioBlk, size: Bytes::mib(8192), format: Some(format) }
    }

    #[test]
    fn invalid_parameters_are_found_before_the_boot() {
        let ext4 = || formatted(FileSystem::Ext4, "");
        for (name, parameter, value, hint) in [
            ("autonuma", "share", "50", "use a number above 0, at most 45. Memory of one process"),
            ("autonuma", "interval", "0", "use a whole number, 1 or more. Milliseconds"),
            ("bonnie", "chunk", "1000", "use a power of two from 256 to 1048576. Bytes"),
            ("bonnie", "size", "401", "that takes 8213 MiB of disk 0, which has 8192"),
            ("fault", "fault", "sneeze", "use one of panic, hang, exit, garbage, sleep. What"),
            ("nas", "benchmarks", "ep,ft", "ft: use one of nothing, ep, is, cg, mg, lu; several"),
            ("nas", "threads", "5000", "use a whole number from 1 to 4096, or nothing. Threads"),
            ("pagealloc", "cpu", "4", "use one of the machine's CPUs 0 to 3. The CPU"),
            ("stutter", "file", "201", "that takes 8233 MiB of disk 0, which has 8192"),
            ("xfsrepair", "size", "5x", "use a whole number, alone or with s, b, k, m, g, t or p."),
        ] {
            let told = told(name, parameter, value, ext4()).unwrap();
            let expected =
                format!("workload `{name}` cannot have {parameter} = \"{value}\": {hint}");
            assert!(told.starts_with(&expected), "{told}");
        }
        assert_eq!(told("stutter", "file", "200", ext4()), None);
        assert_eq!(told("bonnie", "size", "401", formatted(FileSystem::Btrfs, "compress")), None);
        let usemem = "workload `usemem` needs swap space, and the machine has none: add swap";
        assert!(told("usemem", "share", "50", ext4()).unwrap().starts_with(usemem));
        let raw = Disk { format: None, ..ext4() };
        for name in ["truncate", "xfsrepair"] {
            let expected = format!(
                "workload `{name}` needs a disk with a file system, and disk 0 has none: give it one, \
                 such as filesystem = \"xfs\""
            );
            assert_eq!(told(name, "rounds", "3", raw.clone()), Some(expected));
        }
    }

    #[test]
    fn a_users_programs_have_values_of_their_own() {
        let told = |parameter: &str, program: Option<&str>| {
            let mut manifest = find("nas", Path::new("")).unwrap();
            set_parameters(&mut manifest, [(parameter.into(), "ft".into())].into()).unwrap();
            let program = program.map(Into::into);
            let used = WorkloadUse { program, ..WorkloadUse::new(manifest, 1, Millis(1)) };
            check(&used, &machine(Vec::new())).is_err()
        };
        assert!(told("benchmarks", None) && !told("benchmarks", Some("bin/ft.S.x")));
        assert!(told("threads", None) && told("threads", Some("bin/ft.S.x")));
    }

    #[test]
    fn a_disk_is_filled_in_or_missing() {
        let mut manifest = find("fault", Path::new("")).unwrap();
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
        let mut manifest = find("fault", Path::new("")).unwrap();
        let mut filled = |words: &[&str], program| {
            manifest.command = words.iter().map(|word| (*word).to_owned()).collect();
            command(&manifest, &machine(Vec::new()), program).map(|words| words.join(" "))
        };
        let own = Some("/programs/own");
        assert_eq!(filled(&["run", "{program}"], own).unwrap(), "run /programs/own");
        assert_eq!(filled(&["run", "{program}"], None).unwrap(), "run ");
        assert_eq!(filled(&["program", "-n"], own).unwrap(), "/programs/own -n");
        assert_eq!(filled(&[], own).unwrap(), "/programs/own");
        for words in [&[][..], &["", "x"], &["{program}", "x"]] {
            let none = WorkloadError::NoProgram { workload: "fault".into() };
            assert_eq!(filled(words, None), Err(none));
        }
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
