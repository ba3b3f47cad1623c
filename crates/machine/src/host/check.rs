//! What this host is, and what can be done on it: lines for `faultline machine check`. A file that cannot be read is not
//! known, as in many containers and VMs.

use std::fs::{self, File};
use std::path::Path;

use guest::reason;
use guest::settings::SettingError;
use model::{Host, Setting};

use super::describe::{numbered, read, throttled, whole};
use super::{memory_text, no_events, no_tracepoint};
use crate::settings::{HostSettings, SettingsError};

/// A topic with what is known of it.
pub type Line = (&'static str, String);

/// Settings that are often compared or fixed.
const SETTINGS: [&str; 7] = [
    "/proc/sys/vm/swappiness",
    "/proc/sys/kernel/numa_balancing",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/smt/control",
];

/// The facts of the host below `root` that decide measured times, and its present load.
pub fn facts(root: &Path, host: &Host) -> Vec<Line> {
    let known = |text: &str| if text.is_empty() { "not known" } else { text }.to_owned();
    let cpu = root.join("sys/devices/system/cpu");
    let turbo = host.turbo.map_or("", |is_on| if is_on { "on" } else { "off" });
    let is_guest = whole(&root.join("proc/cpuinfo"))
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|it| it == "hypervisor"));
    let place = if is_guest { "a virtual machine: its own host decides times too" } else { "" };
    let heat = match cpu.join("cpu0/thermal_throttle").is_dir() {
        true => format!("{} times since boot", throttled(root)),
        false => String::new(),
    };
    let lines = [
        ("CPU", format!("{}, {} CPUs on {} cores", known(&host.cpu), host.cpus, host.cores)),
        ("microcode", known(&host.microcode)),
        ("memory by node", memory_text(&host.memory)),
        ("kernel", known(&host.kernel)),
        ("machine", place.to_owned()),
        ("governor", known(&host.governor)),
        ("turbo", known(turbo)),
        ("SMT", known(&host.smt)),
        ("mitigations", known(&host.mitigations)),
        ("clocksource", known(&host.clocksource)),
        ("temperature", known(&temperature(root))),
        ("slowed by heat", known(&heat)),
        ("load", known(&load(root))),
    ];
    lines.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// The load averages, and the share of the last minute in which tasks waited (`Documentation/accounting/psi.rst`).
fn load(root: &Path) -> String {
    let averages = read(&root.join("proc/loadavg"));
    let averages: Vec<&str> = averages.split_whitespace().take(3).collect();
    let waited = ["cpu", "memory", "io"].into_iter().filter_map(|what| {
        let text = whole(&root.join("proc/pressure").join(what));
        let some = text.lines().find(|line| line.starts_with("some "))?.to_owned();
        let share = some.split_whitespace().find_map(|word| word.strip_prefix("avg60="))?;
        Some(format!("{what} {share} %"))
    });
    let waited: Vec<String> = waited.collect();
    match waited.is_empty() {
        true => averages.join(" "),
        false => format!(
            "{}; in the last minute tasks waited for {} of the time",
            averages.join(" "),
            waited.join(", ")
        ),
    }
}

/// The hottest sensor in degrees Celsius (`Documentation/hwmon/sysfs-interface.rst`); empty without sensors.
fn temperature(root: &Path) -> String {
    let monitors = numbered(&root.join("sys/class/hwmon"), "hwmon").into_iter();
    let sensors = monitors.flat_map(|monitor| {
        (1..=32).map(move |number| monitor.join(format!("temp{number}_input")))
    });
    let zones = numbered(&root.join("sys/class/thermal"), "thermal_zone").into_iter();
    let files = sensors.chain(zones.map(|zone| zone.join("temp")));
    let hottest = files.filter_map(|file| read(&file).parse::<i64>().ok()).max();
    hottest
        .map_or(String::new(), |it| format!("{} degrees Celsius at the hottest sensor", it / 1000))
}

/// What this user can do on the host below `root`.
pub fn abilities(root: &Path, settings: &HostSettings) -> Vec<Line> {
    let yes_unless = |why: Option<String>| why.map_or("yes".to_owned(), |why| format!("no: {why}"));
    let user = rustix::process::geteuid();
    let user = if user.is_root() { "root".to_owned() } else { format!("user {}", user.as_raw()) };
    let log = File::open(root.join("dev/kmsg")).err();
    let log = log.map(|error| format!("/dev/kmsg: {}", reason(&error)));
    let paranoid = read(&root.join("proc/sys/kernel/perf_event_paranoid"));
    let after_events = |why: Option<String>| match no_events(root) {
        Some(_) => "no, for the same reason".to_owned(),
        None => yes_unless(why),
    };
    let events = match no_events(root) {
        None => format!("yes (kernel.perf_event_paranoid is {paranoid})"),
        why => yes_unless(why),
    };
    vec![
        ("sessions", format!("yes, as {user}")),
        ("events", events),
        ("tracepoints", after_events(no_tracepoint(root, "kmem", "mm_page_alloc"))),
        ("hardware events", after_events(no_counters(root))),
        ("kernel's log", yes_unless(log)),
        ("settings", writable(settings)),
        ("cgroups", cgroups(root)),
        ("VMs with KVM", kvm(root)),
    ]
}

