//! Runs Faultline on real kernels, as users run it.

mod attempt;
mod balancing;
mod calls;
mod common;
mod counts;
mod culprit;
mod disks;
mod entries;
mod events;
mod exact;
mod faults;
mod forged;
mod history;
mod host;
mod leftovers;
mod long;
mod luck;
mod packaged;
mod planted;
mod sampled;
mod sequential;
mod skeletons;
mod source;
mod swap;
mod today;
mod tour;
mod workloads;

/// Whether tests that take minutes are wanted; prints a line if not.
fn long_only() -> bool {
    let wanted = std::env::var_os("FAULTLINE_LONG").is_some();
    if !wanted {
        println!("skipped: takes minutes; set FAULTLINE_LONG, as `make check-long` does");
    }
    wanted
}
