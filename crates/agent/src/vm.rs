//! What the agent sets up because it is PID 1 of a virtual machine.

pub mod device;
pub mod disks;
pub mod modules;
pub mod mounts;
pub mod root;
pub mod shell;
pub mod swap;
pub mod userspace;
