//! Reads what a function executed in two stored variants, by line of the source.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use boot::{CodeError, Vmlinux, kernels_that_ran};
use code::{Image, whole_listings};
use compare::{
    CountedFunction, Explanation, FunctionLines, VariantBoots, counted_function, function_lines,
};
use kernels::{Cache, Search, version};
use model::WorkloadUse;
use store::{Archive, ExperimentId};

use crate::analysis::Analysis;
use crate::error::AnalysisError;
use crate::explanation::{Compared, Explained, ExplanationQuestion, find, profiles_of, sides};

/// The largest file of a source that is read.
const MAX_SOURCE: u64 = 16 << 20;

/// The largest number of functions whose lines are returned if none is named.
const MOST_SHOWN: usize = 10;

/// The functions that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Functions {
    /// The one with this name, without suffixes of the compiler.
    Named(String),
    /// Those whose code differs, if the boots kept their lines.
    Changed,
}

/// Asks what functions executed.
#[derive(Clone, Debug)]
pub struct LinesQuestion {
    /// The variants, the workload and the phase. The cost is not used.
    pub explained: ExplanationQuestion,
    /// The functions.
    pub functions: Functions,
    /// The directory with the source of each kernel, if it is known. Otherwise the source is known only of kernels that
    /// were built here.
    pub sources: [Option<PathBuf>; 2],
    /// Files like `vmlinux` with debug information of the kernels.
    pub debug: Vec<PathBuf>,
}

/// The lines of functions and what they executed in both variants. There is at least one, and the largest change is first.
/// Objects of a kernel that was built here without debug information are compiled again, which `say` tells. Fails when the
/// experiment is not of exact mode or did not keep the lines, a name in the question does not exist, the cache does not
/// have both kernels, or the store cannot be read.
pub fn lines(
    store: &dyn Archive,
    asked: LinesQuestion,
    say: &dyn Fn(&str),
) -> Result<Vec<FunctionLines>, AnalysisError> {
    let LinesQuestion { explained, functions, sources, debug } = asked;
    let (id, phase) = (explained.experiment, explained.phase.clone());
    let compared = find(store, explained)?;
    check(&compared, id, phase.as_deref())?;
    let Compared { experiment, kept, places, used } = &compared;
    let known = &experiment.profile.lines;
    let names = match &functions {
        Functions::Named(function) if known.contains(function) => vec![function.clone()],
        Functions::Named(function) => {
            return Err(AnalysisError::NoLines { function: function.clone(), experiment: id });
        }
        Functions::Changed if known.is_empty() => return Err(AnalysisError::NoLinesAtAll(id)),
        Functions::Changed => known.clone(),
    };
    let [base, new] = &sides(experiment, *places, kept);
    let counted = Counted { sides: [base, new], used, phase: phase.as_deref() };
    let executed = counted.executed(&names);
    if let (Functions::Named(function), []) = (&functions, &*executed) {
        return Err(AnalysisError::NotExecuted { function: function.clone(), experiment: id });
    }
    let cache = Cache::open().map_err(|error| AnalysisError::NoCode(error.to_string()))?;
    let means = Means { cache, sources, debug, search: Search::Whole };
    let is_wanted = |base: &Image<'_>, new: &Image<'_>, name: &str| {
        functions != Functions::Changed || code::differs(base, new, name)
    };
    let lines = counted.lines(executed, &means, &is_wanted, say).map_err(AnalysisError::NoCode)?;
    match lines.is_empty() {
        true => Err(AnalysisError::NoChange { experiment: id, why: None }),
        false => Ok(lines),
    }
}

impl Explained {
    /// Adds the lines that the boots kept, for a page. Waits for no other build. Compiles only the objects of these
    /// functions, which `say` tells.
    pub fn with_lines(mut self, say: &dyn Fn(&str)) -> Self {
        let [base, new] = &sides(&self.experiment, self.places, &self.kept);
        let phase = self.phase.as_deref();
        let counted = Counted { sides: [base, new], used: &self.used, phase };
        add_lines(&mut self.explanation, &counted, &self.experiment.profile.lines, say);
        self
    }
}

