//! What a packed profile costs: its size and the time to read it, in today's format and in the one before.
//!
//! `old.bin` is a made-up profile of 4 CPUs in format 1, as the program before format 4 packed it. Today's code reads
//! both formats, in turns. Prints medians and their ratios. `bench/README.md` has figures.

use std::error::Error;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use model::Profile;
use store::profile::{decode, decode_accesses, encode};

const OLD: &[u8] = include_bytes!("../old.bin");
/// How often each format is read.
const ROUNDS: usize = 401;

fn main() -> Result<(), Box<dyn Error>> {
    let profile = decode(OLD)?;
    let new = encode(&profile)?;
    if decode(&new)? != profile {
        return Err("both formats must give the same profile".into());
    }
    let costs = &profile.costs;
    println!("a profile of {} places and {} cells", costs.places().len(), costs.cells().len());
    println!("{:<20} {:>10} {:>10} {:>6}", "", "before", "today", "ratio");
    row("bytes", [OLD.len(), new.len()].map(|it| it as f64), 0);
    row("read, ms", times(decode, [OLD, &new])?, 3);
    row("read accesses, ms", times(decode_accesses, [OLD, &new])?, 3);
    Ok(())
}

/// The median milliseconds to read each of two packed profiles. Each is read first in half of the rounds.
fn times(read: fn(&[u8]) -> io::Result<Profile>, packed: [&[u8]; 2]) -> io::Result<[f64; 2]> {
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for place in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let begin = Instant::now();
            black_box(read(black_box(packed[place]))?);
            taken[place].push(begin.elapsed());
        }
    }
    Ok(taken.map(median))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    1e3 * times[times.len() / 2].as_secs_f64()
}

fn row(name: &str, [before, today]: [f64; 2], decimals: usize) {
    let ratio = today / before;
    println!("{name:<20} {before:>10.decimals$} {today:>10.decimals$} {ratio:>6.3}");
}
