//! The tables of keys in `docs/` against the parsers: both have the same keys, a key must be given where the
//! page says so, and a default on the page changes nothing when it is written into a file.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use model::{Experiment, Manifest};
use plan::file;
use toml::{Table, Value};

/// No key has this name.
const UNKNOWN: &str = "zzz";
const REQUIRED: &str = "must be given";

/// Experiments that together have every table. Each key applies in one of them at least.
const EXPERIMENTS: [&str; 7] = [
    "name = 'x'\nboots = 'auto'\nsampler = {}\n\
     machine = { cpus = 2, memory = '1G', disk = [{ size = '1G' }, { size = '1G' }], limits = {},\
     swap = { kind = 'disk' } }\n\
     variant = [{ kernel = '6.1' }, { kernel = '6.12' }]\nworkload = [{ name = 'mprotect' }]\n",
    "name = 'x'\nmode = 'exact'\nprofile = {}\n\
     machine = { cpus = 2, memory = '1G', disk = [{ size = '1G', filesystem = 'ext4' }],\
     swap = { kind = 'zram', size = '1G' } }\n\
     variant = [{ kernel = '6.1' }]\nworkload = [{ name = 'mprotect' }]\n",
    "name = 'x'\nboots = 3\ntree = '.'\nbuild = {}\nmachine = { node = [{ memory = '1G' }, { memory = '1G', cpus = '0' }] }\n\
     variant = [{ kernel = 'git:v6.1', build = {} }]\nworkload = [{ name = 'mprotect' }]\n",
    "name = 'x'\nboots = 3\nmachine = { cpus = 2, memory = '1G' }\nmatrix = { kernel = ['6.1'] }\n\
     workload = [{ name = 'mprotect' }]\n",
    "name = 'x'\nboots = 3\nmachine = { cpus = 2 }\nsweep = { memory = ['1G', '2G'] }\n\
     variant = [{ kernel = '6.1' }]\nworkload = [{ name = 'mprotect' }]\n",
    "name = 'x'\nboots = 3\nmachine = { cpus = 2, memory = '1G' }\nsweep = { parameters = { rounds = [1, 2] } }\n\
     variant = [{ kernel = '6.1' }]\nworkload = [{ name = 'mprotect' }]\n",
    "name = 'x'\nboots = 3\nmachine = { cpus = 2, memory = '1G' }\nculprit = { good = 'v6.1', bad = 'v6.4' }\n\
     variant = [{ kernel = '6.1' }]\nworkload = [{ name = 'mprotect' }]\n",
];
const MANIFESTS: [&str; 2] = [
    "name = 'x'\ndescription = ''\ncommand = ['true']\n\
     metrics = [{ name = 'a', unit = 's', mean = 'amean' }]\n",
    "name = 'x'\ndescription = ''\ncommand = []\nmetrics = []\n\
     parameters = { NAME = { default = '', kind = 'text' } }\n",
];

/// A row of a page.
struct Row {
    /// The table of the file that has the key, such as `machine.disk`; empty for the file itself.
    table: String,
    key: String,
    /// Words; defaults that can be checked are TOML in backticks.
    default: String,
}

/// The rows of keys on a page. A heading such as `[machine]` names their table.
fn rows(page: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let (mut table, mut rows) = (String::new(), Vec::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.trim_matches('`');
            table =
                if name.starts_with('[') { name.replace(['[', ']'], "") } else { String::new() };
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, key, _, default, _, _] = cells[..] else { continue };
        let Some(key) = key.strip_prefix('`').and_then(|key| key.strip_suffix('`')) else {
            continue;
        };
        rows.push(Row { table: table.clone(), key: key.into(), default: default.into() });
    }
    rows
}

/// The table of this name, or the first one of several.
fn inner<'a>(file: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    name.split('.').filter(|part| !part.is_empty()).try_fold(file, |table, part| {
        match table.get_mut(part)? {
            Value::Array(tables) => tables.first_mut()?.as_table_mut(),
            value => value.as_table_mut(),
        }
    })
}

/// A page, files with every table on it, and their parser.
struct Page<'a, T> {
    name: &'a str,
    files: &'a [&'a str],
    read: fn(&str) -> Result<T, String>,
}

impl<T: PartialEq + Debug> Page<'_, T> {
    /// The files with this table, before and after a change to it, as they are read.
    fn change(&self, table: &str, change: impl Fn(&mut Table)) -> Vec<[Result<T, String>; 2]> {
        let changed = self.files.iter().filter_map(|file| {
            let mut new: Table = toml::from_str(file).unwrap();
            change(inner(&mut new, table)?);
            Some([(self.read)(file), (self.read)(&toml::to_string(&new).unwrap())])
        });
        changed.collect()
    }

    /// The keys that the parser names when it meets one that it does not know.
    fn known(&self, table: &str) -> Vec<String> {
        let read = self.change(table, |table| drop(table.insert(UNKNOWN.into(), 1.into())));
        let [_, Err(error)] = &read[0] else { panic!("{}: {table}: {read:?}", self.name) };
        let (_, known) = error.split_once(", expected ").unwrap_or_else(|| panic!("{error}"));
        let known = known.lines().next().unwrap_or_default();
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn check(&self) {
        let rows = rows(self.name);
        for group in rows.chunk_by(|a, b| a.table == b.table) {
            let table = &*group[0].table;
            let mut keys: Vec<&str> = group.iter().map(|row| &*row.key).collect();
            let mut known = self.known(table);
            keys.sort_unstable();
            known.sort_unstable();
            assert_eq!(keys, known, "{}: {table}: the page (left), the parser (right)", self.name);
        }
        for Row { table, key, default } in &rows {
            let place = format!("{}: {table}: {key}: {default}", self.name);
            let read = self.change(table, |table| drop(table.remove(key)));
            match default.starts_with(REQUIRED) {
                true => assert!(read.iter().any(|[_, without]| without.is_err()), "{place}"),
                false => assert!(read.iter().any(|[_, without]| without.is_ok()), "{place}"),
            }
            for value in default.split('`').skip(1).step_by(2) {
                let Ok(value) = toml::from_str::<Table>(&format!("value = {value}")) else {
                    continue;
                };
                let value = &value["value"];
                let read =
                    self.change(table, |table| drop(table.insert(key.clone(), value.clone())));
                let is_same =
                    |[without, with]: &[Result<T, String>; 2]| with.is_ok() && without == with;
                assert!(read.iter().any(is_same), "{place}: {value} is not the default");
            }
        }
    }
}

#[test]
fn the_page_has_every_key_of_an_experiment_file() {
    let read = |text: &str| -> Result<Experiment, String> {
        let request = file::parse(Path::new("x.toml"), text, None);
        request.map(|it| it.experiment).map_err(|error| error.to_string())
    };
    Page { name: "experiment-file.md", files: &EXPERIMENTS, read }.check();
}

#[test]
fn the_page_has_every_key_of_a_manifest() {
    let read = |text: &str| -> Result<Manifest, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    };
    Page { name: "own-workload.md", files: &MANIFESTS, read }.check();
}
