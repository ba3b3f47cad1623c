//! Line tables and sources of kernels that were built here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use code::Symbol;
use model::{Compiler, Kernel, KernelSource};
use object::{Object, ObjectSymbol};

use super::Cache;
use crate::Error;
use crate::error::Doing;
use crate::source::config::Requested;
use crate::source::git::Tree;
use crate::source::inputs::Inputs;
use crate::source::make::{Workshop, command_of};
use crate::source::repository::Repository;

/// Why an object is not compiled again.
const OLDER: &str = "it was built by an older version of Faultline, which did not keep its source: remove it with \
                     `faultline kernel remove`, and build it again";

/// How much is built to find the objects that define a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Only the objects of files of the source that seem to define it.
    Few,
    /// The whole kernel, if those are not enough.
    Whole,
}

/// The objects that define each function, linked with debug information, or why there are none.
pub type Lined = HashMap<String, Result<Vec<Vec<u8>>, String>>;

impl Cache {
    /// Compiles the objects of a kernel in which functions are defined again, with debug information, and links each alone.
    /// Their code may differ from the kernel's: the caller compares it. The results are kept. What is kept needs no lock.
    ///
    /// # Errors
    /// When the host fails, or another process builds and this cache does not wait.
    pub fn with_lines(
        &self,
        kernel: &Kernel,
        functions: &[String],
        search: Search,
        say: &dyn Fn(&str),
    ) -> Result<Lined, Error> {
        let mut lined = Lined::new();
        let mut missing = Vec::new();
        for function in functions {
            if !is_name(function) {
                let why = format!("`{function}` is no name of a function");
                lined.insert(function.clone(), Err(why));
                continue;
            }
            match read_all(&self.kept_lines(kernel).join(function))? {
                Some(kept) => drop(lined.insert(function.clone(), Ok(kept))),
                None => missing.push(function),
            }
        }
        if !missing.is_empty() {
            let compiled = self.compile_lines(kernel, &missing, search, say)?;
            match compiled {
                Ok(compiled) => lined.extend(compiled),
                Err(why) => {
                    lined.extend(missing.into_iter().map(|it| (it.clone(), Err(why.clone()))));
                }
            }
        }
        Ok(lined)
    }

    /// The directory with the objects of a kernel's functions, each in a directory of its own.
    fn kept_lines(&self, kernel: &Kernel) -> PathBuf {
        self.builds().join("lines").join(&kernel.digest)
    }

    /// Compiles the objects of functions, and keeps them. The inner error is why that is not possible.
    fn compile_lines(
        &self,
        kernel: &Kernel,
        functions: &[&String],
        search: Search,
        say: &dyn Fn(&str),
    ) -> Result<Result<Lined, String>, Error> {
        let Some(source) = &kernel.source else { return Ok(Err(OLDER.into())) };
        let (Ok(compiler), Some(config)) = (source.compiler.parse::<Compiler>(), &kernel.config)
        else {
            return Ok(Err("its compiler or its configuration is not known".into()));
        };
        let lock = self.lock_builds(say)?;
        let Some(repository) = self.repository_with(source)? else {
            return Ok(Err(
                "its source is no longer in the cache or the repository that it came from".into(),
            ));
        };
        let base = Some(fs::read_to_string(config).doing("read", config)?);
        let requested = Requested { arch: kernel.arch, base, ..Requested::default() };
        let inputs = self.inputs(kernel)?.unwrap_or_default();
        let names = functions.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
        say(&format!("Compiling what defines {names} in {} with line tables", kernel.name));
        let by = (&compiler, kernel.arch);
        let workshop = self.workshop((&repository, &source.tree), by, &lock, say)?;
        let mut defining = definitions(&workshop.source, &inputs, functions)?;
        let objects = defining.values().flatten().cloned().collect();
        if let Err(unbuilt) = workshop.build_objects(&requested, &objects)? {
            return Ok(Err(unbuilt.problem().to_owned()));
        }
        let output = workshop.output();
        for (function, objects) in &mut defining {
            objects.retain(|object| defines(&output.join(object), function));
        }
        if search == Search::Whole && defining.values().any(BTreeSet::is_empty) {
            if let Err(unbuilt) = workshop.build(&kernel.name, &requested, false, say)? {
                return Ok(Err(unbuilt.problem().to_owned()));
            }
            for (function, objects) in defining.iter_mut().filter(|(_, it)| it.is_empty()) {
                find(&output, Path::new(""), function, objects)?;
            }
        }
        self.compile(&workshop, kernel, &defining).map(Ok)
    }

