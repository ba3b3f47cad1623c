//! A table of named costs by place and CPU.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Architecture, Better, Class};

/// The cost of executed instructions. Exact mode adds a metric of this name to every workload, with the labels `total`,
/// `user` and `kernel`, in the unit of the same name.
pub const INSTRUCTIONS: &str = "instructions";
/// The cost of entries: executions of a function's first instruction.
pub const ENTRIES: &str = "entries";
/// The cost of loads from memory.
pub const LOADS: &str = "loads";
/// The cost of stores to memory.
pub const STORES: &str = "stores";
/// The cost of a sampled profile: samples of what was running.
pub const SAMPLES: &str = "samples";

/// Whether a cost of functions is known by call path too. Entries and classes of instructions are not.
pub fn is_by_path(cost: &str) -> bool {
    cost != ENTRIES && Class::named(cost).is_none()
}

/// The numbers of the costs in a table of exact mode.
pub mod exact_cost {
    use super::{Architecture, Class, Cost, CostTable};
    /// The number of [`super::INSTRUCTIONS`].
    pub const INSTRUCTIONS: u16 = 0;
    /// The number of [`super::ENTRIES`].
    pub const ENTRIES: u16 = 1;
    /// The number of [`super::LOADS`], if accesses are counted.
    pub const LOADS: u16 = 2;
    /// The number of [`super::STORES`], if accesses are counted.
    pub const STORES: u16 = 3;

    /// What was counted besides instructions, entries and classes of instructions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counted {
        /// Loads and stores.
        pub accesses: bool,
        /// [`Class::TRANSFERS`].
        pub transfers: bool,
        /// [`Class::MISSES`].
        pub misses: bool,
    }

    /// A table of exact mode without places, of boots in which classes were not counted.
    pub fn table(has_accesses: bool) -> CostTable {
        CostTable::new(costs(has_accesses).iter().map(|name| Cost::new(name)))
    }

    /// A table of exact mode without places, with the classes of the architecture, and what else was counted.
    pub fn table_with_classes(arch: Architecture, counted: Counted) -> CostTable {
        let Counted { accesses, transfers, misses } = counted;
        let costs = costs(accesses).iter().map(|name| Cost::new(name));
        let transfers = Class::TRANSFERS.iter().filter(|_| transfers);
        let misses = Class::MISSES.iter().filter(|_| misses);
        let classes = Class::of(arch).iter().chain(transfers).chain(misses);
        CostTable::new(costs.chain(classes.map(|it| it.cost())))
    }

    /// The names of the costs that are no classes, by number.
    fn costs(has_accesses: bool) -> &'static [&'static str] {
        let costs = &[super::INSTRUCTIONS, super::ENTRIES, super::LOADS, super::STORES];
        &costs[..if has_accesses { 4 } else { 2 }]
    }
}

/// The CPU of a cell that stands for all CPUs together.
pub const ALL_CPUS: u16 = u16::MAX;

/// The frame that stands for the functions of a program if these are not known.
pub const USER: &str = "[user]";

/// Privilege level of executed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privilege {
    /// The kernel, in the upper half of the address space.
    Kernel,
    /// Programs in user mode.
    User,
    /// Privileged, in the lower half of the address space: firmware, and the kernel's first
    /// instructions on each CPU.
    Firmware,
}

impl Privilege {
    /// All privileges.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::User, Self::Firmware];
}

/// The target of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Memory of a NUMA node.
    Node(u16),
    /// Registers of a device.
    Device,
    /// Memory of no node: that of devices, such as the recorder's.
    Elsewhere,
}

/// A quantity that is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cost {
    /// The cost's name, unique in a table.
    pub name: String,
    /// The unit of its values, in the plural.
    pub unit: String,
    /// The good direction; `None` if neither is good.
    pub better: Option<Better>,
}

impl Cost {
    /// A cost whose unit has the same name, and of which less is better.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), unit: name.to_owned(), better: Some(Better::Lower) }
    }
}

/// The name of a function, a module or a process. Places share names: a profile has the same ones many thousand times.
pub type Name = Arc<str>;

