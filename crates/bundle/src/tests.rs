use std::os::unix::fs::symlink;
use std::process::Command;

use model::Architecture::{Arm64, X86_64};
use proptest::prelude::*;

use super::*;

/// Writes an executable file.
fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Collects the files of a command from a directory.
fn collected(
    directory: &Path,
    command: &[&str],
    with: &[&str],
) -> Result<(PathBuf, Files), String> {
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let with: Vec<PathBuf> = with.iter().map(PathBuf::from).collect();
    let path = ["/nonexistent", "/usr/bin", "/bin"].map(PathBuf::from);
    let request =
        ProgramRequest { command: &command, directory, path: &path, with: &with, arch: X86_64 };
    let (program, files, ..) = collect(request).map_err(|error| error.to_string())?;
    Ok((program, files))
}

/// Whether a path leads to a file that was collected.
fn has(files: &Files, path: impl AsRef<Path>) -> bool {
    let real = fs::canonicalize(path.as_ref()).unwrap();
    matches!(files.entries.get(&real), Some(Entry::File { .. }))
}

fn compile(directory: &Path, name: &str, source: &str, options: &[&str]) {
    let file = directory.join(name).with_extension("c");
    fs::write(&file, source).unwrap();
    let compiler =
        Command::new("cc").arg("-o").arg(directory.join(name)).arg(&file).args(options).output();
    let compiler = compiler.unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
}

#[test]
fn a_c_file_is_compiled_and_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let text = "int main(void) { return 0; }\n";
    fs::write(home.join("main.c"), text).unwrap();
    let command = ["./main.c".to_owned(), "x".to_owned()];
    let request =
        ProgramRequest { command: &command, directory: &home, path: &[], with: &[], arch: X86_64 };
    let bundled = bundle(request).unwrap();
    assert_eq!(bundled.command, [home.join("main").to_str().unwrap(), "x"]);
    assert_eq!(bundled.source, text);
    assert!(!home.join("main").exists());
    // A script that calls another one cannot be repeated from its own text.
    program(&home.join("alone.sh"), "#!/bin/sh\ntrue\n");
    program(&home.join("calls.sh"), "#!/bin/sh\n./alone.sh\n");
    for (name, is_known) in [("./alone.sh", true), ("./calls.sh", false)] {
        let command = [name.to_owned()];
        let bundled = bundle(ProgramRequest { command: &command, ..request }).unwrap();
        assert_eq!(!bundled.source.is_empty(), is_known, "{name}");
    }
    let (program, files) = collected(&home, &["./main.c"], &[]).unwrap();
    assert!(matches!(files.entries.get(&program), Some(Entry::File { is_program: true, .. })));
}

