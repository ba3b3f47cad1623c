//! Checks that the user's files belong to the kernel.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use kernelfiles::config;
use model::{Architecture, Kernel};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use crate::assemble::digest;
use crate::checksums::changed;
use crate::error::Doing;
use crate::modules::Module;
use crate::{Error, arch, image, input};

/// The largest configuration.
pub(crate) const MAX_CONFIG: u64 = 4 << 20;
/// The largest `System.map`.
pub(crate) const MAX_MAP: u64 = 64 << 20;
/// The largest text that stands in for a `System.map`, as in packages of Debian.
pub(crate) const STUB: u64 = 4096;
/// The longest symbol name (`include/linux/kallsyms.h`, `KSYM_NAME_LEN`).
const MAX_NAME: usize = 512;
/// The symbol of the kernel's banner (`init/version.c`).
const BANNER: &str = "linux_banner";
/// Sections with exported symbols. The second one exists until Linux 7.0.
const EXPORTS: [&str; 2] = ["__ksymtab", "__ksymtab_gpl"];
/// The size of `struct kernel_symbol` since 5.4: the relative offsets of value, name and namespace, 4 bytes
/// each (`include/linux/export-internal.h`).
const EXPORT: usize = 12;

/// The machine and the version in the first lines of a configuration.
fn head(text: &str) -> Option<(&str, &str)> {
    text.lines().take(8).find_map(|line| {
        let line = line.strip_prefix("# Linux/")?.strip_suffix(" Kernel Configuration")?;
        line.split_once(' ')
    })
}

/// The architecture that a configuration names; `None` if it names none of ours.
pub(crate) fn architecture(config: &str) -> Option<Architecture> {
    let (machine, _) = head(config)?;
    let is_it = |arch: &Architecture| arch::recipe(*arch).configured.contains(&machine);
    Architecture::ALL.iter().copied().find(is_it)
}

