//! Keeps images of user space in the cache. An image never changes. Renewing makes names of packages refer to
//! a new image.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::UserspaceLock;

use super::{Cache, whole};
use crate::Error;
use crate::aliases::Aliases;
use crate::debian::{Archive, DAY};
use crate::error::Doing;
use crate::userspace::{self, Mkfs, Userspace, Wanted};

/// An image, and the packages that refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownUserspace {
    /// The image.
    pub image: Userspace,
    /// The lists of packages that refer to it now; empty for an old image, and for an image of a lock.
    pub wanted: Vec<Vec<String>>,
}

/// The result of renewing an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The packages that refer to it.
    pub wanted: Vec<String>,
    /// The previous image.
    pub old: Userspace,
    /// The new image.
    pub new: Userspace,
}

impl Cache {
    /// The image of these Debian packages and their dependencies, which is made on first use. From then on the
    /// packages refer to it until it is renewed, and no network is needed. `mkfs` makes the file system. Fails when
    /// the packages are not available, or the image cannot be made. Then the cache is unchanged.
    pub fn userspace(
        &self,
        packages: &[String],
        mkfs: Mkfs<'_>,
        say: &dyn Fn(&str),
    ) -> Result<Userspace, Error> {
        self.maker(&|| Archive::open(&self.apt()), mkfs, say).of_packages(packages)
    }

    /// The image of a lock, which has the same bytes each time. If the cache has it, no network is needed.
    /// Fails when a package is no longer available, or the image cannot be made.
    pub fn userspace_of_lock(
        &self,
        lock: &UserspaceLock,
        mkfs: Mkfs<'_>,
        say: &dyn Fn(&str),
    ) -> Result<Userspace, Error> {
        self.maker(&|| Archive::open(&self.apt()), mkfs, say).of_lock(lock)
    }

    /// The image with this SHA-256, if the cache has it. Fails when the cache cannot be read.
    pub fn userspace_of_digest(&self, digest: &str) -> Result<Option<Userspace>, Error> {
        Ok(self.images(&|_| ())?.into_iter().find(|image| image.digest == digest))
    }

    /// The lock of these packages: the lock of their image in the cache, or else of the packages in the current
    /// archive. Fails when the archive does not have all of them.
    pub fn userspace_lock(
        &self,
        packages: &[String],
        say: &dyn Fn(&str),
    ) -> Result<UserspaceLock, Error> {
        let wanted = Wanted::new(packages)?;
        if let Some(Userspace { digest, packages, .. }) = self.meant(&wanted)? {
            return self.userspace_lock_again(&digest, &packages, say);
        }
        let _lock = self.lock(say)?;
        Archive::open(&self.apt())?.resolve(&wanted.names(), DAY, say)
    }

    /// The lock of an old image, from its SHA-256 and its packages as `name=version`. Fails when the cache
    /// does not have the image and the archive does not have all of the packages.
    pub fn userspace_lock_again(
        &self,
        digest: &str,
        versions: &[String],
        say: &dyn Fn(&str),
    ) -> Result<UserspaceLock, Error> {
        match self.userspace_of_digest(digest)? {
            Some(Userspace { lock: Some(lock), .. }) => Ok(lock),
            _ => {
                let _lock = self.lock(say)?;
                Archive::open(&self.apt())?.lock_again(versions, DAY, say)
            }
        }
    }

    /// All images, most recent last. Damaged ones are reported. Fails when the cache cannot be read.
    pub fn userspaces(&self, say: &dyn Fn(&str)) -> Result<Vec<KnownUserspace>, Error> {
        let named = self.named()?;
        let mut images = self.images(say)?;
        images.sort_by(|a, b| (a.made, &a.digest).cmp(&(b.made, &b.digest)));
        let known = images.into_iter().map(|image| {
            let wanted = named.iter().filter(|(_, home)| image.image.parent() == Some(home));
            KnownUserspace { wanted: wanted.map(|(alias, _)| words(alias)).collect(), image }
        });
        Ok(known.collect())
    }

