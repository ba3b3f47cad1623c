//! Which program is meant, and whether it can start in a guest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::Architecture;

use crate::elf::Elf;
use crate::script::Script;
use crate::{BundleError, ProgramRequest, in_file, joined, source};

/// The program's absolute path. Fails when it cannot be started.
pub fn find(name: &str, request: ProgramRequest<'_>) -> Result<PathBuf, BundleError> {
    if !name.contains('/') {
        let mut places = request.path.iter().map(|it| joined(request.directory, &it.join(name)));
        return places
            .find(|it| is_program(it))
            .ok_or_else(|| BundleError::Unknown(name.to_owned()));
    }
    let path = joined(request.directory, Path::new(name));
    let found = fs::metadata(&path).map_err(in_file(Path::new(name)))?;
    let problem = match () {
        () if found.is_dir() => "is a directory: name a program",
        () if !found.is_file() => "is not a regular file: name a program",
        () if !is_program(&path) && !source::is_c(&path) => {
            "is not executable: `chmod +x` makes it so"
        }
        () => return Ok(path),
    };
    Err(BundleError::Program { path: name.into(), problem: problem.to_owned() })
}

/// Why a program that is no C file cannot start in a guest of this architecture; `None` if it can.
pub fn problem_of(program: &[u8], arch: Architecture) -> Option<&'static str> {
    let elf = Elf::of(program, arch);
    match arch {
        Architecture::X86_64 => (elf.is_none() && Script::of(program).is_none())
            .then_some("is neither a script (#!) nor a 64-bit ELF program for x86-64"),
        Architecture::Arm64 => elf.is_none_or(|it| it.interpreter.is_some()).then_some(
            "is not a static ELF program for arm64, and interpreters and libraries of this host are for x86-64: name a C \
             file, or a program that `aarch64-linux-gnu-gcc -static` links",
        ),
    }
}

/// Whether a file can be executed.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
