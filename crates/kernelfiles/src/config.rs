//! A kernel's configuration (`.config`, `/boot/config-*`), and its compiler by the banner. Two kernels can differ in
//! these besides their code.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan;

/// Options without `CONFIG_`, and their values as written (`y`, `m`, `250`, `"text"`); `n` for an option
/// that is listed as not set.
pub type Config<'a> = BTreeMap<&'a str, &'a str>;

/// An option that two kernels set differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionDifference<'a> {
    /// Its name, without `CONFIG_`.
    pub option: &'a str,
    /// Its value in the first kernel; `None` if the configuration does not list it.
    pub first: Option<&'a str>,
    /// Its value in the second kernel, in the same form.
    pub second: Option<&'a str>,
}

/// The value of an option that is not set.
const NOT_SET: &str = "n";

/// Parses the lines `CONFIG_NAME=value` and `# CONFIG_NAME is not set`.
pub fn parse(text: &str) -> Config<'_> {
    text.lines().filter_map(option).collect()
}

fn option(line: &str) -> Option<(&str, &str)> {
    let unset = line.strip_prefix("# ").and_then(|line| line.strip_suffix(" is not set"));
    let (name, value) = match unset {
        Some(name) => (name, NOT_SET),
        None => line.split_once('=')?,
    };
    let name = name.strip_prefix("CONFIG_")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let printable = |byte: u8| matches!(byte, b' '..=b'~');
    let sound = !name.is_empty() && name.bytes().all(plain) && value.bytes().all(printable);
    sound.then_some((name, value))
}

/// The options whose values differ, sorted by name. An option that is not listed counts as not set.
pub fn differences<'a>(first: &Config<'a>, second: &Config<'a>) -> Vec<OptionDifference<'a>> {
    let options: BTreeSet<_> = first.keys().chain(second.keys()).copied().collect();
    let both = options.into_iter().map(|option| OptionDifference {
        option,
        first: first.get(option).copied(),
        second: second.get(option).copied(),
    });
    let differs = |difference: &OptionDifference<'_>| {
        difference.first.unwrap_or(NOT_SET) != difference.second.unwrap_or(NOT_SET)
    };
    both.filter(differs).collect()
}

/// Timer ticks per second (`CONFIG_HZ`).
pub fn hz(config: &Config<'_>) -> Option<u32> {
    config.get("HZ")?.parse().ok()
}

