//! Carries out an experiment: reads its file, makes the schedule, boots, collects what the guests recorded,
//! stores it, and resumes interrupted runs. Other crates run VMs, find kernels and store boots.

mod across;
mod analysis;
mod binaries;
mod boot;
mod clock;
mod collect;
mod conclude;
mod differences;
mod disks;
mod engine;
mod exact;
pub mod file;
mod guest;
mod job;
pub mod lock;
mod look;
mod metrics;
mod out_of_tree;
mod profile;
mod replay;
mod run;
mod salvage;
pub mod schedule;
pub mod sequential;
mod series;
mod swap;
mod symbols;
mod table;
pub mod text;
pub mod userspace;
mod verify;
mod watch;
mod worker;
pub mod workloads;

pub use analysis::{Analysis, AnalysisError, Question, place_of};
pub use boot::BootError;
pub use differences::{Difference, differences};
pub use disks::{DiskError, MkfsError};
pub use guest::{Guest, Libraries, NoGuest};
pub use job::JobError;
pub use look::{Look, LookError};
pub use replay::{ReplayError, Replayed};
pub use run::{
    Ending, Lab, RunError, RunOptions, RunSummary, TooLarge, already_done, check,
    lock as lock_scratch,
};
pub use watch::{Progress, Watch};
