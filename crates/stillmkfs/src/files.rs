//! What is told of files that go into a new file system: theirs are the contents, the modes and the
//! names, while owner and times are the file system's.

use std::ffi::{c_char, c_int};

use libc::{size_t, ssize_t, stat64};

use crate::NOW;

/// In place of `lstat(2)`: whatever there is belongs to the superuser, and is as old as the file
/// system.
///
/// # Safety
/// `path` must be a string of C, `found` good to be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat64(path: *const c_char, found: *mut stat64) -> c_int {
    // SAFETY: the caller promises what this call needs, which is the one that is asked for.
    let result = unsafe {
        libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, found, libc::AT_SYMLINK_NOFOLLOW)
    };
    if result == 0 {
        // SAFETY: the kernel has written it.
        let found = unsafe { &mut *found };
        (found.st_uid, found.st_gid) = (0, 0);
        (found.st_atime, found.st_mtime, found.st_ctime) = (NOW, NOW, NOW);
        (found.st_atime_nsec, found.st_mtime_nsec, found.st_ctime_nsec) = (0, 0, 0);
    }
    result as c_int
}

/// In place of `llistxattr(2)`: there are no extended attributes, which are the host's business.
#[unsafe(no_mangle)]
pub extern "C" fn llistxattr(_path: *const c_char, _list: *mut c_char, _size: size_t) -> ssize_t {
    0
}