/// The place where a cost is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// The memory that instructions of this privilege access, without page walks and instruction fetches. A
    /// read-modify-write counts as a load and a store.
    Memory(Privilege, Target),
    /// A call path in the kernel: its functions, outermost first. The costs are the last function's own.
    Path(Vec<Name>),
    /// A process in user mode: all threads of one thread group.
    Process {
        /// The thread group's id.
        id: u32,
        /// The name of the thread that ran.
        name: Name,
        /// The functions of the program on the call path, outermost first; empty if they are not known.
        functions: Vec<Name>,
    },
    /// A kernel function, without its callees. Functions of the same name are counted together.
    Function {
        /// The kernel's symbol, with compiler suffixes such as `.isra.0`.
        name: Name,
        /// Its module; empty for the kernel itself.
        module: Name,
    },
    /// All code of a privilege.
    All(Privilege),
    /// One instruction of a kernel function, in profiles that keep those of the function ([`crate::Profiling::lines`]).
    /// Its instructions are its executions. Those of a function's instructions add up to the function's.
    Instruction {
        /// The kernel's symbol, with compiler suffixes.
        function: Name,
        /// Its module; empty for the kernel itself.
        module: Name,
        /// The instruction's virtual address.
        address: u64,
    },
    /// A field of the kernel's memory whose line a function takes from other CPUs. The costs are transfers. Those of a
    /// function's fields add up to the function's.
    Field {
        /// The type and the field, such as `mm_struct.mmap_lock.count`, or what else is known of the memory, in brackets.
        field: Name,
        /// The kernel's symbol, with compiler suffixes.
        function: Name,
        /// Its module; empty for the kernel itself.
        module: Name,
    },
}

/// The frames of a process's call path, outermost first: its functions, or [`USER`] if they are not known.
pub fn program_frames(functions: &[Name]) -> impl Iterator<Item = &str> {
    let unknown = functions.is_empty().then_some(USER);
    functions.iter().map(|name| &**name).chain(unknown)
}

/// One value of the table, which is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The place, as an index into [`CostTable::places`].
    pub place: u32,
    /// The cost, as an index into [`CostTable::costs`].
    pub cost: u16,
    /// The CPU's number, or [`ALL_CPUS`].
    pub cpu: u16,
    /// The value in the unit of the cost.
    pub value: u64,
}

impl Cell {
    /// A cell that has no place yet; [`CostTable::push`] sets it.
    pub fn new(cost: u16, cpu: u16, value: u64) -> Self {
        Self { place: 0, cost, cpu, value }
    }
}

/// Costs by place and CPU. The table is sparse: a value without a cell is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostTable {
    costs: Vec<Cost>,
    places: Vec<Place>,
    cells: Vec<Cell>,
}

/// A place and its cells, sorted by cost and CPU.
#[derive(Clone, Copy, Debug)]
pub struct CostRow<'a> {
    /// The place that the cells are of.
    pub place: &'a Place,
    /// The cells of the place.
    pub cells: &'a [Cell],
}

impl CostRow<'_> {
    /// The sum of a cost over all CPUs; 0 for a cost that the table does not have.
    pub fn sum(&self, cost: Option<u16>) -> u128 {
        let own = self.cells.iter().filter(|cell| Some(cell.cost) == cost);
        own.map(|cell| u128::from(cell.value)).sum()
    }
}

impl CostTable {
    /// A table of these costs without places.
    pub fn new(costs: impl IntoIterator<Item = Cost>) -> Self {
        Self { costs: costs.into_iter().collect(), ..Self::default() }
    }

    /// A table from its parts. `None` if cells are not sorted by place, cost and CPU, if two are of the same place,
    /// cost and CPU, if a value is 0, or if a cell refers to a cost or a place that is missing.
    pub fn of(costs: Vec<Cost>, places: Vec<Place>, cells: Vec<Cell>) -> Option<Self> {
        let order = |cell: &Cell| (cell.place, cell.cost, cell.cpu);
        let is_sorted = cells.is_sorted_by(|one, other| order(one) < order(other));
        let is_known = |cell: &Cell| {
            (cell.place as usize) < places.len()
                && usize::from(cell.cost) < costs.len()
                && cell.value > 0
        };
        (is_sorted && cells.iter().all(is_known)).then_some(Self { costs, places, cells })
    }

