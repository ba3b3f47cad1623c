//! The luck floors of the built-in workloads in exact mode.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What `bench/floors` printed, with the reasons of large floors.
const FLOORS: &str = include_str!("floors.toml");

/// The floors of workloads, and how they were measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    /// The release of the kernel that was booted.
    pub kernel: String,
    /// Seeds of each variant.
    pub seeds: u32,
    /// By workload.
    pub workload: BTreeMap<String, WorkloadFloors>,
}

/// The floors of one workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFloors {
    /// The machine in words.
    pub machine: String,
    /// The parameters in words.
    pub parameters: String,
    /// Why floors are above 2 %.
    #[serde(default)]
    pub why: String,
    /// By measured phase.
    pub phases: BTreeMap<String, PhaseFloors>,
}

/// The floors of one phase in percent of the baseline's figure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseFloors {
    /// Of the kernel's instructions.
    pub all: f64,
    /// Of the kernel's instructions at equal entries.
    pub equal: Option<f64>,
}

/// The floors of the built-in workloads for which they were measured.
pub fn floors() -> Floors {
    toml::from_str(FLOORS).expect("a file of our own, tested")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::built_in;

    #[test]
    fn floors_are_of_measured_phases_and_large_ones_have_a_reason() {
        let manifests = built_in();
        for (name, workload) in floors().workload {
            let manifest = manifests.iter().find(|it| it.name == name).expect(&name);
            assert!(!workload.phases.is_empty(), "{name}");
            for (phase, floors) in &workload.phases {
                assert!(!manifest.prepares(phase), "{name} {phase}");
                let is_floor = |it: f64| (0.1..100.0).contains(&it);
                assert!(
                    is_floor(floors.all) && floors.equal.is_none_or(is_floor),
                    "{name} {phase}"
                );
                assert!(floors.all <= 2.0 || !workload.why.is_empty(), "{name} {phase}");
            }
        }
    }
}
