//! The headers of a kernel of one's own: what of the tree in which it was built, or of an installed
//! package of its headers, modules are built with. The cache keeps a copy, because the next build changes the
//! tree. What is copied is what `scripts/package/install-extmod-build` puts into packages.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Error;
use crate::assemble::{digest, hexadecimal, names};
use crate::error::Doing;
use crate::input;

/// Headers have fewer files.
const MAX_FILES: usize = 200_000;
/// And fewer bytes.
const MAX_BYTES: u64 = 2 << 30;
/// Directories lie no deeper within each other.
const MAX_DEPTH: usize = 24;
/// No small file, such as one that tells the release, has more bytes.
const MAX_TEXT: u64 = 16 << 20;
/// Links to directories there lead back to all of the tree.
const PRUNED: &str = "scripts/dtc/include-prefixes";
/// What of the top of the tree is wanted, `include` and `scripts` aside.
const FILES: [&str; 7] = [
    ".config",
    "Kbuild",
    "Makefile",
    "Module.symvers",
    "arch/x86/module.lds", // as Debian has it
    "tools/objtool/objtool",
    "tools/bpf/resolve_btfids/resolve_btfids",
];
/// What no module can be built without.
const NEEDED: [&str; 5] = [
    "Makefile",
    "Module.symvers",
    "include/config/auto.conf",
    "include/generated/autoconf.h",
    "scripts/mod/modpost",
];

/// Copies the headers of the kernel `release` from `from` into `to`, and gives the digest of what was
/// copied.
///
/// # Errors
/// When they are another kernel's, or no tree in which modules can be built.
pub(crate) fn keep(from: &Path, to: &Path, release: &str) -> Result<String, Error> {
    check(from, release)?;
    let mut copy = Copy { from, files: 0, bytes: 0 };
    // A tree that was built elsewhere (`make O=`) begins with what lies beside its source.
    let source = source(from)?;
    if let Some(source) = &source {
        copy.directory(source, to, Path::new(""), 0, &|_| true)?;
    }
    // Its own Makefile only leads to the source's.
    copy.directory(from, to, Path::new(""), 0, &|path| {
        source.is_none() || path != Path::new("Makefile")
    })?;
    if let Some(missing) = NEEDED.iter().find(|file| !to.join(file).is_file()) {
        let problem =
            format!("it lacks {missing}: build the kernel there (`make`), modules included");
        return Err(Error::NoKernel { path: from.to_owned(), problem });
    }
    if text(&to.join("include/config/auto.conf"))?.lines().any(|it| it == "CONFIG_CC_IS_CLANG=y") {
        let problem = "the kernel was built with clang, and modules are built with gcc here".into();
        return Err(Error::NoKernel { path: from.to_owned(), problem });
    }
    tree_digest(to)
}

/// Checks that headers are of the kernel `release`, as the kernel's build writes down.
fn check(headers: &Path, release: &str) -> Result<(), Error> {
    let wrong = |problem| Err(Error::NoKernel { path: headers.to_owned(), problem });
    if !headers.is_dir() {
        return wrong("it is no directory".into());
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
            "it has neither include/config/kernel.release nor include/generated/utsrelease.h: give the \
             tree in which the kernel was built, or /usr/src/linux-headers-RELEASE"
                .into(),
        );
    }
    // What modules are marked with comes first: Debian's kernel.release has the version alone.
    match defined.or(plain).filter(|told| told != release) {
        Some(told) => wrong(format!(
            "they are the headers of {}, and the image is {release}",
            told.escape_debug()
        )),
        None => Ok(()),
    }
}

/// Where the source lies if it is not in the tree itself: behind the link `source`, or where the
/// tree's Makefile includes that of the source.
fn source(headers: &Path) -> Result<Option<PathBuf>, Error> {
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
        let is_makefile = path.file_name()? == "Makefile" && path.is_absolute();
        is_makefile.then(|| path.parent().map(Path::to_owned))?
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
    if let Some(rest) = text.strip_prefix("arch/x86/") {
        let is_makefile = !rest.contains('/') && rest.starts_with("Makefile");
        return is_makefile || path.parent().is_some_and(|it| it.iter().any(|it| it == "include"));
    }
    text.starts_with("include/")
}

/// Whether a directory of the tree may hold what is wanted.
fn may_hold(path: &Path) -> bool {
    let wanted = ["include", "scripts", "arch/x86"];
    let leads = |place: &str| Path::new(place).starts_with(path);
    path != Path::new(PRUNED)
        && (wanted.iter().any(|place| path.starts_with(place) || leads(place))
            || FILES.into_iter().any(leads))
}

/// A copy in the making, and how large it is so far.
struct Copy<'a> {
    from: &'a Path,
    files: usize,
    bytes: u64,
}

impl Copy<'_> {
    /// Copies what is wanted of the directory `place` of a tree. Links are followed: packages of
    /// distributions have their parts in several places.
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
            let Ok(found) = fs::metadata(&path) else { continue }; // a link that leads nowhere
            if found.is_dir() && may_hold(&place) && depth < MAX_DEPTH {
                self.directory(from, to, &place, depth + 1, chosen)?;
            } else if found.is_file() && is_wanted(&place) && chosen(&place) {
                self.files += 1;
                self.bytes += found.len();
                if self.files > MAX_FILES || self.bytes > MAX_BYTES {
                    let problem = "it holds more than the headers of any kernel".into();
                    return Err(Error::NoKernel { path: self.from.to_owned(), problem });
                }
                let target = to.join(&place);
                let parent = target.parent().unwrap_or(to);
                fs::create_dir_all(parent).doing("create", parent)?;
                let _ = fs::remove_file(&target); // the source's, perhaps not to be written
                fs::copy(&path, &target).doing("copy", &path)?;
            }
        }
        Ok(())
    }
}

/// Copies headers of the cache, all of them.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    Copy { from, files: 0, bytes: 0 }.directory(from, to, Path::new(""), 0, &|_| true)
}

/// SHA-256 over the names and the digests of all files below a directory, in order.
pub(crate) fn tree_digest(root: &Path) -> Result<String, Error> {
    let root = &root.canonicalize().doing("read", root)?;
    let mut digests = Sha256::new();
    let mut wanted = vec![PathBuf::new()];
    while let Some(place) = wanted.pop() {
        let path = root.join(&place);
        if path.is_dir() {
            wanted.extend(names(&path)?.iter().rev().map(|name| place.join(name)));
        } else {
            let bytes = fs::read(&path).doing("read", &path)?;
            digests.update(format!("{} {}\n", digest(&bytes), place.display()));
        }
    }
    Ok(hexadecimal(&digests.finalize()))
}
