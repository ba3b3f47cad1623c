//! Reads the configuration that a build asks for.

use std::collections::BTreeMap;
use std::path::Path;

use model::{Build, count};

use super::{Cache, own};
use crate::own::{MAX_CONFIG, check_architecture};
use crate::source::config::{self, Requested};
use crate::source::git::Tree;
use crate::source::make;
use crate::{Error, Request, Source, input};

/// Options of packaged configurations that need files or programs which a build here does not have, and
/// debug information, which doubles the time of a build.
const NOT_PACKAGED: [(&str, &str); 9] = [
    ("SYSTEM_TRUSTED_KEYS", "\"\""),
    ("SYSTEM_REVOCATION_KEYS", "\"\""),
    ("MODULE_SIG_KEY", "\"\""),
    // This option requires signed modules.
    ("SECURITY_LOCKDOWN_LSM", "n"),
    ("MODULE_SIG", "n"),
    ("DEBUG_INFO_NONE", "y"),
    // Before 5.18 the user selects this option; later it follows from others.
    ("DEBUG_INFO", "n"),
    ("LOCALVERSION_AUTO", "n"),
    ("BUILD_SALT", "\"\""),
];

/// The largest number of added options that a kernel's origin names.
const MOST_NAMED: usize = 12;

impl Cache {
    /// Checks the programs that a build needs and the files of its configuration. Nothing is fetched.
    ///
    /// # Errors
    /// When a program is missing, or a file cannot be read.
    pub fn check_request(&self, build: &Build) -> Result<(), Error> {
        make::check_programs(&build.compiler, build.arch)?;
        let config = build.config.clone().filter(|it| !it.starts_with("debian:"));
        self.requested(&Build { config, ..build.clone() }, &|_| ()).map(|_| ())
    }

    /// Checks that the tree has the commit that a source names. Other sources are not checked.
    ///
    /// # Errors
    /// When it has no such commit, or is no repository.
    pub fn check_source(&self, source: &Source, build: &Build) -> Result<(), Error> {
        match (source, &build.tree) {
            (Source::Commit(name), Some(tree)) => Tree::open(tree)?.commit(name).map(drop),
            _ => Ok(()),
        }
    }

    /// Collects the requested configuration: the base and the options that replace its own.
    pub(super) fn requested(&self, build: &Build, say: &dyn Fn(&str)) -> Result<Requested, Error> {
        let mut requested = self.base_config(build, say)?;
        for module in &build.modules {
            let options = config::of_module(module).ok_or_else(|| {
                Error::Config(format!(
                    "the option of the module {module} is not known: give it with `set`"
                ))
            });
            match options {
                Ok(options) => requested.options.extend(options),
                // The user's own options, or the user's configuration, may have the options of the module.
                Err(_) if build.text.is_some() => {}
                Err(_) if !build.set.is_empty() || !build.fragments.is_empty() => {}
                Err(_) if build.with_modules && build.config.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        if build.headers || build.with_modules {
            requested
                .options
                .extend(["MODULES", "MODULE_UNLOAD"].map(|it| (it.into(), "y".into())));
        }
        requested.options.extend(own_options(build)?);
        let gives_debug_information = |(name, value): &(String, String)| {
            name.starts_with("DEBUG_INFO") && name != "DEBUG_INFO_NONE" && value == "y"
        };
        if requested.options.iter().any(gives_debug_information) {
            let is_none = |(name, value): &(String, String)| {
                name == "DEBUG_INFO_NONE" || (name == "DEBUG_INFO" && value == "n")
            };
            requested.options.retain(|option| !is_none(option));
        }
        Ok(requested)
    }

    /// The configuration to which options are added, with the changes that a build here makes to a packaged one.
    fn base_config(&self, build: &Build, say: &dyn Fn(&str)) -> Result<Requested, Error> {
        let mut requested = Requested { arch: build.arch, ..Requested::default() };
        let wrong = |name: &str, problem: &str| Error::Config(format!("{name}: {problem}"));
        let check = |text: &str, name: &str| {
            check_architecture(text, build.arch).map_err(|problem| wrong(name, &problem))
        };
        match build.config.as_deref() {
            _ if build.text.is_some() => requested.base.clone_from(&build.text),
            None => {}
            Some(name) if name.starts_with("debian:") || self.get(self.full(name)?)?.is_some() => {
                let full = self.full(name)?;
                let for_arch = Request::for_architecture(full, build.arch);
                let kernel = self.obtain(for_arch.as_deref().unwrap_or(full), say)?;
                let wrong = |problem| wrong(&kernel.name, problem);
                let mut text = crate::text(&kernel, "config")?
                    .ok_or_else(|| wrong("it came without a configuration"))?;
                check(&text, &kernel.name)?;
                if full != name {
                    let none =
                        || wrong("its configuration does not have the menus that `+vm` replaces");
                    text = config::lean(&text, build.arch).ok_or_else(none)?;
                }
                requested.base = Some(text);
                requested
                    .options
                    .extend(NOT_PACKAGED.map(|(name, value)| (name.into(), value.into())));
            }
            Some(path) => {
                let text = text(Path::new(path))?;
                if kernelfiles::config::parse(&text).is_empty() {
                    return Err(wrong(path, "it has no line CONFIG_NAME=VALUE"));
                }
                check(&text, path)?;
                requested.base = Some(text);
            }
        }
        Ok(requested)
    }

    /// The name of the kernel whose configuration is asked for, whole or lean.
    fn full<'a>(&self, name: &'a str) -> Result<&'a str, Error> {
        Ok(match name.strip_suffix(config::LEAN) {
            Some(full) if name.starts_with("debian:") || self.get(name)?.is_none() => full,
            _ => name,
        })
    }
}

