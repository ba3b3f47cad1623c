//! Reads and writes the lock file: the exact packages of a user space, as TOML.

use model::{UserspaceLock, date};

use crate::form;
use crate::form::excerpt::{brief, quoted};

/// Parses the text of a lock file. The error says what is wrong; the caller adds the file's name.
pub fn read(text: &str) -> Result<UserspaceLock, String> {
    let mut lock: UserspaceLock = form::read(text).map_err(|mistake| quoted(&mistake, text))?;
    kernels::settle_lock(&mut lock).map_err(|error| brief(&error))?;
    Ok(lock)
}

/// The text of a lock file, in ASCII.
pub fn write(lock: &UserspaceLock) -> String {
    let when = match lock.day() {
        Some(day) => format!("as Debian had them on {}", date(day)),
        None => "from an unknown day".to_owned(),
    };
    let head = format!(
        "# The packages of a user space for guests, {when}.\n\
         # To use it, an experiment names this file: userspace = \"FILE\"\n\n"
    );
    head + &toml::to_string(lock).expect("a lock has only plain data")
}

#[cfg(test)]
pub(crate) mod tests {
    use model::LockedPackage;
    use proptest::prelude::*;

    use super::*;

    pub fn lock() -> UserspaceLock {
        UserspaceLock {
            architecture: "amd64".into(),
            suites: vec!["bookworm".into(), "bookworm-security".into()],
            taken: 1_700_000_000,
            packages: vec![LockedPackage {
                name: "fio".into(),
                version: "3.33-3".into(),
                file: "debian/pool/main/f/fio/fio_3.33-3_amd64.deb".into(),
                size: 537_684,
                sha256: "dc79dae895125512620fcd16465f1a19edec8f2d73736fe76a9fbf8195cfb745".into(),
            }],
        }
    }

    #[test]
    fn a_lock_is_written_and_read_back() {
        let text = write(&lock());
        insta::assert_snapshot!(text, @r#"
        # The packages of a user space for guests, as Debian had them on 2023-11-14.
        # To use it, an experiment names this file: userspace = "FILE"

        architecture = "amd64"
        suites = ["bookworm", "bookworm-security"]
        taken = 1700000000

        [[package]]
        name = "fio"
        version = "3.33-3"
        file = "debian/pool/main/f/fio/fio_3.33-3_amd64.deb"
        size = 537684
        sha256 = "dc79dae895125512620fcd16465f1a19edec8f2d73736fe76a9fbf8195cfb745"
        "#);
        assert_eq!(read(&text), Ok(lock()));
        let undated = UserspaceLock { taken: 0, ..lock() };
        let text = write(&undated);
        let head = text.lines().next().unwrap();
        let expected = "for guests, from an unknown day.";
        assert!(head.ends_with(expected), "{head}");
        assert_eq!(read(&text), Ok(undated));
    }

    #[test]
    fn an_invalid_lock_is_an_error() {
        let told = |from: &str, to: &str| read(&write(&lock()).replace(from, to)).unwrap_err();
        assert!(told("sha256", "sha1").contains("unknown field `sha1`"));
        assert!(told("amd64\"\nsuites", "arm64\"\nsuites").starts_with("it is for \"arm64\""));
        assert_eq!(told("debian/pool", "../pool"), "the file of \"fio\" is invalid");
        let long = told("amd64\"\nsuites", &format!("{}\"\nsuites", "\u{301}".repeat(9_000)));
        assert!(long.chars().count() < 1100 && long.ends_with("..."), "{long}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,80}", from in 0_usize..400) {
            let whole = write(&lock());
            let _ = read(&text);
            let _ = read(&whole.replacen(&whole[from.min(whole.len())..], &text, 1));
        }
    }
}
