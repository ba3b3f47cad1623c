//! How a mail names a kernel, and the command that gets it again.

use model::{BootFacts, Patched, Pinned, Variant, count, is_message_id};

use crate::ascii::{excerpt, shell_word};
use crate::document::{Block, part, sentence};
use crate::notes::DEBIAN;

/// Prefix of the name of a packaged source.
const PACKAGED: &str = "linux-source-";
/// The configuration of a kernel that was built without `--kconfig`.
const SMALL: &str = "small configuration";
/// Prefixes of the origins of kernels whose source the reader of a mail does not have.
const WORKING_TREE: &str = "working tree ";
const DIRECTORY: &str = "source ";

/// Where a kernel comes from, as far as a command can get it again.
#[derive(Debug, PartialEq, Eq)]
enum Origin<'a> {
    /// Debian's package of this version.
    Package(&'a str),
    /// A source that others can have.
    Source {
        /// The words that name it to `kernel add`.
        words: String,
        /// The configuration that was named.
        configuration: &'a str,
    },
    /// Files that only the host of the boots had: a working tree, or a source with other changes than patches.
    Local,
    /// An image, or what an older version or another tool left.
    Other,
}

impl<'a> Origin<'a> {
    /// Reads an origin as `kernels` writes it, without patches.
    fn of(origin: &'a str) -> Self {
        let Some((source, configuration)) = origin.rsplit_once("; ") else {
            let package = origin.strip_prefix(DEBIAN).and_then(|it| it.split_once(", "));
            return package.map_or(Self::Other, |(version, _)| Self::Package(version));
        };
        let packaged = source.strip_prefix(DEBIAN).and_then(|it| it.split_once(", "));
        let words = match (packaged, source.strip_prefix("git ")) {
            (Some((_, name)), _) => name.strip_prefix(PACKAGED).and_then(packaged_source),
            (_, Some(commit)) => commit_of(commit),
            _ => None,
        };
        match words {
            Some(words) => Self::Source { words, configuration },
            None if packaged.is_some() || source.starts_with("git ") => Self::Local,
            None if [WORKING_TREE, DIRECTORY].iter().any(|it| source.starts_with(it)) => {
                Self::Local
            }
            None => Self::Other,
        }
    }

    /// The origin of a kernel before its patches.
    fn unpatched(facts: &'a BootFacts) -> Self {
        Self::of(facts.patched.as_ref().map_or(&facts.kernel_origin, |it| &it.unpatched))
    }
}

/// Returns the version of the package if a kernel is Debian's.
pub fn package(facts: &BootFacts) -> Option<&str> {
    match Origin::unpatched(facts) {
        Origin::Package(version) => Some(version),
        _ => None,
    }
}

/// Returns the word that names Debian's kernel of this package. One version has kernels for several architectures, sizes of
/// pages, and flavours; by itself it means the one for clouds. `None` for other kernels.
pub fn request(facts: &BootFacts) -> Option<String> {
    let (version, release) = (package(facts)?, &*facts.release);
    let named = match release {
        _ if release.ends_with("-16k") => format!("{version}-16k"),
        _ if release.ends_with("-cloud-arm64") => format!("{version}@arm64"),
        _ if release.ends_with("64") && !release.contains("-cloud-") => release.to_owned(),
        _ => version.to_owned(),
    };
    Some(shell_word(format!("debian:{named}").as_bytes()))
}

/// Names a packaged source. `None` if it was changed otherwise than by patches.
fn packaged_source(series: &str) -> Option<String> {
    let is_plain = series.chars().all(|it| it.is_ascii_digit() || it == '.');
    is_plain.then(|| format!("debian-source:{series}"))
}

/// Names a commit by its abbreviated hash, because names move. `None` if there were reverts or picks, which are not
/// known by their hashes.
fn commit_of(described: &str) -> Option<String> {
    let (named, subject) = described.split_once(" (\"")?;
    let (_, hash) = named.rsplit_once(", ")?;
    let is_hash = !hash.is_empty() && hash.chars().all(|it| it.is_ascii_hexdigit());
    let is_alone = subject.ends_with("\")") && !subject.contains("\"), ");
    (is_hash && is_alone).then(|| format!("git:{hash} --tree DIR"))
}

/// Returns the name of a variant's kernel and its digest, which is empty if it is not known.
pub fn kernel_and_digest<'a>(
    variant: &'a Variant,
    facts: Option<&'a BootFacts>,
) -> (&'a str, &'a str) {
    let Pinned { name, digest } = &variant.kernel;
    let known = facts.map(|facts| &*facts.kernel_digest).filter(|known| !known.is_empty());
    (name, known.or(digest.as_deref()).unwrap_or_default())
}

