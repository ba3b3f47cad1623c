//! Turns unpacked files into a kernel of the cache: finds and moves the parts, extracts the `vmlinux`, and
//! makes `modules.dep`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Architecture, Kernel, KernelSource, TaskLayout};
use sha2::{Digest, Sha256};

use crate::arch::arm64::image as arm64;
use crate::error::Doing;
use crate::limits::{MAX_DEPTH, MAX_FILES};
use crate::request::check_name;
use crate::tool::DEPMOD;
use crate::{Error, arch, image};

/// The file in a built kernel's directory that lists the files its build read.
pub(crate) const INPUTS: &str = "inputs";

/// The setuid, setgid and sticky bits.
const SPECIAL: u32 = 0o7000;
/// How long `depmod` may take. It takes seconds.
const LIMIT: Duration = Duration::from_secs(600);

/// The files of a kernel, before they are in the cache.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// The output of `uname -r`.
    pub release: String,
    /// The architecture that it is for.
    pub arch: Architecture,
    /// The image as packaged.
    pub image: PathBuf,
    pub config: Option<PathBuf>,
    /// The modules: the contents of `/lib/modules/RELEASE`.
    pub modules: Option<PathBuf>,
    /// The headers to build modules with, if given.
    pub headers: Option<PathBuf>,
    /// The `System.map`, if given.
    pub map: Option<PathBuf>,
    /// The list of files of the source that the build read.
    pub inputs: Option<PathBuf>,
    /// The offsets of the fields of a task, if known.
    pub tasks: Option<TaskLayout>,
    /// Whether it was built here from source.
    pub built: bool,
    /// What it was built from.
    pub source: Option<KernelSource>,
    /// Digests of the files that the user gave with the image.
    pub digests: BTreeMap<String, String>,
}

impl Parts {
    /// Finds a kernel in the unpacked files of packages: of distributions, or made by the kernel's own build. Fails
    /// when there is none or more than one; then the error names `origin`.
    pub fn find(root: &Path, origin: &Path) -> Result<Self, Error> {
        let wrong = |problem: String| Error::NoKernel { path: origin.to_owned(), problem };
        let none = || {
            wrong(
                "it contains no kernel image (boot/vmlinuz-RELEASE or lib/modules/RELEASE/vmlinuz): name the \
                 package that has it, or several as A.deb+B.deb; a source is src:FILE"
                    .into(),
            )
        };
        let root = &root.canonicalize().doing("read", root)?;
        let libraries = [root.join("usr/lib/modules"), root.join("lib/modules")];
        let boot = names(&root.join("boot"))?;
        let images = boot.iter().filter_map(|name| name.strip_prefix("vmlinuz-"));
        let mut releases: BTreeSet<String> = images.map(Into::into).collect();
        for library in &libraries {
            releases.extend(names(library)?);
        }
        let release = releases.pop_first().ok_or_else(none)?;
        if let Some(other) = releases.pop_first() {
            let [one, other] = [&release, &other].map(|it| it.escape_debug());
            let problem =
                format!("it has files of several kernels, {one} and {other}: name those of one");
            return Err(wrong(problem));
        }
        check_name(&release)?;
        let [usr, lib] = libraries.map(|library| library.join(&release));
        let boot = |name: &str| root.join("boot").join(format!("{name}-{release}"));
        let beside = |name: &str| [usr.join(name), lib.join(name)];
        let images = [&[boot("vmlinuz")][..], &beside("vmlinuz"), &beside("vmlinuz.unsigned")];
        let configs = [&[boot("config")][..], &beside("config")];
        let first = |places: &[&[PathBuf]]| {
            places.concat().into_iter().find(|place| place.is_file() && is_no_link(place))
        };
        let image = first(&images).ok_or_else(none)?;
        let config = first(&configs);
        let holds_modules = |place: &PathBuf| {
            let kernel = place.join("kernel");
            kernel.is_dir() && is_no_link(&kernel)
        };
        let modules = [usr, lib].into_iter().find(holds_modules);
        Ok(Self { release, image, config, modules, ..Self::default() })
    }

