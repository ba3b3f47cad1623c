//! Adds a kernel from package files.

use std::fs;
use std::path::{Path, PathBuf};

use model::Kernel;
use tempfile::TempDir;

use super::{Cache, own};
use crate::assemble::{Parts, digest, is_no_link};
use crate::error::Doing;
use crate::own::{MAX_MAP, STUB, check_map_of};
use crate::request::check_name;
use crate::{Error, arch, headers, input, mainline, unpack};

impl Cache {
    /// Adds the kernel in packages of the user's.
    pub(super) fn add_packages(
        &self,
        files: &[PathBuf],
        name: Option<&str>,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        name.map_or(Ok(()), check_name)?;
        let files = files.iter().map(|path| input::package(path)).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        say(&format!("unpacking {}", all.join(", ")));
        self.unpack(&self.stage()?, (&files, all.join("+")), name, say)
    }

    /// Adds a build of Ubuntu's archive of mainline kernels.
    pub(super) fn add_mainline(
        &self,
        version: &str,
        archive: &str,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        let name = mainline::name(version);
        if let Some(kernel) = self.read(&name)? {
            return Ok(kernel);
        }
        let stage = self.stage()?;
        let places = (&*self.apt(), &*stage.path().join("packages"));
        let files = mainline::fetch(archive, version, places, say)?;
        let origin = format!("Ubuntu's mainline build v{version}");
        self.unpack(&stage, (&files, origin), Some(&name), say)
    }

    /// Adds the kernel in packages, which it unpacks in `stage`.
    fn unpack(
        &self,
        stage: &TempDir,
        (files, origin): (&[PathBuf], String),
        name: Option<&str>,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        let tree = stage.path().join("tree");
        unpack::unpack(files, &tree)?;
        let mut parts = with_modules(Parts::find(&tree, Path::new(&origin))?)?;
        let image = fs::read(&parts.image).doing("read", &parts.image)?;
        // Another image is refused below.
        parts.arch = arch::identify(&image).map(|(arch, _)| arch).unwrap_or_default();
        let release = parts.release.clone();
        if parts.modules.is_none() {
            say(&format!("{release} comes without modules: these packages have none"));
        }
        if let Err(problem) = add_map(&mut parts, &tree)? {
            say(&format!("{release} comes without its System.map: {problem}"));
        }
        if parts.arch.is_usual()
            && let Some(from) = packaged_headers(&tree, &release)?
        {
            match headers::missing(&from, &tree)? {
                None => {
                    let to = stage.path().join(own::HEADERS);
                    let sum = headers::keep(&from, &tree, &to, &release)?;
                    parts.digests.insert(own::HEADERS.into(), sum);
                    parts.headers = Some(to);
                }
                Some(missing) => say(&format!(
                    "{release} comes without headers, which build our modules: the packages lack {missing}"
                )),
            }
        }
        let name = name.unwrap_or(&release).to_owned();
        self.keep(stage, parts, name, origin, say)
    }
}

/// Adds the digest of the modules of packages.
pub(super) fn with_modules(mut parts: Parts) -> Result<Parts, Error> {
    if let Some(modules) = &parts.modules {
        parts.digests.insert(own::MODULES.into(), headers::tree_digest(modules)?);
    }
    Ok(parts)
}

/// Adds the `System.map` of packages, if they have one. The inner error is why it is left out.
fn add_map(parts: &mut Parts, tree: &Path) -> Result<Result<(), String>, Error> {
    let release = &parts.release;
    let root = tree.canonicalize().doing("read", tree)?;
    let places = [
        format!("boot/System.map-{release}"),
        format!("lib/modules/{release}/System.map"),
        format!("usr/lib/modules/{release}/System.map"),
    ];
    let mut places = places.iter().map(|place| root.join(place));
    let Some(path) = places.find(|path| path.is_file() && is_no_link(path)) else {
        return Ok(Ok(()));
    };
    let bytes = input::read(&path, MAX_MAP)?;
    if bytes.len() as u64 <= STUB {
        return Ok(Ok(()));
    }
    let image = input::read(&parts.image, input::MAX_IMAGE)?;
    let checked = check_map_of(&String::from_utf8_lossy(&bytes), &image, release);
    if checked.is_ok() {
        parts.digests.insert(own::MAP.into(), digest(&bytes));
        parts.map = Some(path);
    }
    Ok(checked)
}

/// The directory of a kernel's headers among unpacked packages: that to which its modules refer, or one with a usual
/// name.
fn packaged_headers(tree: &Path, release: &str) -> Result<Option<PathBuf>, Error> {
    let root = tree.canonicalize().doing("read", tree)?;
    let places = [
        format!("lib/modules/{release}/build"),
        format!("usr/lib/modules/{release}/build"),
        format!("usr/src/linux-headers-{release}"),
        format!("usr/src/kernels/{release}"),
    ];
    let real = places.iter().filter_map(|place| root.join(place).canonicalize().ok());
    Ok(real.into_iter().find(|path| path.is_dir() && path.starts_with(&root)))
}
