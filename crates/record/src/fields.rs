//! The lines of memory that CPUs took from each other, by field and function.

use std::collections::BTreeMap;

use flight::profile as counted;
use kernelfiles::kallsyms::{Symbol, Symbols};
use model::{Cell, Class, CostTable, Place, Privilege};

use crate::memory::Memory;

/// The function name for kernel instructions whose address has no symbol.
pub const UNKNOWN: &str = "[unknown]";
/// The name of fields for which there is no room.
const OTHER: &str = "[other]";
/// The largest number of pairs of a field and a function in a phase, which limits memory.
const MAX_FIELDS: usize = 1 << 16;

/// The kinds of transfers with their numbers.
fn kinds(counts: counted::Transfers) -> [(Class, u64); Class::TRANSFERS.len()] {
    let counted::Transfers { all, upgrades, disjoint, remote, pairs } = counts;
    let numbers = [all, upgrades, disjoint, remote, pairs];
    std::array::from_fn(|kind| (Class::TRANSFERS[kind], numbers[kind]))
}

/// The name and the module of a symbol.
pub fn name_of(symbol: Option<&Symbol>) -> (&str, &str) {
    symbol.map_or((UNKNOWN, ""), |it| (&it.name, &it.module))
}

/// The cells of a CPU's transfers. `table` has the costs.
pub fn cells(
    cpu: u16,
    counts: counted::Transfers,
    table: &CostTable,
) -> impl Iterator<Item = Cell> {
    let number = |class: Class| table.number(class.name());
    kinds(counts)
        .into_iter()
        .filter_map(move |(class, count)| Some(Cell::new(number(class)?, cpu, count)))
}

/// Returns the transfers of the kernel's functions by field, sorted. `table` has the costs.
pub fn costs(
    phase: &counted::Phase,
    caches: &[String],
    memory: &Memory,
    symbols: &Symbols,
    table: &CostTable,
) -> Vec<(Place, Vec<Cell>)> {
    let mut names = BTreeMap::new();
    let mut fields = BTreeMap::<_, Vec<Cell>>::new();
    for (number, cpu) in (0..).zip(&phase.cpus) {
        for count in cpu.transfers.iter().filter(|it| it.address != counted::PROGRAM) {
            let name = || memory.name(count.object, caches, symbols);
            let field: &String = names.entry(count.object).or_insert_with(name);
            let function = name_of(symbols.find(count.address));
            let mut place = (field.clone(), function);
            if fields.len() >= MAX_FIELDS && !fields.contains_key(&place) {
                place.0 = OTHER.to_owned();
            }
            fields.entry(place).or_default().extend(cells(number, count.transfers, table));
        }
    }
    let fields = fields.into_iter().map(|((field, (function, module)), cells)| {
        let (field, function, module) = (field.into(), function.into(), module.into());
        (Place::Field { field, function, module }, cells)
    });
    fields.collect()
}

/// Returns the transfers to a CPU by instructions of a privilege. Those of firmware count as the programs'.
pub fn sum(cpu: &counted::Cpu, privilege: Privilege) -> counted::Transfers {
    let is_own = |it: &&counted::TransferCount| match privilege {
        Privilege::Kernel => it.address != counted::PROGRAM,
        Privilege::User => it.address == counted::PROGRAM,
        Privilege::Firmware => false,
    };
    let own = cpu.transfers.iter().filter(is_own).map(|it| it.transfers);
    own.fold(counted::Transfers::default(), |sum, it| counted::Transfers {
        all: sum.all.saturating_add(it.all),
        upgrades: sum.upgrades.saturating_add(it.upgrades),
        disjoint: sum.disjoint.saturating_add(it.disjoint),
        remote: sum.remote.saturating_add(it.remote),
        pairs: sum.pairs.saturating_add(it.pairs),
    })
}

#[cfg(test)]
mod tests {
    use counted::{Cpu, Object, PROGRAM, Phase, TransferCount, Transfers};
    use kernelfiles::kallsyms;
    use model::{Architecture, exact_cost};

    use super::*;

    const MEMORY: &str = "ffffffff82000000 D jiffies\nffffffff82000040 d tasks\n";

    fn count(address: u64, object: Object, all: u64, remote: u64) -> TransferCount {
        let transfers = Transfers { all, remote, ..Transfers::default() };
        TransferCount { address, object, transfers }
    }

    fn phase() -> Phase {
        let (jiffies, slab) = (Object::Image(0xffff_ffff_8200_0008), Object::Slab(0, 13));
        let cpu = |transfers: Vec<TransferCount>| Cpu { transfers, ..Cpu::default() };
        let cpus = vec![
            cpu(vec![count(PROGRAM, Object::User, 100, 0), count(104, jiffies, 3, 1)]),
            cpu(vec![
                count(108, jiffies, 5, 0),
                count(204, slab, 2, 2),
                // Two copies of a function call it. The second call is the last instruction of its copy.
                count(204, Object::Allocated { site: 110, size: 0, offset: 9 }, 4, 0),
                count(204, Object::Allocated { site: 200, size: 16, offset: 8 }, 1, 0),
                count(204, Object::Allocated { site: 5, size: 8, offset: 0 }, 1, 0),
            ]),
        ];
        Phase { cpus, ..Phase::default() }
    }

    #[test]
    fn transfers_are_summed_by_field_and_function() {
        let function = |(name, address): (&str, u64)| kallsyms::Symbol {
            address,
            name: name.to_owned(),
            module: String::new(),
        };
        let symbols =
            Symbols::of([("f", 100), ("f.isra.0", 120), ("g", 200)].into_iter().map(function));
        let counted = exact_cost::Counted { transfers: true, ..Default::default() };
        let mut table = exact_cost::table_with_classes(Architecture::X86_64, counted);
        let memory = Memory::read(b"", MEMORY);
        let caches = ["kmalloc-64 64".to_owned()];
        for (place, cells) in costs(&phase(), &caches, &memory, &symbols, &table.clone()) {
            table.push(place, cells);
        }
        let [all, remote] = [Class::Transfer, Class::RemoteTransfer].map(Class::name);
        let sums = table.rows().map(|row| match row.place {
            Place::Field { field, function, .. } => {
                let [all, remote] = [all, remote].map(|cost| row.sum(table.number(cost)));
                (field.to_string(), function.to_string(), all, remote)
            }
            other => panic!("{other:?}"),
        });
        let expected = [
            ("[kmalloc-64+0x8]", "g", 2, 2),
            ("jiffies", "f", 8, 1),
            ("kmalloc+0x0 from [unknown]", "g", 1, 0),
            ("kmalloc+0x8 from f", "g", 5, 0),
        ];
        let expected = expected.map(|(field, function, all, remote)| {
            (field.to_owned(), function.to_owned(), all, remote)
        });
        assert_eq!(sums.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn programs_and_the_kernel_have_sums_of_their_own() {
        let phase = phase();
        let all = |cpu: usize, privilege| sum(&phase.cpus[cpu], privilege).all;
        let sums = Privilege::ALL.map(|it| [all(0, it), all(1, it)]);
        assert_eq!(sums, [[3, 13], [100, 0], [0, 0]]);
    }
}
