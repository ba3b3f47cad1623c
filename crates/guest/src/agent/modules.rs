//! Loads kernel modules. Which, in which order, and their decompression are the host's work.

use std::fs::File;
use std::io;

use rustix::io::Errno;
use rustix::system::finit_module;

use crate::reason;

/// A module that can't be loaded.
#[derive(Debug, thiserror::Error)]
#[error("module {path} cannot be loaded ({}); the kernel's log may say more", reason(.error))]
pub struct ModuleError {
    path: String,
    error: io::Error,
}

/// Loads the module in the file `path`. One that is there already is fine.
///
/// # Errors
/// When there is no such file, or the kernel refuses it.
pub fn load(path: &str) -> Result<(), ModuleError> {
    let failed = |error| ModuleError { path: path.into(), error };
    let file = File::open(path).map_err(failed)?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_named() {
        let error = load("/nonexistent/xfs.ko").unwrap_err().to_string();
        let expected = "module /nonexistent/xfs.ko cannot be loaded (No such file or directory)";
        assert!(error.starts_with(expected), "{error}");
    }
}
