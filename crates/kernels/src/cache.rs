//! The cache of kernels on this host's disk.
//!
//! ```text
//! kernels/NAME/kernel.json    the record, and beside it the files that it names
//! kernels/NAME/sha256sums     the digests of all these files
//! kernels/NAME/used           an empty file, modified whenever the kernel is obtained
//! kernels/NAME/inputs         for a built kernel: the files that its build read
//! kernels/NAME/headers/       for a kernel of the user's: headers to build modules with
//! kernels/NAME/external/      modules built for it, by the digest of their sources
//! userspace/DIGEST/           an image of packages, and its record `userspace.json`
//! userspace/aliases.json      requested packages, and the DIGEST of their image
//! aliases.json                requested kernels, and the NAME of the kernel
//! apt/SUITE/                  apt's lists; apt-arm64/ has those for arm64
//! tools/busybox               the shell for guests, and beside it its digest
//! build/linux/                the source that is built, with the output below it
//! build/repository/           our git repository, which reads the objects of the user's
//! build/ccache/               compiled files
//! build/lines/DIGEST/         objects with line tables, by the function that they define
//! build/lock                  held while a kernel is built
//! tmp/                        unfinished work; leftovers of a killed run are cleared
//! lock                        held during every change
//! ```
//!
//! A kernel or an image is made in `tmp`, and renamed into its place when it is complete. So readers need no lock,
//! and never see an incomplete one.

mod directory;
mod host;
mod lines;
mod out_of_tree;
mod own;
mod packages;
mod requested;
mod source;
mod usage;
mod userspace;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use lines::{Lined, Search};
use model::{Architecture, Kernel, base_directory};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
pub use usage::{KnownKernel, Prune, Pruned};
pub use userspace::{KnownUserspace, Renewed};

use crate::aliases::Aliases;
use crate::assemble::{Parts, file_digest, make_plain};
use crate::built::BuiltKernel;
use crate::checksums;
use crate::error::Doing;
use crate::request::{DEBIAN, alias, check_name, debian_version};
use crate::running::RunningKernel;
use crate::source::FOR_ARM64;
use crate::{Error, Request, debian, input, mainline, record};

const SCHEMA: u32 = 1;

/// The kernels on this host's disk.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    /// Whether it waits for locks that other processes hold.
    waits: bool,
}

