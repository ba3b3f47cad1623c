//! The options in which two configurations of one source differ, and the way from one to the other.

use std::collections::BTreeSet;
use std::fmt;

use kernelfiles::config::{self, Config};

/// Beginnings of options that only name a kernel, who built it or how it is signed; and of the option that puts the
/// configuration into the image.
const LEFT_OUT: [&str; 9] = [
    "LOCALVERSION", "VERSION_SIGNATURE", "BUILD_SALT", "CC_VERSION_TEXT", "DEFAULT_HOSTNAME",
    "MODULE_SIG_KEY", "SYSTEM_TRUSTED_KEYS", "SYSTEM_REVOCATION_KEYS", "IKCONFIG",
];
const NOT_SET: &str = "n";

/// An option that has another value in the bad configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name, with `CONFIG_`.
    pub option: String,
    /// Its values before and after.
    pub values: [String; 2],
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = &self.values;
        write!(f, "{}: {before} -> {after}", self.option)
    }
}

/// Two finished configurations of one source.
#[derive(Clone, Debug)]
pub struct Options {
    good: String,
    bad: String,
    /// All options of both, in the order of the menus.
    all: Vec<String>,
    /// The changes, in their order.
    pub changes: Vec<Changed>,
}

impl Options {
    /// The way from the good to the bad configuration. First come the options that are turned on or get another
    /// value, in the order of the menus, in which an option stands before those that depend on it. Then those
    /// that are turned off, in the opposite order. So an option that is turned on finds what it depends on, and of
    /// a choice there is always an option that one of the configurations has.
    pub fn between(good: String, bad: String) -> Self {
        let all = in_order(&good, &bad);
        let mut changes = changed(&good, &bad);
        let is_left_out = |it: &Changed| {
            LEFT_OUT.iter().any(|name| it.option["CONFIG_".len()..].starts_with(name))
        };
        changes.retain(|it| !is_left_out(it));
        let place =
            |it: &Changed| all.iter().position(|name| *name == it.option).unwrap_or(0) as i64;
        changes.sort_by_cached_key(|it| match it.values[1] == NOT_SET {
            true => (1, -place(it)),
            false => (0, place(it)),
        });
        Self { good, bad, all, changes }
    }

    /// The configuration with the first changes, which the source's Kconfig finishes.
    pub fn first(&self, number: usize) -> String {
        self.with(self.changes.iter().take(number))
    }

    /// The configuration with all changes but one.
    pub fn without(&self, place: usize) -> String {
        let others = self.changes.iter().enumerate().filter(|(other, _)| *other != place);
        self.with(others.map(|(_, change)| change))
    }

    fn with<'a>(&'a self, changes: impl Iterator<Item = &'a Changed>) -> String {
        let changed: BTreeSet<&str> = changes.map(|it| &*it.option).collect();
        let [good, bad] = [&self.good, &self.bad].map(|text| config::parse(text));
        let line = |option: &String| {
            let name = &option["CONFIG_".len()..];
            let is_changed = changed.contains(option.as_str());
            let (own, other) = if is_changed { (&bad, &good) } else { (&good, &bad) };
            match (own.get(name).copied(), other.get(name).copied()) {
                // A number or a text that is not listed gets its default when it appears.
                (None, Some(value)) if !matches!(value, "y" | "m" | NOT_SET) => String::new(),
                (None | Some(NOT_SET), _) => format!("# {option} is not set\n"),
                (Some(value), _) => format!("{option}={value}\n"),
            }
        };
        self.all.iter().map(line).collect()
    }
}

/// What differs between two finished configurations.
pub fn changed(before: &str, after: &str) -> Vec<Changed> {
    let (before, after) = (config::parse(before), config::parse(after));
    let value =
        |config: &Config<'_>, name: &str| config.get(name).copied().unwrap_or(NOT_SET).to_owned();
    let all = config::differences(&before, &after).into_iter();
    all.map(|it| Changed {
        option: format!("CONFIG_{}", it.option),
        values: [&before, &after].map(|config| value(config, it.option)),
    })
    .collect()
}

/// The options of both configurations. Their lines are in the order of the menus.
fn in_order(good: &str, bad: &str) -> Vec<String> {
    let mut all: Vec<String> = names(good).collect();
    let mut next = 0;
    for name in names(bad) {
        match all.iter().position(|it| *it == name) {
            Some(place) => next = place + 1,
            None => {
                all.insert(next, name);
                next += 1;
            }
        }
    }
    all
}

fn names(text: &str) -> impl Iterator<Item = String> {
    let of_line = |line| config::parse(line).into_keys().next();
    text.lines().filter_map(of_line).map(|name| format!("CONFIG_{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "CONFIG_LOCALVERSION=\"-good\"\nCONFIG_HZ_250=y\n# CONFIG_HZ_1000 is not set\n\
        CONFIG_HZ=250\nCONFIG_OLD=y\nCONFIG_OLD_CHILD=y\nCONFIG_OLD_SIZE=14\n# CONFIG_SAME is not set\n";
    const BAD: &str = "CONFIG_LOCALVERSION=\"-bad\"\n# CONFIG_HZ_250 is not set\nCONFIG_HZ_1000=y\n\
        CONFIG_HZ=1000\n# CONFIG_OLD is not set\n# CONFIG_SAME is not set\nCONFIG_NEW=m\n\
        # CONFIG_NEW_DEBUG is not set\nCONFIG_NEW_NAME=\"a b\"\n";

    fn way(good: &str, bad: &str) -> Options {
        Options::between(good.into(), bad.into())
    }

    #[test]
    fn what_is_turned_on_comes_before_what_is_turned_off() {
        let changes: Vec<String> = way(GOOD, BAD).changes.iter().map(Changed::to_string).collect();
        let expected = [
            "CONFIG_HZ_1000: n -> y",
            "CONFIG_HZ: 250 -> 1000",
            "CONFIG_NEW: n -> m",
            "CONFIG_NEW_NAME: n -> \"a b\"",
            "CONFIG_OLD_SIZE: 14 -> n",
            "CONFIG_OLD_CHILD: y -> n",
            "CONFIG_OLD: y -> n",
            "CONFIG_HZ_250: y -> n",
        ];
        assert_eq!(changes, expected);
        assert_eq!(way(GOOD, GOOD).changes, []);
    }

    /// An option that only one of the two lists has no default of its own on the way.
    #[test]
    fn each_step_adds_one_change_and_the_last_is_the_bad_configuration() {
        let way = way(GOOD, BAD);
        let lines = |text: &str| {
            let names = ["NEW", "NEW_DEBUG", "NEW_NAME", "OLD_SIZE", "HZ_250", "LOCALVERSION"];
            let parsed = config::parse(text);
            names.map(|name| parsed.get(name).copied().unwrap_or("-").to_owned())
        };
        let named = "\"-good\"";
        assert_eq!(lines(&way.first(0)), ["n", "n", "-", "14", "y", named]);
        assert_eq!(lines(&way.first(3)), ["m", "n", "-", "14", "y", named]);
        assert_eq!(lines(&way.first(8)), ["m", "n", "\"a b\"", "-", "n", named]);
        assert_eq!(lines(&way.without(2)), ["n", "n", "\"a b\"", "-", "n", named]);
        for step in 1..8 {
            let changed = changed(&way.first(step - 1), &way.first(step));
            assert_eq!(changed, [way.changes[step - 1].clone()]);
        }
        let rest = changed(&way.first(8), BAD);
        assert_eq!(rest.iter().map(|it| &*it.option).collect::<Vec<_>>(), ["CONFIG_LOCALVERSION"]);
    }
}
