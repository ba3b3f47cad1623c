//! Lists the differences between two experiments by the keys of their files.

use std::collections::{BTreeMap, BTreeSet};

use model::{Experiment, Reading};
use plan::file;
use toml::{Table, Value};

/// The keys of what counts instructions in exact mode, besides the programs in the guest.
pub const COUNTED_BY: [&str; 3] = ["emulator", "plugin", "clock library"];

/// A key of the experiment file with different values in two experiments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDifference {
    /// The key with the names of its tables, such as `machine.memory`. An element of a list appears
    /// by its name.
    pub key: String,
    /// The value in the first experiment; `None` if it is not set or is the default.
    pub first: Option<String>,
    /// The value in the second experiment; `None` if it is not set or is the default.
    pub second: Option<String>,
}

/// Lists the keys in which two experiments differ, except the name of the experiment. Kernels are
/// compared by the stored digests of their images.
pub fn differences(
    first: (&Experiment, &Reading),
    second: (&Experiment, &Reading),
) -> Vec<KeyDifference> {
    let [first, second] = [first, second].map(keys);
    let all: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let both = all.into_iter().map(|key| KeyDifference {
        key: key.clone(),
        first: first.get(key).cloned(),
        second: second.get(key).cloned(),
    });
    both.filter(|difference| difference.first != difference.second).collect()
}

/// Collects all keys of an experiment's file with their values, and inputs that the file does not
/// contain, such as digests.
fn keys((experiment, reading): (&Experiment, &Reading)) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    let text = file::write(experiment, reading).text;
    let table: Table = text.parse().expect("written files are TOML");
    flatten(String::new(), Value::Table(table), &mut keys);
    keys.remove("name");
    // A profile with one flag is written with the others, which are off by default.
    keys.retain(|key, value| !(key.starts_with("profile.") && value == "false"));
    // The contents of a program's files are compared below.
    keys.retain(|key, _| !(key.starts_with("workload.") && key.ends_with(".archive")));
    for variant in &experiment.variants {
        keys.insert(format!("variant.{}.kernel", variant.name), variant.kernel.to_string());
    }
    for used in &experiment.workloads {
        // The file has the archive of such a program, and not its command.
        if used.manifest.plain {
            let command = used.manifest.command.join(" ");
            keys.insert(format!("command of {}", used.manifest.name), command);
        }
        let of = &used.manifest.name;
        for file in used.files() {
            let name = file.path().file_name().unwrap_or_default().to_string_lossy();
            let digest = file.digest.iter().flat_map(|digest| digest.chars().take(12));
            // The archive of such a program is named after its contents.
            let key = match used.manifest.plain && used.archive.as_ref() == Some(file) {
                true => format!("program {of}"),
                false => format!("contents of {name} of {of}"),
            };
            keys.insert(key, digest.collect());
        }
    }
    for (key, digest) in [
        ("programs of Faultline in the guest", &experiment.guest_digest),
        ("image of the user space", &experiment.userspace_digest),
        (COUNTED_BY[1], &experiment.counted_by.plugin),
        (COUNTED_BY[2], &experiment.counted_by.clock),
        ("exact machine", &experiment.counted_by.machine),
    ] {
        if !digest.is_empty() {
            keys.insert(key.into(), digest.chars().take(12).collect());
        }
    }
    let emulator = &experiment.counted_by.emulator;
    if !emulator.is_empty() {
        keys.insert(COUNTED_BY[0].into(), emulator.clone());
    }
    keys
}

