//! Line tables and sources of kernels that were built here.

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
use crate::source::make::command_of;
use crate::source::repository::Repository;

/// Why an object is not compiled again.
const OLDER: &str = "it was built by an older version of Faultline, which did not keep its source: remove it with \
                     `faultline kernel remove`, and build it again";

impl Cache {
    /// Compiles the objects of a kernel in which a function is defined again, with debug information, and links each alone.
    /// Their code may differ from the kernel's: the caller compares it. The results are kept. The inner error is why
    /// there are none.
    ///
    /// # Errors
    /// When the host fails.
    pub fn with_lines(
        &self,
        kernel: &Kernel,
        function: &str,
        say: &dyn Fn(&str),
    ) -> Result<Result<Vec<Vec<u8>>, String>, Error> {
        // The name is that of a directory too.
        if !function.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || function.is_empty() {
            return Ok(Err(format!("`{function}` is no name of a function")));
        }
        let kept = self.builds().join("lines").join(&kernel.digest).join(function);
        if kept.is_dir() {
            return read_all(&kept).map(Ok);
        }
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
        let workshop = self.workshop((&repository, &source.tree), &compiler, &lock, say)?;
        let base = Some(fs::read_to_string(config).doing("read", config)?);
        let requested = Requested { base, ..Requested::default() };
        if let Err(unbuilt) = workshop.build(&kernel.name, &requested, false, say)? {
            return Ok(Err(unbuilt.problem().to_owned()));
        }
        let output = workshop.output();
        let mut objects = Vec::new();
        find(&output, Path::new(""), function, &mut objects)?;
        // Those that a linker made have no command of a compiler.
        objects.retain(|object| command_of(&output, object).is_some());
        objects.sort();
        let stage = tempfile::tempdir_in(self.builds()).doing("create", &self.builds())?;
        for (number, object) in objects.iter().enumerate() {
            say(&format!("Compiling {} of {} with line tables", object.display(), kernel.name));
            if let Some(bytes) = workshop.with_lines(object)? {
                let to = stage.path().join(number.to_string());
                fs::write(&to, bytes).doing("write", &to)?;
            }
        }
        let found = read_all(stage.path())?;
        if found.is_empty() {
            return Ok(Err(format!("none of its objects with `{function}` could be compiled")));
        }
        let above = kept.parent().unwrap_or(&kept);
        fs::create_dir_all(above).doing("create", above)?;
        fs::rename(stage.keep(), &kept).doing("create", &kept)?;
        Ok(Ok(found))
    }

    /// The text of a file of the source that a kernel was built from; `None` if it is not known.
    ///
    /// # Errors
    /// When the repository cannot be read.
    pub fn source_file(
        &self,
        kernel: &Kernel,
        path: &str,
        say: &dyn Fn(&str),
    ) -> Result<Option<String>, Error> {
        let Some(source) = &kernel.source else { return Ok(None) };
        let _lock = self.lock_builds(say)?;
        match self.repository_with(source)? {
            Some(repository) => repository.file(&source.tree, path),
            None => Ok(None),
        }
    }

    /// Our repository, if it still has a source. Builds must be locked.
    fn repository_with(&self, source: &KernelSource) -> Result<Option<Repository>, Error> {
        let tree = source.repository.as_ref().and_then(|path| Tree::open(path).ok());
        let repository = Repository::open(&self.repository(), tree.as_ref())?;
        Ok(Some(repository).filter(|it| it.has(&source.tree)))
    }
}

/// The files of a directory, in order of their names.
fn read_all(directory: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).doing("list", directory)? {
        paths.push(entry.doing("list", directory)?.path());
    }
    paths.sort();
    paths.iter().map(|path| fs::read(path).doing("read", path)).collect()
}

/// Finds the objects below `place`, a directory in the output, that define a function.
fn find(
    output: &Path,
    place: &Path,
    function: &str,
    found: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let directory = output.join(place);
    for entry in fs::read_dir(&directory).doing("list", &directory)? {
        let entry = entry.doing("list", &directory)?;
        let (path, inside) = (entry.path(), place.join(entry.file_name()));
        let kind = entry.file_type().doing("read", &path)?;
        if kind.is_dir() {
            find(output, &inside, function, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "o") {
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                bytes => bytes.doing("read", &path)?,
            };
            let Ok(file) = object::File::parse(bytes.as_slice()) else { continue };
            let mut symbols = file.symbols().filter(|it| it.is_definition());
            if symbols.any(|it| it.name().is_ok_and(|name| Symbol::of(name).name == function)) {
                found.push(inside);
            }
        }
    }
    Ok(())
}
