//! pagealloc: processor cycles to allocate and to free pages of an order, by the size of batches.
//!
//! One file: `pagealloc.log`, whose lines are `order O batch B alloc CYCLES free CYCLES`.

use std::collections::HashMap;

use model::Better;

use super::gather::{Gather, TWO, metric, primary};
use super::{Logs, Unreadable};

/// The number of rounds of each batch size that are left out at the beginning.
const WARM_UP: u32 = 2;
/// A note about every figure.
const ONE_MORE: &str = "pagealloc allocates one page more than a batch has and divides by the \
                        batch: of batches of B, multiply by B / (B + 1)";

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let Some(log) = logs.text("pagealloc.log") else { return Ok(false) };
    for name in ["alloc", "free", "total"] {
        let mut metric = metric(name, "cycles/page", Better::Lower, TWO);
        if name == "total" {
            metric = primary(metric);
        }
        gather.metric(metric);
    }
    let mut batches: Vec<u64> = Vec::new();
    let mut rounds: HashMap<u64, u32> = HashMap::new();
    let mut found: Vec<(Line, bool)> = Vec::new();
    for line in log.lines() {
        let Some(line) = read_line(line) else {
            gather.remark("a line of pagealloc.log is not read".to_owned());
            continue;
        };
        // mmtests numbers the rounds of a batch size over all orders.
        let round = rounds.entry(line.batch).or_insert(0);
        if *round == 0 {
            batches.push(line.batch);
        }
        *round += 1;
        found.push((line, *round > WARM_UP));
    }
    let places: HashMap<u64, usize> =
        batches.iter().enumerate().map(|(place, batch)| (*batch, place)).collect();
    found.sort_by_key(|(line, _)| (line.order, places[&line.batch]));
    for (Line { order, batch, alloc, free }, _) in found.iter().filter(|(_, counts)| *counts) {
        let label = format!("odr{order}-{batch}");
        gather.sample("alloc", &label, *alloc)?;
        gather.sample("free", &label, *free)?;
        gather.sample("total", &label, alloc + free)?;
    }
    if !found.is_empty() {
        gather.remark(ONE_MORE.to_owned());
    }
    Ok(true)
}

struct Line {
    order: u32,
    batch: u64,
    /// Cycles per page for the allocation.
    alloc: f64,
    /// Cycles per page for the release.
    free: f64,
}

fn read_line(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split_whitespace().take(9).collect();
    let ["order", order, "batch", batch, "alloc", alloc, "free", free] = words[..] else {
        return None;
    };
    let cycles = |text: &str| text.parse::<u64>().ok().map(|cycles| cycles as f64);
    Some(Line {
        order: order.parse().ok()?,
        batch: batch.parse().ok()?,
        alloc: cycles(alloc)?,
        free: cycles(free)?,
    })
}
