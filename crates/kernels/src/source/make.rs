//! Configures and builds a kernel with its own build system. The image does not depend on the host, the user or the
//! time: names and times are fixed, and paths are relative, because the output directory is below the source
//! (`Documentation/kbuild/reproducible-builds.rst`).

use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use model::{Architecture, Compiler, TaskLayout};
use object::{Object, ObjectSymbol};

use super::config::Requested;
use super::{Unbuilt, build_message};
use crate::Error;
use crate::arch::{self, Recipe};
use crate::built::has_debug_information;
use crate::error::Doing;
use crate::tool::{LLVM, Tool, is_installed, is_of_host, llvm};

/// The suffix of the file with the seconds that the last build took that was not a clean one.
pub(crate) const SECONDS: &str = "seconds";
/// Variables of every build.
const FIXED: [(&str, &str); 6] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu, 1 Jan 1970 00:00:00 +0000"),
    ("KBUILD_BUILD_USER", "faultline"),
    ("KBUILD_BUILD_HOST", "faultline"),
    ("KBUILD_BUILD_VERSION", "1"),
    // Otherwise a `+` is added in a repository.
    ("LOCALVERSION", ""),
    ("LC_ALL", "C"),
];
/// The assumed number of steps of a clean build for each option that is built in, until a build was counted. Linux 7.3
/// had 2,683 for 1,253 options of a package's configuration, and about 1,500 for the 580 of the small one.
const STEPS_OF_OPTION: f64 = 2.3;
/// Time between two lines of progress.
const INTERVAL: Duration = Duration::from_secs(20);
/// How many of the last lines of a failed build are kept.
const LAST_LINES: usize = 40;
/// The size limit of ccache's files.
const CCACHE_SIZE: &str = "4G";
/// The program whose compilation tells where fields of a task are, by the sizes of its symbols.
const LAYOUT: &str = "#include <linux/sched.h>\n\
    char faultline_tgid[__builtin_offsetof(struct task_struct, tgid)];\n\
    char faultline_comm[__builtin_offsetof(struct task_struct, comm)];\n";

/// Options of the linker for an object that is linked alone.
const ALONE: &str = "-e 0 --unresolved-symbols=ignore-all --noinhibit-exec";

/// The directories, the compiler and the confinement of a build.
pub(crate) struct Workshop<'a> {
    /// The source, with the output directory below.
    pub source: PathBuf,
    /// The directory of ccache's files.
    pub ccache: PathBuf,
    /// The architecture that the kernel is for.
    pub arch: Architecture,
    /// The compiler that builds the kernel.
    pub compiler: &'a Compiler,
    /// The lock of builds, which the programs of the build get as their standard input.
    pub lock: &'a File,
    /// The words that confine the programs of the build.
    pub confined: Vec<OsString>,
}

/// The programs that build kernels, and the Debian packages that have them.
fn programs(compiler: &Compiler, arch: Architecture) -> Vec<(String, String)> {
    let Recipe { prefix, package, .. } = arch::recipe(arch);
    let mut wanted: Vec<(String, String)> =
        [("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("perl", "perl")]
            .map(|(program, package)| (program.to_owned(), package.to_owned()))
            .into();
    wanted.push(("gcc".into(), "gcc".into())); // programs of the build itself
    match compiler {
        Compiler::Gcc(suffix) => {
            wanted.push((format!("{prefix}gcc{suffix}"), with_version(package, suffix)));
        }
        Compiler::Llvm(suffix) => {
            for (program, package) in LLVM {
                wanted.push((format!("{program}{suffix}"), format!("{package}{suffix}")));
            }
        }
    }
    wanted
}

/// The name of a package of GCC of some version, such as `gcc-14-aarch64-linux-gnu`.
fn with_version(package: &str, suffix: &str) -> String {
    package.replacen("gcc", &format!("gcc{suffix}"), 1)
}

/// Checks that everything for a build is installed. The error has the names of all missing packages.
pub(crate) fn check_programs(compiler: &Compiler, arch: Architecture) -> Result<(), Error> {
    let mut missing: Vec<String> = programs(compiler, arch)
        .into_iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(_, package)| package)
        .collect();
    let headers = ["/usr/include/gelf.h", "/usr/include/libelf/gelf.h"];
    if !headers.iter().any(|header| Path::new(header).exists()) {
        missing.push("libelf-dev".into());
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::NoBuildTools(missing.join(" "))),
    }
}

