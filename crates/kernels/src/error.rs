//! Why a kernel cannot be had.

use std::io;
use std::path::{Path, PathBuf};

use crate::modules;

/// Why a kernel cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody says where the cache is.
    #[error("no place for the cache: set XDG_CACHE_HOME or HOME to an absolute path")]
    NoCache,
    /// The cache lies where apt's configuration cannot name it.
    #[error(
        "{}: apt cannot use a directory whose path holds `\"` or is not UTF-8: move the cache with \
         XDG_CACHE_HOME", .0.display()
    )]
    CachePath(PathBuf),
    /// A module can be built neither in the cache nor among the temporary files.
    #[error(
        "no kernel module can be built in {}, nor in {}: the kernel's build takes no blanks, commas or \
         other special letters in a path; move the cache with XDG_CACHE_HOME, or set TMPDIR",
        cache.display(), temporary.display()
    )]
    BuildPath {
        /// Where the cache wanted it.
        cache: PathBuf,
        /// Where temporary files are.
        temporary: PathBuf,
    },
    /// A file or directory cannot be used.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A record of the cache cannot be understood.
    #[error("{}: {problem} (remove its directory, and it can be made or added anew)", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
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
        /// What it said.
        problem: String,
    },
    /// Signatures of packages cannot be checked.
    #[error(
        "{} is missing, and packages are not fetched unchecked: install debian-archive-keyring",
        .0.display()
    )]
    NoKeyring(PathBuf),
    /// A request for a kernel that means nothing.
    #[error("`{text}` is not a kernel: {hint}")]
    Request {
        /// The request.
        text: String,
        /// What would be one.
        hint: String,
    },
    /// The archive does not hold the kernel.
    #[error("Debian has no kernel {wanted} {place}; there are {known}")]
    NotInArchive {
        /// The version asked for.
        wanted: String,
        /// Where it was looked for.
        place: String,
        /// The series that there are.
        known: String,
    },
    /// The archive does not hold the packages, or not all that they depend on.
    #[error("Debian has not all that is needed for the packages {names}: {problem}")]
    Packages {
        /// The packages asked for.
        names: String,
        /// What apt said.
        problem: String,
    },
    /// A word that names no package.
    #[error("`{0}` is not the name of a package: it has lower-case letters, digits and + - .")]
    PackageName(String),
    /// The image of a user space cannot be made.
    #[error("the image of a user space cannot be made: {0}")]
    Image(String),
    /// Packages that mean no image cannot be renewed.
    #[error("no image of {0} in the cache: it is made when an experiment first wants it")]
    NoImage(String),
    /// Not one image has a digest that begins so.
    #[error(
        "{number} images have a digest that begins with `{digest}`: `faultline userspace list` names them"
    )]
    UnknownImage {
        /// The beginning of a digest.
        digest: String,
        /// How many have it.
        number: usize,
    },
    /// The archive does not have a package that was asked for.
    #[error("there is no package `{package}` in {suites} of Debian")]
    NoPackage {
        /// Its name.
        package: String,
        /// Where it was looked for.
        suites: String,
    },
    /// Packages of a lock are nowhere to be had.
    #[error(
        "Debian's archive has dropped {packages}, and they cannot be had from {snapshot} either: \
         {problem}; try again when that can be reached, copy the image from a host that has it, or \
         write the lock anew with `faultline userspace lock`, which makes another image"
    )]
    Dropped {
        /// Names and versions, and what there is instead.
        packages: String,
        /// Where they were looked for in the end.
        snapshot: String,
        /// Why not there.
        problem: String,
    },
    /// A file of a package is not the one that was locked.
    #[error("{file} is another file than the lock says: its SHA-256 is not {sha256}")]
    OtherFile {
        /// Its address.
        file: String,
        /// What was locked.
        sha256: String,
    },
    /// What was given holds no bootable kernel.
    #[error("{}: {problem}", path.display())]
    NoKernel {
        /// The package, image or directory.
        path: PathBuf,
        /// What is missing.
        problem: String,
    },
    /// Another kernel has the name.
    #[error(
        "the cache holds another kernel named {name} ({origin}): remove it with `faultline kernel \
         remove {name}`, or give this one another name"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Where the other one came from.
        origin: String,
    },
    /// The cache holds no kernel of that name.
    #[error("no kernel named {name} in the cache; there {known}")]
    Unknown {
        /// The name.
        name: String,
        /// What there is instead.
        known: String,
    },
    /// What modules it has cannot be told.
    #[error(transparent)]
    Modules(#[from] modules::Error),
}

impl Error {
    /// Whether what was asked for cannot be, and the host is not at fault.
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

/// Gives an I/O error the words for what was tried with which file.
pub(crate) trait Doing<T> {
    /// Reads as "cannot `doing`".
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { doing, path: path.to_owned(), source })
    }
}
