//! The directories for a user's files.

use std::ffi::OsString;
use std::path::PathBuf;

/// A base directory of the user by the XDG Base Directory Specification: the one that its variable names, or `usual`
/// below the home directory. Relative paths are ignored. `None` if neither variable has an absolute path.
pub fn base_directory(
    xdg: Option<OsString>,
    home: Option<OsString>,
    usual: &str,
) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    xdg.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_directories_follow_the_specification() {
        let at = |xdg: Option<&str>, home: Option<&str>| {
            base_directory(xdg.map(Into::into), home.map(Into::into), ".local/share")
        };
        let usual = Some("/home/mel/.local/share".into());
        assert_eq!(at(Some("/data"), Some("/home/mel")), Some("/data".into()));
        assert_eq!(at(None, Some("/home/mel")), usual);
        assert_eq!(at(Some("relative"), Some("/home/mel")), usual);
        assert_eq!(at(Some(""), Some("/home/mel")), usual);
        assert_eq!(at(None, None), None);
        assert_eq!(at(None, Some("")), None);
        assert_eq!(at(Some("relative"), Some("also")), None);
    }
}
