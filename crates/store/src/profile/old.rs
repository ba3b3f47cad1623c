//! Reads the formats of profiles before format 4: a format number, then [`Form`] and for a sampled profile
//! [`Sampled`]. Names of functions in call paths are stored once. Call paths in programs follow, if they are known,
//! as indices into the names, process by process.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::{fmt, io};

use model::{
    ALL_CPUS, Cell, Cost, CostTable, Name, Place, Privilege, Profile, SAMPLES, Sampled, Target,
    exact_cost,
};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Numbers of the formats: exact profiles, sampled profiles, and sampled profiles with call paths in programs.
const EXACT: u8 = 1;
const SAMPLED: u8 = 2;
const WITH_PROGRAMS: u8 = 3;

/// Instructions of a CPU by privilege.
#[derive(Serialize, Deserialize)]
struct Instructions {
    user: u64,
    kernel: u64,
    firmware: u64,
}

/// A function with the counts of each CPU.
#[derive(Serialize, Deserialize)]
struct Function {
    name: Name,
    module: Name,
    counts: Vec<Count>,
}

#[derive(Serialize, Deserialize)]
struct Count {
    instructions: u64,
    entries: u64,
}

/// A process with the instructions on each CPU.
#[derive(Serialize, Deserialize)]
struct Process {
    id: u32,
    name: Name,
    instructions: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Accesses {
    cpu: u32,
    privilege: Privilege,
    target: Target,
    loads: u64,
    stores: u64,
}

/// A profile. A sampled one has one CPU, which stands for all.
#[derive(Serialize, Deserialize)]
struct Form {
    cpus: Vec<Instructions>,
    functions: Vec<Function>,
    processes: Vec<Process>,
    accesses: Vec<Accesses>,
    /// Names in call paths.
    names: Vec<Name>,
    /// Call paths as indices into the names, and their instructions.
    stacks: Vec<(Vec<u32>, u64)>,
}

/// The beginning of [`Form`], up to the accesses. The larger part, names and call paths, follows.
#[derive(Deserialize)]
struct Beginning {
    #[serde(rename = "cpus")]
    _cpus: Skipped<Instructions>,
    #[serde(rename = "functions")]
    _functions: Skipped<Function>,
    #[serde(rename = "processes")]
    _processes: Skipped<Process>,
    accesses: Vec<Accesses>,
}

/// A list that is skipped.
struct Skipped<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Skipped<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Skipped<T> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<T>()?.is_some() {}
        Ok(self)
    }
}

