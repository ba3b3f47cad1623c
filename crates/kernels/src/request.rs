//! Parses requests for kernels: a kernel of Debian or of Ubuntu's mainline builds by version, packages, the directory of
//! a build, the host's, or files.

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::Architecture;

use crate::debian::NEWEST_KERNEL;
use crate::mainline::{self, MAINLINE};
use crate::source::FOR_ARM64;
use crate::unpack::is_package;
use crate::{Error, Source, debian};

/// Prefix of the version in the name of a Debian kernel.
pub(crate) const DEBIAN: &str = "debian:";
/// The name of the kernel that this host runs.
const HOST: &str = "host";
/// Prefix of the path of a directory in which a kernel was built.
const DIRECTORY: &str = "dir:";

/// The kernel to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A kernel of the Debian archive.
    Debian {
        /// A series (`6.1`), an upstream version (`6.1.176`), a package version (`6.1.176-1`), a
        /// release (`6.1.0-56-cloud-amd64`), or `newest`. `-16k` after any but a release means pages of 16 KiB.
        version: String,
        /// The architecture of its packages.
        arch: Architecture,
        /// The only suite to search, such as `bookworm-security`.
        suite: Option<String>,
    },
    /// A build of Ubuntu's archive of mainline kernels.
    Mainline {
        /// Its version, such as `6.13-rc2`.
        version: String,
        /// The address of the archive.
        archive: String,
    },
    /// Package files of one kernel.
    Packages {
        /// The files.
        files: Vec<PathBuf>,
        /// Its name in the cache; by default its release.
        name: Option<String>,
    },
    /// The directory in which a kernel was built.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Its name in the cache; by default its release and a digest of its files.
        name: Option<String>,
    },
    /// The kernel that a host runs.
    Host {
        /// The host's root directory: `/`.
        root: PathBuf,
        /// Its name in the cache; by default its release and a digest of its files.
        name: Option<String>,
    },
    /// The user's own kernel.
    Files(Files),
}

/// The files of a user's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The `bzImage`, or a `vmlinux` with PVH entry; for arm64 the `Image` or `Image.gz`.
    pub image: PathBuf,
    /// Its `lib/modules/RELEASE`, which contains `kernel/`.
    pub modules: Option<PathBuf>,
    /// Its build tree or headers package, with which modules are built.
    pub headers: Option<PathBuf>,
    /// Its `.config`; by default the one of the headers.
    pub config: Option<PathBuf>,
    /// Its `System.map`.
    pub map: Option<PathBuf>,
    /// Its name in the cache; by default its release.
    pub name: Option<String>,
}

impl FromStr for Request {
    type Err = Error;

    /// Parses `debian:6.1`, `6.1`, `newest`, these with `-16k` or `@arm64` after them, `mainline:6.13-rc2`, a package or several
    /// (`A.deb+B.deb`), `dir:PATH`, or `host`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let hint = "use debian:6.1, debian:newest, a release such as 6.1.0-56-cloud-amd64, \
                    git:COMMIT of a tree, dir:PATH of a build, host, or the path of a package (`faultline kernel add --help` \
                    lists all forms)";
        let hint = match Source::is(text) {
            true => {
                "it is a source, which `faultline kernel add` builds; use the name that it prints"
            }
            false if is_near_newest(text) => "did you mean newest?",
            false => hint,
        };
        let wrong = || Error::Request { text: text.into(), hint: hint.into() };
        if let Some(files) = packages(text) {
            return Ok(Self::Packages { files, name: None });
        }
        if text == HOST {
            return Ok(Self::Host { root: "/".into(), name: None });
        }
        if text.starts_with(MAINLINE) {
            let hint = "name the version of a tag, such as mainline:6.13-rc2 or mainline:6.12.3";
            let wrong = || Error::Request { text: text.into(), hint: hint.into() };
            let version = mainline::version(text).ok_or_else(wrong)?.into();
            return Ok(Self::Mainline { version, archive: mainline::ARCHIVE.into() });
        }
        if let Some(path) = text.strip_prefix(DIRECTORY) {
            return match path.is_empty() {
                true => Err(wrong()),
                false => Ok(Self::Directory { path: from_home(path), name: None }),
            };
        }
        let (version, arch) = debian_version(text);
        // Letters follow a sign only: 6.13~rc7-1~exp1, 6.1.0-56-cloud-amd64.
        let numbers = version.split(['-', '+', '~']).next().unwrap_or_default();
        let is_number = |it: &str| it.parse::<u32>().is_ok_and(|number| number.to_string() == it);
        let are_numbers = numbers.split('.').all(is_number);
        let is_whole = version.ends_with(|it: char| it.is_ascii_alphanumeric());
        if !(debian::without_flavour(version) == NEWEST_KERNEL || are_numbers && is_whole)
            || !version.chars().all(is_plain)
        {
            return Err(wrong());
        }
        Ok(Self::Debian { version: version.into(), arch, suite: None })
    }
}

