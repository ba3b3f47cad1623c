//! Finds the user's own programs for a workload in one directory.

use std::fs;
use std::path::Path;

use model::{Architecture, Manifest, Pinned};
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, Machine, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};

/// A placeholder for any word in a name.
const ANY: &str = "*";
/// The largest number of existing files that an error lists.
const TOLD: usize = 12;

/// The programs in a directory that a manifest names for its parameters, in order. The error is a problem and
/// a hint.
pub fn find(manifest: &Manifest, directory: &Path) -> Result<Vec<Pinned>, (String, String)> {
    let Some(pattern) = &manifest.binaries else {
        let problem = format!("workload `{}` takes no directory of programs", manifest.name);
        return Err((problem, "program = \"FILE\" runs one of your own in place of its".into()));
    };
    let there = files(directory)
        .map_err(|error| (format!("{}: {error}", directory.display()), String::new()))?;
    let mut found: Vec<&str> = Vec::new();
    for name in names(pattern, manifest) {
        let mut fitting: Vec<&str> =
            there.iter().map(String::as_str).filter(|it| fits(it, &name)).collect();
        fitting.retain(|it| !found.contains(it));
        if fitting.is_empty() && !found.iter().any(|it| fits(it, &name)) {
            let problem = format!("{} has no program {name}", directory.display());
            return Err((problem, instead(&there)));
        }
        found.extend(fitting);
    }
    found.into_iter().map(|name| program(&directory.join(name))).collect()
}

/// The user's program at this path. The error is a problem and a hint, if the path is not UTF-8, or of a
/// directory or device.
pub fn program(path: &Path) -> Result<Pinned, (String, String)> {
    let name = path.to_str().ok_or_else(|| {
        let problem = format!("the path {} is not UTF-8", path.display());
        (problem, "rename it, or link to it".to_owned())
    })?;
    // Reading a device may never end.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let problem = format!("{} is not a regular file", path.display());
        return Err((problem, "name the file of a program".to_owned()));
    }
    Ok(Pinned { name: name.to_owned(), digest: None })
}

/// The machine in the header of ELF files for an architecture (elf(5)).
pub fn machine(arch: Architecture) -> Machine {
    match arch {
        Architecture::X86_64 => EM_X86_64,
        Architecture::Arm64 => EM_AARCH64,
    }
}

/// Why a program cannot start in a guest of this architecture without packages; `None` if it can.
pub fn lack(program: &[u8], arch: Architecture) -> Option<&'static str> {
    if program.starts_with(b"#!") {
        return Some(
            "it is a script, and the guest has no interpreter: add packages = [\"dash\"] or [\"python3\"] to the \
             manifest",
        );
    }
    let Ok(file) = ElfFile64::<Endianness>::parse(program) else {
        return Some("it is neither a script (#!) nor a 64-bit ELF program");
    };
    let endian = file.endian();
    if file.elf_header().e_machine(endian) != machine(arch) {
        return Some(match arch {
            Architecture::X86_64 => "it is not a program for x86_64, which the machine is",
            Architecture::Arm64 => {
                "it is not a program for arm64, which the machine is: `aarch64-linux-gnu-gcc -static` makes one"
            }
        });
    }
    file.elf_program_headers().iter().any(|it| it.p_type(endian) == PT_INTERP).then_some(
        "it is linked dynamically: link it with -static, or add packages = [\"libc6\"] to the manifest",
    )
}

/// Expands a pattern into names. A parameter in the pattern becomes each of its values; a parameter without a
/// value matches any word.
fn names(pattern: &str, manifest: &Manifest) -> Vec<String> {
    let mut names = vec![pattern.to_owned()];
    for (name, parameter) in &manifest.parameters {
        let place = format!("{{{name}}}");
        let values = parameter.value.split(',').map(str::trim).filter(|value| !value.is_empty());
        let values: Vec<&str> = values.collect();
        let values = if values.is_empty() { &[ANY][..] } else { &values };
        if pattern.contains(&place) {
            let filled = |name: &String| {
                values.iter().map(|value| name.replace(&place, value)).collect::<Vec<_>>()
            };
            names = names.iter().flat_map(filled).collect();
        }
    }
    names
}

/// Whether a file matches this name. `ANY` matches a word of letters and digits.
fn fits(file: &str, name: &str) -> bool {
    let Some((begin, end)) = name.split_once(ANY) else { return file == name };
    let Some(rest) = file.strip_prefix(begin) else { return false };
    let longest = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    (1..=longest).any(|length| fits(&rest[length..], end))
}

