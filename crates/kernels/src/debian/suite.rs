//! Reads a suite of the Debian archive, or several together, with apt. apt gets its own root with its own
//! sources and lists, installs nothing, and uses nothing of the host except the settings in its `apt.conf.d`
//! (such as a proxy). Signatures are checked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{Architecture, LockedPackage};

use super::releases::{self, Package};
use crate::error::Doing;
use crate::tool::{APT_CACHE, APT_GET, APT_HELPER};
use crate::{Error, arch};

pub(crate) const MIRROR: &str = "http://deb.debian.org";
/// The prefix of the names of packaged sources; their series follows.
pub(super) const SOURCES: &str = "linux-source-";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The file that is written when the lists are complete. Its time stamp is their date.
const STAMP: &str = "updated";

/// The output of `apt-cache show` for a package without versions.
const NONE_FOUND: &str = "No packages found";

/// A suite such as `bookworm-security`, or several under one name.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub name: String,
    /// The architecture of its packages.
    pub arch: Architecture,
    root: PathBuf,
}

/// A file to fetch.
pub struct Download<'a> {
    /// Its address.
    pub address: String,
    /// The path to which it is fetched.
    pub place: PathBuf,
    /// Its digest, in hexadecimal digits; `None` if none is known.
    pub sha256: Option<&'a str>,
}

impl Suite {
    /// Opens the suite's apt root below `directory`; creates it if needed.
    pub fn open(directory: &Path, name: &str, arch: Architecture) -> Result<Self, Error> {
        Self::with_sources(directory, name, &source(name, arch), arch)
    }

    /// Opens several suites together. apt takes the newest packages of all.
    pub fn open_all(directory: &Path, name: &str, suites: &[&str]) -> Result<Self, Error> {
        let arch = Architecture::X86_64;
        let sources: String = suites.iter().map(|suite| source(suite, arch)).collect();
        Self::with_sources(directory, name, &sources, arch)
    }

    /// Opens suites by the text of a sources.list(5).
    pub fn with_sources(
        directory: &Path,
        name: &str,
        sources: &str,
        arch: Architecture,
    ) -> Result<Self, Error> {
        let named_well = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(named_well) {
            let hint = "use the name of a suite, such as bookworm-security or sid".into();
            return Err(Error::Request { text: name.into(), hint });
        }
        let suite = Self { name: name.into(), arch, root: directory.join(name) };
        for directory in ["lists/partial", "cache/archives/partial"] {
            let directory = suite.root.join(directory);
            fs::create_dir_all(&directory).doing("create", &directory)?;
        }
        suite.write("apt.conf", &suite.configuration()?)?;
        suite.write("sources.list", sources)?;
        suite.write("status", "")?;
        Ok(suite)
    }

