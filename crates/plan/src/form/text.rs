//! Reads text files that the user names.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Most bytes of an experiment file, a manifest or a lock.
const MOST: u64 = 8 << 20;

/// Reads a text file. A device or a pipe may never end, so a limit holds for all files. Fails when it cannot
/// be read, is too long, or is not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        let problem = "it has more than 8 MiB, and is not read: name a text file";
        return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("more than 8 MiB"), "{error}");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), "");
    }
}