/// The first lines that compiler and linker print about their versions, which are part of a kernel's inputs.
pub(crate) fn versions(compiler: &Compiler, arch: Architecture) -> Result<String, Error> {
    let prefix = arch::recipe(arch).prefix;
    let (cc, ld) = match compiler {
        Compiler::Gcc(suffix) => (format!("{prefix}gcc{suffix}"), format!("{prefix}ld")),
        Compiler::Llvm(suffix) => (format!("clang{suffix}"), format!("ld.lld{suffix}")),
    };
    let first = |program: &str| {
        let output = Command::new(program).arg("--version").env("LC_ALL", "C").output();
        let output = output.doing("start", Path::new(program))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok::<_, Error>(text.lines().next().unwrap_or_default().to_owned())
    };
    Ok(format!("{}; {}", first(&cc)?, first(&ld)?))
}

impl Workshop<'_> {
    fn recipe(&self) -> &'static Recipe {
        arch::recipe(self.arch)
    }

    /// The output directory.
    pub fn output(&self) -> PathBuf {
        self.source.join(self.recipe().output)
    }

    /// Removes the output if the last build did not end well. A killed compiler leaves halves of files.
    fn begin(&self) -> Result<PathBuf, Error> {
        let mark = self.source.with_extension("unfinished");
        let output = self.output();
        if mark.exists() && output.exists() {
            fs::remove_dir_all(&output).doing("clear", &output)?;
        }
        fs::write(&mark, "").doing("write", &mark)?;
        Ok(mark)
    }

    /// Configures and builds. The inner error is why this kernel cannot be built.
    pub fn build(
        &self,
        name: &str,
        requested: &Requested,
        modules: bool,
        say: &dyn Fn(&str),
    ) -> Result<Result<(), Unbuilt>, Error> {
        let mark = self.begin()?;
        let built = match self.configure(requested)? {
            Ok(_) => self.compile(name, modules, say)?,
            Err(lost) => Err(lost),
        };
        // `make` itself removes what it did not complete.
        fs::remove_file(&mark).doing("remove", &mark)?;
        Ok(built)
    }

    /// Configures, and makes only these objects. Those that cannot be made are left out. The inner error is why this kernel
    /// cannot be configured.
    pub fn build_objects(
        &self,
        requested: &Requested,
        objects: &BTreeSet<PathBuf>,
    ) -> Result<Result<(), Unbuilt>, Error> {
        let mark = self.begin()?;
        let built = match self.configure(requested)? {
            Err(lost) => Err(lost),
            Ok(_) if objects.is_empty() => Ok(()),
            Ok(_) => {
                let mut make = self.make()?;
                make.arg("-k").args(objects);
                self.run(make, &mut |_| ())?;
                Ok(())
            }
        };
        fs::remove_file(&mark).doing("remove", &mark)?;
        Ok(built)
    }

    /// Makes the finished configuration. The inner error is why this kernel cannot have it.
    pub fn configure(&self, requested: &Requested) -> Result<Result<String, Unbuilt>, Error> {
        let output = self.output();
        fs::create_dir_all(&output).doing("create", &output)?;
        let (config, wanted) = (output.join(".config"), output.join("wanted.config"));
        let mut make = self.make()?;
        if requested.base.is_none() {
            fs::write(&wanted, requested.text()).doing("write", &wanted)?;
            make.env("KCONFIG_ALLCONFIG", &wanted).arg("allnoconfig");
        } else {
            fs::write(&config, requested.text()).doing("write", &config)?;
            make.arg("olddefconfig");
        }
        let failed = self.run(make, &mut |_| ())?;
        if let Some(failed) = failed {
            return Ok(Err(failed.because("cannot be configured")));
        }
        let finished = fs::read_to_string(&config).doing("read", &config)?;
        let lost = requested.lost(&finished);
        Ok(match lost.is_empty() {
            true => Ok(finished),
            false => Err(Unbuilt(format!(
                "cannot be configured as requested: the kernel's Kconfig does not allow {}",
                lost.join(", ")
            ))),
        })
    }

    fn compile(
        &self,
        name: &str,
        modules: bool,
        say: &dyn Fn(&str),
    ) -> Result<Result<(), Unbuilt>, Error> {
        let is_clean = !self.output().join("vmlinux.o").exists();
        let counted = self.source.with_extension("steps");
        let known = fs::read_to_string(&counted).unwrap_or_default();
        let options = is_clean.then(|| built_in(&self.output())).transpose()?;
        let about = options.map(|options| usual_steps(options, &known));
        say(&format!("Building {name}"));
        let begun = Instant::now();
        let (mut steps, mut told) = (0, begun);
        let mut make = self.make()?;
        make.arg(self.recipe().target).args(modules.then_some("modules"));
        if has_debug_information(&self.output())? {
            // Otherwise the path of the cache gets into the image.
            let map = format!("-fdebug-prefix-map={}=.", self.output().display());
            make.args([format!("KCFLAGS={map}"), format!("KAFLAGS={map}")]);
        }
        let failed = self.run(make, &mut |line| {
            steps += usize::from(is_step(line));
            if told.elapsed() >= INTERVAL {
                told = Instant::now();
                say(&build_message(name, steps, about, begun.elapsed()));
            }
        })?;
        if let Some(failed) = failed {
            return Ok(Err(failed.because("does not build")));
        }
        if let Some(options) = options {
            fs::write(&counted, format!("{steps} {options}")).doing("write", &counted)?;
        } else {
            let took = self.source.with_extension(SECONDS);
            fs::write(&took, begun.elapsed().as_secs().to_string()).doing("write", &took)?;
        }
        Ok(Ok(()))
    }

    /// The offsets of fields of a task in the kernel just built, found by compiling a declaration with the command
    /// for `init/main.c`. `None` if the compiler's command is not in the usual file.
    pub fn task_layout(&self) -> Result<Option<TaskLayout>, Error> {
        let output = self.output();
        let Some((compiler, _)) = command_of(&output, Path::new("init/main.o")) else {
            return Ok(None);
        };
        let (source, object) = (output.join("faultline.c"), output.join("faultline.o"));
        fs::write(&source, LAYOUT).doing("write", &source)?;
        let line = format!("{compiler} -Wp,-MMD,faultline.d -c -o faultline.o faultline.c");
        if self.shell(&line)?.is_err() {
            return Ok(None);
        }
        let bytes = fs::read(&object).doing("read", &object)?;
        let Ok(file) = object::File::parse(bytes.as_slice()) else { return Ok(None) };
        let size = |name| file.symbols().find(|it| it.name() == Ok(name)).map(|it| it.size());
        let found = size("faultline_tgid").zip(size("faultline_comm"));
        Ok(found.map(|(tgid, comm)| TaskLayout { tgid, comm }))
    }

    /// Compiles an object of the kernel just built again, with debug information, and links it alone. Addresses of what
    /// other objects define are 0. `None` if that is not possible.
    pub fn with_lines(&self, object: &Path) -> Result<Option<Vec<u8>>, Error> {
        let output = self.output();
        let Some((compiler, source)) = command_of(&output, object) else { return Ok(None) };
        let Recipe { prefix, text, .. } = self.recipe();
        let line = format!(
            "{compiler} -g -gz=none -Wp,-MMD,faultline.d -c -o faultline.o {source} && \
             {prefix}ld -Ttext-segment={text:#x} {ALONE} -o faultline.elf faultline.o"
        );
        if self.shell(&line)?.is_err() {
            return Ok(None);
        }
        let linked = output.join("faultline.elf");
        let bytes = fs::read(&linked).doing("read", &linked)?;
        for made in [linked, output.join("faultline.o")] {
            fs::remove_file(&made).doing("remove", &made)?;
        }
        Ok(Some(bytes))
    }

    /// Runs a line of the shell in the output directory.
    fn shell(&self, line: &str) -> Result<Result<String, Output>, Error> {
        let shell = Tool { name: "sh", hint: "install a shell" };
        let mut command = self.prepare()?;
        command.args(["sh", "-c", line]).current_dir(self.output());
        shell.try_run(&mut command)
    }

    fn make(&self) -> Result<Command, Error> {
        let mut make = self.prepare()?;
        make.args(["nice", "-n", "10", "make", "-C"]).arg(&self.source);
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let Recipe { output, make: chosen, prefix, .. } = self.recipe();
        make.arg(format!("O={output}")).arg(format!("-j{jobs}")).args(*chosen);
        let ccache = if is_installed("ccache") { "ccache " } else { "" };
        match self.compiler {
            Compiler::Gcc(suffix) => {
                if !prefix.is_empty() {
                    make.arg(format!("CROSS_COMPILE={prefix}"));
                }
                make.arg(format!("CC={ccache}{prefix}gcc{suffix}"))
            }
            Compiler::Llvm(suffix) => {
                make.arg(llvm(suffix)).arg(format!("CC={ccache}clang{suffix}"))
            }
        };
        Ok(make)
    }

    /// The beginning of a command of the build. It is confined, ends with this process, and does not have the user's
    /// settings, which could influence a build.
    fn prepare(&self) -> Result<Command, Error> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).args(&self.confined);
        let lock = self.lock.try_clone().doing("start", Path::new("setpriv"))?;
        command.env_clear().envs(FIXED).stdin(lock);
        command.env("PATH", env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
        command.env("CCACHE_DIR", &self.ccache).env("CCACHE_MAXSIZE", CCACHE_SIZE);
        command.env("CCACHE_BASEDIR", &self.source).env("CCACHE_NOHASHDIR", "1");
        Ok(command)
    }

    /// Runs a command of the build, with its output in `build.log`. Returns `None` if it succeeds, or else why the
    /// kernel cannot be built. Fails when the host fails.
    fn run(
        &self,
        mut command: Command,
        line: &mut dyn FnMut(&str),
    ) -> Result<Option<Failed>, Error> {
        let log = self.source.with_extension("log");
        let mut file = File::create(&log).doing("create", &log)?;
        let (reader, writer) = std::io::pipe().doing("start", Path::new("make"))?;
        let errors = writer.try_clone().doing("start", Path::new("make"))?;
        let child = command.stdout(writer).stderr(errors).spawn();
        let mut child = child.doing("start", Path::new("setpriv"))?;
        drop(command); // it holds the pipe's other end
        let mut failed = Failed::default();
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while reader.by_ref().take(1 << 16).read_until(b'\n', &mut bytes).doing("read", &log)? > 0 {
            file.write_all(&bytes).doing("write", &log)?;
            let text = String::from_utf8_lossy(&bytes);
            line(text.trim_end());
            failed.add(text.trim_end());
            bytes.clear();
        }
        let status = child.wait().doing("run", Path::new("make"))?;
        if status.success() {
            return Ok(None);
        }
        if let Some(problem) = failed.of_host.take() {
            return Err(Error::Tool { tool: "make", problem });
        }
        if failed.last.is_empty() || status.signal().is_some() {
            return Err(Error::Tool { tool: "make", problem: status.to_string() });
        }
        Ok(Some(failed))
    }
}

