//! Finds the options in which two configurations of one source differ, and orders them as a
//! sequence of changes from one configuration to the other.

use std::collections::BTreeSet;
use std::fmt;

use kernelfiles::config::{self, Config};

/// The beginnings of the names of options that are ignored: they only name a kernel, say who built
/// it or how it is signed, or put the configuration into the image.
const LEFT_OUT: [&str; 9] = [
    "LOCALVERSION", "VERSION_SIGNATURE", "BUILD_SALT", "CC_VERSION_TEXT", "DEFAULT_HOSTNAME",
    "MODULE_SIG_KEY", "SYSTEM_TRUSTED_KEYS", "SYSTEM_REVOCATION_KEYS", "IKCONFIG",
];
const NOT_SET: &str = "n";
/// The option that enables modules.
const MODULES: &str = "CONFIG_MODULES";

/// An option with different values in the good and the bad configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The name of the option, with `CONFIG_`.
    pub option: String,
    /// The values of the option in the good and in the bad configuration; `n` if it is not set.
    pub values: [String; 2],
}

impl Changed {
    /// Returns whether this is a number or a text that only one configuration lists, because it
    /// depends on another option.
    fn is_of_another(&self) -> bool {
        let [before, after] = self.values.each_ref().map(|it| &**it);
        (before == NOT_SET && !is_state(after)) || (after == NOT_SET && !is_state(before))
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = &self.values;
        write!(f, "{}: {before} -> {after}", self.option)
    }
}

/// Two finished configurations of one source, and the changes between them.
#[derive(Clone, Debug)]
pub struct Options {
    good: String,
    bad: String,
    /// The names of all options of both, in the order of Kconfig's menus.
    all: Vec<String>,
    /// The changes from good to bad, in the order in which they are made.
    pub changes: Vec<Changed>,
}

impl Options {
    /// Orders the changes from the good to the bad configuration. First come options that are
    /// turned on or get another value, in the order of the menus, in which an option precedes those
    /// that depend on it. Then come options that are turned off, in the opposite order. So an
    /// option that is turned on finds its dependencies, and each choice always has an option that
    /// is on in one of the configurations. Modules are enabled before anything becomes a module,
    /// and disabled when nothing is one any more: without them Kconfig would build modules into the
    /// kernel.
    ///
    /// A number or a text that only one configuration lists is not a change of its own. It changes
    /// with the option that it depends on.
    pub fn between(good: String, bad: String) -> Self {
        let all = in_order(&good, &bad);
        let mut changes = changed(&good, &bad);
        let is_left_out = |it: &Changed| {
            LEFT_OUT.iter().any(|name| it.option["CONFIG_".len()..].starts_with(name))
        };
        changes.retain(|it| !is_left_out(it) && !it.is_of_another());
        let place = |it: &Changed| match &*it.option {
            MODULES => -1,
            option => all.iter().position(|name| name == option).unwrap_or(0) as i64,
        };
        changes.sort_by_cached_key(|it| match it.values[1] == NOT_SET {
            true => (1, -place(it)),
            false => (0, place(it)),
        });
        Self { good, bad, all, changes }
    }

    /// Returns the configuration after the first `number` changes. The source's Kconfig still has
    /// to finish it.
    pub fn first(&self, number: usize) -> String {
        self.with(self.changes.iter().take(number))
    }

    /// Returns the configuration after all changes, except those of the options in `set_back`. The
    /// source's Kconfig still has to finish it.
    pub fn without(&self, set_back: &[Changed]) -> String {
        let is_kept = |change: &&Changed| !set_back.iter().any(|it| it.option == change.option);
        self.with(self.changes.iter().filter(is_kept))
    }

