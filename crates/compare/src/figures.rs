//! One figure per boot, and the evidence from the figures of two variants.

pub mod growth;
pub mod host_block;
pub mod operations;
pub mod phases;
pub mod steady;
pub mod warmup;

use std::collections::{BTreeMap, BTreeSet};

use model::Boot;
use stats::{Estimate, Summary};

use host_block::HostBlock;

use crate::verdicts::evidence::{Evidence, Judging, NoEvidence, Variation};
use crate::verdicts::independent::independent;

/// Fewer boots per side get no verdict. Two values of a bimodal distribution are often close together, so
/// their spread looks too small.
pub const MIN_BOOTS: usize = 3;

/// A figure of one variant: one value per boot, with the boot's block of the schedule and host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BootFigures {
    /// Sorted by block, and by value within a block, so that results do not depend on the order of boots.
    values: Vec<(HostBlock, f64)>,
    /// The blocks of boots whose values have no such figure.
    lacking: Vec<HostBlock>,
}

impl BootFigures {
    /// Collects blocks and the figures of their boots. `None` stands for a boot whose values have no such figure.
    pub fn new(figures: impl IntoIterator<Item = (impl Into<HostBlock>, Option<f64>)>) -> Self {
        let figures =
            figures.into_iter().map(|(block, it)| (block.into(), it.filter(|it| it.is_finite())));
        let (known, lacking): (Vec<_>, Vec<_>) = figures.partition(|(_, value)| value.is_some());
        let known = known.into_iter().filter_map(|(block, value)| Some((block, value?)));
        let mut values: Vec<(HostBlock, f64)> = known.collect();
        values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Self { values, lacking: lacking.into_iter().map(|(block, _)| block).collect() }
    }

