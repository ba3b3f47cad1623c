//! Finds the kernels of a suite by the names of its packages, and chooses among them. It does no I/O.
//!
//! Up to 6.18 a kernel is one package, `linux-image-RELEASE` (or `...-unsigned`). Newer ones are split:
//! `linux-binary-RELEASE` (or `linux-binary-unsigned-RELEASE`) with the image, `linux-modules-RELEASE`, and
//! `linux-base-RELEASE` with the configuration; `linux-image-RELEASE` is then an empty package that depends
//! on them. Signed images are published some days after unsigned ones, and stay in the archive longer than
//! the modules.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::Architecture;

use super::version;
use crate::arch::{self, arm64::LARGE_PAGES};

/// The word for the newest kernel, or the newest series of sources.
pub(crate) const NEWEST_KERNEL: &str = "newest";
/// The flavour for virtual machines, in the name of a release.
const CLOUD: &str = "-cloud-";

/// A package of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    /// Its size in bytes.
    pub size: u64,
    /// The names of its dependencies. Of alternatives, only the first.
    pub depends: Vec<String>,
}

/// A kernel of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// The output of `uname -r`.
    pub name: String,
    /// All its packages; the first has the image.
    pub packages: Vec<Package>,
    /// Whether its modules are available.
    pub complete: bool,
}

impl Release {
    /// The version of its package.
    pub fn version(&self) -> &str {
        &self.packages[0].version
    }

    /// Its series, such as `6.1`.
    pub fn series(&self) -> String {
        numbers(version::upstream(self.version())).take(2).collect::<Vec<_>>().join(".")
    }

    /// Whether `wanted` means this kernel. It is a release, or `newest`, a package version, or the first numbers of an
    /// upstream version, with `-16k` after it for pages of 16 KiB.
    pub fn is(&self, wanted: &str) -> bool {
        let mut own = numbers(version::upstream(self.version()));
        let number = without_flavour(wanted);
        wanted == self.name
            || self.has_pages_of(wanted)
                && (number == NEWEST_KERNEL
                    || number == self.version()
                    || number.split('.').all(|number| own.next() == Some(number)))
    }

    /// Whether this kernel and the one that `wanted` means have large pages, or neither has.
    pub fn has_pages_of(&self, wanted: &str) -> bool {
        self.name.ends_with(LARGE_PAGES) == wanted.ends_with(LARGE_PAGES)
    }

    /// The version of its package, with the end of a name for large pages.
    pub fn alias(&self) -> String {
        let pages = if self.name.ends_with(LARGE_PAGES) { LARGE_PAGES } else { "" };
        format!("{}{pages}", self.version())
    }

    /// Orders kernels by preference: those with modules, then the newest, then those of the cloud
    /// flavour, which start faster.
    pub fn preference(&self, other: &Self) -> Ordering {
        let is_cloud = |release: &Self| release.name.contains(CLOUD);
        self.complete
            .cmp(&other.complete)
            .then_with(|| version::compare(self.version(), other.version()))
            .then_with(|| is_cloud(self).cmp(&is_cloud(other)))
    }
}

/// The leading numbers of a version, as text.
fn numbers(upstream: &str) -> impl Iterator<Item = &str> {
    let end = upstream.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upstream.len());
    upstream[..end].split('.')
}

/// The part of a kernel that a package contains. Parts with an image come first, by preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KernelPart {
    Binary,
    UnsignedBinary,
    /// The complete kernel. If there is a binary package, this one is empty.
    Image,
    UnsignedImage,
    Modules,
    Base,
}

/// The part and the release that a package of an architecture contains.
fn part(package: &str, arch: Architecture) -> Option<(KernelPart, &str)> {
    const PREFIXES: [(&str, KernelPart); 5] = [
        ("linux-binary-unsigned-", KernelPart::UnsignedBinary),
        ("linux-binary-", KernelPart::Binary),
        ("linux-modules-", KernelPart::Modules),
        ("linux-base-", KernelPart::Base),
        ("linux-image-", KernelPart::Image),
    ];
    let (part, rest) =
        PREFIXES.iter().find_map(|(prefix, part)| Some((*part, package.strip_prefix(prefix)?)))?;
    let (part, release) = match rest.strip_suffix("-unsigned") {
        Some(release) if part == KernelPart::Image => (KernelPart::UnsignedImage, release),
        _ => (part, rest),
    };
    is_release(release, arch).then_some((part, release))
}

/// Whether a package with this name is a part of a kernel for an architecture.
pub(crate) fn is_of_a_kernel(package: &str, arch: Architecture) -> bool {
    part(package, arch).is_some()
}

/// The architecture that the name of a kernel says: that of a release, or the only one with large pages.
pub(crate) fn architecture(name: &str) -> Option<Architecture> {
    let ends = |it: &&Architecture| before(name, **it).is_some();
    let large = name.ends_with(LARGE_PAGES).then_some(Architecture::Arm64);
    large.or_else(|| Architecture::ALL.iter().find(ends).copied())
}

