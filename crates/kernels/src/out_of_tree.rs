//! Builds our own out-of-tree modules with the headers of a kernel and the kernel's own build system
//! (`Documentation/kbuild/modules.rst`).
//!
//! The compiler is the host's, of the same kind as the one that built the kernel. The programs of the kernel's build
//! come from its packages and need the C library with which they were linked. Therefore each is replaced by a script
//! that starts it with the dynamic linker of the unpacked tree (ld.so(8)). The host needs only a compiler and `make`,
//! and no privileges.
//!
//! A failure of the host is an error. The kernel is the cause only if a working compiler rejects the source
//! with the kernel's own headers.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::assemble::{digest, is_no_link, names};
use crate::error::Doing;
use crate::tool::{CLANG, GCC, LLVM, MAKE, Tool, is_installed, is_of_host, llvm};
use crate::{Error, confine};

/// The source of an external module, in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The module's name, which is also the name of its file.
    pub name: &'static str,
    /// The text of the source, in C.
    pub text: &'static str,
}

/// The directory of the module within the tree of the headers.
const PLACE: &str = "module";

/// Options of the kernel's configuration that are disabled (`make`'s command line overrides them): debug
/// information, options that need `pahole`, compression, and a flag that compilers before GCC 14 lack and
/// that only affects the alignment of functions.
const ARGUMENTS: [&str; 5] = [
    "CONFIG_DEBUG_INFO=",
    "CONFIG_DEBUG_INFO_BTF_MODULES=",
    "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
    "CONFIG_GCC_PLUGINS=",
    "CONFIG_MODULE_COMPRESS=",
];

/// Some programs of the packages only start another program for the architecture. These are the suffixes of the
/// programs for x86-64.
const VARIANTS: [&str; 2] = ["real-lsb-64", "real-x86"];

impl Source {
    /// A digest of the source and the recipe of the build.
    pub(crate) fn digest(&self) -> String {
        digest([&[self.name, self.text], &ARGUMENTS[..]].concat().join("\n").as_bytes())
    }

    /// Builds the module for the kernel `release`, whose headers packages are unpacked in `root`. See
    /// [`Self::build`].
    pub(crate) fn build_packaged(
        &self,
        root: &Path,
        release: &str,
        confined: &[OsString],
    ) -> Result<Result<PathBuf, String>, Error> {
        let root = &root.canonicalize().doing("read", root)?;
        let headers = root.join("usr/src").join(format!("linux-headers-{release}"));
        relocate(&headers.join("Makefile"), root)?;
        wrap(root)?;
        self.build(&headers, &root.join(PLACE), confined)
    }

    /// Builds the module in the directory `place` with the headers of a kernel, whose programs can run on
    /// this host. `confined` are the words before `make` that confine it. Returns its file, or the compiler's
    /// message if the source does not fit the kernel. Fails when the host cannot build it: any failure except
    /// errors of a working compiler in the source itself.
    pub(crate) fn build(
        &self,
        headers: &Path,
        place: &Path,
        confined: &[OsString],
    ) -> Result<Result<PathBuf, String>, Error> {
        fs::create_dir_all(place).doing("create", place)?;
        let place = place.canonicalize().doing("read", place)?;
        let write = |name: &str, text: &str| {
            let path = place.join(name);
            fs::write(&path, text).doing("write", &path)
        };
        write(&format!("{}.c", self.name), self.text)?;
        write("Kbuild", &format!("obj-m := {}.o\n", self.name))?;
        let compiler = Toolchain::of(headers)?;
        compiler.try_out(&place)?;
        let mut make = confine::command(&MAKE, confined);
        // An outer `make` or the user's settings would influence the build.
        let kept = ["PATH", "LC_ALL"];
        for (name, _) in env::vars_os().filter(|(name, _)| !kept.iter().any(|kept| name == kept)) {
            make.env_remove(name);
        }
        make.arg("-C").arg(headers).arg(format!("M={}", place.display()));
        make.args(ARGUMENTS).args([&compiler.argument, "modules"]);
        if let Err(failed) = MAKE.try_run(&mut make)? {
            let complaint = self.complaint(&failed);
            return complaint.map(Err).ok_or_else(|| MAKE.failed(&failed));
        }
        let built = place.join(format!("{}.ko", self.name));
        if !is_object(&built)? {
            let problem = "it made no module and printed no error".to_owned();
            return Err(Error::Tool { tool: MAKE.name, problem });
        }
        Ok(Ok(built))
    }