/// Lays out the origin of a variant's kernel, how it was built, and its digest. `None` for a package, which is named by
/// the command that gets it.
pub fn block(variant: &Variant, facts: Option<&BootFacts>) -> Option<Block> {
    let (kernel, known) = kernel_and_digest(variant, facts);
    let origin = facts.map_or("", |facts| &facts.kernel_origin);
    if matches!(Origin::of(origin), Origin::Package(_)) {
        return None;
    }
    let title = if origin.is_empty() { kernel } else { origin };
    let patches = facts.and_then(|it| it.patched.as_ref()).filter(|it| it.patches > 1);
    let patches = patches.map(|Patched { subject, patches, .. }| {
        sentence(format!("{}: \"{}\"", count(*patches as usize, "patch"), excerpt(subject)))
    });
    let is_built = facts
        .is_some_and(|it| matches!(Origin::unpatched(it), Origin::Source { .. } | Origin::Local));
    let compiler =
        facts.filter(|_| is_built).and_then(|it| kernelfiles::config::compiler(&it.banner));
    let compiler = compiler.map(|it| sentence(format!("built by {}", excerpt(&it))));
    let known = (!known.is_empty()).then(|| digest(known));
    let below: Vec<Block> = patches.into_iter().chain(compiler).chain(known).collect();
    Some(part(format!("{}: {}", variant.name, excerpt(title)), below))
}

/// Names a digest.
pub fn digest(digest: &str) -> Block {
    sentence(format!("sha256 {digest}"))
}

/// Returns the command that gets a variant's kernel, or builds it again. Words in capitals are placeholders. `None` if
/// others cannot build the kernel again.
pub fn command(variant: &Variant, facts: Option<&BootFacts>) -> Option<String> {
    let (kernel, _) = kernel_and_digest(variant, facts);
    Some(match facts.map_or(Origin::Other, Origin::unpatched) {
        Origin::Package(_) => format!("faultline kernel add {}", facts.and_then(request)?),
        Origin::Source { .. } => {
            let [before, source] = facts.and_then(source)?;
            format!("{before}faultline kernel add {source}")
        }
        Origin::Local => return None,
        Origin::Other => {
            format!(
                "faultline kernel add --image bzImage --modules DIR --name {}",
                shell_word(kernel.as_bytes())
            )
        }
    })
}

/// Returns what stands before and after `faultline kernel add`, or `faultline try`, to build a kernel again: the source
/// with the options for its configuration and patches. Words in capitals are placeholders. `None` for others than sources
/// that the reader can have.
pub fn source(facts: &BootFacts) -> Option<[String; 2]> {
    let Origin::Source { words, configuration } = Origin::unpatched(facts) else { return None };
    let added = configuration.rsplit_once(" with ").filter(|(_, it)| are_options(it));
    let (base, added) =
        added.map_or((configuration, ""), |(base, _)| (base, " --fragment OPTIONS"));
    let base = match base {
        SMALL => String::new(),
        given => format!(" --kconfig {}", shell_word(given.as_bytes())),
    };
    let [before, patch] = patches(facts);
    Some([before, format!("{words}{base}{added}{patch}")])
}

/// Whether a configuration's last words name the options that were added, or their number.
fn are_options(words: &str) -> bool {
    let number = words.strip_suffix('s').unwrap_or(words).strip_suffix(" option");
    words.starts_with("CONFIG_") || number.is_some_and(|it| it.parse::<usize>().is_ok())
}

/// Returns what stands before and after `faultline kernel add` to apply a kernel's patches: a patch of a list by its
/// identifier, a file by its name.
fn patches(facts: &BootFacts) -> [String; 2] {
    let Some(Patched { mail, .. }) = &facts.patched else {
        return Default::default();
    };
    let id = mail.as_ref().map(|it| &*it.message_id).filter(|id| is_message_id(id));
    if let Some(id) = id {
        let id = shell_word(id.trim_matches(['<', '>']).as_bytes());
        return [format!("b4 am -o - {id} |\n  "), " --patch -".to_owned()];
    }
    let file = shell_word(patch_file(facts).unwrap_or_default().as_bytes());
    [String::new(), format!(" --patch {file}")]
}

