//! Makes user space for guests: Debian packages with their dependencies, unpacked into a read-only file system image.
//! No program of the packages is run. This module does the necessary parts of their installation scripts.

pub mod lock;
mod tree;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{Bytes, UserspaceLock};
use serde::{Deserialize, Serialize};

use crate::debian::{Archive, is_name};
use crate::error::Doing;
use crate::{Error, assemble, record};

/// The version of the recipe for images, and of their record.
const SCHEMA: u32 = 1;
/// The name of the record's file, beside the image.
const RECORD: &str = "userspace.json";
/// Packages that programs need without declaring a dependency: a shell for `system(3)`.
const BASE: &[&str] = &["coreutils", "dash"];

/// A function that makes a file system of a directory's files in an image that already has its size. All
/// files belong to root.
pub type Mkfs<'a> = &'a dyn Fn(&Path, &Path) -> Result<(), String>;

/// An image of packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Userspace {
    /// The image of an ext4 file system, read-only.
    pub image: PathBuf,
    /// Its size, a multiple of 2 MiB.
    pub size: Bytes,
    /// Its SHA-256, in hexadecimal.
    pub digest: String,
    /// Its packages, as `name=version` sorted by name.
    pub packages: Vec<String>,
    /// The exact packages; `None` for old images.
    pub lock: Option<UserspaceLock>,
    /// The time at which it was made.
    pub made: SystemTime,
}

impl Userspace {
    /// Checks the image against its record. It is read once. Fails when it cannot be read or has changed.
    pub fn check(&self) -> Result<(), Error> {
        let path = &self.image;
        match assemble::file_digest(path).doing("read", path)? {
            digest if digest == self.digest => Ok(()),
            _ => Err(Error::DamagedImage { path: path.clone(), digest: name_of(&self.digest) }),
        }
    }
}

/// The contents of `userspace.json`.
#[derive(Serialize, Deserialize)]
struct Record {
    schema: u32,
    packages: Vec<String>,
    size: Bytes,
    digest: String,
    #[serde(default)]
    lock: Option<UserspaceLock>,
}

/// The requested packages, sorted, without duplicates.
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    /// Rejects anything but names, because apt would interpret it.
    pub fn new(packages: &[String]) -> Result<Self, Error> {
        if let Some(wrong) = packages.iter().find(|name| !is_name(name)) {
            return Err(Error::PackageName(wrong.clone()));
        }
        let mut names = packages.to_vec();
        names.sort();
        names.dedup();
        Ok(Self(names))
    }

    /// The alias under which their image is recorded.
    pub fn alias(&self) -> String {
        self.0.join(" ")
    }

    /// The directory of their image in old caches, which have no alias.
    pub fn old_place(&self) -> String {
        name_of(&assemble::digest(format!("{SCHEMA} {}", self.alias()).as_bytes()))
    }

    /// The packages to fetch, together with their dependencies.
    pub fn names(&self) -> Vec<String> {
        let base = BASE.iter().map(|name| (*name).to_owned());
        base.chain(self.0.iter().cloned()).collect()
    }
}

/// The name of the directory of an image with this SHA-256.
pub(crate) fn name_of(digest: &str) -> String {
    digest.chars().take(16).collect()
}

/// The image in the directory `home`; `None` if there is none.
pub(crate) fn read(home: &Path) -> Result<Option<Userspace>, Error> {
    let path = home.join(RECORD);
    let Some(record) = record::read::<Record>(&path)? else { return Ok(None) };
    if record.schema != SCHEMA {
        let problem = format!("its schema is {}, not {SCHEMA}", record.schema);
        return Err(Error::Record { path, problem });
    }
    let Record { packages, size, digest, lock, .. } = record;
    if lock.as_ref().is_some_and(|lock| lock.versions() != packages) {
        return Err(Error::Record {
            path,
            problem: "its packages are not those of its lock".into(),
        });
    }
    let made = path.metadata().and_then(|record| record.modified()).doing("read", &path)?;
    let home = std::path::absolute(home).doing("find", home)?;
    Ok(Some(Userspace { image: home.join("image"), size, digest, packages, lock, made }))
}

/// The packages requested for the image in the directory `home`, if it is an old one. Old images have them in
/// their record.
pub(crate) fn wanted_of_old(home: &Path) -> Result<Option<Wanted>, Error> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(default)]
        wanted: Vec<String>,
    }
    let record = record::read::<Record>(&home.join(RECORD))?;
    let wanted = record.and_then(|record| Wanted::new(&record.wanted).ok());
    Ok(wanted.filter(|wanted| home.ends_with(wanted.old_place())))
}

