//! Adds a kernel from the directory in which it was built.

use std::path::Path;

use model::Kernel;

use super::Cache;
use crate::Error;
use crate::built::BuiltKernel;
use crate::request::check_name;

impl Cache {
    /// Copies a kernel of the user's from the directory of its build. Without `name`, its name has a digest of its
    /// files, so that each build is a kernel of its own.
    pub(super) fn add_directory(
        &self,
        path: &Path,
        name: Option<&str>,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        name.map_or(Ok(()), check_name)?;
        let built = BuiltKernel::find(path)?;
        let tree = &built.tree;
        say(&format!("Copying the kernel in {}", tree.display()));
        let mut own = self.gather(&built.image)?;
        own.config(&built.config)?;
        if let Some(map) = &built.map {
            own.map(map)?;
        }
        own.built_modules(tree, built.has_modules)?;
        if built.is_modular {
            own.headers_if_whole(tree, say)?;
        }
        let name = name.map_or_else(|| own.name(), str::to_owned);
        self.keep_gathered(own, name, format!("build directory {}", tree.display()), say)
    }
}
