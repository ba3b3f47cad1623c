//! Turns the plugin's counts into the profile of each phase: assigns slices of counts to phases,
//! and addresses to functions.

use std::collections::{BTreeMap, HashMap};
use std::iter;

use code::Symbol;
use flight::profile as counted;
use kernelfiles::kallsyms::Symbols;
use kernels::types::SLOTS;
use model::{
    ACCESSES_COLUMNS, ACCESSES_SOURCE, ALL_CPUS, Cell, Chunk, Class, Column, CostTable,
    INSTRUCTIONS, Name, Place, Privilege, Profile, Sample, exact_cost,
};

use crate::fields::{self, UNKNOWN, name_of};
use crate::memory::{Memory, cache_and_slot};
use crate::misses;
use crate::span::{PhaseId, Span};

/// The function name for kernel instructions that the plugin counted without their address, because
/// its table was full.
const OTHER: &str = "[other]";

/// The path name for instructions whose call path is not known: the plugin or this module had no
/// room for it.
const BEYOND: &str = "[beyond]";
/// The largest number of functions in all paths of a boot, which limits memory. Half a million is
/// usual.
const MAX_PATHS: usize = 1 << 22;

/// Returns the profile of each phase of each iteration, with the instructions of the functions `lines` one by one.
/// `memory` names what lies in memory, if transfers were counted. `None` if the plugin counted other cuts than the agent
/// recorded: counts cannot be assigned to phases then.
pub fn profiles(
    counted: &counted::Profile,
    spans: &[Span],
    symbols: &Symbols,
    lines: &[String],
    memory: Option<&Memory>,
) -> Option<Vec<Profile>> {
    let mut paths = Paths::new(counted, symbols);
    let phases = phases(counted, spans)?.filter_map(|(span, phase)| {
        Some(Profile {
            workload: span.phase.as_ref()?.workload.clone(),
            iteration: span.phase.as_ref()?.iteration,
            phase: span.phase.as_ref()?.phase.clone(),
            costs: costs(phase?, counted, symbols, lines, memory, &mut paths),
            sampled: None,
        })
    });
    Some(phases.collect())
}

/// Returns memory accesses over time for each phase: those that the CPU's own node served, and
/// those that other nodes served. Empty if accesses were not counted. `home` is the node of each
/// CPU. `None` if the plugin counted other cuts than the agent recorded.
pub fn series(counted: &counted::Profile, spans: &[Span], home: &[u16]) -> Option<Vec<Chunk>> {
    let phases = phases(counted, spans)?.filter_map(|(span, phase)| {
        let id = span.phase.as_ref().filter(|_| counted.scope.nodes > 0)?;
        Some(chunk(id, phase?, (span.begun, span.ended), home))
    });
    Some(phases.collect())
}

/// Returns the bytes from one object to the next of each slab cache, as a series with one reading at the beginning of the
/// first phase. `None` if no line of one was transferred.
pub fn slots(counted: &counted::Profile, spans: &[Span]) -> Option<Chunk> {
    let (id, begun) = spans.iter().find_map(|span| Some((span.phase.as_ref()?, span.begun)))?;
    let slots = counted.caches.iter().filter_map(|it| cache_and_slot(it));
    // Caches that were created again have their names twice.
    let slots: BTreeMap<&str, u32> = slots.collect();
    let columns =
        slots.into_iter().map(|(cache, slot)| Column::new(cache, vec![Some(slot.into())]));
    let columns: Vec<Column> = columns.collect();
    (!columns.is_empty()).then(|| Chunk {
        workload: id.workload.clone(),
        iteration: id.iteration,
        phase: id.phase.clone(),
        source: SLOTS.to_owned(),
        times: vec![begun],
        columns,
    })
}

/// Returns each span with its counts. A span has no counts if they are not exact. `None` if the
/// plugin counted other cuts than the agent recorded.
fn phases<'a>(
    counted: &'a counted::Profile,
    spans: &'a [Span],
) -> Option<impl Iterator<Item = (&'a Span, Option<&'a counted::Phase>)>> {
    let spans_and_cuts = spans.iter().zip(0..);
    let phases = spans_and_cuts.map(|(span, cuts)| (span, counted.phase(cuts)));
    (counted.cuts() + 1 == spans.len()).then_some(phases)
}

/// Returns the series of one phase, which lasted from `ends.0` to `ends.1`: zeros at the start, the
/// counts at each tick, and the totals at the end.
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