#[test]
fn a_dynamic_program_takes_its_libraries_and_their_libraries() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    fs::create_dir(home.join("lib")).unwrap();
    let place = format!("-L{}", home.join("lib").display());
    let shared = ["-shared", "-fPIC", &place];
    let two = "double cos(double); double two(double x) { return cos(x); }";
    compile(&home, "lib/libtwo.so", two, &[&shared[..], &["-lm"]].concat());
    let one = "double two(double); double one(double x) { return two(x); }";
    compile(&home, "lib/libone.so", one, &[&shared[..], &["-l:libtwo.so"]].concat());
    let main = "double one(double); int main(int n, char **v) { return one(n); }";
    let link = format!("-Wl,-rpath,$ORIGIN/lib,-rpath-link,{}", home.join("lib").display());
    compile(&home, "main", main, &[&*place, "-l:libone.so", &link]);
    let (program, files) = collected(&home, &["./main", "x"], &[]).unwrap();
    assert_eq!(program, home.join("main"));
    for name in ["main", "lib/libone.so", "lib/libtwo.so"] {
        assert!(has(&files, home.join(name)), "{name}");
    }
    let linker = "/lib64/ld-linux-x86-64.so.2";
    assert!(has(&files, linker));
    let libraries: Vec<_> = files.entries.keys().filter_map(|it| it.file_name()).collect();
    assert!(["libm.so.6", "libc.so.6"].iter().all(|it| libraries.iter().any(|name| name == it)));
    // The links on the way are there too.
    let link = ["/lib64", linker].map(Path::new).into_iter().find(|it| it.is_symlink()).unwrap();
    assert!(matches!(files.entries.get(link), Some(Entry::Link(_))));
    fs::remove_file(home.join("lib/libtwo.so")).unwrap();
    let error = collected(&home, &["./main"], &[]).err().unwrap();
    let expected =
        "lib/libone.so needs the library libtwo.so, which is in no directory of libraries";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn guests_of_another_architecture_take_static_programs_of_it() {
    // The header of a program for arm64, which is all that is looked at.
    let mut for_arm64 = fs::read("/bin/true").unwrap();
    for_arm64.truncate(64);
    for_arm64[18..20].copy_from_slice(&183_u16.to_le_bytes());
    // No program headers and no sections.
    for_arm64[32..48].fill(0);
    for_arm64[56..64].fill(0);
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("main"), for_arm64).unwrap();
    fs::set_permissions(home.join("main"), fs::Permissions::from_mode(0o755)).unwrap();
    program(&home.join("data"), "#!/bin/sh\ntrue\n");
    let told = |name: &str, arch| {
        let command = [name.to_owned(), "data".to_owned()];
        let request =
            ProgramRequest { command: &command, directory: home, path: &[], with: &[], arch };
        bundle(request).map(|it| it.files).map_err(|error| error.to_string())
    };
    // The program, its argument, and their directory. Commands of a script for x86-64 would be more.
    assert_eq!(told("./main", Arm64), Ok(3));
    let error = told("./main", X86_64).unwrap_err();
    assert!(error.ends_with("is neither a script (#!) nor a 64-bit ELF program for x86-64"));
    for name in ["./data", "/bin/true"] {
        let error = told(name, Arm64).unwrap_err();
        assert!(error.contains(" is not a static ELF program for arm64"), "{error}");
    }
}

#[test]
fn a_static_program_takes_nothing() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "main", "int main() { return 0; }", &["-static"]);
    let (_, files) = collected(home.path(), &["./main"], &[]).unwrap();
    // The program and its directory.
    assert_eq!(files.entries.len(), 2);
}

#[test]
fn a_shell_script_takes_the_commands_that_it_names() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    program(&home.join("test.sh"), "#!/bin/sh\n./helper | gzip >/dev/null; ./broken\n");
    program(&home.join("helper"), "#!/bin/sh\nfactor 12\n");
    program(&home.join("broken"), "#!/nonexistent/interpreter\n");
    for name in ["data", "broken.bak"] {
        fs::write(home.join(name), "x").unwrap();
    }
    fs::create_dir_all(home.join("more/deep")).unwrap();
    fs::write(home.join("more/deep/file"), "x").unwrap();
    symlink("more", home.join("link")).unwrap();
    let (_, files) = collected(&home, &["./test.sh", "data"], &["link"]).unwrap();
    for path in ["/bin/sh", "/usr/bin/gzip", "/usr/bin/factor", "/usr/bin/seq"] {
        assert!(has(&files, path), "{path}");
    }
    for name in ["helper", "data", "link/deep/file"] {
        assert!(has(&files, home.join(name)), "{name}");
    }
    assert!(matches!(files.entries.get(&home.join("link")), Some(Entry::Link(_))));
    assert!(!has(&files, "/usr/bin/tac") && !has(&files, home.join("broken.bak")));
    let (program, files) = collected(&home.join("more"), &["./deep/../../helper"], &["."]).unwrap();
    assert_eq!(program, home.join("more/deep/../../helper"));
    for name in ["helper", "more/deep/file"] {
        assert!(has(&files, home.join(name)), "{name}");
    }
    assert!(matches!(files.entries.get(&home.join("more/deep")), Some(Entry::Directory)));
    let (_, files) = collected(&home, &["sh", "-c", "tac <data"], &[]).unwrap();
    assert!(has(&files, "/usr/bin/tac"));
}