/// The compiler with its options, and the source, of an object in the output directory, as Kbuild kept them. `None` if
/// its command is not in the usual file or form.
pub(crate) fn command_of(output: &Path, object: &Path) -> Option<(String, String)> {
    let name = format!(".{}.cmd", object.file_name()?.to_str()?);
    let kept = fs::read_to_string(output.join(object.with_file_name(name))).ok()?;
    // `cmd_init/main.o := gcc ... -c -o init/main.o ../init/main.c`, since 6.3 `savedcmd_...`; `; objtool ...` may follow
    let (_, command) = kept.lines().next()?.split_once(" := ")?;
    let (compiler, rest) = command.split_once(" -c -o ")?;
    let source = rest.split_whitespace().nth(1)?;
    Some((compiler.to_owned(), source.to_owned()))
}

/// The number of options that are built into a kernel, by the configuration in the directory of its build.
fn built_in(output: &Path) -> Result<usize, Error> {
    let config = output.join(".config");
    let config = fs::read_to_string(&config).doing("read", &config)?;
    Ok(config.lines().filter(|line| line.ends_with("=y")).count())
}

/// Returns how many steps a clean build with this number of built-in options has, from the last one that was counted:
/// its steps, and its options.
fn usual_steps(options: usize, counted: &str) -> usize {
    let mut numbers = counted.split_whitespace().map_while(|it| it.parse::<u32>().ok());
    let counted = numbers.next().zip(numbers.next()).filter(|(_, options)| *options > 0);
    let steps = counted.map(|(steps, options)| f64::from(steps) / f64::from(options));
    (options as f64 * steps.unwrap_or(STEPS_OF_OPTION)).round() as usize
}

