//! The configuration of a kernel that is built. It starts from our small one, a file, or the configuration of a
//! package. Options that workloads and disks need are added, then the user's. Later options replace earlier ones.

use std::collections::BTreeMap;

use kernelfiles::config;
use model::Architecture;

use crate::arch;

/// The comment before the options of the small configuration that must be there.
const NEEDED: &str = "# needed";
/// The suffix that asks for a packaged configuration with the networking, drivers and file systems of the small one.
pub(crate) const LEAN: &str = "+vm";
/// The menus with networking, drivers and file systems, by the comments before and after them
/// (`scripts/kconfig/confdata.c`).
const MENUS: [[&str; 2]; 2] = [
    ["# Networking options", "# end of Device Drivers"],
    ["# File systems", "# end of File systems"],
];
/// The options that drivers and file systems need, by the name of their module.
const MODULES: [(&str, &[&str]); 12] = [
    ("virtio_pci", &["VIRTIO_MENU", "VIRTIO_PCI"]),
    ("virtio_blk", &["VIRTIO_MENU", "VIRTIO_PCI", "BLK_DEV", "VIRTIO_BLK"]),
    ("nvme", &["BLK_DEV_NVME"]),
    ("nd_pmem", &PMEM),
    ("nfit", &["BLK_DEV", "LIBNVDIMM", "ACPI_NFIT"]),
    ("brd", &["BLK_DEV", "BLK_DEV_RAM"]),
    ("loop", &["BLK_DEV", "BLK_DEV_LOOP"]),
    ("ext4", &["EXT4_FS"]),
    ("xfs", &["XFS_FS"]),
    ("btrfs", &["BTRFS_FS"]),
    (EVENTS, &["PERF_EVENTS", "FTRACE", "ENABLE_DEFAULT_TRACERS"]),
    ("zram", &["BLK_DEV", "CRYPTO", "CRYPTO_LZO", "ZRAM_BACKEND_LZO", "ZSMALLOC", "ZRAM"]),
];
/// The options of persistent memory. Kernels with LIBNVDIMM and BLK_DEV_PMEM alone (5.10, 7.3) found no disk.
const PMEM: [&str; 12] = [
    "SPARSEMEM_VMEMMAP", "MEMORY_HOTPLUG", "MEMORY_HOTREMOVE", "ZONE_DEVICE", "BLK_DEV",
    "LIBNVDIMM", "BLK_DEV_PMEM", "BTT", "NVDIMM_PFN", "NVDIMM_DAX", "DEV_DAX", "FS_DAX",
];
/// The name by which an experiment asks for the options that events of perf need. It is used like the name of a
/// module.
pub const EVENTS: &str = "events";
/// Options that some versions lack, or that other options replace (a kernel with another tracer has no default ones).
/// Their absence is not an error.
const OF_SOME_VERSIONS: [&str; 4] =
    ["VIRTIO_MENU", "ZRAM_BACKEND_LZO", "ENABLE_DEFAULT_TRACERS", "DEBUG_INFO_NONE"];

/// Options and their values, in order.
pub(crate) type Options = Vec<(String, String)>;

/// The requested configuration: a base, and options that replace its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requested {
    /// The architecture that it is for.
    pub arch: Architecture,
    /// The text of the configuration to start from; `None` for the small one.
    pub base: Option<String>,
    /// The options that replace those of the base.
    pub options: Options,
}

impl Requested {
    /// The text to give to `make`: `allnoconfig` with `KCONFIG_ALLCONFIG` for the small configuration,
    /// `olddefconfig` for another.
    pub fn text(&self) -> String {
        let base = self.base.as_deref().unwrap_or(small(self.arch));
        let mut last: BTreeMap<&str, &str> = BTreeMap::new();
        last.extend(self.options.iter().map(|(name, value)| (&**name, &**value)));
        let is_kept = |line: &&str| {
            let name = config::parse(line).into_keys().next();
            name.is_none_or(|name| !last.contains_key(name))
        };
        let mut text: String = base.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
        text.extend(last.into_iter().map(|(name, value)| assignment(name, value)));
        text
    }

