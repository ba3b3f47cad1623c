//! The seeds that count in a comparison of exact mode: those that are complete on both sides. A failed boot takes its
//! seed out of both sides. So what the seed itself does to the figures of every kernel is on both sides or on none.

use std::collections::BTreeSet;

use crate::VariantBoots;

/// Why a variant has no figures of a seed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MissingSeed {
    /// The seed.
    pub seed: u32,
    /// The outcome of its boot in one word; `None` if the seed was not booted, or its boot is repeated.
    pub outcome: Option<&'static str>,
}

impl VariantBoots<'_> {
    /// The seeds of the boots that count.
    pub(crate) fn seeds(&self) -> BTreeSet<u32> {
        self.complete().map(|boot| boot.boot_index).collect()
    }

    /// The variant with those of its boots that count only if they are of these seeds.
    fn of_seeds(&self, seeds: &BTreeSet<u32>) -> Self {
        let boots = self.boots.iter().filter(|it| seeds.contains(&it.boot.boot_index));
        Self { variant: self.variant, boots: boots.cloned().collect() }
    }

    /// The seeds from 0 to `wanted` - 1 of which no boot counts.
    pub(crate) fn missing(&self, wanted: u32) -> Vec<MissingSeed> {
        let known = self.seeds();
        let outcome = |seed| {
            let mut standing = self.standing().filter(|it| it.boot.boot_index == seed);
            standing.next().map(|it| it.boot.outcome.name())
        };
        let missing = (0..wanted).filter(|seed| !known.contains(seed));
        missing.map(|seed| MissingSeed { seed, outcome: outcome(seed) }).collect()
    }
}

/// The columns of a table with the seeds that count: those of each column that the baseline, which is the first,
/// has too, and those of the baseline that any other column has. A column that has no seed in common with the
/// baseline keeps its seeds, and so does a baseline without such a column.
pub(crate) fn paired<'a>(columns: &[VariantBoots<'a>]) -> Vec<VariantBoots<'a>> {
    let Some((base, others)) = columns.split_first() else { return Vec::new() };
    let seeds = base.seeds();
    let common: Vec<BTreeSet<u32>> = others.iter().map(|own| &own.seeds() & &seeds).collect();
    let all: BTreeSet<u32> = common.iter().flatten().copied().collect();
    let kept = |(column, seeds): (&VariantBoots<'a>, &BTreeSet<u32>)| match seeds.is_empty() {
        true => column.clone(),
        false => column.of_seeds(seeds),
    };
    columns.iter().zip([&all].into_iter().chain(&common)).map(kept).collect()
}

/// Both sides of a comparison with the seeds that count in this workload.
pub(crate) fn sides<'a>(sides: [&VariantBoots<'a>; 2], workload: &str) -> [VariantBoots<'a>; 2] {
    let [base, new] = sides.map(|side| side.of_workload(workload));
    let mut paired = paired(&[base, new]);
    let new = paired.remove(1);
    [paired.remove(0), new]
}

#[cfg(test)]
mod tests {
    use model::Boot;

    use super::*;
    use crate::testing::{boot, columns, failed, variant};

    #[test]
    fn a_seed_counts_if_it_is_complete_on_both_sides() {
        let complete = |seeds: &[u32]| seeds.iter().map(|it| boot(*it)).collect::<Vec<Boot>>();
        let mut base = complete(&[0, 1, 2, 4]);
        base.push(failed(3, "gone"));
        let (one, other, none) = (complete(&[0, 1, 3, 4]), complete(&[1, 2]), complete(&[7]));
        let variants = ["base", "one", "other", "none"].map(variant);
        let all = columns(&variants, &[&base, &one, &other, &none]);
        let of = |columns: &[VariantBoots<'_>]| {
            let seeds = paired(columns).into_iter().map(|it| Vec::from_iter(it.seeds()));
            seeds.collect::<Vec<Vec<u32>>>()
        };
        assert_eq!(of(&all), [vec![0, 1, 2, 4], vec![0, 1, 4], vec![1, 2], vec![7]]);
        assert_eq!(of(&all[..2]), [[0, 1, 4]; 2]);
        assert_eq!(of(&all[..1]), [[0, 1, 2, 4]]);
        assert_eq!(of(&[all[0].clone(), all[3].clone()]), [vec![0, 1, 2, 4], vec![7]]);
        let missing = |seed, outcome| MissingSeed { seed, outcome };
        assert_eq!(all[0].missing(6), [missing(3, Some("failed")), missing(5, None)]);
    }
}