/// Adds lines like [`Explained::with_lines`] to what was explained of a comparison.
pub fn with_lines(
    analysis: &Analysis,
    mut explained: Vec<compare::Explained>,
    say: &dyn Fn(&str),
) -> Vec<compare::Explained> {
    let results = analysis.results();
    let base = analysis.comparison.variants.first().and_then(|it| results.column(&it.name));
    for it in &mut explained {
        let mut workloads = results.experiment.workloads.iter();
        let used = workloads.find(|used| used.manifest.name == it.workload);
        if let (Some(base), Some(new), Some(used)) = (base, results.column(&it.variant), used) {
            let counted = Counted { sides: [base, new], used, phase: None };
            add_lines(&mut it.explanation, &counted, &results.experiment.profile.lines, say);
        }
    }
    explained
}

/// Adds the lines of functions to an explanation, or why there are none.
fn add_lines(
    explanation: &mut Explanation,
    counted: &Counted<'_>,
    known: &[String],
    say: &dyn Fn(&str),
) {
    let executed = counted.executed(known);
    if executed.is_empty() {
        return;
    }
    let lines = Cache::open().map_err(|error| error.to_string()).and_then(|cache| {
        let cache = cache.without_waiting();
        let means = Means { cache, sources: [None, None], debug: vec![], search: Search::Few };
        counted.lines(executed, &means, &|_, _, _| true, say)
    });
    match lines {
        Ok(lines) => explanation.lines = lines,
        Err(why) => explanation.unlined.push(why),
    }
}

/// What was counted of two variants.
struct Counted<'a> {
    sides: [&'a VariantBoots<'a>; 2],
    used: &'a WorkloadUse,
    /// The phase; `None` for the measured phases together.
    phase: Option<&'a str>,
}

/// What lines are taken from.
struct Means {
    cache: Cache,
    sources: [Option<PathBuf>; 2],
    debug: Vec<PathBuf>,
    search: Search,
}

/// A function that was executed, on both sides.
struct Executed {
    name: String,
    counted: [CountedFunction; 2],
}

impl Counted<'_> {
    /// The functions whose instructions were counted, the largest change first.
    fn executed(&self, names: &[String]) -> Vec<Executed> {
        let counted = names.iter().map(|name| Executed {
            name: name.clone(),
            counted: counted_function(self.sides, self.used, self.phase, name),
        });
        let is_executed = |it: &Executed| it.counted.iter().any(|it| !it.executions.is_empty());
        let mut executed: Vec<Executed> = counted.filter(is_executed).collect();
        executed.sort_by_key(|it| {
            let [base, new] = it.counted.each_ref().map(CountedFunction::per_seed);
            Reverse((new - base).abs() as u64)
        });
        executed
    }

    /// The lines of the functions that are wanted. The error says why the kernels' code cannot be read.
    fn lines(
        &self,
        mut executed: Vec<Executed>,
        Means { cache, sources, debug, search }: &Means,
        is_wanted: &dyn Fn(&Image<'_>, &Image<'_>, &str) -> bool,
        say: &dyn Fn(&str),
    ) -> Result<Vec<FunctionLines>, String> {
        let kernels = kernels_that_ran(cache, self.sides.map(|it| &it.variant.kernel))?;
        let no_code = |error: CodeError| error.to_string();
        let [base, new] = kernels.each_ref().map(|it| it.image().map_err(no_code));
        let (base, new) = (base?, new?);
        executed.retain(|it| is_wanted(&base, &new, &it.name));
        executed.truncate(MOST_SHOWN);
        let names: Vec<String> = executed.iter().map(|it| it.name.clone()).collect();
        let [base, new] = kernels
            .each_ref()
            .map(|it| it.image_with_lines(cache, &names, (debug, *search), say).map_err(no_code));
        let ((base, no_base), (new, no_new)) = (base?, new?);
        let others = [0, 1].map(|side| {
            other_version(sources[side].as_deref()?, &kernels[side].name, kernels[side].release())
        });
        let texts = Texts {
            kernels: &kernels,
            cache,
            sources: [0, 1].map(|side| sources[side].as_deref().filter(|_| others[side].is_none())),
            read: RefCell::default(),
            missing: RefCell::default(),
        };
        let text = |side: usize, place: &str| texts.line(side, place);
        let lines = executed.into_iter().map(|Executed { name, counted }| {
            let listings = whole_listings(&base, &new, &name);
            let mut lines = function_lines(&name, self.phase, counted, &listings, &text);
            let notes = [&no_base, &no_new].into_iter().filter_map(|it| it.get(&name).cloned());
            let notes = notes.chain(others.iter().flatten().cloned());
            lines.notes = notes.chain(texts.missing.borrow().iter().cloned()).collect();
            lines.notes.dedup();
            lines
        });
        Ok(lines.collect())
    }
}