    /// The requested options that a finished configuration does not have, each with the value that it has:
    /// `CONFIG_ZRAM=y (it has n)`.
    pub fn lost(&self, finished: &str) -> Vec<String> {
        let finished = config::parse(finished);
        let small = if self.base.is_none() { needed(self.arch) } else { Vec::new() };
        let mut wanted: BTreeMap<&str, &str> = small.into_iter().collect();
        wanted.extend(self.options.iter().map(|(name, value)| (&**name, &**value)));
        let is_lost = |(name, value): (&str, &str)| {
            let has = finished.get(name).copied().unwrap_or("n");
            let is_optional = OF_SOME_VERSIONS.contains(&name);
            // An empty text that is absent counts as requested.
            let is_empty = value == "\"\"" && has == "n";
            (has != value && !is_empty && !is_optional)
                .then(|| format!("CONFIG_{name}={value} (it has {has})"))
        };
        wanted.into_iter().filter_map(is_lost).collect()
    }
}

/// The small configuration.
fn small(arch: Architecture) -> &'static str {
    arch::recipe(arch).small
}

/// The options that the small configuration cannot do without.
fn needed(arch: Architecture) -> Vec<(&'static str, &'static str)> {
    let (_, part) = small(arch).split_once(&format!("\n{NEEDED}\n")).expect("it has this part");
    let part = part.split("\n\n").next().unwrap_or_default();
    config::parse(part).into_iter().collect()
}

/// A configuration with the networking, drivers and file systems of the small one. `None` if it does not have their
/// menus.
pub(crate) fn lean(text: &str, arch: Architecture) -> Option<String> {
    let small = config::parse(small(arch));
    let (mut lean, mut menus, mut end) = (String::new(), 0, None);
    for line in text.lines() {
        if let Some([_, last]) = MENUS.iter().find(|[first, _]| *first == line) {
            (end, menus) = (Some(*last), menus + 1);
        }
        match config::parse(line).into_iter().next() {
            // Numbers and texts get their defaults.
            Some((name, "y" | "m" | "n")) if end.is_some() && !small.contains_key(name) => {
                lean += &assignment(name, "n");
            }
            _ if end.is_some() => {}
            _ => lean += &format!("{line}\n"),
        }
        if end == Some(line) {
            end = None;
        }
    }
    let own = config::parse(&lean);
    let missing = small.into_iter().filter(|(name, _)| !own.contains_key(name));
    let missing: String = missing.map(|(name, value)| assignment(name, value)).collect();
    (menus == MENUS.len() && end.is_none()).then(|| lean + &missing)
}

/// An option as a line of a configuration.
fn assignment(name: &str, value: &str) -> String {
    match value {
        "n" => format!("# CONFIG_{name} is not set\n"),
        value => format!("CONFIG_{name}={value}\n"),
    }
}

/// The options of a fragment: lines `CONFIG_X=y` and `# CONFIG_X is not set`. The error is the first line
/// that is neither an option nor a comment.
pub(crate) fn fragment(text: &str) -> Result<Options, String> {
    let mut options = Options::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        match config::parse(line).into_iter().next() {
            Some((name, value)) => options.push((name.into(), value.into())),
            None if line.is_empty() || line.starts_with('#') => {}
            None => {
                let line = line.escape_debug();
                return Err(format!("line {number} is not an option CONFIG_NAME=VALUE: `{line}`"));
            }
        }
    }
    Ok(options)
}

