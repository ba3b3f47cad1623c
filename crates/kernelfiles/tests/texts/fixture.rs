//! Texts of real kernels: `fixtures/KERNEL/SOURCE[-PART].txt`.

use std::fs;
use std::path::PathBuf;

use model::Source;

/// One file as one kernel printed it.
pub struct Fixture {
    pub path: PathBuf,
    pub source: Source,
    pub part: String,
    pub text: String,
}

/// Every fixture. To add one, add a file.
pub fn fixtures() -> Vec<Fixture> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let kernels = entries(&root).into_iter();
    kernels.flat_map(|kernel| entries(&kernel)).map(read).collect()
}

fn entries(directory: &PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn read(path: PathBuf) -> Fixture {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let of_source = |source: Source| {
        let rest = name.strip_prefix(source.name())?;
        let part = rest.strip_prefix('-').or(rest.is_empty().then_some(""))?;
        Some((source, part.to_owned()))
    };
    let known = Source::ALL.iter().copied().find_map(of_source);
    let (source, part) = known.unwrap_or_else(|| panic!("{} is of no source", path.display()));
    let text = fs::read_to_string(&path).unwrap();
    Fixture { path, source, part, text }
}
