//! Judges the boots of a run with `boots = "auto"` at looks whose times are fixed beforehand. Each look spends a part
//! of the error rate. So all looks together err no more often than one judgement of a fixed number of boots
//! (`stats::sequential`).

use stats::sequential::{last_look, looks};

use super::luck::LEVEL;
use crate::{HostBlock, Judging, Look, Results, VariantBoots};

impl Judging {
    /// How differences of measured mode are judged for an experiment's boots: as usual or, with `boots = "auto"`, at
    /// the last look that the finished blocks allow. Warm-up of imported results counts, as in the other tool.
    pub fn of(results: &Results<'_>) -> Self {
        let Some(sequential) = results.experiment.sequential else {
            let warm_up_counts = results.experiment.imported.is_some();
            return Self { warm_up_counts, ..Self::default() };
        };
        let most = results.experiment.boots;
        match last_look(blocks_done(results).min(most)) {
            Some(look) => Self::at(&look, most, sequential.margin),
            None => {
                let none = stats::sequential::Look { number: 0, units: 0, share: 0.0 };
                Self::at(&none, most, sequential.margin)
            }
        }
    }

    /// How differences are judged at a look, if each variant may have `most` boots.
    pub fn at(look: &stats::sequential::Look, most: u32, margin: f64) -> Self {
        let units = |look: stats::sequential::Look| look.units;
        let of = looks().map(units).take_while(|units| *units <= most).count() as u32;
        let next = looks().map(units).find(|units| *units > look.units).unwrap_or(u32::MAX);
        Self {
            luck: LEVEL,
            margin,
            confidence: 1.0 - Self::default().alpha() * look.share,
            look: Some(Look { number: look.number, of, boots: look.units, next }),
            warm_up_counts: false,
        }
    }
}

/// The number of blocks, from the first on, whose boots are all done, complete or not. An incomplete block is done
/// too if later blocks are of another host, because only its own host would complete it.
fn blocks_done(results: &Results<'_>) -> u32 {
    let standing = || results.variants.iter().flat_map(VariantBoots::standing);
    let places: Vec<HostBlock> = standing().map(|kept| HostBlock::of(kept.boot)).collect();
    let is_left = |block: u32| {
        let own = places.iter().find(|it| it.block == block);
        own.is_some_and(|own| places.iter().any(|it| it.block > block && it.host != own.host))
    };
    let is_whole = |block: u32| {
        let has = |column: &VariantBoots<'_>| column.standing().any(|it| it.boot.block == block);
        results.variants.iter().all(has)
    };
    (0..results.experiment.boots).take_while(|it| is_whole(*it) || is_left(*it)).count() as u32
}

#[cfg(test)]
mod tests {
    use model::{Boot, Mode, Outcome, Reading, Sequential};

    use super::*;
    use crate::testing::{boot, columns, experiment, failed, manifest, variant};

    /// The judgement of boots of two variants, if each may have 11.
    fn judging(base: &[Boot], new: &[Boot]) -> Judging {
        let mut experiment = experiment(Mode::Measured, 11, vec![manifest()]);
        experiment.sequential = Some(Sequential { margin: 0.02, budget: None });
        let variants = ["a", "b"].map(variant);
        let variants = columns(&variants, &[base, new]);
        Judging::of(&Results { experiment: &experiment, reading: Reading::USUAL, variants })
    }

    fn boots(count: u32) -> Vec<Boot> {
        (0..count).map(|block| Boot { block, ..boot(block) }).collect()
    }

    #[test]
    fn a_fixed_number_of_boots_is_judged_as_usual() {
        let experiment = experiment(Mode::Measured, 11, vec![manifest()]);
        let results =
            Results { experiment: &experiment, reading: Reading::USUAL, variants: Vec::new() };
        assert_eq!(Judging::of(&results), Judging::default());
    }

    #[test]
    fn looks_are_at_fixed_numbers_of_whole_blocks() {
        let at = |base, new| {
            let judging = judging(&boots(base), &boots(new));
            assert_eq!(judging.margin, 0.02);
            let Look { number, of, boots, next } = judging.look.unwrap();
            assert_eq!(of, 4);
            (number, boots, next)
        };
        assert_eq!(at(3, 4), (0, 0, 4));
        assert_eq!(at(4, 5), (1, 4, 6));
        assert_eq!(at(8, 7), (2, 6, 8));
        assert_eq!(at(11, 11), (4, 11, 16));
        // More than the experiment asks for now.
        assert_eq!(at(40, 40), (4, 11, 16));
    }

    #[test]
    fn an_incomplete_block_of_another_host_does_not_hold_looks_up() {
        let mut base = boots(6);
        let mut new = boots(6);
        new.remove(2);
        let looked = |base: &[Boot], new: &[Boot]| judging(base, new).look.unwrap().boots;
        assert_eq!(looked(&base, &new), 0);
        for boot in base.iter_mut().chain(&mut new).filter(|boot| boot.block > 2) {
            boot.facts.provenance.host.id = "ab".repeat(32);
        }
        assert_eq!(looked(&base, &new), 6);
    }

    #[test]
    fn failed_boots_are_done_and_interrupted_ones_are_not() {
        let mut some = boots(4);
        some[2] = Boot { block: 2, ..failed(2, "no answer") };
        assert_eq!(judging(&some, &boots(4)).look.unwrap().number, 1);
        some[2].outcome = Outcome::Interrupted;
        assert_eq!(judging(&some, &boots(4)).look.unwrap().number, 0);
    }

    #[test]
    fn looks_err_less_often_and_all_of_them_no_more_often_than_one_judgement() {
        let none = judging(&boots(3), &boots(3));
        assert_eq!(none.alpha(), 0.0);
        let first = judging(&boots(4), &boots(4));
        assert!((first.alpha() - 0.005).abs() < 1e-12 && !first.may_find_same());
        let looks = [4, 6, 8, 11].map(|count| judging(&boots(count), &boots(count)));
        assert!(looks[1..].iter().all(Judging::may_find_same));
        assert!(looks.iter().map(Judging::alpha).sum::<f64>() < Judging::default().alpha());
    }
}
