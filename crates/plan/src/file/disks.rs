//! The disks of an experiment file.

use std::ops::Range;
use std::path::{Component, Path};

use model::{Bytes, DISK_UNIT, Disk, DiskKind, FileSystem, Format, MAX_DISKS, Mode};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Checked, fault};

/// Directories that the guest itself needs, so nothing may be mounted on them.
const TAKEN: [&str; 4] = ["dev", "faultline", "proc", "sys"];

/// The largest size of a disk. Hosts have no larger files.
const MAX_DISK: Bytes = Bytes(1 << 60);

/// One `[[machine.disk]]`.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DiskForm {
    /// How the guest sees it.
    pub kind: Option<Spanned<DiskKind>>,
    /// The size of the disk in bytes.
    pub size: Spanned<Bytes>,
    /// The file system on it; none for a raw device.
    pub filesystem: Option<FileSystem>,
    /// Options for mkfs, one word each.
    pub mkfs: Option<Spanned<Vec<String>>>,
    /// Where it is mounted.
    pub mount: Option<Spanned<String>>,
    /// Options of mount, separated by commas.
    pub options: Option<Spanned<String>>,
}

/// Checks the disks of a machine with `memory`. The default kind depends on the mode.
pub fn check(forms: Vec<Spanned<DiskForm>>, mode: Mode, memory: Bytes) -> Checked<Vec<Disk>> {
    if let Some(form) = forms.get(MAX_DISKS) {
        let problem = format!("{} disks", forms.len());
        return fault(form.span(), problem, format!("a machine has at most {MAX_DISKS} disks"));
    }
    let mut disks: Vec<Disk> = Vec::new();
    for form in forms {
        let span = form.span();
        let disk = form.into_inner().check(disks.len(), mode, memory)?;
        check_beside(&disk, &disks, span)?;
        disks.push(disk);
    }
    Ok(disks)
}

/// Checks that a disk is compatible with the others.
fn check_beside(disk: &Disk, others: &[Disk], span: Range<usize>) -> Checked<()> {
    let is_ram = |disk: &&Disk| disk.kind == DiskKind::Ram;
    let ram = others.iter().find(is_ram);
    if let (DiskKind::Ram, Some(other)) = (disk.kind, ram)
        && other.size != disk.size
    {
        let problem = format!("RAM disks have different sizes: {} and {}", other.size, disk.size);
        return fault(
            span,
            problem,
            "use one size: the kernel makes all RAM disks with the same size",
        );
    }
    let mount = disk.format.as_ref().map(|format| &format.mount);
    let mut mounts = others.iter().filter_map(|other| other.format.as_ref());
    if let Some(mount) = mount
        && mounts.any(|other| other.mount == *mount)
    {
        let problem = format!("two disks are mounted on {mount}");
        return fault(span, problem, "mount each disk on its own directory");
    }
    Ok(())
}

impl DiskForm {
    fn check(self, number: usize, mode: Mode, memory: Bytes) -> Checked<Disk> {
        let kind = match (&self.kind, mode) {
            (Some(kind), Mode::Exact) if kind.get_ref().is_asynchronous() => {
                let name = kind.get_ref().name();
                let problem = format!(
                    "{name} is not exact: the host's threads decide when its requests complete"
                );
                return fault(kind.span(), problem, "use kind = \"pmem\"");
            }
            (Some(kind), _) => *kind.get_ref(),
            (None, Mode::Exact) => DiskKind::Pmem,
            (None, Mode::Measured) => DiskKind::VirtioBlk,
        };
        let size = *self.size.get_ref();
        if size.0 == 0 || !size.0.is_multiple_of(DISK_UNIT.0) {
            let problem = format!("a disk cannot have a size of {size}");
            return fault(self.size.span(), problem, "use a multiple of 2M");
        }
        if size > MAX_DISK {
            let hint = format!("a disk has at most {MAX_DISK}, the limit for the host's files");
            return fault(self.size.span(), format!("a disk cannot have a size of {size}"), hint);
        }
        if kind == DiskKind::Ram && size >= memory {
            let problem = format!("a RAM disk of {size} does not fit into {memory} of memory");
            let hint = "it uses the machine's memory: make it smaller, or use kind = \"pmem\"";
            return fault(self.size.span(), problem, hint);
        }
        Ok(Disk { kind, size, format: self.format(number)? })
    }

    fn format(self, number: usize) -> Checked<Option<Format>> {
        let Some(filesystem) = self.filesystem else {
            let mkfs = self.mkfs.map(|mkfs| mkfs.span());
            let others = [self.mount, self.options];
            let others = others.into_iter().flatten().map(|value| value.span());
            return match mkfs.into_iter().chain(others).next() {
                None => Ok(None),
                Some(span) => {
                    let hint = "add filesystem = \"ext4\", or leave this out for a raw device";
                    fault(span, "the disk has no file system", hint)
                }
            };
        };
        let mount = match self.mount {
            Some(mount) => checked_mount(mount)?,
            None => format!("/disk{number}"),
        };
        let mut mkfs = Vec::new();
        if let Some(words) = self.mkfs {
            if words.get_ref().iter().any(|word| !is_printable(word)) {
                let problem = "an option of mkfs is empty or not printable";
                return fault(words.span(), problem, "write each word as a string of its own");
            }
            // Options could name files of the host, which mkfs would overwrite.
            if words.get_ref().iter().any(|word| word.contains('/')) {
                let problem = "an option of mkfs contains a `/`";
                return fault(
                    words.span(),
                    problem,
                    "it could name a file of the host, so `/` is not allowed",
                );
            }
            mkfs = words.into_inner();
        }
        let mut options = String::new();
        if let Some(words) = self.options {
            if !is_printable(words.get_ref()) || words.get_ref().contains(' ') {
                let hint = "separate options by commas: \"noatime,nodiratime\"";
                return fault(words.span(), "the options of mount are invalid", hint);
            }
            options = words.into_inner();
        }
        Ok(Some(Format { filesystem, mkfs, mount, options, digest: None }))
    }
}

