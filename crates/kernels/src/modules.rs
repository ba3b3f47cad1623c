//! Chooses the modules to load and their order, for a guest without `modprobe`. `modules.dep`,
//! `modules.softdep`, `modules.alias` and `modules.builtin` have the formats of `depmod` and the kernel's
//! build (modules.dep(5), modprobe.d(5)).

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use model::Kernel;

use crate::compressed::Format;

/// Limit of an unpacked module's size.
const LIMIT: usize = 256 << 20;
/// The mark of modules from the kernel's own build.
const IN_TREE: &[u8] = b"intree=Y";
/// The prefix of a module's string with the release and other properties, which must match those of the kernel.
const VERMAGIC: &[u8] = b"vermagic=";

/// A module to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name as the kernel prints it, with underscores: `virtio_blk`.
    pub name: String,
    /// Its file, possibly compressed.
    pub path: PathBuf,
    /// Whether the kernel may reject it, because it is only a soft dependency, such as code for one kind of
    /// CPU.
    pub optional: bool,
}

/// Why modules are not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel came without modules, so its built-in modules are unknown too.
    #[error(
        "kernel {kernel} was added without modules, but {module} is needed: add it with its modules"
    )]
    NoModules {
        /// The kernel's name.
        kernel: String,
        /// The first module that is needed.
        module: String,
    },
    /// The kernel has no such module.
    #[error("kernel {kernel} has no module {module}, neither built in nor as a file")]
    Unknown {
        /// The kernel's name.
        kernel: String,
        /// The module's name.
        module: String,
    },
    /// A file cannot be read or unpacked.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl Error {
    /// The problem, without the file's name.
    pub(crate) fn problem(&self) -> String {
        match self {
            Self::Read { error, .. } => error.to_string(),
            other => other.to_string(),
        }
    }
}

impl Module {
    /// The module's bytes, decompressed (gzip, xz, zstd). Fails when the file cannot be read or is damaged.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let failed = |error| Error::Read { path: self.path.clone(), error };
        let bytes = fs::read(&self.path).map_err(failed)?;
        match Format::of(&bytes) {
            Some(format) => format.unpack(&bytes, LIMIT).map_err(failed),
            None => Ok(bytes),
        }
    }

    /// The release of the kernel for which it was built, from the start of its `vermagic`; `None` if it has
    /// no `vermagic`. Fails when the file cannot be read or is damaged.
    pub fn release(&self) -> Result<Option<String>, Error> {
        let bytes = self.read()?;
        let magic = bytes.split(|&byte| byte == 0).find_map(|it| it.strip_prefix(VERMAGIC));
        let release =
            magic.map(|magic| magic.split(|&byte| byte == b' ').next().unwrap_or_default());
        Ok(release.map(|release| String::from_utf8_lossy(release).into_owned()))
    }

    /// Whether the kernel's own build made it. A module built out of tree has no `intree=Y` among its strings
    /// (`scripts/mod/modpost.c`), and taints the kernel. Fails when the file cannot be read or is damaged.
    pub fn is_in_tree(&self) -> Result<bool, Error> {
        let bytes = self.read()?;
        Ok(bytes.split(|&byte| byte == 0).any(|string| string == IN_TREE))
    }
}

/// The modules of `kernel` to load for `wanted`, each after its dependencies and soft dependencies. In names
/// dashes equal underscores. Built-in modules are left out.
///
/// `modprobe --show-depends` is not used: in kmod 30 it leaves out most modules of a list of soft
/// dependencies, such as `xxhash_generic` of btrfs, and a guest cannot load them later. Fails when the kernel
/// has no such module, or its lists cannot be read.
pub fn choose<S: AsRef<str>>(kernel: &Kernel, wanted: &[S]) -> Result<Vec<Module>, Error> {
    let Some(first) = wanted.first() else {
        return Ok(Vec::new());
    };
    let Some(directory) = &kernel.modules else {
        let (kernel, module) = (kernel.name.clone(), first.as_ref().to_owned());
        return Err(Error::NoModules { kernel, module });
    };
    let dependencies = read_list(&directory.join("modules.dep"))?;
    let softer = read_list(&directory.join("modules.softdep"))?;
    let aliases = read_list(&directory.join("modules.alias"))?;
    let builtin = read_list(&directory.join("modules.builtin"))?;
    let mut choice = Choice {
        files: dependencies.lines().filter_map(dependency).collect(),
        soft: HashMap::new(),
        aliases: HashMap::new(),
        begun: HashSet::new(),
        modules: Vec::new(),
        directory,
    };
    for (module, soft) in softer.lines().filter_map(soft_dependency) {
        choice.soft.entry(module).or_default().join(soft);
    }
    for (alias, module) in aliases.lines().filter_map(alias) {
        choice.aliases.entry(alias).or_default().push(module);
    }
    let builtin: HashSet<String> = builtin.lines().map(name).collect();
    for wanted in wanted {
        let wanted = wanted.as_ref();
        let found = builtin.contains(&name(wanted)) || choice.add(&name(wanted));
        if !found {
            return Err(Error::Unknown { kernel: kernel.name.clone(), module: wanted.to_owned() });
        }
    }
    for wanted in wanted {
        choice.require(&name(wanted.as_ref()));
    }
    Ok(choice.modules)
}

