//! Describes the kernels that a search builds: a commit, a configuration between those of the ends,
//! or the bad end without a change.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kernels::{Cache, Unbuilt};
use lab::{Lab, Progress, RunError, Watch};
use model::{Build, Kernel, Pinned, Variant};
use plan::Search;

use crate::options::{Changed, changed, value};
use crate::range::{BuiltVariant, Range, configuration};

impl Range {
    /// Returns what is built at a place: a commit, or the last commit with the changes of options
    /// up to this place.
    pub fn variant_at(&self, search: &Search, place: usize) -> BuiltVariant {
        let commits = self.commits;
        match &self.options {
            Some(options) if place > commits => {
                self.variant_with(search, options.first(place - commits))
            }
            _ => variant(search, &self.history.commits[place].id),
        }
    }

    /// Returns the bad end without the change at a place. A commit is reverted. An option is set
    /// back, with the options that changed with it. The inner error says why Kconfig does not allow
    /// that.
    pub fn without(
        &self,
        search: &Search,
        place: usize,
        cache: &Cache,
        watch: &mut Watch<'_>,
    ) -> Result<Result<BuiltVariant, String>, RunError> {
        let commits = self.commits;
        let Some(options) = self.options.as_ref().filter(|_| place > commits) else {
            let mut bad = self.variant_at(search, self.bad());
            bad.build.revert = vec![self.history.commits[place].id.clone()];
            return Ok(Ok(bad));
        };
        let own = &options.changes[place - commits - 1];
        let mut set_back = self.changed(search, place, cache, watch)?;
        set_back.push(own.clone());
        let variant = self.variant_with(search, options.without(&set_back));
        let finished = match finished(search, &variant, cache, watch)? {
            Ok(finished) => finished,
            Err(why) => return Ok(Err(why.problem().to_owned())),
        };
        let has = value(&finished, &own.option);
        Ok(match has == own.values[0] {
            true => Ok(variant),
            false => Err(format!("with the other options Kconfig keeps {}={has}", own.option)),
        })
    }

    /// Returns the last commit with the configuration `text`, which lies between those of the ends.
    fn variant_with(&self, search: &Search, text: String) -> BuiltVariant {
        let BuiltVariant { variant, build } =
            variant(search, &self.history.commits[self.commits].id);
        let what = format!("options of {}", search.configs().join(" and "));
        let (fragments, set) = (Vec::new(), BTreeMap::new());
        let build = Build { config: Some(what), text: Some(text), fragments, set, ..build };
        BuiltVariant { variant, build }
    }

    /// Returns the options whose values change at a place. There may be several, because options
    /// depend on others. Empty if a configuration cannot be made.
    pub fn changed(
        &self,
        search: &Search,
        place: usize,
        cache: &Cache,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Changed>, RunError> {
        let [before, after] = [place - 1, place].map(|it| self.variant_at(search, it));
        Ok(
            match (
                finished(search, &before, cache, watch)?,
                finished(search, &after, cache, watch)?,
            ) {
                (Ok(before), Ok(after)) => changed(&before, &after),
                _ => Vec::new(),
            },
        )
    }
}

/// Returns what is built for a commit.
pub fn variant(search: &Search, commit: &str) -> BuiltVariant {
    let variant = Variant {
        name: culprit::short(commit).into(),
        kernel: Pinned::from(format!("git:{commit}").as_str()),
        ..search.variant.clone()
    };
    BuiltVariant { variant, build: search.build() }
}

fn finished(
    search: &Search,
    variant: &BuiltVariant,
    cache: &Cache,
    watch: &mut Watch<'_>,
) -> Result<Result<String, Unbuilt>, RunError> {
    let watch = RefCell::new(watch);
    let say = |line: &str| watch.borrow_mut()(Progress::Message(line));
    Ok(configuration(search, variant, cache, &say)?)
}

/// Builds the kernel of a variant. If the build's patches do not apply, they are left out. The
/// inner error says why there is no kernel.
pub fn kernel_of(
    lab: &Lab,
    search: &Search,
    BuiltVariant { variant, build }: &BuiltVariant,
    watch: &mut Watch<'_>,
) -> Result<Result<Kernel, String>, RunError> {
    let mut obtained = lab.built(&search.experiment, variant, build, watch)?;
    let is_of_patch = obtained.unbuilt.as_ref().is_some_and(Unbuilt::is_of_patch);
    if is_of_patch && !build.patches.is_empty() {
        let without = Build { patches: Vec::new(), ..build.clone() };
        obtained = lab.built(&search.experiment, variant, &without, watch)?;
    }
    Ok(match obtained.unbuilt {
        None => Ok(obtained.kernel),
        Some(unbuilt) => Err(unbuilt.problem().to_owned()),
    })
}

/// Returns the variant with the kernel that was built for it.
pub fn of_kernel(variant: Variant, kernel: &Kernel) -> Variant {
    Variant { kernel: Pinned::from(&*kernel.name), ..variant }
}
