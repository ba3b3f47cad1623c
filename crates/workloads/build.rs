//! Lists the built-in workloads: each manifest in `workloads/` has a file or directory of its name in
//! `src/`.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (manifests, programs) = (root.join("../../workloads"), root.join("src"));
    println!("cargo::rerun-if-changed={}", manifests.display());
    println!("cargo::rerun-if-changed={}", programs.display());
    let files = fs::read_dir(manifests).unwrap().map(|entry| entry.unwrap().path());
    let manifests = files.filter(|file| file.extension().is_some_and(|it| it == "toml"));
    let mut names: Vec<String> =
        manifests.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    let mut text = String::new();
    for name in &names {
        let file = programs.join(name).with_extension("rs");
        let file = if file.exists() { file } else { programs.join(name).join("mod.rs") };
        text += &format!("#[path = {file:?}]\nmod {name};\n");
    }
    text += &format!("workloads! {{ {} }}\n", names.join(" "));
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("workloads.rs"), text).unwrap();
}
