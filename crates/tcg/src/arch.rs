//! Code that depends on the guest's architecture.

mod architecture;
mod arm64;
mod tables;
mod x86_64;

pub use architecture::{Architecture, Examined, Page, Region, Special, Walk};
pub use arm64::Arm64;
pub use tables::InterruptTables;
pub use x86_64::X86_64;
