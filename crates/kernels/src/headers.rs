//! Copies the headers of a user's kernel: the part of its build tree, or of an installed headers package, that is
//! needed to build modules. The cache keeps a copy, because the next build changes the tree. The copy has the files
//! that `scripts/package/install-extmod-build` puts into packages.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::Error;
use crate::assemble::digest;
use crate::error::Doing;
use crate::{arch, checksums, input};

/// The largest number of files of headers.
const MAX_FILES: usize = 200_000;
/// The largest size of headers, in bytes.
const MAX_BYTES: u64 = 2 << 30;
/// The deepest nesting of directories.
const MAX_DEPTH: usize = 24;
/// The largest size of a small file, such as one with the release.
const MAX_TEXT: u64 = 16 << 20;
/// A directory that is left out, because its links point back to directories of the tree.
const PRUNED: &str = "scripts/dtc/include-prefixes";
/// Needed files outside `include` and `scripts`.
const FILES: [&str; 7] = [
    ".config",
    "Kbuild",
    "Makefile",
    "Module.symvers",
    arch::MODULE_SCRIPT, // as Debian has it
    "tools/objtool/objtool",
    "tools/bpf/resolve_btfids/resolve_btfids",
];
/// Files without which no module can be built.
const NEEDED: [&str; 5] = [
    "Makefile", "Module.symvers", "include/config/auto.conf", "include/generated/autoconf.h",
    "scripts/mod/modpost",
];

/// Copies the headers of the kernel `release` from `from` into `to`. Returns the digest of the copy. Absolute paths in
/// them lead into `root`. Fails when they belong to another kernel, or no modules can be built with them.
pub(crate) fn keep(from: &Path, root: &Path, to: &Path, release: &str) -> Result<String, Error> {
    check(from, release)?;
    if let Some(missing) = missing(from, root)? {
        let problem =
            format!("it lacks {missing}: build the kernel there with `make`, including modules");
        return Err(Error::NoKernel { path: from.to_owned(), problem });
    }
    let mut copy = Copy { from, files: 0, bytes: 0 };
    // If the kernel was built outside of its source (`make O=`), the source's files are copied first.
    let source = source(from, root)?;
    if let Some(source) = &source {
        copy.directory(source, to, Path::new(""), 0, &|_| true)?;
    }
    // The build directory's own Makefile only includes that of the source.
    copy.directory(from, to, Path::new(""), 0, &|path| {
        source.is_none() || path != Path::new("Makefile")
    })?;
    tree_digest(to)
}

/// The first file that headers lack and without which no module can be built.
pub(crate) fn missing(from: &Path, root: &Path) -> Result<Option<&'static str>, Error> {
    let source = source(from, root)?;
    let places = [Some(from), source.as_deref()];
    let is_there = |file: &str| places.into_iter().flatten().any(|it| it.join(file).is_file());
    Ok(NEEDED.into_iter().find(|file| !is_there(file)))
}

/// Checks that headers belong to the kernel `release`, by files that the kernel's build writes.
fn check(headers: &Path, release: &str) -> Result<(), Error> {
    let wrong = |problem| Err(Error::NoKernel { path: headers.to_owned(), problem });
    if !headers.is_dir() {
        return wrong("it is not a directory".into());
    }
    let told = |file: &str| match headers.join(file) {
        path if path.exists() => text(&path).map(Some),
        _ => Ok(None),
    };
    let plain = told("include/config/kernel.release")?.map(|text| text.trim().to_owned());
    let defined = told("include/generated/utsrelease.h")?
        .and_then(|text| Some(text.split_once("UTS_RELEASE \"")?.1.split_once('"')?.0.to_owned()));
    if plain.is_none() && defined.is_none() {
        return wrong(
            "it has neither include/config/kernel.release nor include/generated/utsrelease.h: use the \
             tree in which the kernel was built, or /usr/src/linux-headers-RELEASE"
                .into(),
        );
    }
    // UTS_RELEASE, which is in every module, has precedence. Debian's kernel.release has only the version.
    match defined.or(plain).filter(|told| told != release) {
        Some(told) => wrong(format!(
            "these are the headers of {}, but the image is {release}",
            told.escape_debug()
        )),
        None => Ok(()),
    }
}

