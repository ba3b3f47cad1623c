//! Reads sources through git. The user's repository is only read: our own bare repository in the cache reads
//! its objects (`objects/info/alternates`, gitrepository-layout(5)) and keeps what we add.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use super::Unbuilt;
use super::archive;
use super::patches::Patch;
use crate::Error;
use crate::assemble::digest;
use crate::error::Doing;
use crate::tool::{GIT, is_of_host};

/// Variables of git that are kept for the user's repository: they may say that it is safe to read.
const KEPT: &str = "GIT_CONFIG";
/// Files of a build in a source without git, which are left out.
const BUILT: [&str; 16] = [
    "**/*.o",
    "**/*.a",
    "**/*.ko",
    "**/*.cmd",
    "**/*.d",
    "**/*.mod",
    "**/*.mod.c",
    "**/modules.order",
    "include/config/**",
    "include/generated/**",
    "arch/*/include/generated/**",
    ".config",
    ".config.old",
    "vmlinux*",
    "System.map",
    "Module.symvers",
];
/// How often a directory that changes while it is read is read again.
const READS: usize = 3;

/// The user's git repository.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    path: PathBuf,
    objects: PathBuf,
}

impl Tree {
    /// Finds the repository of a directory.
    ///
    /// # Errors
    /// When it is not in a repository.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let wrong = |problem| Error::Tree { path: path.to_owned(), problem };
        let path = path.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let mut tree = Self { objects: PathBuf::new(), path };
        let objects = tree.ask(["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
        tree.objects = objects.into();
        match tree.ask(["rev-parse", "--show-object-format"])?.as_str() {
            "sha1" => Ok(tree),
            other => {
                Err(tree
                    .wrong(format!("its objects are named by {other}, and only sha1 is possible")))
            }
        }
    }

    /// The directory of its files.
    ///
    /// # Errors
    /// When it has none.
    pub fn root(&self) -> Result<PathBuf, Error> {
        self.ask(["rev-parse", "--show-toplevel"]).map(PathBuf::from)
    }

    /// Copies the index with its time, by which git knows which files may have changed since.
    fn copy_index(&self, directory: &Path, to: &Path) -> Result<(), Error> {
        let path =
            |name: &str| self.ask(["rev-parse", "--path-format=absolute", "--git-path", name]);
        let index = PathBuf::from(path("index")?);
        if !index.exists() {
            let _ = fs::remove_file(to); // of another tree
            return Ok(());
        }
        fs::copy(&index, to).doing("copy", &index)?;
        let time = fs::metadata(&index).and_then(|index| index.modified()).doing("read", &index)?;
        let copy = File::options().write(true).open(to);
        copy.and_then(|copy| copy.set_modified(time)).doing("write", to)?;
        // The other half of a split index.
        let shared = PathBuf::from(self.ask(["rev-parse", "--shared-index-path"])?);
        if let Some(name) = shared.file_name() {
            let shared = self.path.join(&shared);
            fs::copy(&shared, directory.join(name)).doing("copy", &shared)?;
        }
        Ok(())
    }

    /// The patterns of files that git ignores besides those of `.gitignore`.
    fn excludes(&self) -> Result<Vec<u8>, Error> {
        let own =
            self.ask(["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"])?;
        let home = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".config")));
        let usual = home.map(|home| home.join("git/ignore"));
        let named = self.ask(["config", "--path", "core.excludesFile"]).ok().map(PathBuf::from);
        let mut patterns = fs::read(own).unwrap_or_default();
        patterns.push(b'\n');
        patterns.extend(named.or(usual).and_then(|path| fs::read(path).ok()).unwrap_or_default());
        Ok(patterns)
    }

    /// The commit that a name means.
    ///
    /// # Errors
    /// When there is none. The error says so if the clone is shallow.
    pub fn commit(&self, name: &str) -> Result<String, Error> {
        if name.is_empty() || name.starts_with('-') {
            return Err(self.wrong(format!("`{name}` is not the name of a commit")));
        }
        self.ask(["rev-parse", "--quiet", "--verify", &format!("{name}^{{commit}}")]).map_err(
            |_| {
                let is_shallow = self.ask(["rev-parse", "--is-shallow-repository"]);
                let hint = match is_shallow.as_deref() {
                    Ok("true") => {
                        ": the repository is a shallow clone; `git fetch --unshallow` completes it"
                    }
                    _ => ": `git fetch --tags` may bring it",
                };
                self.wrong(format!("it has no commit `{name}`{hint}"))
            },
        )
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &str) -> Result<String, Error> {
        self.ask(["rev-parse", "--verify", &format!("{commit}^{{tree}}")])
    }

    /// The abbreviated commit and its subject.
    pub fn described(&self, commit: &str) -> Result<(String, String), Error> {
        let text =
            self.ask(["log", "--no-walk", "--no-show-signature", "--format=%h%n%s", commit])?;
        let (short, subject) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((short.to_owned(), subject.to_owned()))
    }

    /// The two ends of a commit's change, forwards or backwards, and what it is called.
    ///
    /// # Errors
    /// When the commit does not exist or is a merge.
    pub fn change(&self, name: &str, backwards: bool) -> Result<([String; 2], String), Error> {
        let commit = self.commit(name)?;
        let parents = self.ask(["log", "--no-walk", "--format=%P", &commit])?;
        let parents: Vec<&str> = parents.split_whitespace().collect();
        let [parent] = parents[..] else {
            let number = parents.len();
            let problem =
                format!("the commit `{name}` has {number} parents, so its change is not one patch");
            return Err(self.wrong(problem));
        };
        let (short, subject) = self.described(&commit)?;
        let verb = if backwards { "revert" } else { "pick" };
        let mut ends = [parent.to_owned(), commit];
        if backwards {
            ends.reverse();
        }
        Ok((ends, format!("{verb} {short} (\"{subject}\")")))
    }

    /// The output of a command on the repository, without the end of the line.
    fn ask<const N: usize>(&self, arguments: [&str; N]) -> Result<String, Error> {
        let said = GIT.run(self.command().args(arguments)).map_err(|error| self.failed(error))?;
        Ok(said.trim_end().to_owned())
    }

    /// A command that does not write into the repository, not even to fetch missing objects.
    fn command(&self) -> Command {
        let mut command = git();
        // A repository can name a program that tells which files have changed.
        command.arg("-C").arg(&self.path).args(["-c", "core.fsmonitor=false"]);
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        command
    }

    fn failed(&self, error: Error) -> Error {
        match error {
            Error::Tool { problem, .. } => self.wrong(problem),
            other => other,
        }
    }

    fn wrong(&self, problem: String) -> Error {
        Error::Tree { path: self.path.clone(), problem }
    }
}

