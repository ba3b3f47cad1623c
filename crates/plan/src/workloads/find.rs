//! Where workloads are found: the built-in ones, and the user's manifests.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use model::{Manifest, Pinned, base_directory};

use super::{WorkloadError, mistakes};
use crate::form::text;
use crate::workloads::binaries;

/// The built-in manifests, the files in `workloads/`.
const BUILT_IN: &[&str] = include!(concat!(env!("OUT_DIR"), "/manifests.rs"));

/// A workload that a name finds.
#[derive(Debug)]
pub struct Known {
    /// The file of its manifest; none if it is built in.
    pub file: Option<PathBuf>,
    /// Its name: for a user's manifest that of the file.
    pub name: String,
    /// Its manifest, or why it cannot be used.
    pub manifest: Result<Manifest, WorkloadError>,
}

/// The manifests of all built-in workloads.
pub fn built_in() -> Vec<Manifest> {
    let read = |text: &str| toml::from_str(text).expect("a manifest of our own, tested");
    BUILT_IN.iter().map(|text| read(text)).collect()
}

/// The workload with this name: a built-in one, or NAME.toml in `workloads` below `directory` or in
/// `$XDG_CONFIG_HOME/faultline/workloads`. Fails when there is none, its manifest cannot be used, or another manifest of
/// the user's has the name of a built-in one.
pub fn find(name: &str, directory: &Path) -> Result<Manifest, WorkloadError> {
    let mut files = directories(directory).into_iter().map(|it| it.join(format!("{name}.toml")));
    if let Some(manifest) = built_in().into_iter().find(|manifest| manifest.name == name) {
        let is_other = |file: &PathBuf| {
            let text = file.is_file().then(|| fs::read_to_string(file).unwrap_or_default());
            text.is_some_and(|text| !BUILT_IN.contains(&&*text))
        };
        return match files.find(is_other) {
            Some(file) => Err(WorkloadError::Manifest {
                problem: format!("{name} is built in, and {} has this name too", file.display()),
                hint: format!("name the file as the workload ({}), or rename it", file.display()),
            }),
            None => Ok(manifest),
        };
    }
    if name.contains('/') {
        return Err(WorkloadError::NoManifest { path: name.to_owned() });
    }
    match files.find(|file| file.is_file()) {
        Some(file) => called(name, &file),
        None => Err(WorkloadError::Unknown {
            name: name.into(),
            known: all(directory).into_iter().map(|known| known.name).collect(),
        }),
    }
}

/// The workload that a command line names: by its name, or by the file of its manifest.
pub fn named(name: &str) -> Result<Manifest, WorkloadError> {
    match name {
        file if file.ends_with(".toml") => read(Path::new(file)),
        name => find(name, Path::new("")),
    }
}

/// Every workload that [`find`] finds, the built-in ones first.
pub fn all(directory: &Path) -> Vec<Known> {
    let own = |manifest: Manifest| Known {
        file: None,
        name: manifest.name.clone(),
        manifest: Ok(manifest),
    };
    let mut all: Vec<Known> = built_in().into_iter().map(own).collect();
    for directory in directories(directory) {
        for (name, file) in manifests(&directory) {
            if all.iter().all(|known| known.name != name) {
                let manifest = called(&name, &file);
                all.push(Known { file: Some(file), name, manifest });
            }
        }
    }
    all
}

/// The directories of the user's manifests, in the order in which a name is looked up.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let own = user_directory(env::var_os("XDG_CONFIG_HOME"), env::var_os("HOME"));
    [Some(directory.join("workloads")), own].into_iter().flatten().collect()
}

/// The manifest in a file that must have the workload's name.
fn called(name: &str, file: &Path) -> Result<Manifest, WorkloadError> {
    let manifest = read(file)?;
    match manifest.name == name {
        true => Ok(manifest),
        false => Err(WorkloadError::Manifest {
            problem: format!("{}: its workload has the name `{}`", file.display(), manifest.name),
            hint: format!("name the file {}.toml, or the workload {name}", manifest.name),
        }),
    }
}

/// The names and files of the manifests in a directory, sorted. A directory that does not exist has none.
fn manifests(directory: &Path) -> Vec<(String, PathBuf)> {
    let files = fs::read_dir(directory).into_iter().flatten();
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let is_manifest =
        |file: &Path| file.is_file() && file.extension().is_some_and(|it| it == "toml");
    let files = files.filter(|file| is_manifest(file));
    let name = |file: PathBuf| Some((file.file_stem()?.to_str()?.to_owned(), file));
    let mut manifests: Vec<_> = files.filter_map(name).collect();
    manifests.sort();
    manifests
}