/// The version in the name of a Debian kernel, and the architecture: the one that the name ends with, or that of the
/// release.
pub(crate) fn debian_version(name: &str) -> (&str, Architecture) {
    let version = name.strip_prefix(DEBIAN).unwrap_or(name);
    match version.strip_suffix(FOR_ARM64) {
        Some(version) => (version, Architecture::Arm64),
        None => (version, debian::architecture(version).unwrap_or_default()),
    }
}

/// The alias of a Debian kernel. Names have no colon, so aliases and names are distinct.
pub(crate) fn alias(version: &str, arch: Architecture) -> String {
    format!("{DEBIAN}{version}{}", if arch == Architecture::Arm64 { FOR_ARM64 } else { "" })
}

/// The name that means the same kernel without the word for its architecture.
pub fn without_architecture(kernel: &str) -> &str {
    let is_of_both = matches!(kernel.parse(), Ok(Request::Debian { .. })) || Source::is(kernel);
    kernel.strip_suffix(FOR_ARM64).filter(|_| is_of_both).unwrap_or(kernel)
}

/// Whether a name is a mistyped `newest`.
fn is_near_newest(text: &str) -> bool {
    let name = text.strip_prefix(DEBIAN).unwrap_or(text);
    strsim::normalized_damerau_levenshtein(name, NEWEST_KERNEL) >= 0.7
}

impl Request {
    /// The architecture of the kernel that a name means. A name that does not tell means x86-64.
    pub fn architecture(kernel: &str) -> Architecture {
        match kernel.parse() {
            Ok(Self::Debian { arch, .. }) => arch,
            _ if Source::is(kernel) && kernel.ends_with(FOR_ARM64) => Architecture::Arm64,
            _ => Architecture::X86_64,
        }
    }

    /// The name by which a kernel is asked for on a machine of an architecture. Only the files of the user's kernels tell
    /// for which one they are. `None` if the name means a kernel for another architecture.
    pub fn for_architecture(kernel: &str, arch: Architecture) -> Option<String> {
        let own = Self::architecture(kernel);
        let named = || Some(kernel.to_owned());
        match (kernel.parse(), arch) {
            _ if own == arch => named(),
            (Ok(Self::Debian { version, .. }), Architecture::Arm64) => {
                let is_any = debian::architecture(&version).is_none();
                is_any.then(|| format!("{kernel}{FOR_ARM64}"))
            }
            (Err(_), Architecture::Arm64) if Source::is(kernel) => {
                Some(format!("{kernel}{FOR_ARM64}"))
            }
            (Ok(Self::Directory { .. } | Self::Packages { .. }) | Err(_), Architecture::Arm64) => {
                named()
            }
            _ => None,
        }
    }

    /// Whether a kernel's name says where the user has it.
    pub fn is_place(kernel: &str) -> bool {
        !matches!(kernel.parse(), Ok(Self::Debian { .. } | Self::Mainline { .. }) | Err(_))
    }

    /// Whether a kernel's name lists packages.
    pub fn is_packages(kernel: &str) -> bool {
        packages(kernel).is_some()
    }

