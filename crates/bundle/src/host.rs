//! Where this host has commands and libraries.

use std::fs;
use std::path::{Path, PathBuf};

use crate::start::is_program;

/// The directories of PATH in the guest.
const PATH: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The command of this name, where the guest will find it.
pub fn command(name: &str) -> Option<PathBuf> {
    PATH.iter().map(|place| Path::new(place).join(name)).find(|it| is_program(it))
}

/// Directories of libraries in the dynamic linker's configuration (ldconfig(8)).
pub fn configured() -> Vec<PathBuf> {
    let parts = fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    files.sort();
    files.push("/etc/ld.so.conf".into());
    let texts: Vec<String> = files.iter().filter_map(|it| fs::read_to_string(it).ok()).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    lines.filter(|line| line.starts_with('/')).map(PathBuf::from).collect()
}

/// The standard library of a Python, if the program is one.
pub fn library_of_python(program: &Path) -> Option<PathBuf> {
    let name = program.file_name()?.to_str()?;
    let version = name.strip_prefix("python3.")?;
    let is_python = version.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = program.parent()?.parent()?;
    Some(prefix.join("lib").join(name)).filter(|it| is_python && it.is_dir())
}