    /// The first error in the source itself, or a symbol that the kernel does not export. `None` if any
    /// message is about the host.
    fn complaint(&self, failed: &Output) -> Option<String> {
        let said = String::from_utf8_lossy(&failed.stderr);
        if failed.status.signal().is_some() || said.lines().any(is_of_host) {
            return None;
        }
        let file = format!("{}.c:", self.name);
        // `FILE:LINE:COLUMN: error: ...`, or `fatal error`.
        let is_in_source = |line: &&str| {
            let (place, _) = line.split_once(" error: ").unwrap_or_default();
            let place = place.strip_suffix(" fatal").unwrap_or(place);
            let name = place.rsplit('/').next().unwrap_or_default();
            name.starts_with(&file) && !place.contains(' ')
        };
        // `ERROR: modpost: "SYMBOL" [FILE] undefined!`. A symbol that is not in the source comes from the
        // compiler.
        let is_of_symbol = |line: &&str| {
            let symbol = line.split('"').nth(1).unwrap_or_default();
            line.starts_with("ERROR: ")
                && line.ends_with("undefined!")
                && !symbol.is_empty()
                && self.text.contains(symbol)
        };
        let line = said.lines().find(is_in_source).or_else(|| said.lines().find(is_of_symbol));
        line.map(|line| line.trim().to_owned())
    }
}

/// A directory in which the kernel's build works, which allows no spaces and commas in paths. This is
/// `stage`, or a temporary directory if the path of `stage` has such characters.
pub(crate) fn workshop(stage: TempDir) -> Result<TempDir, Error> {
    if is_plain(stage.path())? {
        return Ok(stage);
    }
    let temporary = env::temp_dir();
    if !is_plain(&temporary)? {
        return Err(Error::BuildPath { cache: stage.path().to_owned(), temporary });
    }
    tempfile::Builder::new()
        .prefix("faultline-")
        .tempdir_in(&temporary)
        .doing("write into", &temporary)
}

/// Whether a path has only characters without a special meaning to `make`, shells and compilers.
fn is_plain(path: &Path) -> Result<bool, Error> {
    let path = path.canonicalize().doing("read", path)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._+-@".contains(byte);
    Ok(path.as_os_str().as_bytes().iter().all(is_plain))
}

/// A compiler for modules.
struct Toolchain {
    tool: Tool,
    program: String,
    /// The word for `make` that chooses it.
    argument: String,
}

impl Toolchain {
    /// The compiler that modules for the kernel of these headers need: GCC or Clang, like the kernel's own,
    /// because each has flags that the other lacks. Clang of the kernel's version has precedence.
    fn of(headers: &Path) -> Result<Self, Error> {
        let path = headers.join("include/config/auto.conf");
        let options = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            options => options.doing("read", &path)?,
        };
        let value =
            |name| options.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        if value("CONFIG_CC_IS_CLANG") != Some("y") {
            return Ok(Self { tool: GCC, program: GCC.name.into(), argument: "CC=gcc".into() });
        }
        // 140006 is version 14.0.6 (`scripts/cc-version.sh`).
        let version = value("CONFIG_CLANG_VERSION").and_then(|it| it.parse::<u32>().ok());
        let suffix = version.map(|version| format!("-{}", version / 10_000));
        let is_there = |suffix: &String| {
            LLVM.iter().all(|(program, _)| is_installed(&format!("{program}{suffix}")))
        };
        let suffix = suffix.filter(is_there).unwrap_or_default();
        let program = format!("{}{suffix}", CLANG.name);
        Ok(Self { tool: CLANG, program, argument: llvm(&suffix) })
    }

    /// Compiles a minimal file. If that fails, the compiler is at fault, not the kernel.
    fn try_out(&self, place: &Path) -> Result<(), Error> {
        let path = place.join("try.c");
        fs::write(&path, "int nothing;\n").doing("write", &path)?;
        let object = place.join("try.o");
        let mut command = Command::new(&self.program);
        command.env("LC_ALL", "C").arg("-c").arg(&path).arg("-o").arg(&object);
        self.tool.run(&mut command)?;
        if is_object(&object)? {
            return Ok(());
        }
        let problem = "it compiled nothing and printed no error".to_owned();
        Err(Error::Tool { tool: self.tool.name, problem })
    }
}