/// Whether a line of the build's output tells of a file that was made: `  CC      mm/memory.o`.
fn is_step(line: &str) -> bool {
    line.strip_prefix("  ").is_some_and(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Whether a line of make says that a signal ended a program. It has the signal's name, or from a shell 128 plus its
/// number.
fn is_stopped(line: &str) -> bool {
    let ends =
        ["Hangup", "Interrupt", "Terminated", "Error 129", "Error 130", "Error 137", "Error 143"];
    line.contains("*** [") && ends.iter().any(|end| line.ends_with(end))
}

/// The output of a failed build.
#[derive(Default)]
struct Failed {
    /// The first error of a compiler or linker.
    error: Option<String>,
    /// The first message about the host.
    of_host: Option<String>,
    last: VecDeque<String>,
}

impl Failed {
    fn add(&mut self, line: &str) {
        let is_error = [" error: ", "undefined reference", ": error ", "ERROR: ", "syntax error"]
            .iter()
            .any(|words| line.contains(words));
        if self.error.is_none() && is_error {
            self.error = Some(line.trim_start_matches("../").to_owned());
        }
        if self.of_host.is_none() && (is_of_host(line) || is_stopped(line)) {
            self.of_host = Some(line.to_owned());
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    fn because(self, what: &str) -> Unbuilt {
        let first =
            self.error.or_else(|| self.last.iter().find(|line| line.contains("***")).cloned());
        let first = first.unwrap_or_else(|| self.last.back().cloned().unwrap_or_default());
        let last: Vec<String> = self.last.into();
        Unbuilt(format!("{what}: {}\n{}", first.trim(), last.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_estimated_by_the_number_of_options() {
        for (counted, expected) in
            [("", 2300), ("1500", 2300), ("x 580", 2300), ("2 0", 2300), ("2683 1253\n", 2141)]
        {
            assert_eq!(usual_steps(1000, counted), expected, "{counted}");
        }
    }
}
