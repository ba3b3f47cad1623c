//! Reads from the store which workloads execute the functions that differ between two kernels.

use std::ops::ControlFlow;

use code::CodeDifference;
use compare::{Coverage, CoverageBuilder};
use model::Mode;
use store::{Archive, Detail};

/// Finds which of these functions are entered according to the profiles of all exact experiments in
/// the store, whatever kernels they ran. Fails when the store cannot be read.
pub fn coverage(
    store: &dyn Archive,
    difference: &CodeDifference,
) -> Result<Coverage, store::Error> {
    let mut covering = CoverageBuilder::of(difference);
    for row in store.experiments()? {
        if store.experiment(row.id)?.mode != Mode::Exact {
            continue;
        }
        let experiment = format!("{} (number {})", row.name, row.id);
        store.each_boot(row.id, Detail::Profiles(&[]), &mut |kept| {
            covering.add(&experiment, &kept.boot);
            ControlFlow::Continue(())
        })?;
    }
    Ok(covering.coverage())
}
