//! Errors of kernels and user space.

use std::io;
use std::path::{Path, PathBuf};

use crate::modules;

/// Why a kernel is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The location of the cache is unknown.
    #[error("there is no directory for the cache: set XDG_CACHE_HOME or HOME to an absolute path")]
    NoCache,
    /// apt's configuration cannot express the path of the cache.
    #[error(
        "{}: apt cannot use a directory whose path contains `\"` or is not UTF-8: move the cache with \
         XDG_CACHE_HOME", .0.display()
    )]
    CachePath(PathBuf),
    /// A module can be built neither in the cache nor in the directory for temporary files.
    #[error(
        "no kernel module can be built in {} or in {}: the kernel's build allows no spaces, commas or \
         other special characters in a path; move the cache with XDG_CACHE_HOME, or set TMPDIR",
        cache.display(), temporary.display()
    )]
    BuildPath {
        /// The directory in the cache.
        cache: PathBuf,
        /// The directory for temporary files.
        temporary: PathBuf,
    },
    /// Ubuntu's archive of mainline kernels does not have a build.
    #[error("mainline:{version}: {address} has no build of it: {problem}")]
    NoBuild {
        /// The version.
        version: String,
        /// The address at which it was looked for.
        address: String,
        /// Why there is none.
        problem: String,
    },
    /// A file or directory cannot be used.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The operation that failed, as a verb: "cannot `doing`".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason in words, or the system's error.
        source: io::Error,
    },
    /// Another process holds a lock, and this one does not wait, or waited for hours.
    #[error("{0}; run the command again when that has ended")]
    Locked(lock::Held),
    /// A record of the cache is invalid.
    #[error("{}: {problem} (remove {})", path.display(), to_remove(path))]
    Record {
        /// The record.
        path: PathBuf,
        /// The problem in words.
        problem: String,
    },
    /// A file of a kernel in the cache is damaged.
    #[error("{}: {problem}; remove the kernel (`faultline kernel remove {name}`) and add it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem in words.
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
    /// A source of the user's cannot be used.
    #[error("{}: {problem}", path.display())]
    Tree {
        /// The repository, directory or archive.
        path: PathBuf,
        /// The problem in words.
        problem: String,
    },
    /// A patch file of the user's cannot be read.
    #[error("{}: {problem}", path.display())]
    Patch {
        /// The file.
        path: PathBuf,
        /// The problem in words.
        problem: String,
    },
    /// The requested configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The host lacks programs or headers that build kernels.
    #[error("kernels cannot be built here: `apt-get install {0}` installs what is missing")]
    NoBuildTools(String),
    /// Package signatures cannot be verified.
    #[error(
        "{} is missing, so packages cannot be verified: install debian-archive-keyring",
        .0.display()
    )]
    NoKeyring(PathBuf),
    /// An invalid request for a kernel.
    #[error("`{text}` is not a kernel: {hint}")]
    Request {
        /// The request.
        text: String,
        /// The form of a valid request.
        hint: String,
    },
    /// The archive lacks the kernel.
    #[error("Debian has no kernel {wanted} {place}; available series: {known}")]
    NotInArchive {
        /// The requested version.
        wanted: String,
        /// The suites that were searched.
        place: String,
        /// The available series, separated by commas.
        known: String,
    },
    /// The archive lacks the packages, or some of their dependencies.
    #[error("Debian does not have everything for the packages {names}: {problem}")]
    Packages {
        /// The requested packages.
        names: String,
        /// apt's message.
        problem: String,
    },
    /// A word is not a valid package name.
    #[error("`{0}` is not the name of a package, which has lower-case letters, digits and + - .")]
    PackageName(String),
    /// The image of a user space cannot be made.
    #[error("the image of a user space cannot be made: {0}")]
    Image(String),
    /// An image of a user space in the cache is damaged.
    #[error(
        "{}: it has changed since it was made: its SHA-256 differs; remove it with `faultline userspace remove \
         {digest}`: the next run makes it again", path.display()
    )]
    DamagedImage {
        /// The image.
        path: PathBuf,
        /// The beginning of the recorded SHA-256.
        digest: String,
    },
    /// Packages without an image cannot be renewed.
    #[error("the cache has no image of {0}: it is made when an experiment first needs it")]
    NoImage(String),
    /// No image, or several, have a digest with this prefix.
    #[error(
        "{number} images have a digest that begins with `{digest}`: see `faultline userspace list`"
    )]
    UnknownImage {
        /// The prefix of a digest.
        digest: String,
        /// The number of images.
        number: usize,
    },
    /// The archive does not have a requested package.
    #[error("there is no package `{package}` in {suites} of Debian")]
    NoPackage {
        /// Its name.
        package: String,
        /// The suites that were searched.
        suites: String,
    },
    /// Packages of a lock are not available anywhere.
    #[error(
        "Debian's archive has dropped {packages}, and they cannot be fetched from {snapshot}: \
         {problem}; try again when it can be reached, copy the image from a host that has it, or \
         write a new lock with `faultline userspace lock`, which makes another image"
    )]
    Dropped {
        /// Names and versions, and the versions that are available.
        packages: String,
        /// The archive of dropped packages.
        snapshot: String,
        /// The reason in words, or the system's error.
        problem: String,
    },
    /// A package file differs from the lock.
    #[error("{file} differs from the lock: its SHA-256 is not {sha256}")]
    OtherFile {
        /// The address of the file.
        file: String,
        /// The SHA-256 of the file in the lock.
        sha256: String,
    },
    /// The given files contain no bootable kernel.
    #[error("{}: {problem}", path.display())]
    NoKernel {
        /// The package, image or directory.
        path: PathBuf,
        /// The problem in words.
        problem: String,
    },
    /// Another kernel has this name.
    #[error(
        "the cache already has another kernel with the name {name} ({origin}): remove it with `faultline \
         kernel remove {name}`, or give the new one another name"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The origin of the other one.
        origin: String,
    },
    /// The cache has no kernel of this name.
    #[error("the cache has no kernel {name}; {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of the existing kernels.
        known: String,
    },
    /// Modules of the kernel are missing or cannot be read.
    #[error(transparent)]
    Modules(#[from] modules::Error),
}

impl Error {
    /// Whether the cause is the request and not the host.
    pub fn is_the_users(&self) -> bool {
        matches!(
            self,
            Self::Request { .. }
                | Self::Tree { .. }
                | Self::Patch { .. }
                | Self::Config(_)
                | Self::NotInArchive { .. }
                | Self::NoBuild { .. }
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

/// The words for what to remove if a record is invalid. The aliases are a file of the cache's own directory.
fn to_remove(record: &Path) -> &'static str {
    match record.ends_with("aliases.json") {
        true => "this file, then add kernels by their versions again",
        false => "its directory, then make or add it again",
    }
}

/// Adds the failed operation and its file to an I/O error.
pub(crate) trait Doing<T> {
    /// Converts an I/O error. Messages say "cannot `doing`".
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { doing, path: path.to_owned(), source })
    }
}