/// A name without the end that says the size of pages.
pub(crate) fn without_flavour(name: &str) -> &str {
    name.strip_suffix(LARGE_PAGES).unwrap_or(name)
}

/// A release without the name of its architecture.
fn before(release: &str, arch: Architecture) -> Option<&str> {
    without_flavour(release).strip_suffix(arch::debian(arch))?.strip_suffix('-')
}

/// Whether this is a full release such as `6.1.0-56-amd64`, `7.3.4+deb13-cloud-amd64` or `7.3.4+deb13-arm64-16k`. Names
/// without a full version are packages that only depend on others. Flavours such as `rt` are excluded too.
fn is_release(text: &str, arch: Architecture) -> bool {
    let Some(rest) = before(text, arch) else { return false };
    let rest = rest.strip_suffix("-cloud").unwrap_or(rest);
    let (version, build) = rest.split_at(rest.find(['-', '+']).unwrap_or(rest.len()));
    let is_number = |number: &str| number.parse::<u32>().is_ok();
    let full = version.split('.').count() == 3 && version.split('.').all(is_number);
    full && build.strip_prefix('-').map_or(!build.contains('-'), is_number)
}

/// The kernels for an architecture among `packages`.
pub(crate) fn releases(packages: &[Package], arch: Architecture) -> Vec<Release> {
    let mut parts: BTreeMap<&str, BTreeMap<KernelPart, &Package>> = BTreeMap::new();
    for package in packages {
        let Some((part, release)) = part(&package.name, arch) else {
            continue;
        };
        let best = parts.entry(release).or_default().entry(part).or_insert(package);
        if version::compare(&package.version, &best.version).is_gt() {
            *best = package;
        }
    }
    parts.into_iter().filter_map(|(name, parts)| release(name, &parts)).collect()
}

