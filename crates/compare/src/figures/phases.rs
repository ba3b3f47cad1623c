//! Chooses the phases that tables of counters count.

use std::collections::BTreeSet;

use model::{Boot, Manifest, Reading, WorkloadUse};

/// The word for all phases.
pub const ALL_PHASES: &str = "all";

/// The error that no workload has a requested phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPhase {
    /// The requested phase, as the user wrote it.
    pub asked: String,
    /// The existing phases, by name.
    pub known: Vec<String>,
}

/// The reading of these boots in which tables of counters have the phases `asked` for instead of those that manifests
/// choose, or all phases if `asked` is `all`. Fails if no workload has a phase that is asked for.
pub fn with_phases<'a>(
    reading: &Reading,
    workloads: &[WorkloadUse],
    boots: impl IntoIterator<Item = &'a Boot>,
    asked: &[String],
) -> Result<Reading, NoPhase> {
    let chunks = boots.into_iter().flat_map(|boot| &boot.chunks);
    let seen: BTreeSet<(&str, &str)> =
        chunks.map(|chunk| (&*chunk.workload, &*chunk.phase)).collect();
    let all = asked.iter().any(|phase| phase == ALL_PHASES);
    if let Some(unknown) = asked.iter().find(|it| !all && !seen.iter().any(|(_, is)| is == it)) {
        let known: BTreeSet<&str> = seen.iter().map(|(_, phase)| *phase).collect();
        let known = known.into_iter().filter(|phase| !phase.is_empty()).map(str::to_owned);
        return Err(NoPhase { asked: unknown.clone(), known: known.collect() });
    }
    let mut reading = reading.clone();
    for Manifest { name, .. } in workloads.iter().map(|used| &used.manifest) {
        let own = seen.iter().filter(|(workload, _)| workload == name);
        let left_out = own.filter(|(_, phase)| !all && !asked.iter().any(|it| it == phase));
        let left_out = left_out.map(|(_, phase)| (*phase).to_owned()).collect();
        reading.workloads.entry(name.clone()).or_default().left_out = Some(left_out);
    }
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, chunk, manifest, used};

    #[test]
    fn phases_are_chosen() {
        let workloads = [used(manifest())];
        let mut boot = boot(0);
        boot.chunks = ["", "fill", "run", "check"].map(|phase| chunk(0, phase, &[])).into();
        let left_out = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|&phase| phase.to_owned()).collect();
            let chosen = with_phases(Reading::USUAL, &workloads, [&boot], &asked)?;
            Ok(chosen.workloads["autonuma"].left_out.clone().unwrap())
        };
        assert_eq!(left_out(&["all"]), Ok(vec![]));
        assert_eq!(left_out(&["fill"]), Ok(vec!["".into(), "check".into(), "run".into()]));
        assert_eq!(left_out(&["run", "check"]), Ok(vec!["".into(), "fill".into()]));
        let known = ["check", "fill", "run"].map(str::to_owned).into();
        assert_eq!(left_out(&["run", "runs"]), Err(NoPhase { asked: "runs".into(), known }));
    }
}
