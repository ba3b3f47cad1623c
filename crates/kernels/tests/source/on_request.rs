//! Tests of what is made only on request: debug information, modules, and a configuration without a build.

use std::fs;
use std::path::Path;

use kernels::{Files, Request, Source};
use model::{Build, Kernel};

use super::{Bench, fixture};

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
    assert!(kernel.origin.ends_with("; a name only"), "{}", kernel.origin);
}