/// The memory accesses of an exact profile.
pub fn accesses(bytes: &[u8]) -> io::Result<CostTable> {
    let (format, bytes) = format(bytes)?;
    let (form, _): (Beginning, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    match format {
        EXACT => with_accesses(&form.accesses),
        _ => Ok(CostTable::new([Cost::new(SAMPLES)])),
    }
}

/// Splits the bytes into the format's number and the rest.
fn format(bytes: &[u8]) -> io::Result<(u8, &[u8])> {
    match bytes {
        [format @ (EXACT | SAMPLED | WITH_PROGRAMS), bytes @ ..] => Ok((*format, bytes)),
        [other, ..] => Err(io::Error::other(format!("unknown format {other}"))),
        [] => Err(io::Error::other("no data")),
    }
}

/// Decodes a profile of any older format.
pub fn parse(bytes: &[u8]) -> io::Result<Profile> {
    let (format, bytes) = format(bytes)?;
    let (form, rest): (Form, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    let (sampled, rest): (Option<Sampled>, _) = match format {
        EXACT => (None, rest),
        _ => {
            let (sampled, rest) = postcard::take_from_bytes(rest).map_err(io::Error::other)?;
            (Some(sampled), rest)
        }
    };
    let (programs, rest): (Vec<Vec<u32>>, _) = match format {
        WITH_PROGRAMS => postcard::take_from_bytes(rest).map_err(io::Error::other)?,
        _ => (Vec::new(), rest),
    };
    if !rest.is_empty() {
        return Err(io::Error::other(format!("{} trailing bytes", rest.len())));
    }
    let costs = match sampled {
        None => exact_costs(form)?,
        Some(_) => sampled_costs(form, programs)?,
    };
    Ok(Profile { costs, sampled, ..Profile::default() })
}

/// A table of the costs of exact mode, with memory accesses.
fn with_accesses(accesses: &[Accesses]) -> io::Result<CostTable> {
    let mut table = exact_cost::table(!accesses.is_empty());
    let mut memory = BTreeMap::<_, Vec<_>>::new();
    for it in accesses {
        let cpu = cpu(it.cpu as usize)?;
        memory.entry((it.privilege, it.target)).or_default().extend([
            Cell::new(exact_cost::LOADS, cpu, it.loads),
            Cell::new(exact_cost::STORES, cpu, it.stores),
        ]);
    }
    for ((privilege, target), values) in memory {
        table.push(Place::Memory(privilege, target), values);
    }
    Ok(table)
}

/// The number of a CPU.
fn cpu(number: usize) -> io::Result<u16> {
    let number = u16::try_from(number).ok().filter(|number| *number != ALL_CPUS);
    number.ok_or_else(|| io::Error::other("too many CPUs"))
}

/// Cells of a cost by CPU; `values` has one value for each CPU.
fn by_cpu(cost: u16, values: impl IntoIterator<Item = u64>) -> io::Result<Vec<Cell>> {
    let values = values.into_iter().enumerate();
    values.map(|(number, value)| Ok(Cell::new(cost, cpu(number)?, value))).collect()
}

fn exact_costs(form: Form) -> io::Result<CostTable> {
    let mut table = with_accesses(&form.accesses)?;
    for (path, instructions) in &form.stacks {
        let path = Place::Path(super::all(path, &form.names)?);
        table.push(path, [Cell::new(exact_cost::INSTRUCTIONS, ALL_CPUS, *instructions)]);
    }
    for Process { id, name, instructions } in form.processes {
        let process = Place::Process { id, name, functions: Vec::new() };
        table.push(process, by_cpu(exact_cost::INSTRUCTIONS, instructions)?);
    }
    for Function { name, module, counts } in form.functions {
        let instructions =
            by_cpu(exact_cost::INSTRUCTIONS, counts.iter().map(|it| it.instructions))?;
        let entries = by_cpu(exact_cost::ENTRIES, counts.iter().map(|it| it.entries))?;
        table.push(Place::Function { name, module }, instructions.into_iter().chain(entries));
    }
    for privilege in Privilege::ALL {
        let own = form.cpus.iter().map(|it| match privilege {
            Privilege::User => it.user,
            Privilege::Kernel => it.kernel,
            Privilege::Firmware => it.firmware,
        });
        table.push(Place::All(privilege), by_cpu(exact_cost::INSTRUCTIONS, own)?);
    }
    Ok(table)
}

fn sampled_costs(form: Form, programs: Vec<Vec<u32>>) -> io::Result<CostTable> {
    let paths = form
        .stacks
        .iter()
        .map(|(path, samples)| Ok((Place::Path(super::all(path, &form.names)?), *samples)));
    let mut samples: Vec<(Place, u64)> = paths.collect::<io::Result<_>>()?;
    let programs = programs.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
    for (Process { id, name, instructions }, functions) in form.processes.into_iter().zip(programs)
    {
        let functions = super::all(functions, &form.names)?;
        let sum = instructions.iter().fold(0_u64, |sum, it| sum.saturating_add(*it));
        samples.push((Place::Process { id, name, functions }, sum));
    }
    let functions = form.functions.into_iter();
    let modules: BTreeMap<Name, Name> = functions.map(|it| (it.name, it.module)).collect();
    Ok(Profile::sampled_costs(samples, |name| modules.get(name).cloned().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accesses: Vec<Accesses>, cpus: usize) -> Form {
        let per_cpu = |count: u64| vec![count; cpus];
        let function = |name: &str, module: &str, instructions| Function {
            name: name.into(),
            module: module.into(),
            counts: (0..cpus).map(|_| Count { instructions, entries: 3 }).collect(),
        };
        Form {
            cpus: (0..cpus).map(|_| Instructions { user: 1, kernel: 20, firmware: 0 }).collect(),
            functions: vec![function("f", "", 12), function("g", "m", 8)],
            processes: vec![Process { id: 7, name: "p".into(), instructions: per_cpu(1) }],
            accesses,
            names: vec!["f".into(), "g".into()],
            stacks: vec![(vec![0], 24), (vec![0, 1], 16)],
        }
    }

    /// The places with their cells, as text.
    fn shown(profile: &Profile) -> Vec<String> {
        let shown = profile.costs.rows().map(|row| {
            let cell = |cell: &model::Cell| {
                let cpu = if cell.cpu == ALL_CPUS { "all".into() } else { cell.cpu.to_string() };
                format!(
                    "{} {cpu} {}",
                    profile.costs.costs()[usize::from(cell.cost)].name,
                    cell.value
                )
            };
            let cells: Vec<String> = row.cells.iter().map(cell).collect();
            format!("{:?}: {}", row.place, cells.join(", "))
        });
        shown.collect()
    }

    #[test]
    fn an_exact_profile_of_two_cpus_becomes_a_table() {
        let access = |cpu, loads| Accesses {
            cpu,
            privilege: Privilege::User,
            target: Target::Node(1),
            loads,
            stores: 2,
        };
        let form = form(vec![access(0, 5), access(1, 0)], 2);
        let bytes = postcard::to_extend(&form, vec![EXACT]).unwrap();
        let expected = [
            "Memory(User, Node(1)): loads 0 5, stores 0 2, stores 1 2",
            "Path([\"f\"]): instructions all 24",
            "Path([\"f\", \"g\"]): instructions all 16",
            "Process { id: 7, name: \"p\", functions: [] }: instructions 0 1, instructions 1 1",
            "Function { name: \"f\", module: \"\" }: instructions 0 12, instructions 1 12, entries 0 3, entries 1 3",
            "Function { name: \"g\", module: \"m\" }: instructions 0 8, instructions 1 8, entries 0 3, entries 1 3",
            "All(Kernel): instructions 0 20, instructions 1 20",
            "All(User): instructions 0 1, instructions 1 1",
            "All(Firmware): ",
        ];
        assert_eq!(shown(&parse(&bytes).unwrap()), expected);
        let costs = accesses(&bytes).unwrap();
        assert_eq!(shown(&Profile { costs, ..Profile::default() }), expected[..1]);
    }

    #[test]
    fn a_sampled_profile_becomes_a_table() {
        let sampled = Sampled { event: "cycles".into(), ..Sampled::default() };
        let form = form(Vec::new(), 1);
        for (programs, functions) in [(None, "[]"), (Some(vec![vec![1_u32]]), "[\"g\"]")] {
            let bytes = match &programs {
                None => postcard::to_extend(&(&form, &sampled), vec![SAMPLED]),
                Some(programs) => {
                    postcard::to_extend(&(&form, &sampled, programs), vec![WITH_PROGRAMS])
                }
            };
            let profile = parse(&bytes.unwrap()).unwrap();
            assert_eq!(profile.sampled.as_ref(), Some(&sampled));
            let expected = [
                "Path([\"f\"]): samples all 24",
                "Path([\"f\", \"g\"]): samples all 16",
                &format!("Process {{ id: 7, name: \"p\", functions: {functions} }}: samples all 1"),
                "Function { name: \"f\", module: \"\" }: samples all 24",
                "Function { name: \"g\", module: \"m\" }: samples all 16",
                "All(User): samples all 1",
                "All(Kernel): samples all 40",
            ];
            assert_eq!(shown(&profile), expected);
        }
    }

    #[test]
    fn more_cpus_than_a_table_has_are_an_error() {
        let form = form(Vec::new(), usize::from(ALL_CPUS) + 1);
        let bytes = postcard::to_extend(&form, vec![EXACT]).unwrap();
        assert!(parse(&bytes).is_err());
    }
}
