//! Tests of what is made only on request: debug information, modules, and a configuration without a build.

use std::fs;
use std::path::Path;

use kernels::{Files, Request, Search, Source};
use model::{Build, Kernel};
use object::{Object, ObjectSymbol};

use super::{Bench, MAKEFILE, fixture};

#[test]
fn debug_information_is_built_on_request_without_paths_of_the_cache() {
    let bench = Bench::new();
    let [image, config] = ["bzImage", "packaged"].map(|name| bench.place(name));
    fs::write(&image, fixture::kernel("6.1.2")).unwrap();
    fs::write(&config, "# Linux/x86 6.1.2 Kernel Configuration\nCONFIG_64BIT=y\n").unwrap();
    let (config, name) = (Some(config), Some("packaged".into()));
    let files = Files { image, config, name, ..Files::default() };
    bench.cache().add(&Request::Files(files), &|_| ()).unwrap();
    let build = Build { config: Some("packaged".into()), ..bench.build() };
    let config = |kernel: &Kernel| fs::read_to_string(kernel.config.as_ref().unwrap()).unwrap();
    let without = bench.run("git:v1", &build).unwrap();
    let none = ["CONFIG_DEBUG_INFO_NONE=y\n", "# CONFIG_DEBUG_INFO is not set\n"];
    assert!(none.iter().all(|line| config(&without).contains(line)));
    let set = ["DEBUG_INFO", "DEBUG_INFO_DWARF5"].map(|name| (name.into(), "y".into())).into();
    let with = Build { set, ..build };
    let with_it = config(&bench.run("git:v1", &with).unwrap());
    assert!(none.iter().all(|line| !with_it.contains(line)));
    let map = format!("-fdebug-prefix-map={}=.", bench.place("cache/build/linux/output").display());
    assert!(bench.text("git:v1", &with).ends_with(&map));
}

