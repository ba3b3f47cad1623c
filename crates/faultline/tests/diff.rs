//! `faultline diff` of small kernels made by the compiler.

mod said;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::{Boot, Cell, Cost, CostTable, ENTRIES, INSTRUCTIONS, Outcome, Place, Profile, Reading};

use said::Said;

/// A file like `vmlinux`, compiled from C.
fn kernel(directory: &Path, name: &str, code: &str) -> PathBuf {
    let [source, file] = [format!("{name}.c"), name.to_owned()].map(|name| directory.join(name));
    fs::write(&source, format!("void _start(void) {{}}\n{code}")).unwrap();
    let made = Command::new("cc")
        .args(["-O1", "-nostdlib", "-static", "-no-pie", "-mcmodel=kernel", "-fno-pic"])
        .args(["-fcf-protection=none", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"])
        .args(["-Wl,-Ttext=0xffffffff81000000", "-Wl,--build-id=none", "-o"])
        .args([&file, &source])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file
}

fn faultline(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    command.current_dir(directory).env("XDG_CACHE_HOME", directory.join("cache"));
    Said::of(command.args(arguments))
}

#[test]
fn a_function_that_differs_is_named() {
    let place = tempfile::tempdir().unwrap();
    let source =
        "int limit; int twice(int n) { return 2 * n; } int next(int n) { return n + limit; }";
    kernel(place.path(), "base", source);
    // The change is a comment, and a function that moves the others.
    let harmless = format!("/* A comment. */\nint first(void) {{ return limit; }}\n{source}");
    kernel(place.path(), "moved", &harmless.replace("int first", "int limit; int first"));
    kernel(place.path(), "changed", &source.replace("n + limit", "n - limit"));
    let said = |new: &str| faultline(place.path(), &["diff", "base", new]).out;
    assert_eq!(said("base"), "From base to base no function differs (3 functions compared).\n");
    insta::assert_snapshot!(said("moved"), @r"
    From base to moved: 0 functions changed, 1 new, 0 gone, 3 the same.

    New, the largest first:
         base      new  removed    added  instructions of
            0        2        0        2  first
    ");
    insta::assert_snapshot!(said("changed"), @r"
    From base to changed: 1 function changed, 0 new, 0 gone, 2 the same.

    Changed, those with the most different instructions first:
         base      new  removed    added  instructions of
            3        3        1        1  next
    ");
    let next = ["diff", "base", "changed", "--disassemble", "next"];
    let Said { out, err, .. } = faultline(place.path(), &next).expect(0);
    assert_eq!(err, "");
    assert!(out.starts_with("next of base  "), "{out}");
    assert!(out.contains(" limit,%"), "{out}");
}

#[test]
fn changed_functions_are_found_in_stored_profiles() {
    let place = tempfile::tempdir().unwrap();
    let source =
        "int limit; int twice(int n) { return 2 * n; } int next(int n) { return n + limit; }";
    kernel(place.path(), "base", source);
    let changed = source.replace("2 * n", "3 * n").replace("n + limit", "n - limit");
    kernel(place.path(), "changed", &changed);
    let file = "name = \"x\"\nmode = \"exact\"\nseeds = 2\n[machine]\ncpus = 2\nmemory = \"512M\"\n\
                [[variant]]\nname = \"old\"\nkernel = \"debian:6.1\"\n\
                [[workload]]\nname = \"mprotect\"\n";
    let experiment = plan::file::parse(Path::new("x.toml"), file, None).unwrap().experiment;
    let mut store = store::open(&place.path().join("store.db")).unwrap();
    let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
    let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
    let next = Place::Function { name: "next".into(), module: "".into() };
    costs.push(next, [Cell::new(0, 0, 90), Cell::new(1, 0, 30)]);
    let profile = Profile { workload: "mprotect".into(), costs, ..Profile::default() };
    let outcome = Outcome::Complete;
    let boot = Boot { variant: "old".into(), outcome, profiles: vec![profile], ..Boot::default() };
    store.keep_boot(id, &boot).unwrap();
    drop(store);
    let cover = ["--store", "store.db", "cover", "base", "changed"];
    insta::assert_snapshot!(faultline(place.path(), &cover).out, @r"
    From base to changed the code of 2 functions differs. The profiles of 1 exact boot enter 1.

    Workloads, by what each adds to those above it:
         adds   enters  workload, experiment
            1        1  mprotect, x (number 1)

    Entered, by entries in one boot:
         entries  function
              30  next (by mprotect)

    Entered by none:
      twice
    ");
}

#[test]
fn what_is_no_kernel_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let base = kernel(place.path(), "base", "");
    fs::write(place.path().join("text"), "no kernel").unwrap();
    let bytes = fs::read(&base).unwrap();
    fs::write(place.path().join("short"), &bytes[..100]).unwrap();
    // The header says for which machine the file is (elf(5), `e_machine`).
    for (name, machine) in [("foreign", 243), ("other", 183)] {
        let foreign = [&bytes[..18], &[machine, 0], &bytes[20..]].concat();
        fs::write(place.path().join(name), foreign).unwrap();
    }
    fs::write(place.path().join("arm64"), [&[0; 56][..], b"ARM\x64", &[0; 4096]].concat()).unwrap();
    fs::copy(&base, place.path().join("stripped")).unwrap();
    let stripped = Command::new("strip").arg(place.path().join("stripped")).status();
    assert!(stripped.unwrap().success());
    for (new, why) in [
        ("text", "text: it is not a bzImage"),
        ("short", "short: it is no readable ELF file"),
        ("foreign", "foreign: it is a kernel for another machine (number 243 in ELF)"),
        ("other", "base and other are for different architectures"),
        ("arm64", "arm64: it has no symbol table"),
        ("stripped", "it has no symbol table"),
        ("mine", "`mine` is not a kernel: use debian:6.1"),
    ] {
        let Said { out, err, .. } = faultline(place.path(), &["diff", "base", new]).expect(2);
        assert!(out.is_empty() && err.contains(why), "{new}: {out}{err}");
    }
    let none = ["diff", "base", "base", "--disassemble", "none"];
    let told = "faultline: neither kernel has a function `none`\n";
    assert_eq!(faultline(place.path(), &none).expect(2).err, told);
}