/// Whether a kernel has a module as a file. Fails when the kernel's list cannot be read.
pub fn has(kernel: &Kernel, module: &str) -> Result<bool, Error> {
    let Some(directory) = &kernel.modules else {
        return Ok(false);
    };
    let dependencies = read_list(&directory.join("modules.dep"))?;
    Ok(dependencies.lines().filter_map(dependency).any(|(known, _)| known == name(module)))
}

/// The modules of `wanted` that a kernel has neither built in nor as a file. Empty if it was added without
/// modules, because then they are unknown. Fails when the kernel's lists cannot be read.
pub fn lacking<'a>(kernel: &Kernel, wanted: &[&'a str]) -> Result<Vec<&'a str>, Error> {
    let Some(directory) = &kernel.modules else {
        return Ok(Vec::new());
    };
    // Every directory of modules has this file. If it is missing, the cache is damaged.
    let path = directory.join("modules.dep");
    let dependencies = fs::read_to_string(&path).map_err(|error| Error::Read { path, error })?;
    let builtin = read_list(&directory.join("modules.builtin"))?;
    let files = dependencies.lines().filter_map(dependency).map(|(known, _)| known);
    let known: HashSet<String> = files.chain(builtin.lines().map(name)).collect();
    Ok(wanted.iter().copied().filter(|module| !known.contains(&name(module))).collect())
}

/// One of the lists beside the modules; empty if the file is missing.
fn read_list(path: &Path) -> Result<String, Error> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| Error::Read { path: path.to_owned(), error }),
    }
}

/// Parses a line of `modules.dep`: a file, a colon, the files on which it depends.
fn dependency(line: &str) -> Option<(String, (&str, Vec<String>))> {
    let (file, needed) = line.split_once(':')?;
    Some((name(file), (file, needed.split_whitespace().map(name).collect())))
}

/// Parses a line of `modules.softdep`: `softdep MODULE pre: NAME... post: NAME...`. Names before the first
/// colon count as `pre`.
fn soft_dependency(line: &str) -> Option<(String, Soft)> {
    let mut words = line.strip_prefix("softdep ")?.split_whitespace();
    let module = name(words.next()?);
    let mut soft = Soft::default();
    let mut after = false;
    for word in words {
        match word {
            "pre:" => after = false,
            "post:" => after = true,
            _ if after => soft.after.push(name(word)),
            _ => soft.before.push(name(word)),
        }
    }
    Some((module, soft))
}

/// Parses a line of `modules.alias`: `alias ALIAS MODULE`. Aliases of devices have wildcards and are ignored,
/// because no module depends on one.
fn alias(line: &str) -> Option<(String, String)> {
    let (alias, module) = line.strip_prefix("alias ")?.rsplit_once(' ')?;
    (!alias.contains('*')).then(|| (name(alias), name(module)))
}

/// The name of the module in a file: `kernel/fs/9p/9p.ko.xz` is `9p`.
fn name(file: &str) -> String {
    let base = file.rsplit('/').next().unwrap_or(file);
    let stem = base.split_once(".ko").map_or(base, |(stem, _)| stem);
    stem.replace('-', "_")
}

/// Soft dependencies: modules, or aliases of modules.
#[derive(Clone, Default)]
struct Soft {
    before: Vec<String>,
    after: Vec<String>,
}

impl Soft {
    fn join(&mut self, other: Self) {
        self.before.extend(other.before);
        self.after.extend(other.after);
    }
}

/// A choice in progress.
struct Choice<'a> {
    files: HashMap<String, (&'a str, Vec<String>)>,
    soft: HashMap<String, Soft>,
    aliases: HashMap<String, Vec<String>>,
    begun: HashSet<String>,
    modules: Vec<Module>,
    directory: &'a Path,
}

