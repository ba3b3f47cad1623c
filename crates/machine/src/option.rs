//! Writes paths into QEMU's options.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `options` with the option `name` set to a path.
pub fn with_path(options: &str, name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("{options},{name}="));
    append_path(&mut option, path);
    option
}

/// Appends a path to an option. QEMU requires commas to be doubled.
pub fn append_path(option: &mut OsString, path: &Path) {
    for (number, part) in path.as_os_str().as_bytes().split(|byte| *byte == b',').enumerate() {
        if number > 0 {
            option.push(",,");
        }
        option.push(OsStr::from_bytes(part));
    }
}
