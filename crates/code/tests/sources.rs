//! Small kernels with debug information, made by the compiler.

use std::fs;
use std::process::Command;

use code::{ChangedLine, Image, Line, changed_place, difference, listings, whole_listings};
use kernelfiles::kallsyms::Symbols;
use object::{Object, ObjectSection};

const HEADER: &str = "static inline int helper(int n)\n{\n\treturn 3 * n + 1;\n}\n";
const MAIN: &str = "#include \"../include/helper.h\"\nint limit;\nvoid start_kernel(void) { limit = 1; }\n\
                    int twice(int n)\n{\n\treturn helper(n) + limit;\n}\n";

/// A file like `vmlinux`, built in a directory of its own.
fn kernel(header: &str, main: &str, options: &[&str]) -> Vec<u8> {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for (directory, name, text) in [("include", "helper.h", header), ("init", "main.c", main)] {
        fs::create_dir(path(directory)).unwrap();
        fs::write(path(directory).join(name), text).unwrap();
    }
    fs::create_dir(path("output")).unwrap();
    let made = Command::new("cc")
        .args(["-O2", "-nostdlib", "-static", "-no-pie", "-mcmodel=kernel", "-fno-pic"])
        .args(["-fcf-protection=none", "-Wl,-Ttext=0xffffffff81000000", "-Wl,-estart_kernel"])
        .args(options)
        .args(["-o", "vmlinux", "../init/main.c"])
        .current_dir(path("output"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::read(path("output/vmlinux")).unwrap()
}

fn images(kernels: &[Vec<u8>; 2]) -> [Image<'_>; 2] {
    kernels.each_ref().map(|it| Image::read(it, &Symbols::default()).unwrap())
}

fn lines([base, new]: &[Image<'_>; 2]) -> Vec<Line> {
    listings(base, new, "twice").into_iter().flat_map(|it| it.lines).collect()
}

#[test]
fn instructions_have_source_lines() {
    for options in [&["-g"][..], &["-gdwarf-4"], &["-g", "-gz=zlib"], &["-g", "-gz=none"]] {
        let lower = MAIN.replace("int limit", "\nint limit");
        let kernels = [kernel(HEADER, MAIN, options), kernel(HEADER, &lower, options)];
        let lines = lines(&images(&kernels));
        let at = |side: usize| {
            let sources = lines.iter().filter_map(|it| it.sources[side].as_deref());
            sources.collect::<Vec<_>>()
        };
        assert!(at(0).contains(&"include/helper.h:3 (helper)"), "{options:?} {lines:?}");
        assert!(at(0).contains(&"init/main.c:6") && at(1).contains(&"init/main.c:7"), "{lines:?}");
        assert!(lines.iter().all(|it| it.same), "{lines:?}");
        assert!(at(0).windows(2).all(|pair| pair[0] != pair[1]), "{lines:?}");
    }
}

/// The file with the kernel's first function tells the directory of the source; so does any other.
#[test]
fn the_source_is_found_without_its_first_file() {
    let main = MAIN.replace("start_kernel", "start");
    let kernels = [(); 2].map(|()| kernel(HEADER, &main, &["-g", "-Wl,-estart"]));
    let lines = lines(&images(&kernels));
    let places = lines.iter().flat_map(|it| it.at[0].clone()?.origin?.line);
    let mut places: Vec<String> = places.collect();
    places.dedup();
    assert!(places.contains(&"include/helper.h:3".to_owned()), "{places:?}");
    assert!(places.contains(&"init/main.c:6".to_owned()), "{places:?}");
}

#[test]
fn a_change_is_followed_to_the_function_that_was_inlined() {
    let inlined = |header: &str, main: &str, options: [&str; 2]| {
        let kernels = [kernel(HEADER, MAIN, &options[..1]), kernel(header, main, &options[1..])];
        let [base, new] = images(&kernels);
        let found = difference(&base, &new).functions;
        assert_eq!(found.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["twice"]);
        found[0].inlined.clone()
    };
    let header = HEADER.replace("3 * n", "(n ^ 77) * 3");
    let main = MAIN.replace("+ limit", "- limit * 5");
    let with = ["-g"; 2];
    assert_eq!(inlined(&header, MAIN, with).as_deref(), Some("helper"));
    assert_eq!(inlined(HEADER, &main, with), None);
    assert_eq!(inlined(&header, MAIN, ["-g", "-g0"]), None);
}

#[test]
fn a_change_has_a_line() {
    let added = HEADER.replace("3 * n", "(n ^ 77) * 3").replace("{\n", "{\n\n");
    let own = MAIN.replace("+ limit", "- limit * 5");
    for (sides, inlined, place, of_base) in [
        ([(HEADER, MAIN), (&added, MAIN)], Some("helper"), "include/helper.h:4", false),
        ([(&added, MAIN), (HEADER, MAIN)], Some("helper"), "include/helper.h:4", true),
        ([(HEADER, MAIN), (HEADER, &own)], None, "init/main.c:6", false),
    ] {
        let kernels = sides.map(|(header, main)| kernel(header, main, &["-g"]));
        let [base, new] = images(&kernels);
        let found = changed_place(&base, &new, "twice").unwrap();
        let line = ChangedLine { place: place.into(), of_base, mostly: true };
        assert_eq!((found.inlined.as_deref(), found.line), (inlined, line));
        assert_eq!(changed_place(&base, &new, "start_kernel"), None);
    }
    let kernels = [kernel(HEADER, MAIN, &["-g"]), kernel(HEADER, &own, &[])];
    let [base, new] = images(&kernels);
    assert_eq!(changed_place(&base, &new, "twice"), None);
}

/// The object of a file, compiled with debug information and linked alone, as another kernel's build does it.
fn object(main: &str, options: &[&str]) -> Vec<u8> {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for (directory, name, text) in [("include", "helper.h", HEADER), ("init", "main.c", main)] {
        fs::create_dir(path(directory)).unwrap();
        fs::write(path(directory).join(name), text).unwrap();
    }
    fs::create_dir(path("output")).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).current_dir(path("output")).output();
        assert!(done.as_ref().unwrap().status.success(), "{done:?}");
    };
    let base = ["-O2", "-mcmodel=kernel", "-fno-pic", "-fcf-protection=none", "-g", "-gz=none"];
    run("cc", &[&base[..], options, &["-c", "-o", "main.o", "../init/main.c"]].concat());
    let alone = ["-Ttext-segment=0xffffffff81000000", "-e", "0", "--unresolved-symbols=ignore-all"];
    run("ld", &[&alone[..], &["--noinhibit-exec", "-o", "main.elf", "main.o"]].concat());
    fs::read(path("output/main.elf")).unwrap()
}

#[test]
fn lines_come_from_an_object_with_the_same_code() {
    let main = format!("{MAIN}int outer(int n)\n{{\n\treturn twice(n) ? limit : 7;\n}}\n");
    let main = main.replace("int twice", "__attribute__((noinline)) int twice");
    let kernels = [kernel(HEADER, &main, &["-g0"]), kernel(HEADER, &main, &["-g"])];
    let [mut without, with] = images(&kernels);
    assert!(!without.has_lines("outer") && with.has_lines("outer"));
    // The object calls a function that it does not know, and uses other addresses.
    for (other, taken) in [
        (main.clone(), 1),
        (format!("int pad(int n) {{ return n + 1; }}\n{main}"), 1),
        (main.replace("n) ? limit", "n) ? -limit"), 0),
        (main.replace(": 7", ": 8"), 0),
        (main.replace("outer", "other"), 0),
    ] {
        let object = object(&other, &[]);
        let [mut image, _] = images(&kernels);
        let found = image.add_lines(&object, &["outer".to_owned()]).unwrap();
        assert_eq!(found.len(), taken, "{other}");
        assert_eq!(image.has_lines("outer"), taken == 1);
        assert!(!image.has_lines("twice"));
    }
    let outer = ["outer".to_owned()];
    assert_eq!(Vec::from_iter(without.add_lines(&object(&main, &[]), &outer).unwrap()), outer);
    let listing = whole_listings(&without, &with, "outer");
    let lines: Vec<_> = listing.iter().flat_map(|it| &it.lines).collect();
    assert!(!lines.is_empty());
    for line in lines {
        let [one, other] = line.at.each_ref().map(|at| at.as_ref().unwrap().origin.clone());
        assert_eq!(one, other);
    }
    assert!(without.add_lines(b"no file", &outer).is_err());
}

#[test]
fn instrumentation_of_one_side_is_named() {
    let main =
        format!("{MAIN}__attribute__((noinline)) void __stack_chk_fail(void) {{ limit = 2; }}\n");
    let protector = ["-fstack-protector-all", "-mstack-protector-guard=global"];
    let main = format!("{main}unsigned long __stack_chk_guard;\n");
    let kernels = [kernel(HEADER, &main, &[]), kernel(HEADER, &main, &protector)];
    let [plain, protected] = images(&kernels);
    let of = |one, other| {
        let found = difference(one, other).functions;
        found.into_iter().find(|it| it.name == "twice").unwrap().instrumentation
    };
    let found = of(&plain, &protected);
    assert_eq!(Vec::from_iter(found.gained), ["the stack protector"]);
    assert!(found.lost.is_empty());
    assert_eq!(Vec::from_iter(of(&protected, &plain).lost), ["the stack protector"]);
    let longer = kernel(HEADER, &main.replace("+ limit", "- limit * 5"), &protector);
    let longer = Image::read(&longer, &Symbols::default()).unwrap();
    let found = of(&protected, &longer);
    assert!(found.gained.is_empty() && found.lost.is_empty(), "both sides have it: {found:?}");
}

/// Targets of indirect calls have an instruction more.
#[test]
fn targets_of_indirect_calls_are_instrumentation() {
    let of = |options: [&[&str]; 2]| {
        let kernels = options.map(|it| kernel(HEADER, MAIN, it));
        let [base, new] = images(&kernels);
        let found = difference(&base, &new).functions;
        found.into_iter().find(|it| it.name == "twice").map(|it| it.instrumentation)
    };
    let marked: &[&str] = &["-fcf-protection=branch", "-fno-inline"];
    let plain: &[&str] = &["-fcf-protection=none", "-fno-inline"];
    let found = of([plain, marked]).expect("its code differs");
    assert_eq!((Vec::from_iter(found.gained), found.lost.len()), (vec!["IBT"], 0));
    assert_eq!(Vec::from_iter(of([marked, plain]).unwrap().lost), ["IBT"]);
    assert_eq!(of([marked, marked]), None);
}

#[test]
fn calls_that_a_source_can_gain_are_instrumentation_only_of_a_kernel_that_has_them() {
    let thunk = "__attribute__((noinline)) void __x86_indirect_thunk_rax(void) { limit = 2; }\n";
    let calls = MAIN.replace("return helper", "__x86_indirect_thunk_rax();\n\treturn helper");
    let calls = calls.replace("int twice", &format!("{thunk}int twice"));
    let unused = MAIN.replace("int twice", &format!("{thunk}int twice"));
    let gained = |base: &str| {
        let kernels = [kernel(HEADER, base, &[]), kernel(HEADER, &calls, &[])];
        let [base, new] = images(&kernels);
        let found = difference(&base, &new).functions;
        let twice = found.into_iter().find(|it| it.name == "twice").unwrap();
        Vec::from_iter(twice.instrumentation.gained)
    };
    assert_eq!(gained(MAIN), ["retpolines"]);
    assert_eq!(gained(&unused), [""; 0]);
}

#[test]
fn damaged_debug_information_is_none() {
    let whole = kernel(HEADER, MAIN, &["-g", "-gz=none"]);
    let file = object::File::parse(&*whole).unwrap();
    let (start, size) = file.section_by_name(".debug_info").unwrap().file_range().unwrap();
    let mut damaged = whole.clone();
    damaged[start as usize..(start + size) as usize].fill(0xff);
    let kernels = [whole, damaged];
    let [base, new] = &images(&kernels);
    assert_eq!(difference(base, new).functions, []);
    assert!(!listings(base, new, "twice").is_empty());
}
