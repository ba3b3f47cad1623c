//! How differently two kernels were built from their sources: by which compiler, with which options.

use kernelfiles::config::OptionDifference;
use model::BootFacts;
use serde::Serialize;

use super::config::Differing;
use super::facts;

/// Options by which all functions execute other instructions, or page allocations and page tables are checked.
const CHECKS: [&str; 21] = [
    "CFI", "CFI_CLANG", "DEBUG_LIST", "DEBUG_PAGEALLOC", "DEBUG_VM", "FORTIFY_SOURCE",
    "INIT_ON_ALLOC_DEFAULT_ON", "INIT_ON_FREE_DEFAULT_ON", "INIT_STACK_ALL_ZERO", "KASAN", "KCSAN",
    "KFENCE", "KMSAN", "LIST_HARDENED", "PAGE_TABLE_CHECK", "PROVE_LOCKING", "SHADOW_CALL_STACK",
    "SLUB_DEBUG_ON", "STACKPROTECTOR_STRONG", "UBSAN", "X86_KERNEL_IBT",
];

/// How the kernel of a variant was built differently from the baseline's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BuildDifference {
    /// The variant's name.
    pub variant: String,
    /// The compilers of the baseline and of the variant. `None` if they are the same, or one is not known.
    pub compilers: Option<[String; 2]>,
    /// Timer ticks per second (`CONFIG_HZ`) of the baseline and of the variant. `None` if they are the same, or one is
    /// not known.
    pub hz: Option<[String; 2]>,
    /// Preemption models in force in the baseline and in the variant. `None` if they are the same, or one is not known.
    pub preemption: Option<[String; 2]>,
    /// Options for checks and hardening that only the baseline has on, and those that only the variant has on, if both
    /// configurations list them.
    pub checks: [Vec<String>; 2],
    /// Number of configuration options that differ; 0 if a configuration is not known.
    pub options: usize,
    /// Number of these that both configurations list. The others can have come or gone with the source.
    pub of_both: usize,
}

/// Compares how two kernels were built. `None` if no difference is known.
pub fn difference(
    variant: &str,
    sides: [&BootFacts; 2],
    differing: &Differing<'_>,
) -> Option<BuildDifference> {
    let both = |fact: fn(&BootFacts) -> Option<String>| match sides.map(fact) {
        [Some(base), Some(new)] if base != new => Some([base, new]),
        _ => None,
    };
    let compilers = both(facts::compiler).filter(|[base, new]| plain(base) != plain(new));
    let hz = both(facts::hz);
    let preemption = both(|it| facts::preemption(it).map(|it| it.replace(", dynamic", "")));
    let options = differing.as_ref().map_or(0, Vec::len);
    // KFENCE samples no allocations then (Documentation/dev-tools/kfence.rst).
    let is_idle = |option: &str| {
        let never = |it: &OptionDifference<'_>| {
            it.option == "KFENCE_SAMPLE_INTERVAL" && [it.first, it.second].contains(&Some("0"))
        };
        option == "KFENCE" && differing.iter().flatten().any(never)
    };
    let checks = |sides: [&str; 2]| {
        let is_its = |it: &&OptionDifference<'_>| {
            let is_check = CHECKS.contains(&it.option) && !is_idle(it.option);
            [it.first, it.second] == sides.map(Some) && is_check
        };
        let own = differing.iter().flatten().filter(is_its);
        own.map(|it| it.option.to_owned()).collect()
    };
    let checks = [["y", "n"], ["n", "y"]].map(checks);
    let is_listed = |it: &&OptionDifference<'_>| it.first.is_some() && it.second.is_some();
    let of_both = differing.iter().flatten().filter(is_listed).count();
    let differs = compilers.is_some() || options > 0;
    let variant = variant.to_owned();
    differs.then_some(BuildDifference {
        variant,
        compilers,
        hz,
        preemption,
        checks,
        options,
        of_both,
    })
}

/// A compiler without the version in its name: `gcc-12 12.2.0` and `gcc 12.2.0` are the same.
fn plain(compiler: &str) -> (&str, &str) {
    let (name, version) = compiler.split_once(' ').unwrap_or((compiler, ""));
    (name.split('-').next().unwrap_or(name), version)
}

#[cfg(test)]
mod tests {
    use super::super::config;
    use super::*;

    fn difference(variant: &str, base: &BootFacts, new: &BootFacts) -> Option<BuildDifference> {
        let differing = config::differences(&[Some(base), Some(new)]);
        super::difference(variant, [base, new], &differing[0])
    }

    fn facts(compiler: &str, config: &str) -> BootFacts {
        let banner = format!("Linux version 6.1.0 (a@b.org) ({compiler}, GNU ld 2.40) #1 SMP");
        BootFacts { banner, config: config.into(), ..BootFacts::default() }
    }

    #[test]
    fn compilers_and_options_are_compared() {
        let old =
            facts("gcc-12 (Debian 12.2.0-14) 12.2.0", "CONFIG_A=y\nCONFIG_HZ=250\nCONFIG_C=y\n");
        let preempt = |mode: &str, facts: BootFacts| BootFacts { preemption: mode.into(), ..facts };
        let old = preempt("none (voluntary) full", old);
        let new =
            facts("gcc-14 (Debian 14.2.0-19) 14.2.0", "CONFIG_A=y\nCONFIG_HZ=1000\nCONFIG_D=y\n");
        let new = preempt("none voluntary full (lazy)", new);
        let found = difference("new", &old, &new).unwrap();
        let modes = ["voluntary", "lazy"].map(str::to_owned);
        assert_eq!(found.preemption, Some(modes));
        assert_eq!(found.compilers, Some(["gcc-12 12.2.0".into(), "gcc-14 14.2.0".into()]));
        assert_eq!(found.hz, Some(["250".into(), "1000".into()]));
        assert_eq!((found.options, found.of_both), (3, 1));
        assert_eq!(found.checks, [vec![""; 0], vec![]]);
        assert_eq!(difference("new", &old, &old), None);
        let renamed = facts("gcc (Debian 12.2.0-14) 12.2.0", &old.config);
        assert_eq!(difference("new", &old, &renamed), None);
    }

    #[test]
    fn checks_that_both_configurations_list_are_named() {
        let config = [
            "CONFIG_KASAN=y\n# CONFIG_UBSAN is not set\n",
            "# CONFIG_KASAN is not set\n\
                      CONFIG_UBSAN=y\nCONFIG_X86_KERNEL_IBT=y\n",
        ];
        let [old, new] = config.map(|it| facts("gcc-12 (Debian 12.2.0-14) 12.2.0", it));
        let found = difference("new", &old, &new).unwrap();
        assert_eq!(found.checks, [["KASAN"], ["UBSAN"]]);
    }

    #[test]
    fn what_is_not_known_is_no_difference() {
        let known = facts("gcc-12 (Debian 12.2.0-14) 12.2.0", "CONFIG_A=y\n");
        let unknown = BootFacts::default();
        assert_eq!(difference("new", &known, &unknown), None);
        assert_eq!(difference("new", &unknown, &known), None);
    }
}
