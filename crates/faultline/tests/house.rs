//! The crates' dependencies against the table in `docs/architecture.md`: imports go down only. No two files
//! of a crate need each other.

use std::collections::{BTreeMap, BTreeSet};
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

/// The code of each file below `directory` by its module, without comments and tests.
fn code(directory: &Path, inside: &str, modules: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let module = format!("{inside}::{name}");
        if path.is_dir() {
            code(&path, &module, modules);
        } else if path.extension().is_some_and(|it| it == "rs") && name != "tests" {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            modules.insert(module, text.lines().filter(is_code).collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Whether a letter can be in a path.
fn is_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

/// `code` with each path in braces written out: `a::{b, c}` as `a::b a::c`.
fn written_out(code: &str) -> String {
    let mut parts = code.split("::{");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (names, after) = part.split_once('}').unwrap();
        let before = text.rsplit(|letter| !is_path(letter)).next().unwrap().to_owned();
        text.truncate(text.len() - before.len());
        let paths = names.split(',').map(|name| format!(" {before}::{}", name.trim()));
        text.extend(paths);
        text.push_str(after);
    }
    text
}

/// The modules that `code` of `module` names by a path from the crate, from beside it or from inside it.
fn needed(module: &str, code: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let (above, _) = module.rsplit_once("::").unwrap();
    let code = written_out(code);
    let paths = code.split(|letter| !is_path(letter)).filter(|path| path.contains("::"));
    let absolute = paths.map(|path| match path.split_once("::").unwrap() {
        ("crate", _) => path.to_owned(),
        ("super", rest) => format!("{above}::{rest}"),
        _ => format!("{module}::{path}"),
    });
    let known = absolute.filter_map(|path| {
        let inside = |it: &&String| path == **it || path.starts_with(&format!("{it}::"));
        modules.keys().filter(inside).max_by_key(|it| it.len()).cloned()
    });
    known.filter(|it| it != module && it != above).collect()
}

/// Only `output` writes to standard output and standard error, escaped; exports, which can be binary, pass by.
#[test]
fn all_output_goes_through_one_place() {
    let mut modules = BTreeMap::new();
    code(&workspace().join("crates/faultline/src"), "crate", &mut modules);
    let writes = |code: &&String| {
        let own = code.replace("eprintln!", "").replace(".is_terminal()", "");
        ["println!", "print!", "stdout()", "stderr()", "dbg!"].iter().any(|it| own.contains(it))
    };
    let writing = modules.iter().filter(|(_, code)| writes(code)).map(|(module, _)| &**module);
    // `main` prints the help, which has no text of others, `progress` draws lines of escaped text.
    let known = ["crate::commands::export", "crate::main", "crate::output", "crate::progress"];
    assert_eq!(writing.collect::<Vec<_>>(), known);
}

/// The modules of the crate at `directory` that need each other, each with those that it needs, and how many
/// needs of a module there are.
fn circles(directory: &Path) -> (BTreeMap<String, BTreeSet<String>>, usize) {
    let mut modules = BTreeMap::new();
    code(&directory.join("src"), "crate", &mut modules);
    let needs = modules.iter();
    let needs = needs.map(|(module, code)| (module.clone(), needed(module, code, &modules)));
    let mut needs: BTreeMap<_, _> = needs.collect();
    let number = needs.values().map(BTreeSet::len).sum();
    // What needs nothing that is left is in no circle.
    while let Some(free) = needs.iter().find_map(|(module, needed)| {
        (!needed.iter().any(|it| needs.contains_key(it))).then(|| module.clone())
    }) {
        needs.remove(&free);
    }
    (needs, number)
}

#[test]
fn no_files_of_a_crate_need_each_other() {
    let mut all = 0;
    for entry in fs::read_dir(workspace().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let (needs, number) = circles(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(needs.is_empty(), "circles of {name} are in {needs:#?}");
        all += number;
    }
    assert!(all > 500, "{all}");
}
