//! Keeps kernels that were built from source, and builds those that are missing.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Architecture, Build, Compiler, Kernel, KernelSource};

use super::{Cache, own, requested};
use crate::aliases::Aliases;
use crate::assemble::{INPUTS, Parts, digest, file_digest};
use crate::error::Doing;
use crate::source::config::Requested;
use crate::source::git::Tree;
use crate::source::inputs::Inputs;
use crate::source::make::{self, Workshop};
use crate::source::patches::{self, Answered, Patch, Patches};
use crate::source::repository::Repository;
use crate::source::{Source, Unbuilt, version};
use crate::{Error, arch, built, checksums, confine, debian, headers};

/// The version of the build's recipe. It must change whenever the same inputs would give another kernel.
const RECIPE: &str = "1";

/// The files of a source after its patches.
struct Patched {
    tree: String,
    repository: Repository,
    /// The name of the source, as in the kernel's origin.
    from: String,
    changes: Vec<Patch>,
    /// How many of the changes, from the end, are patches of files, and by which mail they are known.
    patches: (usize, Answered),
}

/// A source with its patches, before it is built.
struct Prepared {
    /// The name in the cache, from all inputs.
    name: String,
    /// The kernel's origin: the source and its changes.
    origin: String,
    /// Its patches.
    patched: Option<model::Patched>,
    /// The tree in our repository.
    tree: String,
    repository: Repository,
    requested: Requested,
}

impl Prepared {
    /// The files of the source: a tree in a repository.
    fn files(&self) -> (&Repository, &str) {
        (&self.repository, &self.tree)
    }
}