/// Makes the image of a lock and its record in a directory within `stage`. Returns that directory.
pub(crate) fn make(
    lock: &UserspaceLock,
    archive: &Archive,
    stage: &Path,
    mkfs: Mkfs<'_>,
    say: &dyn Fn(&str),
) -> Result<PathBuf, Error> {
    let tree = stage.join("tree");
    archive.unpack(lock, &tree, say)?;
    say("Making a user space of them");
    tree::settle(&tree)?;
    let home = stage.join("userspace");
    fs::create_dir(&home).doing("create", &home)?;
    let image = home.join("image");
    let size = tree::size(&tree)?;
    let file = File::create(&image).doing("create", &image)?;
    file.set_len(size.0).doing("create", &image)?;
    mkfs(&tree, &image).map_err(Error::Image)?;
    let record = Record {
        schema: SCHEMA,
        packages: lock.versions(),
        size,
        digest: assemble::file_digest(&image).doing("read", &image)?,
        lock: Some(lock.clone()),
    };
    let path = home.join(RECORD);
    let record = serde_json::to_vec_pretty(&record).map_err(io::Error::from);
    fs::write(&path, record.doing("write", &path)?).doing("write", &path)?;
    Ok(home)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::debian::{DAY, testing::archive};

    fn wanted(names: &[&str]) -> Result<Wanted, Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Wanted::new(&names)
    }

    #[test]
    fn words_that_are_not_names_are_errors() {
        for name in ["fio", "bonnie++", "libstdc++6", "postgresql-15", "0ad", "python3.11"] {
            assert!(wanted(&[name]).is_ok(), "{name}");
        }
        let no_names =
            ["", "f", "fio-", "-o", "a/b", "fio=3", "fio:i386", "Fio", "a b", "f*", "./f"];
        for name in no_names {
            let error = wanted(&["fio", name]).err().unwrap().to_string();
            assert!(
                error.starts_with(&format!("`{name}` is not the name of a package")),
                "{error}"
            );
        }
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let alias = |names: &[&str]| wanted(names).unwrap().alias();
        assert_eq!(alias(&["fio", "bonnie++", "fio"]), alias(&["bonnie++", "fio"]));
        assert_ne!(alias(&["fio"]), alias(&["fio", "bonnie++"]));
    }

    #[test]
    fn packages_become_an_image_with_a_record() {
        let directory = tempfile::tempdir().unwrap();
        let packages = [
            ("fio", "3.33-3", "Depends: libaio1 (>= 0.3)\n", "usr/bin/fio"),
            ("libaio1", "0.3.113", "", "lib/x86_64-linux-gnu/libaio.so.1"),
            ("coreutils", "9.1-1", "", "bin/true"),
            ("dash", "0.5-1", "", "bin/sh"),
        ];
        let archive = archive(directory.path(), &packages);
        let lock = archive.resolve(&wanted(&["fio"]).unwrap().names(), DAY, &|_| ()).unwrap();
        let seen = Cell::new(false);
        let mkfs = |tree: &Path, image: &Path| {
            let library = fs::read_to_string(tree.join("lib/x86_64-linux-gnu/libaio.so.1"));
            seen.set(library.is_ok() && tree.join("usr/bin/sh").is_file());
            fs::write(image, "an image").map_err(|error| error.to_string())
        };
        let home = make(&lock, &archive, directory.path(), &mkfs, &|_| ()).unwrap();
        assert!(seen.get());
        let userspace = read(&home).unwrap().unwrap();
        let expected = ["coreutils=9.1-1", "dash=0.5-1", "fio=3.33-3", "libaio1=0.3.113"];
        assert_eq!(userspace.packages, expected);
        assert_eq!(userspace.digest, assemble::digest(b"an image"));
        assert_eq!(userspace.lock, Some(lock));
        assert!(read(Path::new("/nonexistent")).unwrap().is_none());
    }

    #[test]
    fn a_failed_mkfs_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let packages = [("coreutils", "9", "", "bin/true"), ("dash", "1", "", "bin/sh")];
        let archive = archive(directory.path(), &packages);
        let lock = archive.resolve(&wanted(&["dash"]).unwrap().names(), DAY, &|_| ()).unwrap();
        let mkfs = |_: &Path, _: &Path| Err("no room".to_owned());
        let error = make(&lock, &archive, directory.path(), &mkfs, &|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "the image of a user space cannot be made: no room");
    }
}
