//! Facts of the machine and the kernel from the files of an iteration.

use std::collections::BTreeMap;

use model::{BootFacts, Bytes, CpuSet, Node, Topology};

/// The largest number of CPUs or nodes of a machine.
const MAX_NUMBER: u32 = 1 << 16;
const KIB: u64 = 1 << 10;

/// The texts of files, by the names of the files in an iteration.
pub type Texts = BTreeMap<&'static str, String>;

/// The kernel as `kernel.version` (`uname -a`), the log and other files describe it.
pub fn kernel(texts: &Texts) -> BootFacts {
    let text = |name| texts.get(name).map_or("", |text| &**text);
    let (release, version) = uname(text("kernel.version")).unwrap_or_default();
    let banner = logged(text("dmesg"), "Linux version ")
        .map_or(String::new(), |rest| format!("Linux version {rest}"));
    let of_banner = || banner.split_ascii_whitespace().nth(2).unwrap_or_default().to_owned();
    BootFacts {
        release: if release.is_empty() { of_banner() } else { release },
        version,
        cmdline: logged(text("dmesg"), "Command line: ").unwrap_or_default().to_owned(),
        preemption: text("preempt-dynamic").trim().to_owned(),
        banner,
        ..BootFacts::default()
    }
}

/// Release and version in the output of `uname -a`: `Linux HOST RELEASE VERSION... MACHINE...`.
fn uname(text: &str) -> Option<(String, String)> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    let (_system, _host, release) = (words.next()?, words.next()?, words.next()?);
    let mut rest: Vec<&str> = words.collect();
    if rest.last() == Some(&"GNU/Linux") {
        rest.pop();
        // `uname` prints machine, processor and platform; these are usually the same.
        let machine = rest.last().copied();
        while rest.last().is_some_and(|last| Some(*last) == machine || *last == "unknown") {
            rest.pop();
        }
    }
    Some((release.to_owned(), rest.join(" ")))
}

/// The rest of the first message of the kernel's log that begins with `start`.
fn logged<'a>(log: &'a str, start: &str) -> Option<&'a str> {
    log.lines().find_map(|line| {
        let message = match line.split_once("] ") {
            Some((stamp, message)) if stamp.contains('[') => message,
            _ => line,
        };
        Some(message.strip_prefix(start)?.trim())
    })
}

/// Adds what is known of the machine's shape to `facts`.
pub fn shape(facts: &mut BootFacts, texts: &Texts, meminfo: &str, zoneinfo: &str) {
    let text = |name| texts.get(name).map_or("", |text| &**text);
    let nodes = topology(texts).map(|topology| (topology.cpus(), topology.nodes.len() as u32));
    let lscpu = |name| value(text("lscpu.txt"), name)?.parse().ok();
    facts.cpus = lscpu("CPU(s)").or(nodes.map(|(cpus, _)| cpus)).unwrap_or(0);
    let of_zones = zoneinfo.lines().filter_map(|line| {
        line.strip_prefix("Node ")?.split_once(',')?.0.trim().parse::<u32>().ok()
    });
    let of_zones = of_zones.max().map(|last| last.saturating_add(1));
    let of_lscpu = lscpu("NUMA node(s)");
    facts.nodes = nodes.map(|(_, nodes)| nodes).or(of_lscpu).or(of_zones).unwrap_or(0);
    let kib = value(meminfo, "MemTotal").and_then(|value| value.strip_suffix("kB"));
    let kib = kib.and_then(|kib| kib.trim().parse::<u64>().ok());
    facts.memory = kib.unwrap_or(0).saturating_mul(KIB);
    // Other architectures have several page sizes, and no file says which is used.
    if text("kernel.version").contains(" x86_64") {
        facts.page_size = 4 * KIB;
    }
}

/// The value of a line `NAME:  VALUE`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// The machine as `numactl --hardware` describes it. `None` if that output is missing, or if CPUs or nodes are not
/// numbered consecutively.
pub fn topology(texts: &Texts) -> Option<Topology> {
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    let mut in_distances = false;
    for line in texts.get("numactl.txt")?.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["node", "distances:", ..] => in_distances = true,
            ["node", number, "cpus:", cpus @ ..] if !in_distances => {
                let cpus: Option<Vec<u32>> = cpus.iter().map(|cpu| cpu.parse().ok()).collect();
                node(&mut nodes, number)?.cpus = CpuSet(cpus?);
            }
            ["node", number, "size:", size, "MB"] if !in_distances => {
                let mib: u64 = size.parse().ok().filter(|mib| *mib < 1 << 32)?;
                node(&mut nodes, number)?.memory = Bytes::mib(mib);
            }
            [number, distances @ ..] if in_distances && number.ends_with(':') => {
                let distances: Option<Vec<u8>> =
                    distances.iter().map(|distance| distance.parse().ok()).collect();
                node(&mut nodes, number.trim_end_matches(':'))?.distances = distances?;
            }
            _ => {}
        }
    }
    let consecutive = nodes.keys().copied().eq(0..nodes.len() as u32);
    let count = nodes.len();
    let topology = Topology { nodes: nodes.into_values().collect() };
    let mut cpus: Vec<u32> = topology.nodes.iter().flat_map(|it| &it.cpus.0).copied().collect();
    cpus.sort_unstable();
    let all = cpus.iter().copied().eq(0..cpus.len() as u32) && !cpus.is_empty();
    let square = topology.nodes.iter().all(|it| [0, count].contains(&it.distances.len()));
    (consecutive && all && square).then_some(topology)
}

