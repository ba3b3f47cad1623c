//! Writes the files of an archive below a directory, within the limits of a kernel's packages. Whatever the archive
//! says, nothing is written elsewhere.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use crate::Error;
use crate::error::Doing;
use crate::limits::{MAX_BYTES, MAX_DEPTH, MAX_FILES};

/// The longest name of a file (`NAME_MAX`, `include/uapi/linux/limits.h`), and the longest path in an archive.
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 1024;
/// How much is copied at once.
const CHUNK: usize = 1 << 16;

/// Why an archive cannot be unpacked.
#[derive(Debug)]
pub(super) enum Failure {
    /// The archive is damaged, or is not what it should be.
    Archive(String),
    /// The host failed.
    Host(Error),
}

impl From<io::Error> for Failure {
    /// An error while the archive is read.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Archive("it is truncated".into()),
            _ => Self::Archive(format!("it is damaged: {error}")),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// The directory into which an archive is unpacked.
pub(super) struct Target {
    /// Its path.
    root: PathBuf,
    /// How many files and bytes are left until there are more than a kernel has.
    files: usize,
    bytes: u64,
    /// Symbolic links and what they point to. They are made at the end, so that no file is written through them.
    links: Vec<(PathBuf, PathBuf)>,
    /// Files with several names, by a number that the archive gives them: those whose content is known, and the
    /// names of those whose content comes later.
    shared: HashMap<(u64, u64), PathBuf>,
    waiting: HashMap<(u64, u64), Vec<PathBuf>>,
}

impl Target {
    /// Unpacks into `root`, which is made if it does not exist.
    pub fn new(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).doing("create", root)?;
        let root = root.canonicalize().doing("read", root)?;
        let (shared, waiting) = (HashMap::new(), HashMap::new());
        Ok(Self { root, files: MAX_FILES, bytes: MAX_BYTES, links: Vec::new(), shared, waiting })
    }

    /// Counts an entry of an archive with `size` bytes, whatever it is. Each is counted before it is unpacked.
    pub fn count(&mut self, size: u64) -> Result<(), Failure> {
        let Some(files) = self.files.checked_sub(1) else {
            return refuse("it has more files than the package of any kernel");
        };
        let Some(bytes) = self.bytes.checked_sub(size) else {
            return refuse("its files are larger than those of any kernel");
        };
        (self.files, self.bytes) = (files, bytes);
        Ok(())
    }

    /// Makes a directory.
    pub fn directory(&self, name: &[u8]) -> Result<(), Failure> {
        let path = self.place(name)?;
        make(&path)
    }

    /// Writes a file of `size` bytes, which `content` has. Returns its path.
    pub fn file(
        &self,
        name: &[u8],
        (mode, size): (u32, u64),
        content: &mut dyn Read,
    ) -> Result<PathBuf, Failure> {
        let path = self.place(name)?;
        let mut file = create(&path)?;
        let (mut buffer, mut left) = (vec![0; CHUNK.min(size as usize)], size);
        while left > 0 {
            let most = CHUNK.min(left as usize);
            let length = content.read(&mut buffer[..most])?;
            if length == 0 {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            file.write_all(&buffer[..length]).doing("write", &path)?;
            left -= length as u64;
        }
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        file.set_permissions(PermissionsExt::from_mode(mode)).doing("write", &path)?;
        Ok(path)
    }

    /// Writes one name of a file with several names, which the archive numbers. One of them has the content.
    pub fn shared_file(
        &mut self,
        name: &[u8],
        number: (u64, u64),
        (mode, size): (u32, u64),
        content: &mut dyn Read,
    ) -> Result<(), Failure> {
        if size > 0 {
            let path = self.file(name, (mode, size), content)?;
            for other in self.waiting.remove(&number).unwrap_or_default() {
                same(&path, &other)?;
            }
            self.shared.insert(number, path);
            return Ok(());
        }
        let path = self.place(name)?;
        match self.shared.get(&number) {
            Some(known) => same(known, &path)?,
            None => self.waiting.entry(number).or_default().push(path),
        }
        Ok(())
    }

    /// Gives a file that was written another name.
    pub fn again(&self, name: &[u8], known: &[u8]) -> Result<(), Failure> {
        let (known, path) = (self.place(known)?, self.place(name)?);
        match known.symlink_metadata() {
            Ok(found) if found.is_file() => same(&known, &path),
            _ => refuse(&format!(
                "its file {} is the same as one that comes later or not at all",
                String::from_utf8_lossy(name).escape_debug()
            )),
        }
    }

    /// Remembers a symbolic link.
    pub fn link(&mut self, name: &[u8], to: &[u8]) -> Result<(), Failure> {
        let path = self.place(name)?;
        if !to.is_empty() && !to.contains(&0) {
            self.links.push((path, OsStr::from_bytes(to).into()));
        }
        Ok(())
    }

    /// Ends an archive. Another one can follow.
    pub fn end(&mut self) -> Result<(), Failure> {
        for path in self.waiting.values().flatten() {
            create(path)?;
        }
        self.waiting.clear();
        self.shared.clear();
        Ok(())
    }

    /// Makes the symbolic links. Those whose place something else has are left out.
    pub fn finish(self) -> Result<(), Error> {
        for (path, to) in &self.links {
            let has_place = path.symlink_metadata().is_err() && above(path).is_ok();
            if has_place {
                symlink(to, path).doing("create", path)?;
            }
        }
        Ok(())
    }

    /// The path of a file below the directory.
    fn place(&self, name: &[u8]) -> Result<PathBuf, Failure> {
        if name.len() > MAX_PATH {
            return refuse("the path of a file is too long");
        }
        let mut path = self.root.clone();
        let mut depth = 0;
        for part in Path::new(OsStr::from_bytes(name)).components() {
            match part {
                Component::Normal(part)
                    if part.len() <= MAX_NAME && !part.as_bytes().contains(&0) =>
                {
                    path.push(part);
                    depth += 1;
                }
                Component::RootDir | Component::CurDir => {}
                _ => {
                    let name = String::from_utf8_lossy(name);
                    return refuse(&format!("it has a file named `{}`", name.escape_debug()));
                }
            }
        }
        if depth > MAX_DEPTH {
            return refuse("its directories are nested deeper than those of any kernel");
        }
        Ok(path)
    }
}

/// A new file, in place of one that another archive has.
fn create(path: &Path) -> Result<File, Failure> {
    free(path)?;
    Ok(File::create_new(path).doing("create", path)?)
}

/// Gives a file another name.
fn same(known: &Path, path: &Path) -> Result<(), Failure> {
    if known != path {
        free(path)?;
        fs::hard_link(known, path).doing("create", path)?;
    }
    Ok(())
}

/// Makes the directories above a file, and removes a file that has its path.
fn free(path: &Path) -> Result<(), Failure> {
    above(path)?;
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => clash(path),
        Ok(_) => Ok(fs::remove_file(path).doing("replace", path)?),
        Err(_) => Ok(()),
    }
}

