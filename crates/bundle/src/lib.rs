//! Takes a program into guests with what it needs to run, at the paths that it has on the host: its
//! interpreter, its shared libraries, the commands that a shell script names, Python's standard library, and
//! files that the user names. A C file is compiled, and nothing else is executed. All files are the user's, but may be
//! damaged: they are bounded, and parsed with care.

mod elf;
mod host;
mod keep;
mod script;
mod source;
mod start;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use kernels::initramfs::Archive;
use model::Architecture;

use elf::Elf;
use host::{command, configured, library_of_python};
use script::Script;
use start::{find, is_program, problem_of};

/// The largest size of all files together, in bytes. They are in the guest's memory.
const MAX_BYTES: u64 = 256 << 20;
/// The largest number of files.
const MAX_FILES: usize = 20_000;
/// The largest number of symbolic links in a path, as for the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Directories of the guest that have other contents than on the host.
const OF_GUEST: [&str; 5] = ["/dev", "/faultline", "/init", "/proc", "/sys"];
/// Directories of libraries that the dynamic linker searches without a configuration.
const LIBRARIES: [&str; 6] = [
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib",
    "/usr/lib",
];
/// The dynamic linker's list of libraries in other directories.
const CACHE: &str = "/etc/ld.so.cache";
/// Commands that a shell finds even if its script does not name them.
const USUAL: &str = "[ awk basename cat chmod cp cut date dd dirname du echo env expr false find getconf grep \
                     head id kill ln ls mkdir mktemp mount mv nproc od printf ps pwd readlink rm rmdir sed seq \
                     sh sleep sort stat sync tail tee test timeout touch tr true truncate umount uname uniq wc \
                     xargs yes";
/// `/etc/passwd` of the guest: root is the only account.
const PASSWD: &str = "root:x:0:0::/:/bin/sh\n";
const GROUP: &str = "root:x:0:\n";
/// What is left out of Python's standard library.
const NOT_OF_PYTHON: [&str; 10] = [
    "__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "site-packages", "test", "tkinter", "turtledemo",
];

/// What is to be taken.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRequest<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The directory to which relative paths refer, and in which the program starts.
    pub directory: &'a Path,
    /// Directories in which a program without a slash is searched.
    pub path: &'a [PathBuf],
    /// Other files and directories.
    pub with: &'a [PathBuf],
    /// The architecture of the guests. Where it is not this host's, only static programs can be taken.
    pub arch: Architecture,
}

/// A program and its files.
#[derive(Clone, Debug, Default)]
pub struct ProgramBundle {
    /// The command with the program's path.
    pub command: Vec<String>,
    /// The program's working directory.
    pub directory: String,
    /// The files, as an archive that the kernel unpacks.
    pub archive: Vec<u8>,
    /// How many files it has.
    pub files: usize,
    /// The text of the program, if it is a C file or a script, is not long, and needs no other files of the user's.
    pub source: String,
    /// The compiler of a C file, with its version; empty for others.
    pub compiler: String,
}

/// Why a program cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file that cannot be read or written.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// No directory has the program.
    #[error("`{0}` is not a program in $PATH: name its path, such as ./{0}")]
    Unknown(String),
    /// The program cannot be started.
    #[error("{path} {problem}")]
    Program {
        /// The file that is not packed.
        path: PathBuf,
        /// What is wrong, and the remedy.
        problem: String,
    },
    /// A library is missing on this host.
    #[error("{path} needs the library {library}, which is in no directory of libraries")]
    Library {
        /// The file that needs it.
        path: PathBuf,
        /// The name of the library that is not found.
        library: String,
    },
    /// A script's interpreter is missing on this host.
    #[error("{path} needs {interpreter}, which does not exist")]
    Interpreter {
        /// The file that needs it.
        path: PathBuf,
        /// The interpreter or the dynamic linker.
        interpreter: String,
    },
    /// The guest has its own file there.
    #[error("{0} cannot be taken along, because a guest has other files there: copy it elsewhere")]
    OfGuest(PathBuf),
    /// The path is not UTF-8.
    #[error("{0} is not UTF-8: rename it")]
    NotText(PathBuf),
    /// There are too many or too large files.
    #[error("{path} is too much: a program and its files may have {} MiB and {MAX_FILES} files", MAX_BYTES >> 20)]
    TooMuch {
        /// The file that exceeds the limit.
        path: PathBuf,
    },
}

