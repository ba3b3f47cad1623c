//! Finds mistakes of a manifest that its form allows: names, placeholders and defaults.

use flight::protocol::{MAX_NAME, is_metric};
use model::{Manifest, is_reserved};

use super::{PLACEHOLDERS, fill};

/// A mistake in a manifest that has the right form.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The keys that lead to it; the place in a list counts from 0.
    pub place: Vec<String>,
    /// What is wrong with the value.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// All such mistakes of a manifest.
pub fn mistakes(manifest: &Manifest) -> Vec<Wrong> {
    let mut wrong = metrics(manifest);
    let mut add = |place: &[&str], problem: String, hint: &str| {
        let place = place.iter().map(|key| (*key).to_owned()).collect();
        wrong.push(Wrong { place, problem, hint: hint.to_owned() });
    };
    for (place, name) in manifest.packages.iter().enumerate() {
        if !kernels::is_package_name(name) {
            let hint = "the name of a package has lower-case letters, digits and + - .";
            let problem = format!("`{}` is not the name of a package", name.escape_debug());
            add(&["packages", &place.to_string()], problem, hint);
        }
    }
    for (place, word) in manifest.command.iter().enumerate() {
        let is_known =
            |name: &str| PLACEHOLDERS.contains(&name) || manifest.parameters.contains_key(name);
        if let Err(name) = fill(word, |name| is_known(name).then(String::new)) {
            let problem = format!("the command has `{{{name}}}`, which is no parameter");
            let hint = "declare it under [parameters]";
            add(&["command", &place.to_string()], problem, hint);
        }
    }
    for (name, parameter) in &manifest.parameters {
        if PLACEHOLDERS.contains(&&**name) {
            let problem =
                format!("a parameter cannot be called `{name}`: `{{{name}}}` is set already");
            add(&["parameters", name], problem, "give it another name");
        }
        let most = parameter.most.unwrap_or(f64::INFINITY);
        let is_any = parameter.least.is_none_or(|least| least <= most)
            && parameter.above.is_none_or(|above| above < most);
        if !is_any {
            let problem = "its bounds allow no value".to_owned();
            add(&["parameters", name], problem, "correct least, above or most");
        } else if let Err((value, allowed)) = parameter.check(u32::MAX) {
            let problem = format!("the default `{}` is not allowed", value.escape_debug());
            add(&["parameters", name, "default"], problem, &format!("use {allowed}"));
        }
    }
    wrong
}

/// The invalid names of metrics.
fn metrics(manifest: &Manifest) -> Vec<Wrong> {
    let names: Vec<&str> = manifest.metrics.iter().map(|metric| &*metric.name).collect();
    let wrong = names.iter().enumerate().filter_map(|(place, name)| {
        let is_twice = names[..place].contains(name);
        let hint = match (is_twice, is_reserved(name)) {
            (true, _) => "leave one of them out".to_owned(),
            (_, true) => "Faultline fills the rows of this name itself: use another one".to_owned(),
            _ if is_metric(name) => return None,
            _ => format!(
                "use 1 to {MAX_NAME} letters, digits and ._:+/%- in words separated by single blanks"
            ),
        };
        let problem = match is_twice {
            true => format!("two metrics have the name `{}`", name.escape_debug()),
            false => format!("`{}` cannot be the name of a metric", name.escape_debug()),
        };
        let place = ["metrics".to_owned(), place.to_string(), "name".to_owned()].into();
        Some(Wrong { place, problem, hint })
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rest: &str) -> Vec<String> {
        let text = format!("name = \"m\"\ndescription = \"\"\n{rest}");
        let wrong = mistakes(&toml::from_str(&text).unwrap()).into_iter();
        wrong.map(|it| format!("{}: {}", it.place.join("."), it.problem)).collect()
    }

    #[test]
    fn names_of_metrics_are_checked() {
        let metric = |name: &str| {
            format!("[[metrics]]\nname = \"{name}\"\nunit = \"s\"\nmean = \"amean\"\n")
        };
        let check = |metrics: &str| told(&format!("command = [\"x\"]\n{metrics}"));
        assert_eq!(check(&metric("instructional")), [""; 0]);
        for reserved in ["instructions-kernel", "entries"] {
            let told = format!("metrics.0.name: `{reserved}` cannot be the name of a metric");
            assert_eq!(check(&metric(reserved)), [told]);
        }
        assert_eq!(
            check(&(metric("a") + &metric("a") + &metric(""))),
            [
                "metrics.1.name: two metrics have the name `a`",
                "metrics.2.name: `` cannot be the name of a metric"
            ]
        );
    }

    #[test]
    fn placeholders_and_defaults_are_checked() {
        let rest = "command = [\"x\", \"{size}{sise}\", \"{cpus}\"]\npackages = [\"fio\", \"F io\"]\nmetrics = []\n\
                    [parameters]\nfree = \"\"\nmemory = \"1\"\n\
                    [parameters.size]\ndefault = \"x\"\nkind = \"whole\"\n\
                    [parameters.share]\ndefault = \"5\"\nkind = \"number\"\nleast = 9\nmost = 1\n\
                    [parameters.cpu]\ndefault = \"7\"\nkind = \"cpu\"\n";
        assert_eq!(
            told(rest),
            [
                "packages.1: `F io` is not the name of a package",
                "command.1: the command has `{sise}`, which is no parameter",
                "parameters.memory: a parameter cannot be called `memory`: `{memory}` is set already",
                "parameters.share: its bounds allow no value",
                "parameters.size.default: the default `x` is not allowed"
            ]
        );
    }
}
