//! Describes this host: the properties that decide measured times, and its identity.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use kernelfiles::{cpuinfo, meminfo};
use model::{Bytes, CpuSet, Host, Kernel, Node, RUNNING_KERNEL, Topology};
use sha2::{Digest, Sha256};

/// The most bytes that are read of a file. `/proc/cpuinfo` has about 2 KiB for each CPU.
const MAX_FILE: u64 = 16 << 20;
/// The most characters that are kept of a value.
const MAX_TEXT: usize = 256;

/// Describes the host whose files are below `root`, which is `/` for this host. Values that cannot be read are
/// unknown.
///
/// The identity is a digest of `/etc/machine-id` (`machine-id(5)`), of the serial numbers that the firmware reports,
/// and of the processor's name and stepping. Copies of one disk image can have the same machine-id, so the other two
/// are included. Only root can read the serial numbers. Without a machine-id and the firmware's UUID, as in some
/// containers, the identity is unknown.
pub fn describe(root: &Path) -> Host {
    let text = |path: &str| read(&root.join(path));
    let processors = cpuinfo::parse(&whole(&root.join("proc/cpuinfo")));
    let release = ["osrelease", "version"].map(|it| text(&format!("proc/sys/kernel/{it}")));
    let firmware =
        ["product_uuid", "board_serial"].map(|it| text(&format!("sys/class/dmi/id/{it}")));
    let cpu = root.join("sys/devices/system/cpu");
    let governors = numbered(&cpu.join("cpufreq"), "policy").into_iter();
    let governors: BTreeSet<String> =
        governors.map(|policy| read(&policy.join("scaling_governor"))).collect();
    let governors: Vec<String> = governors.into_iter().filter(|it| !it.is_empty()).collect();
    let no_turbo = flag(&cpu.join("intel_pstate/no_turbo"));
    Host {
        id: identity(&text("etc/machine-id"), &firmware, &processors),
        vendor: processors.vendor,
        cpu: processors.name,
        family: processors.family,
        model: processors.model,
        stepping: processors.stepping,
        microcode: processors.microcode,
        cpus: processors.cpus,
        cores: processors.cores,
        memory: memory(root),
        kernel: release.join(" ").trim().to_owned(),
        governor: governors.join(", "),
        turbo: no_turbo.map(|it| !it).or_else(|| flag(&cpu.join("cpufreq/boost"))),
        smt: read(&cpu.join("smt/control")),
        mitigations: mitigations(&cpu.join("vulnerabilities")),
        clocksource: text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        boot_id: text("proc/sys/kernel/random/boot_id"),
    }
}

/// What the kernel does against each vulnerability that the processor has
/// (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
fn mitigations(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let state =
        |entry: fs::DirEntry| Some((entry.file_name().into_string().ok()?, read(&entry.path())));
    let mut states: Vec<(String, String)> = entries.filter_map(state).collect();
    states.retain(|(_, state)| !state.is_empty() && state != "Not affected");
    states.sort_unstable();
    let states = states.into_iter().map(|(name, state)| format!("{name}: {state}"));
    states.collect::<Vec<_>>().join("; ")
}

/// The CPUs, the memory and the nodes of the host whose files are below `root`. Memory is rounded down to 64 MiB, because
/// it varies a little from boot to boot.
pub fn topology(root: &Path) -> Topology {
    const UNIT: u64 = 64 << 20;
    let nodes = root.join("sys/devices/system/node");
    let list = |path: &Path| read(path).parse::<CpuSet>().unwrap_or_default();
    let mut cpus: Vec<CpuSet> =
        numbered(&nodes, "node").iter().map(|node| list(&node.join("cpulist"))).collect();
    if cpus.is_empty() {
        cpus.push(list(&root.join("sys/devices/system/cpu/online")));
    }
    let memory = memory(root).into_iter().map(|bytes| Bytes(bytes / UNIT * UNIT));
    let memory = memory.chain(std::iter::repeat(Bytes(0)));
    let node = |(cpus, memory)| Node { cpus, memory, distances: Vec::new() };
    Topology { nodes: cpus.into_iter().zip(memory).map(node).collect() }
}