    fn with<'a>(&'a self, changes: impl Iterator<Item = &'a Changed>) -> String {
        let changed: BTreeSet<&str> = changes.map(|it| &*it.option).collect();
        let [good, bad] = [&self.good, &self.bad].map(|text| config::parse(text));
        let line = |option: &String| {
            let name = &option["CONFIG_".len()..];
            let is_changed = changed.contains(option.as_str());
            let (own, other) = if is_changed { (&bad, &good) } else { (&good, &bad) };
            let value = match (own.get(name).copied(), other.get(name).copied()) {
                // If a number or a text were missing, Kconfig would choose its default, which
                // neither end has.
                (None, Some(value)) if !is_state(value) => value,
                (own, _) => own.unwrap_or(NOT_SET),
            };
            match value {
                NOT_SET => format!("# {option} is not set\n"),
                value => format!("{option}={value}\n"),
            }
        };
        self.all.iter().map(line).collect()
    }
}

/// Returns whether a value is that of a switch: `y`, `m` or `n`.
fn is_state(value: &str) -> bool {
    matches!(value, "y" | "m" | NOT_SET)
}

/// Lists the options that differ between two finished configurations.
pub fn changed(before: &str, after: &str) -> Vec<Changed> {
    let (before, after) = (config::parse(before), config::parse(after));
    let all = config::differences(&before, &after).into_iter();
    all.map(|it| Changed {
        option: format!("CONFIG_{}", it.option),
        values: [&before, &after].map(|config| of(config, it.option)),
    })
    .collect()
}

/// Returns the value of an option in a finished configuration; `n` if it is not set. The name can
/// have `CONFIG_`.
pub fn value(finished: &str, option: &str) -> String {
    of(&config::parse(finished), option.trim_start_matches("CONFIG_"))
}

fn of(config: &Config<'_>, name: &str) -> String {
    config.get(name).copied().unwrap_or(NOT_SET).to_owned()
}

/// Returns the names of the options of both configurations, in the order of the menus, as in the
/// files.
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
            "CONFIG_HZ_1000: n -> y", "CONFIG_HZ: 250 -> 1000", "CONFIG_NEW: n -> m",
            "CONFIG_OLD_CHILD: y -> n", "CONFIG_OLD: y -> n", "CONFIG_HZ_250: y -> n",
        ];
        assert_eq!(changes, expected);
        assert_eq!(way(GOOD, GOOD).changes, []);
        let modules = "CONFIG_KVM=m\nCONFIG_MODULES=y\n";
        let none = "# CONFIG_KVM is not set\n# CONFIG_MODULES is not set\n";
        let options =
            |good, bad| way(good, bad).changes.into_iter().map(|it| it.option).collect::<Vec<_>>();
        assert_eq!(options(none, modules), ["CONFIG_MODULES", "CONFIG_KVM"]);
        assert_eq!(options(modules, none), ["CONFIG_KVM", "CONFIG_MODULES"]);
    }

    /// A number or a text that only one of the two configurations lists has its value in all steps.
    #[test]
    fn each_step_adds_one_change_and_the_last_is_the_bad_configuration() {
        let way = way(GOOD, BAD);
        let lines = |text: &str| {
            let names = ["NEW", "NEW_DEBUG", "NEW_NAME", "OLD_SIZE", "HZ_250", "LOCALVERSION"];
            let parsed = config::parse(text);
            names.map(|name| parsed.get(name).copied().unwrap_or("-").to_owned())
        };
        let named = "\"-good\"";
        let text = "\"a b\"";
        assert_eq!(lines(&way.first(0)), ["n", "n", text, "14", "y", named]);
        assert_eq!(lines(&way.first(3)), ["m", "n", text, "14", "y", named]);
        assert_eq!(lines(&way.first(6)), ["m", "n", text, "14", "n", named]);
        let [new, old] = [&way.changes[2..3], &way.changes[3..5]];
        assert_eq!(lines(&way.without(new)), ["n", "n", text, "14", "n", named]);
        assert_eq!(changed(&way.first(6), &way.without(old)).len(), 2);
        for step in 1..7 {
            let changed = changed(&way.first(step - 1), &way.first(step));
            assert_eq!(changed, [way.changes[step - 1].clone()]);
        }
        let rest = changed(&way.first(6), BAD);
        let options: Vec<&str> = rest.iter().map(|it| &*it.option).collect();
        assert_eq!(options, ["CONFIG_LOCALVERSION", "CONFIG_OLD_SIZE"]);
    }
}
