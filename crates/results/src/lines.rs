//! Reads what a function executed in two stored variants, by line of the source.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use boot::{Vmlinux, kernels_that_ran};
use code::whole_listings;
use compare::{FunctionLines, counted_function, function_lines};
use kernels::Cache;
use store::Archive;

use crate::error::AnalysisError;
use crate::explanation::{Compared, ExplanationQuestion, find, profiles_of, sides};

/// The largest file of a source that is read.
const MAX_SOURCE: u64 = 16 << 20;

/// Asks what a function executed.
#[derive(Clone, Debug)]
pub struct LinesQuestion {
    /// The variants, the workload and the phase. The cost is not used.
    pub explained: ExplanationQuestion,
    /// The function's name without suffixes of the compiler.
    pub function: String,
    /// The directory with the source of each kernel, if it is known. Otherwise the source is known only of kernels that
    /// were built here.
    pub sources: [Option<PathBuf>; 2],
    /// Files like `vmlinux` with debug information of the kernels.
    pub debug: Vec<PathBuf>,
}

/// The lines of a function and what they executed in both variants. Objects of a kernel that was built here without debug
/// information are compiled again, which `say` tells. Fails when the experiment is not of exact mode or did not keep the
/// lines of the function, a name in the question does not exist, the cache does not have both kernels, or the store cannot
/// be read.
pub fn lines(
    store: &dyn Archive,
    asked: LinesQuestion,
    say: &dyn Fn(&str),
) -> Result<FunctionLines, AnalysisError> {
    let LinesQuestion { explained, function, sources, debug } = asked;
    let (id, phase) = (explained.experiment, explained.phase.clone());
    let Compared { experiment, kept, places, used } = find(store, explained)?;
    if experiment.mode.is_measured() {
        return Err(AnalysisError::NotCounted(id));
    }
    let phases = || profiles_of(&used, &kept).map(|it| it.phase.as_str());
    if let Some(phase) = phase.as_deref().filter(|asked| !phases().any(|it| it == *asked)) {
        let mut known: Vec<&str> = Vec::new();
        phases().for_each(|it| {
            if !known.contains(&it) {
                known.push(it)
            }
        });
        let workload = used.manifest.name.clone();
        return Err(AnalysisError::no_phase_of(workload, phase, known.into_iter()));
    }
    if !experiment.profile.lines.contains(&function) {
        return Err(AnalysisError::NoLines { function, experiment: id });
    }
    let [base, new] = sides(&experiment, places, &kept);
    let counted = counted_function([&base, &new], &used, phase.as_deref(), &function);
    if counted.iter().all(|it| it.executions.is_empty()) {
        return Err(AnalysisError::NotExecuted { function, experiment: id });
    }
    let kernels = places.map(|place| &experiment.variants[place].kernel);
    let cache = Cache::open().map_err(|error| AnalysisError::NoCode(error.to_string()))?;
    let kernels = kernels_that_ran(&cache, kernels).map_err(AnalysisError::NoCode)?;
    let image = |kernel: usize| {
        let read = kernels[kernel].image_with_lines(&cache, &function, &debug, say);
        read.map_err(|error| AnalysisError::NoCode(error.to_string()))
    };
    let ((base, no_base), (new, no_new)) = (image(0)?, image(1)?);
    let listings = whole_listings(&base, &new, &function);
    let read = RefCell::default();
    let texts = Texts { kernels: &kernels, cache: &cache, sources, say, read };
    let text = |side: usize, place: &str| texts.line(side, place);
    let mut lines = function_lines(&function, phase.as_deref(), counted, &listings, &text);
    lines.notes = no_base.into_iter().chain(no_new).collect();
    lines.notes.dedup();
    Ok(lines)
}

/// The files of the sources.
struct Texts<'a> {
    kernels: &'a [Vmlinux; 2],
    cache: &'a Cache,
    sources: [Option<PathBuf>; 2],
    say: &'a dyn Fn(&str),
    /// The files that were read, by side and path.
    read: RefCell<HashMap<(usize, String), Option<String>>>,
}

impl Texts<'_> {
    /// A line of a side's source, such as that of `mm/memory.c:512`.
    fn line(&self, side: usize, place: &str) -> Option<String> {
        let (file, number) = place.rsplit_once(':')?;
        let number = number.parse::<usize>().ok()?.checked_sub(1)?;
        let mut read = self.read.borrow_mut();
        let text =
            read.entry((side, file.to_owned())).or_insert_with(|| match &self.sources[side] {
                Some(source) => file_of(source, file),
                None => self.kernels[side].source_file(self.cache, file, self.say),
            });
        Some(text.as_ref()?.lines().nth(number)?.trim().to_owned())
    }
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
