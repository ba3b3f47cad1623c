//! Refuses functions whose lines cannot be kept or printed, with what to do.

use plan::form::near;
use results::AnalysisError;
use store::{Archive, ExperimentId};

use crate::failure::Failure;

/// Refuses a function that no complete boot of an experiment executed. Names similar ones. Without complete boots nothing
/// is known, so no function is refused.
pub fn check_executed<'a>(
    store: &dyn Archive,
    id: ExperimentId,
    functions: impl IntoIterator<Item = &'a String>,
) -> Result<(), Failure> {
    let executed = results::executed(store, id)?;
    let mut functions = functions.into_iter().filter(|_| !executed.is_empty());
    let Some(missing) = functions.find(|it| !executed.contains(*it)) else { return Ok(()) };
    let meant = match &near::several(missing, executed.iter().map(String::as_str))[..] {
        [] => "; `faultline explain` lists the functions that were executed".to_owned(),
        near => format!("; similar ones that were executed: {}", near.join(", ")),
    };
    let inlined = "One that is inlined everywhere has no lines of its own";
    Err(Failure::Usage(format!(
        "no boot of experiment {id} executed `{missing}`{meant}. {inlined}"
    )))
}

/// Why the lines of a function cannot be printed. `named` is the option `--store`, if it was given.
pub fn refused(store: &dyn Archive, error: AnalysisError, named: &str) -> Failure {
    let (AnalysisError::NoLines { function, experiment }
    | AnalysisError::NotExecuted { function, experiment }) = &error
    else {
        return error.into();
    };
    if let Err(failure) = check_executed(store, *experiment, [function]) {
        return failure;
    }
    match error {
        AnalysisError::NoLines { function, experiment: id } => Failure::Usage(format!(
            "experiment {id} did not keep the lines of `{function}`: `faultline{named} run --again {id} --lines \
             {function}` boots the same seeds and keeps them"
        )),
        other => other.into(),
    }
}
