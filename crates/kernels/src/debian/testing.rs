//! A small archive in a directory, for tests.

use std::fs;
use std::path::Path;
use std::process::Command;

use model::Architecture;

use super::archive::Archive;
use super::suite::Suite;
use crate::assemble::digest;

/// The sources.list(5) of the archive in `directory`. It is not signed.
pub fn sources(directory: &Path) -> String {
    format!("deb [trusted=yes target=Packages] copy:{} ./\n", directory.join("archive").display())
}

/// Makes an archive in `directory`, which replaces an earlier one. Each package has a name, a version,
/// additional fields, and the content of its only file.
pub fn archive(directory: &Path, packages: &[(&str, &str, &str, &str)]) -> Archive {
    let place = directory.join("archive");
    for old in [&place, &directory.join("made")] {
        let _ = fs::remove_dir_all(old);
    }
    fs::create_dir_all(place.join("pool")).unwrap();
    let mut index = String::new();
    for (name, version, fields, file) in packages {
        let tree = directory.join("made").join(name);
        let path = tree.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: me <me@here>\n\
             Description: made up\n{fields}"
        );
        fs::create_dir_all(tree.join("DEBIAN")).unwrap();
        fs::write(tree.join("DEBIAN/control"), &control).unwrap();
        let deb = place.join(format!("pool/{name}_{version}.deb"));
        // Reproducible, so that the bytes are the same each time.
        let made = Command::new("dpkg-deb")
            .env("SOURCE_DATE_EPOCH", "1")
            .args(["--root-owner-group", "-Zgzip", "-b"])
            .args([&tree, &deb])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let bytes = fs::read(&deb).unwrap();
        let digest = digest(&bytes);
        let size = bytes.len();
        index += &format!(
            "{control}Filename: pool/{name}_{version}.deb\nSize: {size}\nSHA256: {digest}\n\n"
        );
    }
    fs::write(place.join("Packages"), index).unwrap();
    let (apt, sources) = (directory.join("apt"), sources(directory));
    let suite = Suite::with_sources(&apt, "fake", &sources, Architecture::X86_64).unwrap();
    Archive {
        suite,
        suites: vec!["fake".into()],
        mirror: format!("copy:{}", directory.display()),
        snapshot: format!("copy:{}/past", directory.display()),
    }
}
