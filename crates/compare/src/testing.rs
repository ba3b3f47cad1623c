//! Boots and manifests for tests.

use model::{
    Better, Boot, BootFacts, Chunk, Column, HostLoad, Manifest, Mean, Metric, Outcome, Sample,
    Variant,
};

use crate::{KeptBoot, VariantBoots};

/// A workload with a time, a rate and a figure without direction.
pub fn manifest() -> Manifest {
    let metric =
        |name: &str, better, mean| Metric { name: name.into(), unit: "s".into(), better, mean };
    Manifest {
        name: "autonuma".into(),
        description: String::new(),
        command: Vec::new(),
        parameters: Default::default(),
        modules: Vec::new(),
        metrics: vec![
            metric("Elapsed", Some(Better::Lower), Mean::Amean),
            metric("Rate", Some(Better::Higher), Mean::Hmean),
            metric("CPU", None, Mean::Amean),
        ],
    }
}

/// A variant that changes nothing.
pub fn variant(name: &str) -> Variant {
    Variant {
        name: name.into(),
        kernel: String::new(),
        cmdline: String::new(),
        settings: Vec::new(),
        modules: Vec::new(),
    }
}

/// A column for each variant. Its boots are `b0`, `b1` and so on.
pub fn columns<'a>(variants: &'a [Variant], boots: &[&'a [Boot]]) -> Vec<VariantBoots<'a>> {
    let kept = |(number, boot)| KeptBoot { name: format!("b{number}"), superseded: false, boot };
    let columns = variants.iter().zip(boots);
    columns
        .map(|(variant, boots)| VariantBoots {
            variant,
            boots: boots.iter().enumerate().map(kept).collect(),
        })
        .collect()
}

/// A complete boot that measured nothing.
pub fn boot(replicate: u32) -> Boot {
    Boot {
        variant: String::new(),
        replicate,
        block: 0,
        started: 0,
        outcome: Outcome::Complete,
        facts: BootFacts::default(),
        host: HostLoad::default(),
        ..Boot::default()
    }
}

/// A boot that failed.
pub fn failed(replicate: u32, reason: &str) -> Boot {
    Boot { outcome: Outcome::Failed(reason.into()), ..boot(replicate) }
}

/// A sample of the workload, outside any phase.
pub fn sample(metric: &str, label: &str, iteration: u32, value: f64) -> Sample {
    Sample {
        workload: "autonuma".into(),
        iteration,
        phase: String::new(),
        metric: metric.into(),
        label: label.into(),
        value,
    }
}

/// A phase during which each counter of `/proc/vmstat` grew by so much.
pub fn chunk(iteration: u32, phase: &str, grown: &[(&str, i64)]) -> Chunk {
    let column = |&(name, by): &(&str, i64)| Column {
        name: name.into(),
        values: vec![Some(1000), Some(1000 + by)],
    };
    Chunk {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        source: "vmstat".into(),
        times: vec![0, 1_000_000_000],
        columns: grown.iter().map(column).collect(),
    }
}