/// The packages expect their files below `/usr/src`.
fn relocate(makefile: &Path, root: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(makefile).doing("read", makefile)?;
    let text = text.replace("/usr/src/", &format!("{}/usr/src/", root.display()));
    fs::write(makefile, text).doing("write", makefile)
}

/// Replaces each program of the kernel's build by a script that starts it with the libraries below `root`.
fn wrap(root: &Path) -> Result<(), Error> {
    let libraries = ["lib", "usr/lib"].map(|place| root.join(place).join("x86_64-linux-gnu"));
    let linker = |place: &PathBuf| place.join("ld-linux-x86-64.so.2");
    let linker = libraries.iter().map(linker).find(|path| path.exists());
    let Some(linker) = linker else {
        let problem = "the packages of its libraries have no dynamic linker".to_owned();
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

/// Whether a file is a program for this machine.
fn is_program(path: &Path) -> Result<bool, Error> {
    let is_executable = path.metadata().doing("read", path)?.permissions().mode() & 0o111 != 0;
    Ok(is_executable && is_object(path)?)
}

/// Whether a file exists and starts like compiler output.
fn is_object(path: &Path) -> Result<bool, Error> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file.doing("read", path)?,
    };
    let mut magic = Vec::new();
    file.take(4).read_to_end(&mut magic).doing("read", path)?;
    Ok(magic == b"\x7fELF")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source { name: "some", text: "int some;\n" };
    const LIBRARIES: &str = "lib/x86_64-linux-gnu";

    /// A tree like that of the packages. Its build runs `command` with `cat` as one of its own programs.
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
        let tree = tree(
            "TOOL $(M)/try.o > $(M)/some.ko; TOOL $(M)/some.c $(M)/Kbuild > $(M)/m; \
             TOOL /proc/self/maps >> $(M)/m",
        );
        let built = SOURCE.build_packaged(tree.path(), "1-x", &[]).unwrap().unwrap();
        assert!(is_object(&built).unwrap());
        let text = fs::read_to_string(built.with_file_name("m")).unwrap();
        assert!(text.starts_with("int some;\nobj-m := some.o\n"), "{text}");
        let libc = tree.path().canonicalize().unwrap().join(LIBRARIES).join("libc.so.6");
        assert!(text.contains(libc.to_str().unwrap()), "{text}");
    }

    #[test]
    fn the_compiler_is_of_the_kernels_kind() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("include/config");
        fs::create_dir_all(&config).unwrap();
        let argument = |options: &str| {
            fs::write(config.join("auto.conf"), options).unwrap();
            Toolchain::of(directory.path()).unwrap().argument
        };
        assert_eq!(argument("CONFIG_CC_IS_GCC=y\nCONFIG_CLANG_VERSION=0\n"), "CC=gcc");
        // No host has this version.
        assert_eq!(argument("CONFIG_CC_IS_CLANG=y\nCONFIG_CLANG_VERSION=9900001\n"), "LLVM=1");
        assert_eq!(argument("CONFIG_CC_IS_CLANG=y\n"), "LLVM=1");
    }

    #[test]
    fn a_source_that_does_not_fit_is_the_kernels_failure() {
        for complaint in [
            "some.c:1:1: error: not for this kernel",
            "/x/module/some.c:5:10: fatal error: linux/some.h: No such file or directory",
            r#"ERROR: modpost: "some" [/x/module/some.ko] undefined!"#,
        ] {
            let tree = tree(&format!("echo noise >&2; echo '{complaint}' >&2; exit 1"));
            assert_eq!(
                SOURCE.build_packaged(tree.path(), "1-x", &[]).unwrap().unwrap_err(),
                complaint
            );
        }
    }

    #[test]
    fn a_failure_of_the_host_is_an_error() {
        let complaint = |command: &str| {
            SOURCE.build_packaged(tree(command).path(), "1-x", &[]).unwrap_err().to_string()
        };
        let full = complaint("TOOL $(M)/some.c > /dev/full");
        assert!(full.starts_with("make failed: ") && full.contains("No space left"), "{full}");
        let says = |line: &str| complaint(&format!("echo \"{line}\" >&2; exit 1"));
        for line in [
            "gcc: error: unrecognized command-line option '-fsome'",
            "/x/headers/include/linux/mm.h:7:1: error: unknown type name 'folio'",
            "gcc: fatal error: Killed signal terminated program cc1",
            "some.c:1:1: internal compiler error: Segmentation fault",
            "/bin/sh: 1: gcc: not found",
            "ERROR: modpost: \\\"mcount\\\" [/x/module/some.ko] undefined!",
            "Makefile:8: *** mixed implicit and normal rules.  Stop.",
        ] {
            let expected = format!("make failed: {}", line.replace('\\', ""));
            assert!(says(line).starts_with(&expected), "{line}");
        }
        let script = "printf 'some.c:1:1: error: x\\nld: x.ko: Permission denied\\n' >&2; exit 1";
        assert_eq!(complaint(script), "make failed: ld: x.ko: Permission denied");
        assert_eq!(complaint("true"), "make failed: it made no module and printed no error");
        let empty = complaint("touch $(M)/some.ko");
        assert_eq!(empty, "make failed: it made no module and printed no error");
    }

    /// The message of a build in which a host program is replaced by a script.
    fn with_fake(name: &str, script: &str) -> String {
        let fakes = tempfile::tempdir().unwrap();
        let fake = fakes.path().join(name);
        fs::write(&fake, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", fakes.path().display(), env::var("PATH").unwrap());
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "out_of_tree::tests::builder", "--nocapture"])
            .env("PATH", path)
            .env(BUILD, "1")
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&child.stdout).into_owned();
        let told = out.lines().find_map(|line| line.strip_prefix("told: "));
        told.unwrap_or_else(|| panic!("{out}{}", String::from_utf8_lossy(&child.stderr))).to_owned()
    }

    const BUILD: &str = "FAULTLINE_TEST_BUILD";

    /// Builds and reports the result. Runs only in a process that a test below starts.
    #[test]
    fn builder() {
        if env::var_os(BUILD).is_some() {
            let tree = tree("gcc -c $(M)/some.c -o $(M)/some.ko");
            let built = SOURCE.build_packaged(tree.path(), "1-x", &[]);
            let built = built.map(|built| built.map(|_| "built"));
            let line = built.map_err(|error| error.to_string());
            println!("\ntold: {}", format!("{line:?}").replace('\n', " "));
        }
    }

    #[test]
    fn failures_of_host_programs_are_errors() {
        for (name, script, expected) in [
            ("gcc", "exec /usr/bin/gcc \"$@\"", "Ok(Ok(\"built\"))"),
            ("gcc", "exit 1", "Err(\"gcc failed: exit status: 1\")"),
            ("gcc", "exit 0", "Err(\"gcc failed: it compiled nothing and printed no error\")"),
            (
                "gcc",
                "echo 'some.c:1:1: error: broken' >&2; exit 1",
                "Err(\"gcc failed: some.c:1:1: error: broken\")",
            ),
            (
                "gcc",
                "case \"$*\" in *try.c*) exec /usr/bin/gcc \"$@\";; esac; kill -SEGV $$",
                "Err(\"make failed: ",
            ),
            ("make", "exit 2", "Err(\"make failed: exit status: 2\")"),
            ("make", "kill -KILL $$", "Err(\"make failed: signal: 9"),
            ("make", "exit 0", "Err(\"make failed: it made no module and printed no error\")"),
        ] {
            let told = with_fake(name, script);
            assert!(told.starts_with(expected), "{name}: {script}: {told}");
        }
    }

    #[test]
    fn paths_with_special_characters_are_avoided() {
        let directory = tempfile::tempdir().unwrap();
        let stage = |name: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(&path).unwrap();
            TempDir::new_in(&path).unwrap()
        };
        let plain = workshop(stage("a")).unwrap();
        assert!(plain.path().starts_with(directory.path()));
        for name in ["a b", "a,b", "a:b", "a%b", "a$b", "a'b", "\u{e4}"] {
            let elsewhere = workshop(stage(name)).unwrap();
            assert!(!elsewhere.path().starts_with(directory.path()));
            assert!(is_plain(elsewhere.path()).unwrap());
        }
    }

    #[test]
    fn a_missing_dynamic_linker_is_an_error() {
        let tree = tree("true");
        fs::remove_dir_all(tree.path().join(LIBRARIES)).unwrap();
        let error = SOURCE.build_packaged(tree.path(), "1-x", &[]).unwrap_err().to_string();
        assert!(error.contains("no dynamic linker"), "{error}");
    }

    #[test]
    fn the_digest_depends_on_the_source() {
        assert_ne!(SOURCE.digest(), Source { text: "int other;\n", ..SOURCE }.digest());
    }
}
