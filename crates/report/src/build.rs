//! Sentences on how kernels were built differently. They stand beside the verdicts, because a change between
//! such kernels need not come from their sources.

use compare::{BuildDifference, Comparison};
use model::{count, grouped};

use crate::ascii::excerpt;
use crate::document::{self, TEXT, note};

/// Returns a sentence for each variant whose kernel was built differently from the baseline's; empty if there
/// is none.
pub fn builds(comparison: &Comparison) -> String {
    let said = comparison.notes.builds.iter().map(|it| note(differs(it)));
    document::text(&said.collect::<Vec<_>>(), &TEXT)
}

/// Returns the sentence on one variant.
pub(crate) fn differs(it: &BuildDifference) -> String {
    let compilers = it.compilers.as_ref().map(|[base, new]| {
        format!("the compiler is {} instead of {}", excerpt(new), excerpt(base))
    });
    let options = (it.options > 0).then(|| {
        let verb = if it.options == 1 { "differs" } else { "differ" };
        let both = grouped(&it.of_both.to_string());
        format!(
            "{} {verb}, {both} of those that both list",
            count(it.options, "configuration option")
        )
    });
    let said: Vec<String> = compilers.into_iter().chain(options).collect();
    format!(
        "{} was also built differently: {}. A part of its changes can come from that.",
        excerpt(&it.variant),
        said.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_said() {
        let it = BuildDifference {
            variant: "newest".into(),
            compilers: Some(["gcc-12 12.2.0".into(), "gcc-14 14.2.0".into()]),
            options: 1547,
            of_both: 63,
        };
        assert_eq!(
            differs(&it),
            "newest was also built differently: the compiler is gcc-14 14.2.0 instead of \
             gcc-12 12.2.0; 1,547 configuration options differ, 63 of those that both list. A part \
             of its changes can come from that."
        );
        let options = BuildDifference { compilers: None, options: 1, of_both: 0, ..it.clone() };
        assert!(differs(&options).contains("differently: 1 configuration option differs, 0 of"));
        let compiler = BuildDifference { options: 0, ..it };
        assert!(differs(&compiler).contains("instead of gcc-12 12.2.0. A part"));
    }
}