/// An option that the user sets: `CONFIG_X` or `X`, and `y`, `n`, a number, or a text, which gets quotes.
pub(crate) fn option(name: &str, value: &str) -> Result<(String, String), String> {
    let name = name.strip_prefix("CONFIG_").unwrap_or(name);
    let is_plain =
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if !is_plain {
        return Err(format!("`{}` is not the name of an option", name.escape_debug()));
    }
    let is_number = value.strip_prefix('-').unwrap_or(value).bytes().all(|it| it.is_ascii_digit())
        || value.strip_prefix("0x").is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
    let is_plain = matches!(value, "y" | "n" | "m") || is_number && !value.is_empty();
    let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
    let value = match value {
        _ if value.chars().any(char::is_control) => {
            return Err(format!("the value of {name} has control characters"));
        }
        plain if is_plain || is_quoted => plain.to_owned(),
        text => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    Ok((name.to_owned(), value))
}

/// The options that a module's driver or file system needs, built in. `None` if we do not know them.
pub(crate) fn of_module(module: &str) -> Option<Options> {
    let module = module.replace('-', "_");
    let (_, options) = MODULES.into_iter().find(|(name, _)| *name == module)?;
    Some(options.iter().map(|name| ((*name).to_owned(), "y".to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(base: Option<&str>, options: &[(&str, &str)]) -> Requested {
        let options = options.iter().map(|(name, value)| option(name, value).unwrap()).collect();
        Requested { base: base.map(Into::into), options, ..Requested::default() }
    }

    #[test]
    fn later_options_replace_earlier_ones() {
        let requested = requested(
            Some("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"x\"\n"),
            &[("A", "n"), ("CONFIG_B", "y"), ("B", "n"), ("D", "some text"), ("E", "0x10")],
        );
        let expected = "CONFIG_C=\"x\"\n# CONFIG_A is not set\n# CONFIG_B is not set\n\
                        CONFIG_D=\"some text\"\nCONFIG_E=0x10\n";
        assert_eq!(requested.text(), expected);
    }

    #[test]
    fn lost_options_are_named() {
        let requested =
            requested(Some(""), &[("ZRAM", "y"), ("NR_CPUS", "8"), ("OLD", "n"), ("KEY", "\"\"")]);
        let lost = requested.lost("# CONFIG_ZRAM is not set\nCONFIG_NR_CPUS=8\n");
        assert_eq!(lost, ["CONFIG_ZRAM=y (it has n)"]);
        let lost = self::requested(None, &[]).lost("CONFIG_64BIT=y\n");
        assert!(lost.contains(&"CONFIG_PVH=y (it has n)".to_owned()), "{lost:?}");
        assert!(!lost.iter().any(|it| it.contains("64BIT") || it.contains("LRU_GEN")), "{lost:?}");
    }

    #[test]
    fn a_lean_configuration_has_the_drivers_of_the_small_one() {
        let packaged = "CONFIG_SWAP=y\nCONFIG_HZ=250\n# CONFIG_IKCONFIG is not set\nCONFIG_NET=y\n\n#\n\
                        # Networking options\n#\nCONFIG_INET=y\nCONFIG_UNIX=m\nCONFIG_SIZE=5\n\
                        # end of Networking options\nCONFIG_BT=m\n# Device Drivers\n# CONFIG_TTY is not set\n\
                        CONFIG_USB=y\n# end of Device Drivers\n# File systems\nCONFIG_XFS_FS=y\n\
                        # end of File systems\nCONFIG_KFENCE=y\n";
        let lean = |text: &str| super::lean(text, Architecture::X86_64);
        let text = lean(packaged).unwrap();
        let options = config::parse(&text);
        let names = [
            "SWAP", "HZ", "IKCONFIG", "KFENCE", "UNIX", "TTY", "INET", "BT", "USB", "XFS_FS",
            "PROC_FS", "SIZE",
        ];
        let has = names.map(|name| options.get(name).copied().unwrap_or("-"));
        assert_eq!(has, ["y", "250", "n", "y", "y", "y", "n", "n", "n", "n", "y", "-"]);
        assert_eq!(lean("CONFIG_SWAP=y\n# Device Drivers\n"), None);
        assert_eq!(lean(&packaged.replace("# end of File systems", "")), None);
    }

    #[test]
    fn fragments_have_options_only() {
        let options = fragment("# a comment\n\nCONFIG_A=y\n# CONFIG_B is not set\n").unwrap();
        assert_eq!(options, [("A".into(), "y".into()), ("B".into(), "n".into())]);
        assert!(fragment("CONFIG_A=y\nA=y\n").unwrap_err().starts_with("line 2 "));
        assert!(
            option("a b", "y").is_err() && option("", "y").is_err() && option("A", "\n").is_err()
        );
    }

    #[test]
    fn the_modules_of_disks_and_swap_have_options() {
        for kind in [
            model::DiskKind::VirtioBlk,
            model::DiskKind::Nvme,
            model::DiskKind::Pmem,
            model::DiskKind::Ram,
        ] {
            for module in kind.modules() {
                assert!(of_module(module).is_some(), "{module}");
            }
        }
        assert!(of_module("no-such").is_none());
    }
}
