//! The kept boots of an experiment, in the form that is compared.

use compare::{KeptBoot, Results, VariantBoots};
use model::{Experiment, Variant};
use store::Kept;

/// The boots of an experiment, variant by variant.
pub fn results<'a>(experiment: &'a Experiment, kept: &'a [Kept]) -> Results<'a> {
    let variants = experiment.variants.iter().map(|variant| column(variant, kept)).collect();
    Results { experiment, variants }
}

/// A variant with its boots.
pub fn column<'a>(variant: &'a Variant, kept: &'a [Kept]) -> VariantBoots<'a> {
    let own = kept.iter().filter(|kept| kept.boot.variant == variant.name);
    let boots = own.map(|Kept { id, superseded, boot }| KeptBoot {
        name: id.to_string(),
        superseded: *superseded,
        boot,
    });
    VariantBoots { variant, boots: boots.collect() }
}
