//! Measures how long `faultline try` takes to compare two kernels of the cache, and whether it keeps the cores busy.
//!
//! Runs it three times, each time with a new store. Prints medians: the time to the first answer, and to the last one;
//! the CPU time of all processes; the ratio of this to what the cores could have given. `bench/README.md` has figures.
//!
//! `bench-answer FAULTLINE [KERNELS]`: the program, and by default `6.12,newest`.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Maps, touches, protects and unmaps memory.
const PROGRAM: &str = "\
#include <sys/mman.h>
int main(void) {
    for (int round = 0; round < 100; round++) {
        char *area = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int at = 0; at < 1 << 20; at += 4096) area[at] = 1;
        mprotect(area, 1 << 20, PROT_READ);
        munmap(area, 1 << 20);
    }
}
";
/// The beginning of the first answer.
const FIRST: &str = "First answer";
const RUNS: usize = 3;

/// Times in seconds.
struct Answer {
    first: f64,
    last: f64,
    cpu: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("usage: bench-answer FAULTLINE [KERNELS]")?;
    let program = fs::canonicalize(program)?;
    let kernels = arguments.next().unwrap_or_else(|| "6.12,newest".to_owned());
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("protect.c"), PROGRAM)?;
    let ask = |store: &str| ask(&program, &kernels, place.path(), store);
    // The first run reads the kernels' symbols, and compiles nothing that is kept.
    ask("warm-up")?;
    let answers = (0..RUNS).map(|run| ask(&run.to_string())).collect::<Result<Vec<_>, _>>()?;
    let [first, last, cpu] = [|it: &Answer| it.first, |it: &Answer| it.last, |it: &Answer| it.cpu]
        .map(|figure: fn(&Answer) -> f64| median(answers.iter().map(figure).collect()));
    let cores = available_parallelism()?.get() as f64;
    println!("try {kernels}, {cores} cores: median of {RUNS} runs");
    println!("first answer, of 3 seeds      {first:6.1} s");
    println!("last answer, of 5 seeds       {last:6.1} s");
    println!("CPU time of all processes     {cpu:6.1} s");
    println!("CPU time / (cores x time)     {:6.2}", cpu / (cores * last));
    Ok(())
}

/// Asks once, with a store of its own. Fails when the program does, or gives no first answer.
fn ask(program: &Path, kernels: &str, place: &Path, store: &str) -> Result<Answer, Box<dyn Error>> {
    let begin = Instant::now();
    let spent = cpu_of_children()?;
    let mut command = Command::new(program);
    command.current_dir(place).stdout(Stdio::piped()).env("FAULTLINE_STORE", format!("{store}.db"));
    command.args(["try", kernels, "--exact", "--quiet", "--", "./protect.c"]);
    let mut child = command.spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut first = None;
    for line in lines {
        if line?.starts_with(FIRST) {
            first = Some(begin.elapsed().as_secs_f64());
        }
    }
    if !child.wait()?.success() {
        return Err("faultline try failed".into());
    }
    Ok(Answer {
        first: first.ok_or("there was no first answer")?,
        last: begin.elapsed().as_secs_f64(),
        cpu: cpu_of_children()? - spent,
    })
}

/// The CPU time of children that have ended, in seconds.
fn cpu_of_children() -> Result<f64, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let both = usage.user_time() + usage.system_time();
    Ok(both.num_microseconds() as f64 / 1e6)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
