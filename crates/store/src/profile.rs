//! Packs a profile: a format number, then [`Form`] in postcard's wire format (<https://postcard.jamesmunns.com>),
//! packed by zstd. Names are stored once, and so are lists of costs and CPUs. [`old`] reads older formats.

mod old;

use std::collections::HashMap;
use std::io;

use model::{Cell, Cost, CostRow, CostTable, Name, Place, Privilege, Profile, Sampled, Target};
use serde::{Deserialize, Serialize};

use crate::packed;

/// The number of the format.
const TABLE: u8 = 6;
/// The numbers of older formats, which are the same without [`Named::Field`], and without [`Named::Instruction`] too.
const OLDER: [u8; 2] = [5, 4];

/// A profile without its workload, iteration and phase.
#[derive(Serialize, Deserialize)]
struct Form {
    costs: Vec<Cost>,
    /// The places that are memory of a node or a device. They come first in the table.
    memory: Vec<(Privilege, Target)>,
    memory_cells: Columns,
    /// Names of functions, modules and processes.
    names: Vec<Name>,
    /// The other places.
    places: Vec<Named>,
    cells: Columns,
    sampled: Option<Sampled>,
}

/// The beginning of [`Form`], up to the memory accesses. The larger part follows.
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
    Instruction { function: u32, module: u32, address: u64 },
    Field { field: u32, function: u32, module: u32 },
}

/// The cells of some places. Most places have values of the same costs and CPUs, so these are stored once.
#[derive(Default, Serialize, Deserialize)]
struct Columns {
    /// Lists of costs and CPUs, sorted.
    shapes: Vec<Vec<(u16, u16)>>,
    /// The shape of each place.
    places: Vec<u32>,
    /// The values in order of places, costs and CPUs.
    values: Vec<u64>,
}

impl Columns {
    fn of<'a>(rows: impl Iterator<Item = CostRow<'a>>) -> Self {
        let mut columns = Self::default();
        let mut known = HashMap::new();
        for row in rows {
            let shape: Vec<_> = row.cells.iter().map(|cell| (cell.cost, cell.cpu)).collect();
            let number = *known.entry(shape).or_insert_with_key(|shape| {
                columns.shapes.push(shape.clone());
                columns.shapes.len() as u32 - 1
            });
            columns.places.push(number);
            columns.values.extend(row.cells.iter().map(|cell| cell.value));
        }
        columns
    }

    /// Appends these cells to `cells`. `first` is the number of the first place.
    fn add_to(&self, cells: &mut Vec<Cell>, first: u32) -> io::Result<()> {
        let wrong = || io::Error::other("cells that do not fit");
        let mut values = self.values.iter();
        cells.reserve(self.values.len());
        for (place, shape) in (first..).zip(&self.places) {
            for &(cost, cpu) in self.shapes.get(*shape as usize).ok_or_else(wrong)? {
                let value = *values.next().ok_or_else(wrong)?;
                cells.push(Cell { place, cost, cpu, value });
            }
        }
        if values.len() == 0 { Ok(()) } else { Err(wrong()) }
    }
}

/// Names, each of which is stored once.
#[derive(Default)]
struct Names<'a> {
    places: HashMap<&'a str, u32>,
    names: Vec<Name>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: &'a str) -> u32 {
        *self.places.entry(name).or_insert_with(|| {
            self.names.push(name.into());
            self.names.len() as u32 - 1
        })
    }

    fn add_all(&mut self, names: &'a [Name]) -> Vec<u32> {
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
            Place::Instruction { function, module, address } => {
                let (function, module) = (self.add(function), self.add(module));
                Named::Instruction { function, module, address: *address }
            }
            Place::Field { field, function, module } => Named::Field {
                field: self.add(field),
                function: self.add(function),
                module: self.add(module),
            },
        }
    }
}

/// The place that a [`Named`] stands for.
fn place(named: Named, names: &[Name]) -> io::Result<Place> {
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
        Named::Instruction { function, module, address } => {
            let (function, module) = (one(&function, names)?, one(&module, names)?);
            Place::Instruction { function, module, address }
        }
        Named::Field { field, function, module } => Place::Field {
            field: one(&field, names)?,
            function: one(&function, names)?,
            module: one(&module, names)?,
        },
    })
}

fn one(number: &u32, names: &[Name]) -> io::Result<Name> {
    let name = names.get(*number as usize).cloned();
    name.ok_or_else(|| io::Error::other(format!("there is no name {number}")))
}