impl Cache {
    /// Builds a kernel from a source, or takes it from the cache if the same kernel was built before. The inner error
    /// is why it cannot be built, which is a result. Fails when the source or a patch cannot be read, the request is
    /// invalid, or the host fails.
    pub fn build(
        &self,
        source: &Source,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Result<Kernel, Unbuilt>, Error> {
        let (lock, prepared) = match self.begin(source, build, say)? {
            Ok(begun) => begun,
            Err(unbuilt) => return Ok(Err(unbuilt)),
        };
        if let Some(kernel) = self.read(&prepared.name)? {
            checksums::check(&self.home(&kernel.name), &kernel)?;
            self.touch(&kernel.name);
            // The same code may have been built under another name.
            let Prepared { origin, patched, .. } = prepared;
            return Ok(Ok(Kernel { origin, patched, ..kernel }));
        }
        let workshop =
            self.workshop(prepared.files(), (&build.compiler, build.arch), &lock, say)?;
        let makes_modules = build.headers || build.with_modules;
        let built = workshop.build(&prepared.name, &prepared.requested, makes_modules, say)?;
        if let Err(unbuilt) = built {
            return Ok(Err(unbuilt));
        }
        let patched = prepared.patched.clone();
        let kernel = self.copy_built(&workshop, prepared, build, say)?;
        Ok(Ok(Kernel { patched, ..kernel }))
    }

    /// The finished configuration with which a kernel is built, without building it.
    ///
    /// # Errors
    /// As [`Cache::build`].
    pub fn configuration(
        &self,
        source: &Source,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Result<String, Unbuilt>, Error> {
        match self.begin(source, build, say)? {
            Ok((lock, prepared)) => {
                let workshop =
                    self.workshop(prepared.files(), (&build.compiler, build.arch), &lock, say)?;
                workshop.configure(&prepared.requested)
            }
            Err(unbuilt) => Ok(Err(unbuilt)),
        }
    }

    /// Takes the lock of builds, and reads a source with its patches.
    fn begin(
        &self,
        source: &Source,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Result<(File, Prepared), Unbuilt>, Error> {
        let lock = self.lock_builds(say)?;
        make::check_programs(&build.compiler, build.arch)?;
        Ok(self.prepare(source, build, say)?.map(|prepared| (lock, prepared)))
    }

    /// Checks the files of a source out to the directory in which kernels are built.
    pub(super) fn workshop<'a>(
        &self,
        (repository, tree): (&Repository, &str),
        (compiler, arch): (&'a Compiler, Architecture),
        lock: &'a File,
        say: &dyn Fn(&str),
    ) -> Result<Workshop<'a>, Error> {
        let [source, ccache] = ["linux", "ccache"].map(|it| self.builds().join(it));
        for place in [&source, &ccache] {
            fs::create_dir_all(place).doing("create", place)?;
        }
        let outputs = Architecture::ALL.iter().map(|arch| arch::recipe(*arch).output);
        repository.check_out(tree, &source, outputs, lock)?;
        let confined = confine::words(&self.root, &[&source, &ccache], say);
        Ok(Workshop { source, ccache, arch, compiler, lock, confined })
    }

    /// Reads a source and applies its patches, without building. Nothing is fetched or unpacked. If the source is not
    /// in the cache yet, only the patches are read.
    ///
    /// # Errors
    /// As [`Cache::build`].
    pub fn try_patches(
        &self,
        source: &Source,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Result<(), Unbuilt>, Error> {
        let _lock = self.lock_builds(say)?;
        let archive = match source {
            Source::Debian(series) => Some(format!("debian-source:{series}")),
            Source::Path(path) if path.is_file() => {
                Some(format!("sha256:{}", file_digest(path).doing("read", path)?))
            }
            _ => None,
        };
        if let Some(key) = archive {
            let known = Aliases::read(self.builds().join("sources.json"))?;
            let repository = Repository::open(&self.repository(), None)?;
            if !known.get(&key).is_some_and(|tree| repository.has(tree)) {
                return patches::read(&build.patches).map(|_| Ok(()));
            }
        }
        Ok(self.patched(source, build, say)?.map(|_| ()))
    }

    /// Copies the kernel that was built into the cache.
    fn copy_built(
        &self,
        workshop: &Workshop<'_>,
        prepared: Prepared,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        let _lock = self.lock(say)?;
        let stage = self.stage()?;
        let place = |name: &str| stage.path().join(name);
        let output = workshop.output();
        let copy = |name: &str, to: &str| {
            let from = output.join(name);
            fs::copy(&from, place(to)).doing("copy", &from)?;
            Ok::<_, Error>(place(to))
        };
        let release = output.join("include/config/kernel.release");
        let release = fs::read_to_string(&release).doing("read", &release)?.trim().to_owned();
        let inputs = place(INPUTS);
        fs::write(&inputs, Inputs::of_build(&output)?.text()).doing("write", &inputs)?;
        let modules = place("modules");
        built::modules(&output, &modules, build.arch, build.with_modules)?;
        let mut parts = Parts {
            inputs: Some(inputs),
            arch: build.arch,
            image: copy(arch::recipe(build.arch).images[0], "image")?,
            config: Some(copy(".config", "config")?),
            modules: Some(modules),
            tasks: workshop.task_layout()?,
            built: true,
            source: Some(KernelSource {
                tree: prepared.tree.clone(),
                repository: build.tree.as_ref().and_then(|it| std::path::absolute(it).ok()),
                compiler: build.compiler.to_string(),
            }),
            release,
            ..Parts::default()
        };
        if build.headers {
            let to = place("headers");
            let sum = headers::keep(&output, Path::new("/"), &to, &parts.release)?;
            parts.digests.insert(own::HEADERS.into(), sum);
            parts.headers = Some(to);
        }
        self.keep(&stage, parts, prepared.name, prepared.origin, say)
    }

    /// The files that the build of a kernel read; `None` if it was not built here.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn inputs(&self, kernel: &Kernel) -> Result<Option<Inputs>, Error> {
        let path = self.home(&kernel.name).join(INPUTS);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => Ok(Some(Inputs::parse(&text.doing("read", &path)?))),
        }
    }

    /// The time of the last build that reused parts of an earlier one; `None` if there was none.
    pub fn usual_build(&self) -> Option<Duration> {
        let took = self.builds().join("linux").with_extension(make::SECONDS);
        fs::read_to_string(took).ok()?.trim().parse().ok().map(Duration::from_secs)
    }

    /// Reads a source, applies its patches, and names the result.
    fn prepare(
        &self,
        source: &Source,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Result<Prepared, Unbuilt>, Error> {
        let Patched { tree: patched, repository, from, changes, patches } =
            match self.patched(source, build, say)? {
                Ok(patched) => patched,
                Err(unbuilt) => return Ok(Err(unbuilt)),
            };
        let Some(version) = repository.file(&patched, "Makefile")?.as_deref().and_then(version)
        else {
            let path = match source {
                Source::Path(path) => path.clone(),
                _ => build.tree.clone().unwrap_or_default(),
            };
            let problem =
                format!("{from} is not the source of a kernel: its Makefile has no VERSION");
            return Err(Error::Tree { path, problem });
        };
        let requested = self.requested(build, say)?;
        let compiler = make::versions(&build.compiler, build.arch)?;
        let inputs = [
            RECIPE,
            &patched,
            &requested.text(),
            &compiler,
            if build.headers { "headers" } else { "" },
        ];
        let modules = if build.with_modules { "\nmodules" } else { "" };
        let arch = build.arch.unless_usual().map(|arch| format!("\n{}", arch.name()));
        let key = digest((inputs.join("\n") + modules + &arch.unwrap_or_default()).as_bytes());
        let base = build.config.as_deref().unwrap_or("small configuration");
        let configuration = requested::described(base, &requested);
        let origin = |changes: &[Patch]| {
            let with = match changes {
                [] => String::new(),
                [only] => format!(", {}", only.subject),
                many => format!(", {} patches", many.len()),
            };
            format!("{from}{with}; {configuration}")
        };
        let (number, Answered { subject, mail }) = patches;
        let unpatched = origin(&changes[..changes.len() - number]);
        let patches = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Ok(Prepared {
            name: format!("{version}-{}", &key[..12]),
            origin: origin(&changes),
            patched: (number > 0).then_some(model::Patched { subject, patches, unpatched, mail }),
            tree: patched,
            repository,
            requested,
        }))
    }

    /// Reads a source and applies its patches.
    fn patched(
        &self,
        source: &Source,
        build: &Build,
        say: &dyn Fn(&str),
    ) -> Result<Result<Patched, Unbuilt>, Error> {
        let tree = match (&build.tree, source.needs_tree()) {
            (Some(tree), _) => Some(Tree::open(tree)?),
            (None, true) => {
                return Err(Error::Config(
                    "a commit or `worktree` needs the repository: give `tree` (--tree)".into(),
                ));
            }
            (None, false) if build.revert.is_empty() && build.pick.is_empty() => None,
            (None, false) => {
                return Err(Error::Config("`revert` and `pick` need `tree` (--tree)".into()));
            }
        };
        let repository = Repository::open(&self.repository(), tree.as_ref())?;
        let (base, from) = self.base(source, tree.as_ref(), &repository, say)?;
        for submodule in repository.submodules(&base)? {
            say(&format!("The submodule {submodule} is left out"));
        }
        let (changes, patches) = changes(tree.as_ref(), &repository, build)?;
        let patched = repository.apply(&base, &changes)?;
        Ok(patched.map(|tree| Patched { tree, repository, from, changes, patches }))
    }

    /// The tree of a source in our repository, and the name of the source.
    fn base(
        &self,
        source: &Source,
        tree: Option<&Tree>,
        repository: &Repository,
        say: &dyn Fn(&str),
    ) -> Result<(String, String), Error> {
        match (source, tree) {
            (Source::Commit(name), Some(tree)) => {
                let commit = tree.commit(name)?;
                let (short, subject) = tree.described(&commit)?;
                Ok((tree.tree_of(&commit)?, format!("git {name}, {short} (\"{subject}\")")))
            }
            (Source::Worktree, Some(tree)) => {
                let root = tree.root()?;
                say(&format!("Reading {}", root.display()));
                let found = repository.worktree(tree, &root)?;
                Ok((found, format!("working tree {}", root.display())))
            }
            (Source::Path(path), _) => {
                let wrong = |problem: String| Error::Tree { path: path.clone(), problem };
                let path = path.canonicalize().map_err(|error| wrong(error.to_string()))?;
                let from = format!("source {}", path.display());
                if path.is_dir() {
                    say(&format!("Reading {}", path.display()));
                    return Ok((repository.directory(&path)?, from));
                }
                let sum = file_digest(&path).doing("read", &path)?;
                let key = format!("sha256:{sum}");
                let (tree, _) =
                    self.archive(repository, &key, say, |_| Ok((path, String::new())))?;
                Ok((tree, from))
            }
            (Source::Debian(series), _) => {
                let key = format!("debian-source:{series}");
                self.archive(repository, &key, say, |root| {
                    debian::source(&self.apt(), series, root, say)
                })
            }
            (Source::Commit(_) | Source::Worktree, None) => unreachable!("the caller checks"),
        }
    }

    /// The tree of an archive's files, and the origin of the archive. The archive is unpacked on first use.
    fn archive(
        &self,
        repository: &Repository,
        key: &str,
        say: &dyn Fn(&str),
        fetch: impl FnOnce(&Path) -> Result<(PathBuf, String), Error>,
    ) -> Result<(String, String), Error> {
        let mut known = Aliases::read(self.builds().join("sources.json"))?;
        if let Some(tree) = known.get(key).filter(|tree| repository.has(tree)) {
            return Ok((tree.to_owned(), known.get(tree).unwrap_or(key).to_owned()));
        }
        // The name is always the same, so that killed processes leave at most one directory.
        let work = self.builds().join("unpacked");
        if work.exists() {
            fs::remove_dir_all(&work).doing("clear", &work)?;
        }
        fs::create_dir(&work).doing("create", &work)?;
        let (archive, origin) = fetch(&work.join("package"))?;
        say(&format!("Unpacking {}", archive.file_name().unwrap_or_default().display()));
        let tree = repository.import(&archive)?;
        fs::remove_dir_all(&work).doing("remove", &work)?;
        known.set(key, &tree);
        known.set(&tree, &origin);
        known.write()?;
        Ok((tree, origin))
    }

    /// The directory in which kernels are built.
    pub(super) fn builds(&self) -> PathBuf {
        self.root.join("build")
    }

    /// The directory of our git repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.builds().join("repository")
    }

