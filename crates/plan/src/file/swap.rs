//! Checks the swap space of an experiment file.

use std::ops::Range;

use model::{Bytes, Disk, Swap};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Checked, fault, placeless};

/// The smallest size of swap space.
const LEAST: Bytes = Bytes::mib(1);
/// The longest name of a compression algorithm (those in `drivers/block/zram/zcomp.c` are shorter).
const MAX_ALGORITHM: usize = 32;

#[derive(Clone, Copy)]
enum Kind {
    File,
    Zram,
    Disk,
}

/// The kinds, for errors.
const KINDS: &str = "kind = \"file\", \"disk\" or \"zram\"";

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SwapForm {
    kind: Option<Spanned<String>>,
    size: Option<Spanned<Bytes>>,
    disk: Option<Spanned<usize>>,
    algorithm: Option<Spanned<String>>,
}

impl From<&Swap> for SwapForm {
    fn from(swap: &Swap) -> Self {
        let (kind, size, disk, algorithm) = match swap {
            Swap::File { disk, size } => ("file", Some(*size), Some(*disk), ""),
            Swap::Disk { disk } => ("disk", None, Some(*disk), ""),
            Swap::Zram { size, algorithm } => ("zram", Some(*size), None, &**algorithm),
        };
        let algorithm = Some(algorithm.to_owned()).filter(|it| !it.is_empty());
        Self {
            kind: Some(placeless(kind.to_owned())),
            size: size.map(placeless),
            disk: disk.map(placeless),
            algorithm: algorithm.map(placeless),
        }
    }
}

/// Checks the swap space of a machine with these disks.
pub fn check(form: Spanned<SwapForm>, disks: &[Disk]) -> Checked<Swap> {
    let span = form.span();
    let form = form.into_inner();
    let kind = form.kind(&span)?;
    if let (Some(algorithm), Kind::File | Kind::Disk) = (&form.algorithm, kind) {
        let hint = "leave algorithm out, or use kind = \"zram\"";
        return fault(algorithm.span(), "algorithm is only for zram", hint);
    }
    match kind {
        Kind::File => {
            let formatted = |disk: &Disk| disk.format.is_some();
            let hint = "add a [[machine.disk]] with a filesystem for the file";
            let disk = form.disk(disks, formatted, "has no file system", hint, span.clone())?;
            let (size, place) = form.size(span)?;
            if size >= disks[disk].size {
                let problem =
                    format!("a swap file of {size} does not fit on a disk of {}", disks[disk].size);
                return fault(place, problem, "make the file smaller, or the disk larger");
            }
            Ok(Swap::File { disk, size })
        }
        Kind::Disk => {
            if let Some(size) = &form.size {
                let hint = "leave size out: swap space takes the entire disk";
                return fault(size.span(), "size is not for swap space on a disk", hint);
            }
            let raw = |disk: &Disk| disk.format.is_none();
            let hint = "add a [[machine.disk]] without a filesystem";
            let disk = form.disk(disks, raw, "has a file system", hint, span)?;
            Ok(Swap::Disk { disk })
        }
        Kind::Zram => {
            if let Some(disk) = &form.disk {
                let hint = "leave disk out, or use kind = \"file\" or \"disk\"";
                return fault(disk.span(), "disk is not for zram, which is in memory", hint);
            }
            let (size, _) = form.size(span)?;
            let algorithm = match form.algorithm {
                None => String::new(),
                Some(algorithm) => checked_algorithm(algorithm)?,
            };
            Ok(Swap::Zram { size, algorithm })
        }
    }
}

impl SwapForm {
    fn kind(&self, span: &Range<usize>) -> Checked<Kind> {
        let Some(kind) = &self.kind else {
            return fault(span.clone(), "the swap space has no kind", format!("add {KINDS}"));
        };
        match kind.get_ref().as_str() {
            "file" => Ok(Kind::File),
            "disk" => Ok(Kind::Disk),
            "zram" => Ok(Kind::Zram),
            other => {
                let problem = format!("`{other}` is not a kind of swap space");
                fault(kind.span(), problem, format!("use {KINDS}"))
            }
        }
    }

    /// The number of the chosen disk, or of the first suitable one.
    fn disk(
        &self,
        disks: &[Disk],
        suits: impl Fn(&Disk) -> bool,
        problem: &str,
        hint: &str,
        span: Range<usize>,
    ) -> Checked<usize> {
        let Some(wanted) = &self.disk else {
            return match disks.iter().position(suits) {
                Some(number) => Ok(number),
                None => fault(span, "there is no disk for the swap space", hint),
            };
        };
        let number = *wanted.get_ref();
        match disks.get(number) {
            Some(disk) if suits(disk) => Ok(number),
            Some(_) => fault(wanted.span(), format!("disk {number} {problem}"), hint),
            None => {
                let problem = format!("there is no disk {number}");
                fault(wanted.span(), problem, "disks are numbered from 0, in the order of the file")
            }
        }
    }

