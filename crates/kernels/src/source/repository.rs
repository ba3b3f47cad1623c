//! Our bare git repository in the cache: reads directories and archives, applies patches, and checks trees out. It
//! reads the objects of the user's repository (`objects/info/alternates`, gitrepository-layout(5)) and keeps new
//! ones.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::archive;
use super::git::{Tree, git};
use super::patches::Patch;
use super::{NO_CHANGE, NO_PATCH, Unbuilt};
use crate::Error;
use crate::assemble::digest;
use crate::error::Doing;
use crate::tool::{GIT, is_of_host};

/// Patterns of files that a build makes. They are left out of a source without git.
const BUILT: [&str; 16] = [
    "**/*.o", "**/*.a", "**/*.ko", "**/*.cmd", "**/*.d", "**/*.mod", "**/*.mod.c",
    "**/modules.order", "include/config/**", "include/generated/**", "arch/*/include/generated/**",
    ".config", ".config.old", "vmlinux*", "System.map", "Module.symvers",
];
/// Results of patches in this process: the tree, by the tree before and the digest of the patch. They are reused
/// because each step of a series begins with the patches of the step before it.
static APPLIED: Mutex<BTreeMap<(String, String), String>> = Mutex::new(BTreeMap::new());
/// Number of attempts to read a directory that changes while it is read.
const READS: usize = 3;

/// Our repository. Unless it only reads, the caller must hold the lock of builds.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    /// The bare repository.
    directory: PathBuf,
    /// The user's repository whose objects it reads.
    tree: Option<PathBuf>,
    /// The user's objects, if the repository itself does not name them.
    objects: Option<PathBuf>,
}

impl Repository {
    /// The repository in `directory` for reading, with the objects of the user's. Nothing is written.
    pub fn to_read(directory: &Path, tree: Option<&Tree>) -> Self {
        let (path, objects) = tree.map(|tree| (tree.path.clone(), tree.objects.clone())).unzip();
        Self { directory: directory.to_owned(), tree: path, objects }
    }

    /// Opens the repository in `directory`, and lets it read the objects of the user's.
    pub fn open(directory: &Path, tree: Option<&Tree>) -> Result<Self, Error> {
        let repository = Self { objects: None, ..Self::to_read(directory, tree) };
        let info = directory.join("objects/info");
        // A damaged repository is replaced, because everything in it can be read again.
        let is_whole =
            info.is_dir() && repository.ask(None, ["rev-parse", "--is-bare-repository"]).is_ok();
        if !is_whole {
            if directory.exists() {
                fs::remove_dir_all(directory).doing("clear", directory)?;
            }
            fs::create_dir_all(directory).doing("create", directory)?;
            GIT.run(
                repository
                    .command(None)
                    .args(["init", "-q", "--bare", "--template="])
                    .arg(directory),
            )?;
            fs::create_dir_all(&info).doing("create", &info)?;
        }
        let alternates = info.join("alternates");
        let mut line = Vec::new();
        if let Some(tree) = tree {
            let path = tree.objects.as_os_str().as_encoded_bytes();
            if path.contains(&b'\n') || path.starts_with(b"#") || path.starts_with(b"\"") {
                return Err(
                    tree.wrong("git cannot share objects of a directory of this name".into())
                );
            }
            line = [path, b"\n"].concat();
        }
        fs::write(&alternates, line).doing("write", &alternates)?;
        Ok(repository)
    }

    /// The tree of the files in the user's working tree as they are now: those that git tracks, and those that it
    /// does not ignore. The user's index tells which files have not changed, so that only changed ones are read.
    pub fn worktree(&self, tree: &Tree, root: &Path) -> Result<String, Error> {
        let index = self.directory.join("index-worktree");
        tree.copy_index(&self.directory, &index)?;
        let exclude = self.directory.join("info/exclude");
        fs::create_dir_all(self.directory.join("info")).doing("create", &exclude)?;
        fs::write(&exclude, tree.excludes()?).doing("write", &exclude)?;
        // This finds edits of files that are assumed to be unchanged, too. git's status is not checked, because it is
        // an error if a file has changed.
        let mut refresh = self.add(&index, root, &["update-index", "-q", "--really-refresh"]);
        GIT.try_run(&mut refresh)?.ok();
        self.snapshot(root, &index, &["add", "-A", "--", "."])
    }

