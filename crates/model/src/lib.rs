//! The domain types: kernels, variants, topologies, workloads, metrics, samples and series. They are plain data with
//! serde. Crates of higher layers read, run and judge.

#[macro_use]
mod named;

mod architecture;
mod boot;
mod build;
mod class;
mod costs;
mod directory;
mod disk;
mod event;
mod experiment;
mod found;
mod kept;
mod memory_model;
mod note;
mod parameter;
mod patched;
mod pinned;
mod profile;
mod provenance;
mod quantity;
mod reading;
mod swap;
mod sweep;
mod topology;
mod userspace;
mod visible;
mod workload;

pub use architecture::Architecture;
pub use boot::{
    Boot, BootFacts, Chunk, Column, HostLoad, ONCE, Outcome, Problem, ProblemKind, Sample,
    TOOL_SOURCES, Usage, WORKLOAD_SOURCE,
};
pub use build::{Build, Compiler, TaskLayout};
pub use class::Class;
pub use costs::{
    ALL_CPUS, Cell, Cost, CostRow, CostTable, ENTRIES, INSTRUCTIONS, LOADS, Name, Place, Privilege,
    SAMPLES, STORES, Target, USER, exact_cost, is_by_path, program_frames,
};
pub use directory::base_directory;
pub use disk::{DISK_UNIT, Disk, DiskKind, FileSystem, Format, MAX_DISKS};
pub use event::{MAX_EVENT_NAME, MAX_EVENTS, PerfEvent};
pub use experiment::{
    Accel, CountedBy, Experiment, Imported, Kernel, KernelSource, Limits, Machine, MachineKind,
    Mode, RUNNING_KERNEL, Sampler, Sequential, Setting, Source, Variant, WorkloadUse,
};
pub use found::{STATES, StatesFound};
pub use kept::{BootId, Kept, NoBootId};
pub use memory_model::{CacheSize, MemoryModel, PageSize, TlbSize};
pub use note::{Note, NoteKind};
pub use parameter::{Kind, Parameter};
pub use patched::{MailAddress, PatchMail, Patched, is_address, is_message_id};
pub use pinned::Pinned;
pub use profile::{
    ACCESSES_COLUMNS, ACCESSES_SOURCE, EQUAL_ENTRIES, FREQUENCY, MAX_FREQUENCY, NO_PHASE,
    OUTSIDE_PHASES, Profile, Profiling, RESERVED_METRICS, Sampled, Slice, Totals, is_reserved,
    is_reserved_phase,
};
pub use provenance::{Execution, Host, Programs, Provenance};
pub use quantity::{Bytes, Millis, ParseQuantityError, Share, count, date, grouped};
pub use reading::{PatchStep, Reading, VariantReading, WorkloadReading};
pub use swap::Swap;
pub use sweep::{Point, PointChange};
pub use topology::{
    CpuSet, LOCAL_DISTANCE, MAX_CPUS, MAX_NODES, MEMORY_BLOCK, Node, Topology, TopologyError,
    TopologyKey,
};
pub use userspace::{LockedPackage, UserspaceLock};
pub use visible::{csv_text, visible};
pub use workload::{Better, Manifest, Mean, Metric, Rows, matches};