impl Choice<'_> {
    /// Adds a module after its dependencies. Returns false if no module has this name.
    fn add(&mut self, name: &str) -> bool {
        let Some((file, needed)) = self.files.get(name).cloned() else {
            return false;
        };
        if self.begun.insert(name.to_owned()) {
            let Soft { before, after } = self.soft.get(name).cloned().unwrap_or_default();
            self.add_soft(&before);
            for needed in &needed {
                self.add(needed); // depmod lists only files that it found
            }
            let path = self.directory.join(file);
            self.modules.push(Module { name: name.to_owned(), path, optional: true });
            self.add_soft(&after);
        }
        true
    }

    /// Adds those of these modules that exist, by name or else by alias.
    fn add_soft(&mut self, names: &[String]) {
        for name in names {
            if !self.add(name) {
                for module in self.aliases.get(name).cloned().unwrap_or_default() {
                    self.add(&module);
                }
            }
        }
    }

    /// Marks a module and its dependencies as required.
    fn require(&mut self, name: &str) {
        let place = self.modules.iter().position(|module| module.name == name && module.optional);
        if let Some(place) = place {
            self.modules[place].optional = false;
            let (_, needed) = self.files[name].clone();
            for needed in &needed {
                self.require(needed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(directory: &Path) -> Kernel {
        let dependencies = "kernel/a.ko: kernel/b-b.ko.xz kernel/c.ko\n\
                            kernel/b-b.ko.xz: kernel/c.ko\n\
                            kernel/c.ko:\n\
                            kernel/loop1.ko: kernel/loop2.ko\n\
                            kernel/loop2.ko: kernel/loop1.ko\n";
        fs::write(directory.join("modules.dep"), dependencies).unwrap();
        fs::write(directory.join("modules.builtin"), "kernel/fs/ext4.ko\n").unwrap();
        Kernel {
            name: "test".into(),
            release: "1.2.3".into(),
            modules: Some(directory.to_owned()),
            ..Kernel::default()
        }
    }

    fn names(modules: &[Module]) -> Vec<&str> {
        modules.iter().map(|module| module.name.as_str()).collect()
    }

    #[test]
    fn modules_come_once_and_after_their_dependencies() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = kernel(directory.path());
        let modules = choose(&kernel, &["b_b", "a", "ext4", "b-b"]).unwrap();
        assert_eq!(names(&modules), ["c", "b_b", "a"]);
        assert_eq!(modules[1].path, directory.path().join("kernel/b-b.ko.xz"));
        assert_eq!(names(&choose(&kernel, &["loop1"]).unwrap()), ["loop2", "loop1"]);
    }

    #[test]
    fn soft_dependencies_are_optional() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = kernel(directory.path());
        let soft = "# Soft dependencies extracted from modules themselves.\n\
                    softdep c pre: crc-32\nsoftdep c pre: no_such\n\
                    softdep a loop1 post: late\nsoftdep late pre: a\n\
                    softdep b_b pre: ext4\n";
        fs::write(directory.path().join("modules.softdep"), soft).unwrap();
        let aliases = "# Aliases extracted from modules themselves.\n\
                       alias crc_32 fast-crc\nalias crc_32 slow_crc\nalias pci:v*d* a\n";
        fs::write(directory.path().join("modules.alias"), aliases).unwrap();
        let more = "kernel/fast-crc.ko:\nkernel/slow-crc.ko: kernel/table.ko\n\
                    kernel/table.ko:\nkernel/late.ko:\n";
        let path = directory.path().join("modules.dep");
        fs::write(&path, fs::read_to_string(&path).unwrap() + more).unwrap();
        let modules = choose(&kernel, &["a"]).unwrap();
        let expected = [
            ("loop2", true),
            ("loop1", true),
            ("fast_crc", true),
            ("table", true),
            ("slow_crc", true),
            ("c", false),
            ("b_b", false),
            ("a", false),
            ("late", true),
        ];
        let chosen: Vec<_> =
            modules.iter().map(|module| (module.name.as_str(), module.optional)).collect();
        assert_eq!(chosen, expected);
        let modules = choose(&kernel, &["c", "slow_crc"]).unwrap();
        let required = modules.iter().filter(|module| !module.optional);
        let required: Vec<_> = required.map(|module| module.name.as_str()).collect();
        assert_eq!(required, ["table", "slow_crc", "c"]);
    }

    #[test]
    fn a_missing_module_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut kernel = kernel(directory.path());
        let error = choose(&kernel, &["a", "nix"]).unwrap_err().to_string();
        assert_eq!(error, "kernel test has no module nix, neither built in nor as a file");
        assert!(has(&kernel, "b-b").unwrap());
        assert!(!has(&kernel, "ext4").unwrap());
        assert_eq!(lacking(&kernel, &["nix", "a", "b-b", "ext4"]).unwrap(), ["nix"]);
        kernel.modules = None;
        assert!(!has(&kernel, "b-b").unwrap());
        assert_eq!(lacking(&kernel, &["nix"]).unwrap(), [""; 0]);
        assert!(matches!(choose(&kernel, &["a"]), Err(Error::NoModules { .. })));
        assert_eq!(choose::<&str>(&kernel, &[]).unwrap(), []);
    }

    #[test]
    fn modules_are_decompressed() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, bytes).unwrap();
            Module { name: "m".into(), path, optional: false }.read()
        };
        assert_eq!(read("m.ko", b"\x7fELF").unwrap(), b"\x7fELF");
        let packed = zstd::encode_all(&b"\x7fELF module"[..], 1).unwrap();
        assert_eq!(read("m.ko.zst", &packed).unwrap(), b"\x7fELF module");
        let path = |name: &str| directory.path().join(name);
        let module = |name: &str| Module { name: "m".into(), path: path(name), optional: false };
        assert!(!module("m.ko").is_in_tree().unwrap());
        fs::write(path("in.ko"), b"\x7fELF\0license=GPL\0intree=Y\0name=in\0").unwrap();
        fs::write(path("out.ko"), b"\x7fELF\0description=not intree=Y\0intree=Yes\0").unwrap();
        assert!(module("in.ko").is_in_tree().unwrap() && !module("out.ko").is_in_tree().unwrap());
        let error = read("m.ko.gz", b"\x1f\x8bdamaged").unwrap_err().to_string();
        assert!(error.contains("m.ko.gz"), "{error}");
    }
}