/// The preemption model in the words of `/sys/kernel/debug/sched/preempt` (`none`, `voluntary`, `full`, `lazy`) or
/// `rt`, followed by `, dynamic` if the model can be changed at boot. `None` if the configuration does not tell.
pub fn preemption(config: &Config<'_>) -> Option<String> {
    const MODELS: [(&str, &str); 5] = [
        // Since 6.12 RT is combined with one of the other models.
        ("PREEMPT_RT", "rt"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    let set = |option| config.get(option) == Some(&"y");
    let (_, model) = MODELS.into_iter().find(|&(option, _)| set(option))?;
    let dynamic = if set("PREEMPT_DYNAMIC") { ", dynamic" } else { "" };
    Some(format!("{model}{dynamic}"))
}

/// Name and version of the compiler, such as `gcc-12 12.2.0`, from `/proc/version`:
/// `Linux version RELEASE (BUILDER) (COMPILER, LINKER) #1 SMP ...`. Prefixes of cross compilers and the
/// distribution's additions in parentheses are left out.
pub fn compiler(banner: &str) -> Option<String> {
    let toolchain = &banner[banner.find(") (")? + 3..];
    let mut depth = 0_usize;
    let mut plain = String::new();
    for character in toolchain.chars() {
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            ',' if depth == 0 => break,
            other if depth == 0 => plain.push(other),
            _ => {}
        }
    }
    let words: Vec<_> = plain.split_whitespace().collect();
    let version =
        words.iter().position(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let name = words[..version].iter().rfind(|word| **word != "version")?;
    let name = name.rsplit_once("-gnu-").map_or(*name, |(_, name)| name);
    Some(scan::printable(&format!("{name} {}", words[version]), scan::MAX_NAME))
}

/// Prefixes of options that change the performance of memory management, scheduling and file systems, or of
/// the whole kernel (hardening, debugging). They match whole words: `NUMA` matches `NUMA` and
/// `NUMA_BALANCING`, not `NUMACHIP`. Lines that begin with `#` are headings.
const RELEVANT: &str = include_str!("config/relevant.txt");

/// Whether an option, named without `CONFIG_`, changes the performance of memory management,
/// scheduling or file systems, or of the whole kernel.
pub fn is_relevant(option: &str) -> bool {
    let begins = |word: &str| {
        let rest = option.strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    RELEVANT.lines().filter(|line| !line.is_empty()).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKWORM: &str = "# Linux/x86 6.1.0 Kernel Configuration\n\
        CONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian 12.2.0-14) 12.2.0\"\nCONFIG_HZ_250=y\n\
        CONFIG_HZ=250\n# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n\
        CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_LRU_GEN=y\n# CONFIG_LRU_GEN_ENABLED is not set\n";

    #[test]
    fn set_options_and_their_values() {
        let config = parse(BOOKWORM);
        assert_eq!(config.len(), 8);
        assert_eq!(config["LRU_GEN_ENABLED"], "n");
        assert_eq!(config["LRU_GEN"], "y");
        assert_eq!(config["CC_VERSION_TEXT"], "\"gcc-12 (Debian 12.2.0-14) 12.2.0\"");
        assert_eq!(hz(&config), Some(250));
        assert_eq!(hz(&parse("CONFIG_HZ=fast")), None);
        assert!(parse("CONFIG_A\u{1b}=y\nCONFIG_B=\u{1b}\nCONFIG_=y\nA=y\n").is_empty());
    }

    #[test]
    fn not_set_and_unknown_are_the_same() {
        let first = parse(BOOKWORM);
        let second = BOOKWORM.replace("# CONFIG_LRU_GEN_ENABLED is not set", "CONFIG_X=m");
        let second = second.replace("CONFIG_HZ=250", "CONFIG_HZ=1000");
        let second = parse(&second);
        let option = |option, first, second| OptionDifference { option, first, second };
        let expected = [option("HZ", Some("250"), Some("1000")), option("X", None, Some("m"))];
        assert_eq!(differences(&first, &second), expected);
        assert_eq!(differences(&first, &first), []);
    }

    #[test]
    fn preemption_models() {
        for (text, model) in [
            (BOOKWORM, Some("voluntary, dynamic")),
            ("CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_NONE_BUILD=y", Some("none")),
            ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y", Some("full, dynamic")),
            ("CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_BUILD=y", Some("lazy")),
            ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_RT=y", Some("rt")),
            ("CONFIG_HZ=250", None),
        ] {
            assert_eq!(preemption(&parse(text)).as_deref(), model, "{text}");
        }
    }

    #[test]
    fn compilers_of_banners() {
        for (toolchain, compiler_name) in [
            (
                "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40",
                "gcc-12 12.2.0",
            ),
            (
                "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0, GNU ld (GNU) 2.44",
                "gcc-14 14.2.0",
            ),
            ("gcc-10 (Debian 10.2.1-6) 10.2.1 20210110, GNU ld 2.35.2", "gcc-10 10.2.1"),
            ("gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46", "gcc 15.3.0"),
            ("Debian clang version 16.0.6 (15~deb12u1), Debian LLD 16.0.6", "clang 16.0.6"),
        ] {
            let banner = format!("Linux version 6.1.0 (a@b.org) ({toolchain}) #1 SMP 6.1.1-1");
            assert_eq!(compiler(&banner).as_deref(), Some(compiler_name));
        }
        for banner in ["", "Linux version 6.1.0", "a) (gcc", "a) ((((", "a) (12.2.0)"] {
            assert_eq!(compiler(banner), None, "{banner}");
        }
    }

    #[test]
    fn relevant_options_are_whole_words() {
        for option in [
            "NUMA",
            "NUMA_BALANCING_DEFAULT_ENABLED",
            "LRU_GEN_ENABLED",
            "HZ_250",
            "PREEMPT_DYNAMIC",
            "MITIGATION_PAGE_TABLE_ISOLATION",
            "DEBUG_VM_PGFLAGS",
            "TRANSPARENT_HUGEPAGE_MADVISE",
        ] {
            assert!(is_relevant(option), "{option}");
        }
        for option in ["NUMACHIP", "SND_HDA", "DEBUG_FS", "DEBUG_INFO", "X_HZ", ""] {
            assert!(!is_relevant(option), "{option}");
        }
    }
}