    /// Fetches the lists, unless they are younger than `age`.
    pub fn update(&self, age: Duration, say: &dyn Fn(&str)) -> Result<(), Error> {
        let stamp = self.root.join(STAMP);
        let written = stamp.metadata().and_then(|stamp| stamp.modified());
        // If the clock was set back, lists have a time in the future. They are fetched again.
        if written.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|is| is < age))
        {
            return Ok(());
        }
        if !Path::new(KEYRING).exists() {
            return Err(Error::NoKeyring(KEYRING.into()));
        }
        let of = self.arch.unless_usual();
        let of = of.map(|arch| format!(" for {}", arch.name())).unwrap_or_default();
        say(&format!("Fetching the lists of {}{of}", self.name));
        APT_GET
            .run(APT_GET.command().args(["-q", "-c"]).arg(self.file("apt.conf")).arg("update"))?;
        File::create(&stamp).doing("create", &stamp)?;
        Ok(())
    }

    /// The packages of kernels in the current lists; empty without lists.
    pub fn kernel_packages(&self) -> Result<Vec<Package>, Error> {
        let names = self.apt_cache(&["pkgnames", "linux-"])?;
        let names = names.lines().map(str::trim);
        let names: Vec<&str> =
            names.filter(|name| releases::is_of_a_kernel(name, self.arch)).collect();
        self.packages(&names)
    }

    /// The series of the packaged sources in the current lists, such as `6.12`.
    pub fn source_packages(&self) -> Result<Vec<String>, Error> {
        let names = self.apt_cache(&["pkgnames", SOURCES])?;
        let series = names.lines().filter_map(|name| name.trim().strip_prefix(SOURCES));
        Ok(series
            .filter(|it| it.starts_with(|c: char| c.is_ascii_digit()))
            .map(Into::into)
            .collect())
    }

    /// All versions of these packages in the lists.
    pub fn packages(&self, names: &[&str]) -> Result<Vec<Package>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        Ok(packages(&self.apt_cache(&[&["show"], names].concat())?))
    }

    /// All versions of one package; there may be none.
    pub fn versions(&self, name: &str) -> Result<Vec<Package>, Error> {
        let names = self.apt_cache(&["pkgnames", name])?;
        if !names.lines().any(|known| known.trim() == name) {
            return Ok(Vec::new());
        }
        match self.packages(&[name]) {
            // The lists contain names that occur only as dependencies.
            Err(Error::Tool { problem, .. }) if problem == NONE_FOUND => Ok(Vec::new()),
            found => found,
        }
    }

    /// The names and versions of these packages and their dependencies, without recommended ones, as apt
    /// would install them on an empty system. If lists cannot be fetched, the previous ones are used.
    pub fn with_dependencies(&self, names: &[String]) -> Result<Vec<(String, String)>, Error> {
        let mut command = APT_GET.command();
        command.args(["-q", "-c"]).arg(self.file("apt.conf"));
        command.args(["--simulate", "--no-install-recommends", "install"]).args(names);
        Ok(installed(&APT_GET.run(&mut command)?))
    }

    /// The files and digests of packages in the archive, by `name=version`, sorted by name. `file` is the
    /// complete address.
    pub fn addresses(&self, versions: &[String]) -> Result<Vec<LockedPackage>, Error> {
        let mut command = APT_GET.command();
        command.args(["-q", "-c"]).arg(self.file("apt.conf"));
        command.args(["-o", "Acquire::ForceHash=SHA256", "--print-uris", "download"]);
        let said = APT_GET.run(command.args(versions))?;
        let mut packages: Vec<LockedPackage> = said.lines().filter_map(address).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        packages.dedup_by(|a, b| a.name == b.name);
        Ok(packages)
    }

    /// Fetches files and checks their digests. A file that is missing or differs is an error and is removed.
    pub fn fetch(&self, files: &[Download<'_>]) -> Result<(), Error> {
        let mut command = APT_HELPER.command();
        command.args(["-q", "-c"]).arg(self.file("apt.conf")).arg("download-file");
        for Download { address, place, sha256 } in files {
            let digest = sha256.map(|sha256| format!("SHA256:{sha256}"));
            command.arg(address).arg(place).args(digest);
        }
        APT_HELPER.run(&mut command)?;
        Ok(())
    }

    /// The time at which the lists were fetched, in seconds since 1970.
    pub fn updated(&self) -> Result<u64, Error> {
        let stamp = self.file(STAMP);
        let time = stamp.metadata().and_then(|stamp| stamp.modified()).doing("read", &stamp)?;
        Ok(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    /// Fetches packages into `directory`; apt checks their hashes.
    pub fn download(&self, packages: &[Package], directory: &Path) -> Result<(), Error> {
        let wanted = packages.iter().map(|package| format!("{}={}", package.name, package.version));
        let mut command = APT_GET.command();
        command.args(["-q", "-c"]).arg(self.file("apt.conf")).arg("download").args(wanted);
        APT_GET.run(command.current_dir(directory))?;
        Ok(())
    }

    fn apt_cache(&self, arguments: &[&str]) -> Result<String, Error> {
        APT_CACHE.run(APT_CACHE.command().arg("-c").arg(self.file("apt.conf")).args(arguments))
    }

    /// Settings in the format of apt.conf(5). They are read after the host's and override them.
    fn configuration(&self) -> Result<String, Error> {
        let root = match self.root.to_str() {
            Some(root) if !root.contains('"') => root,
            _ => return Err(Error::CachePath(self.root.clone())),
        };
        let cleared = [
            "APT::Update::Pre-Invoke", // the host's hooks work on the host's lists
            "APT::Update::Post-Invoke",
            "APT::Update::Post-Invoke-Success",
            "APT::Architectures",
        ];
        let own = [
            ("Dir::State", ""),
            ("Dir::State::lists", "/lists"),
            ("Dir::State::status", "/status"),
            ("Dir::Cache", "/cache"),
            ("Dir::Log", "/log"),
            ("Dir::Etc::SourceList", "/sources.list"),
        ];
        let set = [
            ("Dir::Cache::pkgcache", "pkgcache.bin"),
            ("Dir::Cache::srcpkgcache", ""),
            ("Dir::Etc::SourceParts", "/dev/null"),
            ("Dir::Etc::Preferences", "/dev/null"),
            ("Dir::Etc::PreferencesParts", "/dev/null"),
            ("APT::Architecture", arch::debian(self.arch)),
            ("APT::Default-Release", ""),
            ("APT::Sandbox::User", "root"), // the cache need not be open to the user _apt
            ("APT::Update::Error-Mode", "any"), // lists of which a part is missing are no lists
            ("APT::Get::AllowUnauthenticated", "false"),
            ("Acquire::AllowInsecureRepositories", "false"),
            ("Acquire::AllowWeakRepositories", "false"),
            ("Acquire::AllowDowngradeToInsecureRepositories", "false"),
            ("Acquire::Retries", "1"),
        ];
        let cleared = cleared.iter().map(|name| format!("#clear {name};\n"));
        let own = own.iter().map(|(name, path)| format!("{name} \"{root}{path}\";\n"));
        let set = set.iter().map(|(name, value)| format!("{name} \"{value}\";\n"));
        Ok(cleared.chain(own).chain(set).collect())
    }

    /// Sets the date of the lists to 2023, so that the next use fetches them again.
    #[cfg(test)]
    pub fn age(&self) {
        let then = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        File::open(self.file(STAMP)).unwrap().set_modified(then).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.file(name);
        fs::write(&path, text).doing("write", &path)
    }
}

/// One line of sources.list(5), for lists of packages only, because the host may have configured more
/// targets.
fn source(suite: &str, arch: Architecture) -> String {
    let archive = if suite.ends_with("-security") { "debian-security" } else { "debian" };
    let arch = arch::debian(arch);
    format!(
        "deb [arch={arch} lang=none target=Packages signed-by={KEYRING}] {MIRROR}/{archive} {suite} \
         main\n"
    )
}

/// Names and versions from the output of `apt-get --simulate install`: `Inst NAME (VERSION ...) ...`.
fn installed(text: &str) -> Vec<(String, String)> {
    let package = |line: &str| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(" (")?;
        let version = rest.split_whitespace().next()?;
        Some((name.trim().to_owned(), version.to_owned()))
    };
    text.lines().filter_map(package).collect()
}

/// A line that `apt-get --print-uris download` prints:
/// `'http://host/pool/libc6_2.36-9%2bdeb12u14_amd64.deb' libc6_2.36-9+deb12u14_amd64.deb 2759320 SHA256:ba4f...`.
fn address(line: &str) -> Option<LockedPackage> {
    let (address, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    let mut words = rest.split_whitespace();
    let (file, size, digest) = (words.next()?, words.next()?, words.next()?);
    let mut parts = file.strip_suffix(".deb")?.split('_');
    Some(LockedPackage {
        name: plain(parts.next()?)?,
        version: plain(parts.next()?)?,
        file: plain(address)?,
        size: size.parse().ok()?,
        sha256: digest.strip_prefix("SHA256:")?.to_owned(),
    })
}

/// Decodes the escapes of an address (RFC 3986, 2.1).
fn plain(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut plain = parts.next()?.as_bytes().to_vec();
    for part in parts {
        plain.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        plain.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(plain).ok()
}

/// Parses the paragraphs that `apt-cache show` prints (deb822(5)).
fn packages(text: &str) -> Vec<Package> {
    let field = |paragraph: &str, name: &str| {
        let value = paragraph.lines().find_map(|line| line.strip_prefix(name));
        value.map(|value| value.trim().to_owned())
    };
    let package = |paragraph: &str| {
        Some(Package {
            name: field(paragraph, "Package:")?,
            version: field(paragraph, "Version:")?,
            size: field(paragraph, "Size:")?.parse().ok()?,
            depends: field(paragraph, "Depends:").map(|text| names(&text)).unwrap_or_default(),
        })
    };
    text.split("\n\n").filter_map(package).collect()
}

/// The names in a field `Depends`; of alternatives, the first: `a (>= 1), b | c, d:any`.
fn names(depends: &str) -> Vec<String> {
    let name = |wanted: &str| {
        let end = wanted.find([' ', '|', '(', ':']).unwrap_or(wanted.len());
        wanted[..end].to_owned()
    };
    depends.split(',').map(|wanted| name(wanted.trim())).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_their_paragraphs() {
        let text = "Package: one\nInstalled-Size: 15\nVersion: 1.0-1\nDescription: x\n Size: 9\n\
                    Size: 1920\nDepends: a (>= 1:1.2), b-c | d, e:any,f\n\nPackage: damaged\n\n\
                    Package: two\nVersion: 2\nSize: 7\n\n";
        let package = |name: &str, version: &str, size, depends: &[&str]| Package {
            name: name.into(),
            version: version.into(),
            size,
            depends: depends.iter().map(|&name| name.into()).collect(),
        };
        let expected =
            [package("one", "1.0-1", 1920, &["a", "b-c", "e", "f"]), package("two", "2", 7, &[])];
        assert_eq!(packages(text), expected);
    }

    #[test]
    fn addresses_are_read_as_apt_prints_them() {
        let line = "'http://deb.debian.org/debian/pool/main/liba/libaio/libaio1_0.3.113-4%2bb1_amd64.deb' \
                    libaio1_1%3a0.3.113-4+b1_amd64.deb 13404 SHA256:00ff";
        let expected = LockedPackage {
            name: "libaio1".into(),
            version: "1:0.3.113-4+b1".into(),
            file:
                "http://deb.debian.org/debian/pool/main/liba/libaio/libaio1_0.3.113-4+b1_amd64.deb"
                    .into(),
            size: 13404,
            sha256: "00ff".into(),
        };
        assert_eq!(address(line), Some(expected));
        for other in ["", "Reading lists...", "'a", "'a' b 1 SHA256:0", "'a' b_1.deb x SHA256:0"] {
            assert_eq!(address(other), None, "{other}");
        }
        for damaged in ["%", "a%2", "%zz", "%ff", "%\u{e9}"] {
            assert_eq!(plain(damaged), None, "{damaged}");
        }
    }

    fn open(directory: &Path, name: &str) -> Result<Suite, Error> {
        Suite::open(directory, name, Architecture::X86_64)
    }

    #[test]
    fn a_suite_has_the_packages_of_one_architecture() {
        let directory = tempfile::tempdir().unwrap();
        Suite::open(directory.path(), "sid", Architecture::Arm64).unwrap();
        let text = |file| fs::read_to_string(directory.path().join("sid").join(file)).unwrap();
        assert!(text("apt.conf").contains("APT::Architecture \"arm64\";"));
        assert!(text("sources.list").starts_with("deb [arch=arm64 "));
    }

    #[test]
    fn a_suite_is_only_in_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", "sid main", "Sid"] {
            assert!(open(directory.path(), name).is_err(), "{name}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let suite = open(directory.path(), "sid").unwrap();
        let root = directory.path().join("sid");
        let configuration = fs::read_to_string(root.join("apt.conf")).unwrap();
        let lists = format!("Dir::State::lists \"{}/lists\";", root.display());
        assert!(configuration.contains(&lists), "{configuration}");
        assert_eq!(suite.kernel_packages().unwrap(), []);
    }

    #[test]
    fn a_path_that_apt_cannot_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = open(&directory.path().join("a\"b"), "sid").unwrap_err();
        assert!(matches!(error, Error::CachePath(_)), "{error}");
    }
}
