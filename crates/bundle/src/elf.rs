//! What an ELF file needs: its dynamic linker and its libraries (elf(5), ld.so(8)).

use std::path::{Path, PathBuf};

use model::Architecture;
use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, PT_LOAD};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use plan::workloads::binaries::machine;

/// The largest number of libraries and directories that a file may name.
const MOST: usize = 1000;

/// What a file needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// The path of the dynamic linker, if the file is a program that is linked dynamically.
    pub interpreter: Option<String>,
    /// Names or paths of libraries.
    pub needed: Vec<String>,
    /// Directories of libraries, which may begin with `$ORIGIN`.
    paths: Vec<String>,
}

impl Elf {
    /// Of a file's bytes; `None` if it is not for Linux on this architecture, or damaged.
    pub fn of(bytes: &[u8], arch: Architecture) -> Option<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let endian = file.endian();
        if file.elf_header().e_machine(endian) != machine(arch) {
            return None;
        }
        let mut found = Self::default();
        let headers = file.elf_program_headers();
        for header in headers {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
            if let Some(path) = header.interpreter(endian, bytes).ok()? {
                found.interpreter = Some(text(path)?);
            }
            let Some(entries) = header.dynamic(endian, bytes).ok()? else { continue };
            let value = |tag| {
                let entry = entries.iter().find(|entry| entry.tag(endian) == tag);
                entry.map(|entry| entry.d_val(endian))
            };
            let Some(strings) = value(DT_STRTAB) else { continue };
            let size = value(DT_STRSZ)?;
            let load = headers.iter().filter(|it| it.p_type(endian) == PT_LOAD);
            let strings = load
                .into_iter()
                .find_map(|it| it.data_range(endian, bytes, strings, size).ok()?)?;
            let string = |offset: u64| {
                let rest = strings.get(usize::try_from(offset).ok()?..)?;
                text(&rest[..rest.iter().position(|byte| *byte == 0)?])
            };
            for entry in entries.iter().take(MOST).take_while(|entry| entry.tag(endian).0 != 0) {
                match entry.tag(endian) {
                    DT_NEEDED => found.needed.push(string(entry.d_val(endian))?),
                    DT_RPATH | DT_RUNPATH => {
                        let paths = string(entry.d_val(endian))?;
                        found.paths.extend(paths.split(':').map(str::to_owned));
                    }
                    _ => {}
                }
            }
        }
        Some(found)
    }

    /// The directories of libraries that the file at `path` names.
    pub fn directories(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let origin = path.parent().unwrap_or(Path::new("/")).display().to_string();
        let place = move |named: &String| {
            named.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into()
        };
        let places: Vec<PathBuf> = self.paths.iter().map(place).collect();
        places.into_iter().filter(|it| it.is_absolute())
    }
}