    /// Adds a place with its cells, and returns the place's number, which its cells get. Values of the same cost and CPU
    /// are added up.
    ///
    /// # Panics
    /// If the table does not have a cost.
    pub fn push(&mut self, place: Place, cells: impl IntoIterator<Item = Cell>) -> u32 {
        let number = self.places.len() as u32;
        self.places.push(place);
        let first = self.cells.len();
        let own = cells.into_iter().filter(|cell| cell.value > 0);
        let mut own: Vec<_> = own.map(|cell| Cell { place: number, ..cell }).collect();
        own.sort_unstable();
        for cell in own {
            assert!(
                usize::from(cell.cost) < self.costs.len(),
                "the table has no cost {}",
                cell.cost
            );
            match self.cells[first..].last_mut() {
                Some(last) if (last.cost, last.cpu) == (cell.cost, cell.cpu) => {
                    last.value = last.value.saturating_add(cell.value);
                }
                _ => self.cells.push(cell),
            }
        }
        number
    }

    /// The costs, by number.
    pub fn costs(&self) -> &[Cost] {
        &self.costs
    }

    /// The places, by number.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The values, sorted by place, cost and CPU.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The number of the cost with this name.
    pub fn number(&self, cost: &str) -> Option<u16> {
        self.costs.iter().position(|it| it.name == cost).map(|at| at as u16)
    }

    /// The sum of a cost over some places and all CPUs; 0 for a cost that the table does not have.
    pub fn sum(&self, cost: &str, wanted: impl Fn(&Place) -> bool) -> u128 {
        let cost = self.number(cost);
        self.rows().filter(|row| wanted(row.place)).map(|row| row.sum(cost)).sum()
    }

    /// A table with the same places and the values that `value` returns.
    pub fn with_values(&self, value: impl Fn(&Place, &Cell) -> u64) -> Self {
        let mut table = Self::new(self.costs.clone());
        for CostRow { place, cells } in self.rows() {
            let cells = cells.iter().map(|cell| Cell { value: value(place, cell), ..*cell });
            table.push(place.clone(), cells);
        }
        table
    }

    /// All places with their cells.
    pub fn rows(&self) -> impl Iterator<Item = CostRow<'_>> {
        let mut rest = &self.cells[..];
        (0..).zip(&self.places).map(move |(number, place)| {
            let own = rest.partition_point(|cell| cell.place <= number);
            let (cells, after) = rest.split_at(own);
            rest = after;
            CostRow { place, cells }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        Place::Function { name: name.into(), module: "".into() }
    }

    #[test]
    fn cells_are_sorted_and_summed_and_none_is_0() {
        let mut table = CostTable::new([Cost::new(INSTRUCTIONS), Cost::new("misses")]);
        assert_eq!(
            table.push(
                place("f"),
                [
                    Cell::new(1, 3, 5),
                    Cell::new(0, 2, 7),
                    Cell::new(1, 3, u64::MAX),
                    Cell::new(0, 1, 0)
                ]
            ),
            0
        );
        assert_eq!(table.push(place("nothing"), []), 1);
        assert_eq!(table.push(place("g"), [Cell::new(1, 0, 4), Cell::new(1, ALL_CPUS, 6)]), 2);
        let misses = table.number("misses");
        let sums = table.rows().map(|row| (row.place.clone(), row.sum(misses), row.cells.len()));
        let expected =
            [(place("f"), u64::MAX.into(), 2), (place("nothing"), 0, 0), (place("g"), 10, 2)];
        assert_eq!(sums.collect::<Vec<_>>(), expected);
        assert_eq!(table.rows().map(|row| row.sum(table.number("walks"))).max(), Some(0));
        let CostTable { costs, places, cells } = table.clone();
        assert_eq!(CostTable::of(costs, places, cells), Some(table));
    }

    #[test]
    fn parts_that_do_not_fit_are_no_table() {
        let cell = |place, cost, cpu, value| Cell { place, cost, cpu, value };
        let of = |cells: &[Cell]| {
            CostTable::of(vec![Cost::new(LOADS)], vec![place("f"), place("g")], cells.to_vec())
        };
        assert!(of(&[cell(0, 0, 0, 1), cell(0, 0, 1, 1), cell(1, 0, 0, 1)]).is_some());
        let wrong = [
            [cell(1, 0, 0, 1), cell(0, 0, 0, 1)],
            [cell(0, 0, 0, 1), cell(0, 0, 0, 1)],
            [cell(0, 0, 1, 1), cell(0, 0, 0, 1)],
            [cell(0, 0, 0, 1), cell(2, 0, 0, 1)],
            [cell(0, 0, 0, 1), cell(1, 1, 0, 1)],
            [cell(0, 0, 0, 1), cell(1, 0, 0, 0)],
        ];
        assert!(wrong.iter().all(|cells| of(cells).is_none()));
    }
}
