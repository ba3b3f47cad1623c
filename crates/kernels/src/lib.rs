//! Kernels for the machines: fetched from Debian or taken from files, kept in a cache, and prepared for
//! boot (uncompressed image, chosen modules, modules of our own, initramfs); and user space made of
//! packages, for workloads that need it. The only programs it runs are apt's, `dpkg-deb`, `depmod`, and
//! `make` with a compiler. Booting is left to the crates above.

mod aliases;
mod assemble;
mod cache;
mod checksums;
mod compressed;
mod debian;
mod error;
mod headers;
pub mod image;
pub mod initramfs;
mod input;
pub mod layout;
pub mod modules;
pub mod out_of_tree;
mod own;
mod record;
mod request;
mod tool;
mod userspace;

pub use cache::{Cache, KnownUserspace, Renewed};
pub use error::Error;
pub use own::text;
pub use request::{Files, Request};
pub use userspace::lock::settle as settle_lock;
pub use userspace::{Mkfs, Userspace, is_name as is_package_name};