/// The kernel that runs. It has no files; its digest is that of its build ID and its version.
pub fn running_kernel(root: &Path) -> Kernel {
    let notes = fs::read(root.join("sys/kernel/notes")).unwrap_or_default();
    let banner = whole(&root.join("proc/version"));
    let digest = Sha256::new().chain_update(notes).chain_update(banner).finalize();
    let release = read(&root.join("proc/sys/kernel/osrelease"));
    let config = root.join(format!("boot/config-{release}"));
    Kernel {
        name: RUNNING_KERNEL.into(),
        config: config.is_file().then_some(config),
        release,
        origin: "the kernel that the host runs".into(),
        digest: format!("{digest:x}"),
        ..Kernel::default()
    }
}

/// How often the CPUs were slowed down because of heat, since the host's boot. 0 if the host does not tell.
pub fn throttled(root: &Path) -> u64 {
    let cpus = numbered(&root.join("sys/devices/system/cpu"), "cpu").into_iter();
    let count = |cpu: PathBuf| -> u64 {
        let read = |name| read(&cpu.join("thermal_throttle").join(name)).parse().unwrap_or(0);
        read("core_throttle_count") + read("package_throttle_count")
    };
    cpus.map(count).sum()
}

fn identity(machine: &str, firmware: &[String; 2], processors: &cpuinfo::Processors) -> String {
    // An image has this text until its first boot (`machine-id(5)`).
    let machine = if machine == "uninitialized" { "" } else { machine };
    let [uuid, serial] = firmware;
    if machine.is_empty() && uuid.is_empty() {
        return String::new();
    }
    let cpuinfo::Processors { vendor, name, family, model, stepping, .. } = processors;
    let numbers =
        [family, model, stepping].map(|it| it.map_or("-".to_owned(), |it| it.to_string()));
    let numbers = numbers.join(" ");
    let text =
        format!("faultline host\n{machine}\n{uuid}\n{serial}\n{vendor}\n{name}\n{numbers}\n");
    format!("{:x}", Sha256::digest(text))
}

/// Memory of each node, or of the machine if it has no nodes, in bytes.
fn memory(root: &Path) -> Vec<u64> {
    let mut files: Vec<PathBuf> = numbered(&root.join("sys/devices/system/node"), "node");
    files.iter_mut().for_each(|it| it.push("meminfo"));
    if files.is_empty() {
        files.push(root.join("proc/meminfo"));
    }
    let total = |path: &PathBuf| {
        let gauges = meminfo::parse(&whole(path));
        let (_, kib) = gauges.into_iter().find(|(name, _)| name == "MemTotal")?;
        Some(u64::try_from(kib).ok()?.saturating_mul(1024))
    };
    files.iter().filter_map(total).collect()
}

