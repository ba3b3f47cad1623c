//! Why stored results cannot be compared or explained as asked.

use compare::NoPhase;
use model::OUTSIDE_PHASES;
use store::ExperimentId;

/// Why experiments cannot be compared as asked.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// No variant has the requested name.
    #[error("there is no variant `{asked}`; there are: {}", .known.join(", "))]
    NoVariant {
        /// The name that was asked for.
        asked: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The experiment has no point with the requested name or value.
    #[error("there is no point `{asked}`{}", match &**known {
        [] => ": the experiment is not a sweep".to_owned(),
        known => format!("; there are: {}", known.join(", ")),
    })]
    NoPoint {
        /// The name that was asked for.
        asked: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No workload has the requested phase.
    #[error("no workload has a phase `{}`{}", .0.asked, phases("the workloads have", &.0.known))]
    NoPhase(NoPhase),
    /// The workload does not have the requested phase.
    #[error("{workload} has no phase `{asked}`{}", phases("it has", .known))]
    NoPhaseOf {
        /// The name of the workload.
        workload: String,
        /// The phase that was asked for.
        asked: String,
        /// The phases that there are.
        known: Vec<String>,
    },
    /// No workload has the requested name, or none was requested and there are several.
    #[error("{}{}", match asked {
        Some(asked) => format!("there is no workload `{asked}`; there are: "),
        None => "name one of the workloads with --workload: ".to_owned(),
    }, .known.join(", "))]
    NoWorkload {
        /// The name that was asked for; `None` if there was no name.
        asked: Option<String>,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The two variants ran at different points of a sweep.
    #[error(
        "`{}` and `{}` ran at different points of a sweep, which cannot be compared: name two variants at one \
         point", .0[0], .0[1]
    )]
    OtherPoint([String; 2]),
    /// The experiment is not of exact mode, so it has no counted profiles.
    #[error(
        "experiment {0} ran in measured mode, which does not count instructions: run it with --mode exact"
    )]
    NotCounted(ExperimentId),
    /// A boot did not record call paths.
    #[error(
        "not all boots of experiment {0} recorded call paths, which lead back to system calls: run it with \
         --profile stacks"
    )]
    NotFollowed(ExperimentId),
    /// The cost with this name is not known by call path.
    #[error(
        "`{0}` is not counted by call path, so it cannot be divided between system calls: leave out --by-syscall or --cost"
    )]
    NotByPath(String),
    /// A variant has no complete boot of a seed.
    #[error("`{variant}` has no complete boot of seed {seed}{}", match &**known {
        [] => String::new(),
        known => format!("; it has: {}", known.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    })]
    NoSeed {
        /// The name of the variant.
        variant: String,
        /// The number of the seed.
        seed: u32,
        /// The seeds of which it has complete boots.
        known: Vec<u32>,
    },
    /// A variant has no boot with a sampled profile.
    #[error(
        "`{variant}` has no complete boot with samples: `faultline show {experiment}` shows its boots, `[profile] \
         sampled = true` in the experiment's file or `run --profile sampled` takes samples, --mode exact counts \
         instructions, and an interrupted `import perf` is completed by the same command"
    )]
    NotSampled {
        /// The name of the variant.
        variant: String,
        /// The number of the experiment.
        experiment: ExperimentId,
    },
    /// A variant has no boot with a counted profile of the workload.
    #[error(
        "`{variant}` has no complete boot with a profile of {workload}: `faultline show {experiment}` shows \
         why, `faultline run` continues the experiment"
    )]
    NoProfile {
        /// The name of the variant.
        variant: String,
        /// The name of the workload.
        workload: String,
        /// The number of the experiment.
        experiment: ExperimentId,
    },
    /// The boots did not keep a function's executions by instruction.
    #[error(
        "experiment {experiment} did not keep the lines of `{function}`: `faultline run --again {experiment} --lines \
         {function}` boots the same seeds and keeps them"
    )]
    NoLines {
        /// The name of the function.
        function: String,
        /// The number of the experiment.
        experiment: ExperimentId,
    },
    /// The boots did not keep the executions of any function by instruction.
    #[error(
        "experiment {0} did not keep the lines of any function: `faultline run --again {0} --lines changed` boots the \
         same seeds and keeps those of functions whose code differs"
    )]
    NoLinesAtAll(ExperimentId),
    /// The code of no function that was executed differs.
    #[error("the code of no function that experiment {experiment} executed differs{}", match why {
        Some(why) => format!(", as far as it was compared: {why}"),
        None => String::new(),
    })]
    NoChange {
        /// The number of the experiment.
        experiment: ExperimentId,
        /// Why the code of some kernels was not compared.
        why: Option<String>,
    },
    /// No boot executed the function.
    #[error(
        "no boot of experiment {experiment} executed `{function}` here: `faultline explain` lists the functions that \
         were executed"
    )]
    NotExecuted {
        /// The name of the function.
        function: String,
        /// The number of the experiment.
        experiment: ExperimentId,
    },
    /// The code of a kernel cannot be read.
    #[error("the code of the kernels cannot be read: {0}")]
    NoCode(String),
    /// The boots do not have the cost that was asked for.
    #[error(transparent)]
    NoCost(#[from] compare::NoCost),
    /// The experiments did not run the same workloads on the same machine.
    #[error("experiments {} cannot be compared:\n  {}", numbers(.ids), .differences.join("\n  "))]
    Different {
        /// The numbers of the experiments.
        ids: Vec<ExperimentId>,
        /// A line for each difference.
        differences: Vec<String>,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl AnalysisError {
    /// Says that a workload does not have the phase that was asked for, and lists those that it has.
    pub(crate) fn no_phase_of<'a>(
        workload: String,
        asked: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let printed =
            |phase: &str| if phase.is_empty() { OUTSIDE_PHASES } else { phase }.to_owned();
        Self::NoPhaseOf { workload, asked: printed(asked), known: known.map(printed).collect() }
    }
}

/// Returns the end of a message about an unknown phase: the list of the phases that exist. `whose`,
/// such as `it has`, is used if there are none.
fn phases(whose: &str, known: &[String]) -> String {
    match known {
        [] => format!(": {whose} no phases"),
        known => format!("; there are: {}", known.join(", ")),
    }
}

fn numbers(ids: &[ExperimentId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