fn flatten(path: String, value: Value, keys: &mut BTreeMap<String, String>) {
    let within = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                flatten(within(&name), value, keys);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_table) => {
            for (number, value) in list.into_iter().enumerate() {
                let name = value.get("name").or_else(|| value.get("kernel"));
                let name = name.and_then(Value::as_str).map(str::to_owned);
                flatten(within(&name.unwrap_or_else(|| number.to_string())), value, keys);
            }
        }
        Value::String(text) => {
            keys.insert(path, text);
        }
        other => {
            keys.insert(path, other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::Pinned;

    use super::*;

    fn experiment(text: &str) -> Experiment {
        let text = format!(
            "name = \"x\"\n{text}\n[[variant]]\nkernel = \"debian:6.1\"\n\
             [[workload]]\nname = \"mprotect\"\n"
        );
        file::parse(Path::new("x.toml"), &text, None).unwrap().experiment
    }

    #[test]
    fn differences_are_listed_by_key() {
        let first = experiment("boots = 3\n[machine]\ncpus = 2\nmemory = \"512M\"");
        let mut second = experiment("boots = 4\n[machine]\ncpus = 2\nmemory = \"1G\"");
        second.name = "y".into();
        second.variants[0].cmdline = "quiet".into();
        let told = differences((&first, Reading::USUAL), (&second, Reading::USUAL))
            .into_iter()
            .map(|it| {
                let or_usual = |value: Option<String>| value.unwrap_or_else(|| "usual".into());
                format!("{}: {} and {}\n", it.key, or_usual(it.first), or_usual(it.second))
            });
        insta::assert_snapshot!(told.collect::<String>());
        assert_eq!(differences((&first, Reading::USUAL), (&first, Reading::USUAL)), []);
    }

    #[test]
    fn arguments_of_a_program_are_a_difference() {
        let mut first = experiment("boots = 3\n[machine]\ncpus = 2\nmemory = \"512M\"");
        first.workloads[0].manifest.plain = true;
        first.workloads[0].manifest.command = vec!["./x.sh".into(), "64".into()];
        let mut second = first.clone();
        second.workloads[0].manifest.command[1] = "640".into();
        let told = differences((&first, Reading::USUAL), (&second, Reading::USUAL));
        let [KeyDifference { key, first, second }] = &told[..] else { panic!("{told:?}") };
        assert_eq!(key, "command of mprotect");
        assert_eq!(
            [first, second].map(|it| it.as_deref()),
            [Some("./x.sh 64"), Some("./x.sh 640")]
        );
    }

    #[test]
    fn lines_are_the_only_difference_of_a_second_pass() {
        let first =
            experiment("mode = \"exact\"\nseeds = 2\n[machine]\ncpus = 2\nmemory = \"512M\"");
        let mut second = first.clone();
        second.profile.lines = vec!["do_wp_page".into()];
        let told = differences((&second, Reading::USUAL), (&first, Reading::USUAL));
        let keys: Vec<&str> = told.iter().map(|it| &*it.key).collect();
        assert_eq!(keys, ["profile.lines"]);
    }

    #[test]
    fn programs_with_the_same_name_differ_by_their_contents() {
        let first = experiment("boots = 3\n[machine]\ncpus = 2\nmemory = \"512M\"");
        let with = |digest: &str| {
            let mut experiment = first.clone();
            let digest = Some(digest.to_owned());
            experiment.workloads[0].program = Some(Pinned { name: "bin/x".into(), digest });
            experiment
        };
        let keys: Vec<_> = differences((&with("1"), Reading::USUAL), (&with("2"), Reading::USUAL))
            .into_iter()
            .map(|it| it.key)
            .collect();
        assert_eq!(keys, ["contents of x of mprotect"]);

        let plain = |digest: &str| {
            let mut experiment = first.clone();
            experiment.workloads[0].manifest.plain = true;
            let (name, digest) = (format!("{digest}.cpio"), Some(digest.to_owned()));
            experiment.workloads[0].archive = Some(Pinned { name, digest });
            experiment
        };
        let (one, other) = (plain("1"), plain("2"));
        let told = differences((&one, Reading::USUAL), (&other, Reading::USUAL));
        let keys: Vec<_> = told.iter().map(|it| &*it.key).collect();
        assert_eq!(keys, ["program mprotect"]);
    }

    #[test]
    fn kernels_with_the_same_name_differ_by_their_images() {
        let first = experiment("boots = 3\n[machine]\ncpus = 2\nmemory = \"512M\"");
        let mut second = first.clone();
        second.variants[0].kernel.name.push_str(" another");
        let keys: Vec<_> = differences((&first, Reading::USUAL), (&second, Reading::USUAL))
            .into_iter()
            .map(|it| it.key)
            .collect();
        assert_eq!(keys, [format!("variant.{}.kernel", first.variants[0].name)]);
    }
}
