//! Builds our own modules for the kernels of the cache.

use std::fs;
use std::path::Path;

use model::{Architecture, Kernel};

use super::{Cache, own};
use crate::checksums::{self, EXTERNAL, changed};
use crate::error::Doing;
use crate::modules::Module;
use crate::out_of_tree::{self, Source};
use crate::{Error, confine, debian, headers};

/// The source of a kernel's headers.
enum Headers<'a> {
    /// The user's headers, which the cache keeps.
    Own(&'a Path),
    /// Packages with this version.
    Packaged(&'a str),
}

impl Cache {
    /// Returns our own module for a kernel of the cache, and builds it on first use. The inner error is the reason
    /// why it cannot be built, as a predicate after the kernel's name. Fails when the host lacks a compiler or space,
    /// or the archive cannot be reached.
    pub fn out_of_tree(
        &self,
        kernel: &Kernel,
        source: &Source,
        say: &dyn Fn(&str),
    ) -> Result<Result<Module, String>, Error> {
        if kernel.arch != Architecture::X86_64 {
            let why = format!("is for {}: modules are built for x86_64 so far", kernel.arch.name());
            return Ok(Err(why));
        }
        let name = source.name;
        let place = self.home(&kernel.name).join(EXTERNAL).join(source.digest());
        let path = place.join(name).with_extension("ko");
        let module = Module { name: name.into(), path: path.clone(), optional: false };
        if checksums::is_whole(&path)? {
            return Ok(Ok(module));
        }
        let origin = match (&kernel.headers, debian::version_of(&kernel.origin)) {
            (Some(headers), _) => Headers::Own(headers),
            (None, Some(version)) => Headers::Packaged(version),
            (None, None) => {
                let why = "has no headers: add the kernel again with `--headers`";
                return Ok(Err(why.into()));
            }
        };
        let _lock = self.lock(say)?;
        // Another process may have built it while this one waited.
        if checksums::is_whole(&path)? {
            return Ok(Ok(module));
        }
        let workshop = out_of_tree::workshop(self.stage()?)?;
        let tree = workshop.path().join("tree");
        let confined = confine::words(&self.root, &[workshop.path()], say);
        let building = || say(&format!("Building the module {name} for {}", kernel.name));
        let built = match origin {
            Headers::Own(headers) => {
                let kept = kernel.digests.get(own::HEADERS);
                if kept.is_none_or(|kept| headers::tree_digest(headers).ok().as_ref() != Some(kept))
                {
                    return Err(changed(headers, &kernel.name));
                }
                headers::copy(headers, &tree)?;
                building();
                source.build(&tree, &workshop.path().join("module"), &confined)?
            }
            Headers::Packaged(version) => {
                if !debian::headers(&self.apt(), (&kernel.release, version), &tree, say)? {
                    let why = format!("has no headers in the Debian archive: {version}");
                    return Ok(Err(why));
                }
                building();
                source.build_packaged(&tree, &kernel.release, &confined)?
            }
        };
        let built = match built {
            Ok(built) => built,
            Err(why) => {
                return Ok(Err(format!("cannot be used to build the module {name}: {why}")));
            }
        };
        fs::create_dir_all(&place).doing("create", &place)?;
        checksums::keep(&built, &path)?;
        Ok(Ok(module))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_module_that_another_process_built_meanwhile_is_not_built_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let kernel = Kernel {
            name: "x".into(),
            release: "1-x".into(),
            origin: "Debian 1-1, here".into(),
            ..Kernel::default()
        };
        let source = Source { name: "some", text: "" };
        let place = cache.kernels().join("x/external").join(source.digest());
        let path = place.join("some.ko");
        let other = RefCell::new(Some(cache.lock(&|_| ()).unwrap()));
        let found = cache.out_of_tree(&kernel, &source, &|line| {
            let lock = other.take().unwrap_or_else(|| panic!("{line}"));
            fs::create_dir_all(&place).unwrap();
            let built = directory.path().join("built");
            fs::write(&built, "built").unwrap();
            checksums::keep(&built, &path).unwrap();
            drop(lock);
        });
        assert_eq!(found.unwrap().unwrap().path, path);
        assert!(checksums::is_whole(&path).unwrap());
        fs::write(&path, "bu1lt").unwrap();
        assert!(!checksums::is_whole(&path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!checksums::is_whole(&path).unwrap());
    }
}
