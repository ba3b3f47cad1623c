//! `faultline selftest`: compares a kernel with itself.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::selftest::{SelfTest, halves, selftest as test};
use ::compare::{KeptBoot, Results, VariantBoots};
use lab::{RunOptions, file, place_of};
use model::{Mode, Source};
use store::Detail;

use super::build::variant;
use super::chosen::find;
use super::run::{described, laboratory, not_too_many, workload};
use super::{existing_store, print};
use crate::args::{SelftestArgs, SelftestFormat};
use crate::failure::{BOOTS_FAILED, Failure};
use crate::progress::Display;

/// Which counters are compared.
const DETAIL: Detail<'static> = Detail::Series(&[Source::Vmstat.name()]);

pub fn selftest(store: Option<PathBuf>, args: &SelftestArgs) -> Result<ExitCode, Failure> {
    let found = match args.from.as_deref() {
        Some([experiment, variant]) => of_kept(store, experiment, variant)?,
        _ => of_boots(store, args)?,
    };
    print(&match args.format {
        SelftestFormat::Text => report::selftest::text(&found),
        SelftestFormat::Json => {
            report::selftest::json(&found).map_err(|error| Failure::Host(error.to_string()))?
        }
    })?;
    Ok(if found.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}

/// Boots a kernel as two variants, in turn.
fn of_boots(store: Option<PathBuf>, args: &SelftestArgs) -> Result<SelfTest, Failure> {
    if args.boots < 3 {
        return Err(Failure::Usage("--boots needs 3 or more: fewer show nothing".into()));
    }
    let boots = not_too_many(args.boots)?;
    let variants = ["A", "B"].map(|name| variant(name.to_owned(), &args.kernel)).to_vec();
    let used = workload(&args.workload, &args.parameters, args.iterations)?;
    let name = format!("selftest-{}-{}", used.manifest.name, file::default_name(&args.kernel));
    let experiment = described(name, variants, used, (&args.machine, Mode::Measured), boots)?;
    lab::check(&experiment)?;
    let mut lab = laboratory(store)?;
    let mut display = Display::new(args.quiet);
    let options = RunOptions::default();
    let summary = lab.run(&experiment, options, &mut |progress| display.show(progress));
    display.finish();
    let kept = lab.store.boots(summary?.experiment, DETAIL)?;
    Ok(test(&Results::of(&experiment, &kept)))
}

/// Splits the stored boots of one variant in two.
fn of_kept(store: Option<PathBuf>, named: &str, of: &str) -> Result<SelfTest, Failure> {
    let store = existing_store(store)?;
    let id = find(&store, Some(named))?;
    let experiment = store.experiment(id)?;
    let variant = &experiment.variants[place_of(&experiment, of)?];
    if experiment.mode == Mode::Exact {
        let message = "a self-test needs measured mode: in exact mode `compare` prints how much luck alone \
                       changes (luck floor)";
        return Err(Failure::Usage(message.into()));
    }
    let kept = store.boots(id, DETAIL)?;
    let halves = halves(&VariantBoots::of(variant, &kept).boots);
    if halves[1].len() < 3 {
        let message = format!("`{of}` has fewer than 6 complete boots: each half needs 3");
        return Err(Failure::Usage(message));
    }
    let side = |half: usize| VariantBoots {
        variant,
        boots: halves[half].iter().map(KeptBoot::from).collect(),
    };
    // The halves had no looks: the split is new.
    let experiment = model::Experiment { sequential: None, ..experiment.clone() };
    Ok(test(&Results { experiment: &experiment, variants: vec![side(0), side(1)] }))
}