    /// Collects the figures of boots, with the blocks of these boots.
    pub(crate) fn of_boots<'a>(figures: impl IntoIterator<Item = (&'a Boot, Option<f64>)>) -> Self {
        Self::new(figures.into_iter().map(|(boot, it)| (HostBlock::of(boot), it)))
    }

    /// Blocks with the figures of their boots.
    pub fn by_block(&self) -> impl Iterator<Item = (HostBlock, f64)> {
        self.values.iter().copied()
    }

    /// The blocks in which both sides have figures, ascending.
    pub fn blocks_with(&self, other: &Self) -> Vec<HostBlock> {
        let of = |side: &Self| side.values.iter().map(|(block, _)| *block).collect::<BTreeSet<_>>();
        of(self).intersection(&of(other)).copied().collect()
    }

    /// Both sides, with their figures exchanged in the blocks that `exchange` selects.
    pub fn exchanged(&self, other: &Self, exchange: impl Fn(HostBlock) -> bool) -> [Self; 2] {
        let of = |own: &Self, other: &Self| {
            let stays = |block: HostBlock| !exchange(block);
            let kept = own.values.iter().filter(|(block, _)| stays(*block));
            let gained = other.values.iter().filter(|(block, _)| exchange(*block));
            let mut values: Vec<(HostBlock, f64)> = kept.chain(gained).copied().collect();
            values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            Self { values, lacking: own.lacking.clone() }
        };
        [of(self, other), of(other, self)]
    }

    /// The figures of the blocks that count.
    fn counted(&self, judging: &Judging) -> Self {
        let Self { mut values, mut lacking } = self.clone();
        values.retain(|(it, _)| judging.counts(it.block));
        lacking.retain(|it| judging.counts(it.block));
        Self { values, lacking }
    }

    /// The spread of the figures within hosts.
    pub(crate) fn variation(&self) -> Option<Variation> {
        Variation::within_hosts(self.values.iter().map(|(it, value)| (it.host, vec![*value])))
    }

    /// The evidence for `new` against this baseline, as if it were the only comparison.
    ///
    /// Figures above 0 are compared by their logarithms, others by their differences. Boots are paired by block
    /// (Student's t on the differences of blocks) if at least 3 blocks have both sides, and these blocks hold most
    /// boots of the side with fewer. Drift from block to block then cancels. Boots in blocks without the other side
    /// are then ignored, however many they are, because they would bring in the difference between blocks. Otherwise
    /// both sides are taken as independent ([`independent`]).
    ///
    /// Boots of several hosts are compared on each host by itself, and the differences are combined ([`combined`]).
    /// So boots of two hosts are never a pair, and no variance contains differences between hosts.
    ///
    /// The choice depends on the blocks alone: taking the smaller of both p-values would give false alarms
    /// in 6 to 10 % of cases where blocks do not differ (`bench/README.md`). The error says why there is no
    /// evidence: too few boots, or figures that can't be compared.
    pub fn against(&self, new: &Self, judging: &Judging) -> Result<Evidence, NoEvidence> {
        let [base, new] = &[self, new].map(|side| side.counted(judging));
        if !(base.lacking.is_empty() && new.lacking.is_empty()) {
            return Err(NoEvidence::Figure);
        }
        let all = [base.values.len(), new.values.len()];
        let mut values = base.values.iter().chain(&new.values).map(|(_, value)| *value);
        let scale = match values.all(|value| value > 0.0) {
            true => Scale::Logarithms,
            false => Scale::Shares(base.mean().ok_or(NoEvidence::Boots(all))?),
        };
        let Part { estimate, boots, paired } = match &Self::hosts(&[base, new])[..] {
            [] => return Err(NoEvidence::Boots(all)),
            [_] => base.difference(new, scale)?,
            several => {
                let on_host = |host: &u64| base.on(*host).difference(&new.on(*host), scale);
                let parts: Vec<Part> = several.iter().filter_map(|it| on_host(it).ok()).collect();
                combined(&parts).ok_or(NoEvidence::Hosts)?
            }
        };
        scale.evidence(estimate, boots, paired, judging)
    }

    /// The difference of `new` from this baseline. All boots must be of one host.
    fn difference(&self, new: &Self, scale: Scale) -> Result<Part, NoEvidence> {
        let base = self;
        let all = [base.values.len(), new.values.len()];
        let [base_blocks, new_blocks] = [base, new].map(|side| side.blocks(scale));
        let common: Vec<(&Block, &Block)> = base_blocks
            .iter()
            .filter_map(|(block, base)| Some((base, new_blocks.get(block)?)))
            .collect();
        let together = common
            .iter()
            .fold([0, 0], |[base, new], (one, other)| [base + one.boots, new + other.boots]);
        let paired = common.len() >= MIN_BOOTS && 2 * common.len() > all[0].min(all[1]);
        let estimate = if paired {
            let steps: Vec<f64> = common.iter().map(|(base, new)| new.mean - base.mean).collect();
            Estimate::of_mean(&steps)
        } else if all.iter().all(|&boots| boots >= MIN_BOOTS) {
            let [base, new] = [base, new].map(|side| side.scaled(scale));
            independent(&base, &new)
        } else {
            return Err(NoEvidence::Boots(all));
        };
        let boots = if paired { together } else { all };
        Ok(Part { estimate: estimate.ok_or(NoEvidence::Figure)?, boots, paired })
    }

    /// The hosts of the boots with figures, ascending.
    fn hosts(sides: &[&Self]) -> Vec<u64> {
        let all = sides.iter().flat_map(|side| side.values.iter().map(|(it, _)| it.host));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The figures of the boots of one host.
    fn on(&self, host: u64) -> Self {
        let own = self.values.iter().filter(|(it, _)| it.host == host);
        Self { values: own.copied().collect(), lacking: Vec::new() }
    }

    /// The evidence for a weighted sum of several variants' logarithms. Each block in which all of them have a figure
    /// gives one sum, and Student's t is applied to the mean of the sums, on each host by itself. `None` with fewer
    /// than 3 such blocks, or with figures that are not above 0.
    pub(crate) fn contrast(sides: &[(f64, &Self)], judging: &Judging) -> Option<Evidence> {
        let sides = sides.iter().filter(|(weight, _)| *weight != 0.0);
        let sides: Vec<(f64, Self)> =
            sides.map(|(weight, side)| (*weight, side.counted(judging))).collect();
        let has_logarithms =
            |side: &Self| side.lacking.is_empty() && side.values.iter().all(|(_, it)| *it > 0.0);
        if !sides.iter().all(|(_, side)| has_logarithms(side)) {
            return None;
        }
        let blocks: Vec<_> =
            sides.iter().map(|(weight, it)| (weight, it.blocks(Scale::Logarithms))).collect();
        let sum = |block: &HostBlock| {
            let of = |(weight, it): &(&f64, BTreeMap<HostBlock, Block>)| {
                Some(**weight * it.get(block)?.mean)
            };
            blocks.iter().map(of).sum::<Option<f64>>()
        };
        let part = |host: u64| {
            let own = blocks.first()?.1.keys().filter(|it| it.host == host);
            let sums: Vec<f64> = own.filter_map(sum).collect();
            let estimate = Estimate::of_mean(&sums).filter(|_| sums.len() >= MIN_BOOTS)?;
            Some(Part { estimate, boots: [sums.len(); 2], paired: true })
        };
        let all: Vec<&Self> = sides.iter().map(|(_, side)| side).collect();
        let parts: Vec<Part> = Self::hosts(&all).into_iter().filter_map(part).collect();
        let Part { estimate, boots, .. } = combined(&parts)?;
        Scale::Logarithms.evidence(estimate, boots, true, judging).ok()
    }

    fn mean(&self) -> Option<f64> {
        let values: Vec<f64> = self.values.iter().map(|(_, value)| *value).collect();
        Some(Summary::of(&values)?.amean)
    }

    fn scaled(&self, scale: Scale) -> Vec<f64> {
        self.values.iter().map(|(_, value)| scale.of(*value)).collect()
    }

    fn blocks(&self, scale: Scale) -> BTreeMap<HostBlock, Block> {
        let blocks = self.values.chunk_by(|a, b| a.0 == b.0);
        let block = |boots: &[(HostBlock, f64)]| {
            let sum: f64 = boots.iter().map(|(_, value)| scale.of(*value)).sum();
            (boots[0].0, Block { mean: sum / boots.len() as f64, boots: boots.len() })
        };
        blocks.map(block).collect()
    }
}

