//! All ways to split the boots of one kernel into two groups, and the verdicts on each.

use model::Mode;
use serde::Serialize;

use crate::figures::BootFigures;
use crate::figures::operations::operations;
use crate::figures::warmup::leave_out;
use crate::{HostBlock, Judging, Results};

/// Up to this number of blocks, all splits are judged. With more, `2^MOST_BLOCKS` random splits are.
const MOST_BLOCKS: u32 = 12;

/// The number of differences claimed of the primary metrics of a workload over all splits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Splits {
    /// The workload's name.
    pub workload: String,
    /// Number of splits that were judged.
    pub splits: usize,
    /// Whether these are all splits; otherwise they were drawn at random.
    pub all: bool,
    /// Number of splits in which a primary metric was called different.
    pub different: usize,
}

/// Judges every split of the boots of two variants in which each block has one boot on each side. A split and its
/// mirror image are the same. Empty if fewer than 3 blocks have boots of both variants.
pub fn splits(results: &Results<'_>, judging: &Judging) -> Vec<Splits> {
    let judged = results.experiment.workloads.iter().filter_map(|used| {
        let (manifest, reading) = (&used.manifest, results.reading.workload(used));
        let mut operations = operations(used, &results.variants, Mode::Measured);
        leave_out(&mut operations, judging);
        let primary =
            operations.iter().filter(|it| reading.is_primary(manifest, &it.metric, &it.name));
        let figures: Vec<Vec<BootFigures>> = primary.map(|operation| operation.figures()).collect();
        let sides: Vec<[&BootFigures; 2]> =
            figures.iter().filter_map(|sides| Some([sides.first()?, sides.get(1)?])).collect();
        let blocks = sides.iter().map(|sides| sides[0].blocks_with(sides[1]).len()).max()? as u32;
        let all = blocks <= MOST_BLOCKS + 1;
        let splits = 1_u64 << blocks.saturating_sub(1).min(MOST_BLOCKS);
        let different = |&split: &u64| {
            let exchanged = |block: HostBlock, place: u32| match all {
                true => split >> place & 1 == 1,
                false => random(split << 32 | u64::from(block.block)) & 1 == 1,
            };
            is_different(&sides, judging, exchanged)
        };
        (blocks >= 3).then(|| Splits {
            workload: manifest.name.clone(),
            splits: splits as usize,
            all,
            different: (0..splits).filter(different).count(),
        })
    });
    judged.collect()
}

/// Whether one of these figures would be called different if the sides were exchanged in the blocks that `exchanged`
/// selects by number and place.
fn is_different(
    figures: &[[&BootFigures; 2]],
    judging: &Judging,
    exchanged: impl Fn(HostBlock, u32) -> bool,
) -> bool {
    let evidence = figures.iter().filter_map(|sides| {
        let blocks = sides[0].blocks_with(sides[1]);
        let is_exchanged = |block: HostBlock| {
            let place = blocks.iter().position(|it| *it == block);
            place.is_some_and(|place| exchanged(block, place as u32))
        };
        let [base, new] = sides[0].exchanged(sides[1], is_exchanged);
        base.against(&new, judging).ok()
    });
    let evidence: Vec<_> = evidence.collect();
    let adjusted = stats::holm(&evidence.iter().map(|it| it.p_alone).collect::<Vec<f64>>());
    let alpha = judging.alpha();
    evidence.iter().zip(adjusted).any(|(it, p)| p < alpha && it.p_same >= alpha)
}

/// A pseudorandom number from each number (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014: SplitMix64).
fn random(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