/// Takes a program with its files. Fails when it cannot be started, or something that it needs is missing.
pub fn bundle(request: ProgramRequest<'_>) -> Result<ProgramBundle, BundleError> {
    let (program, files, source, is_compiled) = collect(request)?;
    let compiler = if is_compiled { source::compiler_version(request.arch) } else { String::new() };
    let arguments = request.command.get(1..).unwrap_or_default();
    let command = [&[text(&program)?.to_owned()], arguments].concat();
    let directory = text(request.directory)?.to_owned();
    let archive = files.archive()?;
    Ok(ProgramBundle { command, directory, files: files.entries.len(), archive, source, compiler })
}

/// A program that runs on this host, where it is: without files. Fails when it cannot be started.
pub fn in_place(request: ProgramRequest<'_>) -> Result<ProgramBundle, BundleError> {
    let (name, arguments) =
        request.command.split_first().ok_or(BundleError::Unknown(String::new()))?;
    let program = find(name, request)?;
    if !is_program(&program) {
        let problem = "is not executable: compile it, since C files are compiled for VMs only";
        return Err(BundleError::Program { path: name.into(), problem: problem.to_owned() });
    }
    let command = [&[text(&program)?.to_owned()], arguments].concat();
    let directory = text(request.directory)?.to_owned();
    Ok(ProgramBundle { command, directory, ..ProgramBundle::default() })
}

/// The program's path, its files, its text, and whether it was compiled here. The guest has the program of a C file beside
/// it, without the `.c`.
fn collect(request: ProgramRequest<'_>) -> Result<(PathBuf, Files, String, bool), BundleError> {
    let (name, arguments) =
        request.command.split_first().ok_or(BundleError::Unknown(String::new()))?;
    let named = find(name, request)?;
    let is_c = source::is_c(&named) && !is_program(&named);
    let program = if is_c { named.with_extension("") } else { named.clone() };
    let mut files =
        Files { directory: request.directory.to_owned(), arch: request.arch, ..Files::default() };
    let directory = files.place(request.directory)?;
    files.entries.insert(directory.clone(), Entry::Directory);
    let bytes = fs::read(&named).map_err(in_file(&named))?;
    let is_script = Script::of(&bytes).is_some();
    if is_c {
        files.add_compiled(&program, source::compile(&named, request.arch)?)?;
    } else {
        files.add(&program)?;
    }
    if let Some(problem) = problem_of(&bytes, request.arch).filter(|_| !is_c) {
        return Err(BundleError::Program { path: name.into(), problem: problem.to_owned() });
    }
    let is_shell = script::is_shell(&program);
    for argument in arguments {
        let path = joined(request.directory, Path::new(argument));
        if fs::metadata(&path).is_ok_and(|found| found.is_file()) && !is_of_guest(&path) {
            files.add(&path)?;
            if is_shell {
                files.commands(&fs::read(&path).map_err(in_file(&path))?)?;
            }
        } else if is_shell {
            files.commands(argument.as_bytes())?;
        }
    }
    for path in request.with {
        files.add_all(&joined(request.directory, path), &|_| true)?;
    }
    while let Some((path, spare)) = files.due.pop_front() {
        files.spare = spare;
        let needs = files.needs(&path);
        files.unless_spare(needs)?;
    }
    let is_other = |(path, entry): (&PathBuf, &Entry)| {
        let is_file = matches!(entry, Entry::File { .. });
        is_file && path.starts_with(&directory) && path.file_name() != program.file_name()
    };
    let is_alone = request.with.is_empty() && !files.entries.iter().any(is_other);
    Ok((program, files, source::text(&bytes, is_alone && (is_c || is_script)), is_c))
}

/// For `map_err`: adds the path.
fn in_file(path: &Path) -> impl FnOnce(io::Error) -> BundleError {
    let path = path.to_owned();
    move |error| BundleError::Read { path, error }
}

/// A path from a directory, without dots between slashes.
fn joined(directory: &Path, path: &Path) -> PathBuf {
    directory.join(path).components().collect()
}

fn is_of_guest(path: &Path) -> bool {
    OF_GUEST.iter().any(|own| path.starts_with(own))
}

fn text(path: &Path) -> Result<&str, BundleError> {
    path.to_str().ok_or_else(|| BundleError::NotText(path.to_owned()))
}

/// What has a path.
enum Entry {
    Directory,
    Link(PathBuf),
    File { bytes: Vec<u8>, is_program: bool },
}

