//! Configuration options in which a column differs from the baseline.

use kernelfiles::config::{self, OptionDifference};

use super::{ConfigChange, ConfigDifference};

/// How the configuration `config` of `variant` differs from `baseline`. An empty text means that the configuration is
/// not known.
pub fn difference(variant: &str, baseline: &str, config: &str) -> ConfigDifference {
    let known = !baseline.is_empty() && !config.is_empty();
    let (baseline, config) = (config::parse(baseline), config::parse(config));
    let differences = match known {
        true => config::differences(&baseline, &config),
        false => Vec::new(),
    };
    let relevant = differences.iter().filter(|it| config::is_relevant(it.option));
    ConfigDifference {
        variant: variant.to_owned(),
        differing: known.then_some(differences.len()),
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

    #[test]
    fn an_unknown_configuration_has_no_differences() {
        for (old, new) in [("", NEW), (OLD, ""), ("", "")] {
            let difference = difference("6.12", old, new);
            assert_eq!((difference.differing, difference.relevant.len()), (None, 0));
        }
        assert_eq!(difference("6.1", OLD, OLD).differing, Some(0));
    }
}
