//! Reads archives of sources: `linux-6.12.tar.xz`, also with gzip, zstd or without compression. Their files go
//! to `git fast-import` (git-fast-import(1)) without being unpacked on the disk.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use tar::EntryType;

use crate::compressed::Format;

/// The branch that the import writes.
pub(crate) const BRANCH: &str = "refs/heads/archive";

/// Writes the files of an archive as one commit. The first directory of their paths is left out. Fails when
/// the archive cannot be read or `to` not be written.
pub(crate) fn import(archive: &Path, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "commit {BRANCH}\ncommitter faultline <faultline> 0 +0000\ndata 0")?;
    let mut tar = tar::Archive::new(open(archive)?);
    for entry in tar.entries()? {
        let mut entry = entry?;
        let path = entry.path_bytes();
        let Some(path) = below(&path) else { continue };
        let path = quoted(path);
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let is_program = entry.header().mode()? & 0o100 != 0;
                let mode = if is_program { "100755" } else { "100644" };
                writeln!(to, "M {mode} inline {path}\ndata {}", entry.size())?;
                let (size, copied) = (entry.size(), io::copy(&mut entry, to)?);
                if copied != size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                writeln!(to)?;
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                writeln!(to, "M 120000 inline {path}\ndata {}", target.len())?;
                to.write_all(&target)?;
                writeln!(to)?;
            }
            EntryType::Link => return Err(io::Error::other("it has a hard link")),
            _ => {}
        }
    }
    writeln!(to, "done")?;
    to.flush()
}

/// The decompressed archive.
fn open(archive: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = BufReader::new(File::open(archive)?);
    match Format::peek(&mut file)? {
        Some(format) => format.reader(file),
        None => Ok(Box::new(file)),
    }
}

/// A path below the first directory; `None` for that directory itself.
fn below(path: &[u8]) -> Option<&[u8]> {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let slash = path.iter().position(|&byte| byte == b'/')?;
    Some(&path[slash + 1..]).filter(|path| !path.is_empty())
}

/// A path in quotes, as git reads it.
fn quoted(path: &[u8]) -> String {
    let escape = |&byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", path.iter().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_and_links_are_written_without_their_first_directory() {
        let archive = tempfile::NamedTempFile::new().unwrap();
        let mut tar = tar::Builder::new(zstd::Encoder::new(&archive, 1).unwrap().auto_finish());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o755);
        tar.append_data(&mut header, "linux/a \"b", &b"x\n"[..]).unwrap();
        header.set_size(0);
        header.set_entry_type(EntryType::Symlink);
        tar.append_link(&mut header, "linux/c/d", "../a").unwrap();
        drop(tar.into_inner().unwrap());
        let mut out = Vec::new();
        import(archive.path(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "data 0\nM 100755 inline \"a \\\"b\"\ndata 2\nx\n\nM 120000 inline \"c/d\"\n\
                        data 4\n../a\ndone\n";
        assert!(text.ends_with(expected), "{text}");
    }

    proptest! {
        #[test]
        fn damaged_archives_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let archive = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(archive.path(), bytes).unwrap();
            let _ = import(archive.path(), &mut Vec::new());
        }
    }
}
