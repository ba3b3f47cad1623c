//! Reads a kernel's symbols from its image and caches them. Without address randomisation they are the same in each
//! boot, except those of modules. An image whose tables are not understood is booted to read them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flight::Job;
use kernelfiles::kallsyms::Symbols;
use kernels::arch;
use kernels::{Cache, layout};
use machine::{Emulator, Engine, Exact, How, Switch, Vm};
use model::{Bytes, Kernel, Limits, Topology};
use record::collect::{MAX_SYMBOLS, collect};
use record::memory::Memory;
use tempfile::NamedTempFile;

use crate::error::{BootError, in_file};
use crate::guest::{Guest, Libraries};
use crate::job::{self, RECORDER, image};

/// The memory of the machine that boots to read symbols.
const MEMORY: Bytes = Bytes::mib(512);

/// What the host knows of a kernel's code.
#[derive(Clone, Debug, Default)]
pub struct KernelCode {
    /// The kernel's functions; empty if they could not be read.
    pub symbols: Symbols,
    /// Where the plugin sees switches between processes; `None` if the kernel's symbols lack that
    /// function, or the layout of its tasks is not known.
    pub switch: Option<Switch>,
    /// What is known of the kernel's memory, if transfers of lines are to be counted.
    pub memory: Option<Arc<Memory>>,
}

/// Reads symbols of kernels.
pub struct SymbolReader<'a> {
    /// The cache for the symbols.
    pub cache: &'a Cache,
    /// The programs that run in the guest.
    pub guest: &'a Guest,
    /// The libraries that QEMU loads.
    pub libraries: &'a Libraries,
    /// The QEMU that runs the machine.
    pub emulator: &'a Emulator,
    /// The directory for the boot's files.
    pub scratch: &'a Path,
    /// Whether what is known of the kernel's memory is read too.
    pub memory: bool,
}

impl SymbolReader<'_> {
    /// Reads the code of `kernel`: from the cache, otherwise from its image, otherwise by booting. A
    /// kernel that does not boot gets the symbols of its `System.map`, or none; its later boots report
    /// why. Also checks the libraries, because the boots that need the symbols load them. Fails when
    /// the host fails.
    pub fn read(
        &self,
        kernel: &Kernel,
        say: &mut dyn FnMut(&str),
    ) -> Result<KernelCode, BootError> {
        self.libraries.check()?;
        let text = match listed(self.cache, kernel)? {
            Some(text) => text,
            None => {
                say(&format!("Booting {} to read its symbols", kernel.name));
                let text = self.boot(kernel)?;
                if text.is_empty() {
                    Self::mapped(kernel, say)?
                } else {
                    keep(self.cache, kernel, &text)?;
                    text
                }
            }
        };
        let symbols = Symbols::parse(&text);
        let switch = switch(kernel, &symbols).map_err(in_file(image(kernel)))?;
        let memory = self.memory.then(|| fs::read(image(kernel))).transpose();
        let memory = memory.map_err(in_file(image(kernel)))?;
        let memory = memory.map(|image| Arc::new(Memory::read(&image, &text)));
        Ok(KernelCode { symbols, switch, memory })
    }

    /// Reads the symbols of a kernel that does not list them itself from its `System.map`; empty if
    /// it has none. The kernel's own list is preferred, because some addresses have different names
    /// in the two.
    fn mapped(kernel: &Kernel, say: &mut dyn FnMut(&str)) -> Result<String, BootError> {
        let map = kernels::text(kernel, "map")?;
        say(&match map {
            Some(_) => format!("{} does not list its symbols, so System.map is used", kernel.name),
            None => format!("the symbols of {} cannot be read", kernel.name),
        });
        Ok(map.unwrap_or_default())
    }

    /// Boots with a job that only reads `/proc/kallsyms`, and returns its text; empty if the boot
    /// did not complete. Fails when the host fails.
    fn boot(&self, kernel: &Kernel) -> Result<String, BootError> {
        let directory = self.scratch.join("symbols");
        fs::create_dir_all(&directory).map_err(in_file(&directory))?;
        let initramfs = directory.join("initramfs.cpio");
        let job = Job { symbols: true, ..Job::default() };
        let bytes = job::initramfs(self.guest, &job, &[], &[], &[], None)?;
        fs::write(&initramfs, bytes).map_err(in_file(&initramfs))?;
        let exact = Exact { seed: 0, clock: self.libraries.clock.clone(), plugin: None };
        let vm = Vm {
            emulator: self.emulator,
            engine: Engine::Exact(&exact),
            topology: &Topology::even(1, MEMORY, 1).expect("one CPU has room on one node"),
            disks: &[],
            userspace: None,
            image: image(kernel),
            initramfs: &initramfs,
            cmdline: "",
            directory: &directory,
            recorder: RECORDER,
            limits: &Limits::default(),
        };
        let ending = machine::run(&vm, &mut |_| ())?;
        if let How::Crashed(how) | How::Stalled(how) = ending.how {
            return Err(BootError::Symbols { kernel: kernel.name.clone(), how });
        }
        let log = machine::read_log(&directory).map_err(in_file(&directory))?;
        fs::remove_dir_all(&directory).map_err(in_file(&directory))?;
        let recording = collect(&log, &[]);
        let ended = recording.bye.is_some() && recording.failed.is_none();
        let whole = ended && recording.unsound.is_none();
        Ok(if whole { recording.symbols } else { String::new() })
    }
}