    /// Makes new images from the current archive, for these packages or, if none are given, for all packages
    /// that refer to an image. Old images remain. Damaged ones are reported and remain. Fails when these
    /// packages have no image yet, or are not available. Images that were already renewed remain.
    pub fn renew_userspaces(
        &self,
        packages: &[String],
        mkfs: Mkfs<'_>,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Renewed>, Error> {
        let all = match packages {
            [] => {
                self.images(say)?;
                let whole =
                    self.named()?.into_iter().filter(|(_, home)| userspace::read(home).is_ok());
                whole.map(|(alias, _)| words(&alias)).collect()
            }
            packages => vec![packages.to_vec()],
        };
        self.maker(&|| Archive::open(&self.apt()), mkfs, say).renew(all)
    }

    /// Removes an image by a prefix of its digest, and others with the same digest; or a damaged image by the
    /// name of its directory. Fails when there is none, or the prefix is ambiguous.
    pub fn remove_userspace(&self, digest: &str, say: &dyn Fn(&str)) -> Result<(), Error> {
        let _lock = self.lock(say)?;
        let homes = self.homes()?.into_iter();
        let damaged = |home: &PathBuf| {
            home.file_name().is_some_and(|name| name == digest) && userspace::read(home).is_err()
        };
        let mut homes: Vec<PathBuf> = homes.filter(damaged).collect();
        if homes.is_empty() {
            let mut images = self.images(&|_| ())?;
            images.retain(|image| !digest.is_empty() && image.digest.starts_with(digest));
            let digests: BTreeSet<&str> = images.iter().map(|image| &*image.digest).collect();
            if digests.len() != 1 {
                return Err(Error::UnknownImage { digest: digest.into(), number: digests.len() });
            }
            homes.extend(images.iter().filter_map(|it| it.image.parent()).map(Path::to_path_buf));
        }
        let stage = self.stage()?;
        let mut aliases = self.userspace_aliases()?;
        for home in &homes {
            let name = home.file_name().unwrap_or_default();
            aliases.forget(&name.to_string_lossy());
            aliases.write()?;
            fs::rename(home, stage.path().join(name)).doing("remove", home)?;
        }
        let directory = stage.path().to_owned();
        stage.close().doing("remove the files in", &directory)
    }

    fn maker<'a>(
        &'a self,
        open: &'a dyn Fn() -> Result<Archive, Error>,
        mkfs: Mkfs<'a>,
        say: &'a dyn Fn(&str),
    ) -> Maker<'a> {
        Maker { cache: self, open, mkfs, say }
    }

    /// The image to which packages refer.
    fn meant(&self, wanted: &Wanted) -> Result<Option<Userspace>, Error> {
        let aliases = self.userspace_aliases()?;
        let old = wanted.old_place();
        let place = aliases.get(&wanted.alias()).unwrap_or(&old);
        userspace::read(&self.userspace_directory().join(place))
    }

    /// The directories of images to which packages refer, by alias.
    fn named(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        let directory = std::path::absolute(self.userspace_directory());
        let directory = directory.doing("find", &self.root)?;
        let mut named = BTreeMap::new();
        for image in self.images(&|_| ())? {
            let home = image.image.parent().unwrap_or(&directory);
            if let Some(wanted) = userspace::wanted_of_old(home)? {
                named.insert(wanted.alias(), home.to_path_buf());
            }
        }
        for (alias, name) in self.userspace_aliases()?.iter() {
            named.insert(alias.to_owned(), directory.join(name));
        }
        Ok(named)
    }

    /// Every image. Damaged ones are reported and left out, so that they do not block the others.
    fn images(&self, say: &dyn Fn(&str)) -> Result<Vec<Userspace>, Error> {
        let mut images = Vec::new();
        for home in self.homes()? {
            match userspace::read(&home) {
                Ok(image) => images.extend(image),
                Err(error) => {
                    let name = home.file_name().unwrap_or_default().display();
                    say(&format!(
                        "{error}; remove the image with `faultline userspace remove {name}`"
                    ));
                }
            }
        }
        Ok(images)
    }

    /// The directories of all images.
    fn homes(&self) -> Result<Vec<PathBuf>, Error> {
        let directory = self.userspace_directory();
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.doing("list", &directory)?,
        };
        let mut homes = Vec::new();
        for entry in entries {
            let home = entry.doing("list", &directory)?.path();
            if home.is_dir() {
                homes.push(home);
            }
        }
        Ok(homes)
    }

    fn userspace_directory(&self) -> PathBuf {
        self.root.join("userspace")
    }

    fn userspace_aliases(&self) -> Result<Aliases, Error> {
        Aliases::read(self.userspace_directory().join("aliases.json"))
    }
}