/// Returns the name of the file with a kernel's patches, if they did not come in a mail of a list; `PATCHES` if that is not
/// known. `None` without patches.
pub fn patch_file(facts: &BootFacts) -> Option<String> {
    let Patched { subject, patches, mail, .. } = facts.patched.as_ref()?;
    if mail.as_ref().is_some_and(|it| is_message_id(&it.message_id)) {
        return None;
    }
    // The origin has the subject of a mail in quotes, and the name of another file without.
    let is_file = *patches == 1 && facts.kernel_origin.contains(&format!(", {subject};"));
    Some(if is_file { subject.clone() } else { "PATCHES".to_owned() })
}

#[cfg(test)]
mod tests {
    use model::PatchMail;

    use super::*;

    const HASH: &str = "git HEAD, 0123abc (\"mm: a (b)\"); small configuration";

    fn commands(origin: &str, patched: Option<Patched>) -> Option<String> {
        let variant = Variant {
            name: "new".into(),
            kernel: Pinned { name: "6.1-0123".into(), digest: None },
            ..Variant::default()
        };
        let facts = BootFacts { kernel_origin: origin.into(), patched, ..BootFacts::default() };
        command(&variant, Some(&facts))
    }

    fn patched(subject: &str, patches: u32, unpatched: &str, id: Option<&str>) -> Option<Patched> {
        let mail = id.map(|id| PatchMail { message_id: id.into(), ..PatchMail::default() });
        Some(Patched { subject: subject.into(), patches, unpatched: unpatched.into(), mail })
    }

    #[test]
    fn a_kernel_can_be_built_again_by_others() {
        let debian = "Debian 6.1.192-2, linux-source-6.1; small configuration";
        for (origin, expected) in [
            ("Debian 7.3.4-1, linux-image-7.3.4", "faultline kernel add debian:7.3.4-1"),
            (debian, "faultline kernel add debian-source:6.1"),
            (HASH, "faultline kernel add git:0123abc --tree DIR"),
            (
                "git v6.1, 0123abc (\"Linux; 6.1\"); debian:6.12+vm",
                "faultline kernel add git:0123abc --tree DIR --kconfig debian:6.12+vm",
            ),
            (
                "Debian 6.1.192-2, linux-source-6.1; debian:6.1 with CONFIG_A=y, CONFIG_B=n",
                "faultline kernel add debian-source:6.1 --kconfig debian:6.1 --fragment OPTIONS",
            ),
        ] {
            assert_eq!(commands(origin, None).as_deref(), Some(expected));
        }
        for (release, named) in [
            ("7.3.4-cloud-amd64", "7.3.4-1"),
            ("7.3.4-cloud-arm64", "7.3.4-1@arm64"),
            ("7.3.4-arm64-16k", "7.3.4-1-16k"),
            ("7.3.4-arm64", "7.3.4-arm64"),
            ("7.3.4-amd64", "7.3.4-amd64"),
        ] {
            let facts = BootFacts {
                kernel_origin: "Debian 7.3.4-1, linux-image-7.3.4".into(),
                release: release.into(),
                ..BootFacts::default()
            };
            let said = command(&Variant::default(), Some(&facts)).unwrap();
            assert_eq!(said, format!("faultline kernel add debian:{named}"));
        }
        let file = patched("a b.patch", 1, debian, None);
        let origin = debian.replace(";", ", a b.patch;");
        let said = "faultline kernel add debian-source:6.1 --patch 'a b.patch'";
        assert_eq!(commands(&origin, file).as_deref(), Some(said));
        let mail = patched("[PATCH] mm: x", 2, HASH, Some("<1.a@b.org>"));
        let said =
            "b4 am -o - 1.a@b.org |\n  faultline kernel add git:0123abc --tree DIR --patch -";
        assert_eq!(commands("", mail).as_deref(), Some(said));
        let unnamed = patched("[PATCH] mm: x", 1, debian, None);
        let origin = debian.replace(";", ", \"[PATCH] mm: x\";");
        let said = "faultline kernel add debian-source:6.1 --patch PATCHES";
        assert_eq!(commands(&origin, unnamed).as_deref(), Some(said));
    }

    #[test]
    fn what_only_the_host_has_has_no_command() {
        let reverted = "git v6.1, 0123abc (\"Linux 6.1\"), revert 4 (\"x\"); small configuration";
        for local in ["working tree /root/linux; small configuration", reverted] {
            assert_eq!(commands(local, None), None);
            assert_eq!(commands("", patched("x", 1, local, None)), None);
        }
        assert!(commands("/root/bzImage", None).unwrap().contains("--image bzImage"));
    }
}