/// Why the processor's events are not counted: perf has no device for them. On processors with two kinds of cores each
/// kind has one; arm64 names them after the core.
fn no_counters(root: &Path) -> Option<String> {
    let devices = fs::read_dir(root.join("sys/bus/event_source/devices")).into_iter().flatten();
    let mut names = devices.flatten().filter_map(|it| it.file_name().into_string().ok());
    let is_of_cpu = |name: String| name.starts_with("cpu") || name.starts_with("armv");
    (!names.any(is_of_cpu)).then(|| "the kernel has no counters of the processor".to_owned())
}

/// Which of the usual settings this user can write, and which not. Those that the kernel lacks are left out.
fn writable(settings: &HostSettings) -> String {
    let [mut can, mut cannot] = [Vec::new(), Vec::new()];
    for path in SETTINGS {
        let setting = Setting::Sysfs { path: path.to_owned(), value: String::new() };
        match settings.check(&setting) {
            Ok(()) => can.push(path),
            Err(SettingsError::Setting(SettingError::Absent { .. })) => {}
            Err(_) => cannot.push(path),
        }
    }
    match (can.is_empty(), cannot.is_empty()) {
        (true, true) => "not known: the kernel has none of the usual ones".to_owned(),
        (true, false) => "none of the usual ones can be written: usually root may".to_owned(),
        (false, true) => format!("{} can be written", can.join(", ")),
        (false, false) => {
            format!("{} can be written; {} cannot", can.join(", "), cannot.join(", "))
        }
    }
}

/// The version of cgroups, and the controllers of the second one (`Documentation/admin-guide/cgroup-v2.rst`).
fn cgroups(root: &Path) -> String {
    let cgroup = root.join("sys/fs/cgroup");
    match (cgroup.join("cgroup.controllers").is_file(), cgroup.join("memory").is_dir()) {
        (true, _) => match read(&cgroup.join("cgroup.controllers")) {
            none if none.is_empty() => "version 2, without controllers".to_owned(),
            controllers => format!("version 2: {controllers}"),
        },
        (false, true) => "version 1".to_owned(),
        (false, false) => "none".to_owned(),
    }
}

/// Whether the device of KVM can be opened. Under some hypervisors a guest does not start all the same.
fn kvm(root: &Path) -> String {
    let device = root.join("dev/kvm");
    match File::options().read(true).write(true).open(device) {
        Ok(_) => "/dev/kvm can be opened; the first run in a VM finds out whether a guest starts"
            .to_owned(),
        Err(error) => format!("no: /dev/kvm: {}; VMs are emulated", reason(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::describe;

    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn of<'a>(lines: &'a [Line], topic: &str) -> Option<&'a str> {
        lines.iter().find(|(own, _)| *own == topic).map(|(_, text)| &**text)
    }

    #[test]
    fn nothing_is_known_without_files() {
        let root = with(&[]);
        let facts = facts(root.path(), &describe(root.path()));
        assert_eq!(of(&facts, "governor"), Some("not known"));
        assert_eq!(of(&facts, "load"), Some("not known"));
        assert_eq!(of(&facts, "machine"), None);
        let settings = HostSettings::at(root.path().join("state"), root.path());
        let abilities = abilities(root.path(), &settings);
        assert_eq!(of(&abilities, "events"), Some("no: its kernel has no perf events"));
        assert_eq!(of(&abilities, "cgroups"), Some("none"));
        assert!(of(&abilities, "VMs with KVM").unwrap().starts_with("no: /dev/kvm: "));
    }

    #[test]
    fn sensors_load_and_heat_are_read() {
        let root = with(&[
            ("proc/loadavg", "0.50 1.25 2.00 1/234 5678\n"),
            ("proc/pressure/cpu", "some avg10=1.00 avg60=2.50 avg300=3.00 total=9\n"),
            ("proc/cpuinfo", "processor: 0\nflags\t\t: fpu hypervisor sse\n"),
            ("sys/class/hwmon/hwmon3/temp2_input", "61500\n"),
            ("sys/class/thermal/thermal_zone0/temp", "48000\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4\n"),
            ("sys/bus/event_source/devices/cpu_core/type", "4\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
        ]);
        let facts = facts(root.path(), &describe(root.path()));
        assert_eq!(
            of(&facts, "load"),
            Some("0.50 1.25 2.00; in the last minute tasks waited for cpu 2.50 % of the time")
        );
        assert_eq!(of(&facts, "temperature"), Some("61 degrees Celsius at the hottest sensor"));
        assert_eq!(of(&facts, "slowed by heat"), Some("4 times since boot"));
        assert!(of(&facts, "machine").unwrap().starts_with("a virtual machine"));
        assert_eq!(
            (no_counters(root.path()), &*cgroups(root.path())),
            (None, "version 2: cpu memory")
        );
    }
}
