//! Turns the plugin's counts into the profile of each phase. Slices of counts are assigned to phases,
//! addresses to functions.

use std::collections::{BTreeMap, HashMap};
use std::iter;

use flight::profile as counted;
use kernelfiles::kallsyms::Symbols;
use model::{
    ACCESSES_COLUMNS, ACCESSES_SOURCE, Accesses, Chunk, Column, Count, Function, INSTRUCTIONS,
    Instructions, Process, Profile, Sample, Stack,
};

use crate::record::span::{PhaseId, Span};

/// The function name for kernel instructions that no symbol covers.
pub const UNKNOWN: &str = "[unknown]";
/// The function name for kernel instructions that the plugin had no room to count by address.
const OTHER: &str = "[other]";

/// The path name for instructions that the plugin had no room to count by path.
const BEYOND: &str = "[beyond]";
/// The largest number of functions in all paths of a boot. Half a million is usual.
const MAX_PATHS: usize = 1 << 22;

/// A function's name and module.
type Name = (String, String);

/// The profile of each phase of each iteration. `None` if the plugin counted other cuts than the agent
/// recorded: counts cannot be assigned to phases then.
pub fn profiles(
    counted: &counted::Profile,
    spans: &[Span],
    symbols: &Symbols,
) -> Option<Vec<Profile>> {
    let mut paths = Paths::new(counted, symbols);
    let phases = phases(counted, spans)?.filter_map(|(span, phase)| {
        Some(profile(span.phase.as_ref()?, phase?, symbols, &mut paths))
    });
    Some(phases.collect())
}

/// Memory accesses over time by phase: those served by each CPU's own node, and those served by other nodes.
/// `home` is the node of each CPU.
pub fn series(counted: &counted::Profile, spans: &[Span], home: &[u16]) -> Option<Vec<Chunk>> {
    let phases = phases(counted, spans)?.filter_map(|(span, phase)| {
        let id = span.phase.as_ref().filter(|_| counted.scope.nodes > 0)?;
        Some(chunk(id, phase?, (span.begun, span.ended), home))
    });
    Some(phases.collect())
}

/// The spans, each with the exact part of its counts. `None` if the plugin counted other cuts than the agent
/// recorded.
fn phases<'a>(
    counted: &'a counted::Profile,
    spans: &'a [Span],
) -> Option<impl Iterator<Item = (&'a Span, Option<&'a counted::Phase>)>> {
    let spans_and_cuts = spans.iter().zip(0..);
    let phases = spans_and_cuts.map(|(span, cuts)| (span, counted.phase(cuts)));
    (counted.cuts() + 1 == spans.len()).then_some(phases)
}

/// The series of one phase: 0 at its begin, the ticks, the total at its end.
fn chunk(id: &PhaseId, phase: &counted::Phase, ends: (u64, u64), home: &[u16]) -> Chunk {
    let whole = phase.cpus.iter().map(|cpu| cpu.accesses.as_slice());
    let ticks = phase.ticks.iter();
    let mut points = vec![(ends.0, [0; ACCESSES_COLUMNS.len()])];
    points.extend(
        ticks.map(|tick| {
            (tick.time, local_and_remote(tick.accesses.iter().map(Vec::as_slice), home))
        }),
    );
    points.push((ends.1, local_and_remote(whole, home)));
    let columns = ACCESSES_COLUMNS.iter().enumerate().map(|(column, name)| {
        Column::new(*name, points.iter().map(|(_, sums)| Some(sums[column])).collect())
    });
    Chunk {
        workload: id.workload.clone(),
        iteration: id.iteration,
        phase: id.phase.clone(),
        source: ACCESSES_SOURCE.to_owned(),
        times: points.iter().map(|(time, _)| *time).collect(),
        columns: columns.collect(),
    }
}

/// Loads and stores, in the order of [`ACCESSES_COLUMNS`].
fn local_and_remote<'a>(
    cpus: impl Iterator<Item = &'a [counted::Accesses]>,
    home: &[u16],
) -> [i64; ACCESSES_COLUMNS.len()] {
    let mut sums = [0_i64; ACCESSES_COLUMNS.len()];
    for (own, accesses) in home.iter().zip(cpus) {
        for row in accesses {
            let counted::Target::Node(node) = row.target else { continue };
            let column = match (row.privilege, node == *own) {
                (counted::Privilege::User, true) => 0,
                (counted::Privilege::User, false) => 1,
                (counted::Privilege::Kernel, true) => 2,
                (counted::Privilege::Kernel, false) => 3,
                (counted::Privilege::Firmware, _) => continue,
            };
            let count = row.loads.saturating_add(row.stores);
            sums[column] = sums[column].saturating_add_unsigned(count);
        }
    }
    sums
}

/// The instructions of each phase as samples of a metric.
pub fn samples(profiles: &[Profile]) -> Vec<Sample> {
    let samples = profiles.iter().flat_map(|profile| {
        let sum = profile.instructions();
        [("total", sum.total()), ("user", sum.user), ("kernel", sum.kernel)].map(
            |(label, count)| Sample {
                iteration: profile.iteration,
                phase: profile.phase.clone(),
                label: label.to_owned(),
                ..Sample::new(profile.workload.clone(), INSTRUCTIONS, count as f64)
            },
        )
    });
    samples.collect()
}

