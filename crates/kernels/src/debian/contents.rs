//! Checks how much a package of the user's would unpack, before anything is written.

use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;

use crate::Error;
use crate::assemble::{MAX_DEPTH, MAX_FILES};
use crate::error::Doing;
use crate::tool::DPKG_DEB;

/// The largest size of all files. Modules with debug information take some gigabytes.
const MAX_BYTES: u64 = 16 << 30;
/// The largest size of a long name.
const MAX_NAME: u64 = 1 << 16;
/// The longest message of `dpkg-deb` about a damaged package that is read, in bytes.
const MAX_SAID: u64 = 1 << 16;

/// Checks the number, size and nesting of a package's files, by the archive that it contains. Nothing is unpacked.
/// Fails when they exceed what a kernel has, or the package cannot be read.
pub(crate) fn check(deb: &Path) -> Result<(), Error> {
    // An absolute path, because a relative one that begins with a dash would be an option.
    let deb = std::path::absolute(deb).doing("find", deb)?;
    let mut command = DPKG_DEB.command();
    command.arg("--fsys-tarfile").arg(&deb).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoTool { tool: DPKG_DEB.name, hint: DPKG_DEB.hint },
        _ => Error::Io { doing: "start", path: DPKG_DEB.name.into(), source: error },
    })?;
    let archive = child.stdout.take().expect("it is piped");
    let excess = measure(archive, MAX_BYTES);
    if !matches!(excess, Ok(None)) {
        let _ = child.kill(); // it may have ended
    }
    let mut said = String::new();
    let errors = child.stderr.take().expect("it is piped");
    let _ = errors.take(MAX_SAID).read_to_string(&mut said);
    let status = child.wait().doing("run", Path::new(DPKG_DEB.name))?;
    let problem = match excess {
        Ok(None) if status.success() => return Ok(()),
        Ok(Some(excess)) => excess.to_owned(),
        _ if !said.trim().is_empty() => said.trim().to_owned(),
        Err(error) => error.to_string(),
        Ok(None) => status.to_string(),
    };
    Err(Error::Tool { tool: DPKG_DEB.name, problem })
}

/// The limit of a kernel that an archive exceeds; `None` if it exceeds none. Reads to the end, or until a limit is
/// exceeded.
fn measure(archive: impl Read, most: u64) -> io::Result<Option<&'static str>> {
    let (mut files, mut bytes) = (0, 0u64);
    let mut tar = tar::Archive::new(archive);
    // In raw mode long names are entries of their own, so they are not read into memory before their size is checked.
    for entry in tar.entries()?.raw(true) {
        let mut entry = entry?;
        files += 1;
        bytes = bytes.saturating_add(entry.size());
        if files > MAX_FILES {
            return Ok(Some("the package has more files than that of any kernel"));
        }
        if bytes > most {
            return Ok(Some("the files of the package are larger than those of any kernel"));
        }
        let kind = entry.header().entry_type();
        let mut name = entry.path_bytes().into_owned();
        if kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions()
        {
            if entry.size() > MAX_NAME {
                return Ok(Some("the package has a name that is too long"));
            }
            entry.read_to_end(&mut name)?;
        }
        if name.iter().filter(|&&byte| byte == b'/').count() >= MAX_DEPTH {
            let problem =
                "the directories of the package are nested deeper than those of any kernel";
            return Ok(Some(problem));
        }
    }
    io::copy(&mut tar.into_inner().take(most), &mut io::sink())?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, u64)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, size) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(*size);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, io::repeat(0).take(*size)).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn a_package_is_bounded() {
        let of = |files: &[(&str, u64)]| measure(&archive(files)[..], 1000).unwrap();
        assert_eq!(of(&[("a", 600), ("b/c", 400)]), None);
        assert!(of(&[("a", 600), ("b/c", 401)]).unwrap().contains("larger"));
        let deep = "d/".repeat(MAX_DEPTH) + "file";
        assert!(of(&[(&deep, 1)]).unwrap().contains("nested deeper"));
        let long = "n".repeat(2 * MAX_NAME as usize);
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(long.len() as u64);
        tar.append_data(&mut header, "././@LongLink", long.as_bytes()).unwrap();
        let long = tar.into_inner().unwrap();
        assert!(measure(&long[..], 1 << 30).unwrap().unwrap().contains("too long"));
        let many = vec![("a", 0); MAX_FILES + 1];
        assert!(of(&many).unwrap().contains("more files"));
        assert!(
            measure(&b"no archive, but it is long enough for a header".repeat(20)[..], 1).is_err()
        );
    }
}