fn above(path: &Path) -> Result<(), Failure> {
    make(path.parent().unwrap_or(path))
}

/// Makes a directory and those above it.
fn make(directory: &Path) -> Result<(), Failure> {
    match fs::create_dir_all(directory) {
        Err(error)
            if [ErrorKind::AlreadyExists, ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            clash(directory)
        }
        made => Ok(made.doing("create", directory)?),
    }
}

fn clash<T>(path: &Path) -> Result<T, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    refuse(&format!("`{}` is both a file and a directory", name.escape_debug()))
}

/// The failure of an archive.
pub(super) fn refuse<T>(problem: &str) -> Result<T, Failure> {
    Err(Failure::Archive(problem.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: (u32, u64) = (0o6755, 1);

    fn refused<T>(done: Result<T, Failure>) -> String {
        match done {
            Err(Failure::Archive(problem)) => problem,
            Err(Failure::Host(error)) => panic!("{error}"),
            Ok(_) => panic!("it is not refused"),
        }
    }

    #[test]
    fn nothing_is_written_outside_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        let mut target = Target::new(&root).unwrap();
        for name in [&b"../out"[..], b"a/../../out", b"./a/..", b"a\0b", &[b'n'; 256]] {
            let problem = refused(target.file(name, ABOUT, &mut &b"x"[..]));
            assert!(problem.starts_with("it has a file named `"), "{problem}");
        }
        let deep = "d/".repeat(MAX_DEPTH) + "file";
        assert!(refused(target.directory(deep.as_bytes())).contains("nested deeper"));
        assert!(refused(target.directory(&[b'/'; 1025])).contains("too long"));
        // A link is made last, so no file is written through it.
        target.link(b"link", b"..").unwrap();
        let path = target.file(b"/link/out", ABOUT, &mut &b"x"[..]).unwrap();
        assert_eq!(path, root.canonicalize().unwrap().join("link/out"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
        target.link(b"other", b"..").unwrap();
        target.link(b"link/out/link", b"..").unwrap();
        target.finish().unwrap();
        assert!(!root.join("link").is_symlink() && root.join("other").is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_archive_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut target = Target::new(directory.path()).unwrap();
        (target.files, target.bytes) = (2, 10);
        target.count(9).unwrap();
        assert!(refused(target.count(2)).contains("larger"));
        target.count(1).unwrap();
        assert!(refused(target.count(0)).contains("more files"));
        assert_eq!(refused(target.file(b"b", ABOUT, &mut &b""[..])), "it is truncated");
    }

    #[test]
    fn a_name_is_a_file_or_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::new(directory.path()).unwrap();
        target.file(b"a", ABOUT, &mut &b"x"[..]).unwrap();
        target.directory(b"b").unwrap();
        assert_eq!(refused(target.directory(b"a")), "`a` is both a file and a directory");
        assert!(refused(target.file(b"a/c", ABOUT, &mut &b"x"[..])).contains("`a` is both"));
        assert!(refused(target.file(b"b", ABOUT, &mut &b"x"[..])).contains("`b` is both"));
        // A later file replaces an earlier one, also one with several names.
        target.again(b"d", b"./a").unwrap();
        target.file(b"a", ABOUT, &mut &b"y"[..]).unwrap();
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!((&*text("a"), &*text("d")), ("y", "x"));
        assert!(refused(target.again(b"e", b"none")).contains("its file e is the same as one"));
    }
}
