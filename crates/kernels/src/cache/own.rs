//! Checks and copies the files of a user's kernel.

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
use crate::{Error, arch, built, headers, input};

/// Keys of the digests of the user's files in a kernel's record.
pub(super) const HEADERS: &str = "headers";
pub(super) const MODULES: &str = "modules";
const CONFIG: &str = "config";
pub(super) const MAP: &str = "map";

/// The files of a user's kernel that were checked and copied so far.
pub(super) struct Gathered {
    stage: TempDir,
    parts: Parts,
    image: Vec<u8>,
}

impl Cache {
    /// Adds a user's kernel, unless a kernel with the same files exists. Checks first that all files belong to the
    /// kernel.
    pub(super) fn add_files(&self, files: &Files, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let Files { image: path, modules, headers, config, map, name } = files;
        let mut own = self.gather(path)?;
        let name = name.as_deref().unwrap_or(&own.parts.release).to_owned();
        check_name(&name)?;
        if let Some(other) = self.read(&name)?.filter(|other| other.digest != digest(&own.image)) {
            return Err(name_taken(other));
        }
        if let Some(path) = config {
            own.config(path)?;
        }
        if let Some(path) = map {
            own.map(path)?;
        }
        say(&format!("copying {}", path.display()));
        if let Some(modules) = modules {
            own.modules(modules)?;
        }
        if let Some(headers) = headers {
            own.headers(headers)?;
        }
        let origin = std::path::absolute(path).doing("find", path)?.display().to_string();
        self.keep_gathered(own, name, origin, say)
    }

    /// Begins with a kernel's image, which is checked.
    pub(super) fn gather(&self, image: &Path) -> Result<Gathered, Error> {
        let bytes = input::read(image, input::MAX_IMAGE)?;
        let (arch, release) = arch::identify(&bytes).map_err(|problem| wrong(image, problem))?;
        let release =
            release.ok_or_else(|| wrong(image, "it does not contain its release".into()))?;
        check_name(&release)?;
        let stage = self.stage()?;
        let image = stage.path().join("image");
        let parts = Parts { image, arch, release, ..Parts::default() };
        Ok(Gathered { stage, parts, image: bytes })
    }

    /// Makes a kernel of the gathered files.
    pub(super) fn keep_gathered(
        &self,
        own: Gathered,
        name: String,
        origin: String,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        let Gathered { stage, parts, image } = own;
        fs::write(&parts.image, &image).doing("write", &parts.image)?;
        self.keep(&stage, parts, name, origin, say)
    }
}

impl Gathered {
    /// The kernel's release.
    pub fn release(&self) -> &str {
        &self.parts.release
    }

    /// A name that no other kernel has: the release, and the beginning of a digest of all files.
    pub fn name(&self) -> String {
        let digests = self.parts.digests.iter();
        let lines: String = digests.map(|(part, digest)| format!("{digest} {part}\n")).collect();
        let all = digest((digest(&self.image) + "\n" + &lines).as_bytes());
        format!("{}-{}", self.parts.release, &all[..12])
    }

    /// Adds the configuration.
    pub fn config(&mut self, path: &Path) -> Result<(), Error> {
        let text = config_text(&input::read(path, MAX_CONFIG)?)
            .and_then(|text| {
                own::check_config(&text, self.parts.arch, &self.parts.release).map(|()| text)
            })
            .map_err(|problem| wrong(path, problem))?;
        self.parts.config = Some(self.give(CONFIG, &text)?);
        Ok(())
    }

    /// Adds the `System.map`.
    pub fn map(&mut self, path: &Path) -> Result<(), Error> {
        let text = String::from_utf8_lossy(&input::read(path, MAX_MAP)?).into_owned();
        own::check_map_of(&text, &self.image, &self.parts.release)
            .map_err(|problem| wrong(path, problem))?;
        self.parts.map = Some(self.give(MAP, &text)?);
        Ok(())
    }

    /// Adds modules as they are installed, a directory `lib/modules/RELEASE`.
    pub fn modules(&mut self, from: &Path) -> Result<(), Error> {
        if !from.join("kernel").is_dir() {
            let problem = "it has no directory `kernel`, unlike lib/modules/RELEASE";
            return Err(wrong(from, problem.into()));
        }
        own::check_modules(from, &self.parts.release)?;
        let to = self.stage.path().join(MODULES);
        copy_modules(from, &to)?;
        self.given_modules(to)
    }

    /// Adds the modules in the directory of a build, with `files` not only their lists.
    pub fn built_modules(&mut self, tree: &Path, files: bool) -> Result<(), Error> {
        let to = self.stage.path().join(MODULES);
        built::modules(tree, &to, self.parts.arch, files)?;
        own::check_modules(&to, &self.parts.release)?;
        self.given_modules(to)
    }

    fn given_modules(&mut self, copied: PathBuf) -> Result<(), Error> {
        self.parts.digests.insert(MODULES.into(), headers::tree_digest(&copied)?);
        self.parts.modules = Some(copied);
        Ok(())
    }

    /// Adds the headers, and their configuration if there is no other.
    pub fn headers(&mut self, from: &Path) -> Result<(), Error> {
        if !self.parts.arch.is_usual() {
            let problem =
                "headers build our modules, which arm64 does not have yet: leave them out";
            return Err(wrong(from, problem.into()));
        }
        let to = self.stage.path().join(HEADERS);
        let sum = headers::keep(from, Path::new("/"), &to, &self.parts.release)?;
        let built = to.join(".config");
        if built.is_file() {
            let text = config_text(&input::read(&built, MAX_CONFIG)?)
                .map_err(|problem| wrong(from, problem))?;
            match self.parts.digests.get(CONFIG) {
                Some(given) if *given != digest(text.as_bytes()) => {
                    let problem = "its .config differs from the configuration that was given";
                    return Err(wrong(from, problem.into()));
                }
                Some(_) => {}
                None => self.parts.config = Some(self.give(CONFIG, &text)?),
            }
        }
        self.parts.digests.insert(HEADERS.into(), sum);
        self.parts.headers = Some(to);
        Ok(())
    }

    /// Adds the headers if our modules can be built with them. Otherwise `say` gets the reason.
    pub fn headers_if_whole(&mut self, from: &Path, say: &dyn Fn(&str)) -> Result<(), Error> {
        if !self.parts.arch.is_usual() {
            return Ok(());
        }
        match headers::missing(from, Path::new("/"))? {
            None => self.headers(from)?,
            Some(missing) => say(&format!(
                "{} comes without headers, which build our modules: {} lacks {missing}",
                self.parts.release,
                from.display()
            )),
        }
        Ok(())
    }

    /// Writes a text to the stage, and adds its digest.
    fn give(&mut self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.stage.path().join(name);
        fs::write(&path, text).doing("write", &path)?;
        self.parts.digests.insert(name.into(), digest(text.as_bytes()));
        Ok(path)
    }
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

fn wrong(path: &Path, problem: String) -> Error {
    Error::NoKernel { path: path.to_owned(), problem }
}
