//! The sums of one seed: what a boot executed in one phase, or in all phases.

use std::collections::BTreeMap;

use model::Profile;

use code::{Piece, Symbol};

/// A kernel function, with the pieces that the compiler made of it merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity<'a> {
    /// Its name without suffixes.
    pub name: &'a str,
    /// Its module; empty for the kernel itself.
    pub module: &'a str,
}

/// Counts of a function. Sums are i128, because a guest may claim any count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Instructions, those of its parts included.
    pub instructions: i128,
    /// Entries of the function itself.
    pub entries: i128,
    /// Entries of its parts; cold code is not a part.
    pub part_entries: i128,
}

/// Sums over the profiles of one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally<'a> {
    /// Instructions in user mode.
    pub user: i128,
    /// Instructions of the kernel.
    pub kernel: i128,
    /// Instructions of firmware.
    pub firmware: i128,
    /// Kernel instructions by function.
    pub functions: BTreeMap<Identity<'a>, Executed>,
    /// User instructions by the process's name.
    pub processes: BTreeMap<&'a str, i128>,
}

impl<'a> Tally<'a> {
    /// Adds up profiles.
    pub fn of(profiles: impl Iterator<Item = &'a Profile>) -> Self {
        let mut tally = Self::default();
        profiles.for_each(|profile| tally.add(profile));
        tally
    }

    /// In all.
    pub fn total(&self) -> i128 {
        self.user + self.kernel + self.firmware
    }

    /// What was executed of a function.
    pub fn executed(&self, function: Identity<'_>) -> Executed {
        self.functions.get(&function).copied().unwrap_or_default()
    }

    /// By how much the CPUs' kernel instructions exceed those of functions.
    pub fn in_no_function(&self) -> i128 {
        self.kernel - self.functions.values().map(|it| it.instructions).sum::<i128>()
    }

    /// User instructions attributed to no process.
    pub fn of_no_process(&self) -> i128 {
        self.user - self.processes.values().sum::<i128>()
    }

    fn add(&mut self, profile: &'a Profile) {
        for cpu in &profile.cpus {
            self.user += i128::from(cpu.user);
            self.kernel += i128::from(cpu.kernel);
            self.firmware += i128::from(cpu.firmware);
        }
        for function in &profile.functions {
            let symbol = Symbol::of(&function.name);
            let identity = Identity { name: symbol.name, module: &function.module };
            let executed = self.functions.entry(identity).or_default();
            for count in &function.counts {
                executed.instructions += i128::from(count.instructions);
                let entries = i128::from(count.entries);
                match symbol.piece {
                    Piece::Whole => executed.entries += entries,
                    Piece::Part => executed.part_entries += entries,
                    Piece::Cold => {}
                }
            }
        }
        for process in &profile.processes {
            let instructions: i128 = process.instructions.iter().copied().map(i128::from).sum();
            *self.processes.entry(&process.name).or_default() += instructions;
        }
    }
}
