//! `faultline try --split`: builds each kernel's source with the other one's configuration, to tell what of a change
//! comes from the source and what from the configuration and the compiler.

use kernels::{Request, Source, without_architecture};
use plan::file::{BuildForm, Input, VariantForm, default_names, placeless};

use compare::BUILT_AS;

use crate::failure::Failure;

/// The option that the variants come from.
const OPTION: &str = "--split";

/// Two more variants: the source of the second kernel as the first one is built, and the other way round. Fails when
/// there are not two kernels, or none of them is a package of Debian.
pub fn variants(input: &mut Input, kernels: &[String]) -> Result<[VariantForm; 2], Failure> {
    let [base, new] = kernels else {
        let message = "--split takes one change apart: name two kernels, such as 6.12,newest";
        return Err(Failure::Usage(message.into()));
    };
    let [of_base, of_new] = [Origin::of(base)?, Origin::of(new)?];
    if of_base.config.is_none() && of_new.config.is_none() {
        let message = "--split is for packages of Debian, which bring their configurations: these two kernels are \
                       built from source with the same one";
        return Err(Failure::Usage(message.into()));
    }
    let mut variant = |source: &Origin, built_as: &Origin, [name, other]: [&str; 2]| {
        let mut form = VariantForm::new(input.option(OPTION, source.source.clone()));
        form.name = Some(input.option(OPTION, format!("{name}{BUILT_AS}{other}")));
        let mut build = BuildForm::default();
        build.config = built_as.config.clone().map(placeless);
        form.build = build;
        form
    };
    let names = default_names(&[base, new]);
    let [base, new] = [0, 1].map(|place: usize| &*names[place]);
    Ok([variant(&of_new, &of_base, [new, base]), variant(&of_base, &of_new, [base, new])])
}

/// Where a kernel comes from.
struct Origin {
    /// Its source, as experiment files name it.
    source: String,
    /// Its configuration, if it is a package.
    config: Option<String>,
}

impl Origin {
    fn of(kernel: &str) -> Result<Self, Failure> {
        if Source::is(kernel) {
            return Ok(Self { source: kernel.to_owned(), config: None });
        }
        let series = match kernel.parse() {
            Ok(Request::Debian { version, suite: None, .. }) if is_series(&version) => version,
            _ => {
                return Err(Failure::Usage(format!(
                    "--split needs the source of `{kernel}`: name a series of Debian's kernels such as 6.12, newest, or \
                     a source such as git:COMMIT"
                )));
            }
        };
        // Drivers do not matter here, and take most of the time of a build.
        let config = Some(format!("debian:{series}+vm"));
        let arch = &kernel[without_architecture(kernel).len()..];
        Ok(Self { source: format!("debian-source:{series}{arch}"), config })
    }
}

/// Whether a version names the newest kernel of a series, or of all. Debian has the source of these.
fn is_series(version: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    version == "newest" || version.split('.').count() == 2 && version.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(kernels: [&str; 2]) -> Result<Vec<(String, String, Option<String>)>, String> {
        let mut input = Input::default();
        let found = variants(&mut input, &kernels.map(str::to_owned));
        let found = found.map_err(|error| error.to_string())?;
        let text = |it: &VariantForm| {
            let config = it.build.config.as_ref().map(|it| it.get_ref().clone());
            (it.kernel.get_ref().clone(), it.name.as_ref().unwrap().get_ref().clone(), config)
        };
        Ok(found.iter().map(text).collect())
    }

    #[test]
    fn each_source_is_built_as_the_other_kernel() {
        let owned = |source: &str, name: &str, config: Option<&str>| {
            (source.to_owned(), name.to_owned(), config.map(str::to_owned))
        };
        assert_eq!(
            split(["debian:6.12", "newest"]).unwrap(),
            [
                owned("debian-source:newest", "newest as 6.12", Some("debian:6.12+vm")),
                owned("debian-source:6.12", "6.12 as newest", Some("debian:newest+vm")),
            ]
        );
        assert_eq!(
            split(["6.1", "git:v6.12"]).unwrap(),
            [
                owned("git:v6.12", "v6.12 as 6.1", Some("debian:6.1+vm")),
                owned("debian-source:6.1", "6.1 as v6.12", None),
            ]
        );
        let [of_arm64, _] = &split(["6.1@arm64", "6.12@arm64"]).unwrap()[..] else { panic!() };
        let expected = owned("debian-source:6.12@arm64", "6.12 as 6.1", Some("debian:6.1+vm"));
        assert_eq!(*of_arm64, expected);
    }

    #[test]
    fn kernels_without_a_source_are_refused() {
        for (kernels, told) in [
            (["6.12", "6.1.0-56-cloud-amd64"], "the source of `6.1.0-56-cloud-amd64`"),
            (["6.12", "/tmp/linux.deb"], "the source of `/tmp/linux.deb`"),
            (["git:a", "git:b"], "built from source with the same one"),
        ] {
            let error = split(kernels).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let mut input = Input::default();
        let three = ["6.1", "6.12", "newest"].map(str::to_owned);
        assert!(variants(&mut input, &three).is_err());
    }
}