#[test]
fn modules_are_built_where_asked_for() {
    let bench = Bench::new();
    let build = bench.build();
    let without = bench.run("git:v1", &build).unwrap();
    let wanted = |kernel: &Kernel| {
        let modules =
            kernels::modules::choose(kernel, &["b"]).map_err(|error| error.to_string())?;
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        Ok::<_, String>(modules.into_iter().map(|it| (it.name, size(&it.path))).collect::<Vec<_>>())
    };
    assert!(
        wanted(&without).unwrap_err().ends_with("has no module b, neither built in nor as a file")
    );
    let build = Build { with_modules: true, ..build };
    let set = |name: &str, value: &str| [(name.into(), value.into())].into();
    let with = bench.run("git:v1", &Build { set: set("B", "m"), ..build.clone() }).unwrap();
    let config = fs::read_to_string(with.config.as_ref().unwrap()).unwrap();
    assert!(["B=m", "MODULES=y"].iter().all(|it| config.contains(&format!("CONFIG_{it}\n"))));
    let files = wanted(&with).unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b"], "`b` uses a symbol of `a`");
    let order = with.modules.as_ref().unwrap().join("modules.order");
    assert_eq!(fs::read_to_string(order).unwrap(), "kernel/mm/b.ko\nkernel/kernel/a.ko\n");
    let debug = bench.run("git:v1", &Build { set: set("DEBUG_INFO", "y"), ..build.clone() });
    let stripped = wanted(&debug.unwrap()).unwrap();
    assert!(stripped.iter().zip(&files).all(|(now, before)| now.1 < before.1), "{stripped:?}");
    let odd = Build { modules: vec!["odd".into()], ..build.clone() };
    assert_ne!(bench.run("git:v1", &odd).unwrap().name, without.name);
    let error = bench.run("git:v1", &Build { config: None, ..odd }).unwrap_err();
    assert!(error.starts_with("the option of the module odd is not known"), "{error}");
    let fragment = bench.place("modules.config");
    fs::write(&fragment, "CONFIG_B=m\n").unwrap();
    let unasked = Build { with_modules: false, set: [].into(), ..build };
    for unasked in [
        Build { set: set("CONFIG_B", "m"), ..unasked.clone() },
        Build { fragments: vec![fragment.clone()], ..unasked },
    ] {
        let error = bench.run("git:v1", &unasked).unwrap_err();
        let told = "CONFIG_B=m is not built: set `modules = true` in [build]";
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_configuration_is_finished_without_a_build() {
    let bench = Bench::new();
    let text = Some("CONFIG_64BIT=y\n".into());
    let set = [("X".into(), "y".into())].into();
    let build = Build { config: Some("a name only".into()), text, set, ..bench.build() };
    let source: Source = "git:v1".parse().unwrap();
    let say = |line: &str| bench.said.borrow_mut().push(line.to_owned());
    let finished = bench.cache().configuration(&source, &build, &say).unwrap().unwrap();
    assert_eq!((finished.as_str(), bench.has_built()), ("CONFIG_64BIT=y\nCONFIG_X=y\n", false));
    let kernel = bench.run("git:v1", &build).unwrap();
    assert_eq!(fs::read_to_string(kernel.config.unwrap()).unwrap(), finished);
    assert!(kernel.origin.ends_with("; a name only with CONFIG_X=y"), "{}", kernel.origin);
}

/// Makes an object, with the note of its command that Kbuild leaves.
const OBJECT: &str = "vmlinux: mm/c.o\n\
mm/c.o:\n\t@mkdir -p $(O)/mm; cd $(O); gcc -O2 -c -o mm/c.o ../mm/c.c; \\\n\
\t  echo 'cmd_mm/c.o := gcc -O2 -c -o mm/c.o ../mm/c.c ; objtool' > mm/.c.o.cmd; cp mm/c.o vmlinux.o\n";

#[test]
fn objects_are_compiled_again_with_line_tables() {
    let bench = Bench::new();
    bench.write("Makefile", &format!("{MAKEFILE}{OBJECT}"));
    bench.write(
        "mm/c.c",
        "int elsewhere(int);\nint twice(int n)\n{\n\treturn elsewhere(n) * 2;\n}\n\
         #define MAKE(name) int name(void) { return 1; }\nMAKE(made)\n",
    );
    bench.commit("object");
    let kernel = bench.run("git:HEAD", &bench.build()).unwrap();
    let of = |kernel: &Kernel, search, functions: &[&str]| {
        bench.said.borrow_mut().clear();
        let say = |line: &str| bench.said.borrow_mut().push(line.to_owned());
        let functions: Vec<String> = functions.iter().map(|&it| it.to_owned()).collect();
        bench.cache().with_lines(kernel, &functions, search, &say).unwrap()
    };
    let lines = |kernel: &Kernel, function: &str| {
        of(kernel, Search::Whole, &[function]).remove(function).unwrap()
    };
    let few = of(&kernel, Search::Few, &["twice", "made"]);
    let objects = few["twice"].clone().unwrap();
    let told = format!("Compiling what defines twice, made in {} with line tables", kernel.name);
    assert!(bench.said.borrow().contains(&told) && !bench.has_built());
    // Only the whole kernel has the object of a function that a macro defines.
    let why = few["made"].clone().unwrap_err();
    assert_eq!(why, "none of its objects with `made` could be compiled");
    assert_eq!(lines(&kernel, "made").unwrap(), objects);
    assert!(bench.has_built());
    let [object] = &objects[..] else { panic!("{}", objects.len()) };
    let file = object::File::parse(&**object).unwrap();
    assert!(file.section_by_name(".debug_line").is_some());
    let twice = file.symbols().find(|it| it.name() == Ok("twice")).unwrap();
    assert!(twice.address() > 0xffff_ffff_8000_0000);
    // They are kept.
    let held = lock::take(&bench.place("cache/build/lock"), "", &|_| ()).unwrap().unwrap();
    assert_eq!(lines(&kernel, "twice").unwrap(), objects);
    assert!(bench.said.borrow().is_empty());
    let file = |path: &str| bench.cache().source_file(&kernel, path).unwrap();
    assert!(file("mm/c.c").unwrap().contains("int twice") && file("mm/d.c").is_none());
    drop(held);
    let why = lines(&kernel, "thrice").unwrap_err();
    assert_eq!(why, "none of its objects with `thrice` could be compiled");
    assert!(lines(&kernel, "../x").unwrap_err().ends_with("is no name of a function"));
    fs::rename(bench.tree(), bench.place("moved")).unwrap();
    let moved = Kernel { digest: "moved".into(), ..kernel.clone() };
    assert!(
        lines(&moved, "twice").unwrap_err().starts_with("its source is no longer in the cache")
    );
    let older = Kernel { source: None, digest: "other".into(), ..kernel.clone() };
    assert!(lines(&older, "twice").unwrap_err().contains("an older version of Faultline"));
    assert_eq!(bench.cache().source_file(&older, "mm/c.c").unwrap(), None);
}