#[test]
fn python_takes_its_standard_library() {
    let home = tempfile::tempdir().unwrap();
    program(&home.path().join("x.py"), "#!/usr/bin/env python3\nimport json\n");
    let python = fs::canonicalize("/usr/bin/python3").unwrap();
    let library = Path::new("/usr/lib").join(python.file_name().unwrap());
    let (_, files) = collected(home.path(), &["./x.py"], &[]).unwrap();
    assert!(has(&files, library.join("json/__init__.py")));
    assert!(!has(&files, library.join("pydoc_data/topics.py")));
}

#[test]
fn the_archive_has_files_links_and_the_command() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    compile(&home, "main", "int main() { return 0; }", &["-static"]);
    symlink("main", home.join("link")).unwrap();
    let command = ["./link".to_owned(), "x".to_owned()];
    let request =
        ProgramRequest { command: &command, directory: &home, path: &[], with: &[], arch: X86_64 };
    let bundled = bundle(request).unwrap();
    assert_eq!(bundled.command, [home.join("link").display().to_string(), "x".to_owned()]);
    assert_eq!(bundled.directory, home.display().to_string());
    assert_eq!(bundled.files, 3);
    assert!(bundled.archive.starts_with(b"070701"));
    assert_eq!(bundle(request).unwrap().archive, bundled.archive);
}

#[test]
fn too_large_files_are_refused_if_they_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    program(&home.join("test.sh"), "#!/bin/sh\n./large\n");
    program(&home.join("large"), "");
    fs::File::options().write(true).open(home.join("large")).unwrap().set_len(MAX_BYTES).unwrap();
    let (_, files) = collected(home, &["./test.sh"], &[]).unwrap();
    assert!(!has(&files, home.join("large")));
    for with in ["large", "."] {
        let error = collected(home, &["./test.sh"], &[with]).err().unwrap();
        let told = "large is too much: a program and its files may have 256 MiB and 20000 files";
        assert!(error.ends_with(told), "{error}");
    }
}

#[test]
fn what_cannot_be_taken_is_named_with_a_remedy() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("plain"), "#!/bin/sh\n").unwrap();
    program(&home.join("strange"), "#!/nonexistent/interpreter\n");
    program(&home.join("unknown"), "#!/usr/bin/env no-such-command\n");
    program(&home.join("data"), "neither");
    symlink("loop", home.join("loop")).unwrap();
    let told = |command: &[&str], with: &[&str]| {
        collected(home, command, with).err().unwrap().replace(home.to_str().unwrap(), "HOME")
    };
    for (command, with, expected) in [
        (
            &["no-such-command"][..],
            &[][..],
            "`no-such-command` is not a program in $PATH: name its path, such as ./no-such-command",
        ),
        (&["./none"], &[], "./none: No such file or directory (os error 2)"),
        (&["./"], &[], "./ is a directory: name a program"),
        (&["./plain"], &[], "./plain is not executable: `chmod +x` makes it so"),
        (&["./strange"], &[], "HOME/strange needs /nonexistent/interpreter, which does not exist"),
        (
            &["./unknown"],
            &[],
            "HOME/unknown needs the command no-such-command, which does not exist",
        ),
        (&["./data"], &[], "./data is neither a script (#!) nor a 64-bit ELF program for x86-64"),
        (&["true"], &["none"], "HOME/none: No such file or directory (os error 2)"),
        (
            &["true"],
            &["/proc/version"],
            "/proc/version cannot be taken along, because a guest has other files there: copy it elsewhere",
        ),
        (&["./loop"], &[], "./loop: Too many levels of symbolic links (os error 40)"),
    ] {
        assert_eq!(told(command, with), expected);
    }
}

proptest! {
    #[test]
    fn damaged_programs_are_survived(place in 0_usize..4096, byte in any::<u8>()) {
        let mut bytes = fs::read("/bin/true").unwrap();
        bytes[place] = byte;
        let _ = Elf::of(&bytes, X86_64);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Elf::of(&[b"\x7fELF\x02\x01\x01", &*bytes].concat(), X86_64);
        let _ = Script::of(&[b"#!", &*bytes].concat());
        script::words(&bytes);
    }
}
