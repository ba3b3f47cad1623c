//! The data formats between host and guest: the job, the frames of the flight recorder, and the lines that a
//! workload writes. Agent and host map memory, read files and run programs themselves.

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
