//! Packs a profile: a format number, then [`Form`] in postcard's wire format (<https://postcard.jamesmunns.com>), packed
//! by zstd. Names are stored once, and cells by column. [`old`] reads the formats of before.

mod old;

use std::collections::HashMap;
use std::io;

use model::{Cell, Cost, CostTable, Place, Privilege, Profile, Sampled, Target};
use serde::{Deserialize, Serialize};

use crate::packed;

/// The number of the format.
const TABLE: u8 = 4;

/// A profile without its workload, iteration and phase.
#[derive(Serialize, Deserialize)]
struct Form {
    costs: Vec<Cost>,
    /// The places at the beginning that are memory.
    memory: Vec<(Privilege, Target)>,
    memory_cells: Columns,
    /// Names of functions, modules and processes.
    names: Vec<String>,
    /// The other places.
    places: Vec<Named>,
    cells: Columns,
    sampled: Option<Sampled>,
}

/// The begin of [`Form`], up to the accesses. The larger part follows.
#[derive(Deserialize)]
struct Beginning {
    costs: Vec<Cost>,
    memory: Vec<(Privilege, Target)>,
    memory_cells: Columns,
}

/// A [`Place`] with indices instead of names.
#[derive(Serialize, Deserialize)]
enum Named {
    Memory(Privilege, Target),
    Path(Vec<u32>),
    Process { id: u32, name: u32, functions: Vec<u32> },
    Function { name: u32, module: u32 },
    All(Privilege),
}

/// Cells by column, in order.
#[derive(Default, Serialize, Deserialize)]
struct Columns {
    /// How much the number of the place exceeds that of the cell before.
    places: Vec<u32>,
    costs: Vec<u16>,
    cpus: Vec<u16>,
    values: Vec<u64>,
}

impl Columns {
    fn of(cells: &[Cell]) -> Self {
        let mut columns = Self::default();
        let mut before = 0;
        for cell in cells {
            columns.places.push(cell.place - before);
            columns.costs.push(cell.cost);
            columns.cpus.push(cell.cpu);
            columns.values.push(cell.value);
            before = cell.place;
        }
        columns
    }

    fn cells(&self) -> io::Result<Vec<Cell>> {
        let Self { places, costs, cpus, values } = self;
        if [costs.len(), cpus.len(), values.len()] != [places.len(); 3] {
            return Err(io::Error::other("columns of different lengths"));
        }
        let mut place = 0_u32;
        let rest = costs.iter().zip(cpus).zip(values);
        let cells = places.iter().zip(rest).map(|(step, ((cost, cpu), value))| {
            place = place.checked_add(*step)?;
            Some(Cell { place, cost: *cost, cpu: *cpu, value: *value })
        });
        let cells: Option<_> = cells.collect();
        cells.ok_or_else(|| io::Error::other("a place beyond the last"))
    }
}

/// Names, each of which is stored once.
#[derive(Default)]
struct Names<'a> {
    places: HashMap<&'a str, u32>,
    names: Vec<String>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: &'a str) -> u32 {
        *self.places.entry(name).or_insert_with(|| {
            self.names.push(name.to_owned());
            self.names.len() as u32 - 1
        })
    }

    fn add_all(&mut self, names: &'a [String]) -> Vec<u32> {
        names.iter().map(|name| self.add(name)).collect()
    }

    fn named(&mut self, place: &'a Place) -> Named {
        match place {
            Place::Memory(privilege, target) => Named::Memory(*privilege, *target),
            Place::Path(functions) => Named::Path(self.add_all(functions)),
            Place::Process { id, name, functions } => {
                let (name, functions) = (self.add(name), self.add_all(functions));
                Named::Process { id: *id, name, functions }
            }
            Place::Function { name, module } => {
                Named::Function { name: self.add(name), module: self.add(module) }
            }
            Place::All(privilege) => Named::All(*privilege),
        }
    }
}

/// The place that a [`Named`] stands for.
fn place(named: Named, names: &[String]) -> io::Result<Place> {
    Ok(match named {
        Named::Memory(privilege, target) => Place::Memory(privilege, target),
        Named::Path(functions) => Place::Path(all(&functions, names)?),
        Named::Process { id, name, functions } => {
            Place::Process { id, name: one(&name, names)?, functions: all(&functions, names)? }
        }
        Named::Function { name, module } => {
            Place::Function { name: one(&name, names)?, module: one(&module, names)? }
        }
        Named::All(privilege) => Place::All(privilege),
    })
}

fn one(number: &u32, names: &[String]) -> io::Result<String> {
    let name = names.get(*number as usize).cloned();
    name.ok_or_else(|| io::Error::other(format!("there is no name {number}")))
}

fn all(numbers: &[u32], names: &[String]) -> io::Result<Vec<String>> {
    numbers.iter().map(|number| one(number, names)).collect()
}

/// Packs a profile, without its workload, iteration and phase.
pub fn encode(profile: &Profile) -> io::Result<Vec<u8>> {
    let (costs, all, cells) =
        (profile.costs.costs(), profile.costs.places(), profile.costs.cells());
    let memory: Vec<_> =
        profile.memory().map(|(privilege, target, _)| (privilege, target)).collect();
    let first = cells.partition_point(|cell| (cell.place as usize) < memory.len());
    let mut names = Names::default();
    let places = all[memory.len()..].iter().map(|place| names.named(place)).collect();
    let form = Form {
        costs: costs.to_vec(),
        memory,
        memory_cells: Columns::of(&cells[..first]),
        names: names.names,
        places,
        cells: Columns::of(&cells[first..]),
        sampled: profile.sampled.clone(),
    };
    let bytes = postcard::to_extend(&form, vec![TABLE]).map_err(io::Error::other)?;
    packed::pack(&bytes, packed::LEVEL)
}

