//! Reads files of an untrusted directory: symbolic links cannot lead outside, only regular files are opened,
//! and unpacking is limited.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::Stream;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// The largest number of entries of a directory.
const MAX_ENTRIES: usize = 100_000;
/// The largest file that is read, in bytes as stored. A longer one would cost time, as the digest is over whole
/// files.
const MAX_FILE: u64 = 4 << 30;
const TOO_LARGE: &str = "larger than 4 GiB";
/// The memory limit for unpacking `xz`, in bytes. Its presets need up to 65 MiB.
const XZ_MEMORY: u64 = 128 << 20;
/// Compressed bytes are read in pieces of this size.
const PIECE: usize = 128 << 10;
/// Suffixes of the names of packed files.
const PACKED: [&str; 2] = [".gz", ".xz"];

/// A regular file of a directory of logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name without the suffix of packed files.
    pub name: String,
    /// The path, with links resolved.
    pub path: PathBuf,
}

/// The files and directories in a directory, links resolved.
#[derive(Debug, Default)]
pub struct Listing {
    /// The regular files, ordered by name.
    pub files: Vec<Entry>,
    /// The path of each directory, by name.
    pub directories: BTreeMap<String, PathBuf>,
    /// The names of other entries and of those that cannot be reached, with the reason.
    pub passed_over: Vec<(String, &'static str)>,
}

/// A directory that is read.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// Opens the directory at `path`. Fails if there is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        match path.is_dir() {
            true => Ok(Self { path }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The path, with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists `directory`, which is this one or one below it. Fails if it can't be listed, or has more than
    /// [`MAX_ENTRIES`] entries.
    pub fn list(&self, directory: &Path) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut entries = Vec::new();
        for entry in fs::read_dir(directory)? {
            if entries.len() == MAX_ENTRIES {
                return Err(io::Error::other(format!("more than {MAX_ENTRIES} entries")));
            }
            entries.push(entry?);
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            match self.resolve(&entry) {
                Err(why) => listing.passed_over.push((name, why)),
                Ok((path, it)) if it.is_dir() => {
                    listing.directories.insert(name, path);
                }
                Ok((_, it)) if it.is_file() && it.len() > MAX_FILE => {
                    listing.passed_over.push((name, TOO_LARGE));
                }
                Ok((path, it)) if it.is_file() => {
                    listing.files.push(Entry { name: stem(&name).to_owned(), path });
                }
                Ok(_) => listing.passed_over.push((name, "not a regular file")),
            }
        }
        Ok(listing)
    }

    fn resolve(&self, entry: &fs::DirEntry) -> Result<(PathBuf, fs::Metadata), &'static str> {
        const BROKEN: &str = "can't be read";
        let known = entry.metadata().map_err(|_| BROKEN)?;
        if !known.is_symlink() {
            return Ok((entry.path(), known));
        }
        let target = fs::canonicalize(entry.path()).map_err(|_| "a broken symbolic link")?;
        if !target.starts_with(&self.path) {
            return Err("a symbolic link that leads out of the directory");
        }
        let known = fs::metadata(&target).map_err(|_| BROKEN)?;
        Ok((target, known))
    }
}

/// A name without the suffix of packed files.
fn stem(name: &str) -> &str {
    PACKED.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Opens a regular file that is not too large. Something else may have replaced it since it was listed, so a pipe
/// does not block and a link is not followed.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let known = file.metadata()?;
    match known.is_file() {
        false => Err(io::Error::other("not a regular file")),
        true if known.len() > MAX_FILE => Err(io::Error::other(TOO_LARGE)),
        true => Ok(file),
    }
}

/// Opens a file and unpacks it. The packing is known from the first bytes, since names may be wrong. Fails if the
/// file can't be opened.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
    let mut reader = BufReader::with_capacity(PIECE, open_regular(path)?);
    let first = io::BufRead::fill_buf(&mut reader)?;
    if first.starts_with(GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(reader)));
    }
    if first.starts_with(XZ) {
        let stream = Stream::new_stream_decoder(XZ_MEMORY, 0)?;
        return Ok(Box::new(XzDecoder::new_stream(reader, stream)));
    }
    Ok(Box::new(reader))
}

/// Reads and unpacks a whole file. Fails if it can't be read, is damaged, or is longer than `limit` bytes.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > limit {
        true => Err(io::Error::other(format!("longer than {} MiB", limit >> 20))),
        false => Ok(bytes),
    }
}

/// The SHA-256 of a file as stored. Fails if the file can't be read.
pub fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut file = open_regular(path)?.take(MAX_FILE);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(digest.finalize().into()),
            read => digest.update(&piece[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use liblzma::write::XzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = XzEncoder::new(Vec::new(), 6);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_files_read_like_unpacked_ones() {
        let directory = tempfile::tempdir().unwrap();
        let text = b"nr_free_pages 1\n".repeat(10_000);
        let two = [gzip(&text[..16]), gzip(&text[16..])].concat();
        let forms = [("a", text.clone()), ("b.gz", gzip(&text)), ("c.xz", xz(&text)), ("d", two)];
        for (name, bytes) in &forms {
            fs::write(directory.path().join(name), bytes).unwrap();
        }
        let root = Root::open(directory.path()).unwrap();
        let files = root.list(root.path()).unwrap().files;
        let names: Vec<_> = files.iter().map(|file| &*file.name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        for file in &files {
            assert_eq!(read(&file.path, text.len()).unwrap(), text, "{}", file.name);
            assert!(read(&file.path, text.len() - 1).is_err(), "{}", file.name);
        }
    }

    #[test]
    fn a_decompression_bomb_is_unpacked_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bomb");
        for bomb in [gzip(&vec![0; 8 << 20]), xz(&vec![0; 8 << 20])] {
            fs::write(&path, &bomb).unwrap();
            assert!(bomb.len() < 1 << 17);
            assert_eq!(read(&path, 1 << 20).unwrap_err().to_string(), "longer than 1 MiB");
        }
    }

    #[test]
    fn links_stay_inside_and_only_regular_files_are_opened() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::create_dir(place("real")).unwrap();
        fs::write(place("file"), "x").unwrap();
        symlink("real", place("run")).unwrap();
        symlink("file", place("same")).unwrap();
        symlink(outside.path(), place("away")).unwrap();
        symlink(outside.path().join("secret"), place("stolen")).unwrap();
        symlink("nowhere", place("gone")).unwrap();
        let sparse = File::create(place("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        let root = Root::open(directory.path()).unwrap();
        let listing = root.list(root.path()).unwrap();
        let names: Vec<_> = listing.files.iter().map(|file| &*file.name).collect();
        assert_eq!(names, ["file", "same"]);
        assert_eq!(listing.directories.keys().collect::<Vec<_>>(), ["real", "run"]);
        let away = "a symbolic link that leads out of the directory";
        let expected = [
            ("away", away),
            ("gone", "a broken symbolic link"),
            ("socket", "not a regular file"),
            ("sparse", TOO_LARGE),
            ("stolen", away),
        ];
        assert_eq!(listing.passed_over, expected.map(|(name, why)| (name.to_owned(), why)));
        // A pipe has replaced a file since it was listed.
        let pipe = place("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, why) in [(&pipe, "not a regular file"), (&place("sparse"), TOO_LARGE)] {
            assert_eq!(digest(path).unwrap_err().to_string(), why);
            assert_eq!(open(path).err().unwrap().to_string(), why);
        }
        assert!(digest(&place("same")).is_err() && digest(Path::new("/dev/zero")).is_err());
    }
}