    /// The same kernel with a name of the user's in the cache; `None` for a kernel of an archive, which has a name.
    pub fn named(self, own: String) -> Option<Self> {
        match self {
            Self::Directory { path, .. } => Some(Self::Directory { path, name: Some(own) }),
            Self::Host { root, .. } => Some(Self::Host { root, name: Some(own) }),
            Self::Files(files) => Some(Self::Files(Files { name: Some(own), ..files })),
            Self::Packages { files, .. } => Some(Self::Packages { files, name: Some(own) }),
            Self::Debian { .. } | Self::Mainline { .. } => None,
        }
    }
}

/// The name of a kernel or a source, with each path in it changed by `change`.
pub fn with_paths(kernel: &str, change: &dyn Fn(&Path) -> PathBuf) -> String {
    if let Ok(Source::Path(path)) = kernel.parse() {
        let arch = &kernel[without_architecture(kernel).len()..];
        return format!("src:{}{arch}", change(&path).display());
    }
    match kernel.parse() {
        Ok(Request::Packages { files, .. }) => {
            let files = files.iter().map(|path| change(path).display().to_string());
            files.collect::<Vec<_>>().join("+")
        }
        Ok(Request::Directory { path, .. }) => format!("{DIRECTORY}{}", change(&path).display()),
        _ => kernel.to_owned(),
    }
}

/// The package files that a name lists; `None` if it lists none. A `+` can be in the name of a file; it separates two
/// files only after the ending of a package.
fn packages(text: &str) -> Option<Vec<PathBuf>> {
    let (mut files, mut rest) = (Vec::new(), text);
    loop {
        let separators = rest.match_indices('+').map(|(at, _)| at);
        let end = separators.into_iter().find(|at| is_package(&rest[..*at]));
        let (file, others) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_package(file) {
            return None;
        }
        files.push(from_home(file));
        match others.strip_prefix('+') {
            Some(others) => rest = others,
            None => return Some(files),
        }
    }
}

/// A path in which `~/` at the start is replaced by the home directory.
fn from_home(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), env::var_os("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(below),
        _ => text.into(),
    }
}

/// Whether `c` is allowed in a version or a kernel's name.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".+~-_".contains(c)
}

