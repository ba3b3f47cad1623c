//! One boot as text: facts, complaints, samples, series and the kernel's log.

use std::collections::BTreeSet;

use model::{
    Boot, Chunk, Column, Host, INSTRUCTIONS, Kept, NO_PHASE, ONCE, Provenance, Sample, StatesFound,
    count,
};
use report::escape;

use crate::list::{figure, wrapped};

/// The source of the series that a workload reports itself.
const WORKLOAD: &str = "workload";
/// The width of names in the head, in characters.
const NAME: usize = 14;
/// The store keeps such series in millionths.
const MILLION: f64 = 1e6;

/// All of a boot.
pub fn text(kept: &Kept) -> String {
    let boot = &kept.boot;
    let mut lines = head(kept);
    lines.push("\nsamples".into());
    let is_divided = |it: &Sample| it.metric == INSTRUCTIONS && !it.phase.is_empty();
    let divided = boot.samples.iter().any(is_divided);
    lines.extend(boot.samples.iter().map(|it| sample(it, divided)));
    lines.push("\nseries".into());
    lines.extend(boot.chunks.iter().map(series));
    let of_workloads: Vec<String> = boot.chunks.iter().flat_map(course).collect();
    if !of_workloads.is_empty() {
        lines.push("\ncourse of the workloads' own series".into());
        lines.push(course_line(["", "", "first", "half-way", "last", "least", "most"]));
        lines.extend(of_workloads);
    }
    lines.extend(workloads(boot).map(|workload| locality(boot, workload)));
    lines.push("\nlog".into());
    lines.extend(boot.console.lines().map(|line| format!("  {}", escape(line))));
    let lines = lines.iter().map(|line| line.trim_end());
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// The workloads of the boot, each once, in order.
fn workloads(boot: &Boot) -> impl Iterator<Item = &str> {
    let mut seen = BTreeSet::new();
    let names = boot.profiles.iter().map(|profile| &*profile.workload);
    names.filter(move |name| seen.insert(*name))
}

/// The share of a workload's local accesses over time; empty if they were not counted.
fn locality(boot: &Boot, workload: &str) -> String {
    match plots::locality(boot, workload) {
        intervals if intervals.is_empty() => String::new(),
        intervals => format!("\n{}", report::locality(workload, &intervals)),
    }
}

/// Outcome, kernel, machine, host and complaints.
fn head(kept: &Kept) -> Vec<String> {
    let Kept { id, superseded, boot } = kept;
    let facts = &boot.facts;
    let superseded = if *superseded { " (superseded)" } else { "" };
    let machine = [count(facts.cpus as usize, "CPU"), count(facts.nodes as usize, "node")];
    let machine = match (facts.cpus, facts.nodes, facts.memory) {
        (0, 0, 0) => "not known".to_owned(),
        _ => format!("{}, {} bytes", machine.join(", "), facts.memory),
    };
    let mut head = vec![
        line("boot", &format!("{id}, boot {} of the variant", u64::from(boot.boot_index) + 1)),
        line("variant", &boot.variant),
        line("outcome", &format!("{}{superseded}", boot.outcome)),
        line("kernel", &format!("{} {}", facts.release, facts.version)),
        line("origin", &facts.kernel_origin),
        line("digest", &facts.kernel_digest),
        line("built by", &facts.banner),
        line("command line", &facts.cmdline),
        line("machine", &machine),
    ];
    // It is unknown for imported boots.
    if let Some(execution) = facts.provenance.execution {
        let by = format!("{} ({})", facts.provenance.emulator, execution.name());
        head.push(line("executed by", &by));
    }
    head.extend(made(&facts.provenance));
    if !facts.userspace_digest.is_empty() {
        head.push(line("user space", &format!("sha256 {}", facts.userspace_digest)));
        let packages = facts.userspace.iter().flat_map(|it| it.split_whitespace());
        let packages = wrapped(&format!("{:<NAME$}", "packages"), &" ".repeat(NAME), packages);
        head.extend(packages.lines().map(str::to_owned));
    }
    head.extend(states(boot));
    head.push(line("host's load", &load(boot)));
    let problems = boot.problems.iter();
    head.extend(problems.map(|problem| line(&problem.kind.to_string(), &problem.text)));
    let notes = boot.notes.iter().filter(|note| StatesFound::of_note(note).is_none());
    head.extend(notes.map(|note| line("note", &note.to_string())));
    head
}

/// The states that the workloads found. Workloads that found the same share a line.
fn states(boot: &Boot) -> Vec<String> {
    let mut groups: Vec<(Vec<&str>, StatesFound<'_>)> = Vec::new();
    for found in boot.notes.iter().filter_map(StatesFound::of_note) {
        match groups.iter_mut().find(|(_, it)| it.states == found.states) {
            Some((workloads, _)) => workloads.push(found.workload),
            None => groups.push((vec![found.workload], found)),
        }
    }
    let of_one = groups.len() == 1;
    let text = groups.iter().map(|(workloads, found)| {
        let states: Vec<String> =
            found.states.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let of = if of_one { String::new() } else { format!("{}: ", workloads.join(", ")) };
        let text = format!("{of}{}", states.join("; "));
        wrapped(&format!("{:<NAME$}", "states"), &" ".repeat(NAME), text.split_whitespace())
    });
    text.collect::<String>().lines().map(str::to_owned).collect()
}

fn line(name: &str, value: &str) -> String {
    format!("{name:<NAME$}{}", escape(value.trim()))
}

/// The host and the digests of Faultline's programs, if they are known.
fn made(Provenance { host, programs, .. }: &Provenance) -> Vec<String> {
    let mut lines = Vec::new();
    if *host != Host::default() {
        lines.push(line("host", &host.label()));
    }
    if !host.id.is_empty() {
        lines.push(line("", &format!("identity {}", host.id)));
    }
    let number = |it: Option<u32>| it.map_or("?".to_owned(), |it| it.to_string());
    if host.cpus > 0 {
        let signature = [host.family, host.model, host.stepping].map(number).join("/");
        let microcode = if host.microcode.is_empty() { "?" } else { &host.microcode };
        let shape = [count(host.cpus as usize, "CPU"), count(host.cores as usize, "core")];
        let shape = if host.cores > 0 { shape.join(", ") } else { shape[0].clone() };
        lines.push(line(
            "",
            &format!("{shape}, family/model/stepping {signature}, microcode {microcode}"),
        ));
    }
    if !host.memory.is_empty() {
        let memory: Vec<String> =
            host.memory.iter().map(|it| format!("{} MiB", it >> 20)).collect();
        lines.push(line("", &format!("memory of nodes: {}", memory.join(", "))));
    }
    let turbo = host.turbo.map_or("", |it| if it { "on" } else { "off" });
    for (name, value) in [("kernel", &*host.kernel), ("governor", &host.governor), ("turbo", turbo)]
    {
        if !value.is_empty() {
            lines.push(line("", &format!("{name} {value}")));
        }
    }
    let programs = programs.named().into_iter().filter(|(_, digest)| !digest.is_empty());
    lines.extend(programs.map(|(name, digest)| line(name, &format!("sha256 {digest}"))));
    lines
}

fn load(boot: &Boot) -> String {
    let host = &boot.host;
    let load = [host.load_before, host.load_after].map(|load| figure(load, 2));
    format!("{} to {}, steal {} %", load[0], load[1], figure(100.0 * host.steal, 1))
}

/// One sample. `divided` says whether instructions are also counted in phases: then those without one are no total.
fn sample(sample: &Sample, divided: bool) -> String {
    let Sample { workload, iteration, phase, metric, label, value, count, ended: _ } = sample;
    let is_rest = divided && metric == INSTRUCTIONS && phase.is_empty();
    let phase = if is_rest { NO_PHASE.trim_start_matches('-') } else { phase };
    let name = [metric, label, phase].map(escape);
    let name: Vec<_> = name.into_iter().filter(|part| !part.is_empty()).collect();
    let place = format!("{} {iteration}", escape(workload));
    let times = if *count > ONCE { format!(" x {count}") } else { String::new() };
    let decimals = if metric == INSTRUCTIONS { 0 } else { 4 };
    format!("  {place:<16} {:<36} {:>14}{times}", name.join("-"), figure(*value, decimals))
}

fn place(chunk: &Chunk) -> String {
    let Chunk { workload, iteration, phase, .. } = chunk;
    escape(&format!("{workload} {iteration} {phase}"))
}

fn series(chunk: &Chunk) -> String {
    let (place, source) = (place(chunk), escape(&chunk.source));
    let (times, counters) = (chunk.times.len(), count(chunk.columns.len(), "counter"));
    format!("  {place:<36} {source:<14} {times:>6} x {counters}")
}

/// For each series that the workload reported in a phase, such as its convergence, the values over time.
fn course(chunk: &Chunk) -> Vec<String> {
    if chunk.source != WORKLOAD {
        return Vec::new();
    }
    let place = place(chunk);
    chunk.columns.iter().filter_map(|column| course_of(&place, column)).collect()
}

/// The values of one series over time; `None` without points.
fn course_of(place: &str, column: &Column) -> Option<String> {
    let points: Vec<i64> = column.values.iter().copied().flatten().collect();
    let figures = [
        *points.first()?,
        points[points.len() / 2],
        *points.last()?,
        *points.iter().min()?,
        *points.iter().max()?,
    ];
    let [first, half_way, last, least, most] =
        figures.map(|millionths| figure(millionths as f64 / MILLION, 4));
    let name = escape(&column.name);
    Some(course_line([place, &name, &first, &half_way, &last, &least, &most]))
}

fn course_line(cells: [&str; 7]) -> String {
    let [place, name, figures @ ..] = cells;
    let figures: String = figures.map(|figure| format!(" {figure:>9}")).concat();
    format!("  {place:<24} {name:<20}{figures}")
}

#[cfg(test)]
mod tests {
    use model::BootId;
    use model::{BootFacts, HostLoad, Outcome, Problem, ProblemKind, Programs};

    use super::*;

    fn chunk(source: &str, columns: Vec<Column>) -> Chunk {
        Chunk {
            workload: "autonuma".into(),
            iteration: 0,
            phase: "NUMA01".into(),
            source: source.into(),
            times: vec![0, 1, 2, 3],
            columns,
        }
    }

    fn column(name: &str, values: [Option<i64>; 4]) -> Column {
        Column { name: name.into(), values: values.into() }
    }

    fn kept() -> Kept {
        let boot = Boot {
            variant: "6.1".into(),
            boot_index: 1,
            outcome: Outcome::Failed("no answer".into()),
            facts: BootFacts { cpus: 1, nodes: 1, memory: 4096, ..BootFacts::default() },
            host: HostLoad { load_before: 0.5, load_after: f64::NAN, steal: f64::NAN, wall: 1.0 },
            ..Boot::default()
        };
        Kept { id: BootId(3), superseded: true, boot }
    }

    fn sample() -> Sample {
        Sample { phase: "NUMA01".into(), ..Sample::new("autonuma", "Elapsed", 12.5) }
    }

    #[test]
    fn a_boot_with_series_of_its_workload() {
        let mut kept = kept();
        let boot = &mut kept.boot;
        let instructions = Sample { metric: INSTRUCTIONS.into(), label: "user".into(), ..sample() };
        boot.samples = vec![
            sample(),
            Sample { value: f64::NAN, ..sample() },
            Sample { value: 1_717_180.0, ..instructions },
        ];
        let points = [None, Some(500_000), Some(250_000), Some(1_000_000)];
        boot.chunks = vec![
            chunk("vmstat", vec![column("pgfault", [Some(1); 4])]),
            chunk("workload", vec![column("memory-node0", points), column("none", [None; 4])]),
        ];
        boot.console = "[    0.000000] Linux version 6.1\n\n[    0.1] x\n".into();
        insta::assert_snapshot!(text(&kept));
    }

    #[test]
    fn a_boot_says_where_and_by_what_it_was_made() {
        let made = |provenance: &Provenance| super::made(provenance).join("\n");
        assert_eq!(made(&Provenance::default()), "");
        let host = Host {
            id: "1f".repeat(32),
            cpu: "AMD EPYC 9354".into(),
            family: Some(25),
            model: Some(17),
            cpus: 64,
            cores: 32,
            memory: vec![3 << 30, 1 << 30],
            kernel: "6.1.0-18-amd64 #1 SMP".into(),
            governor: "performance".into(),
            turbo: Some(false),
            ..Host::default()
        };
        let programs = Programs { agent: "ab".repeat(32), ..Programs::default() };
        insta::assert_snapshot!(made(&Provenance { host, programs, ..Provenance::default() }));
    }

    #[test]
    fn nothing_from_a_guest_reaches_the_terminal_raw() {
        let hostile = "\x1b[2J\u{202e}\u{e9}\r\n";
        let mut kept = kept();
        let boot = &mut kept.boot;
        let facts = &mut boot.facts;
        for fact in [
            &mut boot.variant, &mut facts.release, &mut facts.version, &mut facts.banner,
            &mut facts.cmdline, &mut facts.provenance.emulator, &mut facts.kernel_origin,
            &mut facts.kernel_digest,
        ] {
            *fact = hostile.into();
        }
        boot.outcome = Outcome::Panicked(hostile.into());
        boot.problems = vec![Problem { kind: ProblemKind::Bug, text: hostile.into() }];
        boot.notes = vec![hostile.into()];
        boot.samples = vec![Sample {
            workload: hostile.into(),
            phase: hostile.into(),
            metric: hostile.into(),
            label: hostile.into(),
            ..sample()
        }];
        boot.chunks = ["workload", hostile]
            .map(|source| Chunk {
                workload: hostile.into(),
                phase: hostile.into(),
                ..chunk(source, vec![column(hostile, [Some(1); 4])])
            })
            .into();
        boot.console = hostile.into();
        for line in text(&kept).lines() {
            assert!(line.chars().all(|letter| matches!(letter, ' '..='~')), "{line:?}");
        }
    }

    #[test]
    fn states_are_told_once_if_all_workloads_found_the_same() {
        let states = |notes: &[&str]| {
            let mut kept = kept();
            kept.boot.notes = notes.iter().map(|note| (*note).into()).collect();
            let text = text(&kept);
            let lines =
                text.lines().filter(|it| it.starts_with("states") || it.starts_with("note"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let found =
            ["found by a: THP = always; swap = none", "found by b: THP = always; swap = none"];
        assert_eq!(states(&found), ["states        THP always; swap none"]);
        let other =
            [&found[..], &["found by c: THP = never; swap = none", "left by b: x"]].concat();
        let expected = [
            "states        a, b: THP always; swap none",
            "states        c: THP never; swap none",
            "note          left by b: x",
        ];
        assert_eq!(states(&other), expected);
        assert_eq!(states(&[]), [""; 0]);
    }

    #[test]
    fn packages_are_told_in_lines_that_fit() {
        let mut kept = kept();
        kept.boot.facts.userspace_digest = "51ab".repeat(16);
        kept.boot.facts.userspace = (0..30).map(|number| format!("lib{number}=1.0-1")).collect();
        let text = text(&kept);
        assert!(text.contains("\nuser space    sha256 51ab51ab"), "{text}");
        let (_, packages) = text.split_once("\npackages      lib0=1.0-1 lib1=1.0-1").unwrap();
        let end = packages.find("\nhost's load ").unwrap();
        let lines: Vec<&str> = packages[..end].lines().skip(1).collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 100), "{text}");
        assert!(lines.iter().all(|line| line.starts_with("              lib")), "{text}");
        assert!(text.contains("lib29=1.0-1\n"));
    }
}