/// The difference on one host, and the boots that it is from.
struct Part {
    estimate: Estimate,
    boots: [usize; 2],
    paired: bool,
}

/// The mean of the differences on several hosts. The weight of a host is its number of boots of the side with fewer,
/// so weights do not depend on figures. The error has only variances within hosts ([`Estimate::sum`]). `None` without
/// a difference.
fn combined(parts: &[Part]) -> Option<Part> {
    let weight = |part: &Part| part.boots[0].min(part.boots[1]) as f64;
    match parts {
        [] => None,
        [Part { estimate, boots, paired }] => {
            Some(Part { estimate: *estimate, boots: *boots, paired: *paired })
        }
        several => {
            let whole: f64 = several.iter().map(weight).sum();
            let shares: Vec<_> =
                several.iter().map(|part| (weight(part) / whole, part.estimate)).collect();
            Some(Part {
                estimate: Estimate::sum(&shares),
                boots: [0, 1].map(|side| several.iter().map(|part| part.boots[side]).sum()),
                paired: several.iter().all(|part| part.paired),
            })
        }
    }
}

/// The boots of one variant in a block: their mean figure, scaled, and their number.
struct Block {
    mean: f64,
    boots: usize,
}

/// The scale on which figures are compared.
#[derive(Clone, Copy)]
enum Scale {
    /// Logarithms; all figures are above 0.
    Logarithms,
    /// The figures themselves. Their differences are shares of the baseline's mean, which is the value here.
    Shares(f64),
}

impl Scale {
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Logarithms => value.ln(),
            Self::Shares(_) => value,
        }
    }

    /// The ratio that a difference on this scale stands for.
    fn ratio(self, difference: f64) -> f64 {
        match self {
            Self::Logarithms => difference.exp(),
            Self::Shares(_) if difference == 0.0 => 1.0,
            Self::Shares(whole) => 1.0 + difference / whole,
        }
    }

    /// A share of the baseline's figure as distances on this scale, downward and upward.
    fn bounds(self, share: f64) -> [f64; 2] {
        match self {
            Self::Logarithms => [(-share).ln_1p(), share.ln_1p()],
            Self::Shares(whole) => [-share * whole, share * whole],
        }
    }

    fn evidence(
        self,
        estimate: Estimate,
        boots: [usize; 2],
        paired: bool,
        judging: &Judging,
    ) -> Result<Evidence, NoEvidence> {
        let whole = match self {
            Self::Logarithms => 1.0,
            Self::Shares(whole) => whole,
        };
        if whole < 0.0 {
            return Err(NoEvidence::Share);
        }
        let (low, high) = estimate.interval(judging.confidence);
        let [least, most] = self.bounds(judging.margin);
        let p = estimate.p_apart(0.0);
        let no_doubt = estimate.se == 0.0;
        Ok(Evidence {
            ratio: self.ratio(estimate.value),
            low: self.ratio(low),
            high: self.ratio(high),
            p,
            p_alone: p,
            p_same: match no_doubt && estimate.value == 0.0 {
                true => 0.0,
                false => estimate.p_above(least).max(estimate.p_below(most)),
            },
            boots,
            paired,
            visible: None,
            needed: None,
            logarithmic: matches!(self, Self::Logarithms),
            error: if no_doubt { 0.0 } else { estimate.se / whole },
            freedom: estimate.df,
        })
    }
}

#[cfg(test)]
mod tests;