/// Sums loads and stores by privilege and by local or remote node, in the order of
/// [`ACCESSES_COLUMNS`]. `home` is the node of each CPU.
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

/// Returns the instructions of each phase as samples of the metric [`INSTRUCTIONS`]: all, user and
/// kernel.
pub fn samples(profiles: &[Profile]) -> Vec<Sample> {
    let samples = profiles.iter().flat_map(|profile| {
        let sum = profile.totals();
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

/// Makes the table of a phase's costs, by memory, call path, process, function, field and privilege, and by
/// instruction in the functions `lines`.
fn costs(
    phase: &counted::Phase,
    counted: &counted::Profile,
    symbols: &Symbols,
    lines: &[String],
    memory: Option<&Memory>,
    paths: &mut Paths<'_>,
) -> CostTable {
    let counted::Scope { arch, nodes, transfers, misses, .. } = counted.scope;
    let has = exact_cost::Counted { accesses: nodes > 0, transfers, misses };
    let mut table = exact_cost::table_with_classes(arch, has);
    for (place, values) in accesses(phase) {
        table.push(place, values);
    }
    for (path, instructions) in paths.paths(phase) {
        table
            .push(Place::Path(path), [Cell::new(exact_cost::INSTRUCTIONS, ALL_CPUS, instructions)]);
    }
    for (process, values) in processes(phase) {
        let name = name_of_process(process).into();
        table.push(Place::Process { id: process.id, name, functions: Vec::new() }, values);
    }
    for ((name, module), values) in functions(phase, counted, symbols, &table) {
        table.push(Place::Function { name: name.into(), module: module.into() }, values);
    }
    for (place, executions) in instructions(phase, symbols, lines) {
        table.push(place, [Cell::new(exact_cost::INSTRUCTIONS, ALL_CPUS, executions)]);
    }
    if let Some(memory) = memory {
        for (place, values) in fields::costs(phase, &counted.caches, memory, symbols, &table) {
            table.push(place, values);
        }
    }
    for privilege in Privilege::ALL {
        let values = by_cpu(phase).flat_map(|(number, cpu)| {
            let instructions = cpu.instructions(privilege);
            let instructions = Cell::new(exact_cost::INSTRUCTIONS, number, instructions);
            let transfers = fields::cells(number, fields::sum(cpu, privilege), &table);
            let misses = misses::cells(number, misses::sum(cpu, privilege), &table);
            iter::once(instructions).chain(transfers).chain(misses)
        });
        let values: Vec<Cell> = values.collect();
        table.push(Place::All(privilege), values);
    }
    table
}

/// Returns the counts of each CPU, with the number of the CPU.
fn by_cpu(phase: &counted::Phase) -> impl Iterator<Item = (u16, &counted::Cpu)> {
    (0..).zip(&phase.cpus)
}

fn accesses(phase: &counted::Phase) -> BTreeMap<Place, Vec<Cell>> {
    let mut memory = BTreeMap::<Place, Vec<Cell>>::new();
    for (number, cpu) in by_cpu(phase) {
        for row in &cpu.accesses {
            let place = Place::Memory(row.privilege, row.target);
            let counts = [
                Cell::new(exact_cost::LOADS, number, row.loads),
                Cell::new(exact_cost::STORES, number, row.stores),
            ];
            memory.entry(place).or_default().extend(counts);
        }
    }
    memory
}

/// Sums the instructions of each function, those of each class, its transfers, misses and entries, by its name and module.
fn functions<'a>(
    phase: &'a counted::Phase,
    counted: &counted::Profile,
    symbols: &'a Symbols,
    table: &CostTable,
) -> BTreeMap<(&'a str, &'a str), Vec<Cell>> {
    let cost_of = |class: Class| table.number(class.name());
    let mut functions = BTreeMap::<_, BTreeMap<(u16, u16), u64>>::new();
    let mut add = |name: (&'a str, &'a str), cost: u16, cpu: u16, count: u64| {
        let sum = functions.entry(name).or_default().entry((cost, cpu)).or_default();
        *sum = sum.saturating_add(count);
    };
    for (number, cpu) in by_cpu(phase) {
        for executed in &cpu.kernel {
            let symbol = symbols.find(executed.address);
            let name = name_of(symbol);
            add(name, exact_cost::INSTRUCTIONS, number, executed.count);
            if symbol.is_some_and(|symbol| symbol.address == executed.address) {
                add(name, exact_cost::ENTRIES, number, executed.count);
            }
            if let Some(cost) = counted.classes.get(&executed.address).copied().and_then(cost_of) {
                add(name, cost, number, executed.count);
            }
        }
        for count in cpu.transfers.iter().filter(|it| it.address != counted::PROGRAM) {
            let name = name_of(symbols.find(count.address));
            for Cell { cost, cpu, value, .. } in fields::cells(number, count.transfers, table) {
                add(name, cost, cpu, value);
            }
        }
        for count in cpu.misses.iter().filter(|it| it.address != counted::PROGRAM) {
            let name = name_of(symbols.find(count.address));
            for Cell { cost, cpu, value, .. } in misses::cells(number, count.misses, table) {
                add(name, cost, cpu, value);
            }
        }
        if cpu.totals.kernel_other > 0 {
            add((OTHER, ""), exact_cost::INSTRUCTIONS, number, cpu.totals.kernel_other);
        }
    }
    let values = |sums: BTreeMap<(u16, u16), u64>| {
        sums.into_iter().map(|((cost, cpu), sum)| Cell::new(cost, cpu, sum)).collect()
    };
    functions.into_iter().map(|(name, sums)| (name, values(sums))).collect()
}

/// Returns the executions of each instruction of the functions `wanted`, on all CPUs together, in
/// order of address.
fn instructions(
    phase: &counted::Phase,
    symbols: &Symbols,
    wanted: &[String],
) -> impl Iterator<Item = (Place, u64)> {
    let is_wanted = |symbol: &str| wanted.iter().any(|it| it == Symbol::of(symbol).name);
    let mut executions = BTreeMap::new();
    if !wanted.is_empty() {
        for executed in phase.cpus.iter().flat_map(|cpu| &cpu.kernel) {
            let sum: &mut u64 = executions.entry(executed.address).or_default();
            *sum = sum.saturating_add(executed.count);
        }
    }
    executions.into_iter().filter_map(move |(address, executions)| {
        let symbol = symbols.find(address).filter(|it| is_wanted(&it.name))?;
        let (function, module) = (symbol.name.as_str().into(), symbol.module.as_str().into());
        Some((Place::Instruction { function, module, address }, executions))
    })
}

fn processes(phase: &counted::Phase) -> BTreeMap<&counted::Process, Vec<Cell>> {
    let mut processes = BTreeMap::<_, Vec<Cell>>::new();
    for (number, cpu) in by_cpu(phase) {
        for (process, instructions) in &cpu.processes {
            let values = processes.entry(process).or_default();
            values.push(Cell::new(exact_cost::INSTRUCTIONS, number, *instructions));
        }
    }
    processes
}

/// Returns the name of a process. It may contain any characters, so escape it before it is printed.
pub fn name_of_process(process: &counted::Process) -> String {
    let bytes = process.name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// Translates call paths of addresses into paths of functions.
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

    /// Returns the instructions of a phase by call path, sorted by path. Paths over the limit of
    /// [`MAX_PATHS`] are merged into one.
    fn paths(&mut self, phase: &counted::Phase) -> BTreeMap<Vec<Name>, u64> {
        let mut sums: HashMap<Vec<&str>, u64> = HashMap::new();
        for counted::PathCount { node, address, count } in &phase.stacks {
            let mut path = self.path(*node, *address);
            if !sums.contains_key(&path) {
                match self.room.checked_sub(path.len()) {
                    Some(room) => self.room = room,
                    None => path = vec![BEYOND],
                }
            }
            let sum = sums.entry(path).or_default();
            *sum = sum.saturating_add(*count);
        }
        let mut names = HashMap::new();
        let mut name = |name| names.entry(name).or_insert_with(|| Name::from(name)).clone();
        let sums = sums.into_iter();
        sums.map(|(path, sum)| (path.into_iter().map(&mut name).collect(), sum)).collect()
    }

    /// Returns the functions of a path, outermost first: the callers, then the function that
    /// contains the address.
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

#[cfg(test)]
mod tests {
    use counted::{Cpu, Executed, Scope, Totals};
    use kernelfiles::kallsyms;

    use super::*;

    fn symbols() -> Symbols {
        let symbol = |(name, module, address): &(&str, &str, u64)| kallsyms::Symbol {
            address: *address,
            name: (*name).to_owned(),
            module: (*module).to_owned(),
        };
        let all = [("f.isra.0", "", 100), ("g", "", 200), ("f.cold", "", 300), ("f", "m", 400)];
        Symbols::of(all.iter().map(symbol))
    }

    fn cpu(executed: &[(u64, u64)]) -> Cpu {
        let kernel = executed.iter().map(|&(address, count)| Executed { address, count });
        Cpu { kernel: kernel.collect(), totals: Totals::default(), ..Cpu::default() }
    }

    /// The table of two CPUs, with the instructions of the functions `lines`.
    fn table(lines: &[&str]) -> CostTable {
        let cpus = vec![
            cpu(&[(100, 3), (104, 9), (200, 5)]),
            cpu(&[(104, 1), (203, 2), (300, 7), (401, 4)]),
        ];
        let phase = counted::Phase { cpus, ..counted::Phase::default() };
        let profile = counted::Profile {
            slices: vec![phase],
            classes: [(104, counted::Class::Fence), (203, counted::Class::Locked)].into(),
            ..counted::Profile::new(Scope {
                arch: counted::Architecture::X86_64,
                cpus: 2,
                nodes: 0,
                stacks: false,
                transfers: false,
                misses: false,
            })
        };
        let symbols = symbols();
        let lines: Vec<String> = lines.iter().map(|&it| it.to_owned()).collect();
        let mut paths = Paths::new(&profile, &symbols);
        costs(&profile.slices[0], &profile, &symbols, &lines, None, &mut paths)
    }

    #[test]
    fn distances_of_objects_are_a_series_of_one_reading() {
        let caches = ["mm_struct 1088", "a b 64", "a b 64", "torn"].map(str::to_owned).into();
        let scope = Scope {
            arch: counted::Architecture::X86_64,
            cpus: 2,
            nodes: 0,
            stacks: false,
            transfers: true,
            misses: false,
        };
        let profile = counted::Profile { caches, ..counted::Profile::new(scope) };
        let id = PhaseId { workload: "w".into(), iteration: 0, phase: "p".into() };
        let spans = [Span::default(), Span { phase: Some(id), begun: 7, ended: 9 }];
        let chunk = slots(&profile, &spans).unwrap();
        assert_eq!((&*chunk.workload, &*chunk.phase, &*chunk.times), ("w", "p", &[7][..]));
        let columns = [("a b", 64), ("mm_struct", 1088)];
        assert_eq!(chunk.columns, columns.map(|(name, slot)| Column::new(name, vec![Some(slot)])));
        assert_eq!(slots(&profile, &spans[..1]), None);
    }

    #[test]
    fn instructions_of_a_function_add_up_to_it() {
        let table = table(&["f"]);
        let kept = table.rows().filter_map(|row| match row.place {
            Place::Instruction { function, module, address } => {
                Some((&**function, &**module, *address, row.sum(Some(0))))
            }
            _ => None,
        });
        let expected = [
            ("f.isra.0", "", 100, 3),
            ("f.isra.0", "", 104, 10),
            ("f.cold", "", 300, 7),
            ("f", "m", 401, 4),
        ];
        assert_eq!(kept.collect::<Vec<_>>(), expected);
        for symbol in ["f.isra.0", "f.cold"] {
            let is_function =
                |place: &Place| matches!(place, Place::Function { name, .. } if **name == *symbol);
            let is_of = |place: &Place| matches!(place, Place::Instruction { function, .. } if **function == *symbol);
            assert_eq!(table.sum("instructions", is_of), table.sum("instructions", is_function));
        }
    }

    #[test]
    fn instructions_of_a_class_are_counted_by_function() {
        let table = table(&[]);
        let of = |cost: &str, function: &str| {
            table.sum(
                cost,
                |place| matches!(place, Place::Function { name, .. } if **name == *function),
            )
        };
        assert_eq!((of("fences", "f.isra.0"), of("locked", "g")), (10, 2));
        assert_eq!((of("fences", "g"), of("invlpg", "g")), (0, 0));
    }

    #[test]
    fn other_costs_do_not_depend_on_the_functions_whose_instructions_are_kept() {
        let without = table(&[]);
        let others = |table: &CostTable| {
            let rows = table.rows().filter(|row| !matches!(row.place, Place::Instruction { .. }));
            let sums = |row: model::CostRow<'_>| {
                let cells = row.cells.iter().map(|it| (it.cost, it.cpu, it.value));
                (row.place.clone(), cells.collect::<Vec<_>>())
            };
            rows.map(sums).collect::<Vec<_>>()
        };
        assert_eq!(without.places().len(), others(&without).len());
        assert_eq!(others(&table(&["f", "g"])), others(&without));
    }
}
