//! External modules: of the laboratory's own, built against the headers of a kernel by the kernel's
//! own build system (`Documentation/kbuild/modules.rst`).
//!
//! The compiler is the host's. The programs of the kernel's build are those of its packages, which
//! want the C library that they were linked with: a script in the place of each starts it by the
//! dynamic linker of the tree into which all was unpacked (ld.so(8)). So nothing has to be installed
//! but a compiler and `make`, and no privilege is needed.

use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::assemble::{digest, is_no_link, names};
use crate::error::Doing;
use crate::tool::{GCC, MAKE, is_of_host};

/// The source of an external module, in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The module's name.
    pub name: &'static str,
    /// What is compiled.
    pub text: &'static str,
}

/// Where the module is built, in the tree of the headers.
const PLACE: &str = "module";

/// What of the kernel's configuration a module is built without (`make`'s command line wins over
/// it): what only debuggers read, what `pahole` would be needed for, compression, and a flag that
/// compilers before GCC 14 lack and that moves nothing but the starts of functions.
const ARGUMENTS: [&str; 6] = [
    "CC=gcc",
    "CONFIG_DEBUG_INFO=",
    "CONFIG_DEBUG_INFO_BTF_MODULES=",
    "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
    "CONFIG_GCC_PLUGINS=",
    "CONFIG_MODULE_COMPRESS=",
];

/// Some programs of the packages only choose another, by the kind of machine; these are the ends of
/// the right ones' names.
const VARIANTS: [&str; 2] = ["real-lsb-64", "real-x86"];

impl Source {
    /// What tells builds of different sources, or by different recipes, apart.
    pub(crate) fn digest(&self) -> String {
        digest([&[self.name, self.text], &ARGUMENTS[..]].concat().join("\n").as_bytes())
    }

    /// Builds the module for the kernel `release`, whose headers were unpacked into `root`. Gives
    /// its file below `root`, or the compiler's first complaint: then the kernel is not one for it.
    ///
    /// # Errors
    /// When compiler or `make` are missing, or the host has no room or no right for the build.
    pub(crate) fn build(
        &self,
        root: &Path,
        release: &str,
    ) -> Result<Result<PathBuf, String>, Error> {
        let root = &root.canonicalize().doing("read", root)?;
        let headers = root.join("usr/src").join(format!("linux-headers-{release}"));
        relocate(&headers.join("Makefile"), root)?;
        wrap(root)?;
        let place = root.join(PLACE);
        fs::create_dir_all(&place).doing("create", &place)?;
        let write = |name: &str, text: &str| {
            let path = place.join(name);
            fs::write(&path, text).doing("write", &path)
        };
        write(&format!("{}.c", self.name), self.text)?;
        write("Kbuild", &format!("obj-m := {}.o\n", self.name))?;
        GCC.run(GCC.command().arg("--version"))?;
        let mut make = MAKE.command();
        // A `make` around this one, or a user's settings, would have a say.
        let kept = ["PATH", "LC_ALL"];
        for (name, _) in env::vars_os().filter(|(name, _)| !kept.iter().any(|kept| name == kept)) {
            make.env_remove(name);
        }
        make.arg("-C").arg(&headers).arg(format!("M={}", place.display()));
        match MAKE.run(make.args(ARGUMENTS).arg("modules")) {
            Ok(_) => Ok(Ok(place.join(format!("{}.ko", self.name)))),
            Err(Error::Tool { problem, .. }) if !is_of_host(&problem) => Ok(Err(problem)),
            Err(error) => Err(error),
        }
    }
}

/// The packages expect their files below `/usr/src`.
fn relocate(makefile: &Path, root: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(makefile).doing("read", makefile)?;
    let text = text.replace("/usr/src/", &format!("{}/usr/src/", root.display()));
    fs::write(makefile, text).doing("write", makefile)
}

/// Puts a script in the place of each program of the kernel's build, which starts it with the
/// libraries below `root`.
fn wrap(root: &Path) -> Result<(), Error> {
    let libraries = ["lib", "usr/lib"].map(|place| root.join(place).join("x86_64-linux-gnu"));
    let linker = |place: &PathBuf| place.join("ld-linux-x86-64.so.2");
    let linker = libraries.iter().map(linker).find(|path| path.exists());
    let Some(linker) = linker else {
        let problem = "the packages of its libraries hold no dynamic linker".to_owned();
        return Err(Error::NoKernel { path: root.to_owned(), problem });
    };
    let [lib, usr] = libraries;
    let start = format!(
        "#!/bin/sh\nexec '{}' --library-path '{}:{}'",
        linker.display(),
        lib.display(),
        usr.display()
    );
    let library = root.join("usr/lib");
    for name in names(&library)? {
        if name.starts_with("linux-kbuild-") {
            wrap_all(&library.join(name), &start)?;
        }
    }
    Ok(())
}