/// The user's own workloads by the XDG base directory specification, which ignores relative paths.
fn user_directory(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    Some(base_directory(xdg, home, ".config")?.join("faultline/workloads"))
}

/// Reads the manifest in a user's file. The path of its program becomes relative to the current directory.
/// Fails when it cannot be read or has an invalid name.
pub fn read(path: &Path) -> Result<Manifest, WorkloadError> {
    let wrong = |problem: String, hint: String| WorkloadError::Manifest {
        problem: format!("{}: {}", path.display(), problem.trim_end()),
        hint,
    };
    let text = text::read(path).map_err(|error| wrong(error.to_string(), String::new()))?;
    let mut manifest = mistakes::parse(&text).map_err(|found| match &found[..] {
        [(problem, hint)] => wrong(problem.clone(), hint.clone()),
        all => {
            let separator = |hint: &str| if hint.is_empty() { "" } else { ": " };
            let line = |(it, hint): &(String, String)| format!("\n  {it}{}{hint}", separator(hint));
            let lines: String = all.iter().map(line).collect();
            wrong(format!("{} mistakes{lines}", all.len()), String::new())
        }
    })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    manifest.program = manifest.program.map(|program| directory.join(program));
    Ok(manifest)
}

/// Takes the program that a user's manifest names. Fails when it is not a file.
pub fn take_program(manifest: &mut Manifest) -> Result<Option<Pinned>, WorkloadError> {
    let wrong = |(problem, hint)| WorkloadError::Manifest { problem, hint };
    manifest.program.take().map(|path| binaries::program(&path).map_err(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest of a workload with this name.
    pub fn manifest(name: &str) -> String {
        format!(
            "name = \"{name}\"\ndescription = \"\"\ncommand = [\"x\"]\nprogram = \"bin/x\"\nmetrics = []\n"
        )
    }

    #[test]
    fn manifests_are_found_by_name_and_by_file() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let place = |name: &str| here.join("workloads").join(name);
        fs::create_dir_all(place("bin")).unwrap();
        fs::write(place("reader.toml"), manifest("reader")).unwrap();
        fs::write(place("other.toml"), manifest("reader")).unwrap();
        fs::write(place("broken.toml"), "nam = 1").unwrap();
        // A manifest with a built-in name is refused, unless it is the built-in one.
        fs::write(place("truncate.toml"), "").unwrap();
        let own = BUILT_IN.iter().find(|it| it.starts_with("name = \"mprotect\"")).unwrap();
        fs::write(place("mprotect.toml"), own).unwrap();

        let mut found = find("reader", here).unwrap();
        assert_eq!(found.program, Some(place("bin/x")));
        assert_eq!(found, named(place("reader.toml").to_str().unwrap()).unwrap());
        let program = take_program(&mut found).unwrap().unwrap();
        assert_eq!((program.name, found.program), (place("bin/x").display().to_string(), None));
        let refused = |name: &str| {
            let error = find(name, here).unwrap_err();
            format!("{error}: {}", error.hint())
        };
        let other = "its workload has the name `reader`: name the file reader.toml";
        assert!(refused("other").contains(other), "{}", refused("other"));
        assert!(refused("broken").contains("did you mean `name`?"), "{}", refused("broken"));
        assert!(refused("readr").ends_with("did you mean `reader`?"), "{}", refused("readr"));
        assert!(
            refused("truncate").contains("truncate is built in, and "),
            "{}",
            refused("truncate")
        );
        assert!(!find("mprotect", here).unwrap().metrics.is_empty());
        fs::create_dir(place("bin/x")).unwrap();
        assert!(take_program(&mut find("reader", here).unwrap()).is_err());

        let program = named("./mytest.sh").unwrap_err();
        assert!(matches!(program, WorkloadError::NoManifest { .. }), "{program}");
        let names = all(here).into_iter().map(|known| known.name);
        assert!(
            names.collect::<Vec<_>>().ends_with(&["broken", "other", "reader"].map(str::to_owned))
        );
    }

    #[test]
    fn the_directory_of_the_user_follows_the_specification() {
        let at = |xdg: &str, home: &str| user_directory(Some(xdg.into()), Some(home.into()));
        assert_eq!(at("/x", "/home/me"), Some("/x/faultline/workloads".into()));
        assert_eq!(at("x", "/home/me"), Some("/home/me/.config/faultline/workloads".into()));
        assert_eq!(at("x", "me"), None);
    }
}
