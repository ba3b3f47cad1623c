//! Reads the machine code of kernels and the symbols that name its functions.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use code::{ChangedPlace, CodeDifference, Image, changed_place, has_debug_information};
use kernelfiles::kallsyms::Symbols;
use kernels::types::Types;
use kernels::{Cache, Request, Search, arch, digest, image as images};
use machine::Emulator;
use model::{Kernel, Pinned};

use crate::error::{BootError, in_file};
use crate::guest::{Guest, Libraries, NoGuest};
use crate::job::image;
use crate::symbols::{SymbolReader, cached, listed};

/// The code and symbols of one kernel.
pub struct Vmlinux {
    /// The name of the kernel.
    pub name: String,
    bytes: Vec<u8>,
    symbols: Symbols,
    /// The kernel in the cache; `None` for a file.
    kernel: Option<Kernel>,
}

/// Why a kernel's code cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The kernel is not available.
    #[error(transparent)]
    Kernel(#[from] kernels::Error),
    /// The kernel's symbols cannot be read by booting it.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The programs that run in the guest are missing or damaged. They are needed to read symbols
    /// by booting.
    #[error(transparent)]
    Guest(#[from] NoGuest),
    /// The file is not a kernel image.
    #[error("{path}: {problem}")]
    Image {
        /// The file that is no kernel image.
        path: PathBuf,
        /// What is wrong with its bytes.
        problem: arch::image::Error,
    },
    /// The file is an arm64 kernel that cannot be read.
    #[error("{path}: {problem}")]
    Arm64 {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        problem: arch::arm64::image::Error,
    },
    /// The kernels are for several architectures.
    #[error("{0} and {1} are for different architectures: their machine code is not compared")]
    Foreign(String, String),
    /// The kernel's functions are not known.
    #[error("{name}: {problem}{hint}")]
    Code {
        /// The name of the kernel.
        name: String,
        /// Why its functions are not known.
        problem: code::Error,
        /// What to do about it; may be empty.
        hint: &'static str,
    },
}

impl CodeError {
    /// Returns whether the cause is what the user named: it does not exist, is not a kernel, or its
    /// functions are not known.
    pub fn is_the_users(&self) -> bool {
        match self {
            Self::Kernel(error) => error.is_the_users(),
            Self::Image { .. } | Self::Arm64 { .. } | Self::Foreign(..) | Self::Code { .. } => true,
            Self::Boot(_) | Self::Guest(_) => false,
        }
    }
}

/// Finds the functions whose code differs between the kernels of two variants. Uses only kernels in
/// the cache: nothing is fetched or booted. The error is a message that says why the functions
/// cannot be compared, for example that the cache no longer has a kernel.
pub fn code_difference(cache: &Cache, kernels: [&Pinned; 2]) -> Result<CodeDifference, String> {
    let [base, new] = kernels;
    if base.digest.is_some() && base.digest == new.digest {
        return Err("both variants have the same kernel".into());
    }
    let [base, new] = kernels_that_ran(cache, kernels)?;
    let text = |error: CodeError| error.to_string();
    let [base, new] = images_of([&base, &new]).map_err(text)?;
    Ok(code::difference(&base, &new))
}

/// Where the code of functions differs.
#[derive(Clone, Debug, Default)]
pub struct ChangedPlaces {
    /// The places by the functions' names.
    pub places: HashMap<String, ChangedPlace>,
    /// Why other functions have none. Empty for kernels that have no lines here.
    pub unlined: Vec<String>,
}

/// Finds where the code of functions differs between the kernels of two variants, by debug information.
/// Of a kernel that was built here without it, only the objects that define the functions are compiled
/// again. Waits for no other build. The error is a message that says why no code can be read.
pub fn changed_places(
    cache: &Cache,
    kernels: [&Pinned; 2],
    functions: &[String],
    say: &dyn Fn(&str),
) -> Result<ChangedPlaces, String> {
    let kernels = kernels_that_ran(cache, kernels)?;
    if functions.is_empty() || !kernels.iter().all(|it| it.may_have_lines(functions)) {
        return Ok(ChangedPlaces::default());
    }
    let cache = cache.clone().without_waiting();
    let [base, new] = kernels.each_ref().map(|it| {
        let read = it.image_with_lines(&cache, functions, (&[], Search::Few), say);
        read.map_err(|error| error.to_string())
    });
    let ((base, no_base), (new, no_new)) = (base?, new?);
    let found =
        functions.iter().filter_map(|it| Some((it.clone(), changed_place(&base, &new, it)?)));
    let mut unlined: Vec<String> = no_base.into_values().chain(no_new.into_values()).collect();
    unlined.dedup();
    Ok(ChangedPlaces { places: found.collect(), unlined })
}

/// Reads the kernels of two variants from the cache. The error is a message that says why they
/// cannot be read, for example that the cache no longer has a kernel.
pub fn kernels_that_ran(cache: &Cache, kernels: [&Pinned; 2]) -> Result<[Vmlinux; 2], String> {
    let [base, new] = kernels;
    // Compare digests, because a name such as `debian:6.12` may refer to another kernel by now.
    let cached = cache.list(&|_| ()).map_err(|error| error.to_string())?;
    let read = |kernel: &Pinned| {
        let found = cached.iter().find(|cached| kernel.digest.as_ref() == Some(&cached.digest));
        let found = found.ok_or_else(|| format!("the cache no longer has {}", kernel.name))?;
        Vmlinux::of_image(cache, found).map_err(|error| error.to_string())
    };
    Ok([read(base)?, read(new)?])
}

impl Vmlinux {
    /// Reads the kernel that `spec` names: a kernel that is in the cache or can be fetched, or the
    /// path of a `vmlinux` or `bzImage`. A kernel of the cache that has no symbol table is booted
    /// once in the directory `scratch` to read its symbols. Fails when the kernel or its symbols
    /// cannot be read.
    pub fn read(
        cache: &Cache,
        spec: &str,
        scratch: &Path,
        say: &dyn Fn(&str),
    ) -> Result<Self, CodeError> {
        let path = Path::new(spec);
        let is_file = path.is_file() && !Request::is_place(spec);
        if is_file && cache.get(spec)?.is_none() {
            return Self::of_file(cache, path);
        }
        let kernel = cache.obtain(spec, say)?;
        let mut code = Self::of_image(cache, &kernel)?;
        if matches!(code.image(), Err(CodeError::Code { problem: code::Error::NoSymbols, .. })) {
            code.symbols = match listed(cache, &kernel)? {
                Some(text) => Symbols::parse(&text),
                None => {
                    let reader = SymbolReader {
                        cache,
                        guest: &Guest::find()?.of(kernel.arch)?,
                        libraries: &Libraries::find(),
                        emulator: &Emulator::find(kernel.arch).map_err(BootError::from)?,
                        scratch,
                        memory: false,
                    };
                    reader.read(&kernel, &mut |line| say(line))?.symbols
                }
            };
        }
        Ok(code)
    }

    /// The kernel's types; `None` if it does not have them.
    pub fn types(&self) -> Option<Types> {
        Types::read(&self.bytes)
    }

    fn of_image(cache: &Cache, kernel: &Kernel) -> Result<Self, CodeError> {
        let path = image(kernel);
        let bytes = fs::read(path).map_err(in_file(path))?;
        let symbols = cached(cache, &kernel.digest)?.unwrap_or_default();
        Ok(Self { name: kernel.name.clone(), bytes, symbols, kernel: Some(kernel.clone()) })
    }

    fn of_file(cache: &Cache, path: &Path) -> Result<Self, CodeError> {
        let file = fs::read(path).map_err(in_file(path))?;
        let symbols = cached(cache, &digest(&file))?.unwrap_or_default();
        let bytes = uncompressed(file, path)?;
        let symbols = match symbols.is_empty() && !images::is_elf(&bytes) {
            true => Symbols::parse(&kernels::symbols_in(&bytes).unwrap_or_default()),
            false => symbols,
        };
        Ok(Self { name: path.display().to_string(), bytes, symbols, kernel: None })
    }

    /// Returns the kernel's code and data, with the lines of functions: from its own debug information,
    /// from the files `debug` with the debug information of the same code, or for a kernel that was built
    /// from source by compiling the functions' objects again. Also returns why functions have no lines, by
    /// their names. Fails when the host fails, or a file of `debug` is not a `vmlinux`.
    pub fn image_with_lines(
        &self,
        cache: &Cache,
        functions: &[String],
        (debug, search): (&[PathBuf], Search),
        say: &dyn Fn(&str),
    ) -> Result<(Image<'_>, BTreeMap<String, String>), CodeError> {
        let mut image = self.image()?;
        let lacking = functions.iter().filter(|it| !image.has_lines(it));
        let mut missing: Vec<String> = lacking.cloned().collect();
        for path in debug {
            if missing.is_empty() {
                break;
            }
            let bytes = fs::read(path).map_err(in_file(path))?;
            let name = || path.display().to_string();
            let hint = "";
            let wrong = |problem| CodeError::Code { name: name(), problem, hint };
            let found = image.add_lines(&bytes, &missing).map_err(wrong)?;
            missing.retain(|it| !found.contains(it));
        }
        let name = &self.name;
        let Some(kernel) = self.kernel.as_ref().filter(|it| it.built) else {
            let why =
                format!("{name} has no debug information: --debug takes a vmlinux that has it");
            return Ok((image, missing.into_iter().map(|it| (it, why.clone())).collect()));
        };
        let mut whys = BTreeMap::new();
        for (function, objects) in cache.with_lines(kernel, &missing, search, say)? {
            let why = match objects {
                Err(why) => why,
                Ok(objects) => {
                    let own = [function.clone()];
                    let found = objects.iter().filter_map(|it| image.add_lines(it, &own).ok());
                    if found.flatten().count() > 0 {
                        continue;
                    }
                    format!(
                        "compiled again with line tables, the code of {function} is another one"
                    )
                }
            };
            whys.insert(function, format!("{name} has no lines: {why}"));
        }
        Ok((image, whys))
    }

    /// Returns whether functions can have lines without files of the user's.
    fn may_have_lines(&self, functions: &[String]) -> bool {
        let is_built = self.kernel.as_ref().is_some_and(|it| it.built);
        // To read an image takes much longer than to see that it has no debug information.
        let has_lines = || {
            let image = self.image();
            image.is_ok_and(|image| functions.iter().any(|it| image.has_lines(it)))
        };
        is_built || has_debug_information(&self.bytes) && has_lines()
    }

    /// Returns the release that the kernel prints; empty if it is not known.
    pub fn release(&self) -> &str {
        self.kernel.as_ref().map_or("", |it| &it.release)
    }

    /// Returns the text of a file of the source that the kernel was built from here. `None` if it is not
    /// known.
    pub fn source_file(&self, cache: &Cache, path: &str) -> Option<String> {
        cache.source_file(self.kernel.as_ref()?, path).ok()?
    }

    /// Returns the kernel's code and data. Fails when the file is damaged or its functions are not
    /// known.
    pub fn image(&self) -> Result<Image<'_>, CodeError> {
        Image::read(&self.bytes, &self.symbols).map_err(|problem| CodeError::Code {
            name: self.name.clone(),
            hint: match problem {
                code::Error::NoSymbols => {
                    ": use the vmlinux of the kernel's build, or add the kernel with \
                     `faultline kernel add --image`"
                }
                _ => "",
            },
            problem,
        })
    }
}