    fn size(&self, span: Range<usize>) -> Checked<(Bytes, Range<usize>)> {
        match &self.size {
            Some(size) if *size.get_ref() >= LEAST => Ok((*size.get_ref(), size.span())),
            Some(size) => {
                let problem = format!("the swap space of {} is too small", size.get_ref());
                fault(size.span(), problem, format!("use {LEAST} or more"))
            }
            None => fault(span, "the swap space has no size", "add size = \"1G\""),
        }
    }
}

fn checked_algorithm(algorithm: Spanned<String>) -> Checked<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = algorithm.get_ref();
    if name.is_empty() || name.len() > MAX_ALGORITHM || !name.chars().all(plain) {
        let hint = "use a name that the kernel knows, such as \"lz4\" or \"zstd\"";
        return fault(algorithm.span(), "the name of the compression algorithm is invalid", hint);
    }
    Ok(algorithm.into_inner())
}

#[cfg(test)]
mod tests {
    use super::super::tests::rendered;
    use super::*;

    fn read(swap: &str) -> Result<Swap, Box<super::super::FileError>> {
        let text = format!(
            "name = \"x\"\nboots = 1\n[machine]\ncpus = 1\nmemory = \"1G\"\n{swap}\n\
             [[machine.disk]]\nsize = \"64M\"\n[[machine.disk]]\nsize = \"128M\"\n\
             filesystem = \"ext4\"\n[[variant]]\nkernel = \"6.1\"\n[[workload]]\nname = \"fault\"\n"
        );
        let request = super::super::parse(std::path::Path::new("x.toml"), &text, None)?;
        Ok(request.experiment.machine.swap.unwrap())
    }

    #[test]
    fn swap_is_read_with_its_disk() {
        for (text, swap) in [
            ("kind = \"file\", size = \"100M\"", "file of 100M on disk 1"),
            ("kind = \"disk\"", "disk 0"),
            ("kind = \"disk\", disk = 0", "disk 0"),
            ("kind = \"zram\", size = \"3G\"", "zram 3G"),
            ("kind = \"zram\", size = \"3G\", algorithm = \"lzo-rle\"", "zram 3G (lzo-rle)"),
        ] {
            assert_eq!(read(&format!("swap = {{ {text} }}")).unwrap().to_string(), swap);
        }
    }

    #[test]
    fn each_error_has_a_hint() {
        for (text, hint) in [
            ("kind = \"file\"", "add size"),
            ("kind = \"file\", size = \"128M\"", "smaller"),
            ("kind = \"file\", size = \"1K\"", "use 1M or more"),
            ("kind = \"file\", size = \"2M\", disk = 0", "with a filesystem"),
            ("kind = \"file\", size = \"2M\", disk = 2", "numbered from 0"),
            ("kind = \"file\", size = \"2M\", algorithm = \"lz4\"", "leave algorithm out"),
            ("kind = \"disk\", size = \"2M\"", "leave size out"),
            ("kind = \"disk\", disk = 1", "without a filesystem"),
            ("kind = \"zram\", size = \"2M\", disk = 0", "leave disk out"),
            ("kind = \"zram\", size = \"2M\", algorithm = \"a b\"", "that the kernel knows"),
            ("kind = \"zram\", size = 2", "in quotation marks"),
            ("kind = \"zarm\", size = \"2M\"", "use kind = \"file\", \"disk\" or \"zram\""),
            ("size = \"2M\"", "add kind = \"file\", \"disk\" or \"zram\""),
            ("kind = 3", "kind: invalid type: integer `3`"),
            ("knd = \"zram\"", "did you mean `kind`?"),
            ("kind = \"zram\", size = \"lots\"", "size: `lots` is not a size such as `512M`"),
            ("kind = \"disk\", disk = \"a\"", "disk: invalid type: string \"a\", expected a whole"),
        ] {
            let error = rendered(&read(&format!("swap = {{ {text} }}")).unwrap_err());
            assert!(error.contains(hint), "{text}: {error}");
        }
        for wrong in ["swap = [\"zram\"]", "swap = \"zram\"", "[[machine.swap]]\nkind = \"zram\""] {
            let error = rendered(&read(wrong).unwrap_err());
            assert!(error.contains("expected a table"), "{wrong}: {error}");
        }
    }
}
