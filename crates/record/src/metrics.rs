//! Checks the metrics that workloads report.

use std::collections::{BTreeMap, BTreeSet};

use model::{Boot, Experiment, INSTRUCTIONS, Sample};

/// Compares the metrics that a boot reported with the manifests of its workloads. Returns one
/// sentence for each workload with undeclared metrics, and one for each that reported none of its
/// declared metrics. Workloads without samples are left out.
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

/// Finds workloads that reported two metrics whose rows would have the same name. A row is named by
/// its metric and its label. Returns the name of each workload with an error message.
pub fn ambiguous(samples: &[Sample]) -> Vec<(String, String)> {
    let mut rows = BTreeMap::new();
    let mut found = BTreeMap::new();
    for Sample { workload, metric, label, .. } in samples {
        let row = if label.is_empty() { metric.clone() } else { format!("{metric}-{label}") };
        let first: &String = rows.entry((workload, row.clone())).or_insert(metric);
        if first != metric {
            let why = format!(
                "workload `{workload}` reported the metrics `{first}` and `{metric}` with labels that make \
                 both the row `{row}`: rename a metric or a label"
            );
            found.entry(workload.clone()).or_insert(why);
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn rows_of_two_metrics_have_two_names() {
        let sample = |workload: &str, metric: &str, label: &str| Sample {
            workload: workload.into(),
            metric: metric.into(),
            label: label.into(),
            iteration: 0,
            phase: String::new(),
            value: 1.0,
            count: NonZeroU32::MIN,
            ended: None,
        };
        let sound = [
            sample("w", "x", "a-b"),
            sample("w", "x", "a-b"),
            sample("w", "x-a", "c"),
            sample("v", "x-a", "b"),
        ];
        assert_eq!(ambiguous(&sound), []);
        for other in [sample("w", "x-a", "b"), sample("w", "x-a-b", "")] {
            let [(workload, why)] = &*ambiguous(&[&sound[..], &[other]].concat()) else { panic!() };
            assert!(workload == "w" && why.contains("both the row `x-a-b`: rename"), "{why}");
        }
    }
}
