//! A whole mail of exact mode, with its cause.

use model::{INSTRUCTIONS, Place, Profile, Sample};

use super::cause::kernels;
use super::*;

/// The kernel's instructions of a phase, as boots report them.
fn reported(profile: &Profile) -> Sample {
    let cost = profile.costs.number(INSTRUCTIONS);
    let rows = profile.costs.rows().filter(|row| matches!(row.place, Place::Function { .. }));
    let sum: u128 = rows.map(|row| row.sum(cost)).sum();
    Sample {
        iteration: profile.iteration,
        phase: profile.phase.clone(),
        label: "kernel".into(),
        ..Sample::new("autonuma", INSTRUCTIONS, sum as f64)
    }
}

#[test]
fn two_packages() {
    let booted = |version: &str, mut boots: Vec<Boot>| {
        for boot in &mut boots {
            boot.facts.release = format!("{version}+deb13-amd64");
            boot.facts.kernel_digest = version.replace('.', "").repeat(8);
            boot.facts.kernel_origin = format!("Debian {version}-1, linux-image-{version}");
            boot.facts.provenance.execution = Some(Execution::Tcg);
            boot.samples =
                boot.profiles.iter().filter(|it| !it.phase.is_empty()).map(reported).collect();
        }
        boots
    };
    let sides =
        [("6.12", booted("6.12.117", kernels::old())), ("newest", booted("7.3.4", kernels::new()))];
    let mut case = Case::new(Mode::Exact, &sides);
    case.experiment.boots = 5;
    let boots: Vec<&[Boot]> = case.boots.iter().map(Vec::as_slice).collect();
    let results = Results {
        experiment: &case.experiment,
        reading: &case.reading,
        variants: columns(&case.variants, &boots),
    };
    let comparison = compare(&results, 0, &Judging::default());
    case.explained = compare::explained(&comparison, &results, true);
    insta::assert_snapshot!(case.mail(|_| ()).0);
}