fn all(numbers: &[u32], names: &[Name]) -> io::Result<Vec<Name>> {
    // Collecting results grows a list step by step.
    let mut all = Vec::with_capacity(numbers.len());
    for number in numbers {
        all.push(one(number, names)?);
    }
    Ok(all)
}

/// Packs a profile, without its workload, iteration and phase.
pub fn encode(profile: &Profile) -> io::Result<Vec<u8>> {
    let table = &profile.costs;
    let memory: Vec<_> = profile.memory().map(|it| (it.privilege, it.target)).collect();
    let mut names = Names::default();
    let places = table.places()[memory.len()..].iter().map(|place| names.named(place)).collect();
    let form = Form {
        costs: table.costs().to_vec(),
        memory_cells: Columns::of(table.rows().take(memory.len())),
        cells: Columns::of(table.rows().skip(memory.len())),
        memory,
        names: names.names,
        places,
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
        Some((format, bytes)) if is_table(*format) => {
            let (form, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
            let Beginning { costs, memory, memory_cells } = form;
            let mut cells = Vec::new();
            memory_cells.add_to(&mut cells, 0)?;
            table(costs, memory_places(memory).collect(), cells)?
        }
        _ => old::accesses(&bytes)?,
    };
    Ok(Profile { costs, ..Profile::default() })
}

fn is_table(format: u8) -> bool {
    format == TABLE || OLDER.contains(&format)
}

fn memory_places(memory: Vec<(Privilege, Target)>) -> impl Iterator<Item = Place> {
    memory.into_iter().map(|(privilege, target)| Place::Memory(privilege, target))
}

fn table(costs: Vec<Cost>, places: Vec<Place>, cells: Vec<Cell>) -> io::Result<CostTable> {
    let table = CostTable::of(costs, places, cells);
    table.ok_or_else(|| io::Error::other("cells that do not fit"))
}

fn parse(bytes: &[u8]) -> io::Result<Profile> {
    let Some((_, bytes)) = bytes.split_first().filter(|(format, _)| is_table(**format)) else {
        return old::parse(bytes);
    };
    let (form, rest): (Form, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    if !rest.is_empty() {
        return Err(io::Error::other(format!("{} trailing bytes", rest.len())));
    }
    let Form { costs, memory, memory_cells, names, places, cells: columns, sampled } = form;
    let mut cells = Vec::new();
    memory_cells.add_to(&mut cells, 0)?;
    columns.add_to(&mut cells, memory.len() as u32)?;
    let named = places.into_iter().map(|it| place(it, &names));
    let places = memory_places(memory).map(Ok).chain(named).collect::<io::Result<_>>()?;
    Ok(Profile { costs: table(costs, places, cells)?, sampled, ..Profile::default() })
}

#[cfg(test)]
mod tests {
    use model::{ALL_CPUS, Slice};
    use proptest::prelude::*;

    use super::*;

    fn any_place() -> impl Strategy<Value = Place> {
        let name = || ".{0,9}".prop_map(Name::from);
        let names = || prop::collection::vec(name(), 0..4);
        prop_oneof![
            names().prop_map(Place::Path),
            (any::<u32>(), name(), names()).prop_map(|(id, name, functions)| Place::Process {
                id,
                name,
                functions
            }),
            (name(), name()).prop_map(|(name, module)| Place::Function { name, module }),
            (name(), name(), any::<u64>()).prop_map(|(function, module, address)| {
                Place::Instruction { function, module, address }
            }),
            (name(), name(), name())
                .prop_map(|(field, function, module)| { Place::Field { field, function, module } }),
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
                    Cell::new(cost % costs.len() as u16, cpu % 4, *value)
                });
                table.push(place, own.chain([Cell::new(0, ALL_CPUS, 1)]));
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
            prop_assert!(accesses.memory().map(|it| it.cells).eq(profile.memory().map(|it| it.cells)));
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
        let are_cells = |places: &[u32], values: &[u64]| {
            let (places, values) = (places.to_vec(), values.to_vec());
            let columns = Columns { shapes: vec![vec![(0, 0)], vec![]], places, values };
            columns.add_to(&mut Vec::new(), 7).is_ok()
        };
        assert!(are_cells(&[0, 1, 0], &[1, 1]));
        assert!(!are_cells(&[0], &[1, 1]) && !are_cells(&[0, 0], &[1]) && !are_cells(&[2], &[]));
    }
}