/// Checks that instructions were counted, and that the phase exists.
fn check(
    Compared { experiment, kept, used, .. }: &Compared,
    id: ExperimentId,
    phase: Option<&str>,
) -> Result<(), AnalysisError> {
    if experiment.mode.is_measured() {
        return Err(AnalysisError::NotCounted(id));
    }
    let phases = || profiles_of(used, kept).map(|it| it.phase.as_str());
    let Some(phase) = phase.filter(|asked| !phases().any(|it| it == *asked)) else {
        return Ok(());
    };
    let mut known: Vec<&str> = Vec::new();
    phases().for_each(|it| {
        if !known.contains(&it) {
            known.push(it)
        }
    });
    let workload = used.manifest.name.clone();
    Err(AnalysisError::no_phase_of(workload, phase, known.into_iter()))
}

/// The files of the sources.
struct Texts<'a> {
    kernels: &'a [Vmlinux; 2],
    cache: &'a Cache,
    sources: [Option<&'a Path>; 2],
    /// The files that were read, by side and path.
    read: RefCell<HashMap<(usize, String), Option<String>>>,
    /// Sentences on the files that a source does not have.
    missing: RefCell<BTreeSet<String>>,
}

impl Texts<'_> {
    /// A line of a side's source, such as that of `mm/memory.c:512`.
    fn line(&self, side: usize, place: &str) -> Option<String> {
        let (file, number) = place.rsplit_once(':')?;
        let number = number.parse::<usize>().ok()?.checked_sub(1)?;
        let mut read = self.read.borrow_mut();
        let text =
            read.entry((side, file.to_owned())).or_insert_with(|| match self.sources[side] {
                Some(source) => file_of(source, file).or_else(|| {
                    let missing = format!("{} has no {file}", source.display());
                    self.missing.borrow_mut().insert(missing);
                    None
                }),
                None => self.kernels[side].source_file(self.cache, file),
            });
        Some(text.as_ref()?.lines().nth(number)?.trim().to_owned())
    }
}

/// Returns that a source is of another version than a kernel. Packages do not tell the last number of a version in the
/// release.
fn other_version(source: &Path, kernel: &str, release: &str) -> Option<String> {
    let version = version(&file_of(source, "Makefile")?)?;
    let numbers = |text: &str| text.split(['.', '-', '+']).take(2).collect::<Vec<_>>().join(".");
    (!release.is_empty() && numbers(&version) != numbers(release)).then(|| {
        format!("{} has the source of {version}, so it has no text for {kernel}", source.display())
    })
}

/// The text of a file below the directory of a source. Its path comes from a kernel's debug information; files elsewhere
/// are not read.
fn file_of(source: &Path, file: &str) -> Option<String> {
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Some(source.join(file)).filter(|_| Path::new(file).components().all(is_below))?;
    let is_small = fs::metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= MAX_SOURCE);
    let text = is_small.then(|| fs::read(path)).transpose().ok()??;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_another_version_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let makefile = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
        let other = |release| other_version(place.path(), "mine", release);
        assert_eq!(other("6.1.0-56-cloud-amd64"), None, "without a Makefile nothing is known");
        fs::write(place.path().join("Makefile"), makefile).unwrap();
        assert_eq!(other("6.12.117+deb12-cloud-amd64"), None);
        assert_eq!(other(""), None);
        let said = other("6.1.0-56-cloud-amd64").unwrap();
        assert!(said.ends_with("has the source of 6.12.117, so it has no text for mine"), "{said}");
    }

    #[test]
    fn only_files_below_the_source_are_read() {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("linux");
        fs::create_dir_all(source.join("mm")).unwrap();
        fs::write(source.join("mm/memory.c"), "text").unwrap();
        fs::write(place.path().join("secret"), "secret").unwrap();
        assert_eq!(file_of(&source, "mm/memory.c").as_deref(), Some("text"));
        let outside = place.path().join("secret").display().to_string();
        for missing in ["mm/other.c", "mm", "../secret", &outside] {
            assert_eq!(file_of(&source, missing), None, "{missing}");
        }
    }
}
