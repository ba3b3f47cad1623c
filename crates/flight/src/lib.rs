//! Data formats between host and guest: the job that is put in before the boot, the frames of the flight
//! recorder, and the lines that a workload writes. Formats only: mapping memory, reading files and running
//! programs are left to the agent and to the host.

pub mod difference;
pub mod event;
pub mod frame;
pub mod job;
pub mod log;
pub mod patch;
pub mod profile;
pub mod protocol;

pub use event::Event;
pub use job::Job;
