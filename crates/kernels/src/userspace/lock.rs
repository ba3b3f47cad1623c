//! Validates locks, because apt and paths use their contents.

use model::{LockedPackage, UserspaceLock};

use crate::arch::DEBIAN;
use crate::debian::{is_name, is_pin, letters};

/// The largest number of packages of a lock. No workload needs more.
const MOST_PACKAGES: usize = 5000;
/// The largest package: three files, each with a size of ten digits in ar(5) (deb(5)).
const LARGEST: u64 = 3 * 10_u64.pow(10);

/// Sorts the packages of a lock by name. Fails when it is not a valid lock for guests. The caller adds the
/// file's name.
pub fn settle(lock: &mut UserspaceLock) -> Result<(), String> {
    let UserspaceLock { architecture, suites: _, taken: _, packages } = lock;
    if architecture != DEBIAN {
        return Err(format!("it is for {architecture:?}, but guests are {DEBIAN}"));
    }
    if packages.is_empty() || packages.len() > MOST_PACKAGES {
        return Err(format!("it has {} packages, not 1 to {MOST_PACKAGES}", packages.len()));
    }
    for package in packages.iter() {
        if let Some(what) = wrong(package) {
            return Err(format!("the {what} of {:?} is invalid", package.name));
        }
    }
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    match packages.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(format!("it has {} twice", pair[0].name)),
        None => Ok(()),
    }
}

/// The part of a package that is invalid.
fn wrong(package: &LockedPackage) -> Option<&'static str> {
    let LockedPackage { name, version, file, size, sha256 } = package;
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']);
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match () {
        () if !is_name(name) => Some("name"),
        () if !is_pin(name, version) => Some("version"),
        () if !letters(file, ".+-~:_/") || !file.split('/').all(is_plain) => Some("file"),
        () if *size > LARGEST => Some("size"),
        () if sha256.len() != 64 || !sha256.bytes().all(is_hex) => Some("SHA-256"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lock() -> UserspaceLock {
        let package = |name: &str| LockedPackage {
            name: name.into(),
            version: "1:3.33-3+b1".into(),
            file: format!("debian/pool/main/f/fio/{name}_3.33-3+b1_amd64.deb"),
            size: 1,
            sha256: "0123456789abcdef".repeat(4),
        };
        UserspaceLock {
            architecture: "amd64".into(),
            suites: vec!["bookworm".into()],
            taken: 1_700_000_000,
            packages: ["libaio1", "fio"].map(package).into(),
        }
    }

    fn told(change: impl Fn(&mut UserspaceLock)) -> String {
        let mut lock = lock();
        change(&mut lock);
        settle(&mut lock).unwrap_err()
    }

    #[test]
    fn packages_are_sorted_by_name() {
        let mut lock = lock();
        settle(&mut lock).unwrap();
        assert_eq!(lock.versions(), ["fio=1:3.33-3+b1", "libaio1=1:3.33-3+b1"]);
    }

    #[test]
    fn an_invalid_lock_is_an_error() {
        assert!(told(|it| it.architecture = "arm64".into()).starts_with("it is for \"arm64\""));
        assert!(told(|it| it.packages.clear()).starts_with("it has 0 packages"));
        assert_eq!(told(|it| it.packages[0].name = "fio".into()), "it has fio twice");
        for file in
            ["", "/etc/passwd", "debian/../../x", "debian//x", "a b", "x\n", "d/-o", "d/x?y"]
        {
            let said = told(|it| it.packages[0].file = file.into());
            assert_eq!(said, "the file of \"libaio1\" is invalid", "{file}");
        }
        for version in ["", "1 2", "1_2", "-o Dir=\"\"", "1\u{e9}"] {
            let said = told(|it| it.packages[1].version = version.into());
            assert_eq!(said, "the version of \"fio\" is invalid", "{version}");
        }
        for digest in ["", "00", &"G".repeat(64), &"A".repeat(64)] {
            let said = told(|it| it.packages[1].sha256 = digest.into());
            assert_eq!(said, "the SHA-256 of \"fio\" is invalid");
        }
        for size in [LARGEST + 1, u64::MAX / 2] {
            let said = told(|it| it.packages[1].size = size);
            assert_eq!(said, "the size of \"fio\" is invalid");
        }
        assert!(LARGEST.checked_mul(MOST_PACKAGES as u64).is_some());
        assert_eq!(told(|it| it.packages[1].name = "-x".into()), "the name of \"-x\" is invalid");
    }

    proptest! {
        #[test]
        fn a_valid_lock_has_no_options_and_stays_below_the_mirror(
            name in "[a-z.+-]{0,4}|\\PC{0,6}",
            version in "[0-9.~:-]{0,4}|\\PC{0,6}",
            file in "[a-z./-]{0,12}|\\PC{0,6}",
        ) {
            let mut lock = lock();
            lock.packages[0].name = name.clone();
            lock.packages[0].version = version;
            lock.packages[0].file = file.clone();
            if settle(&mut lock).is_ok() {
                prop_assert!(!name.starts_with('-') && !name.contains(['=', '/', ' ']));
                prop_assert!(!file.starts_with('/') && file.split('/').all(|part| part != ".."));
            }
        }
    }
}