/// Checks that `name` is valid for a kernel and for its directory in the cache.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && name.len() <= 100 && name.chars().all(is_plain) {
        return Ok(());
    }
    let hint =
        "a name has up to 100 letters, digits and `.+~-_`, and begins with a letter or digit";
    Err(Error::Request { text: name.escape_default().to_string(), hint: hint.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        for text in [
            "6.1", "6.13~rc7-1~exp1", "6.1.176-1", "6.1.0-56-cloud-amd64", "newest",
            "7.2.13-1~bpo13+1",
        ] {
            let arch = Architecture::X86_64;
            let wanted = Request::Debian { version: text.into(), arch, suite: None };
            assert_eq!(text.parse::<Request>().unwrap(), wanted);
            assert_eq!(format!("debian:{text}").parse::<Request>().unwrap(), wanted);
        }
        let files = |text: &str| match text.parse().unwrap() {
            Request::Packages { files, name: None } => files,
            other => panic!("{other:?}"),
        };
        assert_eq!(files("a/b.deb"), [PathBuf::from("a/b.deb")]);
        let both = files("linux-image-6.1+deb12_amd64.deb+/x/linux-modules.deb");
        assert_eq!(
            both,
            ["linux-image-6.1+deb12_amd64.deb", "/x/linux-modules.deb"].map(PathBuf::from)
        );
        assert_eq!(files("b/linux-6.12-x86.tar.zst"), [PathBuf::from("b/linux-6.12-x86.tar.zst")]);
        for text in ["a.deb+", "+a.deb+b", "a.deb+b", ".deb", "a.gz"] {
            assert!(text.parse::<Request>().is_err(), "{text}");
        }
        let directory = Request::Directory { path: "../linux a".into(), name: None };
        assert_eq!("dir:../linux a".parse::<Request>().unwrap(), directory);
        for text in [
            "", "debian:", "dir:", "mine", "../6.1", "debian:6.1/..", "6.1 6.2", "debian:6.l2",
            "06.12", "6.12-", "debian:6.12+", "6.",
        ] {
            assert!(text.parse::<Request>().is_err(), "{text}");
        }
        let meant = |text: &str| {
            text.parse::<Request>().unwrap_err().to_string().contains("did you mean newest?")
        };
        assert!(meant("newst") && meant("debian:newset") && !meant("mine"));
    }

    #[test]
    fn a_name_of_debian_can_have_an_architecture() {
        let request = |text: &str| text.parse::<Request>().unwrap();
        let arm64 = |version: &str| {
            let (version, arch) = (version.to_owned(), Architecture::Arm64);
            Request::Debian { version, arch, suite: None }
        };
        assert_eq!(request("6.12@arm64"), arm64("6.12"));
        assert_eq!(request("debian:newest@arm64"), arm64("newest"));
        assert_eq!(request("6.1.0-56-cloud-arm64"), arm64("6.1.0-56-cloud-arm64"));
        assert_eq!(request("6.12-16k"), arm64("6.12-16k"));
        assert_eq!(request("debian:newest-16k@arm64"), arm64("newest-16k"));
        for text in [
            "-16k", "mine-16k", "@arm64", "mine@arm64", "6.12@", "6.12@riscv64",
            "mainline:6.13@arm64",
        ] {
            assert!(text.parse::<Request>().is_err(), "{text}");
        }
        for (kernel, name) in [
            ("6.12", Some("6.12@arm64")),
            ("debian:6.12@arm64", Some("debian:6.12@arm64")),
            ("6.1.0-56-cloud-arm64", Some("6.1.0-56-cloud-arm64")),
            ("6.12-16k", Some("6.12-16k")),
            ("6.1.0-56-cloud-amd64", None),
            ("git:v6.12", Some("git:v6.12@arm64")),
            ("src:/x@arm64", Some("src:/x@arm64")),
            ("host", None),
            ("mainline:6.13", None),
            ("dir:/x", Some("dir:/x")),
            ("mine", Some("mine")),
        ] {
            let arm64 = Request::for_architecture(kernel, Architecture::Arm64);
            assert_eq!(arm64.as_deref(), name, "{kernel}");
            let is_arm64 = Request::architecture(kernel) == Architecture::Arm64;
            let x86 = Request::for_architecture(kernel, Architecture::X86_64);
            assert_eq!(x86.as_deref(), (!is_arm64).then_some(kernel), "{kernel}");
        }
        assert_eq!(Request::architecture("dir:x@arm64"), Architecture::X86_64);
        assert_eq!(without_architecture("debian:6.1@arm64"), "debian:6.1");
        assert_eq!(without_architecture("dir:x@arm64"), "dir:x@arm64");
        assert_eq!(without_architecture("git:x@arm64"), "git:x");
        assert_eq!(alias("6.1", Architecture::Arm64), "debian:6.1@arm64");
    }

    #[test]
    fn paths_in_names_of_kernels_are_changed() {
        let changed = |kernel: &str| with_paths(kernel, &|path| Path::new("/x").join(path));
        for (kernel, expected) in [
            ("dir:linux", "dir:/x/linux"),
            ("dir:/linux", "dir:/linux"),
            ("src:a b.tar.xz", "src:/x/a b.tar.xz"),
            ("src:a@arm64", "src:/x/a@arm64"),
            ("a.deb", "/x/a.deb"),
            ("a.deb+/b.deb", "/x/a.deb+/b.deb"),
            ("debian:6.1", "debian:6.1"),
            ("git:v6.1", "git:v6.1"),
            ("mine", "mine"),
        ] {
            assert_eq!(changed(kernel), expected);
        }
        for place in ["dir:x", "x.deb", "host"] {
            assert!(Request::is_place(place), "{place}");
        }
        assert!(!Request::is_place("6.12") && !Request::is_place("mine"));
    }

    #[test]
    fn invalid_names_are_errors() {
        assert!(check_name("6.12.117+deb12-cloud-amd64").is_ok());
        for name in ["", ".", "..", ".x", "-x", "a/b", "a\0", "debian:6.1", &"x".repeat(101)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
