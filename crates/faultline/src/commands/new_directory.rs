//! Writes files into a directory of their own.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::without_path;
use crate::failure::Failure;

/// Refuses a directory that has files already, or a path that is something else. `option` is the option that names it.
pub fn check(option: &str, directory: &Path) -> Result<(), Failure> {
    let wrong = |problem: &str| {
        let directory = directory.display();
        Failure::Usage(format!("{option} {directory}: {problem}: name a new or an empty directory"))
    };
    match fs::read_dir(directory).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => Err(wrong("it is not empty")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match tempfile::tempdir_in(existing(directory)) {
                Ok(_) => Ok(()),
                Err(error) => {
                    Err(wrong(&format!("it cannot be created ({})", without_path(error))))
                }
            }
        }
        Err(error) => Err(wrong(&error.to_string())),
    }
}

/// The closest directory above a path that exists.
fn existing(directory: &Path) -> &Path {
    let above = directory.ancestors().skip(1).find(|it| it.exists());
    above.unwrap_or(Path::new("."))
}

/// Writes files, each with its name and content. The directory appears with all of them or not at all. It must not exist
/// yet, or be empty.
pub fn write(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Host(format!("{}: {error}", directory.display()));
    write_all(directory, files).map_err(failed)
}

fn write_all(directory: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    // The directory above `.` is known by its absolute path alone.
    let directory = &std::path::absolute(directory)?;
    let above = directory.parent().filter(|it| !it.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    fs::create_dir_all(above)?;
    let mut builder = tempfile::Builder::new();
    // These are the usual permissions of a new directory; the umask applies.
    let builder = builder.permissions(fs::Permissions::from_mode(0o777));
    let new = builder.tempdir_in(above).map_err(without_path)?;
    for (name, content) in files {
        fs::write(new.path().join(name), content)?;
    }
    // This replaces an empty directory only.
    fs::rename(new.path(), directory)?;
    let _ = new.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_appears_with_all_files_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| (name.to_owned(), format!("{name}\n").into_bytes());
        let names = |directory: &Path| {
            let files = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name());
            let mut names: Vec<_> = files.map(|it| it.into_string().unwrap()).collect();
            names.sort();
            names
        };
        let new = place.path().join("a/b");
        check("--attach", &new).unwrap();
        write(&new, &[file("x"), file("y")]).unwrap();
        assert_eq!(names(&new), ["x", "y"]);
        assert_eq!(fs::read_to_string(new.join("x")).unwrap(), "x\n");

        // It has files now, so it is refused and stays as it is.
        assert!(matches!(check("--attach", &new), Err(Failure::Usage(_))));
        assert!(write(&new, &[file("z")]).is_err());
        assert_eq!(names(&new), ["x", "y"]);

        let empty = place.path().join("empty");
        fs::create_dir(&empty).unwrap();
        check("--attach", &empty).unwrap();
        // A name that is no file's: nothing is written.
        assert!(write(&empty, &[file("x"), ("y/z".into(), Vec::new())]).is_err());
        assert_eq!(names(&empty), Vec::<String>::new());
        write(&empty, &[file("x")]).unwrap();
        assert_eq!(names(&empty), ["x"]);
        assert_eq!(names(place.path()), ["a", "empty"]);

        let text = place.path().join("text");
        fs::write(&text, "").unwrap();
        assert!(matches!(check("--attach", &text), Err(Failure::Usage(_))));
    }
}
