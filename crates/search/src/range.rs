//! Reads the range that a search covers.

use kernels::{Cache, Commit, Error, History, Unbuilt};
use lab::complete;
use model::{Build, Pinned, Variant, count};
use plan::Search;

use crate::options::Options;

/// A variant and how its kernel is built.
#[derive(Clone)]
pub struct BuiltVariant {
    /// The variant. Its kernel names the source.
    pub variant: Variant,
    /// How the kernel is built from the source.
    pub build: Build,
}

/// Returns the finished configuration of a kernel that would be built. If the build's patches do
/// not apply, they are left out. The inner error says why the kernel has no configuration.
pub fn configuration(
    search: &Search,
    BuiltVariant { variant, build }: &BuiltVariant,
    cache: &Cache,
    say: &dyn Fn(&str),
) -> Result<Result<String, Unbuilt>, Error> {
    let mut build = complete(&search.experiment, variant, build);
    let source = variant.kernel.name.parse()?;
    match cache.configuration(&source, &build, say)? {
        Err(unbuilt) if unbuilt.is_of_patch() && !build.patches.is_empty() => {
            build.patches.clear();
            cache.configuration(&source, &build, say)
        }
        finished => Ok(finished),
    }
}

/// The commits and changes of options between the two ends.
#[derive(Clone, Debug)]
pub struct Range {
    /// The commits, beginning with the good end. They are followed by the changes of options on the
    /// last commit, each as a commit whose parent is the one before.
    pub history: History,
    /// The number of commits after the good end.
    pub commits: usize,
    /// The options in which the configurations of the ends differ; `None` if they are not compared.
    pub options: Option<Options>,
}

impl Range {
    /// Reads the history, and compares the configurations of the ends for the code of the bad end.
    /// If the cache does not wait and another process builds a kernel, the options are left out,
    /// and `say` gets a line about it.
    ///
    /// # Errors
    /// As [`History::read`], when a configuration cannot be made, or when nothing differs between
    /// the ends.
    pub fn read(search: &Search, cache: &Cache, say: &dyn Fn(&str)) -> Result<Self, Error> {
        let [good, bad] = [&*search.good, &*search.bad];
        let mut history = History::read(&search.tree, [good, bad], search.first_parent)?;
        let commits = history.commits.len() - 1;
        let mut options = None;
        if search.has_options() {
            say("Comparing the configurations of the ends");
            let kernel = Pinned::from(format!("git:{}", history.commits[commits].id).as_str());
            let finished = |build: Build| {
                let variant = Variant { kernel: kernel.clone(), ..search.variant.clone() };
                let variant = BuiltVariant { variant, build };
                let why = |unbuilt: Unbuilt| Error::Config(format!("{bad} {}", unbuilt.problem()));
                configuration(search, &variant, cache, say)?.map_err(why)
            };
            let other = Build { config: search.bad_config.clone(), ..search.build() };
            let both = finished(search.build()).and_then(|good| Ok((good, finished(other)?)));
            options = match both {
                Ok((good, bad)) => Some(Options::between(good, bad)),
                Err(Error::Locked(held)) if !cache.waits() && commits > 0 => {
                    say(&format!("Which options differ is not known yet: {held}"));
                    None
                }
                Err(error) => return Err(error),
            };
        }
        for change in options.iter().flat_map(|options| &options.changes) {
            history.commits.push(Commit {
                id: change.option.clone(),
                subject: change.values.join(" -> "),
                parents: Vec::new(),
                places: vec![history.commits.len() - 1],
            });
        }
        if history.commits.len() == 1 {
            let with = if options.is_some() { " with the same options" } else { "" };
            let problem = format!(
                "`{good}` and `{bad}` are the same commit{with}; name another commit, or another configuration with \
                 --good-config or --bad-config"
            );
            return Err(Error::Tree { path: search.tree.clone(), problem });
        }
        Ok(Self { history, commits, options })
    }

    /// Returns the place of the bad end.
    pub fn bad(&self) -> usize {
        self.history.commits.len() - 1
    }

    /// Returns the number of changes of options.
    pub fn options(&self) -> usize {
        self.bad() - self.commits
    }

    /// Returns the place that has the bad end's code with the good end's configuration; `None` if
    /// only commits or only options change.
    pub fn parting(&self) -> Option<usize> {
        (self.commits > 0 && self.options() > 0).then_some(self.commits)
    }

    /// Describes what lies between the ends, such as `63 commits and 14 options from v6.1 to v6.4`.
    pub fn between(&self, search: &Search) -> String {
        let [good, bad] = search.ends();
        let commits = count(self.commits, "commit");
        let what = match (self.commits, self.options()) {
            (_, 0) => commits,
            (0, options) => count(options, "option"),
            (_, options) => format!("{commits} and {}", count(options, "option")),
        };
        format!("{what} from {good} to {bad}")
    }

    /// Returns about how many kernels a search of one step tries: the two ends, one for each
    /// halving, one between the commits and the options, and with `proves` the bad end with the
    /// culprit reverted.
    pub fn kernels(&self, proves: bool) -> u32 {
        2 + u32::from(proves) + u32::from(self.parting().is_some()) + self.bad().ilog2()
    }
}
