//! Compares the metrics that a workload reports with those that its manifest declares.

use std::collections::BTreeSet;

use model::{Boot, Experiment, INSTRUCTIONS};

/// A sentence for each workload whose samples have metrics that its manifest does not declare, and for each
/// that reported no declared metric.
pub fn differences(experiment: &Experiment, boot: &Boot) -> Vec<String> {
    let mut found = Vec::new();
    for used in &experiment.workloads {
        let workload = &*used.manifest.name;
        let samples = boot.samples.iter().filter(|sample| sample.workload == workload);
        let reported: BTreeSet<&str> =
            samples.map(|sample| &*sample.metric).filter(|it| *it != INSTRUCTIONS).collect();
        let declared: Vec<&str> = used.manifest.metrics.iter().map(|it| &*it.name).collect();
        if reported.is_empty() {
            continue;
        }
        let strange: Vec<&str> =
            reported.iter().copied().filter(|name| !declared.contains(name)).collect();
        if !strange.is_empty() {
            found.push(format!(
                "workload `{workload}` reported metrics that its manifest does not declare, so they have no \
                 verdict: {}",
                strange.join(", ")
            ));
        }
        if strange.len() == reported.len() && !declared.is_empty() {
            found.push(format!(
                "workload `{workload}` reported none of the metrics of its manifest: {}",
                declared.join(", ")
            ));
        }
    }
    found
}
