//! The text of a program: a C file, which is compiled here, or a script.

use std::fs;
use std::path::Path;
use std::process::Command;

use model::Architecture;

use crate::{BundleError, in_file};

/// The compiler's options: the program runs without libraries of the host.
const OPTIONS: [&str; 3] = ["-O2", "-static", "-pthread"];
/// The largest text that is kept, in bytes.
const LONGEST: usize = 16 << 10;
/// Most lines of the compiler's messages that are printed.
const MOST_LINES: usize = 20;

/// Whether a file is named as a C file.
pub fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "c")
}

/// The compiler for an architecture, and how to get it.
fn compiler(arch: Architecture) -> (&'static str, &'static str) {
    match arch {
        Architecture::X86_64 => ("cc", "install gcc"),
        Architecture::Arm64 => ("aarch64-linux-gnu-gcc", "`make arm64` installs it"),
    }
}

/// Names the compiler for an architecture with its version, such as `gcc 12.2.0`; empty if it does not say.
pub fn compiler_version(arch: Architecture) -> String {
    let said = Command::new(compiler(arch).0).arg("--version").output();
    let said = said.ok().filter(|it| it.status.success());
    said.map(|it| version(&String::from_utf8_lossy(&it.stdout))).unwrap_or_default()
}

/// Reads what a compiler says of itself. GCC begins with the name by which it was called, and ends its first line with the
/// version; others begin with their own name.
fn version(said: &str) -> String {
    let first = said.lines().next().unwrap_or_default();
    match first.rsplit_once(' ').filter(|_| said.contains("Free Software Foundation")) {
        Some((_, version)) => format!("gcc {version}"),
        None => first.to_owned(),
    }
}

/// Compiles a C file for an architecture, and returns the program's bytes. The same compiler makes the same bytes each
/// time. Fails if there is no compiler, with the compiler's messages if the file has errors, or if files cannot be written.
pub fn compile(path: &Path, arch: Architecture) -> Result<Vec<u8>, BundleError> {
    let (compiler, install) = compiler(arch);
    let of_program = |problem| BundleError::Program { path: path.to_owned(), problem };
    let directory = tempfile::tempdir().map_err(in_file(path))?;
    let output = directory.path().join("program");
    // Its own name for the file is in the program if it uses `assert`.
    let name = path.file_name().unwrap_or_default();
    let made = Command::new(compiler)
        .current_dir(path.parent().unwrap_or(Path::new("/")))
        .args(OPTIONS)
        .arg("-o")
        .arg(&output)
        .arg(Path::new(".").join(name))
        .arg("-lm")
        .output()
        .map_err(|error| {
            let instead = "or name a compiled program";
            of_program(format!("needs `{compiler}` ({error}): {install}, {instead}"))
        })?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        let said = said.lines().take(MOST_LINES).collect::<Vec<_>>().join("\n");
        let options = OPTIONS.join(" ");
        let problem = format!("does not compile with `{compiler} {options} ... -lm`:\n{said}");
        return Err(of_program(problem));
    }
    fs::read(&output).map_err(in_file(&output))
}

/// Returns the text of a script or of a C file, unless it is long, not UTF-8, or includes headers of its own. Empty for
/// others.
pub fn text(bytes: &[u8], is_source: bool) -> String {
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_source && bytes.len() <= LONGEST);
    let text = text.filter(|text| !text.contains("include \""));
    text.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c_file_is_compiled_the_same_each_time() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("-a b.c");
        fs::write(&path, "#include <math.h>\nint main(int n, char **v) { return cos(n); }\n")
            .unwrap();
        let compile = || super::compile(&path, Architecture::X86_64);
        let first = compile().unwrap();
        assert!(first.starts_with(b"\x7fELF"));
        assert_eq!(compile().unwrap(), first);
        fs::write(&path, "int main(void) { return x; }\n").unwrap();
        let error = compile().unwrap_err().to_string();
        assert!(error.contains("does not compile") && error.contains("undeclared"), "{error}");
    }

    #[test]
    fn a_compiler_is_named_with_its_version() {
        let gcc = "cc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n";
        assert_eq!(version(gcc), "gcc 12.2.0");
        assert_eq!(
            version("Debian clang version 14.0.6\nTarget: x\n"),
            "Debian clang version 14.0.6"
        );
        assert_eq!(version(""), "");
    }

    #[test]
    fn long_and_binary_texts_are_not_kept() {
        assert_eq!(text(b"#!/bin/sh\n", true), "#!/bin/sh\n");
        assert_eq!(text(b"\x7fELF", false), "");
        assert_eq!(text(b"#include \"own.h\"\n", true), "");
        assert_eq!(text(&[b'x'; LONGEST + 1], true), "");
        assert_eq!(text(b"#!/bin/sh\n\xff", true), "");
    }
}
