//! Configuration options in which a column differs from the baseline.

use kernelfiles::config::{self, OptionDifference};
use model::BootFacts;

use super::{ConfigChange, ConfigDifference};

/// The options in which two configurations differ; `None` if one of them is not known.
pub type Differing<'a> = Option<Vec<OptionDifference<'a>>>;

/// The options in which each column but the first differs from the first one.
pub fn differences<'a>(columns: &[Option<&'a BootFacts>]) -> Vec<Differing<'a>> {
    let known = |facts: &Option<&'a BootFacts>| {
        let text = facts.map_or("", |facts| &*facts.config);
        (!text.is_empty()).then(|| config::parse(text))
    };
    let Some((base, others)) = columns.split_first() else { return Vec::new() };
    let base = known(base);
    let differing = |facts| Some(config::differences(base.as_ref()?, &known(facts)?));
    others.iter().map(differing).collect()
}

/// How the configuration of `variant` differs from the baseline's.
pub fn difference(variant: &str, differing: &Differing<'_>) -> ConfigDifference {
    let options = differing.iter().flatten();
    // A number that is 0 and an option that is off say the same where the option changed its type.
    let is_off = |value: Option<&str>| matches!(value, Some("0" | "n"));
    let relevant = options.filter(|it| config::is_relevant(it.option));
    let relevant = relevant.filter(|it| !(is_off(it.first) && is_off(it.second)));
    ConfigDifference {
        variant: variant.to_owned(),
        differing: differing.as_ref().map(Vec::len),
        relevant: relevant.map(change).collect(),
    }
}

fn change(difference: &OptionDifference<'_>) -> ConfigChange {
    ConfigChange {
        option: format!("CONFIG_{}", difference.option),
        baseline: difference.first.map(str::to_owned),
        value: difference.second.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(variant: &str, baseline: &str, config: &str) -> ConfigDifference {
        let facts = [baseline, config]
            .map(|text| BootFacts { config: text.into(), ..BootFacts::default() });
        super::difference(variant, &differences(&[Some(&facts[0]), Some(&facts[1])])[0])
    }

    const OLD: &str = "CONFIG_HZ=250
# CONFIG_LRU_GEN_ENABLED is not set
CONFIG_CC_VERSION_TEXT=\"gcc-12\"
";
    const NEW: &str = "CONFIG_HZ=250
CONFIG_LRU_GEN_ENABLED=y
CONFIG_CC_VERSION_TEXT=\"gcc-14\"
";

    #[test]
    fn all_differences_are_counted_and_relevant_ones_named() {
        let difference = difference("6.12", OLD, NEW);
        assert_eq!(difference.differing, Some(2));
        let [change] = difference.relevant.as_slice() else { panic!("{difference:?}") };
        assert_eq!(change.option, "CONFIG_LRU_GEN_ENABLED");
        assert_eq!((change.baseline.as_deref(), change.value.as_deref()), (Some("n"), Some("y")));
    }

    /// As `CONFIG_BASE_SMALL` did in 6.10.
    #[test]
    fn a_zero_that_became_an_option_that_is_off_does_not_matter() {
        let [zero, off, on] = ["=0", "=n", "=y"].map(|it| format!("CONFIG_LRU_GEN_ENABLED{it}\n"));
        let relevant = |new: &str| difference("6.12", &zero, new).relevant.len();
        assert_eq!([relevant(&off), relevant("CONFIG_X=1\n"), relevant(&on)], [0, 1, 1]);
    }

    #[test]
    fn an_unknown_configuration_has_no_differences() {
        for (old, new) in [("", NEW), (OLD, ""), ("", "")] {
            let difference = difference("6.12", old, new);
            assert_eq!((difference.differing, difference.relevant.len()), (None, 0));
        }
        assert_eq!(difference("6.1", OLD, OLD).differing, Some(0));
    }
}
