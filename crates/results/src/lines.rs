//! Reads what a function executed in two stored variants, by line of the source.

use std::fs;
use std::path::{Component, Path, PathBuf};

use boot::kernels_that_ran;
use code::whole_listings;
use compare::{FunctionLines, counted_function, function_lines};
use kernels::Cache;
use store::Archive;

use crate::analysis::AnalysisError;
use crate::explanation::{Compared, ExplanationQuestion, find, profiles_of, sides};

/// The largest file of a source that is read.
const MAX_SOURCE: u64 = 16 << 20;

/// The lines of a function and what they executed in both variants. The question's cost must be `None`. `sources` are the
/// directories with the source of each kernel, if they are known. Fails when the experiment is not of exact mode or did
/// not keep the lines of the function, a name in the question does not exist, the cache does not have both kernels, or
/// the store cannot be read.
pub fn lines(
    store: &dyn Archive,
    asked: ExplanationQuestion,
    function: &str,
    sources: [Option<PathBuf>; 2],
) -> Result<FunctionLines, AnalysisError> {
    let (id, phase) = (asked.experiment, asked.phase.clone());
    let Compared { experiment, kept, places, used } = find(store, asked)?;
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
    let function = function.to_owned();
    if !experiment.profile.lines.contains(&function) {
        return Err(AnalysisError::NoLines { function, experiment: id });
    }
    let [base, new] = sides(&experiment, places, &kept);
    let counted = counted_function([&base, &new], &used, phase.as_deref(), &function);
    if counted.iter().all(|it| it.executions.is_empty()) {
        return Err(AnalysisError::NotExecuted { function, experiment: id });
    }
    let kernels = places.map(|place| &experiment.variants[place].kernel);
    let cache = Cache::open().map_err(|error| error.to_string());
    let read = cache.and_then(|cache| kernels_that_ran(&cache, kernels));
    let [base, new] = read.map_err(AnalysisError::NoCode)?;
    let code = |error: boot::CodeError| AnalysisError::NoCode(error.to_string());
    let (base, new) = (base.image().map_err(code)?, new.image().map_err(code)?);
    let listings = whole_listings(&base, &new, &function);
    let text = |side: usize, place: &str| line_of(sources[side].as_ref()?, place);
    Ok(function_lines(&function, phase.as_deref(), counted, &listings, &text))
}

/// A line of a file below the directory of a source, such as that of `mm/memory.c:512`. The place comes from a kernel's
/// debug information; files elsewhere are not read.
fn line_of(source: &Path, place: &str) -> Option<String> {
    let (file, number) = place.rsplit_once(':')?;
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Some(source.join(file)).filter(|_| Path::new(file).components().all(is_below))?;
    let is_small = fs::metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= MAX_SOURCE);
    let text = is_small.then(|| fs::read(path)).transpose().ok()??;
    let number = number.parse::<usize>().ok()?.checked_sub(1)?;
    let line = text.split(|&byte| byte == b'\n').nth(number)?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_files_below_the_source_are_read() {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("linux");
        fs::create_dir_all(source.join("mm")).unwrap();
        fs::write(source.join("mm/memory.c"), "one\n\ttwo;\n").unwrap();
        fs::write(place.path().join("secret"), "secret\n").unwrap();
        let line = |place: &str| line_of(&source, place);
        assert_eq!(line("mm/memory.c:2").as_deref(), Some("two;"));
        let outside = format!("{}:1", place.path().join("secret").display());
        for missing in
            ["mm/memory.c:0", "mm/memory.c:9", "mm/memory.c", "mm:1", "../secret:1", &outside]
        {
            assert_eq!(line(missing), None, "{missing}");
        }
    }
}
