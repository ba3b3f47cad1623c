//! User space for guests: packages of Debian's with all that they depend on, unpacked, and made into
//! the image of a file system that guests only read. Nothing of the packages is run, so what their
//! scripts would do at an installation is done here as far as programs need it, or not at all.

mod tree;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use model::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::debian::Resolved;
use crate::error::Doing;
use crate::{Error, assemble, record};

/// The version of what an image is made of its packages, and of its record.
const SCHEMA: u32 = 1;
/// What programs take for granted without depending on it: a shell behind `system(3)`.
const BASE: &[&str] = &["coreutils", "dash"];

/// Makes a file system of a directory's files in an image that has its size already; all of it
/// belongs to the superuser.
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
    /// What is in it, as `name=version` in the order of the names.
    pub packages: Vec<String>,
}

/// What `userspace.json` holds.
#[derive(Serialize, Deserialize)]
struct Record {
    schema: u32,
    wanted: Vec<String>,
    packages: Vec<String>,
    size: Bytes,
    digest: String,
}

/// The packages that are asked for, in order, each once.
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    /// Refuses what is no name: apt gives a meaning to more than names.
    pub fn new(packages: &[String]) -> Result<Self, Error> {
        if let Some(wrong) = packages.iter().find(|name| !is_name(name)) {
            return Err(Error::PackageName(wrong.clone()));
        }
        let mut names = packages.to_vec();
        names.sort();
        names.dedup();
        Ok(Self(names))
    }

    /// The name of their image's directory.
    pub fn key(&self) -> String {
        let text = format!("{SCHEMA} {}", self.0.join(" "));
        assemble::digest(text.as_bytes())[..16].to_owned()
    }

    /// The image in its directory `home`, if there is one.
    pub fn read(&self, home: &Path) -> Result<Option<Userspace>, Error> {
        let path = home.join("userspace.json");
        let Some(record) = record::read::<Record>(&path)? else { return Ok(None) };
        if (record.schema, &record.wanted) != (SCHEMA, &self.0) {
            let problem = format!("it is of {}", record.wanted.join(", "));
            return Err(Error::Record { path, problem });
        }
        let Record { packages, size, digest, .. } = record;
        let home = std::path::absolute(home).doing("find", home)?;
        Ok(Some(Userspace { image: home.join("image"), size, digest, packages }))
    }

    /// Those that are to be fetched with all that they depend on.
    pub fn names(&self) -> Vec<String> {
        let base = BASE.iter().map(|name| (*name).to_owned());
        base.chain(self.0.iter().cloned()).collect()
    }

    /// Makes the image and its record in a directory within `stage`, and gives that.
    pub fn make(
        &self,
        resolved: &Resolved,
        stage: &Path,
        mkfs: Mkfs<'_>,
        say: &dyn Fn(&str),
    ) -> Result<PathBuf, Error> {
        let tree = stage.join("tree");
        resolved.unpack(&tree, say)?;
        say(&format!("making a user space of {}", self.0.join(", ")));
        tree::settle(&tree)?;
        let home = stage.join("userspace");
        fs::create_dir(&home).doing("create", &home)?;
        let image = home.join("image");
        let size = tree::size(&tree)?;
        let file = File::create(&image).doing("create", &image)?;
        file.set_len(size.0).doing("create", &image)?;
        let failed = |problem| Error::Image { names: self.0.join(", "), problem };
        mkfs(&tree, &image).map_err(failed)?;
        let record = Record {
            schema: SCHEMA,
            wanted: self.0.clone(),
            packages: resolved.versions(),
            size,
            digest: digest(&image).doing("read", &image)?,
        };
        let path = home.join("userspace.json");
        let record = serde_json::to_vec_pretty(&record).map_err(io::Error::from);
        fs::write(&path, record.doing("write", &path)?).doing("write", &path)?;
        Ok(home)
    }
}

/// Whether a word can name a package (Debian policy, 5.6.7), and means no more to apt: a `-` at the
/// end would remove it.
fn is_name(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = word.as_bytes();
    bytes.len() >= 2
        && bytes.len() <= 100
        && plain(bytes[0])
        && bytes.iter().all(|byte| plain(*byte) || b"+-.".contains(byte))
        && !word.ends_with('-')
}

/// SHA-256 of a file, in hexadecimal, however large it is.
fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(assemble::hexadecimal(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::debian::{self, testing::archive};

    fn wanted(names: &[&str]) -> Result<Wanted, Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Wanted::new(&names)
    }

    #[test]
    fn only_names_are_asked_for() {
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
    fn order_and_repetition_mean_nothing() {
        let key = |names: &[&str]| wanted(names).unwrap().key();
        assert_eq!(key(&["fio", "bonnie++", "fio"]), key(&["bonnie++", "fio"]));
        assert_ne!(key(&["fio"]), key(&["fio", "bonnie++"]));
    }

    #[test]
    fn packages_become_an_image_with_its_record() {
        let directory = tempfile::tempdir().unwrap();
        let packages = [
            ("fio", "3.33-3", "Depends: libaio1 (>= 0.3)\n", "usr/bin/fio"),
            ("libaio1", "0.3.113", "", "lib/x86_64-linux-gnu/libaio.so.1"),
            ("coreutils", "9.1-1", "", "bin/true"),
            ("dash", "0.5-1", "", "bin/sh"),
        ];
        let suite = archive(directory.path(), &packages);
        let wanted = wanted(&["fio"]).unwrap();
        let resolved = debian::resolve_in(suite, &wanted.names(), &|_| ()).unwrap();
        let seen = Cell::new(false);
        let mkfs = |tree: &Path, image: &Path| {
            let library = fs::read_to_string(tree.join("lib/x86_64-linux-gnu/libaio.so.1"));
            seen.set(library.is_ok() && tree.join("usr/bin/sh").is_file());
            fs::write(image, "an image").map_err(|error| error.to_string())
        };
        let home = wanted.make(&resolved, directory.path(), &mkfs, &|_| ()).unwrap();
        assert!(seen.get());
        let userspace = wanted.read(&home).unwrap().unwrap();
        let expected = ["coreutils=9.1-1", "dash=0.5-1", "fio=3.33-3", "libaio1=0.3.113"];
        assert_eq!(userspace.packages, expected);
        assert_eq!(userspace.digest, assemble::digest(b"an image"));
        let error = super::tests::wanted(&["bonnie++"]).unwrap().read(&home).unwrap_err();
        assert!(error.to_string().contains("it is of fio"), "{error}");
        assert!(wanted.read(Path::new("/nonexistent")).unwrap().is_none());
    }

    #[test]
    fn an_image_that_cannot_be_made_says_of_what() {
        let directory = tempfile::tempdir().unwrap();
        let packages = [("coreutils", "9", "", "bin/true"), ("dash", "1", "", "bin/sh")];
        let suite = archive(directory.path(), &packages);
        let wanted = wanted(&["dash"]).unwrap();
        let resolved = debian::resolve_in(suite, &wanted.names(), &|_| ()).unwrap();
        let mkfs = |_: &Path, _: &Path| Err("no room".to_owned());
        let error = wanted.make(&resolved, directory.path(), &mkfs, &|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "the image of dash cannot be made: no room");
    }
}
