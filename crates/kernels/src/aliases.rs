//! Keeps aliases, which say to which kernel a request was resolved. `debian:6.1` remains the same kernel when the
//! archive changes, until it is added again. Aliases of lists of packages refer to images in the same way.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::Doing;
use crate::{Error, record};

/// The contents of the file of aliases.
pub(crate) struct Aliases {
    path: PathBuf,
    names: BTreeMap<String, String>,
}

impl Aliases {
    /// Reads the file; if it is missing there are no aliases.
    pub fn read(path: PathBuf) -> Result<Self, Error> {
        let names = record::read(&path)?.unwrap_or_default();
        Ok(Self { path, names })
    }

    /// The target of an alias.
    pub fn get(&self, alias: &str) -> Option<&str> {
        self.names.get(alias).map(String::as_str)
    }

    /// Every alias with its target.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(alias, name)| (alias.as_str(), name.as_str()))
    }

    /// Makes `alias` refer to `name`. Returns its previous target.
    pub fn set(&mut self, alias: &str, name: &str) -> Option<String> {
        self.names.insert(alias.into(), name.into())
    }

    /// Removes all aliases of `name`.
    pub fn forget(&mut self, name: &str) {
        self.names.retain(|_, aliased| aliased != name);
    }

    /// Writes the file atomically.
    pub fn write(&self) -> Result<(), Error> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(directory).doing("write into", directory)?;
        serde_json::to_writer_pretty(&mut file, &self.names)
            .map_err(io::Error::from)
            .and_then(|()| file.flush())
            .and_then(|()| file.as_file().sync_all())
            .doing("write", &self.path)?;
        file.persist(&self.path).map_err(|error| error.error).doing("write", &self.path)?;
        Ok(())
    }
}
