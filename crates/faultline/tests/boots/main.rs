//! Runs Faultline on real kernels, as users run it.

mod arm64;
mod attempt;
mod balancing;
mod calls;
mod classes;
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
mod lines;
mod long;
mod luck;
mod mailbox;
mod misses;
mod packaged;
mod planted;
#[path = "../said/mod.rs"]
mod said;
mod sampled;
mod segments;
mod sequential;
mod skeletons;
mod source;
mod swap;
mod today;
mod tour;
mod transfers;
mod workloads;