    /// The tree of the files in a directory without git as they are now, without the files of a build. The index is
    /// kept, so that the next reading only reads changed files.
    pub fn directory(&self, directory: &Path) -> Result<String, Error> {
        let name = digest(directory.as_os_str().as_encoded_bytes());
        let index = self.directory.join(format!("index-{}", &name[..16]));
        let left_out = BUILT.map(|files| format!(":(top,exclude,glob){files}"));
        let left_out: Vec<&str> = left_out.iter().map(String::as_str).collect();
        self.snapshot(directory, &index, &[&["add", "-A", "-f", "--", "."], &left_out[..]].concat())
    }

    fn snapshot(&self, directory: &Path, index: &Path, add: &[&str]) -> Result<String, Error> {
        let mut last = None;
        for _ in 0..READS {
            // Without this git would run in a submodule, with the programs that its configuration names.
            let left_out = self.gitlinks(index)?;
            GIT.run(self.add(index, directory, add).args(left_out))?;
            let tree = self.ask(Some(index), ["write-tree"])?;
            if last.as_ref() == Some(&tree) {
                return Ok(tree);
            }
            last = Some(tree);
        }
        let problem = "its files change while they are read".into();
        Err(Error::Tree { path: directory.to_owned(), problem })
    }

    /// Patterns that leave out the submodules and other repositories that an index has.
    fn gitlinks(&self, index: &Path) -> Result<Vec<OsString>, Error> {
        let list = GIT.output(self.command(Some(index)).args(["ls-files", "--stage", "-z"]))?;
        let entries = list.split(|&byte| byte == 0).filter(|it| it.starts_with(b"160000 "));
        let paths = entries.filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1));
        Ok(paths
            .map(|path| OsString::from_vec([b":(top,exclude,literal)", path].concat()))
            .collect())
    }

    /// A command that reads files of `directory` into an index.
    fn add(&self, index: &Path, directory: &Path, arguments: &[&str]) -> Command {
        let mut add = self.command(Some(index));
        add.arg("--work-tree").arg(directory).current_dir(directory);
        // With this threshold all files count as large and are streamed into one pack. Small files would become a
        // file each.
        add.args(["-c", "core.bigFileThreshold=1", "-c", "core.compression=1"]);
        add.args(["-c", "core.untrackedCache=false"]).args(arguments);
        add
    }

    /// The change between two commits as a patch.
    pub fn diff(&self, [from, to]: &[String; 2]) -> Result<Vec<u8>, Error> {
        let words = ["diff-tree", "-p", "--binary", "--full-index"];
        let diff = GIT.output(self.command(None).args(words).args([from, to]));
        diff.map_err(|error| self.incomplete(error))
    }

    /// The submodules of a tree, whose files it does not have.
    pub fn submodules(&self, tree: &str) -> Result<Vec<String>, Error> {
        let list =
            self.ask(None, ["ls-tree", "-r", tree]).map_err(|error| self.incomplete(error))?;
        let links = list.lines().filter(|line| line.starts_with("160000 "));
        Ok(links.filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect())
    }

    /// The tree of the files in an archive.
    pub fn import(&self, archive: &Path) -> Result<String, Error> {
        let mut command = self.command(None);
        command.args(["-c", "core.compression=1", "fast-import", "--quiet", "--force", "--done"]);
        let (output, read) = feed(command, |input| self::archive::import(archive, input))?;
        // If git ends early, what it says is the cause, and not the broken pipe.
        let unread = read.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        if let Some(error) = unread {
            let problem = format!("the archive cannot be read: {error}");
            return Err(Error::Tree { path: archive.to_owned(), problem });
        }
        if !output.status.success() {
            return Err(GIT.failed(&output));
        }
        self.ask(None, ["rev-parse", "--verify", &format!("{}^{{tree}}", self::archive::BRANCH)])
    }

    /// The tree after patches. The inner error names the first patch that does not apply, and the places.
    pub fn apply(&self, tree: &str, patches: &[Patch]) -> Result<Result<String, Unbuilt>, Error> {
        let applied_before = || APPLIED.lock().unwrap_or_else(PoisonError::into_inner);
        let index = &self.directory.join("index-patches");
        let (mut last, mut indexed) = (tree.to_owned(), String::new());
        for patch in patches {
            let step = (last.clone(), digest(&patch.diff));
            let known = applied_before().get(&step).cloned();
            if let Some(next) = known.filter(|next| self.has(next)) {
                last = next;
                continue;
            }
            if indexed != last {
                let read = self.ask(Some(index), ["read-tree", &last]);
                read.map_err(|error| self.incomplete(error))?;
            }
            let applied = self.give(index, &["--3way"], &patch.diff)?;
            if !applied.status.success() {
                let said = String::from_utf8_lossy(&applied.stderr).into_owned();
                if said.lines().any(is_of_host) {
                    return Err(GIT.failed(&applied));
                }
                self.ask(Some(index), ["read-tree", &last])?;
                // Without `--3way` git names the hunk.
                let plain = self.give(index, &["--check"], &patch.diff)?;
                let places = places(&String::from_utf8_lossy(&plain.stderr));
                let places = if places.is_empty() { places_of_conflicts(&said) } else { places };
                let place = match places.is_empty() {
                    true => said.lines().last().unwrap_or("git apply failed").trim().to_owned(),
                    false => places.join(", "),
                };
                return Ok(Err(Unbuilt(format!("{}{NO_PATCH}{place}", patch.subject))));
            }
            let next = self.ask(Some(index), ["write-tree"])?;
            if next == last {
                return Ok(Err(Unbuilt(format!("{}{NO_CHANGE}", patch.subject))));
            }
            applied_before().insert(step, next.clone());
            indexed.clone_from(&next);
            last = next;
        }
        Ok(Ok(last))
    }

    /// Makes the files of `directory` those of a tree. Files that do not change keep their times. Files below
    /// `kept`, names in the directory, are left alone.
    pub fn check_out(
        &self,
        tree: &str,
        directory: &Path,
        kept: impl Iterator<Item = &'static str>,
        lock: &File,
    ) -> Result<(), Error> {
        let index = &directory.with_extension("index");
        let work = |arguments: &[&str]| {
            let mut command = self.command(Some(index));
            command.arg("--work-tree").arg(directory).args(arguments).current_dir(directory);
            command.stdin(lock.try_clone().doing("start", Path::new(GIT.name))?);
            GIT.run(&mut command).map_err(|error| self.incomplete(error))
        };
        let read = ["read-tree", "--reset", "-u", tree];
        if work(&read).is_err() {
            // The index may be damaged. Without it every file is written.
            let _ = fs::remove_file(index);
            work(&read)?;
        }
        // A killed checkout leaves files that differ from the index.
        work(&["checkout-index", "--force", "--index", "--all", "--quiet"])?;
        let kept: Vec<String> = kept.map(|name| format!("--exclude=/{name}")).collect();
        let clean = ["clean", "-ffdxq"].into_iter().chain(kept.iter().map(String::as_str));
        work(&clean.collect::<Vec<_>>())?;
        Ok(())
    }

    /// Whether it has this tree.
    pub fn has(&self, tree: &str) -> bool {
        self.ask(None, ["cat-file", "-e", &format!("{tree}^{{tree}}")]).is_ok()
    }

    /// A file of a tree; `None` if the tree has no such file.
    pub fn file(&self, tree: &str, path: &str) -> Result<Option<String>, Error> {
        if self
            .ask(None, ["ls-tree", tree, path])
            .map_err(|error| self.incomplete(error))?
            .is_empty()
        {
            return Ok(None);
        }
        let text = self.ask(None, ["cat-file", "blob", &format!("{tree}:{path}")]);
        text.map(Some).map_err(|error| self.incomplete(error))
    }

    fn give(&self, index: &Path, arguments: &[&str], diff: &[u8]) -> Result<Output, Error> {
        let mut command = self.command(Some(index));
        command.args(["apply", "--cached", "--whitespace=nowarn"]).args(arguments).arg("-");
        // git may end before it has read everything. Its status says so, so errors of writing are ignored.
        feed(command, |input| input.write_all(diff)).map(|(output, _)| output)
    }

    fn ask<const N: usize>(
        &self,
        index: Option<&Path>,
        arguments: [&str; N],
    ) -> Result<String, Error> {
        Ok(GIT.run(self.command(index).args(arguments))?.trim_end().to_owned())
    }

    /// A command on our repository, without the user's settings.
    fn command(&self, index: Option<&Path>) -> Command {
        let mut command = git();
        command.arg("--git-dir").arg(&self.directory);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env_remove("GIT_CONFIG_PARAMETERS").env_remove("GIT_CONFIG_COUNT");
        command.env("GIT_ATTR_NOSYSTEM", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
        if let Some(objects) = &self.objects {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        }
        if let Some(index) = index {
            // The lock of builds is held, so a lock of the index can only be left from a killed git.
            let mut lock = index.as_os_str().to_owned();
            lock.push(".lock");
            let _ = fs::remove_file(lock);
            command.env("GIT_INDEX_FILE", index);
        }
        command
    }

    /// The error for objects that a partial clone of the user's lacks.
    fn incomplete(&self, error: Error) -> Error {
        let is_lack = |problem: &str| {
            ["unable to read", "missing", "not a tree object", "failed to unpack", "bad file"]
                .iter()
                .any(|words| problem.contains(words))
        };
        match (error, &self.tree) {
            (Error::Tool { problem, .. }, Some(tree)) if is_lack(&problem) => Error::Tree {
                path: tree.clone(),
                problem: format!(
                    "it lacks objects, as a partial clone does: complete it with `git fetch --refetch \
                     --no-filter` ({problem})"
                ),
            },
            (error, _) => error,
        }
    }
}

