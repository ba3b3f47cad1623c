//! Loads kernel modules. The host chooses them and their order, and decompresses them.

use std::ffi::CString;
use std::fs::File;
use std::io;

use flight::job::Module;
use guest::reason;
use rustix::io::Errno;
use rustix::system::finit_module;

/// A module cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("module {path} cannot be loaded ({}); see also the kernel's log", reason(.error))]
pub struct ModuleError {
    path: String,
    error: io::Error,
}

/// Loads a module. It is not an error if the module is already loaded, or if the kernel rejects an optional
/// one. Fails when the file does not exist, or the kernel rejects it.
pub fn load(module: &Module) -> Result<(), ModuleError> {
    let failed = |error| ModuleError { path: module.path.clone(), error };
    let file = File::open(&module.path).map_err(failed)?;
    let parameters = CString::new(module.parameters.as_str());
    let parameters = parameters.map_err(|error| failed(error.into()))?;
    match finit_module(&file, &parameters, 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(_) if module.optional => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_named() {
        let path = "/nonexistent/xfs.ko".into();
        let module = Module { path, parameters: String::new(), optional: true };
        let error = load(&module).unwrap_err().to_string();
        let expected = "module /nonexistent/xfs.ko cannot be loaded (No such file or directory)";
        assert!(error.starts_with(expected), "{error}");
    }
}