    /// The file whose lock is held while a kernel is built.
    pub(super) fn lock_of_builds(&self) -> PathBuf {
        self.builds().join("lock")
    }

    /// Takes the lock of builds, and waits while another process builds. Programs that write into the source
    /// or the output get it as their standard input, which is empty: if this process is killed, no other
    /// build begins before they have ended (flock(2)).
    pub(super) fn lock_builds(&self, say: &dyn Fn(&str)) -> Result<File, Error> {
        let directory = self.builds();
        fs::create_dir_all(&directory).doing("create", &directory)?;
        self.lock_file(&self.lock_of_builds(), "to build a kernel", say)
    }
}

/// The changes to a source: reverts, picks and patches, in this order; the number of patches, and the mail that they are
/// known by.
fn changes(
    tree: Option<&Tree>,
    repository: &Repository,
    build: &Build,
) -> Result<(Vec<Patch>, (usize, Answered)), Error> {
    let mut changes = Vec::new();
    if let Some(tree) = tree {
        for (names, backwards) in [(&build.revert, true), (&build.pick, false)] {
            for name in names {
                let (ends, subject) = tree.change(name, backwards)?;
                changes.push(Patch { subject, diff: repository.diff(&ends)? });
            }
        }
    }
    let Patches { mut patches, answered } = patches::read(&build.patches)?;
    patches.truncate(build.first.unwrap_or(usize::MAX));
    let number = patches.len();
    changes.append(&mut patches);
    Ok((changes, (number, answered)))
}