/// Names a configuration by its base and the options that were added, for a kernel's origin. Of many options, and of
/// texts that the origin's form does not allow, it has only the number.
pub(super) fn described(base: &str, requested: &Requested) -> String {
    // `--build-modules` adds the latter two.
    let is_usual = |name: &str, value: &str| {
        NOT_PACKAGED.contains(&(name, value)) || ["MODULES", "MODULE_UNLOAD"].contains(&name)
    };
    let options: BTreeMap<&str, &str> =
        requested.options.iter().map(|(name, value)| (&**name, &**value)).collect();
    let options = options.into_iter().filter(|(name, value)| !is_usual(name, value));
    let options: Vec<String> =
        options.map(|(name, value)| format!("CONFIG_{name}={value}")).collect();
    match options.len() {
        0 => base.to_owned(),
        1..=MOST_NAMED if !options.iter().any(|it| it.contains("; ") || it.contains(" with ")) => {
            format!("{base} with {}", options.join(", "))
        }
        more => format!("{base} with {}", count(more, "option")),
    }
}

/// The user's own options: first those of the fragments, then single ones.
fn own_options(build: &Build) -> Result<Vec<(String, String)>, Error> {
    let mut own = Vec::new();
    for path in &build.fragments {
        let wrong = |problem| Error::Config(format!("{}: {problem}", path.display()));
        own.extend(config::fragment(&text(path)?).map_err(wrong)?);
    }
    for (name, value) in &build.set {
        own.push(config::option(name, value).map_err(Error::Config)?);
    }
    let last: BTreeMap<_, _> = own.iter().map(|(name, value)| (name, value)).collect();
    if let Some((name, _)) = last.into_iter().find(|(_, value)| *value == "m")
        && !build.with_modules
    {
        return Err(Error::Config(format!(
            "CONFIG_{name}=m is not built: set `modules = true` in [build] (--build-modules), or CONFIG_{name}=y"
        )));
    }
    Ok(own)
}

/// The text of a file with options.
fn text(path: &Path) -> Result<String, Error> {
    let bytes = input::read(path, MAX_CONFIG).map_err(|error| Error::Config(error.to_string()))?;
    own::config_text(&bytes)
        .map_err(|problem| Error::Config(format!("{}: {problem}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described_with(options: &[(&str, &str)]) -> String {
        let options = options.iter().map(|&(name, value)| (name.into(), value.into()));
        described(
            "small configuration",
            &Requested { options: options.collect(), ..Requested::default() },
        )
    }

    #[test]
    fn added_options_are_named_as_they_are_at_last() {
        assert_eq!(described_with(&[]), "small configuration");
        let usual = [NOT_PACKAGED[0], ("SHMEM", "n"), ("KASAN", "y"), ("KASAN", "n")];
        assert_eq!(
            described_with(&usual),
            "small configuration with CONFIG_KASAN=n, CONFIG_SHMEM=n"
        );
        for text in ["\"a; b\"", "\"a with b\""] {
            assert_eq!(described_with(&[("CMDLINE", text)]), "small configuration with 1 option");
        }
        let names: Vec<String> = (0..=MOST_NAMED).map(|it| format!("A{it}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "y")).collect();
        assert_eq!(described_with(&many), "small configuration with 13 options");
    }
}
