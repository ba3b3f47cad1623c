//! Lists the built-in manifests, the files in `workloads/`.

use std::path::Path;
use std::{env, fs};

fn main() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    println!("cargo::rerun-if-changed={}", directory.display());
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut manifests: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|it| it == "toml")).collect();
    manifests.sort();
    let texts: Vec<String> =
        manifests.iter().map(|file| format!("include_str!({file:?})")).collect();
    let list = Path::new(&env::var("OUT_DIR").unwrap()).join("manifests.rs");
    fs::write(list, format!("&[{}]", texts.join(", "))).unwrap();
}
