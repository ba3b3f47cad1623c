//! Ubuntu's builds of mainline kernels (<https://kernel.ubuntu.com/mainline/>): a directory for each version, in it one
//! for each architecture with packages and the list of their digests, `CHECKSUMS`.

use std::fs;
use std::path::{Path, PathBuf};

use model::Architecture;

use crate::debian::archive::is_nothing;
use crate::debian::suite::{Download, Suite};
use crate::error::Doing;
use crate::{Error, arch, input};

/// The address of the archive.
pub(crate) const ARCHIVE: &str = "https://kernel.ubuntu.com/mainline";
/// Prefix of the version in the name of such a kernel.
pub(crate) const MAINLINE: &str = "mainline:";
/// The list of digests of a directory.
const CHECKSUMS: &str = "CHECKSUMS";
/// Most bytes of that list.
const MAX_LIST: u64 = 1 << 20;
/// The flavour of kernel whose packages are taken.
const FLAVOUR: &str = "-generic_";

/// Returns the version that a request names, without the tag's `v`, such as `6.13-rc2`. `None` if it is no version.
pub(crate) fn version(request: &str) -> Option<&str> {
    let version = request.strip_prefix(MAINLINE)?;
    let version = version.strip_prefix('v').unwrap_or(version);
    let (numbers, candidate) = match version.split_once("-rc") {
        Some((numbers, candidate)) => (numbers, Some(candidate)),
        None => (version, None),
    };
    let is_number = |text: &str| {
        (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_version = (2..=3).contains(&numbers.split('.').count());
    let all = numbers.split('.').chain(candidate);
    (is_version && all.into_iter().all(is_number)).then_some(version)
}

/// Returns the name in the cache of the kernel that a request names; `None` for other requests.
pub(crate) fn cached(request: &str) -> Option<String> {
    version(request).map(name)
}

/// Returns the name in the cache of the build of a version.
pub(crate) fn name(version: &str) -> String {
    format!("mainline-{version}")
}

/// A package in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed<'a> {
    file: &'a str,
    sha256: &'a str,
}

/// Fetches the packages of a kernel into `directory`, and checks their digests. `apt` is the directory for apt's files.
/// Fails when the archive has no such build, or cannot be reached.
pub(crate) fn fetch(
    archive: &str,
    version: &str,
    (apt, directory): (&Path, &Path),
    say: &dyn Fn(&str),
) -> Result<Vec<PathBuf>, Error> {
    let suite = Suite::with_sources(apt, "mainline", "", Architecture::X86_64)?;
    let place = format!("{archive}/v{version}/{}", arch::DEBIAN);
    let nothing = |problem: String| Error::NoBuild {
        version: version.into(),
        address: place.clone(),
        problem,
    };
    fs::create_dir_all(directory).doing("create", directory)?;
    let list = directory.join(CHECKSUMS);
    let wanted =
        Download { address: format!("{place}/{CHECKSUMS}"), place: list.clone(), sha256: None };
    suite.fetch(&[wanted]).map_err(|error| match error {
        Error::Tool { problem, .. } if is_nothing(&problem) => nothing(problem),
        other => other,
    })?;
    let text = input::read(&list, MAX_LIST)?;
    let text = String::from_utf8_lossy(&text);
    let packages = packages(&text).map_err(|problem| nothing(problem.into()))?;
    let names: Vec<&str> = packages.iter().map(|it| it.file).collect();
    say(&format!("fetching {} from {place}", names.join(", ")));
    let downloads: Vec<Download<'_>> = packages
        .iter()
        .map(|it| Download {
            address: format!("{place}/{}", it.file),
            place: directory.join(it.file),
            sha256: Some(it.sha256),
        })
        .collect();
    suite.fetch(&downloads)?;
    Ok(downloads.into_iter().map(|it| it.place).collect())
}

/// The packages of the image, the modules and the headers in a list of digests. Headers can be missing.
fn packages(list: &str) -> Result<Vec<Listed<'_>>, &'static str> {
    let all: Vec<Listed<'_>> = list.lines().filter_map(listed).collect();
    let ending = format!("_{}.deb", arch::DEBIAN);
    let of_flavour = |begin: &str| {
        let is_it = |it: &&Listed<'_>| {
            it.file.starts_with(begin) && it.file.contains(FLAVOUR) && it.file.ends_with(&ending)
        };
        all.iter().find(is_it).cloned()
    };
    let image = of_flavour("linux-image-").ok_or("CHECKSUMS lists no image")?;
    let modules = of_flavour("linux-modules-").ok_or("CHECKSUMS lists no modules")?;
    let is_common =
        |it: &&Listed<'_>| it.file.starts_with("linux-headers-") && it.file.ends_with("_all.deb");
    let common = all.iter().find(is_common).cloned();
    let headers = of_flavour("linux-headers-").zip(common);
    let headers = headers.into_iter().flat_map(|(own, common)| [own, common]);
    Ok([image, modules].into_iter().chain(headers).collect())
}