    /// Moves the parts into `home`, an empty directory, and creates the other files. The paths in the returned kernel
    /// are relative to `home`.
    pub fn settle(
        self,
        home: &Path,
        name: String,
        origin: String,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        let bytes = fs::read(&self.image).doing("read", &self.image)?;
        let (image, vmlinux) = match self.arch {
            Architecture::X86_64 => {
                let is_vmlinux = image::is_elf(&bytes);
                let image = PathBuf::from(if is_vmlinux { "vmlinux" } else { arch::COMPRESSED });
                move_to(&self.image, &home.join(&image))?;
                let vmlinux = if is_vmlinux {
                    arch::image::has_entry(&bytes).then(|| image.clone())
                } else {
                    extract(&bytes, (&name, &origin), home, say)?
                };
                (image, vmlinux)
            }
            Architecture::Arm64 => settle_arm64(&self.image, &bytes, &origin, home)?,
        };
        let config = self.config.map(|from| place(&from, home, "config".into())).transpose()?;
        let headers = self.headers.map(|from| place(&from, home, "headers".into())).transpose()?;
        let map = self.map.map(|from| place(&from, home, "System.map".into())).transpose()?;
        self.inputs.map(|from| place(&from, home, INPUTS.into())).transpose()?;
        let modules = self.modules.map(|from| install(&from, home, &self.release)).transpose()?;
        Ok(Kernel {
            name,
            release: self.release,
            arch: self.arch,
            origin,
            digest: digest(&bytes),
            image,
            vmlinux,
            modules,
            config,
            headers,
            map,
            tasks: self.tasks,
            built: self.built,
            source: self.source,
            digests: self.digests,
            patched: None,
        })
    }
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// SHA-256 of a file of any size, in hexadecimal.
pub(crate) fn file_digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Moves an arm64 image into `home`, and unpacks it there if it is packed. Returns both names, relative to `home`.
fn settle_arm64(
    from: &Path,
    bytes: &[u8],
    origin: &str,
    home: &Path,
) -> Result<(PathBuf, Option<PathBuf>), Error> {
    let wrong =
        |error: arm64::Error| Error::NoKernel { path: origin.into(), problem: error.to_string() };
    let unpacked = arm64::unpack(bytes).map_err(wrong)?;
    let image = PathBuf::from(if unpacked.is_some() { arm64::PACKED } else { arm64::PLAIN });
    move_to(from, &home.join(&image))?;
    if let Some(unpacked) = unpacked {
        let plain = home.join(arm64::PLAIN);
        fs::write(&plain, unpacked).doing("write", &plain)?;
    }
    Ok((image, Some(arm64::PLAIN.into())))
}

/// Extracts the `vmlinux` of a compressed image into `home`, if it has a PVH entry. Without one the kernel boots
/// more slowly, which is reported and is not an error.
fn extract(
    packed: &[u8],
    (name, origin): (&str, &str),
    home: &Path,
    say: &dyn Fn(&str),
) -> Result<Option<PathBuf>, Error> {
    let problem = match arch::image::extract(packed) {
        Ok(vmlinux) if arch::image::has_entry(&vmlinux) => {
            let path = home.join("vmlinux");
            fs::write(&path, vmlinux).doing("write", &path)?;
            return Ok(Some("vmlinux".into()));
        }
        Ok(_) => "it has no PVH entry (CONFIG_PVH)".to_owned(),
        Err(error @ (arch::image::Error::OldProtocol(_) | arch::image::Error::UnknownFormat)) => {
            error.to_string()
        }
        Err(error) => {
            return Err(Error::NoKernel { path: origin.into(), problem: error.to_string() });
        }
    };
    say(&format!("{name} boots from its {}: {problem}", arch::COMPRESSED));
    Ok(None)
}

/// Moves modules below `home` to `lib/modules/RELEASE`, where `depmod` looks for them.
fn install(from: &Path, home: &Path, release: &str) -> Result<PathBuf, Error> {
    let library = Path::new("lib/modules");
    fs::create_dir_all(home.join(library)).doing("create", &home.join(library))?;
    let modules = place(from, home, library.join(release))?;
    make_plain(&home.join(&modules))?;
    DEPMOD.run_within(LIMIT, [OsStr::new("-b"), home.as_os_str(), OsStr::new(release)])?;
    Ok(modules)
}

/// Removes everything but directories and regular files from a directory, and clears setuid, setgid and sticky bits.
/// Links of a package can lead anywhere, also in circles, and kernels need none. Fails when there are more than
/// [`MAX_FILES`] files, or directories are nested deeper than [`MAX_DEPTH`].
pub(crate) fn make_plain(root: &Path) -> Result<(), Error> {
    let too_much =
        |problem: &str| Err(Error::NoKernel { path: root.to_owned(), problem: problem.to_owned() });
    let (mut wanted, mut files) = (vec![(root.to_owned(), 0)], 0);
    while let Some((path, depth)) = wanted.pop() {
        files += 1;
        if files > MAX_FILES {
            return too_much("it has more files than any kernel");
        }
        if depth > MAX_DEPTH {
            return too_much("its directories are nested deeper than those of any kernel");
        }
        let found = path.symlink_metadata().doing("read", &path)?;
        if !found.is_dir() && !found.is_file() {
            fs::remove_file(&path).doing("remove", &path)?;
            continue;
        }
        let mode = found.permissions().mode();
        if mode & SPECIAL != 0 {
            let plain = fs::Permissions::from_mode(mode & 0o777);
            fs::set_permissions(&path, plain).doing("write", &path)?;
        }
        if found.is_dir() {
            for entry in fs::read_dir(&path).doing("list", &path)? {
                wanted.push((entry.doing("list", &path)?.path(), depth + 1));
            }
        }
    }
    Ok(())
}

/// Moves a part to `place` in `home`. Returns the new path.
fn place(from: &Path, home: &Path, place: PathBuf) -> Result<PathBuf, Error> {
    move_to(from, &home.join(&place))?;
    Ok(place)
}

fn move_to(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).doing("move into the cache", from)
}

/// Whether no component of an absolute path is a symbolic link. A link in a package could point anywhere.
pub(crate) fn is_no_link(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}

/// The names in a directory of a package, sorted; empty if the directory does not exist.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, Error> {
    if !directory.is_dir() || !is_no_link(directory) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).doing("list", directory)?;
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.doing("list", directory)?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Copies a directory of modules without links. The links `build` and `source` point to the tree where the kernel was
/// built.
pub(crate) fn copy_modules(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).doing("create", to)?;
    for entry in fs::read_dir(from).doing("list", from)? {
        let entry = entry.doing("list", from)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().doing("read", &path)?;
        if kind.is_dir() {
            copy_modules(&path, &target)?;
        } else if kind.is_file() {
            fs::copy(&path, &target).doing("copy", &path)?;
        }
    }
    Ok(())
}