fn profile(
    id: &PhaseId,
    phase: &counted::Phase,
    symbols: &Symbols,
    paths: &mut Paths<'_>,
) -> Profile {
    let cpus = phase.cpus.iter().map(|cpu| Instructions {
        user: cpu.totals.user,
        kernel: cpu.instructions(counted::Privilege::Kernel),
        firmware: cpu.totals.firmware,
    });
    Profile {
        workload: id.workload.clone(),
        iteration: id.iteration,
        phase: id.phase.clone(),
        cpus: cpus.collect(),
        functions: functions(phase, symbols),
        processes: processes(phase),
        accesses: accesses(phase),
        stacks: paths.stacks(phase),
        sampled: None,
    }
}

fn functions(phase: &counted::Phase, symbols: &Symbols) -> Vec<Function> {
    let mut functions: BTreeMap<Name, Vec<Count>> = BTreeMap::new();
    let cpus = phase.cpus.len();
    let mut add = |name: Name, cpu: usize, instructions: u64, entries: u64| {
        let count = &mut functions.entry(name).or_insert_with(|| vec![Count::default(); cpus])[cpu];
        count.instructions = count.instructions.saturating_add(instructions);
        count.entries = count.entries.saturating_add(entries);
    };
    for (number, cpu) in phase.cpus.iter().enumerate() {
        for executed in &cpu.kernel {
            let symbol = symbols.find(executed.address);
            let entered = symbol.is_some_and(|symbol| symbol.address == executed.address);
            let entries = if entered { executed.count } else { 0 };
            add(name_of(symbol), number, executed.count, entries);
        }
        if cpu.totals.kernel_other > 0 {
            add((OTHER.to_owned(), String::new()), number, cpu.totals.kernel_other, 0);
        }
    }
    let functions = functions.into_iter();
    functions.map(|((name, module), counts)| Function { name, module, counts }).collect()
}

fn name_of(symbol: Option<&kernelfiles::kallsyms::Symbol>) -> Name {
    match symbol {
        Some(symbol) => (symbol.name.clone(), symbol.module.clone()),
        None => (UNKNOWN.to_owned(), String::new()),
    }
}

fn processes(phase: &counted::Phase) -> Vec<Process> {
    let cpus = phase.cpus.len();
    let mut processes: BTreeMap<&counted::Process, Vec<u64>> = BTreeMap::new();
    for (number, cpu) in phase.cpus.iter().enumerate() {
        for (process, instructions) in &cpu.processes {
            let counts = processes.entry(process).or_insert_with(|| vec![0; cpus]);
            counts[number] = counts[number].saturating_add(*instructions);
        }
    }
    let processes = processes.into_iter().map(|(process, instructions)| {
        let (id, name) = (process.id, name_of_process(process));
        Process { id, name, instructions, functions: Vec::new() }
    });
    processes.collect()
}

/// The name of a process, which may have any characters.
pub fn name_of_process(process: &counted::Process) -> String {
    let bytes = process.name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn accesses(phase: &counted::Phase) -> Vec<Accesses> {
    let cpus = phase.cpus.iter().enumerate();
    let accesses = cpus.flat_map(|(number, cpu)| {
        cpu.accesses.iter().map(move |row| Accesses {
            cpu: number as u32,
            privilege: row.privilege,
            target: row.target,
            loads: row.loads,
            stores: row.stores,
        })
    });
    accesses.collect()
}

/// Translates the paths of counts into paths of functions.
struct Paths<'a> {
    sites: &'a [counted::CallSite],
    symbols: &'a Symbols,
    /// How many functions may still be added to the boot's paths.
    room: usize,
}

impl<'a> Paths<'a> {
    fn new(counted: &'a counted::Profile, symbols: &'a Symbols) -> Self {
        Self { sites: &counted.nodes, symbols, room: MAX_PATHS }
    }

    /// The instructions of a phase by call path, sorted by path.
    fn stacks(&mut self, phase: &counted::Phase) -> Vec<Stack> {
        let mut stacks: HashMap<Vec<&str>, u64> = HashMap::new();
        for (node, address, count) in &phase.stacks {
            let mut path = self.path(*node, *address);
            if !stacks.contains_key(&path) {
                match self.room.checked_sub(path.len()) {
                    Some(room) => self.room = room,
                    None => path = vec![BEYOND],
                }
            }
            let sum = stacks.entry(path).or_default();
            *sum = sum.saturating_add(*count);
        }
        let stacks = stacks.into_iter().map(|(path, instructions)| Stack {
            functions: path.into_iter().map(str::to_owned).collect(),
            instructions,
        });
        let mut stacks: Vec<Stack> = stacks.collect();
        stacks.sort_by(|a, b| a.functions.cmp(&b.functions));
        stacks
    }

    /// The functions of a path, outermost first: the callers, then the function that contains the address.
    fn path(&self, node: Option<u32>, address: u64) -> Vec<&'a str> {
        let site = |node: u32| self.sites.get(node as usize);
        let callers = iter::successors(node.and_then(site), |from| from.parent.and_then(site));
        let callers = callers.take(counted::MAX_DEPTH).map(|site| site.address);
        let addresses = iter::once(address).chain(callers);
        let mut path: Vec<&str> =
            addresses.map(|address| function_at(self.symbols, address)).collect();
        path.reverse();
        path
    }
}

fn function_at(symbols: &Symbols, address: u64) -> &str {
    if address == counted::BEYOND {
        return BEYOND;
    }
    symbols.find(address).map_or(UNKNOWN, |symbol| &symbol.name)
}
