//! The commits of a range in the user's git repository, and the files that each changes.

use std::collections::BTreeMap;
use std::path::Path;

use super::git::Tree;
use super::repository::feed;
use crate::Error;
use crate::tool::GIT;

/// The commits that are reachable from one commit and not from another.
#[derive(Clone, Debug)]
pub struct History {
    tree: Tree,
    /// The commits. The good end is first, the bad end last, and each of the others comes after its parents.
    pub commits: Vec<Commit>,
}

/// A commit of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its name, 40 hexadecimal digits.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The names of its parents.
    pub parents: Vec<String>,
    /// Its parents as indices of [`History::commits`]. Those outside the range are 0, the good end.
    pub places: Vec<usize>,
}

/// A file that a commit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path in the source.
    pub path: String,
    /// Whether the commit adds it.
    pub is_new: bool,
}

impl History {
    /// Reads the history from `good` to `bad`; with `first_parent`, only along first parents. If they are the same
    /// commit, the history has only this commit.
    ///
    /// # Errors
    /// When a commit does not exist, the good end is not an ancestor of the bad one, or the repository lacks
    /// commits between them.
    pub fn read(tree: &Path, [good, bad]: [&str; 2], first_parent: bool) -> Result<Self, Error> {
        let tree = Tree::open(tree)?;
        let [first, last] = [tree.commit(good)?, tree.commit(bad)?];
        if !tree.is_ancestor(&first, &last)? {
            if tree.is_ancestor(&last, &first)? {
                let problem = format!("`{bad}` is an ancestor of `{good}`: exchange the two ends");
                return Err(tree.wrong(problem));
            }
            let fork = match tree.merge_base(&first, &last)? {
                Some(fork) => format!("; both come from {}: use it as the good end", &fork[..12]),
                None => String::new(),
            };
            return Err(tree.wrong(format!("`{good}` is not an ancestor of `{bad}`{fork}")));
        }
        let good = tree.log(&["--no-walk", &first])?;
        let range = format!("{first}..{last}");
        let mut which = vec!["--topo-order", "--reverse", &range];
        which.extend(first_parent.then_some("--first-parent"));
        let text = good + &tree.log(&which)?;
        let mut commits: Vec<Commit> = Vec::new();
        let mut places = BTreeMap::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, '\t');
            let [Some(id), Some(parents), Some(subject)] = [(); 3].map(|()| fields.next()) else {
                continue;
            };
            let parents: Vec<String> = parents.split(' ').map(String::from).collect();
            let counted = if first_parent { 1 } else { parents.len() };
            let place = |id: &String| places.get(id).copied().unwrap_or(0);
            commits.push(Commit {
                id: id.to_owned(),
                subject: subject.to_owned(),
                places: if commits.is_empty() {
                    Vec::new()
                } else {
                    parents.iter().take(counted).map(place).collect()
                },
                parents,
            });
            places.insert(id.to_owned(), commits.len() - 1);
        }
        Ok(Self { tree, commits })
    }

    /// The commit that a name means. Fails when there is none.
    pub fn commit(&self, name: &str) -> Result<String, Error> {
        self.tree.commit(name)
    }

    /// The files that differ between each commit and each of its parents. Empty for the good end.
    ///
    /// # Errors
    /// When git fails.
    pub fn changes(&self) -> Result<Vec<Vec<Vec<ChangedFile>>>, Error> {
        let mut pairs = String::new();
        for commit in self.commits.iter().skip(1) {
            for parent in &commit.parents {
                pairs += &format!("{} {parent}\n", commit.id);
            }
        }
        let mut command = self.tree.command();
        command.args(["diff-tree", "--stdin", "--always", "-r", "-z", "--no-renames"]);
        command.args(["--no-ext-diff", "--no-show-signature", "--name-status"]);
        let (output, _) = feed(command, |input| input.write_all(pairs.as_bytes()))?;
        if !output.status.success() {
            return Err(GIT.failed(&output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.split('\0').peekable();
        let mut all = vec![Vec::new()];
        for commit in self.commits.iter().skip(1) {
            let mut of_parents = Vec::new();
            for _ in &commit.parents {
                if words.next() != Some(&*commit.id) {
                    let problem = "git diff-tree does not print what it is asked for".into();
                    return Err(self.tree.wrong(problem));
                }
                let mut changes = Vec::new();
                while words.peek().is_some_and(|word| word.len() == 1) {
                    let is_new = words.next() == Some("A");
                    changes
                        .extend(words.next().map(|path| ChangedFile { path: path.into(), is_new }));
                }
                of_parents.push(changes);
            }
            all.push(of_parents);
        }
        Ok(all)
    }

    /// The date and the author of a commit: `2024-05-03 A U Thor <author@example.com>`.
    ///
    /// # Errors
    /// When git fails.
    pub fn author(&self, commit: &str) -> Result<String, Error> {
        let arguments =
            ["log", "--no-walk", "--no-show-signature", "--format=%as %an <%ae>", commit];
        self.tree.ask(arguments)
    }
}
