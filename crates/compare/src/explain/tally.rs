//! The sums of one seed: what a boot executed in one phase, or in all phases.

use std::collections::{BTreeMap, BTreeSet};

use model::{ENTRIES, Place, Privilege, Profile};

use code::{Piece, Symbol};

/// A kernel function. Pieces that the compiler made of a function count as the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity<'a> {
    /// Its name without a compiler's suffixes.
    pub name: &'a str,
    /// Its module; empty for the kernel itself.
    pub module: &'a str,
}

/// Counts of a function. Sums are i128, because a guest may claim any count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// The cost, including its parts.
    pub cost: i128,
    /// Entries of the function itself.
    pub entries: i128,
    /// Entries of its parts (`.part.N`) that can be entries of the function. They are 0 if call paths show that the
    /// function itself entered its parts. Cold code is not a part.
    pub part_entries: i128,
}

/// Sums of one cost over the profiles of one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally<'a> {
    /// The cost of programs in user mode.
    pub user: i128,
    /// The cost of the kernel.
    pub kernel: i128,
    /// The cost of firmware.
    pub firmware: i128,
    /// The cost of the kernel by function.
    pub functions: BTreeMap<Identity<'a>, Executed>,
    /// The cost of user mode by the process's name.
    pub processes: BTreeMap<&'a str, i128>,
}

/// The functions with a part that another function entered. `None` if the profile has no call paths.
fn entered_directly(profile: &Profile) -> Option<BTreeSet<&str>> {
    let mut functions = BTreeSet::new();
    let mut has_paths = false;
    for row in profile.costs.rows() {
        let Place::Path(path) = row.place else { continue };
        has_paths = true;
        let mut caller = "";
        for symbol in path.iter().map(|name| Symbol::of(name)) {
            if symbol.piece == Piece::Part && symbol.name != caller {
                functions.insert(symbol.name);
            }
            caller = symbol.name;
        }
    }
    has_paths.then_some(functions)
}

impl<'a> Tally<'a> {
    /// Adds up a cost of profiles. Profiles without the cost count as 0.
    pub fn of(profiles: impl Iterator<Item = &'a Profile>, cost: &str) -> Self {
        let mut tally = Self::default();
        let mut direct = Some(BTreeSet::new());
        for profile in profiles {
            tally.add(profile, cost);
            direct = direct.zip(entered_directly(profile)).map(|(all, own)| &all | &own);
        }
        if let Some(direct) = direct {
            let inner = tally.functions.iter_mut().filter(|(it, _)| !direct.contains(it.name));
            inner.filter(|(_, it)| it.entries > 0).for_each(|(_, it)| it.part_entries = 0);
        }
        tally
    }

    /// The cost of user mode, kernel and firmware together.
    pub fn total(&self) -> i128 {
        self.user + self.kernel + self.firmware
    }

    /// Whether anything was executed, with or without the cost.
    pub fn has_executed(&self) -> bool {
        let is_entered = |it: &Executed| it.cost + it.entries + it.part_entries > 0;
        self.total() > 0 || self.functions.values().any(is_entered)
    }

    /// The counts of a function; all 0 if it was not executed.
    pub fn executed(&self, function: Identity<'_>) -> Executed {
        self.functions.get(&function).copied().unwrap_or_default()
    }

    /// By how much the kernel's cost exceeds that of its functions.
    pub fn in_no_function(&self) -> i128 {
        self.kernel - self.functions.values().map(|it| it.cost).sum::<i128>()
    }

    /// The cost of user mode that is attributed to no process.
    pub fn of_no_process(&self) -> i128 {
        self.user - self.processes.values().sum::<i128>()
    }

    fn add(&mut self, profile: &'a Profile, cost: &str) {
        // If the cost is entries itself, there is no cost per entry.
        let entries = profile.costs.number(ENTRIES).filter(|_| cost != ENTRIES);
        let is_main = cost == profile.main_cost();
        let cost = profile.costs.number(cost);
        // Another cost may be counted by function and process alone.
        let is_all = |place: &Place| matches!(place, Place::All(_));
        let has_totals =
            is_main || profile.costs.rows().any(|it| is_all(it.place) && it.sum(cost) > 0);
        for row in profile.costs.rows() {
            let sum = row.sum(cost).cast_signed();
            match row.place {
                Place::Function { .. } if !has_totals => self.kernel += sum,
                Place::Process { .. } if !has_totals => self.user += sum,
                _ => {}
            }
            match row.place {
                Place::All(Privilege::User) => self.user += sum,
                Place::All(Privilege::Kernel) => self.kernel += sum,
                Place::All(Privilege::Firmware) => self.firmware += sum,
                Place::Function { name, module } => {
                    let symbol = Symbol::of(name);
                    let identity = Identity { name: symbol.name, module };
                    let executed = self.functions.entry(identity).or_default();
                    executed.cost += sum;
                    let entries = row.sum(entries).cast_signed();
                    match symbol.piece {
                        Piece::Whole => executed.entries += entries,
                        Piece::Part => executed.part_entries += entries,
                        Piece::Cold => {}
                    }
                }
                Place::Process { name, .. } => *self.processes.entry(name).or_default() += sum,
                Place::Memory(..)
                | Place::Path(_)
                | Place::Instruction { .. }
                | Place::Field { .. } => {}
            }
        }
    }
}
