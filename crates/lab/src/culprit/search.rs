//! What a search for a commit is given, and the range that it searches.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kernels::{Cache, Commit, Error, History, Unbuilt};
use model::{Build, Experiment, Pinned, Reading, Share, Variant, count};

use super::options::Options;
use crate::request::Request;
use crate::run::complete;

/// How sure an answer of measured mode is to be.
pub const CONFIDENCE: Share = Share(0.95);
/// Boots of each end in measured mode.
pub const BOOTS: u32 = 5;

/// Whether an answer can be wanted with this confidence.
pub fn is_confidence(Share(confidence): Share) -> bool {
    (0.5..1.0).contains(&confidence)
}

/// What the experiments of a search for a workload's figure are called, before the name of the commit.
pub fn name(workload: &str) -> String {
    format!("culprit-{workload}")
}

/// A search for the commit at which a workload's figure changed.
#[derive(Clone, Debug)]
pub struct Search {
    /// The git repository.
    pub tree: PathBuf,
    /// The good end: any name of a commit.
    pub good: String,
    /// The bad end.
    pub bad: String,
    /// An older commit, which shows whether the bad end only returns to its level.
    pub reference: Option<String>,
    /// Machine, workload, mode and number of boots of the ends. Its variants are not used.
    pub experiment: Experiment,
    /// How the figures of its workload are read.
    pub reading: Reading,
    /// Command line, settings and modules of every kernel.
    pub variant: Variant,
    /// Configuration and compiler of every kernel. Its patches are applied where they apply.
    pub build: Build,
    /// The configuration of the bad end. That of the good end and of the commits between is that of `build`.
    pub bad_config: Option<String>,
    /// The figure.
    pub asked: Asked,
    /// Search every step beyond luck.
    pub all: bool,
    /// Do not search inside merges.
    pub first_parent: bool,
    /// Measured mode: how sure the answer is to be.
    pub confidence: f64,
    /// No further commit is tried when new kernels and boots have taken this long.
    pub budget: Option<Duration>,
    /// Whether the culprits are measured again and reverted.
    pub prove: bool,
}

/// A variant and how its kernel is built.
#[derive(Clone)]
pub struct BuiltVariant {
    /// The variant. Its kernel is the source.
    pub variant: Variant,
    /// What is made of the source.
    pub build: Build,
}

impl Search {
    /// Whether the ends have different configurations.
    fn has_options(&self) -> bool {
        self.build.config != self.bad_config
    }

    /// An experiment like the search's that boots these variants, whose kernels were built. `what` follows the name.
    pub(super) fn request(&self, what: &str, variants: Vec<Variant>, boots: u32) -> Request {
        let name = format!("{}-{what}", self.experiment.name);
        let experiment = Experiment { name, variants, boots, ..self.experiment.clone() };
        Request { experiment, reading: self.reading.clone(), builds: BTreeMap::new() }
    }

    /// How a commit is built.
    pub(super) fn build(&self) -> Build {
        let mut build = self.build.clone();
        if self.has_options() {
            // It puts the configuration into the image, so that no two options would give the same.
            build.set.insert("CONFIG_IKCONFIG".into(), "n".into());
        }
        build
    }

    /// The ends as they were named, with the configurations if these differ.
    pub fn ends(&self) -> [String; 2] {
        let [good, bad] = [&self.good, &self.bad];
        let [own, other] = self.configs();
        match self.has_options() {
            true => [format!("{good} with {own}"), format!("{bad} with {other}")],
            false => [good.clone(), bad.clone()],
        }
    }

    /// What the configurations of the ends are called.
    pub(super) fn configs(&self) -> [&str; 2] {
        [&self.build.config, &self.bad_config]
            .map(|config| config.as_deref().unwrap_or("the small configuration"))
    }

    /// The finished configuration of a variant that is built. The error is why it cannot have it.
    pub(super) fn configuration(
        &self,
        BuiltVariant { variant, build }: &BuiltVariant,
        cache: &Cache,
        say: &dyn Fn(&str),
    ) -> Result<Result<String, Unbuilt>, Error> {
        let mut build = complete(&self.experiment, variant, build);
        let source = variant.kernel.name.parse()?;
        match cache.configuration(&source, &build, say)? {
            Err(unbuilt) if unbuilt.is_of_patch() && !build.patches.is_empty() => {
                build.patches.clear();
                cache.configuration(&source, &build, say)
            }
            finished => Ok(finished),
        }
    }
}

/// The changes between the two ends.
#[derive(Clone, Debug)]
pub struct Range {
    /// The commits, from the good end. After them the changes of options on the last commit, each after the one
    /// before.
    pub history: History,
    /// Number of commits after the good end.
    pub commits: usize,
    /// The options in which the configurations of the ends differ.
    pub options: Option<Options>,
}

impl Range {
    /// Reads the history, and compares the configurations of the ends on the code of the bad end. With a cache that
    /// does not wait, options are left out while another process builds a kernel, and `say` is told so.
    ///
    /// # Errors
    /// As [`History::read`], when a configuration cannot be had, or nothing differs.
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
                search.configuration(&variant, cache, say)?.map_err(why)
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

    /// The place of the bad end.
    pub fn bad(&self) -> usize {
        self.history.commits.len() - 1
    }

    /// Number of changes of options.
    pub fn options(&self) -> usize {
        self.bad() - self.commits
    }

    /// The place of the bad end's code with the good end's configuration, if both code and options change.
    pub fn parting(&self) -> Option<usize> {
        (self.commits > 0 && self.options() > 0).then_some(self.commits)
    }

    /// What lies between the ends: `63 commits and 14 options from v6.1 to v6.4`.
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

    /// About how many kernels a search of one step tries: the two ends, the one between commits and options, one for
    /// each halving, and if the culprit is proven, one with it reverted.
    pub fn kernels(&self, proves: bool) -> u32 {
        2 + u32::from(proves) + u32::from(self.parting().is_some()) + self.bad().ilog2()
    }
}

/// The figure that the user asked for. Without any, the search chooses it from the ends.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// A row of the tables of metrics.
    pub metric: Option<String>,
    /// A counter.
    pub counter: Option<String>,
    /// Exact mode: a phase.
    pub phase: Option<String>,
    /// Exact mode: a function.
    pub function: Option<String>,
}
