//! The files of the source that a build read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

use model::Architecture;

use super::history::ChangedFile;
use crate::error::Doing;
use crate::{Error, arch};

/// Parts of the source that no build of a kernel reads.
const NEVER: [&str; 7] = [
    "Documentation/", "LICENSES/", "tools/perf/", "tools/power/", "tools/testing/",
    "tools/tracing/", "tools/verification/",
];
/// Files of the source that no build of a kernel reads.
const NEVER_FILES: [&str; 5] = ["COPYING", "CREDITS", "MAINTAINERS", "README", ".mailmap"];

/// The files that one or more builds read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(BTreeSet<String>);

impl Inputs {
    /// Reads the notes that Kbuild writes beside each file that it makes (`.NAME.cmd`, `scripts/Makefile.lib`): the
    /// command, and all files that it read. The output directory is below the source.
    pub(crate) fn of_build(output: &Path) -> Result<Self, Error> {
        let mut inputs = Self::default();
        inputs.collect(output, output.parent().unwrap_or(output))?;
        Ok(inputs)
    }

    fn collect(&mut self, directory: &Path, source: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(directory).doing("list", directory)? {
            let entry = entry.doing("list", directory)?;
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type().doing("read", &path)?.is_dir() {
                self.collect(&path, source)?;
            } else if name.as_encoded_bytes().ends_with(b".cmd") {
                let text = fs::read(&path).doing("read", &path)?;
                self.add(&String::from_utf8_lossy(&text), source);
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &str, source: &Path) {
        let is_between = |c: char| c.is_whitespace() || "=,()\"';".contains(c);
        for word in text.split(is_between) {
            let path = match Path::new(word).strip_prefix(source) {
                Ok(path) => path,
                Err(_) => match word.strip_prefix("../") {
                    Some(path) => Path::new(path),
                    None => continue,
                },
            };
            self.0.extend(plain(path));
        }
    }

    /// The files in C that a compiler made objects of the kernel from.
    pub(crate) fn compiled(&self) -> impl Iterator<Item = &str> {
        let is_host = |path: &str| ["scripts/", "tools/"].iter().any(|it| path.starts_with(it));
        let files = self.0.iter().map(String::as_str);
        files.filter(move |path| path.ends_with(".c") && !is_host(path))
    }

    /// The files, one a line.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|path| format!("{path}\n")).collect()
    }

    /// Parses the output of [`Inputs::text`].
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().map(String::from).collect())
    }

    /// The files of both.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether a build of such a kernel can read a changed file. Kbuild notes all C files, assembler files and
    /// headers that it reads, so others of these kinds do not matter, except that a new header can replace another
    /// one. All other files matter, such as Makefiles and Kconfig, unless they are documentation or belong to another
    /// architecture.
    pub fn matter(&self, change: &ChangedFile) -> bool {
        let path = &*change.path;
        if self.0.contains(path) {
            return true;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_never = NEVER.iter().any(|directory| path.starts_with(directory))
            || NEVER_FILES.contains(&path)
            || name == ".gitignore"
            || self.is_of_other_architecture(path);
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            _ if is_never => false,
            Some("c" | "S" | "rs" | "rst" | "dts" | "dtsi" | "yaml") => false,
            Some("h") => change.is_new && path.split('/').any(|part| part == "include"),
            _ => true,
        }
    }

    fn is_of_other_architecture(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let ["arch", name] = [(); 2].map(|()| parts.next().unwrap_or("")) else { return false };
        // `arch/Kconfig` belongs to all architectures.
        let directory = format!("arch/{name}/");
        let mut own = self.0.range(directory.clone()..);
        parts.next().is_some() && own.next().is_none_or(|path| !path.starts_with(&directory))
    }
}

/// A path without `.` and `..`; `None` if it leaves the source, or lies in the output.
fn plain(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            _ => {}
        }
    }
    let is_output =
        |part: &str| Architecture::ALL.iter().any(|it| arch::recipe(*it).output == part);
    parts.first().is_some_and(|first| !is_output(first)).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTED: &str = "savedcmd_mm/memory.o := ccache gcc -Wp,-MMD,mm/.memory.o.d -I../arch/x86/include \
        -include ../include/linux/kconfig.h -c -o mm/memory.o ../mm/memory.c\n\n\
        source_mm/memory.o := ../mm/memory.c\n\ndeps_mm/memory.o := \\\n    \
        $(wildcard include/config/NUMA) \\\n  ../arch/x86/kernel/../include/asm/page.h \\\n  \
        include/generated/bounds.h \\\n /src/linux/tools/objtool/check.c /src/linux/output/x.h /usr/include/a.h";

    #[test]
    fn changed_files_matter_if_a_build_can_read_them() {
        let mut inputs = Inputs::default();
        inputs.add(NOTED, Path::new("/src/linux"));
        let files = "arch/x86/include/asm/page.h\ninclude/linux/kconfig.h\nmm/memory.c\n\
                     tools/objtool/check.c\n";
        assert_eq!(inputs.text(), files);
        assert_eq!(Inputs::parse(files), inputs);
        let matters =
            |path: &str, is_new| inputs.matter(&ChangedFile { path: path.into(), is_new });
        for path in [
            "mm/memory.c",
            "arch/x86/include/asm/page.h",
            "mm/Makefile",
            "mm/Kconfig",
            "drivers/net/Kconfig",
            "arch/Kconfig",
            "arch/x86/Makefile",
            "Makefile",
            "scripts/x.sh",
            "arch/x86/entry/syscalls/syscall_64.tbl",
        ] {
            assert!(matters(path, false), "{path}");
        }
        for path in [
            "mm/other.c", "Documentation/Makefile", "arch/arm64/Kconfig", "arch/arm/mm/a.c",
            "include/linux/other.h", "MAINTAINERS", "drivers/net/.gitignore",
            "tools/testing/Makefile", "arch/arm64/include/asm/new.h",
        ] {
            assert!(!matters(path, false), "{path}");
        }
        assert!(
            matters("include/linux/new.h", true) && matters("arch/x86/include/asm/new.h", true)
        );
        assert!(!matters("drivers/net/new.h", true) && !matters("mm/new.c", true));
    }
}
