//! Makes a file system in an image with the file system's mkfs program.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::{FileSystem, Format};

/// The largest number of lines of a program's output that a message quotes.
const LINES: usize = 3;
/// A part of the dynamic loader's warning about a library that it cannot preload. The program then
/// runs without the library (`ld.so(8)`).
const NOT_LOADED: &str = "cannot be preloaded";

/// Why a file system cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MkfsError {
    /// The program is not installed.
    #[error("{tool} is not installed: install the package {package}")]
    NoTool {
        /// The name of the program.
        tool: String,
        /// The package that has it.
        package: &'static str,
    },
    /// The program ended with an error.
    #[error("{tool} failed: {problem}")]
    Tool {
        /// The name of the program.
        tool: String,
        /// What it wrote to standard error.
        problem: String,
    },
    /// The library that makes file systems the same each time does not exist.
    #[error("{0} does not exist: build it with `make`")]
    NoLibrary(PathBuf),
    /// The program ran without the library.
    #[error(
        "{library} cannot be loaded into {tool}. Its path must not have a colon or a space, and \
         {tool} must be built for the same architecture"
    )]
    NotLoaded {
        /// The path of the library that makes file systems the same each time.
        library: PathBuf,
        /// The name of the program.
        tool: String,
    },
}

/// Returns the name of the program that makes a file system.
pub fn program(filesystem: FileSystem) -> String {
    format!("mkfs.{}", filesystem.name())
}

/// Makes a file system in the file `image`. `library` is preloaded into the program, so the result
/// depends only on the format and on `seed`. Fails when the program or the library is missing, the
/// program fails, or the library cannot be loaded.
pub fn make(format: &Format, seed: usize, image: &Path, library: &Path) -> Result<(), MkfsError> {
    if !library.is_file() {
        return Err(MkfsError::NoLibrary(library.to_owned()));
    }
    let tool = program(format.filesystem);
    let failed =
        |error: io::Error| MkfsError::Tool { tool: tool.clone(), problem: error.to_string() };
    let image = image.canonicalize().map_err(failed)?;
    let library = &library.canonicalize().map_err(failed)?;
    // The PATH of users other than root often lacks the directories of such programs.
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let output = Command::new(&tool)
        .arg("-q")
        .args(&format.mkfs)
        .arg(&image)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .env("LD_PRELOAD", library)
        .env("STILLMKFS_SEED", seed.to_string())
        .stdin(Stdio::null())
        // Relative paths in options must not refer to the user's files.
        .current_dir(image.parent().unwrap_or(Path::new("/")))
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(MkfsError::NoTool { tool, package: package(format.filesystem) });
        }
        Err(error) => return Err(MkfsError::Tool { tool, problem: error.to_string() }),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains(NOT_LOADED) {
        return Err(MkfsError::NotLoaded { library: library.to_owned(), tool });
    }
    if output.status.success() {
        return Ok(());
    }
    let problem = match complaint(&said) {
        nothing if nothing.is_empty() => output.status.to_string(),
        complaint => complaint,
    };
    Err(MkfsError::Tool { tool, problem })
}

/// Returns the lines of a program's error output that say what went wrong. mkfs.btrfs marks them
/// with `ERROR: ` between other messages; mkfs.xfs prints its long usage after them.
fn complaint(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let errors: Vec<&str> = lines.clone().filter(|line| line.starts_with("ERROR: ")).collect();
    let told = if errors.is_empty() {
        lines.take_while(|line| !line.to_lowercase().starts_with("usage:")).collect()
    } else {
        errors
    };
    told[..told.len().min(LINES)].join("; ")
}

/// Returns the Debian package of the program. Most other distributions use the same name.
const fn package(filesystem: FileSystem) -> &'static str {
    match filesystem {
        FileSystem::Ext4 => "e2fsprogs",
        FileSystem::Xfs => "xfsprogs",
        FileSystem::Btrfs => "btrfs-progs",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::{self, File};

    use super::*;

    pub fn format(filesystem: FileSystem, mkfs: &[&str]) -> Format {
        Format {
            filesystem,
            mkfs: mkfs.iter().map(|word| (*word).to_owned()).collect(),
            mount: "/mnt".into(),
            options: "noatime".into(),
            digest: None,
        }
    }

    /// Returns the path of a library whose preloading changes nothing: libc, which is loaded
    /// anyway.
    pub fn any_library() -> PathBuf {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| Some(line.split_once('/')?.1));
        let path = paths.find(|path| path.contains("/libc.so") || path.contains("/libc-"));
        Path::new("/").join(path.unwrap())
    }

    fn fails(mkfs: &[&str], library: &Path) -> String {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(2 << 20).unwrap();
        let format = format(FileSystem::Ext4, mkfs);
        make(&format, 1, image.path(), library).unwrap_err().to_string()
    }

    #[test]
    fn a_failing_program_is_quoted() {
        let error = fails(&["-b", "3"], &any_library());
        assert_eq!(error, "mkfs.ext4 failed: mkfs.ext4: invalid block size - 3");
    }

    #[test]
    fn a_missing_library_is_an_error() {
        let error = fails(&[], Path::new("/nonexistent.so"));
        assert_eq!(error, "/nonexistent.so does not exist: build it with `make`");
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("a b.so");
        fs::copy(any_library(), &library).unwrap();
        let error = fails(&[], &library);
        assert!(error.contains("a b.so cannot be loaded into mkfs.ext4"), "{error}");
        let library = directory.path().join("none.so");
        File::create(&library).unwrap();
        let error = fails(&[], &library);
        assert!(error.contains("none.so cannot be loaded into mkfs.ext4"), "{error}");
    }

    #[test]
    fn only_the_errors_of_a_program_are_quoted() {
        let btrfs = "NOTE: several default settings have changed\n  - DUP\n\nERROR: too small\n\
                     ERROR: minimum size is 114294784\n";
        let expected = "ERROR: too small; ERROR: minimum size is 114294784";
        assert_eq!(complaint(btrfs), expected);
        let xfs =
            "Log size must be at least 64MB.\nUsage: mkfs.xfs\n/* blocksize */ [-b size=num]\n";
        assert_eq!(complaint(xfs), "Log size must be at least 64MB.");
        assert_eq!(complaint("usage: x\n"), "");
    }
}
