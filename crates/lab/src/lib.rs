//! Carries out an experiment: reads its file, makes the schedule, boots, collects what the guests recorded,
//! stores it, and resumes interrupted runs. Other crates run VMs, find kernels and store boots.

mod boot;
pub mod bundle;
mod culprit;
pub mod file;
mod record;
mod request;
mod results;
mod run;
pub mod schedule;
pub mod sequential;
pub mod workloads;

pub use boot::code::{CodeError, Vmlinux};
pub use boot::disks::{DiskError, MkfsError};
pub use boot::error::BootError;
pub use boot::guest::{Guest, Libraries, NoGuest};
pub use boot::inspect::{Inspection, InspectionError};
pub use boot::job::JobError;
pub use boot::provenance::counted_by;
pub use boot::userspace;
pub use culprit::cost;
pub use culprit::search::{self, Asked, Search};
pub use request::Request;
pub use results::analysis::{Analysis, AnalysisError, Question, place_of};
pub use results::coverage::coverage;
pub use results::differences::{KeyDifference, differences};
pub use results::explanation::{self, Explained};
pub use results::names::use_mmtests_names;
pub use results::sampled::SampledProfiles;
pub use run::replay::ReplayError;
pub use run::watch::{Progress, Replayed, Watch};
pub use run::{
    GivenUp, Known, Lab, RunEnding, RunError, RunOptions, RunSummary, TooLarge, check, known,
    lock as lock_scratch, remarks, usual_wall,
};
