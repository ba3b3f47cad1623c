//! Measures the error rates of exact mode. Boots variants of one kernel that differ in nothing that matters, over a
//! grid of machines, kernels and workloads, and compares each two of them. So every difference found is false. Prints
//! the rates of false differences, the stated rates, the remaining floors, and how often a real change of 1 % is
//! seen, which is the instructions of every function of one side times 1.01.
//!
//! `bench-luck FAULTLINE STORE [CELLS [FIRST]]` boots `CELLS` cells, beginning with number `FIRST`, with the program
//! `FAULTLINE`, and resumes an earlier run with the same store. `bench/README.md` has figures.

mod grid;
mod judged;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use grid::{CELLS, Cell, OWN_WORKLOADS};
use judged::{Judged, judged};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(program), Some(store)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bench-luck FAULTLINE STORE [CELLS [FIRST]]".into());
    };
    let mut number = |default| arguments.next().map_or(Ok(default), |count| count.parse());
    let (count, first) = (number(CELLS.len())?, number(0)?);
    let mut all = Judged::default();
    println!("{}", Judged::HEAD);
    for (number, cell) in CELLS.iter().enumerate().skip(first).take(count) {
        boot(cell, number, &program, Path::new(&store))?;
        let judged = judged(&*store::open(Path::new(&store))?, &cell.name())?;
        println!("{}", judged.line(&cell.name()));
        all.add(&judged);
    }
    println!("{}", all.line("all"));
    print!("{}", all.summary());
    Ok(())
}

/// Makes the missing boots of a cell. The programs of the grid's own workloads are compiled beside the store.
fn boot(cell: &Cell, number: usize, program: &str, store: &Path) -> Result<(), Box<dyn Error>> {
    let file = std::path::absolute(store.with_extension("toml"))?;
    let programs = file.parent().ok_or("the store has no directory")?;
    for name in cell.own() {
        let mut compiler = Command::new("cc");
        let source = format!("{OWN_WORKLOADS}/{name}.c");
        compiler.args(["-O2", "-static", "-o"]).arg(programs.join(name)).arg(source);
        if !compiler.status()?.success() {
            return Err(format!("{name}.c does not compile").into());
        }
    }
    fs::write(&file, cell.experiment(number, programs))?;
    let mut command = Command::new(program);
    command.arg("--store").arg(store).arg("run").arg("--quiet").arg(&file);
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{} does not run", cell.name()).into()),
    }
}