/// A line with a SHA-256 digest: the digest, spaces, and the name of a file. `None` for other lines.
fn listed(line: &str) -> Option<Listed<'_>> {
    let (sha256, file) = line.split_once(' ')?;
    let file = file.trim_start_matches([' ', '*']).trim_end();
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|it| it.is_ascii_hexdigit());
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "._+~-".contains(it);
    let is_name = file.starts_with(|it: char| it.is_ascii_alphanumeric())
        && file.len() <= 200
        && file.chars().all(is_plain);
    (is_digest && is_name).then_some(Listed { file, sha256 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_those_of_tags() {
        for (request, expected) in [
            ("mainline:6.13-rc2", Some("6.13-rc2")),
            ("mainline:v6.13", Some("6.13")),
            ("mainline:6.12.3", Some("6.12.3")),
            ("mainline:", None),
            ("mainline:6", None),
            ("mainline:6.13-rc", None),
            ("mainline:6.13/../6.1", None),
            ("mainline:6.13-rc2-rc3", None),
            ("mainline:newest", None),
            ("6.13", None),
        ] {
            assert_eq!(version(request), expected, "{request}");
        }
        assert_eq!(cached("mainline:v6.13-rc2").as_deref(), Some("mainline-6.13-rc2"));
    }

    #[test]
    fn the_packages_of_the_usual_flavour_are_taken() {
        let digest = "0123456789abcdef".repeat(4);
        let files = [
            "linux-headers-6.13.0-061300rc2-generic_6.13.0_amd64.deb",
            "linux-headers-6.13.0-061300rc2_6.13.0_all.deb",
            "linux-image-unsigned-6.13.0-061300rc2-lowlatency_6.13.0_amd64.deb",
            "linux-image-unsigned-6.13.0-061300rc2-generic_6.13.0_amd64.deb",
            "linux-modules-6.13.0-061300rc2-generic_6.13.0_arm64.deb",
            "linux-modules-6.13.0-061300rc2-generic_6.13.0_amd64.deb",
        ];
        let lines = files.map(|file| format!("{digest}  {file}\n")).concat();
        let list = format!(
            "# Checksums-Sha1:\n{}  {}\n# Checksums-Sha256:\n{lines}",
            &digest[..40],
            files[3]
        );
        let found = packages(&list).unwrap();
        let names: Vec<&str> = found.iter().map(|it| it.file).collect();
        assert_eq!(names, [files[3], files[5], files[0], files[1]]);
        assert!(found.iter().all(|it| it.sha256 == digest));
        let without = |file: &str| list.replace(file, "x");
        assert_eq!(packages(&without(files[1])).unwrap().len(), 2);
        assert_eq!(packages(&without(files[3])), Err("CHECKSUMS lists no image"));
        assert_eq!(packages(&without(files[5])), Err("CHECKSUMS lists no modules"));
    }

    #[test]
    fn names_that_leave_the_directory_are_no_files() {
        let digest = "0".repeat(64);
        for file in ["../x.deb", "/etc/passwd", "a/b.deb", ".x.deb", "", "a b.deb", "a\u{1b}.deb"] {
            assert_eq!(listed(&format!("{digest}  {file}")), None, "{file:?}");
        }
    }

    proptest! {
        #[test]
        fn any_list_is_survived(list in "\\PC{0,200}\n?([0-9a-f]{64}  [a-z./-]{0,40}\n){0,5}") {
            for it in packages(&list).into_iter().flatten() {
                prop_assert!(!it.file.contains('/') && it.sha256.len() == 64);
            }
        }
    }
}