/// The contents of `kernel.json`; paths are relative to it.
#[derive(Serialize, Deserialize)]
struct Record {
    schema: u32,
    #[serde(flatten)]
    kernel: Kernel,
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/faultline`, or `$HOME/.cache/faultline`. Fails when neither
    /// variable holds an absolute path.
    pub fn open() -> Result<Self, Error> {
        location(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")).map(Self::at)
    }

    /// A cache in a given directory, which is created when it is first needed.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), waits: true }
    }

    /// The same cache, in which calls that need a lock of another process fail with [`Error::Locked`].
    #[must_use]
    pub fn without_waiting(self) -> Self {
        Self { waits: false, ..self }
    }

    /// Whether it waits for other processes.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The cache's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Adds a kernel, and returns its record in the cache. `say` gets a line for each long step.
    ///
    /// The version by which a Debian kernel was requested becomes its alias, which refers to the same kernel until it
    /// is added again. Fails when the kernel is not available, or another one has its name. Then the cache is
    /// unchanged.
    pub fn add(&self, request: &Request, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let _lock = self.lock(say)?;
        self.add_locked(request, say)
    }

    /// The kernel with this name or alias (`6.1`, `debian:6.1`, `6.1.0-56-cloud-amd64`). Fails when the cache
    /// cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Kernel>, Error> {
        if let Some(name) = mainline::cached(name) {
            return self.read(&name);
        }
        if let Some(kernel) = self.read(name)? {
            return Ok(Some(kernel));
        }
        let (version, arch) = debian_version(name);
        match self.aliases()?.get(&alias(version, arch)) {
            Some(name) => self.read(name),
            // One that was built here, or is the user's, named with its architecture.
            None if name == format!("{version}{FOR_ARM64}") => {
                Ok(self.read(version)?.filter(|kernel| kernel.arch == arch))
            }
            None => Ok(None),
        }
    }

    /// All kernels, sorted by release. Those whose record is damaged are left out, and `say` gets the reason.
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn list(&self, say: &dyn Fn(&str)) -> Result<Vec<Kernel>, Error> {
        let directory = self.kernels();
        let mut kernels = Vec::new();
        match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entries => {
                for entry in entries.doing("list", &directory)? {
                    let name = entry.doing("list", &directory)?.file_name();
                    match self.read(name.to_str().unwrap_or_default()) {
                        Err(error @ Error::Record { .. }) => say(&error.to_string()),
                        kernel => kernels.extend(kernel?),
                    }
                }
            }
        }
        kernels.sort_by(|a, b| {
            debian::compare_versions(&a.release, &b.release).then_with(|| a.name.cmp(&b.name))
        });
        Ok(kernels)
    }

    /// Removes a kernel, by its name or an alias. Fails when there is no such kernel; the error lists the
    /// existing ones.
    pub fn remove(&self, name: &str, say: &dyn Fn(&str)) -> Result<(), Error> {
        let _lock = self.lock(say)?;
        let Some(kernel) = self.get(name)? else {
            let kernels = self.list(&|_| ())?.into_iter();
            let names: Vec<String> = kernels.map(|kernel| kernel.name).collect();
            let known = match names.join(", ") {
                names if names.is_empty() => "the cache is empty".to_owned(),
                names => format!("it has {names}"),
            };
            return Err(Error::Unknown { name: name.into(), known });
        };
        let mut aliases = self.aliases()?;
        aliases.forget(&kernel.name);
        aliases.write()?;
        let home = self.home(&kernel.name);
        let stage = self.stage()?;
        fs::rename(&home, stage.path().join("kernel")).doing("remove", &home)?;
        stage.close().doing("remove the files of", &home)
    }

    /// The kernel that `spec` names. If the cache has it by name or alias, no network is needed. Otherwise it
    /// is added (`debian:6.1`, `6.1`, `newest`, packages, `dir:PATH`, `host`).
    ///
    /// The files of a cached kernel are checked, because it will be booted. Fails when the kernel is missing
    /// and cannot be added, or is damaged.
    pub fn obtain(&self, spec: &str, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        if let Some(kernel) = self.get(spec)? {
            checksums::check(&self.home(&kernel.name), &kernel)?;
            self.touch(&kernel.name);
            return Ok(kernel);
        }
        let request: Request = spec.parse()?;
        self.check_cached(spec)?;
        let _lock = self.lock(say)?;
        // Another process may have added it while this one waited.
        match self.get(spec)? {
            Some(kernel) => Ok(kernel),
            None => self.add_locked(&request, say),
        }
    }

    /// Whether [`Cache::obtain`] would fetch this kernel from Debian's archive. Fails when the cache does not
    /// have it, and `spec` names neither a kernel of Debian nor an existing file.
    pub fn would_fetch(&self, spec: &str) -> Result<bool, Error> {
        if self.get(spec)?.is_some() {
            return Ok(false);
        }
        self.check_cached(spec)?;
        match spec.parse()? {
            Request::Packages { files, .. } => {
                files.iter().try_for_each(|path| input::package(path).map(drop)).map(|()| false)
            }
            Request::Directory { path, .. } => BuiltKernel::find(&path).map(|_| false),
            Request::Host { root, .. } => RunningKernel::find(&root).map(|_| false),
            Request::Debian { .. } | Request::Mainline { .. } | Request::Files(_) => Ok(true),
        }
    }

    /// Checks that a name with an architecture is not that of a cached kernel for another one.
    fn check_cached(&self, spec: &str) -> Result<(), Error> {
        let name = spec.strip_suffix(FOR_ARM64).filter(|name| !name.starts_with(DEBIAN));
        let cached = name.map(|name| self.read(name)).transpose()?.flatten();
        match cached {
            None => Ok(()),
            Some(kernel) => {
                let hint =
                    format!("{} in the cache is one for {}", kernel.name, kernel.arch.name());
                Err(Error::Request { text: spec.into(), hint })
            }
        }
    }

    /// A static busybox, for a shell in a guest; fetched on first use, and again if it is damaged. Fails when it
    /// cannot be fetched.
    pub fn shell(&self, say: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        let tools = self.root.join("tools");
        let path = tools.join("busybox");
        if checksums::is_whole(&path)? {
            return Ok(path);
        }
        let _lock = self.lock(say)?;
        let stage = self.stage()?;
        let busybox = debian::shell(&self.apt(), &stage.path().join("tree"), say)?;
        fs::create_dir_all(&tools).doing("create", &tools)?;
        checksums::keep(&busybox, &path)?;
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).doing("write", &path)?;
        Ok(path)
    }

    fn add_locked(&self, request: &Request, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        match request {
            Request::Debian { version, arch, suite } => {
                self.add_debian((version, *arch), suite.as_deref(), say)
            }
            Request::Mainline { version, archive } => self.add_mainline(version, archive, say),
            Request::Packages { files, name } => self.add_packages(files, name.as_deref(), say),
            Request::Directory { path, name } => self.add_directory(path, name.as_deref(), say),
            Request::Host { root, name } => self.add_host(root, name.as_deref(), say),
            Request::Files(files) => self.add_files(files, say),
        }
    }

    fn add_debian(
        &self,
        wanted: (&str, Architecture),
        suite: Option<&str>,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        let (_, arch) = wanted;
        let found = debian::find(&self.apt_for(arch), wanted, suite, say)?;
        let kernel = match self.read(found.release())? {
            Some(kernel) if found.is_origin(&kernel.origin) => kernel,
            Some(other) => return Err(name_taken(other)),
            None => {
                let stage = self.stage()?;
                let tree = stage.path().join("tree");
                found.unpack(&tree, say)?;
                let parts = Parts { arch, ..Parts::find(&tree, Path::new(found.release()))? };
                let parts = packages::with_modules(parts)?;
                self.keep(&stage, parts, found.release().into(), found.origin(), say)?
            }
        };
        self.point(wanted, &found.alias(), &kernel.name, say)?;
        Ok(kernel)
    }

    /// Makes the requested version and the kernel's release aliases of this kernel, and its package's version if that is
    /// none yet.
    fn point(
        &self,
        (version, arch): (&str, Architecture),
        package: &str,
        name: &str,
        say: &dyn Fn(&str),
    ) -> Result<(), Error> {
        let mut aliases = self.aliases()?;
        aliases.set(&alias(name, arch), name);
        let wanted = alias(version, arch);
        if let Some(old) = aliases.set(&wanted, name).filter(|old| old != name) {
            say(&format!("{wanted} now refers to {name} (before: {old})"));
        }
        // Kernels of several flavours have one version. The first one that was asked for by another name keeps it.
        let package = alias(package, arch);
        if aliases.get(&package).is_none() {
            aliases.set(&package, name);
        }
        aliases.write()
    }

    /// Makes a kernel from its parts and moves it into its place. An existing one with the same files remains, and is
    /// checked.
    fn keep(
        &self,
        stage: &TempDir,
        parts: Parts,
        name: String,
        origin: String,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        if let Some(known) = self.read(&name)? {
            let image = file_digest(&parts.image).doing("read", &parts.image)?;
            if (&known.digest, &known.digests) != (&image, &parts.digests) {
                return Err(name_taken(known));
            }
            checksums::check(&self.home(&name), &known)?;
            self.touch(&name);
            say(&format!("{name} is already in the cache with the same files"));
            return Ok(known);
        }
        say(&format!("Preparing {name}"));
        let home = stage.path().join("kernel");
        fs::create_dir(&home).doing("create", &home)?;
        let kernel = parts.settle(&home, name.clone(), origin, say)?;
        write_record(&home, kernel)?;
        let place = self.home(&name);
        fs::create_dir_all(self.kernels()).doing("create", &self.kernels())?;
        if place.exists() {
            // A directory without a record is not a kernel.
            fs::rename(&place, stage.path().join("damaged")).doing("remove", &place)?;
        }
        fs::rename(&home, &place).doing("create", &place)?;
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.read(&name)?.ok_or_else(missing).doing("read", &place)
    }

    /// The kernel in the directory of that name, if there is one.
    fn read(&self, name: &str) -> Result<Option<Kernel>, Error> {
        if check_name(name).is_err() {
            return Ok(None); // such as `debian:6.1`: an alias at most
        }
        let home = self.home(name);
        let path = home.join("kernel.json");
        let Some(record) = record::read::<Record>(&path)? else { return Ok(None) };
        if record.schema != SCHEMA {
            let problem = format!("its schema is {}, not {SCHEMA}", record.schema);
            return Err(Error::Record { path, problem });
        }
        let kernel = record.kernel;
        let absolute = std::path::absolute(&home).doing("find", &home)?;
        Ok(Some(Kernel {
            image: absolute.join(kernel.image),
            vmlinux: kernel.vmlinux.map(|path| absolute.join(path)),
            modules: kernel.modules.map(|path| absolute.join(path)),
            config: kernel.config.map(|path| absolute.join(path)),
            headers: kernel.headers.map(|path| absolute.join(path)),
            map: kernel.map.map(|path| absolute.join(path)),
            ..kernel
        }))
    }

    /// Takes the lock, and waits while another process changes the cache.
    fn lock(&self, say: &dyn Fn(&str)) -> Result<File, Error> {
        fs::create_dir_all(&self.root).doing("create", &self.root)?;
        self.lock_file(&self.root.join("lock"), "to change the cache of kernels", say)
    }

    /// Takes the lock on a file. Unless another process has it and this cache does not wait, waits for it.
    fn lock_file(&self, path: &Path, what_for: &str, say: &dyn Fn(&str)) -> Result<File, Error> {
        let locked = match self.waits {
            true => lock::take(path, what_for, say),
            false => lock::try_take(path),
        };
        locked.doing("lock", path)?.map_err(Error::Locked)
    }

    /// A new directory on the cache's disk, removed when it is dropped. The caller holds the lock, so all
    /// other contents are leftovers of killed processes.
    fn stage(&self) -> Result<TempDir, Error> {
        let directory = self.root.join("tmp");
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.doing("clear", &directory)?,
        }
        fs::create_dir_all(&directory).doing("create", &directory)?;
        TempDir::new_in(&directory).doing("write into", &directory)
    }

    fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    /// The directory of a kernel.
    fn home(&self, name: &str) -> PathBuf {
        self.kernels().join(name)
    }

    fn apt(&self) -> PathBuf {
        self.apt_for(Architecture::X86_64)
    }

    /// The directory of apt's lists of an architecture.
    fn apt_for(&self, arch: Architecture) -> PathBuf {
        let name = if arch.is_usual() { "apt".into() } else { format!("apt-{}", arch.name()) };
        self.root.join(name)
    }

    fn aliases(&self) -> Result<Aliases, Error> {
        Aliases::read(self.root.join("aliases.json"))
    }
}

fn name_taken(other: Kernel) -> Error {
    Error::NameTaken { name: other.name, origin: other.origin }
}

/// Writes the record and the digests beside the kernel's files, and syncs all of them. After a loss of power
/// a kernel in its place is therefore complete.
fn write_record(home: &Path, kernel: Kernel) -> Result<(), Error> {
    let path = home.join("kernel.json");
    let record = serde_json::to_vec_pretty(&Record { schema: SCHEMA, kernel })
        .map_err(io::Error::from)
        .doing("write", &path)?;
    fs::write(&path, record).doing("write", &path)?;
    make_plain(home)?;
    checksums::write(home)?;
    whole(home)
}

/// Syncs all files below a directory to the disk.
fn whole(home: &Path) -> Result<(), Error> {
    let directory = File::open(home).doing("open", home)?;
    rustix::fs::syncfs(&directory).map_err(io::Error::from).doing("write to disk", home)
}

/// The location of the user's cache by the XDG base directory specification, which ignores relative paths.
fn location(xdg: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, Error> {
    Ok(base_directory(xdg, home, ".cache").ok_or(Error::NoCache)?.join("faultline"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_location_follows_the_specification() {
        let at = |xdg: &str, home: &str| location(Some(xdg.into()), Some(home.into())).ok();
        assert_eq!(at("/x", "/home/me"), Some("/x/faultline".into()));
        assert_eq!(at("", "/home/me"), Some("/home/me/.cache/faultline".into()));
        assert_eq!(at("relative", "also"), None);
    }
}