/// The files so far, by path.
#[derive(Default)]
struct Files {
    entries: BTreeMap<PathBuf, Entry>,
    bytes: u64,
    /// Directories whose files were added.
    listed: BTreeSet<PathBuf>,
    /// Files whose needs were not looked at, and whether they are spare.
    due: VecDeque<(PathBuf, bool)>,
    /// Whether files may lack what they need: commands that a script may not call, modules that a program may
    /// not load.
    spare: bool,
    /// The directory to which words of scripts refer.
    directory: PathBuf,
    /// Directories of libraries that programs name.
    libraries: Vec<PathBuf>,
    has_usual: bool,
    arch: Architecture,
}

impl Files {
    /// Adds the symbolic links in a path. Returns the path without links.
    fn place(&mut self, path: &Path) -> Result<PathBuf, BundleError> {
        let failed = |error| BundleError::Read { path: path.to_owned(), error };
        let mut parts: VecDeque<PathBuf> =
            path.components().map(|it| it.as_os_str().into()).collect();
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = parts.pop_front() {
            match part.components().next() {
                Some(Component::Normal(_)) => {}
                Some(Component::RootDir) => {
                    real = PathBuf::from("/");
                    continue;
                }
                Some(Component::ParentDir) => {
                    // The guest passes through it too.
                    self.entries.insert(real.clone(), Entry::Directory);
                    real.pop();
                    continue;
                }
                _ => continue,
            }
            let here = real.join(&part);
            if is_of_guest(&here) {
                return Err(BundleError::OfGuest(path.to_owned()));
            }
            if !fs::symlink_metadata(&here).map_err(failed)?.is_symlink() {
                real = here;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(failed(io::Error::other("too many symbolic links")));
            }
            let target = fs::read_link(&here).map_err(failed)?;
            for part in target.components().rev() {
                parts.push_front(part.as_os_str().into());
            }
            self.entries.insert(here, Entry::Link(target));
        }
        Ok(real)
    }

    /// Adds a regular file. Its needs are due.
    fn add(&mut self, path: &Path) -> Result<(), BundleError> {
        let real = self.place(path)?;
        if self.entries.contains_key(&real) {
            return Ok(());
        }
        let found = fs::metadata(&real).map_err(in_file(path))?;
        if !found.is_file() {
            let problem = "is not a regular file".to_owned();
            return Err(BundleError::Program { path: path.to_owned(), problem });
        }
        let bytes = self.bytes.saturating_add(found.len());
        if bytes > MAX_BYTES || self.entries.len() >= MAX_FILES {
            return Err(BundleError::TooMuch { path: path.to_owned() });
        }
        self.bytes = bytes;
        let bytes = fs::read(&real).map_err(in_file(path))?;
        let is_program = found.permissions().mode() & 0o111 != 0;
        self.entries.insert(real.clone(), Entry::File { bytes, is_program });
        self.due.push_back((real, self.spare));
        Ok(())
    }