/// The inputs for making images.
struct Maker<'a> {
    cache: &'a Cache,
    /// Opens the archive only if it is needed.
    open: &'a dyn Fn() -> Result<Archive, Error>,
    mkfs: Mkfs<'a>,
    say: &'a dyn Fn(&str),
}

impl Maker<'_> {
    fn of_packages(&self, packages: &[String]) -> Result<Userspace, Error> {
        let wanted = Wanted::new(packages)?;
        if let Some(known) = self.cache.meant(&wanted)? {
            return Ok(known);
        }
        let _lock = self.cache.lock(self.say)?;
        // Another process may have made it while this one waited.
        if let Some(known) = self.cache.meant(&wanted)? {
            return Ok(known);
        }
        self.newest(&wanted, DAY)
    }

    fn of_lock(&self, lock: &UserspaceLock) -> Result<Userspace, Error> {
        if let Some(known) = self.known(lock)? {
            return Ok(known);
        }
        let _lock = self.cache.lock(self.say)?;
        match self.known(lock)? {
            Some(known) => Ok(known),
            None => self.make(lock, &(self.open)()?),
        }
    }

    fn renew(&self, all: Vec<Vec<String>>) -> Result<Vec<Renewed>, Error> {
        let _lock = self.cache.lock(self.say)?;
        let mut age = Duration::ZERO;
        let mut renewed = Vec::new();
        for packages in all {
            let wanted = Wanted::new(&packages)?;
            let old = self.cache.meant(&wanted)?.ok_or_else(|| Error::NoImage(wanted.alias()))?;
            // Old lists would not renew anything, so a failed fetch is an error.
            (self.open)()?.suite.update(age, self.say)?;
            age = DAY;
            renewed.push(Renewed { new: self.newest(&wanted, DAY)?, wanted: packages, old });
        }
        Ok(renewed)
    }

    /// The image of the packages in the current archive, with lists no older than `age`. From now on these
    /// packages refer to it. The caller holds the cache's lock.
    fn newest(&self, wanted: &Wanted, age: Duration) -> Result<Userspace, Error> {
        let archive = (self.open)()?;
        let lock = archive.resolve(&wanted.names(), age, self.say)?;
        let userspace = match self.known(&lock)? {
            Some(known) => known,
            None => self.make(&lock, &archive)?,
        };
        let home = userspace.image.parent().and_then(|home| home.file_name()).unwrap_or_default();
        let mut aliases = self.cache.userspace_aliases()?;
        aliases.set(&wanted.alias(), &home.to_string_lossy());
        aliases.write()?;
        Ok(userspace)
    }

    /// The cached image with the packages of a lock. The date of the lock and the archive of its packages may
    /// differ, because point releases move files between archives.
    fn known(&self, lock: &UserspaceLock) -> Result<Option<Userspace>, Error> {
        let bytes = |lock: &UserspaceLock| {
            let packages = lock.packages.iter();
            let bytes = packages.map(|it| (it.name.clone(), it.version.clone(), it.sha256.clone()));
            bytes.collect::<Vec<_>>()
        };
        let wanted = bytes(lock);
        let is_of =
            |image: &Userspace| image.lock.as_ref().is_some_and(|known| bytes(known) == wanted);
        Ok(self.cache.images(&|_| ())?.into_iter().find(is_of))
    }

    fn make(&self, lock: &UserspaceLock, archive: &Archive) -> Result<Userspace, Error> {
        let stage = self.cache.stage()?;
        let made = userspace::make(lock, archive, stage.path(), self.mkfs, self.say)?;
        whole(&made)?;
        let missing = || io::Error::from(ErrorKind::NotFound);
        let Userspace { digest, .. } =
            userspace::read(&made)?.ok_or_else(missing).doing("read", &made)?;
        let directory = self.cache.userspace_directory();
        fs::create_dir_all(&directory).doing("create", &directory)?;
        let home = directory.join(userspace::name_of(&digest));
        // Other packages may give the same image. One undamaged copy is enough.
        if !matches!(userspace::read(&home), Ok(Some(_))) {
            if home.exists() {
                let damaged = stage.path().join("damaged");
                fs::rename(&home, damaged).doing("remove", &home)?;
            }
            fs::rename(&made, &home).doing("create", &home)?;
        }
        userspace::read(&home)?.ok_or_else(missing).doing("read", &home)
    }
}

/// The packages of an alias.
fn words(alias: &str) -> Vec<String> {
    alias.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
