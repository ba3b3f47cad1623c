//! Checks and copies the files of a user's kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::Kernel;
use tempfile::TempDir;

use super::{Cache, name_taken};
use crate::assemble::{Parts, copy_modules, digest};
use crate::compressed::Format;
use crate::error::Doing;
use crate::own::{self, MAX_CONFIG, MAX_MAP};
use crate::request::{Files, check_name};
use crate::{Error, arch, headers, image, input};

/// The largest image: a `vmlinux` with full debug information is smaller.
const MAX_IMAGE: u64 = 1 << 30;
/// Keys of the digests of the user's files in a kernel's record.
pub(super) const HEADERS: &str = "headers";
const MODULES: &str = "modules";
const CONFIG: &str = "config";
const MAP: &str = "map";

impl Cache {
    /// Adds a user's kernel, unless a kernel with the same files exists. Checks first that all files belong to the
    /// kernel.
    pub(super) fn add_files(&self, files: &Files, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let Files { image: path, modules, headers, config, map, name } = files;
        let bytes = input::read(path, MAX_IMAGE)?;
        arch::image::check(&bytes).map_err(|error| wrong(path, error.to_string()))?;
        let release = arch::image::release(&bytes)
            .ok_or_else(|| wrong(path, "it does not contain its release".into()))?;
        let name = name.as_ref().unwrap_or(&release).to_owned();
        check_name(&release)?;
        check_name(&name)?;
        if let Some(other) = self.read(&name)?.filter(|other| other.digest != digest(&bytes)) {
            return Err(name_taken(other));
        }
        let stage = self.stage()?;
        let place = |name: &str| stage.path().join(name);
        let mut parts = Parts { image: place("image"), ..Parts::default() };
        if let Some(path) = config {
            let text = config_text(&input::read(path, MAX_CONFIG)?)
                .and_then(|text| own::check_config(&text, &release).map(|()| text))
                .map_err(|problem| wrong(path, problem))?;
            parts.config = Some(give(&mut parts.digests, CONFIG, &text, &stage)?);
        }
        if let Some(path) = map {
            let text = String::from_utf8_lossy(&input::read(path, MAX_MAP)?).into_owned();
            check_map(&text, &bytes, &release).map_err(|problem| wrong(path, problem))?;
            parts.map = Some(give(&mut parts.digests, MAP, &text, &stage)?);
        }
        say(&format!("copying {}", path.display()));
        if let Some(modules) = modules {
            if !modules.join("kernel").is_dir() {
                let problem = "it has no directory `kernel`, unlike lib/modules/RELEASE";
                return Err(wrong(modules, problem.into()));
            }
            own::check_modules(modules, &release)?;
            copy_modules(modules, &place(MODULES))?;
            parts.digests.insert(MODULES.into(), headers::tree_digest(&place(MODULES))?);
            parts.modules = Some(place(MODULES));
        }
        if let Some(from) = headers {
            let to = place(HEADERS);
            parts.digests.insert(HEADERS.into(), headers::keep(from, &to, &release)?);
            let built = to.join(".config");
            if built.is_file() {
                let text = config_text(&input::read(&built, MAX_CONFIG)?)
                    .map_err(|problem| wrong(from, problem))?;
                match parts.digests.get(CONFIG) {
                    Some(given) if *given != digest(text.as_bytes()) => {
                        let problem = "its .config differs from the file of --config";
                        return Err(wrong(from, problem.into()));
                    }
                    Some(_) => {}
                    None => parts.config = Some(give(&mut parts.digests, CONFIG, &text, &stage)?),
                }
            }
            parts.headers = Some(to);
        }
        fs::write(&parts.image, &bytes).doing("write", &parts.image)?;
        let origin = std::path::absolute(path).doing("find", path)?.display().to_string();
        self.keep(&stage, Parts { release, ..parts }, name, origin, say)
    }
}

/// Writes a text that the user gave to the stage, and adds its digest.
fn give(
    digests: &mut BTreeMap<String, String>,
    name: &str,
    text: &str,
    stage: &TempDir,
) -> Result<PathBuf, Error> {
    let path = stage.path().join(name);
    fs::write(&path, text).doing("write", &path)?;
    digests.insert(name.into(), digest(text.as_bytes()));
    Ok(path)
}

/// The text of a configuration, compressed or not (`/proc/config.gz`).
pub(super) fn config_text(bytes: &[u8]) -> Result<String, String> {
    let unpacked = match Format::of(bytes) {
        Some(format) => format
            .unpack(bytes, MAX_CONFIG as usize)
            .map_err(|error| format!("it is damaged: {error}"))?,
        None => bytes.to_owned(),
    };
    String::from_utf8(unpacked).map_err(|_| "it is not UTF-8 text".into())
}

/// Checks a `System.map` against the image, which is unpacked if needed.
fn check_map(text: &str, image: &[u8], release: &str) -> Result<(), String> {
    if image::is_elf(image) {
        return own::check_map(text, image, release);
    }
    let vmlinux = arch::image::extract(image)
        .map_err(|error| format!("it cannot be checked against the image: {error}"))?;
    own::check_map(text, &vmlinux, release)
}

fn wrong(path: &Path, problem: String) -> Error {
    Error::NoKernel { path: path.to_owned(), problem }
}