/// Checks that a configuration names no other architecture. The error says which one it names.
pub(crate) fn check_architecture(config: &str, arch: Architecture) -> Result<(), String> {
    match head(config) {
        Some((machine, _)) if !arch::recipe(arch).configured.contains(&machine) => {
            let machine = machine.escape_debug();
            Err(format!(
                "it is the configuration of a kernel for {machine}, not for {}",
                arch.name()
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that a configuration belongs to the kernel `release` for an architecture. The error says why it does not.
pub(crate) fn check_config(text: &str, arch: Architecture, release: &str) -> Result<(), String> {
    let Some((_, version)) = head(text) else {
        let machine = arch::recipe(arch).configured[0];
        let head = format!("# Linux/{machine} VERSION Kernel Configuration");
        return Err(format!("it is not a kernel's configuration: its first lines lack `{head}`"));
    };
    check_architecture(text, arch)?;
    if !is_version_of(version, release) {
        let version = version.escape_debug();
        return Err(format!(
            "it is the configuration of Linux {version}, but the image is {release}"
        ));
    }
    let options = config::parse(text);
    if options.is_empty() {
        return Err("it has no line CONFIG_NAME=VALUE".into());
    }
    // `scripts/setlocalversion` appends this text to the release.
    let local = options.get("LOCALVERSION").map_or("", |value| value.trim_matches('"'));
    if !release.contains(local) {
        return Err(format!(
            "it has CONFIG_LOCALVERSION=\"{local}\", which is not in the image's release {release}"
        ));
    }
    Ok(())
}

/// Whether a kernel of this version may have this release. The releases of distributions look like
/// `6.1.0-56-...` for any 6.1 version.
fn is_version_of(version: &str, release: &str) -> bool {
    if let Some(rest) = release.strip_prefix(version) {
        return !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    }
    let counted = |series: &str| {
        let rest = release.strip_prefix(series).and_then(|rest| rest.strip_prefix(".0-"));
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    version.rsplit_once('.').is_some_and(|(series, _)| counted(series))
}

/// Checks that a `System.map` belongs to an image, which is unpacked if needed.
pub(crate) fn check_map_of(text: &str, image: &[u8], release: &str) -> Result<(), String> {
    if image::is_elf(image) {
        return check_map(text, image, release);
    }
    if let Ok(unpacked) = arch::arm64::image::unpack(image) {
        return check_flat_map(text, unpacked.as_deref().unwrap_or(image), release);
    }
    let vmlinux = arch::image::extract(image)
        .map_err(|error| format!("it cannot be checked against the image: {error}"))?;
    check_map(text, &vmlinux, release)
}

/// Checks that a `System.map` belongs to the kernel `release` in `vmlinux`: the addresses of its exported symbols and
/// of its banner must agree. The error says why it does not.
fn check_map(text: &str, vmlinux: &[u8], release: &str) -> Result<(), String> {
    let symbols = symbols(text)?;
    let is_at = |name: &str, address| symbols.get(name).map(|all| all.contains(&address));
    let exports = exports(vmlinux);
    let known: Vec<_> =
        exports.iter().filter_map(|(name, at)| Some((name, at, is_at(name, *at)?))).collect();
    let wrong: Vec<_> = known.iter().filter(|(_, _, is_there)| !is_there).collect();
    if let Some((name, at, _)) = wrong.first() {
        let said = symbols.get(name.as_str()).and_then(|all| all.first()).unwrap_or(&0);
        return Err(format!(
            "it is the map of another build: {name} is at {at:x} in the image, but at {said:x} in the \
             map ({} of {} exported symbols differ)",
            wrong.len(),
            known.len()
        ));
    }
    let banner = symbols.get(BANNER).and_then(|all| all.first());
    if let Some(banner) = banner {
        check_banner(*banner, data(vmlinux, *banner), release)?;
    }
    if known.is_empty() && banner.is_none() {
        return Err(format!(
            "it cannot be checked: the image has neither {BANNER} nor exported symbols"
        ));
    }
    Ok(())
}

/// Checks that a `System.map` belongs to the kernel `release` in an `Image`, which begins at `_text`: the banner must be
/// at its address.
fn check_flat_map(text: &str, image: &[u8], release: &str) -> Result<(), String> {
    let symbols = symbols(text)?;
    let address = |name: &str| symbols.get(name).and_then(|all| all.first()).copied();
    let Some(banner) = address(BANNER) else {
        return Err(format!("it cannot be checked: it lacks the symbol {BANNER}"));
    };
    let offset =
        address("_text").and_then(|start| usize::try_from(banner.checked_sub(start)?).ok());
    check_banner(banner, offset.and_then(|offset| image.get(offset..)), release)
}

/// Checks that the bytes at the address of the banner are that of the kernel `release`.
fn check_banner(address: u64, bytes: Option<&[u8]>, release: &str) -> Result<(), String> {
    let expected = format!("Linux version {release} ");
    match bytes.is_some_and(|bytes| bytes.starts_with(expected.as_bytes())) {
        true => Ok(()),
        false => Err(format!(
            "it is the map of another build: the image does not have `{}` at {address:x}, the map's {BANNER}",
            expected.trim_end()
        )),
    }
}

/// Parses a `System.map`: lines of an address, a letter and a name.
fn symbols(text: &str) -> Result<HashMap<&str, Vec<u64>>, String> {
    let mut symbols: HashMap<&str, Vec<u64>> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((address, name)) = symbol(line) else {
            return Err(format!(
                "it is not a System.map: line {number} is not `ADDRESS TYPE NAME` (Debian's \
                 /boot/System.map-* only names the package with the map)"
            ));
        };
        symbols.entry(name).or_default().push(address);
    }
    match symbols.contains_key("_text") {
        true => Ok(symbols),
        false => Err("it is not a System.map: it lacks the symbol _text".into()),
    }
}

fn symbol(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    let is_sound = address.len() == 16 && kind.len() == 1 && is_name && name.len() <= MAX_NAME;
    is_sound.then(|| Some((u64::from_str_radix(address, 16).ok()?, name)))?
}

/// The readable exported symbols in a `vmlinux`, and their addresses.
fn exports(vmlinux: &[u8]) -> Vec<(String, u64)> {
    let mut exports = Vec::new();
    for name in EXPORTS {
        let Some((start, bytes)) = section(vmlinux, name) else { continue };
        let (entries, _) = bytes.as_chunks::<EXPORT>();
        for (at, entry) in (start..).step_by(EXPORT).zip(entries) {
            let target = |offset: usize| {
                let word = entry[offset..].first_chunk().expect("a word");
                let distance = i64::from(i32::from_le_bytes(*word));
                at.wrapping_add(offset as u64).wrapping_add_signed(distance)
            };
            let name = data(vmlinux, target(4)).and_then(|bytes| {
                let end = bytes.iter().take(MAX_NAME).position(|&byte| byte == 0)?;
                str::from_utf8(&bytes[..end]).ok()
            });
            exports.extend(name.map(|name| (name.to_owned(), target(0))));
        }
    }
    exports
}

/// The address and the bytes of a section.
fn section<'a>(vmlinux: &'a [u8], name: &str) -> Option<(u64, &'a [u8])> {
    let header = FileHeader64::<Endianness>::parse(vmlinux).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, vmlinux).ok()?;
    let (_, section) = sections.section_by_name(endian, name.as_bytes())?;
    Some((section.sh_addr(endian), section.data(endian, vmlinux).ok()?))
}

/// The bytes of a `vmlinux` from an address to the end of its segment.
fn data(vmlinux: &[u8], address: u64) -> Option<&[u8]> {
    use object::read::elf::ProgramHeader;
    let header = FileHeader64::<Endianness>::parse(vmlinux).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, vmlinux).ok()?;
    let loaded = segments.iter().filter(|it| it.p_type(endian) == object::elf::PT_LOAD);
    loaded.into_iter().find_map(|segment| {
        let offset = address.checked_sub(segment.p_vaddr(endian))?;
        segment.data(endian, vmlinux).ok()?.get(usize::try_from(offset).ok()?..)
    })
}

/// Checks by their `vermagic` (`include/linux/vermagic.h`) that all modules below `directory` were built for
/// the kernel `release`, and that a directory of `lib/modules` has its name.
pub(crate) fn check_modules(directory: &Path, release: &str) -> Result<(), Error> {
    let other = |path: &Path, other: &str| Error::NoKernel {
        path: path.to_owned(),
        problem: format!(
            "it is for the kernel {}, but the image is {release}",
            other.escape_debug()
        ),
    };
    let place = directory.canonicalize().doing("read", directory)?;
    let is_of_library = place.parent().is_some_and(|parent| parent.ends_with("lib/modules"));
    if let Some(name) = place.file_name().filter(|name| is_of_library && *name != release) {
        return Err(other(directory, &name.to_string_lossy()));
    }
    let mut wanted = vec![directory.join("kernel")];
    while let Some(place) = wanted.pop() {
        for entry in fs::read_dir(&place).doing("list", &place)? {
            let entry = entry.doing("list", &place)?;
            let (path, kind) = (entry.path(), entry.file_type().doing("read", &place)?);
            let is_module = entry.file_name().to_string_lossy().contains(".ko");
            if kind.is_dir() {
                wanted.push(path);
            } else if kind.is_file() && is_module {
                let module = Module { name: String::new(), path: path.clone(), optional: false };
                let wrong = |error: crate::modules::Error| Error::NoKernel {
                    path: path.clone(),
                    problem: error.problem(),
                };
                match module.release().map_err(wrong)? {
                    Some(built) if built != release => return Err(other(&path, &built)),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// The text of a user's file (`config` or `map`), unchanged; for a packaged kernel, its configuration. `None`
/// if the kernel has no such file. Fails when it cannot be read, or has changed since it was added.
pub fn text(kernel: &Kernel, part: &str) -> Result<Option<String>, Error> {
    let path = if part == "map" { &kernel.map } else { &kernel.config };
    let Some(path) = path else { return Ok(None) };
    let bytes = input::read(path, MAX_MAP)?;
    match kernel.digests.get(part) {
        Some(kept) if *kept != digest(&bytes) => Err(changed(path, &kernel.name)),
        _ => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
    }
}
