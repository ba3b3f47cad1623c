//! Prepares kernels for the machines: fetches them from Debian or takes them from files, keeps them in a cache, and
//! prepares them for boot (uncompressed image, chosen modules, our own modules, initramfs). Also makes user space
//! from packages for workloads that need it, and builds kernels from source. The only programs that it runs are
//! apt's, `dpkg-deb`, `tar`, `depmod`, `git`, and `make` with a compiler, which is confined if the host allows it. It
//! boots nothing.

mod aliases;
pub mod arch;
mod assemble;
mod built;
mod cache;
mod checksums;
mod compressed;
mod confine;
mod debian;
mod error;
mod headers;
pub mod image;
pub mod initramfs;
mod input;
mod kallsyms;
pub mod layout;
mod limits;
mod mainline;
pub mod modules;
pub mod out_of_tree;
mod own;
mod record;
mod request;
mod running;
mod source;
mod tool;
mod tracepoints;
pub mod types;
pub mod unpack;
mod userspace;

pub use assemble::digest;
pub use cache::{Cache, KnownKernel, KnownUserspace, Lined, Prune, Pruned, Renewed, Search};
pub use checksums::{Damaged, check_files};
pub use debian::is_name as is_package_name;
pub use error::Error;
pub use kallsyms::{symbols, symbols_in};
pub use own::text;
pub use request::{Files, Request, with_paths, without_architecture};
pub use source::config::EVENTS;
pub use source::history::{ChangedFile, Commit, History};
pub use source::inputs::Inputs;
pub use source::patches::STANDARD_INPUT;
pub use source::{Source, Unbuilt, name_of_patches, subjects, version};
pub use tracepoints::tracepoints;
pub use userspace::lock::settle as settle_lock;
pub use userspace::{Mkfs, Userspace};