/// The entries of a directory whose names are `prefix` and a number, by number.
pub(super) fn numbered(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |entry: &fs::DirEntry| {
        entry.file_name().to_str()?.strip_prefix(prefix)?.parse::<u32>().ok()
    };
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((number(&entry)?, entry.path()))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// A file of one number, 0 or 1.
fn flag(path: &Path) -> Option<bool> {
    match &*read(path) {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The text of a file of one line; empty if it cannot be read.
pub(super) fn read(path: &Path) -> String {
    whole(path).trim().chars().take(MAX_TEXT).collect()
}

/// The text of a file; empty if it cannot be read.
pub(super) fn whole(path: &Path) -> String {
    let mut bytes = Vec::new();
    let is_read = File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes));
    is_read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\n\
                           model name: AMD EPYC 9354\nstepping: 1\nmicrocode: 0xa101148\n";

    /// A host with these files.
    fn host(files: &[(&str, &str)]) -> Host {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        describe(root.path())
    }

    #[test]
    fn a_host_is_read() {
        let found = host(&[
            ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
            ("proc/cpuinfo", CPUINFO),
            ("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"),
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1\n"),
            ("sys/devices/system/node/node10/meminfo", "Node 10 MemTotal: 3 kB\n"),
            ("sys/devices/system/node/node2/meminfo", "Node 2 MemTotal: 2 kB\n"),
            ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "schedutil\n"),
            ("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
            ("sys/devices/system/cpu/smt/control", "on\n"),
            ("sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable\n"),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            (
                "sys/devices/system/cpu/vulnerabilities/retbleed",
                "Mitigation: untrained return thunk\n",
            ),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("proc/sys/kernel/random/boot_id", "0b4d\n"),
        ]);
        // By `sha256sum`.
        let id = "63ec1640141c80229667e3e53c48bd91";
        let expected = Host {
            id: found.id.clone(),
            vendor: "AuthenticAMD".into(),
            cpu: "AMD EPYC 9354".into(),
            family: Some(25),
            model: Some(17),
            stepping: Some(1),
            microcode: "0xa101148".into(),
            cpus: 1,
            cores: 0,
            memory: vec![2048, 3072],
            kernel: "6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1".into(),
            governor: "performance, schedutil".into(),
            turbo: Some(false),
            smt: "on".into(),
            mitigations: "mds: Vulnerable; retbleed: Mitigation: untrained return thunk".into(),
            clocksource: "tsc".into(),
            boot_id: "0b4d".into(),
        };
        assert_eq!(found, expected);
        assert_eq!(&found.id[..32], id);
    }

    #[test]
    fn hosts_are_told_apart_by_each_part_of_the_identity() {
        let id = |files: &[(&str, &str)]| host(files).id;
        let own = [("etc/machine-id", "ab\n"), ("proc/cpuinfo", CPUINFO)];
        let all = [
            id(&own),
            id(&own[..1]),
            id(&[("etc/machine-id", "cd\n"), own[1]]),
            id(&[own[0], own[1], ("sys/class/dmi/id/product_uuid", "4c4c\n")]),
            id(&[own[0], own[1], ("sys/class/dmi/id/board_serial", "4c4c\n")]),
            id(&[own[1], ("sys/class/dmi/id/product_uuid", "4c4c\n")]),
        ];
        assert!(all.iter().all(|id| id.len() == 64 && !id.contains("ab\n")), "{all:?}");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let later = [own[0], own[1], ("proc/sys/kernel/osrelease", "6.12\n")];
        assert_eq!(id(&own), id(&later));
    }

    #[test]
    fn a_host_without_an_identity_is_unknown() {
        assert_eq!(host(&[]), Host::default());
        let image = [("etc/machine-id", "uninitialized\n"), ("proc/cpuinfo", CPUINFO)];
        assert_eq!(host(&image).id, "");
        let serial = [("proc/cpuinfo", CPUINFO), ("sys/class/dmi/id/board_serial", "None\n")];
        assert_eq!(host(&serial).id, "");
    }

    #[test]
    fn turbo_has_two_files_with_opposite_meanings() {
        let turbo = |path: &str, text: &str| {
            host(&[(&format!("sys/devices/system/cpu/{path}"), text)]).turbo
        };
        assert_eq!(turbo("intel_pstate/no_turbo", "0\n"), Some(true));
        assert_eq!(turbo("intel_pstate/no_turbo", "1\n"), Some(false));
        assert_eq!(turbo("cpufreq/boost", "1\n"), Some(true));
        assert_eq!(turbo("cpufreq/boost", "maybe\n"), None);
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(9999);
        assert_eq!(host(&[("proc/sys/kernel/osrelease", &long)]).kernel.len(), MAX_TEXT);
    }

    #[test]
    fn nodes_have_cpus_and_whole_units_of_memory() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal: 1000000 kB\n");
        write("sys/devices/system/cpu/online", "0-2\n");
        let flat = topology(root.path());
        assert_eq!((flat.cpus(), flat.memory(), flat.nodes.len()), (3, Bytes::mib(960), 1));
        for (node, cpus, kib) in [(0, "0-1", 131_073), (1, "", 65_536)] {
            write(&format!("sys/devices/system/node/node{node}/cpulist"), cpus);
            let memory = format!("Node {node} MemTotal: {kib} kB\n");
            write(&format!("sys/devices/system/node/node{node}/meminfo"), &memory);
        }
        let nodes = topology(root.path()).nodes;
        assert_eq!((nodes[0].cpus.0.len(), nodes[0].memory), (2, Bytes::mib(128)));
        assert_eq!((nodes[1].cpus.0.len(), nodes[1].memory), (0, Bytes::mib(64)));
        write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "2\n");
        write("sys/devices/system/cpu/cpu3/thermal_throttle/package_throttle_count", "5\n");
        assert_eq!(throttled(root.path()), 7);
    }

    #[test]
    fn this_host_is_described() {
        assert!(describe(Path::new("/")).cpus > 0);
        assert!(topology(Path::new("/")).cpus() > 0);
    }
}
