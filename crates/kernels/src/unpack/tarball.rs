//! Reads archives of tar: those that the kernel's own build makes (`make tar-pkg`, `tarzst-pkg` and others), packages
//! of distributions in this format, and the archive in a package of Debian.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use tar::{EntryType, PaxExtensions};

use super::target::{Failure, Target, refuse};
use crate::compressed::Format;
use crate::error::Doing;
use crate::limits::MAX_BYTES;

/// The largest size of an entry that has a long name.
const MAX_NAME: u64 = 1 << 16;

/// Unpacks an archive, compressed or not.
pub(super) fn unpack(path: &Path, target: &mut Target) -> Result<(), Failure> {
    let mut file = BufReader::new(File::open(path).doing("open", path)?);
    match Format::peek(&mut file)? {
        Some(format) => entries(format.reader(file)?, target),
        None => entries(file, target),
    }
}

/// Unpacks the entries of an archive, and reads to its end. Devices and FIFOs are left out.
pub(super) fn entries(archive: impl Read, target: &mut Target) -> Result<(), Failure> {
    let mut tar = tar::Archive::new(archive);
    let (mut long_name, mut long_link) = (None, None);
    // In raw mode long names are entries of their own, so they are not read into memory before their size is checked.
    for entry in tar.entries()?.raw(true) {
        let mut entry = entry?;
        target.count(entry.size())?;
        let kind = entry.header().entry_type();
        let is_about_next = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        if is_about_next {
            if entry.size() > MAX_NAME {
                return refuse("the name of a file is too long");
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            match kind {
                EntryType::GNULongName => long_name = Some(text(bytes)),
                EntryType::GNULongLink => long_link = Some(text(bytes)),
                EntryType::XHeader => extend(&bytes, &mut long_name, &mut long_link)?,
                _ => {}
            }
            continue;
        }
        let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let link = long_link.take().or_else(|| Some(entry.link_name_bytes()?.into_owned()));
        match kind {
            EntryType::Directory => target.directory(&name)?,
            EntryType::Regular | EntryType::Continuous => {
                let about = (entry.header().mode()?, entry.size());
                target.file(&name, about, &mut entry)?;
            }
            EntryType::Symlink => target.link(&name, &link.unwrap_or_default())?,
            EntryType::Link => target.again(&name, &link.unwrap_or_default())?,
            EntryType::GNUSparse => {
                return refuse("it has a sparse file: pack it without --sparse");
            }
            _ => {}
        }
    }
    io::copy(&mut tar.into_inner().take(MAX_BYTES), &mut io::sink())?;
    Ok(())
}

/// Reads what an extension of POSIX.1-2001 says about the next entry.
fn extend(
    bytes: &[u8],
    name: &mut Option<Vec<u8>>,
    link: &mut Option<Vec<u8>>,
) -> Result<(), Failure> {
    for record in PaxExtensions::new(bytes) {
        let record = record?;
        match record.key_bytes() {
            b"path" => *name = Some(record.value_bytes().to_vec()),
            b"linkpath" => *link = Some(record.value_bytes().to_vec()),
            b"size" => return refuse("a file has 8 GiB or more"),
            _ => {}
        }
    }
    Ok(())
}

/// A name without the NUL at its end.
fn text(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn header(kind: EntryType, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header
    }

    /// An archive with a file with a long name, a second name of it, a link and a FIFO.
    fn archive() -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let long = "n".repeat(200);
        tar.append_data(&mut header(EntryType::Regular, 2), format!("a/{long}"), &b"x\n"[..])
            .unwrap();
        let mut again = header(EntryType::Link, 0);
        tar.append_link(&mut again, "b", format!("a/{long}")).unwrap();
        tar.append_link(&mut header(EntryType::Symlink, 0), "c", "a").unwrap();
        tar.append_data(&mut header(EntryType::Fifo, 0), "d", &b""[..]).unwrap();
        tar.append_pax_extensions([("path", &b"e/from-pax"[..])]).unwrap();
        tar.append_data(&mut header(EntryType::Regular, 1), "e", &b"y"[..]).unwrap();
        tar.into_inner().unwrap()
    }

    fn refused(archive: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let mut target = Target::new(directory.path()).unwrap();
        match entries(archive, &mut target) {
            Err(Failure::Archive(problem)) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_and_links_are_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let mut target = Target::new(directory.path()).unwrap();
        entries(&archive()[..], &mut target).unwrap();
        target.finish().unwrap();
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(text(&format!("c/{}", "n".repeat(200))), "x\n");
        assert_eq!((&*text("b"), &*text("e/from-pax")), ("x\n", "y"));
        assert!(!directory.path().join("d").exists());
    }

    #[test]
    fn long_names_sparse_files_and_garbage_are_refused() {
        let long = "n".repeat(2 * MAX_NAME as usize);
        let mut tar = tar::Builder::new(Vec::new());
        let mut name = header(EntryType::GNULongName, long.len() as u64);
        tar.append_data(&mut name, "././@LongLink", long.as_bytes()).unwrap();
        assert_eq!(refused(&tar.into_inner().unwrap()), "the name of a file is too long");
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_data(&mut header(EntryType::GNUSparse, 0), "a", &b""[..]).unwrap();
        assert!(refused(&tar.into_inner().unwrap()).starts_with("it has a sparse file"));
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_pax_extensions([("size", &b"99999999999"[..])]).unwrap();
        assert!(refused(&tar.into_inner().unwrap()).contains("8 GiB"));
        assert!(
            refused(&b"no archive, but long enough for a header".repeat(20)).contains("damaged")
        );
        let cut = &archive()[..3 * 512 + 1];
        assert!(refused(cut).contains("damaged") || refused(cut).contains("truncated"));
    }

    proptest! {
        #[test]
        fn damage_is_never_a_panic(
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = archive();
            for (place, byte) in places {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.truncate(length.index(bytes.len() + 1));
            let directory = tempfile::tempdir().unwrap();
            let mut target = Target::new(&directory.path().join("root")).unwrap();
            let _ = entries(&bytes[..], &mut target);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }
}
