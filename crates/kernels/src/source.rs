//! The steps of a build from source: git commits, working trees, directories and archives; patches;
//! configuration; make.

pub(crate) mod archive;
pub(crate) mod config;
pub(crate) mod git;
pub(crate) mod history;
pub(crate) mod inputs;
mod mail;
pub(crate) mod make;
pub(crate) mod patches;
pub(crate) mod repository;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;
use crate::debian::NEWEST_KERNEL;

/// The end of the name of a source, or of a kernel of Debian, that is for arm64.
pub(crate) const FOR_ARM64: &str = "@arm64";

/// A source of a kernel, as it is named in place of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `git:v6.12`: a commit of the tree.
    Commit(String),
    /// `worktree`: the files of the tree as they are now.
    Worktree,
    /// `src:DIRECTORY` or `src:FILE.tar.xz`: a source without git.
    Path(PathBuf),
    /// `debian-source:6.12`: the source that Debian packages, which is patched.
    Debian(String),
}

impl FromStr for Source {
    type Err = Error;

    /// Parses the name of a source. An architecture at its end is that of the kernel, not of the source.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.strip_suffix(FOR_ARM64).unwrap_or(text);
        let wrong = || Error::Request {
            text: text.into(),
            hint: "a source is git:COMMIT, worktree, src:PATH or debian-source:VERSION".into(),
        };
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("worktree", "") if text == "worktree" => Ok(Self::Worktree),
            ("git", commit) if !commit.is_empty() => Ok(Self::Commit(commit.into())),
            ("src", path) if !path.is_empty() => Ok(Self::Path(path.into())),
            ("debian-source", NEWEST_KERNEL) => Ok(Self::Debian(rest.into())),
            ("debian-source", version)
                if version.bytes().all(|it| it.is_ascii_digit() || it == b'.')
                    && !version.is_empty() =>
            {
                Ok(Self::Debian(version.into()))
            }
            _ => Err(wrong()),
        }
    }
}

impl Source {
    /// Whether a kernel's name means a source, which is to be built.
    pub fn is(name: &str) -> bool {
        name.parse::<Self>().is_ok()
    }

    /// Whether it needs a git repository of the user's.
    pub fn needs_tree(&self) -> bool {
        matches!(self, Self::Commit(_) | Self::Worktree)
    }
}

/// The message for a patch that cannot be applied, after its name.
pub(crate) const NO_PATCH: &str = " does not apply: ";
/// The message for a patch whose changes the source already has, after its name.
pub(crate) const NO_CHANGE: &str = " changes nothing: the source already has its changes";

/// Why a kernel cannot be built: a patch does not apply, an option is not possible, or the compiler rejects
/// it. The first line is a predicate after the kernel's name; the rest is the end of the build's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbuilt(pub(crate) String);

impl Unbuilt {
    /// The reason, as a predicate after the kernel's name.
    pub fn problem(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    /// Whether a patch is the reason: it does not apply, or changes nothing.
    pub fn is_of_patch(&self) -> bool {
        [NO_PATCH, NO_CHANGE].iter().any(|words| self.problem().contains(words))
    }

    /// The end of the build's output; empty if nothing was compiled.
    pub fn output(&self) -> &str {
        self.0.split_once('\n').map_or("", |(_, output)| output)
    }
}

/// The subjects of patches, in the order in which they are applied. Fails when a file cannot be read or has
/// no patch.
pub fn subjects(paths: &[PathBuf]) -> Result<Vec<String>, Error> {
    Ok(patches::read(paths)?.patches.into_iter().map(|patch| patch.subject).collect())
}

/// A name for patches, of lower-case words of ASCII, by the subject that they are known by. Fails when a file cannot be read
/// or has no patch.
pub fn name_of_patches(paths: &[PathBuf]) -> Result<String, Error> {
    Ok(patches::name(&patches::read(paths)?.answered.subject))
}

/// The version in a kernel's Makefile, such as `6.12.3-rc1`. `None` if it has none.
pub fn version(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        let line = makefile
            .lines()
            .take(20)
            .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        line.map(str::trim)
    };
    let numbers = [value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?];
    let is_number = |text: &&str| text.len() < 6 && text.parse::<u32>().is_ok();
    let extra = value("EXTRAVERSION").unwrap_or("");
    let is_plain =
        extra.len() < 30 && extra.chars().all(|c| c.is_ascii_alphanumeric() || "-.+_".contains(c));
    (numbers.iter().all(is_number) && is_plain).then(|| numbers.join(".") + extra)
}

/// The time left is estimated after this share of the files: the first ones take longer, among them scripts and
/// configuration.
const ENOUGH: f64 = 0.05;

/// A line about the progress of a build.
fn build_message(name: &str, steps: usize, about: Option<usize>, so_far: Duration) -> String {
    let files = match about.filter(|about| *about > steps && steps > 0) {
        Some(about) if (steps as f64) < ENOUGH * about as f64 => {
            format!("{steps} of about {about} files")
        }
        Some(about) => {
            let left = so_far.mul_f64((about - steps) as f64 / steps as f64);
            format!("{steps} of about {about} files, about {} left", minutes(left))
        }
        None => format!("{steps} files in {}", minutes(so_far)),
    };
    format!("Building {name}: {files}")
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=90 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read() {
        for (text, source) in [
            ("git:v6.12", Source::Commit("v6.12".into())),
            ("git:origin/x~3", Source::Commit("origin/x~3".into())),
            ("worktree", Source::Worktree),
            ("src:~/linux", Source::Path("~/linux".into())),
            ("debian-source:6.12", Source::Debian("6.12".into())),
            ("git:HEAD@arm64", Source::Commit("HEAD".into())),
            ("worktree@arm64", Source::Worktree),
            ("src:a@arm64", Source::Path("a".into())),
        ] {
            assert_eq!(text.parse::<Source>().unwrap(), source);
        }
        for text in [
            "6.12", "debian:6.12", "git:", "src:", "debian-source:", "worktree:", "git",
            "git:@arm64",
        ] {
            assert!(!Source::is(text), "{text}");
        }
    }

    #[test]
    fn progress_estimates_only_clean_builds() {
        let after = |seconds| Duration::from_secs(seconds);
        let said = build_message("x", 500, Some(1500), after(60));
        assert_eq!(said, "Building x: 500 of about 1500 files, about 2 min left");
        assert_eq!(
            build_message("x", 1600, Some(1500), after(61)),
            "Building x: 1600 files in 61 s"
        );
        assert_eq!(build_message("x", 7, None, after(20)), "Building x: 7 files in 20 s");
        let first = build_message("x", 70, Some(1500), after(20));
        assert_eq!(first, "Building x: 70 of about 1500 files");
    }
}