/// Runs a command with the input that `write` writes. Returns the output, and the result of writing.
pub(super) fn feed(
    mut command: Command,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> Result<(Output, io::Result<()>), Error> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let path = Path::new(GIT.name);
    let mut child = command.spawn().doing("start", path)?;
    let input = child.stdin.take().expect("it is piped");
    thread::scope(|scope| {
        let writer = scope.spawn(move || write(&mut BufWriter::new(input)));
        let output = child.wait_with_output().doing("run", path)?;
        Ok((output, writer.join().expect("writing does not panic")))
    })
}

/// The places of hunks that do not apply: `error: patch failed: mm/memory.c:123`, and of files that do not
/// exist: `error: mm/new.c: does not exist in index`.
fn places(said: &str) -> Vec<String> {
    let errors = said.lines().filter_map(|line| line.strip_prefix("error: "));
    let place = |line: &str| match line.strip_prefix("patch failed: ") {
        Some(place) => Some(place.to_owned()),
        None if line.ends_with(": patch does not apply") => None,
        None if line.starts_with("No valid patches") => Some("its diff is damaged".to_owned()),
        None => Some(line.to_owned()),
    };
    errors.filter_map(place).collect()
}

/// The files with conflicts: `U mm/memory.c`.
fn places_of_conflicts(said: &str) -> Vec<String> {
    let files = said.lines().filter_map(|line| line.strip_prefix("U "));
    files.map(|file| format!("{file} (conflict)")).collect()
}