/// The names of the files in a directory, sorted.
fn files(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        names.extend(name.filter(|_| path.is_file()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn instead(there: &[String]) -> String {
    match there.len() {
        0 => "it has no files".into(),
        1..=TOLD => format!("there are: {}", there.join(", ")),
        more => format!("there are: {}, and {} more", there[..TOLD].join(", "), more - TOLD),
    }
}

#[cfg(test)]
mod tests {
    use model::Architecture::X86_64;

    use super::*;
    use crate::workloads;

    #[test]
    fn programs_that_need_packages_are_recognised() {
        let lack = |path: &str| lack(&fs::read(path).unwrap(), X86_64).unwrap_or_default();
        // Every dynamic program names its loader; the loader itself has none.
        assert!(lack("/bin/sh").starts_with("it is linked dynamically"));
        assert_eq!(lack("/lib64/ld-linux-x86-64.so.2"), "");
        assert!(super::lack(b"#!/bin/sh\n", X86_64).unwrap().contains("no interpreter"));
        assert!(super::lack(b"int main", X86_64).unwrap().contains("neither"));
        assert!(super::lack(b"", X86_64).is_some());
        let for_arm64 = super::lack(&fs::read("/bin/sh").unwrap(), Architecture::Arm64);
        assert!(for_arm64.unwrap().starts_with("it is not a program for arm64"));
    }

    /// The names of the programs found in a directory with these files.
    fn found(files: &[&str], benchmarks: &str, class: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(directory.path().join(file), "").unwrap();
        }
        fs::create_dir(directory.path().join("mg.S.x")).unwrap();
        let mut manifest = workloads::find("nas", Path::new("")).unwrap();
        for (name, value) in [("benchmarks", benchmarks), ("class", class)] {
            manifest.parameters.get_mut(name).unwrap().value = value.to_owned();
        }
        let found = find(&manifest, directory.path()).map_err(|(problem, hint)| {
            format!("{problem}: {hint}").replace(directory.path().to_str().unwrap(), "DIR")
        })?;
        let name =
            |it: Pinned| it.path().strip_prefix(&directory).unwrap().to_str().unwrap().to_owned();
        Ok(found.into_iter().map(name).collect())
    }

    const FILES: [&str; 6] = ["ft.S.x", "cg.S.x", "cg.A.x", "ep.S.x", "cg.S.x.old", "README"];

    #[test]
    fn parameters_select_programs() {
        let names = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(found(&FILES, "", "S"), names(&["cg.S.x", "ep.S.x", "ft.S.x"]));
        assert_eq!(found(&FILES, "ft, cg,ft", "S"), names(&["ft.S.x", "cg.S.x"]));
        assert_eq!(found(&FILES, "cg", "S,A"), names(&["cg.S.x", "cg.A.x"]));
        assert_eq!(found(&FILES, "", ""), names(&["cg.A.x", "cg.S.x", "ep.S.x", "ft.S.x"]));
        assert_eq!(found(&FILES, "cg", ""), names(&["cg.A.x", "cg.S.x"]));
    }

    #[test]
    fn any_matches_one_word() {
        for (file, name) in [("a.b.x", "*.*.x"), ("abxcx", "*x*x"), ("axx", "*x"), ("a1b", "a*b")] {
            assert!(fits(file, name), "{file} {name}");
        }
        for (file, name) in
            [("a..x", "*.*.x"), ("a.b-c.x", "*.*.x"), ("ax", "*x*"), ("\u{e9}", "*")]
        {
            assert!(!fits(file, name), "{file} {name}");
        }
    }

    #[test]
    fn an_error_names_the_missing_program() {
        let there = "there are: README, cg.A.x, cg.S.x, cg.S.x.old, ep.S.x, ft.S.x";
        assert_eq!(found(&FILES, "mg", "S"), Err(format!("DIR has no program mg.S.x: {there}")));
        assert_eq!(found(&FILES, "", "C"), Err(format!("DIR has no program *.C.x: {there}")));
        let other = found(&FILES, "../cg", "S").unwrap_err();
        assert!(other.starts_with("DIR has no program ../cg.S.x"), "{other}");
        assert_eq!(
            found(&[], "cg", "S").unwrap_err(),
            "DIR has no program cg.S.x: it has no files"
        );
    }

    #[test]
    fn a_program_is_a_regular_file() {
        for path in ["/dev/zero", "/"] {
            let (problem, _) = program(Path::new(path)).unwrap_err();
            assert_eq!(problem, format!("{path} is not a regular file"));
        }
    }

    #[test]
    fn a_workload_without_binaries_takes_no_directory() {
        let manifest = workloads::find("truncate", Path::new("")).unwrap();
        let (problem, _) = find(&manifest, Path::new(".")).unwrap_err();
        assert_eq!(problem, "workload `truncate` takes no directory of programs");
        let manifest = workloads::find("nas", Path::new("")).unwrap();
        let (problem, _) = find(&manifest, Path::new("/nonexistent")).unwrap_err();
        assert_eq!(problem, "/nonexistent: No such file or directory (os error 2)");
    }
}