    /// Adds a static program that was compiled, at a path where this host may have another file.
    fn add_compiled(&mut self, path: &Path, bytes: Vec<u8>) -> Result<(), BundleError> {
        let real = self.place(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.file_name().unwrap_or_default();
        self.entries.insert(real.join(name), Entry::File { bytes, is_program: true });
        Ok(())
    }

    /// Ignores the error of a spare file, unless a limit is exceeded.
    fn unless_spare(&self, result: Result<(), BundleError>) -> Result<(), BundleError> {
        match result {
            Err(BundleError::TooMuch { .. }) | Ok(()) => result,
            Err(_) if self.spare => Ok(()),
            Err(_) => result,
        }
    }

    /// Adds a file, or all files in a directory whose names are `wanted`, as spare ones. What is neither is
    /// left out.
    fn add_all(&mut self, path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<(), BundleError> {
        let found = fs::metadata(path).map_err(in_file(path))?;
        if !found.is_dir() {
            return self.add(path);
        }
        let real = self.place(path)?;
        self.entries.insert(real.clone(), Entry::Directory);
        if !self.listed.insert(real) {
            return Ok(());
        }
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(path).map_err(in_file(path))? {
            inside.push(entry.map_err(in_file(path))?.path());
        }
        inside.sort();
        let before = std::mem::replace(&mut self.spare, true);
        for path in inside {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // A link may lead nowhere.
            let is_plain = fs::metadata(&path).is_ok_and(|it| it.is_file() || it.is_dir());
            if is_plain && wanted(&name) {
                let added = self.add_all(&path, wanted);
                self.unless_spare(added)?;
            }
        }
        self.spare = before;
        Ok(())
    }

    /// Adds what a file needs. What this host has is for x86-64.
    fn needs(&mut self, path: &Path) -> Result<(), BundleError> {
        if self.arch != Architecture::X86_64 {
            return Ok(());
        }
        let Some(Entry::File { bytes, is_program }) = self.entries.get(path) else { return Ok(()) };
        if let Some(script) = Script::of(bytes).filter(|_| *is_program) {
            let text = bytes.clone();
            return self.script(path, &script, &text);
        }
        let Some(elf) = Elf::of(bytes, self.arch) else { return Ok(()) };
        if let Some(linker) = &elf.interpreter {
            self.interpreter(path, linker)?;
        }
        let own: Vec<PathBuf> = elf.directories(path).collect();
        for library in &elf.needed {
            match self.library(library, &own) {
                Some(found) => self.add(&found)?,
                None => {
                    let library = library.clone();
                    return Err(BundleError::Library { path: path.to_owned(), library });
                }
            }
        }
        self.libraries.extend(own);
        if elf.interpreter.is_some()
            && let Some(library) = library_of_python(path)
        {
            let wanted =
                |name: &str| !NOT_OF_PYTHON.contains(&name) && !name.starts_with("config-");
            self.add_all(&library, &wanted)?;
        }
        Ok(())
    }

    fn script(&mut self, path: &Path, script: &Script, text: &[u8]) -> Result<(), BundleError> {
        self.interpreter(path, &script.interpreter)?;
        if let Some(name) = &script.name {
            let Some(found) = command(name) else {
                let interpreter = format!("the command {name}");
                return Err(BundleError::Interpreter { path: path.to_owned(), interpreter });
            };
            self.add(&found)?;
        }
        match script.is_of_shell() {
            true => self.commands(text),
            false => Ok(()),
        }
    }

    /// Adds an interpreter or a dynamic linker.
    fn interpreter(&mut self, path: &Path, interpreter: &str) -> Result<(), BundleError> {
        if !is_program(&self.directory.join(interpreter)) {
            let interpreter = interpreter.to_owned();
            return Err(BundleError::Interpreter { path: path.to_owned(), interpreter });
        }
        self.add(&self.directory.join(interpreter))
    }

    /// Adds the commands that the text of a shell script names, and the usual ones.
    fn commands(&mut self, text: &[u8]) -> Result<(), BundleError> {
        let mut words = script::words(text);
        if !std::mem::replace(&mut self.has_usual, true) {
            words.extend(USUAL.split_whitespace().map(str::to_owned));
        }
        let before = std::mem::replace(&mut self.spare, true);
        for word in words {
            let found = match word.contains('/') {
                true => Some(self.directory.join(&word)).filter(|it| is_program(it)),
                false => command(&word),
            };
            if let Some(found) = found {
                // Not every word is a command that is called.
                let _ = self.add(&found);
            }
        }
        self.spare = before;
        Ok(())
    }

    /// The path of a library: in the directories `own` that the file names that needs it, in those that
    /// programs before it name, or in the usual ones.
    fn library(&mut self, name: &str, own: &[PathBuf]) -> Option<PathBuf> {
        let is_library = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|it| it.is_file())
                && fs::read(path).is_ok_and(|bytes| Elf::of(&bytes, self.arch).is_some())
        };
        if name.contains('/') {
            return Some(self.directory.join(name)).filter(is_library);
        }
        let named = own.iter().chain(&self.libraries).map(|it| it.join(name));
        let usual = LIBRARIES.iter().map(|it| Path::new(it).join(name));
        if let Some(found) = named.chain(usual).find(is_library) {
            return Some(found);
        }
        let configured = configured().into_iter().map(|it| it.join(name)).find(is_library)?;
        // Without its list the linker does not search there.
        let _ = self.add(Path::new(CACHE));
        Some(configured)
    }

    fn archive(&self) -> Result<Vec<u8>, BundleError> {
        let mut archive = Archive::new();
        for (path, entry) in &self.entries {
            let name = text(path)?;
            match entry {
                Entry::Directory => archive.directory(name),
                Entry::Link(target) => archive.link(name, text(target)?),
                Entry::File { bytes, is_program: true } => archive.program(name, bytes),
                Entry::File { bytes, is_program: false } => archive.file(name, bytes),
            }
        }
        for (name, contents) in [("/etc/passwd", PASSWD), ("/etc/group", GROUP)] {
            if !self.entries.contains_key(Path::new(name)) {
                archive.file(name, contents.as_bytes());
            }
        }
        Ok(archive.finish())
    }
}

#[cfg(test)]
mod tests;
