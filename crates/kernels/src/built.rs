//! Reads the directory in which a kernel was built (`make`, or `make O=DIRECTORY`). Nothing in it is changed.

use std::fs;
use std::path::{Component, Path, PathBuf};

use kernelfiles::config::{differences, parse};
use model::Architecture;

use crate::error::Doing;
use crate::own::{self, MAX_CONFIG};
use crate::{Error, arch, input};

/// The lists of built-in modules, and the properties of those.
const BUILTIN: [&str; 2] = ["modules.builtin", "modules.builtin.modinfo"];
/// The list of the modules that a build makes.
const ORDER: &str = "modules.order";
/// The options with which the last build began.
const AUTO: &str = "include/config/auto.conf";
/// What to do if a part of a build is missing.
const INSTEAD: &str = "build the kernel there with `make`, or add its image alone with `faultline kernel add --image`";

/// The parts of a kernel in the directory in which it was built.
#[derive(Debug)]
pub(crate) struct BuiltKernel {
    /// The directory, as an absolute path without links.
    pub tree: PathBuf,
    /// The image that machines boot. For x86-64 it is the `vmlinux`, or the compressed image if machines cannot boot
    /// the `vmlinux`.
    pub image: PathBuf,
    /// The `.config`.
    pub config: PathBuf,
    /// The `System.map`, if there is one.
    pub map: Option<PathBuf>,
    /// Whether modules can be loaded.
    pub is_modular: bool,
    /// Whether it has modules as files.
    pub has_modules: bool,
}

impl BuiltKernel {
    /// Finds the parts. Fails when one is missing that the kernel's configuration makes, or when the configuration has
    /// changed since the build.
    pub fn find(path: &Path) -> Result<Self, Error> {
        let wrong = |problem: String| Error::NoKernel { path: path.to_owned(), problem };
        let tree = path.canonicalize().map_err(|error| {
            wrong(format!(
                "cannot be read: {error}; name the directory in which a kernel was built"
            ))
        })?;
        if !tree.is_dir() {
            return Err(wrong("it is not a directory".into()));
        }
        let config = tree.join(".config");
        let arch = text(&config).ok().and_then(|text| own::architecture(&text)).unwrap_or_default();
        let image = image(&tree, arch)?;
        let lacks = |file: &str| wrong(format!("it lacks {file}: {INSTEAD}"));
        if !config.is_file() {
            return Err(lacks(".config"));
        }
        let text = text(&config)?;
        let options = parse(&text);
        let auto = tree.join(AUTO);
        if auto.is_file() {
            let auto = self::text(&auto)?;
            // Since 5.17 texts have no quotes there.
            let [now, then] = [&text, &auto].map(|text| {
                let options = parse(text).into_iter();
                options.map(|(name, value)| (name, value.trim_matches('"'))).collect()
            });
            if let Some(changed) = differences(&now, &then).first() {
                let problem = format!(
                    "its .config has changed since the kernel was built: CONFIG_{} was {} and is {}; \
                     build the kernel again with `make`",
                    changed.option,
                    changed.second.unwrap_or("n"),
                    changed.first.unwrap_or("n")
                );
                return Err(wrong(problem));
            }
        }
        let is_modular = options.get("MODULES") == Some(&"y");
        let has_modules = is_modular && options.values().any(|value| *value == "m");
        let needed = [(BUILTIN[0], true), (ORDER, has_modules)];
        let missing = needed.iter().find(|(file, is)| *is && !tree.join(file).is_file());
        if let Some((file, _)) = missing {
            return Err(lacks(file));
        }
        let map = Some(tree.join("System.map")).filter(|map| map.is_file());
        Ok(Self { tree, image, config, map, is_modular, has_modules })
    }
}

/// The image: the first one that machines can boot, or the last one. For x86-64 the first one is the `vmlinux`, which
/// names its functions.
fn image(tree: &Path, arch: Architecture) -> Result<PathBuf, Error> {
    let images = arch::recipe(arch).images;
    let there: Vec<PathBuf> =
        images.iter().map(|image| tree.join(image)).filter(|image| image.is_file()).collect();
    let is_bootable = |image: &&PathBuf| {
        input::read(image, input::MAX_IMAGE).is_ok_and(|bytes| arch::identify(&bytes).is_ok())
    };
    let found = match &there[..] {
        [_, _, ..] => there.iter().find(is_bootable),
        _ => None,
    };
    found.or(there.last()).cloned().ok_or_else(|| {
        let problem = format!(
            "it has neither {}: name the directory in which the kernel was built, or build it there with `make`",
            images.join(" nor ")
        );
        Error::NoKernel { path: tree.to_owned(), problem }
    })
}

fn text(path: &Path) -> Result<String, Error> {
    input::read(path, MAX_CONFIG).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Makes a directory like `lib/modules/RELEASE` of the directory `output` of a build for an architecture: the lists of
/// modules, and with `files` those that were built, without debug information.
pub(crate) fn modules(
    output: &Path,
    directory: &Path,
    arch: Architecture,
    files: bool,
) -> Result<(), Error> {
    let kernel = directory.join("kernel");
    fs::create_dir_all(&kernel).doing("create", &kernel)?;
    for name in BUILTIN {
        let from = output.join(name);
        if from.exists() {
            fs::copy(&from, directory.join(name)).doing("copy", &from)?;
        }
    }
    let mut list = String::new();
    if files {
        let path = output.join(ORDER);
        list = fs::read_to_string(&path).doing("read", &path)?;
    }
    let (mut order, mut copied) = (String::new(), Vec::new());
    for line in list.lines() {
        // `mm/zsmalloc.o`, before 6.4 `mm/zsmalloc.ko`
        let path = Path::new(line).with_extension("ko");
        let (from, to) = (output.join(&path), kernel.join(&path));
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below || !from.is_file() {
            let problem = format!(
                "{ORDER} lists this module, but it is not there: build the modules with `make`"
            );
            return Err(Error::NoKernel { path: from, problem });
        }
        let above = to.parent().unwrap_or(&kernel);
        fs::create_dir_all(above).doing("create", above)?;
        fs::copy(&from, &to).doing("copy", &from)?;
        order += &format!("kernel/{}\n", path.display());
        copied.push(to);
    }
    if !copied.is_empty() && has_debug_information(output)? {
        let strip = &arch::recipe(arch).strip;
        strip.run(strip.command().arg("--strip-debug").args(copied))?;
    }
    let path = directory.join(ORDER);
    fs::write(&path, order).doing("write", &path)
}

/// Whether a kernel is built with debug information, by the configuration in the directory of its build.
pub(crate) fn has_debug_information(output: &Path) -> Result<bool, Error> {
    let config = output.join(".config");
    let config = fs::read_to_string(&config).doing("read", &config)?;
    Ok(config.lines().any(|line| line == "CONFIG_DEBUG_INFO=y"))
}
