//! An archive of a few packages, in a directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

use super::suite::Suite;

/// The sources.list(5) of the archive in `directory`. It is not signed.
pub fn sources(directory: &Path) -> String {
    format!("deb [trusted=yes target=Packages] copy:{} ./\n", directory.join("archive").display())
}

/// An archive of packages, each by name, version, further fields, and the one file that is in it, all in
/// `directory`; and a suite to read it.
pub fn archive(directory: &Path, packages: &[(&str, &str, &str, &str)]) -> Suite {
    let place = directory.join("archive");
    fs::create_dir(&place).unwrap();
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
        let deb = place.join(format!("{name}.deb"));
        let made = Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zgzip", "-b"])
            .args([&tree, &deb])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let bytes = fs::read(&deb).unwrap();
        let digest = Sha256::digest(&bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let size = bytes.len();
        index += &format!("{control}Filename: ./{name}.deb\nSize: {size}\nSHA256: {digest}\n\n");
    }
    fs::write(place.join("Packages"), index).unwrap();
    Suite::with_sources(&directory.join("apt"), "fake", &sources(directory)).unwrap()
}
