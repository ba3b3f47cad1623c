//! The facts of a boot as text that can be compared between columns.

use std::collections::BTreeSet;

use kernelfiles::config;
use model::{BootFacts, Host, Note, Setting, StatesFound, Variant, count};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

/// The machine: what executes its instructions, and its CPUs, nodes and memory, as far as they are known.
pub fn machine(facts: &BootFacts) -> Option<String> {
    let BootFacts { provenance, cpus, nodes, memory, page_size, .. } = facts;
    let known = |known: bool, text: String| known.then_some(text);
    let parts = [
        provenance.execution.map(|it| match &*provenance.emulator {
            "" => it.name().to_owned(),
            emulator => format!("{}, {emulator}", it.name()),
        }),
        known(*cpus > 0, count(*cpus as usize, "CPU")),
        known(*nodes > 0, count(*nodes as usize, "node")),
        known(*memory > 0, format!("{} MiB", memory / MIB)),
        known(*page_size > 0, format!("pages of {} KiB", page_size / KIB)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The size of a base page, and of a huge page: a base page has page table entries of 8 bytes for its base pages. `None` if
/// it is not known.
pub fn pages(facts: &BootFacts) -> Option<String> {
    let base = facts.page_size;
    let huge = base / 8 * base;
    (base > 0).then(|| format!("{} KiB (huge pages: {} MiB)", base / KIB, huge / MIB))
}

/// The preemption model in force. If the kernel can choose, `/sys/kernel/debug/sched/preempt` has it in parentheses
/// (`kernel/sched/debug.c`). Otherwise it is the one that the kernel was built with.
pub fn preemption(facts: &BootFacts) -> Option<String> {
    let in_force = facts.preemption.split_once('(');
    match in_force.and_then(|(_, rest)| rest.split_once(')')) {
        Some((mode, _)) => Some(format!("{mode}, dynamic")),
        None => config::preemption(&config::parse(&facts.config)),
    }
}

/// The first 12 digits of a digest.
pub fn digest(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Says whether the host's processor may exceed its nominal frequency; empty if unknown.
pub fn turbo(host: &Host) -> &'static str {
    match host.turbo {
        Some(true) => "on",
        Some(false) => "off",
        None => "",
    }
}

/// Timer ticks per second (`CONFIG_HZ`).
pub fn hz(facts: &BootFacts) -> Option<String> {
    let hz = config::hz(&config::parse(&facts.config))?;
    Some(hz.to_string())
}

/// The compiler with its version.
pub fn compiler(facts: &BootFacts) -> Option<String> {
    config::compiler(&facts.banner)
}

/// The settings that a variant changes, in the order of the experiment.
pub fn settings(variant: &Variant) -> String {
    let setting = |setting: &Setting| match setting {
        Setting::Sysctl { name, value } => format!("{name}={value}"),
        Setting::Sysfs { path, value } => format!("{path}={value}"),
    };
    let settings: Vec<_> = variant.settings.iter().map(setting).collect();
    settings.join(", ")
}

/// The states that workloads found, from the notes of a boot.
pub fn found(notes: &[Note]) -> Vec<StatesFound<'_>> {
    notes.iter().filter_map(StatesFound::of_note).collect()
}

/// What sets a state: a file of sysfs, or a sysctl.
const SET_BY: [(&str, &str); 6] = [
    ("THP", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("THP defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ("THP of shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
    (MGLRU, "/sys/kernel/mm/lru_gen/enabled"),
    ("NUMA balancing", "kernel.numa_balancing"),
    ("KSM", "/sys/kernel/mm/ksm/run"),
];

/// The state of huge pages smaller than the usual ones, and the directories with the file `enabled` of each size.
const MTHP: (&str, &str) = ("mTHP", "/sys/kernel/mm/transparent_hugepage/hugepages-");

/// The settings of a variant that set a state; `None` if none does.
pub fn set_to(variant: &Variant, state: &str) -> Option<String> {
    let sets = |file: &str| match state == MTHP.0 {
        true => file.starts_with(MTHP.1) && file.ends_with("/enabled"),
        false => SET_BY.contains(&(state, file)),
    };
    let settings = variant.settings.iter().filter_map(|setting| {
        let (Setting::Sysctl { name: file, value } | Setting::Sysfs { path: file, value }) =
            setting;
        sets(file).then(|| format!("{file}={value}"))
    });
    let settings: Vec<String> = settings.collect();
    (!settings.is_empty()).then(|| settings.join(" "))
}

/// What is said of a state that a kernel does not have.
const LACKING: &str = "not in this kernel";
/// States in which nothing happens.
const OFF: [&str; 3] = [LACKING, "N", "off"];
/// The state whose value is a mask (Documentation/admin-guide/mm/multigen_lru.rst).
const MGLRU: &str = "MGLRU";

/// Whether nothing happens in a state. Huge pages of the usual size alone, the largest one, are what kernels without mTHP
/// have.
pub fn is_off(state: &str) -> bool {
    let (smaller, largest) = state.rsplit_once(", ").unwrap_or(("", state));
    let is_never = |size: &str| size.is_empty() || size.ends_with(" kB never");
    let is_usual =
        is_never(largest) || largest.ends_with(" kB inherit") && !largest.contains(" to ");
    OFF.contains(&state) || smaller.split(", ").all(is_never) && is_usual
}

/// One state as the workloads of a boot found it; `None` if it is not known.
pub fn state(found: &[StatesFound<'_>], name: &str) -> Option<String> {
    let mut by_value: Vec<(&str, Vec<&str>)> = Vec::new();
    for StatesFound { workload, states } in found {
        let value = states.iter().find(|(it, _)| *it == name);
        let value = match value {
            Some((_, "0x0000")) if name == MGLRU => "off",
            Some((_, value)) => value,
            None => LACKING,
        };
        match by_value.iter_mut().find(|(it, _)| *it == value) {
            Some((_, workloads)) => workloads.push(workload),
            None => by_value.push((value, vec![workload])),
        }
    }
    match &by_value[..] {
        [] => None,
        [(value, _)] => Some((*value).to_owned()),
        several => {
            let parts =
                several.iter().map(|(value, of)| format!("{value} for {}", of.join(" and ")));
            Some(parts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The modules that a variant loads.
pub fn modules(variant: &Variant) -> String {
    variant.modules.join(", ")
}

/// For each command line, the words that not all command lines have equally often. Words that a seed draws are left
/// out.
pub fn own_words(cmdlines: &[Option<&str>]) -> Vec<Option<String>> {
    let known = cmdlines.iter().flatten();
    let common = known
        .map(|cmdline| numbered(cmdline).into_iter().collect::<BTreeSet<_>>())
        .reduce(|common, words| &common & &words)
        .unwrap_or_default();
    let own = |cmdline: &str| {
        let own = numbered(cmdline).into_iter().filter(|word| !common.contains(word));
        own.map(|(word, _)| word).collect::<Vec<_>>().join(" ")
    };
    cmdlines.iter().map(|cmdline| cmdline.map(own)).collect()
}

/// The words of a command line, each with the number of its earlier occurrences.
fn numbered(cmdline: &str) -> Vec<(&str, usize)> {
    let drawn = |word: &&str| word.starts_with("faultline.") || word.starts_with("faultline_");
    let words: Vec<&str> = cmdline.split_whitespace().filter(|word| !drawn(word)).collect();
    let before =
        |(place, word): (usize, &&str)| words[..place].iter().filter(|it| *it == word).count();
    words.iter().enumerate().map(|(place, word)| (*word, before((place, word)))).collect()
}

#[cfg(test)]
mod tests {
    use model::{Execution, Provenance};

    use super::*;

    #[test]
    fn the_preemption_model_in_force_comes_before_the_one_built_in() {
        let model = |preemption: &str, config: &str| {
            super::preemption(&BootFacts {
                preemption: preemption.into(),
                config: config.into(),
                ..BootFacts::default()
            })
        };
        let built = "CONFIG_PREEMPT_VOLUNTARY=y\n";
        let in_force = model("none voluntary (full) lazy", built);
        assert_eq!(in_force.as_deref(), Some("full, dynamic"));
        assert_eq!(model("", built).as_deref(), Some("voluntary"));
        assert_eq!(model("", ""), None);
    }

    #[test]
    fn settings_are_printed_as_they_are_set() {
        let mut variant = crate::testing::variant("a");
        assert_eq!((settings(&variant), modules(&variant)), (String::new(), String::new()));
        variant.settings = vec![
            Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() },
            Setting::Sysfs { path: "/sys/kernel/mm/lru_gen/enabled".into(), value: "y".into() },
        ];
        variant.modules = vec!["ext4".into(), "btrfs".into()];
        let said = "kernel.numa_balancing=0, /sys/kernel/mm/lru_gen/enabled=y";
        assert_eq!((&*settings(&variant), &*modules(&variant)), (said, "ext4, btrfs"));
    }

    #[test]
    fn a_machine_of_one_node_is_printed_in_the_singular() {
        let facts = BootFacts {
            cpus: 1,
            nodes: 1,
            memory: 512 * MIB,
            page_size: 4 * KIB,
            provenance: Provenance {
                execution: Some(Execution::Kvm),
                emulator: "QEMU 10.0.2".into(),
                ..Provenance::default()
            },
            ..BootFacts::default()
        };
        let said = "kvm, QEMU 10.0.2, 1 CPU, 1 node, 512 MiB, pages of 4 KiB";
        assert_eq!(machine(&facts).as_deref(), Some(said));
        let imported = BootFacts { provenance: Provenance::default(), nodes: 0, ..facts };
        let said = "1 CPU, 512 MiB, pages of 4 KiB";
        assert_eq!(machine(&imported).as_deref(), Some(said));
        assert_eq!(machine(&BootFacts::default()), None);
    }

    #[test]
    fn common_words_of_command_lines_are_left_out() {
        let words = own_words(&[Some("quiet a=1 b"), None, Some("quiet  a=2 b")]);
        assert_eq!(words, [Some("a=1".into()), None, Some("a=2".into())]);
        assert_eq!(own_words(&[Some("quiet")]), [Some(String::new())]);
        let again = own_words(&[Some("quiet"), Some("quiet quiet faultline.seed=00000001")]);
        assert_eq!(again, [Some(String::new()), Some("quiet".into())]);
    }
}
