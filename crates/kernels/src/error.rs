//! Why a kernel is not available.

use std::io;
use std::path::{Path, PathBuf};

use crate::modules;

/// Why a kernel is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The location of the cache is unknown.
    #[error("no place for the cache: set XDG_CACHE_HOME or HOME to an absolute path")]
    NoCache,
    /// apt's configuration cannot express the path of the cache.
    #[error(
        "{}: apt cannot use a directory whose path holds `\"` or is not UTF-8: move the cache with \
         XDG_CACHE_HOME", .0.display()
    )]
    CachePath(PathBuf),
    /// A module can be built neither in the cache nor in the directory for temporary files.
    #[error(
        "no kernel module can be built in {}, nor in {}: the kernel's build takes no blanks, commas or \
         other special letters in a path; move the cache with XDG_CACHE_HOME, or set TMPDIR",
        cache.display(), temporary.display()
    )]
    BuildPath {
        /// The place in the cache.
        cache: PathBuf,
        /// Where temporary files are.
        temporary: PathBuf,
    },
    /// A file or directory cannot be used.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A record of the cache is invalid.
    #[error("{}: {problem} (remove its directory, and it can be made or added anew)", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of a kernel in the cache is damaged.
    #[error("{}: {problem}; remove the kernel (`faultline kernel rm {name}`) and add it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The kernel's name.
        name: String,
    },
    /// A program is not installed.
    #[error("{tool} is not installed: {hint}")]
    NoTool {
        /// The program.
        tool: &'static str,
        /// How to get it.
        hint: &'static str,
    },
    /// A program failed.
    #[error("{tool} failed: {problem}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// Its message.
        problem: String,
    },
    /// Package signatures cannot be verified.
    #[error(
        "{} is missing, and packages are not fetched unchecked: install debian-archive-keyring",
        .0.display()
    )]
    NoKeyring(PathBuf),
    /// An invalid request for a kernel.
    #[error("`{text}` is not a kernel: {hint}")]
    Request {
        /// The request.
        text: String,
        /// What a valid one looks like.
        hint: String,
    },
    /// The archive lacks the kernel.
    #[error("Debian has no kernel {wanted} {place}; there are {known}")]
    NotInArchive {
        /// The requested version.
        wanted: String,
        /// Where it was searched.
        place: String,
        /// The available series.
        known: String,
    },
    /// The archive lacks the packages, or some of their dependencies.
    #[error("Debian has not all that is needed for the packages {names}: {problem}")]
    Packages {
        /// The requested packages.
        names: String,
        /// apt's message.
        problem: String,
    },
    /// Not a valid package name.
    #[error("`{0}` is not the name of a package: it has lower-case letters, digits and + - .")]
    PackageName(String),
    /// The image of a user space cannot be made.
    #[error("the image of a user space cannot be made: {0}")]
    Image(String),
    /// Packages without an image cannot be renewed.
    #[error("no image of {0} in the cache: it is made when an experiment first wants it")]
    NoImage(String),
    /// No image, or several, have a digest with this prefix.
    #[error(
        "{number} images have a digest that begins with `{digest}`: `faultline userspace list` names them"
    )]
    UnknownImage {
        /// The prefix of a digest.
        digest: String,
        /// How many have it.
        number: usize,
    },
    /// The archive does not have a requested package.
    #[error("there is no package `{package}` in {suites} of Debian")]
    NoPackage {
        /// Its name.
        package: String,
        /// Where it was searched.
        suites: String,
    },
    /// Packages of a lock are not available anywhere.
    #[error(
        "Debian's archive has dropped {packages}, and they cannot be had from {snapshot} either: \
         {problem}; try again when that can be reached, copy the image from a host that has it, or \
         write the lock anew with `faultline userspace lock`, which makes another image"
    )]
    Dropped {
        /// Names and versions, and what is available instead.
        packages: String,
        /// Where they were searched last.
        snapshot: String,
        /// Why they are not there.
        problem: String,
    },
    /// A package file is not the locked one.
    #[error("{file} is another file than the lock says: its SHA-256 is not {sha256}")]
    OtherFile {
        /// Its address.
        file: String,
        /// The locked digest.
        sha256: String,
    },
    /// The given files contain no bootable kernel.
    #[error("{}: {problem}", path.display())]
    NoKernel {
        /// The package, image or directory.
        path: PathBuf,
        /// What is missing.
        problem: String,
    },
    /// Another kernel has this name.
    #[error(
        "the cache holds another kernel named {name} ({origin}): remove it with `faultline kernel \
         remove {name}`, or give this one another name"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The origin of the other one.
        origin: String,
    },
    /// The cache has no kernel of this name.
    #[error("no kernel named {name} in the cache; there {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The kernels that there are.
        known: String,
    },
    /// Its modules are unknown.
    #[error(transparent)]
    Modules(#[from] modules::Error),
}

impl Error {
    /// Whether the request is at fault, not the host.
    pub fn is_the_users(&self) -> bool {
        matches!(
            self,
            Self::Request { .. }
                | Self::NotInArchive { .. }
                | Self::PackageName(_)
                | Self::NoPackage { .. }
                | Self::NoKernel { .. }
                | Self::NameTaken { .. }
                | Self::Unknown { .. }
                | Self::NoImage(_)
                | Self::UnknownImage { .. }
        )
    }
}

/// Adds to an I/O error what was done with which file.
pub(crate) trait Doing<T> {
    /// Reads as "cannot `doing`".
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { doing, path: path.to_owned(), source })
    }
}