    /// Compiles the objects that define each function, and keeps them.
    fn compile(
        &self,
        workshop: &Workshop<'_>,
        kernel: &Kernel,
        defining: &BTreeMap<&str, BTreeSet<PathBuf>>,
    ) -> Result<Lined, Error> {
        let mut compiled = BTreeMap::new();
        for object in defining.values().flatten() {
            if !compiled.contains_key(object) {
                compiled.insert(object, workshop.with_lines(object)?);
            }
        }
        let mut lined = Lined::new();
        for (&function, objects) in defining {
            let objects: Vec<_> = objects.iter().filter_map(|it| compiled[it].clone()).collect();
            let objects = match objects.is_empty() {
                true => Err(format!("none of its objects with `{function}` could be compiled")),
                false => {
                    self.keep_lines(&self.kept_lines(kernel).join(function), &objects)?;
                    Ok(objects)
                }
            };
            lined.insert(function.to_owned(), objects);
        }
        Ok(lined)
    }

    /// Keeps objects in a new directory.
    fn keep_lines(&self, kept: &Path, objects: &[Vec<u8>]) -> Result<(), Error> {
        let stage = tempfile::tempdir_in(self.builds()).doing("create", &self.builds())?;
        for (number, bytes) in objects.iter().enumerate() {
            let to = stage.path().join(number.to_string());
            fs::write(&to, bytes).doing("write", &to)?;
        }
        let above = kept.parent().unwrap_or(kept);
        fs::create_dir_all(above).doing("create", above)?;
        match fs::rename(stage.path(), kept) {
            // Another process made the same before this one got the lock.
            Err(_) if kept.is_dir() => Ok(()),
            renamed => renamed.doing("create", kept),
        }
    }

    /// The text of a file of the source that a kernel was built from; `None` if it is not known. Needs no lock.
    ///
    /// # Errors
    /// When the repository cannot be read.
    pub fn source_file(&self, kernel: &Kernel, path: &str) -> Result<Option<String>, Error> {
        let Some(source) = &kernel.source else { return Ok(None) };
        let repository = Repository::to_read(&self.repository(), tree_of(source).as_ref());
        match repository.has(&source.tree) {
            true => repository.file(&source.tree, path),
            false => Ok(None),
        }
    }

    /// Our repository, if it still has a source. Builds must be locked.
    fn repository_with(&self, source: &KernelSource) -> Result<Option<Repository>, Error> {
        let repository = Repository::open(&self.repository(), tree_of(source).as_ref())?;
        Ok(Some(repository).filter(|it| it.has(&source.tree)))
    }
}

/// The user's repository that a source came from, if it is still there.
fn tree_of(source: &KernelSource) -> Option<Tree> {
    Tree::open(source.repository.as_ref()?).ok()
}

/// Whether a text is the name of a function, which is that of a directory too.
fn is_name(function: &str) -> bool {
    function.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !function.is_empty()
}

/// The files of a directory, in order of their names; `None` if there is no such directory.
fn read_all(directory: &Path) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries.doing("list", directory)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.doing("list", directory)?.path());
    }
    paths.sort();
    paths.iter().map(|path| fs::read(path).doing("read", path)).collect::<Result<_, _>>().map(Some)
}