/// Reads the symbols that the cache has of a kernel, or that its image lists, in the form of
/// `/proc/kallsyms`; `None` if neither does. Fails when the host fails.
pub fn listed(cache: &Cache, kernel: &Kernel) -> Result<Option<String>, BootError> {
    let path = place(cache, &kernel.digest);
    if let Some(text) = read(&path).map_err(in_file(&path))? {
        return Ok(Some(text));
    }
    let text = kernels::symbols(kernel)?.filter(|it| !it.is_empty());
    text.iter().try_for_each(|text| keep(cache, kernel, text))?;
    Ok(text)
}

fn keep(cache: &Cache, kernel: &Kernel, text: &str) -> Result<(), BootError> {
    let path = place(cache, &kernel.digest);
    write(&path, text).map_err(in_file(&path))
}

/// Reads the symbols of the kernel with this digest from the cache; `None` if the cache does not
/// have them. Fails when the cache cannot be read.
pub fn cached(cache: &Cache, digest: &str) -> Result<Option<Symbols>, BootError> {
    let path = place(cache, digest);
    let text = read(&path).map_err(in_file(&path))?;
    Ok(text.map(|text| Symbols::parse(&text)))
}

fn place(cache: &Cache, digest: &str) -> PathBuf {
    cache.root().join("symbols").join(format!("{digest}.zst"))
}

fn switch(kernel: &Kernel, symbols: &Symbols) -> io::Result<Option<Switch>> {
    let address = match arch::switch(kernel.arch) {
        Some(name) => symbols.address(name),
        None => Some(0),
    };
    let Some(address) = address else { return Ok(None) };
    let layout = match kernel.tasks {
        Some(layout) => Some(layout),
        None => layout::tasks(&fs::read(image(kernel))?),
    };
    Ok(layout.map(|layout| Switch { address, tgid: layout.tgid, comm: layout.comm }))
}

/// Reads and unpacks the text in the file `path`; `None` if the file is missing or damaged.
fn read(path: &PathBuf) -> io::Result<Option<String>> {
    let packed = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        packed => packed?,
    };
    let mut text = String::new();
    let decoder = zstd::Decoder::with_buffer(packed.as_slice())?;
    let whole =
        io::Read::read_to_string(&mut io::Read::take(decoder, MAX_SYMBOLS as u64), &mut text);
    Ok(whole.is_ok().then_some(text))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut encoder =
        zstd::Encoder::new(NamedTempFile::new_in(directory)?, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.write_all(text.as_bytes())?;
    encoder.finish()?.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_symbols_are_read_back() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("symbols/ab.zst");
        assert_eq!(read(&path).unwrap(), None);
        let text = "ffffffff81000000 T _text\n";
        write(&path, text).unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some(text));
        let mut damaged = fs::read(&path).unwrap();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }
}