/// The source directory, if it is not the tree itself: the target of the link `source`, or the directory
/// whose Makefile the tree's Makefile includes.
fn source(headers: &Path, root: &Path) -> Result<Option<PathBuf>, Error> {
    let link = headers.join("source");
    if link.join("Makefile").is_file() {
        return Ok(Some(link));
    }
    let makefile = headers.join("Makefile");
    if !makefile.exists() {
        return Ok(None);
    }
    let text = text(&makefile)?;
    let included = |line: &str| {
        let path = Path::new(line.strip_prefix("include ")?.trim());
        let is_plain = path.components().all(|it| it != Component::ParentDir);
        let below = path.strip_prefix("/").ok().filter(|_| is_plain)?;
        (path.file_name()? == "Makefile").then(|| below.parent().map(|it| root.join(it)))?
    };
    Ok(text.lines().find_map(included).filter(|source| source.is_dir()))
}

fn text(path: &Path) -> Result<String, Error> {
    input::read(path, MAX_TEXT).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a file of the tree is needed to build modules.
fn is_wanted(path: &Path) -> bool {
    let text = path.to_string_lossy();
    if FILES.contains(&&*text) {
        return true;
    }
    let ending = path.extension().unwrap_or_default();
    if text.starts_with("scripts/") {
        return !["o", "a", "cmd", "ko"].iter().any(|it| ending == *it);
    }
    if let Some(rest) = text.strip_prefix(arch::SOURCE).and_then(|rest| rest.strip_prefix('/')) {
        let is_makefile = !rest.contains('/') && rest.starts_with("Makefile");
        return is_makefile || path.parent().is_some_and(|it| it.iter().any(|it| it == "include"));
    }
    text.starts_with("include/")
}

/// Whether a directory of the tree may contain needed files.
fn may_hold(path: &Path) -> bool {
    let wanted = ["include", "scripts", arch::SOURCE];
    let leads = |place: &str| Path::new(place).starts_with(path);
    path != Path::new(PRUNED)
        && (wanted.iter().any(|place| path.starts_with(place) || leads(place))
            || FILES.into_iter().any(leads))
}

/// A running copy and its size so far.
struct Copy<'a> {
    from: &'a Path,
    files: usize,
    bytes: u64,
}

impl Copy<'_> {
    /// Copies the needed files of the directory `place` of a tree. Links are followed, because packages of
    /// distributions are spread over several directories.
    fn directory(
        &mut self,
        from: &Path,
        to: &Path,
        place: &Path,
        depth: usize,
        chosen: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        let directory = from.join(place);
        for entry in fs::read_dir(&directory).doing("list", &directory)? {
            let name = entry.doing("list", &directory)?.file_name();
            let (place, path) = (place.join(&name), directory.join(&name));
            let Ok(found) = fs::metadata(&path) else { continue }; // a broken link
            if found.is_dir() && may_hold(&place) && depth < MAX_DEPTH {
                self.directory(from, to, &place, depth + 1, chosen)?;
            } else if found.is_file() && is_wanted(&place) && chosen(&place) {
                self.files += 1;
                self.bytes += found.len();
                if self.files > MAX_FILES || self.bytes > MAX_BYTES {
                    let problem = "it has more files than the headers of any kernel".into();
                    return Err(Error::NoKernel { path: self.from.to_owned(), problem });
                }
                let target = to.join(&place);
                let parent = target.parent().unwrap_or(to);
                fs::create_dir_all(parent).doing("create", parent)?;
                let _ = fs::remove_file(&target); // the source's, which may be read-only
                fs::copy(&path, &target).doing("copy", &path)?;
            }
        }
        Ok(())
    }
}

/// Copies headers from the cache.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    Copy { from, files: 0, bytes: 0 }.directory(from, to, Path::new(""), 0, &|_| true)
}

/// SHA-256 over the names and the digests of all files below a directory, in order.
pub(crate) fn tree_digest(root: &Path) -> Result<String, Error> {
    let files = checksums::digests(root)?.into_iter();
    let lines = files.map(|(place, digest)| format!("{digest} {}\n", place.display()));
    Ok(digest(lines.collect::<String>().as_bytes()))
}