fn wrap_all(directory: &Path, start: &str) -> Result<(), Error> {
    for name in names(directory)? {
        let path = directory.join(&name);
        if path.is_dir() && is_no_link(&path) {
            wrap_all(&path, start)?;
        } else if !name.contains(".real-") && is_no_link(&path) && is_program(&path)? {
            let beside = |ending: &str| path.with_file_name(format!("{name}.{ending}"));
            let real = VARIANTS.map(beside).into_iter().find(|variant| variant.is_file());
            let real = match real {
                Some(real) => real,
                None => {
                    let real = beside("real-program");
                    fs::rename(&path, &real).doing("move", &path)?;
                    real
                }
            };
            let script = format!("{start} '{}' \"$@\"\n", real.display());
            fs::write(&path, script).doing("write", &path)?;
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&path, executable).doing("write", &path)?;
        }
    }
    Ok(())
}

/// Whether a file is a program of the machine's own kind.
fn is_program(path: &Path) -> Result<bool, Error> {
    let is_executable = path.metadata().doing("read", path)?.permissions().mode() & 0o111 != 0;
    let mut magic = Vec::new();
    let file = fs::File::open(path).doing("read", path)?;
    file.take(4).read_to_end(&mut magic).doing("read", path)?;
    Ok(is_executable && magic == b"\x7fELF")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source { name: "some", text: "int some;\n" };
    const LIBRARIES: &str = "lib/x86_64-linux-gnu";

    /// A tree as the packages make it, whose build does `command` with a program of its own, `cat`.
    fn tree(command: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("usr/src/linux-headers-1-x/Makefile", "include /usr/src/linux-headers-1-common/m\n");
        let tool = format!("{}/usr/lib/linux-kbuild-1/scripts/copy", directory.path().display());
        let rule = command.replace("TOOL", &tool);
        write("usr/src/linux-headers-1-common/m", &format!("modules:\n\t@{rule}\n"));
        write("usr/lib/linux-kbuild-1/scripts/Makefile.build", "");
        for (from, to) in [
            ("/bin/cat", "usr/lib/linux-kbuild-1/scripts/copy"),
            ("/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
            ("/lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
        ] {
            let to = directory.path().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        directory
    }

    #[test]
    fn a_module_is_built_with_the_programs_and_libraries_of_the_tree() {
        let tree =
            tree("TOOL $(M)/some.c $(M)/Kbuild > $(M)/some.ko; TOOL /proc/self/maps > $(M)/m");
        let built = SOURCE.build(tree.path(), "1-x").unwrap().unwrap();
        assert_eq!(fs::read_to_string(&built).unwrap(), "int some;\nobj-m := some.o\n");
        let maps = fs::read_to_string(built.with_file_name("m")).unwrap();
        let libc = tree.path().canonicalize().unwrap().join(LIBRARIES).join("libc.so.6");
        assert!(maps.contains(libc.to_str().unwrap()), "{maps}");
    }

    #[test]
    fn what_the_compiler_complained_of_is_told() {
        let tree = tree("echo 'some.c:1:1: error: not for this kernel' >&2; exit 1");
        let complaint = SOURCE.build(tree.path(), "1-x").unwrap().unwrap_err();
        assert_eq!(complaint, "some.c:1:1: error: not for this kernel");
    }

    #[test]
    fn a_host_that_cannot_build_says_nothing_of_the_kernel() {
        let complaint =
            |command: &str| SOURCE.build(tree(command).path(), "1-x").unwrap_err().to_string();
        let full = complaint("TOOL $(M)/some.c > /dev/full");
        assert!(full.starts_with("make failed: ") && full.contains("No space left"), "{full}");
        let script = "printf 'ld: x.ko: Permission denied\\nld: error: gone\\n' >&2; exit 1";
        assert_eq!(complaint(script), "make failed: ld: x.ko: Permission denied");
    }

    #[test]
    fn libraries_that_are_missing_are_told() {
        let tree = tree("true");
        fs::remove_dir_all(tree.path().join(LIBRARIES)).unwrap();
        let error = SOURCE.build(tree.path(), "1-x").unwrap_err().to_string();
        assert!(error.contains("no dynamic linker"), "{error}");
    }

    #[test]
    fn builds_are_told_apart_by_what_was_built() {
        assert_ne!(SOURCE.digest(), Source { text: "int other;\n", ..SOURCE }.digest());
    }
}