/// Decodes the result of [`encode`]. Workload, iteration and phase are empty. Other bytes are an error.
pub fn decode(packed: &[u8]) -> io::Result<Profile> {
    parse(&packed::unpack(packed)?)
}

/// Decodes only the memory accesses of the result of [`encode`], as a profile that has nothing else.
pub fn decode_accesses(packed: &[u8]) -> io::Result<Profile> {
    let bytes = packed::unpack(packed)?;
    let costs = match bytes.split_first() {
        Some((&TABLE, bytes)) => {
            let (form, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
            let Beginning { costs, memory, memory_cells } = form;
            table(costs, memory_places(memory).collect(), memory_cells.cells()?)?
        }
        _ => old::accesses(&bytes)?,
    };
    Ok(Profile { costs, ..Profile::default() })
}

fn memory_places(memory: Vec<(Privilege, Target)>) -> impl Iterator<Item = Place> {
    memory.into_iter().map(|(privilege, target)| Place::Memory(privilege, target))
}

fn table(costs: Vec<Cost>, places: Vec<Place>, cells: Vec<Cell>) -> io::Result<CostTable> {
    let table = CostTable::of(costs, places, cells);
    table.ok_or_else(|| io::Error::other("cells that do not fit"))
}

fn parse(bytes: &[u8]) -> io::Result<Profile> {
    let Some((&TABLE, bytes)) = bytes.split_first() else { return old::parse(bytes) };
    let (form, rest): (Form, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    if !rest.is_empty() {
        return Err(io::Error::other(format!("{} trailing bytes", rest.len())));
    }
    let Form { costs, memory, memory_cells, names, places, cells, sampled } = form;
    let named = places.into_iter().map(|it| place(it, &names));
    let places = memory_places(memory).map(Ok).chain(named).collect::<io::Result<_>>()?;
    let cells = [memory_cells.cells()?, cells.cells()?].concat();
    Ok(Profile { costs: table(costs, places, cells)?, sampled, ..Profile::default() })
}

#[cfg(test)]
mod tests {
    use model::{ALL_CPUS, Slice};
    use proptest::prelude::*;

    use super::*;

    fn any_place() -> impl Strategy<Value = Place> {
        let names = || prop::collection::vec(".{0,9}", 0..4);
        prop_oneof![
            names().prop_map(Place::Path),
            (any::<u32>(), ".{0,9}", names()).prop_map(|(id, name, functions)| Place::Process {
                id,
                name,
                functions
            }),
            (".{0,9}", ".{0,9}").prop_map(|(name, module)| Place::Function { name, module }),
            Just(Place::All(Privilege::Firmware)),
        ]
    }

    prop_compose! {
        fn any_profile()(
            costs in prop::collection::vec(".{0,9}", 1..4),
            nodes in prop::collection::vec(any::<u16>(), 0..4),
            places in prop::collection::vec(any_place(), 0..9),
            values in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u64>()), 0..9),
            sampled in prop::option::of(prop::collection::vec((any::<u32>(), any::<u32>()), 0..9)),
        ) -> Profile {
            let memory = nodes.into_iter().map(|it| Place::Memory(Privilege::User, Target::Node(it)));
            let mut table = CostTable::new(costs.iter().map(|name| Cost::new(name)));
            for (number, place) in memory.chain(places).enumerate() {
                let own = values.iter().skip(number).map(|(cost, cpu, value)| {
                    (cost % costs.len() as u16, cpu % 4, *value)
                });
                table.push(place, own.chain([(0, ALL_CPUS, 1)]));
            }
            Profile {
                costs: table,
                sampled: sampled.map(|samples| Sampled {
                    event: "cycles".into(), frequency: 99, begun: 1, ended: 2, lost: 3, dropped: 4,
                    slices: vec![Slice { ended: 5, samples }],
                }),
                ..Profile::default()
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_reverses_encoding(profile in any_profile()) {
            let packed = encode(&profile).unwrap();
            let accesses = decode_accesses(&packed).unwrap();
            prop_assert!(accesses.memory().map(|it| it.2.cells).eq(profile.memory().map(|it| it.2.cells)));
            prop_assert_eq!(accesses.costs.places().len(), profile.memory().count());
            prop_assert_eq!(decode(&packed).unwrap(), profile);
        }

        #[test]
        fn random_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..256)) {
            let _ = decode(&bytes);
            for format in 0..=TABLE {
                bytes[0] = format;
                let _ = parse(&bytes);
                let _ = decode_accesses(&packed::pack(&bytes, packed::LEVEL).unwrap());
            }
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_errors() {
        let columns = |places: &[u32], values: &[u64]| Columns {
            places: places.to_vec(),
            costs: vec![0; values.len()],
            cpus: vec![0; values.len()],
            values: values.to_vec(),
        };
        assert!(columns(&[0, 1], &[1, 1]).cells().is_ok());
        assert!(columns(&[0], &[1, 1]).cells().is_err());
        assert!(columns(&[1, u32::MAX], &[1, 1]).cells().is_err());
    }
}
