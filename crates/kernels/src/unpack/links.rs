//! Keeps the symbolic links of an unpacked package within its directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error::Doing;

/// Makes absolute links lead into `root`, as if that were `/`, and removes links that lead out of it or nowhere.
pub(super) fn confine(root: &Path) -> Result<(), Error> {
    let root = root.canonicalize().doing("read", root)?;
    let links = links(&root)?;
    for link in &links {
        let to = fs::read_link(link).doing("read", link)?;
        if let Ok(below) = to.strip_prefix("/") {
            fs::remove_file(link).doing("replace", link)?;
            symlink(root.join(below), link).doing("replace", link)?;
        }
    }
    for link in &links {
        if !link.canonicalize().is_ok_and(|to| to.starts_with(&root)) {
            fs::remove_file(link).doing("remove", link)?;
        }
    }
    Ok(())
}

/// All symbolic links below a directory.
fn links(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut links, mut wanted) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = wanted.pop() {
        for entry in fs::read_dir(&directory).doing("list", &directory)? {
            let entry = entry.doing("list", &directory)?;
            let kind = entry.file_type().doing("read", &entry.path())?;
            if kind.is_dir() {
                wanted.push(entry.path());
            } else if kind.is_symlink() {
                links.push(entry.path());
            }
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_within_their_directory() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("usr/src/headers")).unwrap();
        fs::create_dir_all(root.join("lib/modules/6.1")).unwrap();
        fs::write(directory.path().join("secret"), "").unwrap();
        for (to, link) in [
            ("/usr/src/headers", "lib/modules/6.1/build"),
            ("../../../usr/src", "lib/modules/6.1/near"),
            ("build", "lib/modules/6.1/chain"),
            ("../secret", "out"),
            ("/../secret", "up"),
            ("/etc/passwd", "host"),
            ("loop", "loop"),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        confine(&root).unwrap();
        let real = |link: &str| root.join(link).canonicalize().unwrap();
        let root = root.canonicalize().unwrap();
        assert_eq!(real("lib/modules/6.1/build"), root.join("usr/src/headers"));
        assert_eq!(real("lib/modules/6.1/chain"), root.join("usr/src/headers"));
        assert_eq!(real("lib/modules/6.1/near"), root.join("usr/src"));
        for gone in ["out", "up", "host", "loop"] {
            assert!(!root.join(gone).is_symlink(), "{gone}");
        }
    }
}