/// Reads two kernels' code and data, for a comparison. Fails as [`Vmlinux::image`] does, and when they
/// are for different architectures.
pub fn images_of([base, new]: [&Vmlinux; 2]) -> Result<[Image<'_>; 2], CodeError> {
    let images = [base.image()?, new.image()?];
    match images[0].arch() == images[1].arch() {
        true => Ok(images),
        false => Err(CodeError::Foreign(base.name.clone(), new.name.clone())),
    }
}

/// Unpacks the kernel in the file `path`: an ELF file, a `bzImage`, or an `Image` of arm64.
fn uncompressed(file: Vec<u8>, path: &Path) -> Result<Vec<u8>, CodeError> {
    let path = || path.to_owned();
    if images::is_elf(&file) {
        return Ok(file);
    }
    match arch::arm64::image::unpack(&file) {
        Ok(unpacked) => Ok(unpacked.unwrap_or(file)),
        Err(arch::arm64::image::Error::NotImage) => arch::image::extract(&file)
            .map_err(|problem| CodeError::Image { path: path(), problem }),
        Err(problem) => Err(CodeError::Arm64 { path: path(), problem }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernel_that_ran_is_read() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path());
        let home = place.path().join("kernels/mine");
        fs::create_dir_all(&home).unwrap();
        let record = r#"{ "schema": 1, "name": "mine", "release": "6.1.0", "origin": "/vmlinux",
            "digest": "aa", "image": "vmlinux", "vmlinux": "vmlinux", "modules": null,
            "config": null, "headers": null, "map": null, "digests": {} }"#;
        fs::write(home.join("kernel.json"), record).unwrap();
        fs::write(home.join("vmlinux"), "no kernel").unwrap();
        let difference = |base: (&str, &str), new: (&str, &str)| {
            let [base, new] =
                [base, new].map(|(name, digest)| Pinned::from(name.to_owned()).with_digest(digest));
            code_difference(&cache, [&base, &new]).unwrap_err()
        };
        let same = difference(("mine", "aa"), ("other", "aa"));
        assert_eq!(same, "both variants have the same kernel");
        let gone = difference(("mine", "aa"), ("other", "bb"));
        assert_eq!(gone, "the cache no longer has other");
        let replaced = difference(("mine", "bb"), ("other", "cc"));
        assert_eq!(replaced, "the cache no longer has mine");
    }
}