fn release(name: &str, parts: &BTreeMap<KernelPart, &Package>) -> Option<Release> {
    let (image, package) = parts.first_key_value()?;
    let others: &[KernelPart] = match image {
        KernelPart::Binary | KernelPart::UnsignedBinary => &[KernelPart::Modules, KernelPart::Base],
        KernelPart::Image | KernelPart::UnsignedImage => &[],
        KernelPart::Modules | KernelPart::Base => return None,
    };
    let complete = others.is_empty() || parts.contains_key(&KernelPart::Modules);
    let others = others.iter().filter_map(|part| parts.get(part));
    let packages = [package].into_iter().chain(others).map(|&package| package.clone()).collect();
    Some(Release { name: name.into(), packages, complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(packages: &[(&str, &str)], arch: Architecture) -> Vec<Release> {
        let package = |&(name, version): &(&str, &str)| Package {
            name: name.into(),
            version: version.into(),
            size: 1,
            depends: Vec::new(),
        };
        releases(&packages.iter().map(package).collect::<Vec<_>>(), arch)
    }

    fn names(release: &Release) -> Vec<&str> {
        release.packages.iter().map(|package| package.name.as_str()).collect()
    }

    /// Some packages of the archive in November 2026.
    const ARCHIVE: &[(&str, &str)] = &[
        ("linux-image-6.1.0-55-cloud-amd64", "6.1.192-1"),
        ("linux-image-6.1.0-56-amd64", "6.1.192-2"),
        ("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2"),
        ("linux-image-6.1.0-56-cloud-amd64-unsigned", "6.1.192-2"),
        ("linux-image-6.1.0-56-rt-amd64", "6.1.192-2"),
        ("linux-image-6.1.0-56-cloud-amd64-dbg", "6.1.192-2"),
        ("linux-image-6.12-cloud-amd64", "6.12.117-1~deb12u1"),
        ("linux-image-6.12.117+deb12-cloud-amd64", "6.12.117-1~deb12u1"),
        ("linux-image-cloud-amd64", "6.1.192-2"),
        ("linux-base", "4.12.1"),
        ("linux-base-cloud-amd64", "7.2.13-1"),
        ("linux-binary-7.0.13+deb13-cloud-amd64", "7.0.13-1~bpo13+1"),
        ("linux-image-7.0.13+deb13-cloud-amd64", "7.0.13-1~bpo13+1"),
        ("linux-base-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1"),
        ("linux-binary-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1"),
        ("linux-binary-unsigned-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1"),
        ("linux-image-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1"),
        ("linux-modules-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1"),
        ("linux-base-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1"),
        ("linux-binary-unsigned-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1"),
        ("linux-modules-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1"),
    ];

    fn choice(wanted: &str) -> Option<Release> {
        let releases = found(ARCHIVE, Architecture::X86_64).into_iter();
        releases.filter(|release| release.is(wanted)).max_by(Release::preference)
    }

    #[test]
    fn kernels_are_found_by_each_kind_of_name() {
        for (wanted, release) in [
            ("6.1", "6.1.0-56-cloud-amd64"),
            ("6.1.192", "6.1.0-56-cloud-amd64"),
            ("6.1.192-1", "6.1.0-55-cloud-amd64"),
            ("6.1.0-56-amd64", "6.1.0-56-amd64"),
            ("6.12", "6.12.117+deb12-cloud-amd64"),
            ("7", "7.3.4+deb13-cloud-amd64"),
            ("newest", "7.3.4+deb13-cloud-amd64"),
        ] {
            assert_eq!(choice(wanted).unwrap().name, release, "{wanted}");
        }
        for wanted in ["6.2", "6.1.19", "6.1.0-56", "6.1.0-56-rt-amd64", "7.3.4.1"] {
            assert_eq!(choice(wanted), None, "{wanted}");
        }
    }

    #[test]
    fn a_kernel_in_parts_has_all_packages() {
        let parts = |prefix: &str, release: &str| {
            [prefix, "linux-modules-", "linux-base-"].map(|part| format!("{part}{release}"))
        };
        let signed = choice("7.2").unwrap();
        assert_eq!(names(&signed), parts("linux-binary-", "7.2.12+deb13-cloud-amd64"));
        let unsigned = choice("7.3").unwrap();
        assert_eq!(names(&unsigned), parts("linux-binary-unsigned-", "7.3.4+deb13-cloud-amd64"));
        let whole = choice("6.1").unwrap();
        assert_eq!(names(&whole), ["linux-image-6.1.0-56-cloud-amd64"]);
    }

    #[test]
    fn each_architecture_has_its_own_kernels() {
        let archive = [
            ("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2"),
            ("linux-image-6.1.0-56-arm64", "6.1.192-2"),
            ("linux-image-6.1.0-56-cloud-arm64", "6.1.192-2"),
            ("linux-image-6.1.0-56-rt-arm64", "6.1.192-2"),
        ];
        let of = |arch| found(&archive, arch).into_iter().max_by(Release::preference).unwrap().name;
        assert_eq!(of(Architecture::X86_64), "6.1.0-56-cloud-amd64");
        assert_eq!(of(Architecture::Arm64), "6.1.0-56-cloud-arm64");
        assert_eq!(found(&archive, Architecture::Arm64).len(), 2);
        assert_eq!(architecture("6.1.0-56-cloud-arm64"), Some(Architecture::Arm64));
        assert_eq!([architecture("6.1"), architecture("6.1.0-56-rt-arm")], [None, None]);
    }

    #[test]
    fn large_pages_are_asked_for() {
        let archive = [
            ("linux-image-6.12.117+deb13-arm64-16k", "6.12.117-1"),
            ("linux-image-6.12.117+deb13-rt-arm64", "6.12.117-1"),
            ("linux-image-6.12.117+deb13-cloud-arm64", "6.12.117-1"),
            ("linux-image-6.12.117+deb13-arm64", "6.12.117-1"),
            ("linux-image-arm64-16k", "6.12.117-1"),
            ("linux-image-6.12-arm64-16k", "6.12.117-1"),
        ];
        let releases = found(&archive, Architecture::Arm64);
        assert_eq!(releases.len(), 3);
        let choice = |wanted: &str| {
            let fit = releases.iter().filter(|release| release.is(wanted));
            fit.max_by(|a, b| a.preference(b)).map(|release| &*release.name)
        };
        let [large, cloud] = ["6.12.117+deb13-arm64-16k", "6.12.117+deb13-cloud-arm64"];
        for wanted in ["6.12-16k", "newest-16k", "6.12.117-1-16k", "6-16k", large] {
            assert_eq!(choice(wanted), Some(large), "{wanted}");
            assert_eq!(architecture(wanted), Some(Architecture::Arm64), "{wanted}");
        }
        for wanted in ["6.12", "newest", "6.12.117-1"] {
            assert_eq!(choice(wanted), Some(cloud), "{wanted}");
        }
        assert_eq!([choice("6.1-16k"), choice("6.12-64k")], [None, None]);
        assert_eq!(releases.iter().find(|it| it.is(large)).unwrap().alias(), "6.12.117-1-16k");
    }

    #[test]
    fn a_kernel_without_modules_comes_last() {
        let bare = choice("7.0").unwrap();
        assert!(!bare.complete);
        assert_eq!(names(&bare), ["linux-binary-7.0.13+deb13-cloud-amd64"]);
        let mut archive = ARCHIVE.to_vec();
        archive.push(("linux-binary-7.3.5+deb13-cloud-amd64", "7.3.5-1"));
        let releases = found(&archive, Architecture::X86_64).into_iter();
        let newest = releases.filter(|release| release.is("7.3")).max_by(Release::preference);
        assert_eq!(newest.unwrap().name, "7.3.4+deb13-cloud-amd64");
    }
}
