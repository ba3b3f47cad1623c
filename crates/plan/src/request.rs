//! What a run is asked to do.

use std::collections::BTreeMap;

use model::{Build, Experiment, Reading, Variant, VariantReading};

/// What a file or options ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is run: the part that identifies the results.
    pub experiment: Experiment,
    /// How its figures are read.
    pub reading: Reading,
    /// How the kernels of its variants are built from source, by the variants' short names. A variant without an entry
    /// has its kernel by name.
    pub builds: BTreeMap<String, Build>,
}

impl Request {
    /// How the kernel of a variant is built, if it is built from source.
    pub fn build(&self, variant: &Variant) -> Option<&Build> {
        self.builds.get(variant.short_name())
    }
}

/// What a form says of a variant.
#[derive(Clone)]
pub(crate) struct VariantRequest {
    pub variant: Variant,
    pub reading: VariantReading,
    /// How its kernel is built, if that is a source.
    pub build: Option<Build>,
}