fn node<'a>(nodes: &'a mut BTreeMap<u32, Node>, number: &str) -> Option<&'a mut Node> {
    let number = number.parse().ok().filter(|number| *number < MAX_NUMBER)?;
    let empty = || Node { cpus: CpuSet::default(), memory: Bytes(0), distances: Vec::new() };
    Some(nodes.entry(number).or_insert_with(empty))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NUMACTL: &str = "available: 2 nodes (0-1)\nnode 0 cpus: 0 2\nnode 0 size: 1000 MB\n\
        node 0 free: 900 MB\nnode 1 cpus: 1 3\nnode 1 size: 2000 MB\nnode distances:\n\
        node   0   1 \n  0:  10  21 \n  1:  21  10 \n";

    #[test]
    fn a_kernel() {
        let uname = "Linux host 6.6.0-base #1 SMP PREEMPT_DYNAMIC Wed Nov  1 12:00:00 UTC 2023 \
            x86_64 x86_64 x86_64 GNU/Linux\n";
        let dmesg = "[    0.000000] Linux version 6.6.0-base (me@host) (gcc 13)\n\
            [    0.000000] Command line: quiet nokaslr\n";
        let texts = Texts::from([("kernel.version", uname.into()), ("dmesg", dmesg.into())]);
        let facts = kernel(&texts);
        assert_eq!(facts.release, "6.6.0-base");
        assert_eq!(facts.version, "#1 SMP PREEMPT_DYNAMIC Wed Nov 1 12:00:00 UTC 2023");
        assert_eq!(facts.banner, "Linux version 6.6.0-base (me@host) (gcc 13)");
        assert_eq!(facts.cmdline, "quiet nokaslr");
        let short = "Linux vm 6.18.4 #1 SMP @0 x86_64 GNU/Linux\n";
        let facts = kernel(&Texts::from([("kernel.version", short.into())]));
        assert_eq!((&*facts.release, &*facts.version), ("6.18.4", "#1 SMP @0"));
        let facts = kernel(&Texts::from([("dmesg", dmesg.into())]));
        assert_eq!((&*facts.release, &*facts.version), ("6.6.0-base", ""));
        assert_eq!(kernel(&Texts::new()), BootFacts::default());
    }

    #[test]
    fn a_machine() {
        let lscpu = "Architecture:  x86_64\nCPU(s):                4\nNUMA node(s):  2\n";
        let mut texts = Texts::from([("numactl.txt", NUMACTL.into()), ("lscpu.txt", lscpu.into())]);
        let mut facts = BootFacts::default();
        shape(&mut facts, &texts, "MemTotal:        3000 kB\n", "");
        assert_eq!((facts.cpus, facts.nodes, facts.memory), (4, 2, 3000 << 10));
        assert_eq!(facts.page_size, 0);
        let machine = topology(&texts).unwrap();
        assert_eq!((machine.cpus(), machine.memory()), (4, Bytes::mib(3000)));
        assert_eq!((&machine.nodes[1].cpus.0, machine.distance(0, 1)), (&vec![1, 3], 21));

        texts.remove("numactl.txt");
        texts.remove("lscpu.txt");
        let mut facts = BootFacts::default();
        shape(&mut facts, &texts, "", "Node 0, zone DMA\nNode 3, zone Normal\n");
        assert_eq!((facts.cpus, facts.nodes, topology(&texts)), (0, 4, None));
    }

    #[test]
    fn machines_with_gaps_in_their_numbers_are_none() {
        for (from, to) in [("cpus: 1 3", "cpus: 1 5"), ("node 1", "node 7"), ("10  21", "10  21 9")]
        {
            let texts = Texts::from([("numactl.txt", NUMACTL.replace(from, to))]);
            assert_eq!(topology(&texts), None, "{to}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>(), lines in prop::collection::vec(
            "(node [0-9]{1,12} (cpus:|size:|distances:)|[0-9]{1,3}:|Node )[0-9 ,MB]{0,20}", 0..20,
        )) {
            for text in [text, lines.join("\n")] {
                let names = ["kernel.version", "dmesg", "numactl.txt", "lscpu.txt"];
                let texts: Texts = names.map(|name| (name, text.clone())).into();
                kernel(&texts);
                topology(&texts);
                shape(&mut BootFacts::default(), &texts, &text, &text);
            }
        }
    }
}
