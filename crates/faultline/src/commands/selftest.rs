//! `faultline selftest`: compares a kernel with itself.

use std::path::PathBuf;
use std::process::ExitCode;

use ::compare::selftest::{SelfTest, halves, selftest as test};
use ::compare::{KeptBoot, Results, VariantBoots};
use lab::RunOptions;
use model::{Mode, Source};
use plan::file::{BootsForm, FileForm, Input, VariantForm, default_names, placeless};
use results::place_of;
use store::Detail;

use super::chosen::find;
use super::run::laboratory;
use super::{existing_store, options, print};
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
    let mut input = Input::default();
    let variants = ["A", "B"].map(|name| {
        let mut form = VariantForm::new(input.option("--kernel", args.kernel.clone()));
        form.name = Some(placeless(name.to_owned()));
        form
    });
    let mut workload =
        options::workload(&mut input, ("--workload", &args.workload), &args.parameters)?;
    workload.iterations = Some(input.option("--iterations", args.iterations));
    let machine = options::machine(&mut input, &args.machine);
    let mut form = FileForm::new(machine, variants.into(), workload);
    form.boots = Some(input.option("--boots", BootsForm::Number(args.boots)));
    let mut request = input.request(form)?;
    let experiment = &mut request.experiment;
    let workload = &experiment.workloads[0].manifest.name;
    experiment.name = format!("selftest-{workload}-{}", default_names(&[&args.kernel])[0]);
    lab::check(experiment)?;
    let mut lab = laboratory(store, args.turn)?;
    let mut display = Display::new(args.quiet);
    let options = RunOptions::default();
    let summary = lab.run(&request, options, &mut |progress| display.show(progress));
    display.finish();
    let kept = lab.store.boots(summary?.experiment, DETAIL)?;
    Ok(test(&Results::of(&request.experiment, &request.reading, &kept)))
}

/// Splits the stored boots of one variant in two.
fn of_kept(store: Option<PathBuf>, named: &str, of: &str) -> Result<SelfTest, Failure> {
    let store = existing_store(store)?;
    let id = find(&*store, Some(named))?;
    let (experiment, reading) = (store.experiment(id)?, store.reading(id)?);
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
    // The experiment may have had looks, but its halves had none.
    let experiment = model::Experiment { sequential: None, ..experiment.clone() };
    let variants = vec![side(0), side(1)];
    Ok(test(&Results { experiment: &experiment, reading: &reading, variants }))
}
