//! What missed in the model of caches and TLBs.

use flight::profile as counted;
use model::{Cell, Class, CostTable, Privilege};

/// The cells of a CPU's misses. `table` has the costs.
pub fn cells(cpu: u16, misses: counted::Misses, table: &CostTable) -> impl Iterator<Item = Cell> {
    let counted::Misses { l1d, l2, llc, dtlb, stlb } = misses;
    let number = |class: Class| table.number(class.name());
    let kinds = Class::MISSES.into_iter().zip([l1d, l2, llc, dtlb, stlb]);
    kinds.filter_map(move |(class, count)| Some(Cell::new(number(class)?, cpu, count)))
}

/// Returns what a CPU missed by instructions of a privilege. What firmware missed counts as the programs'.
pub fn sum(cpu: &counted::Cpu, privilege: Privilege) -> counted::Misses {
    let is_own = |it: &&counted::MissCount| match privilege {
        Privilege::Kernel => it.address != counted::PROGRAM,
        Privilege::User => it.address == counted::PROGRAM,
        Privilege::Firmware => false,
    };
    let own = cpu.misses.iter().filter(is_own);
    own.fold(counted::Misses::default(), |sum, it| sum.plus(it.misses))
}

#[cfg(test)]
mod tests {
    use counted::{Cpu, MissCount, Misses, PROGRAM};
    use model::{Architecture, exact_cost};

    use super::*;

    #[test]
    fn programs_and_the_kernel_have_sums_of_their_own() {
        let count = |address, l1d, stlb| MissCount {
            address,
            misses: Misses { l1d, stlb, ..Misses::default() },
        };
        let misses = vec![count(PROGRAM, 9, 0), count(100, 3, 1), count(200, 4, 0)];
        let cpu = Cpu { misses, ..Cpu::default() };
        let has = exact_cost::Counted { misses: true, ..Default::default() };
        let table = exact_cost::table_with_classes(Architecture::X86_64, has);
        let of = |privilege| {
            let cells: Vec<Cell> = cells(5, sum(&cpu, privilege), &table).collect();
            let value = |class: Class| {
                let own = cells.iter().find(|it| Some(it.cost) == table.number(class.name()));
                own.map(|it| (it.cpu, it.value))
            };
            [value(Class::L1dMiss), value(Class::L2Miss), value(Class::StlbMiss)]
        };
        let [some, none] = [|n| Some((5, n)), |_| Some((5, 0))];
        assert_eq!(of(Privilege::Kernel), [some(7), none(0), some(1)]);
        assert_eq!(of(Privilege::User), [some(9), none(0), none(0)]);
        assert_eq!(of(Privilege::Firmware), [none(0), none(0), none(0)]);
    }
}