fn git() -> Command {
    let mut command = GIT.command();
    for (variable, _) in env::vars_os() {
        let name = variable.as_encoded_bytes();
        if name.starts_with(b"GIT_") && !name.starts_with(KEPT.as_bytes()) {
            command.env_remove(variable);
        }
    }
    command.env("GIT_OPTIONAL_LOCKS", "0");
    command
}

/// Our repository. Whoever uses it holds the lock of builds.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    /// The bare repository.
    directory: PathBuf,
    /// The user's repository whose objects it reads.
    tree: Option<PathBuf>,
}

impl Repository {
    /// Opens the repository in `directory`, and lets it read the objects of the user's.
    pub fn open(directory: &Path, tree: Option<&Tree>) -> Result<Self, Error> {
        let repository =
            Self { directory: directory.to_owned(), tree: tree.map(|tree| tree.path.clone()) };
        let info = directory.join("objects/info");
        // A damaged one is made anew: everything in it can be read again.
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

    /// The tree of the files in the user's working tree as they are now: those that git tracks, and those that
    /// it does not ignore. What git knows of the files is taken from the user's index, so that only changed
    /// ones are read.
    pub fn worktree(&self, tree: &Tree, root: &Path) -> Result<String, Error> {
        let index = self.directory.join("index-worktree");
        tree.copy_index(&self.directory, &index)?;
        let exclude = self.directory.join("info/exclude");
        fs::create_dir_all(self.directory.join("info")).doing("create", &exclude)?;
        fs::write(&exclude, tree.excludes()?).doing("write", &exclude)?;
        // Edits of files that are assumed to be unchanged count too. It fails if a file has changed.
        let mut refresh = self.add(&index, root, &["update-index", "-q", "--really-refresh"]);
        GIT.try_run(&mut refresh)?.ok();
        self.snapshot(root, &index, &["add", "-A", "."])
    }

    /// The tree of the files in a directory without git as they are now, without the files of a build. What
    /// is known of the files is kept, so that the next reading is quick.
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
            GIT.run(&mut self.add(index, directory, add))?;
            let tree = self.ask(Some(index), ["write-tree"])?;
            if last.as_ref() == Some(&tree) {
                return Ok(tree);
            }
            last = Some(tree);
        }
        let problem = "its files change while they are read".into();
        Err(Error::Tree { path: directory.to_owned(), problem })
    }

    /// A command that reads files of `directory` into an index.
    fn add(&self, index: &Path, directory: &Path, arguments: &[&str]) -> Command {
        let mut add = self.command(Some(index));
        add.arg("--work-tree").arg(directory).current_dir(directory);
        // Large files are streamed into one pack, small ones would be a file each.
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

    /// The tree after patches. The error is the first patch that does not apply, and where.
    pub fn apply(&self, tree: &str, patches: &[Patch]) -> Result<Result<String, Unbuilt>, Error> {
        if patches.is_empty() {
            return Ok(Ok(tree.to_owned()));
        }
        let index = &self.directory.join("index-patches");
        self.ask(Some(index), ["read-tree", tree]).map_err(|error| self.incomplete(error))?;
        let mut last = tree.to_owned();
        for patch in patches {
            let applied = self.give(index, &["--3way"], &patch.diff)?;
            if !applied.status.success() {
                let said = String::from_utf8_lossy(&applied.stderr).into_owned();
                if said.lines().any(is_of_host) {
                    return Err(GIT.failed(&applied));
                }
                self.ask(Some(index), ["read-tree", &last])?;
                // Without `--3way` it names the hunk.
                let plain = self.give(index, &["--check"], &patch.diff)?;
                let places = places(&String::from_utf8_lossy(&plain.stderr));
                let places = if places.is_empty() { places_of_conflicts(&said) } else { places };
                let place = match places.is_empty() {
                    true => said.lines().last().unwrap_or("git apply failed").trim().to_owned(),
                    false => places.join(", "),
                };
                return Ok(Err(Unbuilt(format!("{} does not apply: {place}", patch.subject))));
            }
            let next = self.ask(Some(index), ["write-tree"])?;
            if next == last {
                let why = "changes nothing: the source already has its changes";
                return Ok(Err(Unbuilt(format!("{} {why}", patch.subject))));
            }
            last = next;
        }
        Ok(Ok(last))
    }

    /// Makes the files of `directory` those of a tree. Files that do not change keep their times. Files below
    /// `kept`, a name in the directory, are left alone.
    pub fn check_out(
        &self,
        tree: &str,
        directory: &Path,
        kept: &str,
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
        work(&["clean", "-ffdxq", "-e", &format!("/{kept}")])?;
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
        // It may end before it has read everything, which its status tells.
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
        if let Some(index) = index {
            // A lock of the index is left from a killed git, because the lock of builds is held.
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

/// Runs a command whose input is what `write` writes. Returns its output, and how writing ended.
fn feed(
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
