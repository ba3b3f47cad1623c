//! The crates' dependencies against the table in `docs/architecture.md`: imports go down only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Layers with a name instead of a number: crates that run in a guest or in QEMU.
const NAMED: u32 = 2;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The layer of each crate, as the table says: `| 3 | `name` | ...`.
fn layers(table: &str) -> BTreeMap<String, u32> {
    let mut layers = BTreeMap::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, layer, name, _, _, _] = cells[..] else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|it| it.strip_suffix('`')) else {
            continue;
        };
        layers.insert(name.to_owned(), layer.parse().unwrap_or(NAMED));
    }
    layers
}

/// The dependencies in a manifest, without those of tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let table: toml::Table = toml::from_str(manifest).unwrap();
    let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
    dependencies.into_iter().flat_map(toml::Table::keys).cloned().collect()
}

#[test]
fn imports_go_down_only() {
    let map = fs::read_to_string(workspace().join("docs/architecture.md")).unwrap();
    let layers = layers(&map);
    let mut crates = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(workspace().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let layer = layers.get(name).unwrap_or_else(|| panic!("the table lacks {name}"));
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        for dependency in dependencies(&manifest) {
            if layers.get(&dependency).is_some_and(|below| below >= layer) {
                wrong.push(format!("{name} imports {dependency}"));
            }
        }
        crates += 1;
    }
    assert_eq!(crates, layers.len(), "crates in the table: {layers:?}");
    assert!(wrong.is_empty(), "{wrong:?}");
}
