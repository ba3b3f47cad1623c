//! The user's git repository, which is only read, and the `git` command.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Doing;
use crate::tool::GIT;
use crate::{Error, input};

/// The prefix of git's variables that are kept for the user's repository. They may say that it is safe to read.
const KEPT: &str = "GIT_CONFIG";
/// Settings of every command. The configuration of a repository can name programs that git runs, and a submodule
/// has a configuration of its own.
const SAFE: [&str; 7] = [
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat",
    "diff.ignoreSubmodules=all", "log.showSignature=false", "protocol.allow=never",
    "submodule.recurse=false",
];
/// The largest file of patterns that is read.
const MAX_PATTERNS: u64 = 1 << 20;

/// The user's git repository.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The directory that was given.
    pub path: PathBuf,
    /// The directory of its objects.
    pub objects: PathBuf,
}

impl Tree {
    /// Finds the repository of a directory. Fails when it is not in a repository.
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

    /// The directory of its files. Fails when it has none.
    pub fn root(&self) -> Result<PathBuf, Error> {
        self.ask(["rev-parse", "--show-toplevel"]).map(PathBuf::from)
    }

    /// Copies the index with its time stamp, by which git knows which files may have changed since.
    pub fn copy_index(&self, directory: &Path, to: &Path) -> Result<(), Error> {
        let path =
            |name: &str| self.ask(["rev-parse", "--path-format=absolute", "--git-path", name]);
        let index = PathBuf::from(path("index")?);
        if !index.is_file() {
            let _ = fs::remove_file(to); // of another tree
            return Ok(());
        }
        fs::copy(&index, to).doing("copy", &index)?;
        let time = fs::metadata(&index).and_then(|index| index.modified()).doing("read", &index)?;
        let copy = File::options().write(true).open(to);
        copy.and_then(|copy| copy.set_modified(time)).doing("write", to)?;
        // A split index has a second file.
        let shared = PathBuf::from(self.ask(["rev-parse", "--shared-index-path"])?);
        if let Some(name) = shared.file_name() {
            let shared = self.path.join(&shared);
            fs::copy(&shared, directory.join(name)).doing("copy", &shared)?;
        }
        Ok(())
    }

    /// The patterns of files that git ignores besides those of `.gitignore`.
    pub fn excludes(&self) -> Result<Vec<u8>, Error> {
        let own =
            self.ask(["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"])?;
        let home = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".config")));
        let usual = home.map(|home| home.join("git/ignore"));
        let named = self.ask(["config", "--path", "core.excludesFile"]).ok().map(PathBuf::from);
        let read = |path: PathBuf| input::read(&path, MAX_PATTERNS).unwrap_or_default();
        let mut patterns = read(own.into());
        patterns.push(b'\n');
        patterns.extend(named.or(usual).map(read).unwrap_or_default());
        Ok(patterns)
    }

    /// The commit that a name means. Fails when there is none. The error says so if the clone is shallow.
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

    /// Whether one commit is an ancestor of another.
    pub fn is_ancestor(&self, one: &str, other: &str) -> Result<bool, Error> {
        let mut command = self.command();
        command.args(["merge-base", "--is-ancestor", one, other]);
        match GIT.try_run(&mut command)? {
            Ok(_) => Ok(true),
            Err(output) if output.status.code() == Some(1) => Ok(false),
            Err(output) => Err(self.failed(GIT.failed(&output))),
        }
    }

    /// The best common ancestor of two commits, if there is one.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, Error> {
        let found = self.ask(["merge-base", one, other]);
        Ok(found.ok().filter(|found| found.len() == 40))
    }

    /// Commits, a line each: the name, the parents and the subject, between tabs.
    pub fn log(&self, which: &[&str]) -> Result<String, Error> {
        let mut command = self.command();
        command.args(["log", "--no-show-signature", "--no-color", "--no-decorate"]);
        command.arg("--format=%H%x09%P%x09%s").args(which);
        GIT.run(&mut command).map_err(|error| self.failed(error))
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

    /// The commits before and after a commit's change, or in reverse order if `backwards`, and the name of the
    /// change. Fails when the commit does not exist or is a merge.
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
    pub(super) fn ask<const N: usize>(&self, arguments: [&str; N]) -> Result<String, Error> {
        let said = GIT.run(self.command().args(arguments)).map_err(|error| self.failed(error))?;
        Ok(said.trim_end().to_owned())
    }

    /// A command that does not write into the repository, not even to fetch missing objects.
    pub(super) fn command(&self) -> Command {
        let mut command = git();
        command.arg("-C").arg(&self.path);
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        command
    }

    fn failed(&self, error: Error) -> Error {
        match error {
            Error::Tool { problem, .. } => self.wrong(problem),
            other => other,
        }
    }

    pub fn wrong(&self, problem: String) -> Error {
        Error::Tree { path: self.path.clone(), problem }
    }
}

/// The command `git` without the variables that direct it elsewhere or change what it does. It runs no program
/// that a repository names.
pub(crate) fn git() -> Command {
    let mut command = GIT.command();
    for (variable, _) in env::vars_os() {
        let name = variable.as_encoded_bytes();
        if name.starts_with(b"GIT_") && !name.starts_with(KEPT.as_bytes()) {
            command.env_remove(variable);
        }
    }
    command.env("GIT_OPTIONAL_LOCKS", "0");
    for setting in SAFE {
        command.args(["-c", setting]);
    }
    command
}