fn checked_mount(mount: Spanned<String>) -> Checked<String> {
    let path = mount.get_ref();
    let mut parts = Path::new(path).components();
    let is_absolute = parts.next() == Some(Component::RootDir) && is_printable(path);
    let names: Option<Vec<_>> = parts
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    match names.as_deref() {
        Some([first, ..]) if is_absolute && TAKEN.contains(first) => {
            let problem = format!("the guest has its own files in /{first}");
            fault(mount.span(), problem, "mount the disk elsewhere, such as on \"/mnt/data\"")
        }
        Some(names @ [_, ..]) if is_absolute => Ok(format!("/{}", names.join("/"))),
        _ => {
            let problem = format!("a disk cannot be mounted on `{path}`");
            fault(mount.span(), problem, "use an absolute path, such as \"/mnt/data\"")
        }
    }
}

fn is_printable(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::super::tests::rendered;
    use super::*;
    use crate::form;

    #[derive(Deserialize)]
    struct Form {
        disk: Vec<Spanned<DiskForm>>,
    }

    fn checked(text: &str, mode: Mode) -> Checked<Vec<Disk>> {
        let form: Form = form::read(text)?;
        check(form.disk, mode, Bytes::mib(1024))
    }

    const DATA: &str = "[[disk]]
size = \"1G\"
filesystem = \"ext4\"
mkfs = [\"-O\", \"^has_journal\"]
mount = \"/mnt/data/\"
options = \"noatime\"
";
    const PLAIN: &str = "[[disk]]\nsize = \"512M\"\n";

    #[test]
    fn disks_are_read_with_defaults_for_their_mode() {
        let text = format!("{DATA}{PLAIN}{PLAIN}kind = \"ram\"\nfilesystem = \"xfs\"");
        let read = |mode| {
            let disks = checked(&text, mode).ok().unwrap();
            disks.iter().map(Disk::to_string).collect::<Vec<_>>()
        };
        let expected = [
            "virtio-blk 1G, ext4 (-O ^has_journal) on /mnt/data (noatime)",
            "virtio-blk 512M, raw",
            "ram 512M, xfs on /disk2",
        ];
        assert_eq!(read(Mode::Measured), expected);
        assert_eq!(read(Mode::Exact), expected.map(|text| text.replace("virtio-blk", "pmem")));
    }

    #[test]
    fn a_workload_that_needs_a_disk_is_an_error_without_one() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = "name = \"reader\"\ndescription = \"\"\ncommand = [\"cat\", \"{disk}\"]\n\
                        metrics = []\n";
        std::fs::write(directory.path().join("reader.toml"), manifest).unwrap();
        let path = directory.path().join("x.toml");
        let read = |disk: &str| {
            let text = format!(
                "name = \"x\"\nboots = 1\n[machine]\ncpus = 1\nmemory = \"1G\"\n{disk}\n\
                 [[variant]]\nkernel = \"6.1\"\n[[workload]]\nmanifest = \"reader.toml\"\n"
            );
            super::super::parse(&path, &text, None)
        };
        let disks = read(&DATA.replace("disk", "machine.disk")).unwrap().experiment.machine.disks;
        assert_eq!(disks[0].place(0), "/mnt/data");
        let error = rendered(&read("").unwrap_err());
        assert!(error.contains("workload `reader` needs a disk"), "{error}");
        assert!(error.contains("[[machine.disk]]"), "{error}");
    }

    #[test]
    fn each_error_has_its_line_and_a_hint() {
        let both = |a: &str, b: &str| format!("{a}{b}");
        let cases = [
            (both(PLAIN, "kind = \"virtio-blk\""), Mode::Exact),
            (both(PLAIN, "kind = \"nvme\""), Mode::Exact),
            (both(PLAIN, "kind = \"virtio\""), Mode::Measured),
            (DATA.replace("1G", "3M"), Mode::Measured),
            (DATA.replace("1G", "0"), Mode::Measured),
            (both(DATA, "kind = \"ram\""), Mode::Measured),
            (both(PLAIN, "mount = \"/mnt\""), Mode::Measured),
            (both(PLAIN, "mkfs = [\"-q\"]"), Mode::Measured),
            (DATA.replace("^has_journal", "/dev/sda"), Mode::Measured),
            (DATA.replace("/mnt/data/", "mnt"), Mode::Measured),
            (DATA.replace("/mnt/data/", "/mnt/../dev"), Mode::Measured),
            (DATA.replace("/mnt/data/", "/sys/fs"), Mode::Measured),
            (DATA.replace("/mnt/data/", "/"), Mode::Measured),
            (DATA.replace("^has_journal", ""), Mode::Measured),
            (DATA.replace("noatime", "no atime"), Mode::Measured),
            (DATA.replace("ext4", "ext5"), Mode::Measured),
            (both(DATA, DATA), Mode::Measured),
            (PLAIN.repeat(17), Mode::Measured),
            (
                format!("{PLAIN}kind = \"ram\"\n{}", PLAIN.replace("512M", "256M\"\nkind = \"ram")),
                Mode::Measured,
            ),
        ];
        let complaints = cases.iter().map(|(text, mode)| {
            let fault = checked(text, *mode).err().unwrap_or_else(|| panic!("{text}"));
            rendered(&fault.at(Path::new("x.toml"), text))
        });
        insta::assert_snapshot!(complaints.collect::<Vec<_>>().join("\n"));
    }
}
