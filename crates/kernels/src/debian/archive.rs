//! Resolves the packages of a guest's user space to a lock with the current archive, and fetches the packages
//! of a lock, even if the archive has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{LockedPackage, UserspaceLock, count, date};

use super::suite::{Download, MIRROR, Suite};
use super::{JUST_NOW, USERSPACE, is_pin, unpack, version};
use crate::Error;
use crate::arch;
use crate::error::Doing;

/// One release, with its updates.
const SUITES: &[&str] = &["bookworm", "bookworm-updates", "bookworm-security"];
/// The archive of dropped packages. `/archive/debian/20091004T111800Z/` is the state of the archive `debian`
/// at that time, or at the last import before it (its own front page).
const SNAPSHOT: &str = "https://snapshot.debian.org";
const DAY_SECONDS: u64 = 24 * 3600;

/// An archive of packages.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub suite: Suite,
    /// The names of its suites.
    pub suites: Vec<String>,
    /// The base address of package files.
    pub mirror: String,
    /// The base address of dropped packages.
    pub snapshot: String,
}

impl Archive {
    /// Debian's archive, with apt's lists below `directory`.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            suite: Suite::open_all(directory, USERSPACE, SUITES)?,
            suites: SUITES.iter().map(|suite| (*suite).to_owned()).collect(),
            mirror: MIRROR.into(),
            snapshot: SNAPSHOT.into(),
        })
    }

    /// The lock of these packages and their dependencies in the current archive, with lists no older than
    /// `age`. If lists cannot be fetched, the previous ones are used.
    pub fn resolve(
        &self,
        names: &[String],
        age: Duration,
        say: &dyn Fn(&str),
    ) -> Result<UserspaceLock, Error> {
        self.with_lists(names, age, say, || {
            let resolved = self.suite.with_dependencies(names);
            let packages = resolved.or_else(|error| Err(self.unknown(names)?.unwrap_or(error)));
            let packages = packages?.into_iter();
            let versions = packages.map(|(name, version)| format!("{name}={version}"));
            self.lock(&versions.collect::<Vec<_>>())
        })
    }

    /// The error for the first of these names that is not a package; `None` if all are.
    fn unknown(&self, names: &[String]) -> Result<Option<Error>, Error> {
        for name in names {
            if self.suite.versions(name)?.is_empty() {
                let suites = self.suites.join(", ");
                return Ok(Some(Error::NoPackage { package: name.clone(), suites }));
            }
        }
        Ok(None)
    }

    /// The lock of only these packages, each `name=version`, with lists no older than `age`.
    pub fn lock_again(
        &self,
        versions: &[String],
        age: Duration,
        say: &dyn Fn(&str),
    ) -> Result<UserspaceLock, Error> {
        let is_version = |text: &String| {
            text.split_once('=').is_some_and(|(name, version)| is_pin(name, version))
        };
        if let Some(wrong) = versions.iter().find(|text| !is_version(text)) {
            return Err(Error::PackageName(wrong.clone()));
        }
        self.with_lists(versions, age, say, || self.lock(versions))
    }

    /// Runs `what` with lists no older than `age`. If they cannot be fetched, the previous ones are used.
    fn with_lists<T>(
        &self,
        names: &[String],
        age: Duration,
        say: &dyn Fn(&str),
        what: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let updated = match self.suite.update(age, say) {
            Err(error @ Error::Tool { .. }) => Err(error),
            other => {
                other?; // an error that affects every fetch
                Ok(())
            }
        };
        match (what(), updated) {
            // Without lists every package is unknown, so the cause is the failed fetch.
            (Err(_), Err(failure)) => Err(failure),
            (Err(Error::Tool { problem, .. }), Ok(())) => {
                Err(Error::Packages { names: names.join(", "), problem })
            }
            (done, updated) => {
                if let Err(failure) = updated {
                    let name = &self.suite.name;
                    say(&format!("The lists of {name} cannot be fetched: {failure}"));
                }
                done
            }
        }
    }

    /// The lock of only these packages, with the current lists.
    fn lock(&self, versions: &[String]) -> Result<UserspaceLock, Error> {
        let mut packages = self.suite.addresses(versions)?;
        for LockedPackage { name, file, .. } in &mut packages {
            let below = file.strip_prefix(&self.mirror).and_then(|rest| rest.strip_prefix('/'));
            let problem = || format!("{name} is at {file}, which is not below {}", self.mirror);
            *file = below
                .ok_or_else(|| Error::Packages { names: name.clone(), problem: problem() })?
                .to_owned();
        }
        Ok(UserspaceLock {
            architecture: arch::DEBIAN.into(),
            suites: self.suites.clone(),
            taken: self.suite.updated()?,
            packages,
        })
    }

    /// Fetches the packages of a lock and unpacks them into `root`, in the order of the lock.
    pub fn unpack(
        &self,
        lock: &UserspaceLock,
        root: &Path,
        say: &dyn Fn(&str),
    ) -> Result<(), Error> {
        let bytes: u64 = lock.packages.iter().map(|package| package.size).sum();
        let packages = count(lock.packages.len(), "package");
        say(&format!("Fetching {packages} ({:.1} MB)", bytes as f64 / 1e6));
        let debs = root.with_extension("debs");
        fs::create_dir_all(&debs).doing("create", &debs)?;
        self.fetch(lock, &debs, say)?;
        for package in &lock.packages {
            unpack(&place(package, &debs), root)?;
        }
        fs::remove_dir_all(&debs).doing("remove", &debs)
    }

    /// Fetches the packages of a lock into `directory`. Those that the mirror has dropped are fetched from
    /// snapshot.debian.org.
    fn fetch(
        &self,
        lock: &UserspaceLock,
        directory: &Path,
        say: &dyn Fn(&str),
    ) -> Result<(), Error> {
        let now = |package: &LockedPackage| format!("{}/{}", self.mirror, package.file);
        let all: Vec<_> = lock.packages.iter().map(|it| download(it, now(it), directory)).collect();
        if self.suite.fetch(&all).is_ok() {
            return Ok(());
        }
        let mut dropped = Vec::new();
        let missing = lock.packages.iter().filter(|it| !place(it, directory).is_file());
        for package in missing {
            if let Err(problem) = self.fetch_one(package, &now(package), directory)? {
                dropped.push((package, problem));
            }
        }
        if dropped.is_empty() {
            return Ok(());
        }
        let Some(day) = lock.day() else {
            return Err(Error::Dropped {
                packages: self.instead(dropped.iter().map(|(package, _)| *package), say),
                snapshot: self.snapshot.clone(),
                problem: "the lock has no date, so their state is unknown".into(),
            });
        };
        let names: Vec<&str> = dropped.iter().map(|(package, _)| &*package.name).collect();
        say(&format!(
            "The archive has dropped {}: fetching from {}",
            names.join(", "),
            self.snapshot
        ));
        let mut lost = Vec::new();
        for (package, _) in dropped {
            if let Err(problem) = self.fetch_past(package, day, directory) {
                lost.push((package, problem));
            }
        }
        match lost.first() {
            None => Ok(()),
            Some((_, problem)) => Err(Error::Dropped {
                packages: self.instead(lost.iter().map(|(package, _)| *package), say),
                snapshot: self.snapshot.clone(),
                problem: problem.to_string(),
            }),
        }
    }

    /// Fetches one package, or returns the reason why this address does not have it.
    fn fetch_one(
        &self,
        package: &LockedPackage,
        address: &str,
        directory: &Path,
    ) -> Result<Result<(), String>, Error> {
        match self.suite.fetch(&[download(package, address.to_owned(), directory)]) {
            Err(Error::Tool { problem, .. }) if is_nothing(&problem) => Ok(Err(problem)),
            Err(Error::Tool { problem, .. }) if problem.contains("Hash Sum mismatch") => {
                Err(Error::OtherFile { file: address.into(), sha256: package.sha256.clone() })
            }
            other => Ok(Ok(other?)),
        }
    }

    /// Fetches one package as the archive had it when the lock was made. The archive of dropped packages imports the
    /// archive some hours late, and superseded packages remain for a day or more. So the state at the end of that day
    /// is tried, then the state of the next day.
    fn fetch_past(
        &self,
        package: &LockedPackage,
        taken: u64,
        directory: &Path,
    ) -> Result<(), Error> {
        let (archive, file) = package.file.split_once('/').unwrap_or(("debian", &package.file));
        let mut problem = String::new();
        for days in [1, 2] {
            let day = date(taken.saturating_add(days * DAY_SECONDS)).replace('-', "");
            let address = format!("{}/archive/{archive}/{day}T000000Z/{file}", self.snapshot);
            match self.fetch_one(package, &address, directory)? {
                Ok(()) => return Ok(()),
                Err(why) => problem = why,
            }
        }
        Err(Error::Tool { tool: "apt-helper", problem })
    }

    /// The versions in the archive in place of dropped packages: `fio 3.33-3 (it has 3.33-4)`.
    fn instead<'a>(
        &self,
        packages: impl Iterator<Item = &'a LockedPackage>,
        say: &dyn Fn(&str),
    ) -> String {
        // This only improves an error, so it must not cause another one.
        let _ = self.suite.update(JUST_NOW, say);
        let newest = |name: &str| {
            let known = self.suite.versions(name).unwrap_or_default().into_iter();
            known.map(|package| package.version).max_by(|a, b| version::compare(a, b))
        };
        let told = packages.map(|LockedPackage { name, version, .. }| match newest(name) {
            Some(newest) => format!("{name} {version} (it has {newest})"),
            None => format!("{name} {version} (it has no other)"),
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// A package of a lock at an address of the archive.
fn download<'a>(package: &'a LockedPackage, address: String, directory: &Path) -> Download<'a> {
    Download { address, place: place(package, directory), sha256: Some(&package.sha256) }
}

/// The path to which a package is fetched.
fn place(package: &LockedPackage, directory: &Path) -> PathBuf {
    directory.join(format!("{}.deb", package.name))
}

/// Whether apt reports that an address does not exist (by HTTP or as a file), and not that it cannot be reached.
pub(crate) fn is_nothing(problem: &str) -> bool {
    ["  404  ", "  410  ", "(2: No such file or directory)"].iter().any(|it| problem.contains(it))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use model::Architecture;

    use super::super::DAY;
    use super::super::testing::{archive, sources};
    use super::*;

    const PACKAGES: [(&str, &str, &str, &str); 5] = [
        ("fio", "3.33-3", "Depends: libaio1 (>= 0.3), dash | bash\nRecommends: python3\n", "fio"),
        ("libaio1", "1:0.3.113-4+b1", "", "libaio"),
        ("dash", "0.5.12-2", "", "dash"),
        ("python3", "3.11", "", "python3"),
        ("bonnie++", "2.00a", "Depends: libnone\n", "bonnie"),
    ];

    fn resolve(archive: &Archive, name: &str) -> Result<UserspaceLock, Error> {
        archive.resolve(&[name.to_owned()], DAY, &|_| ())
    }

    /// The names of files in a directory, sorted.
    fn files(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn packages_are_fetched_with_dependencies() {
        let directory = tempfile::tempdir().unwrap();
        let archive = archive(directory.path(), &PACKAGES);
        let lock = resolve(&archive, "fio").unwrap();
        let expected = ["dash=0.5.12-2", "fio=3.33-3", "libaio1=1:0.3.113-4+b1"];
        assert_eq!(lock.versions(), expected);
        assert_eq!(lock.packages[1].file, "archive/pool/fio_3.33-3.deb");
        let again = |versions: &[String]| archive.lock_again(versions, DAY, &|_| ());
        assert_eq!(again(&lock.versions()).unwrap(), lock);
        let gone = again(&["fio=3.33-2".to_owned()]).unwrap_err().to_string();
        assert!(gone.contains("fio=3.33-2: Version '3.33-2' for 'fio' was not found"), "{gone}");
        let option = again(&["-oDir::Bin=x".to_owned()]).unwrap_err();
        assert!(matches!(option, Error::PackageName(_)), "{option}");
        let said = RefCell::new(String::new());
        let tree = directory.path().join("tree");
        archive.unpack(&lock, &tree, &|line| said.borrow_mut().push_str(line)).unwrap();
        assert_eq!(files(&tree), ["dash", "fio", "libaio"]);
        assert!(said.borrow().starts_with("Fetching 3 packages ("), "{said:?}");
        assert_eq!(files(directory.path()), ["apt", "archive", "made", "tree"]);
    }

    #[test]
    fn a_missing_package_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let archive = archive(directory.path(), &PACKAGES);
        let fails = |name: &str| resolve(&archive, name).unwrap_err().to_string();
        assert_eq!(fails("fioo"), "there is no package `fioo` in fake of Debian");
        // The lists contain this name, since another package depends on it.
        assert_eq!(fails("libnone"), "there is no package `libnone` in fake of Debian");
        let error = fails("bonnie++");
        assert!(error.contains("everything for the packages bonnie++: "), "{error}");
    }

    #[test]
    fn an_unreachable_archive_is_an_error_only_without_lists() {
        let directory = tempfile::tempdir().unwrap();
        let archive = archive(directory.path(), &PACKAGES);
        resolve(&archive, "dash").unwrap();
        fs::remove_dir_all(directory.path().join("archive")).unwrap();
        archive.suite.age();
        let said = RefCell::new(String::new());
        let say = |line: &str| said.borrow_mut().push_str(line);
        let lock = archive.resolve(&["dash".to_owned()], DAY, &say).unwrap();
        // The lock has the date of the lists that were used.
        let expected = (vec!["dash=0.5.12-2".to_owned()], 1_700_000_000);
        assert_eq!((lock.versions(), lock.taken), expected);
        assert!(said.borrow().contains("The lists of fake cannot be fetched: "), "{said:?}");
        let other = tempfile::tempdir().unwrap();
        let sources = sources(directory.path());
        let arch = Architecture::X86_64;
        let suite = Suite::with_sources(other.path(), "fake", &sources, arch).unwrap();
        let error = resolve(&Archive { suite, ..archive }, "dash").unwrap_err();
        assert!(matches!(error, Error::Tool { tool: "apt-get", .. }), "{error}");
    }

    #[test]
    fn dropped_packages_come_from_the_snapshot_or_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut lock = resolve(&archive(directory.path(), &PACKAGES), "fio").unwrap();
        let fio = path("archive/pool/fio_3.33-3.deb");
        fs::copy(&fio, path("fio.deb")).unwrap();
        let newer = [("fio", "3.33-4", "", "fio"), PACKAGES[1], PACKAGES[2]];
        let archive = archive(directory.path(), &newer);
        archive.suite.age();
        // 2023-11-14 22:13:20 UTC; the next day starts after it.
        lock.taken = 1_700_000_000;
        let tree = path("tree");
        let error = archive.unpack(&lock, &tree, &|_| ()).unwrap_err().to_string();
        let told = "Debian's archive has dropped fio 3.33-3 (it has 3.33-4), and they cannot be fetched \
                    from copy:";
        assert!(error.starts_with(told), "{error}");
        assert!(error.contains("write a new lock with `faultline userspace lock`"), "{error}");
        for day in ["20231115T000000Z", "20231116T000000Z"] {
            let past = path("past/archive/archive").join(day).join("pool");
            fs::create_dir_all(&past).unwrap();
            fs::copy(path("fio.deb"), past.join("fio_3.33-3.deb")).unwrap();
            let said = RefCell::new(String::new());
            let say = |line: &str| said.borrow_mut().push_str(line);
            archive.unpack(&lock, &path(day), &say).unwrap();
            assert!(
                said.borrow().contains("The archive has dropped fio: fetching from copy:"),
                "{said:?}"
            );
            assert_eq!(files(&path(day)), ["dash", "fio", "libaio"]);
            fs::remove_dir_all(path("past")).unwrap();
        }
        // A time in 1970 means an unknown date, whose state must not be used.
        lock.taken = 0;
        for day in ["19700102T000000Z", "19700103T000000Z"] {
            let past = path("past/archive/archive").join(day).join("pool");
            fs::create_dir_all(&past).unwrap();
            fs::copy(path("fio.deb"), past.join("fio_3.33-3.deb")).unwrap();
        }
        let say = |line: &str| assert!(!line.contains("asking"), "{line}");
        let error = archive.unpack(&lock, &path("1970"), &say).unwrap_err().to_string();
        assert!(error.contains("the lock has no date"), "{error}");
    }

    #[test]
    fn a_file_that_differs_from_the_lock_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let archive = archive(directory.path(), &PACKAGES);
        let lock = resolve(&archive, "dash").unwrap();
        let dash = directory.path().join("archive/pool/dash_0.5.12-2.deb");
        let mut bytes = fs::read(&dash).unwrap();
        bytes.push(0);
        fs::write(&dash, bytes).unwrap();
        let error = archive.unpack(&lock, &directory.path().join("tree"), &|_| ()).unwrap_err();
        assert!(matches!(error, Error::OtherFile { .. }), "{error}");
        assert!(error.to_string().contains("differs from the lock"), "{error}");
    }

    #[test]
    fn a_missing_file_is_distinguished_from_an_unreachable_host() {
        // Messages of apt 2.6.
        let said =
            "Failed to fetch http://deb.debian.org/debian/pool/main/f/fio/fio_3.33-2_amd64.deb";
        assert!(is_nothing(&format!("{said}  404  Not Found [IP: 203.0.113.80 80]")));
        assert!(!is_nothing(&format!("{said}  Could not resolve 'deb.debian.org'")));
        assert!(!is_nothing(&format!("{said}  503  Service Unavailable")));
    }
}