/// The objects that may define each function, by the files that a build read.
fn definitions<'a>(
    source: &Path,
    inputs: &Inputs,
    functions: &[&'a String],
) -> Result<BTreeMap<&'a str, BTreeSet<PathBuf>>, Error> {
    let mut found: BTreeMap<&str, BTreeSet<PathBuf>> =
        functions.iter().map(|it| (it.as_str(), BTreeSet::new())).collect();
    for path in inputs.compiled() {
        let text = match fs::read(source.join(path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            text => text.doing("read", &source.join(path))?,
        };
        let text = String::from_utf8_lossy(&text);
        for (function, objects) in &mut found {
            if text.contains(called(function)) && text.lines().any(|it| begins(it, function)) {
                objects.insert(Path::new(path).with_extension("o"));
            }
        }
    }
    Ok(found)
}

/// The name by which the source defines a function. `__do_sys_mremap` is made by `SYSCALL_DEFINE5(mremap, ...)`.
fn called(function: &str) -> &str {
    let made = ["__do_sys_", "__se_sys_", "__x64_sys_", "__ia32_sys_"];
    made.iter().find_map(|it| function.strip_prefix(it)).unwrap_or(function)
}

/// Whether a line of the source may begin the definition of a function.
fn begins(line: &str, function: &str) -> bool {
    if !line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || line.ends_with(';') {
        return false;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = called(function);
    line.match_indices(name).any(|(at, _)| {
        let rest = &line[at + name.len()..];
        let is_word = !line[..at].ends_with(is_part) && !rest.starts_with(is_part);
        let is_call = line.starts_with("SYSCALL_DEFINE");
        is_word && (rest.starts_with('(') && name == function || is_call && name != function)
    })
}

/// Whether an object defines a function. A file that is no object does not.
fn defines(object: &Path, function: &str) -> bool {
    let Ok(bytes) = fs::read(object) else { return false };
    let Ok(file) = object::File::parse(bytes.as_slice()) else { return false };
    let mut symbols = file.symbols().filter(|it| it.is_definition());
    symbols.any(|it| it.name().is_ok_and(|name| Symbol::of(name).name == function))
}

/// Finds the objects below `place`, a directory in the output, that define a function.
fn find(
    output: &Path,
    place: &Path,
    function: &str,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), Error> {
    let directory = output.join(place);
    for entry in fs::read_dir(&directory).doing("list", &directory)? {
        let entry = entry.doing("list", &directory)?;
        let (path, inside) = (entry.path(), place.join(entry.file_name()));
        let kind = entry.file_type().doing("read", &path)?;
        if kind.is_dir() {
            find(output, &inside, function, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "o") {
            // Those that a linker made have no command of a compiler.
            if defines(&path, function) && command_of(output, &inside).is_some() {
                found.insert(inside);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_begin_a_definition() {
        for line in [
            "static vm_fault_t wp_page_copy(struct vm_fault *vmf)",
            "wp_page_copy(struct vm_fault *vmf,",
            "int wp_page_copy(void) { return wp_page_copy(); }",
        ] {
            assert!(begins(line, "wp_page_copy"), "{line}");
        }
        for line in [
            "\treturn wp_page_copy(vmf);",
            "vm_fault_t wp_page_copy(struct vm_fault *vmf);",
            "static int old_wp_page_copy(void)",
            "static int wp_page_copy_in(void)",
            "#define wp_page_copy(x) x",
            "EXPORT_SYMBOL(wp_page_copy);",
        ] {
            assert!(!begins(line, "wp_page_copy"), "{line}");
        }
        let line = "SYSCALL_DEFINE5(mremap, unsigned long, addr, unsigned long, old_len,";
        assert!(begins(line, "__do_sys_mremap") && begins(line, "__x64_sys_mremap"));
        assert!(!begins(line, "__do_sys_mmap") && !begins(line, "mremap"));
    }
}
